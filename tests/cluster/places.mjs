// Daemons that share a store, each in a network of its own if that can be had, with a counter for actors beside it
import {spawn} from "node:child_process";
import {fileURLToPath} from "node:url";

import {Daemon} from "../http/daemon.mjs";
import {serve} from "../http/push_server.mjs";

import {directory, Network, noNetworks} from "./servers.mjs";

const counterScript = fileURLToPath(new URL("../../clients/typescript/examples/counter_plain.mjs", import.meta.url));
const counterPort = 8080;

/// The behaviour of the counters where a daemon is: its network has nothing else.
async function startCounter(t, inside) {
  const words = [...inside, process.execPath, counterScript, `${counterPort}`];
  const child = spawn(words[0], words.slice(1), {stdio: ["ignore", "pipe", "inherit"]});
  t.after(() => child.kill("SIGKILL"));
  await new Promise((resolve) => child.stdout.once("data", resolve));
  child.unref();
}

/// Networks for a test, if they can be had; `otherwise` says what the test does without them.
export function networkFor(t, otherwise) {
  if (!noNetworks) return Network.make(t);
  t.diagnostic(`${otherwise}: ${noNetworks}`);
}

/// Three daemons on a store, and the url of the counters as they see it: {daemons, kind, before}. `before` are the
/// words that put a command to where the first of them is. In a network they are daemon0, daemon1 and daemon2.
export async function startDaemons(t, store, network) {
  if (!network) {
    const counter = await serve(
        t, ({json: {op, state}}) => ({json: op === "init" ? {state: 0} : {state: state + 1, reply: state + 1}}));
    const daemons = await Promise.all([0, 1, 2].map(() => Daemon.start(t, {store})));
    return {daemons, kind: counter.url, before: []};
  }
  const sockets = directory(t);
  const daemons = await Promise.all([0, 1, 2].map(async (i) => {
    network.add(`daemon${i}`);
    const inside = network.inside(`daemon${i}`);
    await startCounter(t, inside);
    const before = ["setpriv", "--pdeathsig=KILL", "--", ...inside];
    return Daemon.start(t, {store, before, socket: `${sockets}/daemon${i}`});
  }));
  return {daemons, kind: `http://127.0.0.1:${counterPort}/`, before: network.inside("daemon0")};
}
