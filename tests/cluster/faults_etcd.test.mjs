// Three daemons on an etcd of three members, of which leaders are killed and members cut off, while daemons are killed
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {test} from "node:test";
import {setTimeout as sleep} from "node:timers/promises";
import {fileURLToPath} from "node:url";

import {Daemon} from "../http/daemon.mjs";
import {serve} from "../http/push_server.mjs";

import {checkHistory} from "./history.mjs";
import {faultSeconds, Load} from "./load.mjs";
import {directory, Etcd, Network, noEtcd, noNetworks, perdure} from "./servers.mjs";

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

/// The cluster, the daemons and the url of the counters: each in a network of its own if that can be had.
async function startAll(t) {
  if (noNetworks) {
    t.diagnostic(`members are stopped instead of cut off: ${noNetworks}`);
    const cluster = await Etcd.start(t, {members: 3});
    const counter = await serve(
        t, ({json: {op, state}}) => ({json: op === "init" ? {state: 0} : {state: state + 1, reply: state + 1}}));
    const daemons = await Promise.all([0, 1, 2].map(() => Daemon.start(t, {store: cluster.url()})));
    return {cluster, daemons, kind: counter.url};
  }
  const network = Network.make(t);
  const cluster = await Etcd.start(t, {members: 3, network});
  const sockets = directory(t);
  const daemons = await Promise.all([0, 1, 2].map(async (i) => {
    network.add(`daemon${i}`);
    const inside = network.inside(`daemon${i}`);
    await startCounter(t, inside);
    const before = ["setpriv", "--pdeathsig=KILL", "--", ...inside];
    return Daemon.start(t, {store: cluster.url(), before, socket: `${sockets}/daemon${i}`});
  }));
  return {network, cluster, daemons, kind: `http://127.0.0.1:${counterPort}/`};
}

/// The first member that does not lead: daemons begin with it.
const follower = async (cluster) => (await cluster.leader()) === 0 ? 1 : 0;

function faultsOf({network, cluster, daemons}, load) {
  let next = 0;
  const killLeader = async () => {
    const leader = await cluster.leader();
    await load.fault("the leader of etcd is killed and started", [], async () => {
      await cluster.kill(leader);
      await sleep(3_000);
      await cluster.start(leader);
    });
  };
  const killDaemon = () => {
    const daemon = daemons[next++ % daemons.length];
    return load.fault("a daemon is killed and started", [daemon], () => load.killDaemon(daemon));
  };
  const stopMember = async () => {
    const member = await follower(cluster);
    await load.fault("a member of etcd is stopped", [], async () => {
      cluster.signal(member, "SIGSTOP");
      await sleep(5_000);
      cluster.signal(member, "SIGCONT");
    });
  };
  if (!network) return [killLeader, stopMember, killDaemon];
  const cutMember = async () => {
    const member = await follower(cluster);
    const others = [0, 1, 2].filter((each) => each !== member);
    await load.fault("a member of etcd is cut off from the others, not from the daemons", [], async () => {
      for (const other of others) network.cut(`member${member}`, `member${other}`);
      await sleep(5_000);
      for (const other of others) network.mend(`member${member}`, `member${other}`);
    });
  };
  const unplugLeader = async () => {
    const leader = await cluster.leader();
    await load.fault("the leader of etcd is cut off from everybody", [], async () => {
      network.unplug(`member${leader}`);
      await sleep(5_000);
      network.plug(`member${leader}`);
    });
  };
  const unplugDaemon = () => {
    const i = next++ % daemons.length;
    return load.fault("a daemon is cut off from everybody", [daemons[i]], async () => {
      network.unplug(`daemon${i}`);
      await sleep(7_000);
      network.plug(`daemon${i}`);
    });
  };
  // The last ones only if there is time.
  return faultSeconds < 40 ? [killLeader, cutMember, killDaemon, unplugLeader] :
                             [killLeader, cutMember, killDaemon, unplugLeader, unplugDaemon];
}

test(
    "etcd: faults lose nothing, and nothing happens twice", {skip: noEtcd, timeout: (faultSeconds + 120) * 1_000},
    async (t) => {
      const all = await startAll(t);
      const load = await Load.start(t, all.daemons, all.kind);
      await load.suffer(faultsOf(all, load));
      await load.finish("etcd");
      checkHistory(t, load.history, directory(t));
      const before = all.network ? all.network.inside("daemon0") : [];
      assert.equal((await perdure(["verify", "--store", all.cluster.url()], {before})).code, 0);
    });
