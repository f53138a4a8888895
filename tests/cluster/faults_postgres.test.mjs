// Three daemons on one PostgreSQL that is stopped, crashes and cuts connections, while daemons are paused and killed
import assert from "node:assert/strict";
import {test} from "node:test";
import {setTimeout as sleep} from "node:timers/promises";

import {Daemon} from "../http/daemon.mjs";
import {serve} from "../http/push_server.mjs";

import {checkHistory} from "./history.mjs";
import {faultSeconds, Load} from "./load.mjs";
import {directory, noPostgres, perdure, Postgres} from "./servers.mjs";

/// Ends, for some seconds, sessions of the daemons while they run a statement: some of them have committed, and their
/// answer is lost.
const cutSessions = (seconds) => `DO $$ BEGIN
  FOR i IN 1..${seconds * 8} LOOP
    PERFORM pg_stat_clear_snapshot();
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name LIKE 'perdure%' AND state = 'active' AND pid <> pg_backend_pid();
    PERFORM pg_sleep(0.125);
  END LOOP;
END $$`;

test(
    "postgres: faults lose nothing, and nothing happens twice",
    {skip: noPostgres, timeout: (faultSeconds + 120) * 1_000}, async (t) => {
      const server = await Postgres.start(t);
      const counter = await serve(
          t, ({json: {op, state}}) => ({json: op === "init" ? {state: 0} : {state: state + 1, reply: state + 1}}));
      const daemons = await Promise.all([0, 1, 2].map(() => Daemon.start(t, {store: server.url()})));
      const load = await Load.start(t, daemons, counter.url);
      let next = 0;
      const victim = () => daemons[next++ % daemons.length];
      await load.suffer([
        () => load.fault(
            "the server is stopped and started", [],
            async () => {
              await server.stop();
              await server.start();
            }),
        () => load.fault("sessions are ended in the middle of statements", [], () => server.sql(cutSessions(4))),
        () => {
          const daemon = victim();
          return load.fault("a daemon is killed and started", [daemon], () => load.killDaemon(daemon));
        },
        () => load.fault(
            "the server crashes and is started", [],
            async () => {
              await server.crash();
              await server.start();
            }),
        () => {
          const daemon = victim();
          // Longer than its sessions live.
          return load.fault("a daemon is paused", [daemon], async () => {
            daemon.child.kill("SIGSTOP");
            await sleep(7_000);
            daemon.child.kill("SIGCONT");
          });
        },
      ]);
      await load.finish("postgres");
      t.diagnostic(`postgres: ${server.log().split("due to administrator command").length - 1} sessions were ended`);
      checkHistory(t, load.history, directory(t));
      assert.equal((await perdure(["verify", "--store", server.url()])).code, 0);
    });
