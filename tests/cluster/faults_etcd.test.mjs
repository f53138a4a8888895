// Three daemons on an etcd of three members, of which leaders are killed and members cut off, while daemons are killed
// and cut off
import assert from "node:assert/strict";
import {test} from "node:test";
import {setTimeout as sleep} from "node:timers/promises";

import {checkHistory} from "./history.mjs";
import {faultSeconds, Load} from "./load.mjs";
import {networkFor, startDaemons} from "./places.mjs";
import {directory, Etcd, noEtcd, perdure} from "./servers.mjs";

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
    return load.cutOff(
        "a daemon is cut off from everybody", [daemons[i]], () => network.unplug(`daemon${i}`),
        () => network.plug(`daemon${i}`));
  };
  return [killLeader, cutMember, killDaemon, unplugLeader, unplugDaemon];
}

test(
    "etcd: faults lose nothing, and nothing happens twice", {skip: noEtcd, timeout: (faultSeconds + 120) * 1_000},
    async (t) => {
      const network = networkFor(t, "members are stopped instead of cut off, and daemons never are");
      const cluster = await Etcd.start(t, {members: 3, network});
      const {daemons, kind, before} = await startDaemons(t, cluster.url(), network);
      const load = await Load.start(t, daemons, kind);
      await load.suffer(faultsOf({network, cluster, daemons}, load));
      await load.finish("etcd");
      checkHistory(t, load.history, directory(t));
      assert.equal((await perdure(["verify", "--store", cluster.url()], {before})).code, 0);
    });
