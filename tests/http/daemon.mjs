// The real daemon as a child, and ways to talk to it. PERDURE_BINARY says where it is.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {mkdtempSync, rmSync} from "node:fs";
import http from "node:http";
import net from "node:net";
import {tmpdir} from "node:os";
import {join} from "node:path";

import {checkAnswer} from "./schema.mjs";

const binary = process.env.PERDURE_BINARY;
/// Nothing that these tests wait for takes longer, on a slow machine too.
export const patience = 30_000;

const running = new Set();
// However this process ends, no daemon is left behind.
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

let spaces = 0;
/// A space that no other test uses.
export const newSpace = (prefix = "t") => `${prefix}${++spaces}`;

export function scratch(t) {
  const directory = mkdtempSync(join(tmpdir(), "perdure-http-"));
  t?.after(() => rmSync(directory, {recursive: true, force: true}));
  return directory;
}

/// Asks again and again until the answer is truthy, and fails if it does not become so.
export async function until(what, ask, limit = patience) {
  const end = Date.now() + limit;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) assert.fail(`waited ${limit} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/// Fails if a promise takes longer than it should.
export function within(limit, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new assert.AssertionError({message: `${what} took more than ${limit} ms`})), limit);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export class Daemon {
  /// One for all tests of a file. It ends with the process, and does not keep that from ending.
  static async shared(options) {
    const daemon = await Daemon.start(undefined, options);
    daemon.child.unref();
    daemon.child.stdout.unref();
    daemon.child.stderr.unref();
    return daemon;
  }

  /// Starts one and waits until it listens. `t` ends it with its test. `before` are words before its command, such as
  /// those that put it into another network; what is asked of it there goes through its `socket`.
  static async start(t, {store = "memory:", args = [], env = {}, before = [], socket} = {}) {
    const daemon = new Daemon(store, args, env, before, socket);
    t?.after(() => daemon.end());
    await daemon.#spawn();
    return daemon;
  }

  constructor(store, args, env, before, socket) {
    Object.assign(this, {store, args, env, before, socket, log: ""});
    if (socket) this.args = ["--socket", socket, ...args];
  }

  async #spawn() {
    assert.ok(binary, "set PERDURE_BINARY to the binary to test");
    const words = [...this.before, binary, "serve", "--store", this.store, "--listen", "127.0.0.1:0", ...this.args];
    this.child =
        spawn(words[0], words.slice(1), {env: {...process.env, ...this.env}, stdio: ["ignore", "pipe", "pipe"]});
    this.agent = new http.Agent({keepAlive: true, maxSockets: Infinity});
    const child = this.child;
    running.add(child);
    this.exited = new Promise(
        (resolve) => child.once("exit", (code, signal) => (running.delete(child), resolve({code, signal}))));
    this.child.stderr.on("data", (text) => (this.log += text));
    let said = "";
    this.port = await within(
        patience, "starting the daemon", new Promise((resolve, reject) => {
          this.child.once("error", reject);
          this.exited.then((how) => reject(new Error(`the daemon ended: ${JSON.stringify(how)} ${said} ${this.log}`)));
          this.child.stdout.on("data", (text) => {
            said += text;
            const found = /listening on http:\/\/[^ :]+:(\d+)/.exec(said);
            if (found) resolve(Number(found[1]));
          });
        }));
    this.said = said;
  }

  get url() { return `http://127.0.0.1:${this.port}`; }

  isRunning() { return this.child.exitCode === null && this.child.signalCode === null; }

  /// SIGTERM; how it exited.
  async stop() {
    this.child.kill("SIGTERM");
    return within(patience, "stopping the daemon", this.exited);
  }

  /// kill -9.
  async kill() {
    this.child.kill("SIGKILL");
    return this.exited;
  }

  /// On the same store, at another port.
  async restart() {
    this.agent.destroy();
    if (this.isRunning()) await this.kill();
    await this.#spawn();
  }

  /// With the test: whatever it does, nothing is left behind.
  async end() {
    this.agent?.destroy();
    if (!this.child || !this.isRunning()) return;
    this.child.kill("SIGKILL");
    await this.exited;
  }

  /// Sends one request, and checks the answer against the document. `body` is sent as JSON, `raw` as it is.
  request(method, path, {body, raw, headers = {}, check = true, signal, timeout = patience} = {}) {
    const text = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    return new Promise((resolve, reject) => {
      const all = {...headers};
      if (text !== undefined) all["Content-Length"] = Buffer.byteLength(text);
      if (text !== undefined && !all["Content-Type"]) all["Content-Type"] = "application/json";
      const to = this.socket ? {socketPath: this.socket} : {host: "127.0.0.1", port: this.port};
      const request = http.request(
          {...to, method, path, headers: all, agent: this.agent, signal},
          (response) => {
            const pieces = [];
            response.on("data", (piece) => pieces.push(piece));
            response.on("error", reject);
            response.on("end", () => {
              const answer = {
                status: response.statusCode,
                headers: response.headers,
                text: Buffer.concat(pieces).toString()
              };
              try {
                answer.json = readJson(answer);
                if (check) this.check(method, path, answer, body);
                resolve(answer);
              } catch (error) {
                reject(error);
              }
            });
          },
      );
      request.setTimeout(timeout, () => request.destroy(new Error(`${method} ${path} took more than ${timeout} ms`)));
      request.on("error", reject);
      request.end(text);
    });
  }

  check(method, path, answer, sent) {
    const wrong = checkAnswer(method, path, answer, sent);
    assert.deepEqual(wrong, [], `${method} ${path} answered ${answer.status} ${answer.text.slice(0, 500)}`);
  }

  get(path, options) { return this.request("GET", path, options); }
  post(path, body, options) { return this.request("POST", path, {body, ...options}); }
  put(path, body, options) { return this.request("PUT", path, {body, ...options}); }
  delete(path, options) { return this.request("DELETE", path, options); }

  /// The answer's JSON, if it has that status.
  async expect(status, method, path, body, options) {
    const answer = await this.request(method, path, {body, ...options});
    assert.equal(answer.status, status, `${method} ${path}: ${answer.status} ${answer.text.slice(0, 500)}`);
    return answer.json;
  }

  /// That it is refused so, with that code.
  async refuse(status, code, method, path, body, options) {
    const answer = await this.request(method, path, {body, ...options});
    const said =
        `${method} ${path} ${JSON.stringify(body)?.slice(0, 200)}: ${answer.status} ${answer.text.slice(0, 300)}`;
    assert.equal(answer.status, status, said);
    assert.equal(answer.json.error.code, code, said);
    return answer;
  }

  /// A function that waits until it has logged, from now on, what fits a pattern.
  logs() {
    const from = this.log.length;
    return (pattern, what = "") =>
               until(`${what} ${pattern} in the log`, () => pattern.test(this.log.slice(from)), 5_000);
  }

  /// A socket to it, for what a client of HTTP would not send.
  raw() { return Raw.connect(this.port); }
}

function readJson(answer) {
  if (!/^application\/(problem\+)?json/.test(answer.headers["content-type"] ?? "") || answer.text === "")
    return undefined;
  return JSON.parse(answer.text);
}

export class Raw {
  static connect(port) {
    const raw = new Raw();
    raw.socket = net.connect(port, "127.0.0.1");
    raw.socket.setNoDelay(true);
    raw.ended = new Promise((resolve) => raw.socket.once("close", resolve));
    raw.socket.on("data", (piece) => {
      raw.text += piece.toString("latin1");
      raw.wake?.();
    });
    raw.socket.on("close", () => ((raw.closed = true), raw.wake?.()));
    raw.socket.on("error", () => {});
    return new Promise((resolve, reject) => {
      raw.socket.once("connect", () => resolve(raw));
      raw.socket.once("error", reject);
    });
  }

  text = "";
  closed = false;

  send(text) { return new Promise((resolve) => this.socket.write(text, "latin1", () => resolve())); }

  async #more(limit) {
    if (this.closed) return false;
    await within(
        limit, `an answer on a socket, after ${JSON.stringify(this.text.slice(-200))},`,
        new Promise((resolve) => (this.wake = resolve)));
    return true;
  }

  /// The next answer: {status, headers, body}. Null if the connection was closed instead.
  async answer({head = false, limit = patience} = {}) {
    for (;;) {
      const end = this.text.indexOf("\r\n\r\n");
      if (end >= 0) {
        const [first, ...lines] = this.text.slice(0, end).split("\r\n");
        const status = Number(first.split(" ")[1]);
        const headers = Object.fromEntries(lines.map(
            (line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]));
        const size = head || status < 200 || status === 204 ? 0 : Number(headers["content-length"] ?? 0);
        if (this.text.length >= end + 4 + size) {
          const body = this.text.slice(end + 4, end + 4 + size);
          this.text = this.text.slice(end + 4 + size);
          return {status, headers, body};
        }
      }
      if (!(await this.#more(limit))) return null;
    }
  }

  /// Waits until the text has come.
  async see(text, limit = patience) {
    while (!this.text.includes(text))
      if (!(await this.#more(limit))) assert.fail(`closed before ${JSON.stringify(text)} came`);
  }

  end() { this.socket.destroy(); }
}
