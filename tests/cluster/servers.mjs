// Servers of a test's own: PostgreSQL, and clusters of etcd, on the loopback or in networks that the test makes.
import assert from "node:assert/strict";
import {execFile, execFileSync, spawn} from "node:child_process";
import * as fs from "node:fs";
import net from "node:net";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {promisify} from "node:util";

import {patience, until, within} from "../http/daemon.mjs";

const run = promisify(execFile);
export const isRoot = process.getuid() === 0;
const postgresTools = ["17", "16", "15"].map((version) => `/usr/lib/postgresql/${version}/bin`).find(fs.existsSync);
const has =
    (program) => [...process.env.PATH.split(":"), "/usr/sbin", "/sbin"].some((at) => fs.existsSync(`${at}/${program}`));

/// Why a test cannot be run here; false if it can.
export const noPostgres = !postgresTools && "PostgreSQL is not installed";
export const noEtcd = !(has("etcd") && has("etcdctl")) && "etcd is not installed";
export const noNetworks = !isRoot ? "networks of its own need root" : !has("ip") && "iproute2 is not installed";

export function directory(t) {
  const at = fs.mkdtempSync(join(tmpdir(), "perdure-cluster-"));
  t.after(() => fs.rmSync(at, {recursive: true, force: true}));
  return at;
}

const taken = new Set();
/// A port of the loopback that is free, and not among those that the kernel gives to connections: members of a cluster
/// connect to each other before all of them listen.
export async function freePort() {
  for (let tries = 0; tries < 1_000; ++tries) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    if (taken.has(port)) continue;
    const server = net.createServer();
    const bound = await new Promise((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!bound) continue;
    await new Promise((resolve) => server.close(resolve));
    taken.add(port);
    return port;
  }
  throw new Error("no free port");
}

/// A SIGSTOP has its effect when this returns: on a busy machine, threads would go on for a while.
function signal(pid, name) {
  process.kill(pid, name);
  if (name !== "SIGSTOP") return;
  const goesOn = (task) => {
    try {
      return !fs.readFileSync(`/proc/${pid}/task/${task}/stat`, "utf8").includes(") T ");
    } catch {
      return false;  // It has ended.
    }
  };
  while (fs.readdirSync(`/proc/${pid}/task`).some(goesOn));
}

/// A process of a server. It ends with us, also if we are killed. `inside` are words that put it into another network.
class Process {
  constructor(words, log, {user, signal = "KILL", inside = []} = {}) {
    const as = user && isRoot ? [`--reuid=${user}`, `--regid=${user}`, "--clear-groups"] : [];
    const out = fs.openSync(log, "a");
    this.log = log;
    const all = [...inside, "setpriv", `--pdeathsig=${signal}`, ...as, "--", ...words];
    this.child = spawn(all[0], all.slice(1), {stdio: ["ignore", out, out]});
    this.exited = new Promise((resolve) => this.child.once("exit", resolve));
    // A test that is done does not wait for it.
    this.child.unref();
  }
  get isRunning() { return this.child.exitCode === null && this.child.signalCode === null; }
  signal(name) { signal(this.child.pid, name); }
  async end(signal) {
    if (!this.isRunning) return;
    this.child.ref();
    this.child.kill(signal);
    await within(patience, "ending a server", this.exited);
  }
}

export class Postgres {
  host = "127.0.0.1";
  inside = [];

  /// Makes a server with the superuser postgres, and starts it. Nobody needs a password but the role with_password.
  /// With a network it is in a place of its own: server.
  static async start(t, {conf = "", hba = "", network} = {}) {
    const server = await Postgres.#make(t);
    if (network) {
      server.host = network.add("server").address;
      server.inside = network.inside("server");
      hba += `\nhost all all ${server.host}/24 trust`;
    }
    await server.#tool(
        "initdb", "-D", server.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync");
    const trusted = fs.readFileSync(`${server.data}/pg_hba.conf`, "utf8");
    fs.writeFileSync(`${server.data}/pg_hba.conf`, `${hba}\nhost all with_password all scram-sha-256\n${trusted}`);
    const addresses = [...new Set(["127.0.0.1", server.host])].join(",");
    server.#configure(`listen_addresses = '${addresses}'\nfsync = on\nmax_connections = 100\n${conf}`);
    await server.start();
    return server;
  }
  /// A standby of another, as pg_basebackup makes it.
  static async standby(t, primary) {
    const server = await Postgres.#make(t);
    await server.#tool(
        "pg_basebackup", "-D", server.data, "-h", "127.0.0.1", "-p", `${primary.port}`, "-U", "postgres", "-R", "-c",
        "fast", "--no-sync");
    server.#configure("");
    await server.start();
    return server;
  }
  static async #make(t) {
    const server = new Postgres();
    t.after(() => {
      if (server.isFrozen) server.thaw();
      return server.process?.end("SIGQUIT");
    });
    server.directory = directory(t);
    server.data = `${server.directory}/data`;
    server.port = await freePort();
    if (isRoot) execFileSync("chown", ["postgres:postgres", server.directory]);
    return server;
  }
  #configure(more) {
    fs.appendFileSync(`${this.data}/postgresql.conf`, `unix_socket_directories = '${this.directory}'\n${more}\n`);
  }
  async #tool(name, ...words) {
    const log = `${this.directory}/tools.log`;
    const tool = new Process([`${postgresTools}/${name}`, ...words], log, {user: "postgres"});
    tool.child.ref();
    assert.equal(await tool.exited, 0, `${name}: ${fs.readFileSync(log, "utf8")}`);
  }

  /// `who` is "user" or "user:password".
  url(query = "", who = "postgres", database = "postgres") {
    return `postgres://${who}@${this.host}:${this.port}/${database}${query && `?${query}`}`;
  }
  async start() {
    const words = [`${postgresTools}/postgres`, "-D", this.data, "-p", `${this.port}`];
    const options = {user: "postgres", signal: "QUIT", inside: this.inside};
    this.process = new Process(words, `${this.directory}/server.log`, options);
    await until("PostgreSQL answers", async () => {
      assert.ok(this.process.isRunning, this.log());
      return this.#ask(`${postgresTools}/pg_isready`, "-q").then(() => true, () => false);
    });
  }
  /// Ends it as an operator would, without waiting for its clients.
  stop() { return this.process.end("SIGINT"); }
  /// Ends it as a failing machine would.
  crash() { return this.process.end("SIGQUIT"); }
  log() { return fs.readFileSync(this.process.log, "utf8"); }
  /// Stops all processes of it for a while.
  freeze() {
    this.isFrozen = true;
    this.#all("SIGSTOP");
  }
  thaw() {
    this.isFrozen = false;
    this.#all("SIGCONT");
  }
  #all(name) {
    const own = `${this.process.child.pid}`;
    const children = fs.readFileSync(`/proc/${own}/task/${own}/children`, "utf8").trim().split(" ").filter(Boolean);
    for (const pid of [own, ...children]) signal(Number(pid), name);
  }
  /// What psql answers, a row a line.
  async sql(text, database = "postgres") {
    const words = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", database, "-c", text];
    return (await this.#ask("psql", ...words)).stdout.trim();
  }
  /// Runs a client of it where it is.
  #ask(...words) {
    const all = [...this.inside, ...words, "-h", "127.0.0.1", "-p", `${this.port}`];
    return run(all[0], all.slice(1));
  }
}

/// Networks that only this test uses: a hub with a bridge, and places that are connected to it. Nothing leads out.
export class Network {
  static make(t) {
    const network = new Network();
    t.after(() => network.remove());
    const hub = network.#namespace("hub");
    ip("-n", hub, "link", "add", "bridge", "type", "bridge");
    ip("-n", hub, "link", "set", "bridge", "up");
    return network;
  }

  #names = [];
  #places = new Map();
#namespace(name) {
  const whole = `perdure-${process.pid}-${name}`;
  ip("netns", "add", whole);
  this.#names.push(whole);
  ip("-n", whole, "link", "set", "lo", "up");
  return whole;
}
/// A place with an address of its own.
add(name) {
  const namespace = this.#namespace(name), hub = this.#names[0];
  const number = this.#places.size + 1;
  ip("-n", hub, "link", "add", `to${number}`, "type", "veth", "peer", "name", "eth0", "netns", namespace);
  ip("-n", hub, "link", "set", `to${number}`, "master", "bridge", "up");
  ip("-n", namespace, "addr", "add", `10.231.77.${number}/24`, "dev", "eth0");
  ip("-n", namespace, "link", "set", "eth0", "up");
  this.#places.set(name, {namespace, number, address: `10.231.77.${number}`});
  return this.#places.get(name);
}
/// Words to put before a command, so that it runs there.
inside(name) { return ["ip", "netns", "exec", this.#places.get(name).namespace]; }
/// Takes a place off the network, or connects it again.
unplug(name) { ip("-n", this.#names[0], "link", "set", `to${this.#places.get(name).number}`, "down"); }
plug(name) { ip("-n", this.#names[0], "link", "set", `to${this.#places.get(name).number}`, "up"); }
/// Lets nothing through between two places, in either direction, or lets it through again.
cut(one, other) { this.#routes("add", one, other); }
mend(one, other) { this.#routes("del", one, other); }
#routes(how, one, other) {
  const [a, b] = [this.#places.get(one), this.#places.get(other)];
  ip("-n", a.namespace, "route", how, "blackhole", `${b.address}/32`);
  ip("-n", b.namespace, "route", how, "blackhole", `${a.address}/32`);
}
remove() {
  for (const name of this.#names.splice(0)) execFileSync("ip", ["netns", "del", name], {stdio: "ignore"});
}
}

const ip = (...words) => execFileSync("ip", words, {stdio: ["ignore", "ignore", "pipe"]});

export class Etcd {
  /// Members on the loopback; with a network, each in a place of its own: member0, member1, ...
  static async start(t, {members = 1, args = [], tls = false, network} = {}) {
    const cluster = new Etcd();
    t.after(() => Promise.all(cluster.members.map((each) => each.process?.end("SIGKILL"))));
    Object.assign(cluster, {args, scheme: tls ? "https" : "http", network, directory: directory(t), members: []});
    for (let i = 0; i < members; ++i) {
      const host = network ? network.add(`member${i}`).address : "127.0.0.1";
      const [client, peer] = network ? [2379, 2380] : [await freePort(), await freePort()];
      cluster.members.push({name: `member${i}`, client: `${host}:${client}`, peer: `${host}:${peer}`});
    }
    cluster.members.forEach((_, i) => cluster.#launch(i));
    await cluster.#healthy();
    return cluster;
  }

  /// `who` is "user:password@".
  url(rest = "/perdure", who = "") {
    return `etcd://${who}${this.members.map((each) => each.client).join(",")}${rest}`;
  }

  #launch(i) {
    const {name, client, peer} = this.members[i];
    const [clients, peers] = [`${this.scheme}://${client}`, `http://${peer}`];
    const all = this.members.map((each) => `${each.name}=http://${each.peer}`).join(",");
    const inside = this.network ? this.network.inside(name) : [];
    this.members[i].process = new Process(
        [
          ...inside, "etcd", `--name=${name}`, `--data-dir=${this.directory}/${name}`,
          `--listen-client-urls=${clients}`, `--advertise-client-urls=${clients}`, `--listen-peer-urls=${peers}`,
          `--initial-advertise-peer-urls=${peers}`, `--initial-cluster=${all}`, "--logger=zap", ...this.args
        ],
        `${this.directory}/${name}.log`);
  }
  async start(i) {
    this.#launch(i);
    await this.#healthy();
  }
  kill(i) { return this.members[i].process.end("SIGKILL"); }
  signal(i, name) { this.members[i].process.signal(name); }
  async #healthy() {
    for (const [i, member] of this.members.entries())
      await until(`etcd ${i} is healthy`, async () => !member.process.isRunning || await this.#status(i) !== null);
  }
  /// Null if it does not answer or knows of no leader.
  async #status(i) {
    if (this.scheme === "https") return (await reaches(this.members[i].client)) || null;
    const said = await this.ctl(["endpoint", "status", "-w", "json"], i).then(JSON.parse, () => null);
    return said?.[0].Status.leader ? said[0].Status : null;
  }
  async leader() {
    return until("etcd has a leader", async () => {
             for (const [i, member] of this.members.entries()) {
               const status = member.process.isRunning && await this.#status(i);
               if (status && status.leader === status.header.member_id) return {i};
             }
           }).then(({i}) => i);
  }
  /// What etcdctl says to that.
  async ctl(words, i = 0, more = []) {
    const inside = this.network ? this.network.inside(this.members[i].name) : [];
    const all = [
      ...inside, "etcdctl", "--command-timeout=2s", `--endpoints=${this.scheme}://${this.members[i].client}`, ...more,
      ...words
    ];
    return (await run(all[0], all.slice(1), {env: {...process.env, ETCDCTL_API: "3"}})).stdout;
  }
}

/// Whether somebody listens there.
function reaches(address) {
  const [host, port] = address.split(":");
  return new Promise((resolve) => {
    const socket = net.connect(Number(port), host, () => (socket.destroy(), resolve(true)));
    socket.once("error", () => resolve(false));
  });
}

/// A certificate of its own for 127.0.0.1, signed by itself: {cert, key} are the files.
export function certificate(at) {
  fs.mkdirSync(at, {recursive: true});
  const [cert, key] = [`${at}/server.crt`, `${at}/server.key`];
  execFileSync(
      "openssl",
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
        "/CN=perdure-test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert
      ],
      {stdio: "ignore"});
  fs.chmodSync(at, 0o755);
  fs.chmodSync(key, 0o600);
  if (isRoot && !noPostgres) execFileSync("chown", ["postgres:postgres", cert, key]);
  return {cert, key};
}

/// Runs the binary, or another program, to its end: {code, out, err, ms}.
export async function perdure(words, {before = [], program = process.env.PERDURE_BINARY, limit = patience} = {}) {
  const began = performance.now();
  const all = [...before, program, ...words];
  const child = spawn(all[0], all.slice(1), {stdio: ["ignore", "pipe", "pipe"]});
  let out = "", err = "";
  child.stdout.on("data", (text) => (out += text));
  child.stderr.on("data", (text) => (err += text));
  const timer = setTimeout(() => child.kill("SIGKILL"), limit);
  const code = await new Promise((resolve) => child.once("close", resolve));
  clearTimeout(timer);
  return {code, out, err, ms: performance.now() - began};
}
