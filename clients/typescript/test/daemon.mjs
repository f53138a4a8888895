// A real daemon for tests, on a free port of loopback, and other programs that say where they listen.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test as unbounded } from "node:test";
import { Perdure } from "perdure";

const binary = process.env.PERDURE_BINARY;
if (!binary) throw new Error("set PERDURE_BINARY to the perdure program that is to be tested");

/** What hangs has failed. */
export function test(claim, body) {
  return unbounded(claim, { timeout: 60_000 }, body);
}

// So has what goes on when all tests are over.
after(() => {
  const leftOver = () => {
    console.error("the tests are over, and something still runs");
    process.exit(1);
  };
  setTimeout(leftOver, 10_000).unref();
});

/** Starts a program and waits until it prints "listening on URL". */
export async function startListening(command, args, env = {}) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
  let said = "";
  child.stderr.on("data", (text) => (said += text));
  const ended = once(child, "exit");
  const url = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      said += `${line}\n`;
      const found = /^listening on (http:\/\/\S+)/.exec(line);
      if (found) resolve(found[1]);
    });
    child.on("exit", () => reject(new Error(`${command} has ended before it listened: ${said}`)));
    child.on("error", reject);
  });
  return {
    url,
    pid: child.pid,
    said: () => said,
    async stop(signal = "SIGTERM") {
      child.kill(signal);
      await ended;
      return child.exitCode;
    },
  };
}

/** A daemon that goes when the test does. `restart` brings it back at the same address, with what it has stored. */
export async function daemon(t, { store = "memory:", args = [] } = {}) {
  const directory = await mkdtemp(join(tmpdir(), "perdure-test-"));
  const where = store === "lmdb:" ? `lmdb:${join(directory, "store")}` : store;
  const start = (listen) => startListening(binary, ["serve", "--store", where, "--listen", listen, ...args]);
  let running = await start("127.0.0.1:0");
  const { url } = running;
  t.after(async () => {
    await running.stop();
    await rm(directory, { recursive: true, force: true });
  });
  return {
    url,
    directory,
    said: () => running.said(),
    client: (options = {}) => new Perdure({ url, space: "test", ...options }),
    kill: () => running.stop("SIGKILL"),
    stop: () => running.stop(),
    restart: async () => {
      running = await start(new URL(url).host);
    },
  };
}

/** A listener of node:http on a free port, until the test ends; its URL. */
export async function serve(t, listener) {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}/`;
}

/** Something that is fulfilled from outside. */
export function signal() {
  const out = {};
  out.promise = new Promise((resolve, reject) => Object.assign(out, { resolve, reject }));
  return out;
}
