// Three daemons on one PostgreSQL that is stopped, crashes, cuts connections and is cut off itself, while daemons are
// paused and killed
import assert from "node:assert/strict";
import {test} from "node:test";
import {setTimeout as sleep} from "node:timers/promises";

import {checkHistory} from "./history.mjs";
import {faultSeconds, Load, longerThanPatience} from "./load.mjs";
import {networkFor, startDaemons} from "./places.mjs";
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
      const network = networkFor(t, "the server is not cut off");
      const server = await Postgres.start(t, {network});
      const {daemons, kind, before} = await startDaemons(t, server.url(), network);
      const load = await Load.start(t, daemons, kind);
      let next = 0;
      const victim = () => daemons[next++ % daemons.length];
      const faults = [
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
          return load.fault("a daemon is paused", [daemon], async () => {
            daemon.child.kill("SIGSTOP");
            await sleep(longerThanPatience);
            daemon.child.kill("SIGCONT");
          });
        },
      ];
      // What is on its way when it happens is lost without a word: commits, and answers to them.
      const cutOff = () => load.cutOff(
          "the daemons are cut off from the server", daemons, () => network.unplug("server"),
          () => network.plug("server"));
      await load.suffer(network ? [...faults, cutOff] : faults);
      await load.finish("postgres");
      t.diagnostic(`postgres: ${server.log().split("due to administrator command").length - 1} sessions were ended`);
      checkHistory(t, load.history, directory(t));
      assert.equal((await perdure(["verify", "--store", server.url()], {before})).code, 0);
    });
