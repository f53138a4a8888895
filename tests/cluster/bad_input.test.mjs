// Stores that cannot be opened are refused at once with one line that says what to do, and no password in it. A server
// that goes away later is told to whoever asks, and all is well again once it is back.
import assert from "node:assert/strict";
import * as fs from "node:fs";
import {test} from "node:test";

import {Daemon, until} from "../http/daemon.mjs";

import {engines} from "./engines.mjs";
import {oldEtcd, oldPostgres} from "./old_servers.mjs";
import {certificate, directory, Etcd, freePort, isRoot, noEtcd, noPostgres, perdure, Postgres} from "./servers.mjs";

/// That it is refused so: `says` are patterns of the one line on standard error.
async function refused(store, code, ...says) {
  const {code: exited, out, err, ms} = await perdure(["serve", "--store", store, "--listen", "127.0.0.1:0"]);
  const shown = `${store}: exit ${exited} after ${ms.toFixed(0)} ms, ${JSON.stringify(out + err)}`;
  assert.equal(exited, code, shown);
  assert.equal(out, "", shown);
  assert.match(err, /^perdure: [^\n]+\n$/, shown);
  for (const each of says) assert.match(err, each, shown);
  assert.doesNotMatch(err, /s3cret|s3%63ret/, shown);
  assert.ok(ms < 8_000, shown);
  return err;
}

test(
    "postgres: a store that cannot be opened is refused with what to do", {skip: noPostgres, timeout: 60_000},
    async (t) => {
      const {key, cert} = certificate(directory(t));
      const server = await Postgres.start(t, {
        hba: "hostssl all with_tls all trust\nhost all with_tls all reject",
        conf: `ssl = on\nssl_cert_file = '${cert}'\nssl_key_file = '${key}'`
      });
      await server.sql(
          "CREATE ROLE with_password LOGIN PASSWORD 's3cret'; CREATE ROLE with_tls LOGIN SUPERUSER; " +
          "CREATE ROLE weak LOGIN");

      await t.test("urls that are none", async () => {
        await refused("postgres://127.0.0.1:port/x", 2, /port/);
        await refused("postgres://ann:s3cret@127.0.0.1:1/x?colour=red", 2, /colour|parameter/);
        await refused("postgres://ann:s3cret/x@127.0.0.1:1/x", 2, /password/, /%2f/);
        await refused("postgres://ann:a@s3cret@127.0.0.1:1/x", 2, /password/, /%40/);
        await refused(server.url("perdure_schema=Not-A-Name"), 2, /perdure_schema/);
        await refused("postgrse://127.0.0.1/x", 2, /postgres:/);
        await refused(server.url("", "postgres:s3cret", "nowhere"), 2, /nowhere/, /create it|name another/);
        assert.equal((await perdure(["verify", "--store", server.url("", "postgres:s3cret", "nowhere")])).code, 2);
      });
      await t.test("a server that is not there", async () => {
        const port = await freePort();
        await refused(`postgres://ann:s3cret@127.0.0.1:${port}/x`, 5, new RegExp(`${port}`), /cannot be reached/);
      });
      await t.test("no rights", async () => {
        await refused(server.url("", "with_password:wrong-s3cret"), 1, /password/, /pg_hba/);
        await refused(server.url("", "with_password"), 1, /password/);
        await refused(server.url("", "nobody:s3cret"), 1, /nobody/);
        await refused(server.url("", "weak:s3cret"), 1, /permission denied/, /GRANT CREATE ON DATABASE/);
      });
      await t.test("a mismatch of TLS", async () => {
        await refused(server.url("sslmode=disable", "with_tls:s3cret"), 1, /pg_hba/);
        await refused(
            server.url("sslmode=verify-full&sslrootcert=/nowhere/root.crt", "with_tls:s3cret"), 2, /sslrootcert/);
        const other = certificate(`${directory(t)}/other`);
        await refused(
            server.url(`sslmode=verify-full&sslrootcert=${other.cert}`, "with_tls:s3cret"), 2, /certificate/,
            /sslrootcert/);
        const daemon =
            await Daemon.start(t, {store: server.url(`sslmode=verify-full&sslrootcert=${cert}`, "with_tls:s3cret")});
        assert.doesNotMatch(daemon.said + daemon.log + (await daemon.get("/v1/_/status")).text, /s3cret/);
        await daemon.stop();
        const plain = await Postgres.start(t);
        await refused(plain.url("sslmode=require", "postgres:s3cret"), 2, /SSL/, /sslmode/);
      });
      await t.test("a server of another version", async () => {
        const old = await oldPostgres(t, "11.22 (Debian 11.22-1)");
        await refused(`postgres://ann:s3cret@127.0.0.1:${old}/x`, 1, /version 11/, /PostgreSQL 12 or newer/);
        const oldest = await oldPostgres(t, "12.0");
        const said = await refused(`postgres://ann:s3cret@127.0.0.1:${oldest}/x`, 5);
        assert.doesNotMatch(said, /or newer/, "it is the oldest that is good enough");
      });
      await t.test("a standby", async () => {
        const standby = await Postgres.standby(t, server);
        await refused(standby.url("", "postgres:s3cret"), 5, /standby/, /primary/);
      });
      await t.test("a schema of a newer perdure", async () => {
        await server.sql("UPDATE perdure.meta SET format = 7");
        await refused(server.url("", "postgres:s3cret"), 1, /format 7/, /newer perdure/);
        const verified = await perdure(["verify", "--store", server.url("", "postgres:s3cret")]);
        assert.deepEqual([verified.code, /newer perdure/.test(verified.err)], [1, true], verified.err);
        await server.sql("UPDATE perdure.meta SET format = 2");
      });
      await t.test("tables of somebody else", async () => {
        await server.sql("CREATE SCHEMA theirs; CREATE TABLE theirs.meta (colour text)");
        await refused(server.url("perdure_schema=theirs", "postgres:s3cret"), 1, /theirs/, /perdure_schema/);
      });
    });

test("etcd: a store that cannot be opened is refused with what to do", {skip: noEtcd, timeout: 60_000}, async (t) => {
  const cluster = await Etcd.start(t);
  await t.test("urls that are none", async () => {
    await refused("etcd://127.0.0.1:port/x", 2, /port/);
    await refused("etcd://", 2, /host/);
    await refused("etcd://ann:s3cret@127.0.0.1:1/x?colour=red", 2, /colour/);
    await refused("etcd://ann:s3cret@127.0.0.1:1,/x", 2, /host/);
    await refused("etcd://ann:s3cret/x@127.0.0.1:1/x", 2, /password/, /%2f/);
    await refused("etcd://ann@127.0.0.1:1/x", 2, /password/);
    await refused("etcd://ann:s3%zz@127.0.0.1:1/x", 2, /%/);
    await refused(cluster.url("/a//b"), 2, /prefix/);
    await refused(cluster.url("/a/row"), 2, /prefix/);
    await refused(cluster.url("/a?ca=/nowhere/ca.crt"), 2, /tls=on/);
    await refused(cluster.url("/a?tls=on&ca=/nowhere/ca.crt"), 2, /nowhere/);
  });
  await t.test("a server that is not there, or is no etcd", async () => {
    const port = await freePort();
    await refused(`etcd://ann:s3cret@127.0.0.1:${port}/x`, 5, new RegExp(`${port}`));
    const other = await Daemon.start(t);
    await refused(`etcd://ann:s3cret@127.0.0.1:${other.port}/x`, 5, new RegExp(`${other.port}`));
  });
  await t.test("a server of another version", async () => {
    const old = await oldEtcd(t, "3.3.25");
    await refused(`etcd://ann:s3cret@127.0.0.1:${old}/x`, 2, /version 3\.3\.25/, /3\.4 or newer/);
    const oldest = await oldEtcd(t, "3.4.0");
    const said = await refused(`etcd://ann:s3cret@127.0.0.1:${oldest}/x`, 2, /unknown method/);
    assert.doesNotMatch(said, /or newer/, "it is the oldest that is good enough");
  });
  await t.test("a mismatch of TLS", async () => {
    const {cert, key} = certificate(directory(t));
    await refused(cluster.url(`/a?tls=on&ca=${cert}`, "ann:s3cret@"), 5, /TLS|tls|SSL|andshake/);
    const secured = await Etcd.start(t, {tls: true, args: [`--cert-file=${cert}`, `--key-file=${key}`]});
    await refused(secured.url("/a", "ann:s3cret@"), 5, /tls=on|TLS/);
    const other = certificate(`${directory(t)}/other`);
    await refused(secured.url(`/a?tls=on&ca=${other.cert}`, "ann:s3cret@"), 5, /ca\b|certificate|andshake/);
    const daemon = await Daemon.start(t, {store: secured.url(`/a?tls=on&ca=${cert}`)});
    await daemon.stop();
  });
  await t.test("a prefix of a newer perdure, and one of somebody else", async () => {
    await cluster.ctl(["put", "newer/format", "perdure 7"]);
    await refused(cluster.url("/newer", "ann:s3cret@"), 1, /newer perdure|format 7/);
    await cluster.ctl(["put", "theirs/format", "something"]);
    await refused(cluster.url("/theirs", "ann:s3cret@"), 1, /theirs/, /prefix/);
  });
  await t.test("no rights", async () => {
    for (const words
             of [["user", "add", "root:root"], ["role", "add", "writer"],
                 ["role", "grant-permission", "writer", "--prefix=true", "readwrite", "mine/"],
                 ["user", "add", "ann:s3cret"], ["user", "grant-role", "ann", "writer"], ["auth", "enable"]])
      await cluster.ctl(words);
    await refused(cluster.url("/mine"), 1, /user/, /user:password@/);
    await refused(cluster.url("/mine", "ann:wrong-s3cret@"), 1, /password/);
    await refused(cluster.url("/mine", "nobody:s3cret@"), 1, /user/);
    await refused(cluster.url("/other", "ann:s3cret@"), 1, /permission denied/, /prefix/);
    const daemon = await Daemon.start(t, {store: cluster.url("/mine", "ann:s3cret@")});
    assert.doesNotMatch(daemon.said + daemon.log + (await daemon.get("/v1/_/status")).text, /s3cret/);
    await daemon.stop();
  });
});

test("an engine that a stranger may have put there is not loaded", {skip: !isRoot && "it needs root"}, async (t) => {
  const at = directory(t), program = `${at}/mine/perdure`, store = "postgres://127.0.0.1:1/x";
  fs.mkdirSync(`${at}/mine`);
  fs.copyFileSync(process.env.PERDURE_BINARY, program);
  fs.mkdirSync(`${at}/engines`);
  // What is loaded is seen by this not being a library.
  fs.writeFileSync(`${at}/engines/perdure_postgres.so`, "planted");
  assert.match((await perdure(["verify", "--store", store], {program})).err, /cannot load .*engines/, "one's own is");
  fs.chownSync(`${at}/engines`, 65534, 65534);
  // Where perdure is installed as well, that engine is found behind it.
  const {err} = await perdure(["verify", "--store", store], {program});
  assert.match(err, /^perdure: [^\n]*( left alone[^\n]* PERDURE_ENGINES| cannot be reached[^\n]*)\n$/);
});

/// A store that is away answers so, and soon.
async function unavailable(daemon, method, path, body) {
  const began = performance.now();
  const answer = await daemon.request(method, path, {body});
  const ms = performance.now() - began;
  const shown = `${method} ${path}: ${answer.status} ${answer.text} after ${ms.toFixed(0)} ms`;
  assert.equal(answer.status, 503, shown);
  const {error: {code}, outcome} = answer.json;
  assert.ok(
      code === "unavailable" && outcome === "none" ||
          method !== "GET" && code === "commit_unknown" && outcome === "unknown",
      shown);
  assert.ok(ms < 8_000, shown);
  return {code, ms};
}

for (const {name, skip, start} of engines)
  for (const [how, lose, bringBack] of [["dies", "lose", "bringBack"], ["is silent", "freeze", "thaw"]])
    test(
        `${name}: a server that ${how} later is told, and all is well when it is back`, {skip, timeout: 60_000},
        async (t) => {
          const server = await start(t);
          const daemon = await Daemon.start(t, {store: server.url});
          await daemon.expect(201, "PUT", "/v1/a/keys/k", 1);
          await daemon.expect(201, "POST", "/v1/a/events", {worker: "w", value: 0});
          await server[lose]();
          const seen = await Promise.all([
            unavailable(daemon, "GET", "/v1/a/keys/k"),
            unavailable(daemon, "GET", "/v1/a/keys/unknown"),
            unavailable(daemon, "GET", "/v1/a/events?worker=w"),
            unavailable(daemon, "POST", "/v1/a/events", {worker: "w", value: 1}),
            unavailable(daemon, "PUT", "/v1/a/keys/k", 2),
            unavailable(daemon, "POST", "/v1/a/workers/w/claim", {}),
          ]);
          // What is under way when it falls silent, nobody knows; what comes later is not even sent.
          const later = await unavailable(daemon, "PUT", "/v1/a/keys/k", 3);
          assert.equal(later.code, "unavailable");
          assert.equal((await daemon.get("/healthz")).status, 200, "the daemon itself is well");
          assert.equal((await daemon.get("/readyz")).status, 503, "but not of use");
          const longest = Math.max(...seen.map((each) => each.ms)).toFixed(0);
          await server[bringBack]();
          const back = performance.now();
          await until("writes go on", async () => (await daemon.put("/v1/a/keys/back", 1)).status < 300, 10_000);
          t.diagnostic(
              `${name} ${how}: answers came within ${longest} ms; ` +
              `writes went on ${(performance.now() - back).toFixed(0)} ms after it was back`);
          assert.ok((await daemon.expect(200, "GET", "/v1/a/keys/k")) <= 3);
          await until("events are handed out", async () => {
            const {items} = await daemon.expect(200, "POST", "/v1/a/workers/w/claim", {max: 1, wait: "5s"});
            return items.length === 1;
          });
          await daemon.expect(200, "GET", "/readyz");
          assert.ok(daemon.isRunning());
          assert.equal((await perdure(["verify", "--store", server.url])).code, 0);
        });
