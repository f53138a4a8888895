// Each part of the API by way of the client, against a real daemon.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { Perdure, PerdureError, verifyWebhook, WebhookError } from "perdure";
import { daemon, serve, signal, test } from "./daemon.mjs";

const refused = (status, code) => (error) => {
  assert.ok(error instanceof PerdureError, String(error));
  assert.deepEqual([error.status, error.code], [status, code], error.message);
  assert.ok(error.message.length > 0);
  return true;
};

test("an event is emitted, looked at, claimed, completed and found in the history", async (t) => {
  const client = (await daemon(t)).client();
  const id = randomUUID();
  assert.deepEqual(await client.emit("mail", { to: "ann" }, { id, priority: 2 }), { id });
  const event = await client.event(id);
  assert.equal(event.state, "ready");
  assert.deepEqual(event.value, { to: "ann" });
  assert.deepEqual((await client.events("mail", { state: "ready" })).items.map((each) => each.id), [id]);
  assert.equal(typeof (await client.why(id)).why, "string");
  const [claimed] = await client.claim("mail", { max: 5, lock: "10s" });
  assert.equal(claimed.id, id);
  assert.equal(claimed.attempt, 1);
  assert.ok((await client.extend(claimed, "60s")) > claimed.locked_until);
  const ended = client.history(id, { wait: "20s" });
  await client.complete(claimed, { sent: true });
  assert.deepEqual((await ended).result, { sent: true });
  assert.equal((await client.history(id)).state, "completed");
  await assert.rejects(client.event(id), refused(404, "not_found"));
});

test("many are emitted at once, with duplicates, delays and the end that is asked for", async (t) => {
  const client = (await daemon(t)).client();
  const unique = { key: "k", for: "1h" };
  const made = await client.emitMany([
    { worker: "a", value: 1, unique },
    { worker: "a", value: 2, unique },
    { worker: "a", value: 3, delay: "1h" },
    { worker: "b", retry: { max: 0, then: "dead" } },
  ]);
  assert.equal(made[1].id, made[0].id);
  assert.equal(made[1].duplicate, true);
  assert.equal((await client.event(made[2].id)).state, "scheduled");
  await client.cancel(made[2].id);
  assert.equal((await client.history(made[2].id)).state, "cancelled");
  const [first] = await client.claim("b");
  await client.release(first);
  const [second] = await client.claim("b");
  assert.equal(second.attempt, first.attempt);
  await assert.rejects(client.complete(first), refused(409, "stale_token"));
  await client.fail(second, "no luck");
  const dead = await client.workers.dead("b");
  assert.equal(dead.items[0].last_error, "no luck");
  assert.equal(await client.workers.redrive("b", { all: true }), 1);
  const [third] = await client.claim("b");
  const settled = await client.settle("b", { complete: [{ id: third.id, token: third.token, result: 1 }] });
  assert.deepEqual(settled, [{ id: third.id, ok: true }]);
  assert.equal((await client.workers.attempts("b")).items.length > 0, true);
  assert.equal(await client.workers.cancelAll("a"), 1);
});

test("a worker is set, paused, blocked and read back", async (t) => {
  const client = (await daemon(t)).client();
  const set = await client.workers.set("mail", { rate: "10/s", retry: { delay: "1s", max: 7 } });
  assert.equal(set.rate, "10/s");
  assert.equal(set.retry.max, 7);
  assert.equal((await client.workers.pause("mail", { reason: "lunch" })).state, "pause");
  const { id } = await client.emit("mail", null);
  assert.equal((await client.event(id)).state, "paused");
  assert.equal((await client.workers.block("mail")).state, "block");
  await client.workers.unblock("mail");
  assert.equal((await client.workers.unpause("mail")).state, "run");
  // What was read can be put back.
  assert.equal((await client.workers.set("mail", await client.workers.get("mail"))).rate, "10/s");
  assert.deepEqual((await client.workers.list()).items.map((each) => each.worker), ["mail"]);
  await client.workers.rm("mail");
  assert.equal((await client.workers.get("mail")).rate, null);
});

test("debouncers make one run of many touches", async (t) => {
  const client = (await daemon(t, { args: ["--test-clock"] })).client();
  await client.debouncers.set("rebuild", { quiet: "2s", max_wait: "10s", payload: "all", worker: "build" });
  for (const n of [1, 2, 3]) assert.equal((await client.debouncers.touch("rebuild", "site/ü", n)).count, n);
  assert.equal((await client.debouncers.key("rebuild", "site/ü")).status, "waiting");
  await client.system.advanceClock("3s");
  const [run] = await client.claim("build");
  assert.equal(run.value.key, "site/ü");
  assert.deepEqual(run.value.payloads, [1, 2, 3]);
  assert.equal((await client.debouncers.key("rebuild", "site/ü")).status, "running");
  await client.complete(run);
  assert.equal((await client.debouncers.key("rebuild", "site/ü")).status, "idle");
  assert.equal((await client.debouncers.pause("rebuild", { reason: "later" })).paused.reason, "later");
  await client.debouncers.touch("rebuild", "x");
  assert.deepEqual((await client.debouncers.keys("rebuild")).items.map((each) => each.key).includes("x"), true);
  await client.debouncers.cancel("rebuild", "x");
  assert.equal((await client.debouncers.unpause("rebuild")).paused, null);
  assert.equal((await client.debouncers.list()).items.length, 1);
});

test("numbers of sequences come without gaps", async (t) => {
  const client = (await daemon(t)).client();
  await client.partitions.set("p1", { types: { shop: { invoice: 1, order: 1000 } } });
  const drawn = ["invoice", "invoice", "order"];
  const one = await client.partitions.append("p1", { type: "shop", workspace: 7, next: drawn });
  assert.deepEqual(one.numbers, [1, 2, 1000]);
  const many = await client.partitions.appendMany("p1", [
    { type: "shop", workspace: 7, next: ["invoice"], payload: { a: 1 } },
    { type: "shop", workspace: 8, next: ["invoice"] },
  ]);
  assert.deepEqual(many.map((each) => each.numbers), [[3], [1]]);
  assert.deepEqual(await client.partitions.numbers("p1", 7), { invoice: 3, order: 1000 });
  const log = await client.partitions.log("p1", { after: one.offset, limit: 1 });
  assert.deepEqual(log.items[0].payload, { a: 1 });
  assert.deepEqual(log.items[0].numbers, [["invoice", 3]]);
  await assert.rejects(client.partitions.append("p1", { type: "no", workspace: 1 }), refused(400, "invalid_argument"));
});

test("keys have versions, and a transaction is all or nothing", async (t) => {
  const client = (await daemon(t)).client();
  assert.equal(await client.keys.get("a b/c"), undefined);
  const first = await client.keys.set("a b/c", { n: 1 }, { version: null });
  assert.deepEqual(await client.keys.get("a b/c"), { key: "a b/c", value: { n: 1 }, version: first });
  await assert.rejects(client.keys.set("a b/c", 0, { version: null }), refused(412, "wrong_state"));
  const second = await client.keys.set("a b/c", { n: 2 }, { version: first });
  await assert.rejects(client.keys.set("a b/c", { n: 3 }, { version: first }), refused(412, "wrong_state"));
  assert.deepEqual((await client.keys.list({ prefix: "a" })).items[0].version, second);

  const stale = { check: [{ key: "a b/c", version: first }], emit: [{ worker: "w", value: 1 }] };
  await assert.rejects(client.transact(stale), refused(409, "wrong_state"));
  assert.equal((await client.workers.get("w")).counts.total, 0);
  const done = await client.transact({
    check: [{ key: "a b/c", version: second }, { key: "new" }],
    set: [{ key: "new", value: [1] }],
    clear: ["a b/c"],
    emit: [{ worker: "w", value: 1 }],
  });
  assert.equal(done.emit.length, 1);
  assert.equal((await client.keys.get("new")).version, done.version);
  assert.equal(await client.keys.get("a b/c"), undefined);
  await client.keys.rm("new", { version: done.version });
  assert.equal(await client.keys.get("new"), undefined);
});

test("schedules emit by the clock, and at once when asked", async (t) => {
  const client = (await daemon(t, { args: ["--test-clock"] })).client();
  const set = await client.schedules.set("report", { cron: "*/5 * * * *", worker: "report", value: { kind: "short" } });
  assert.ok(set.next);
  await client.system.advanceClock("11m");
  assert.ok((await client.workers.get("report")).counts.total >= 2);
  assert.match(await client.schedules.run("report"), /^[0-9a-f-]{36}$/);
  assert.equal((await client.schedules.pause("report", { reason: "holiday" })).paused.reason, "holiday");
  assert.equal((await client.schedules.unpause("report")).paused, null);
  assert.equal((await client.schedules.list()).items[0].name, "report");
  await client.schedules.rm("report");
  await assert.rejects(client.schedules.get("report"), refused(404, "not_found"));
});

test("a daemon says how it is, holds and releases", async (t) => {
  const at = await daemon(t);
  const client = at.client();
  await client.system.hold();
  assert.equal((await client.system.status()).held, true);
  await client.system.release();
  assert.equal((await client.system.status()).held, false);
  assert.equal((await client.system.nodes()).items.length > 0, true);
  await client.emit("w", 1);
  assert.deepEqual((await client.system.spaces()).items, [{ space: "test" }]);
  await assert.rejects(client.system.advanceClock("5m"), PerdureError);
});

test("what is pushed carries a signature that fits, and none that was changed", async (t) => {
  const client = (await daemon(t)).client();
  const secret = "whsec_" + Buffer.from("a secret of some length").toString("base64");
  const came = signal();
  const url = await serve(t, async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    came.resolve({ headers: request.headers, body });
    response.end('{"done": true}');
  });
  await client.workers.set("hook", { url, secret });
  const { id } = await client.emit("hook", { ü: 1 });
  const { headers, body } = await came.promise;
  const event = verifyWebhook({ secret, headers, body });
  assert.equal(event.id, id);
  assert.deepEqual(event.value, { ü: 1 });
  assert.equal(headers["webhook-id"], id);
  assert.deepEqual((await client.history(id, { wait: "20s" })).result, { done: true });
  const late = new Date(Date.now() + 600_000);
  assert.throws(() => verifyWebhook({ secret, headers, body: body + " " }), WebhookError);
  assert.throws(() => verifyWebhook({ secret: "other", headers, body }), WebhookError);
  assert.throws(() => verifyWebhook({ secret, headers, body, now: late }), WebhookError);
  assert.throws(() => verifyWebhook({ secret, headers: {}, body }), WebhookError);
});

test("the unix socket serves the same", async (t) => {
  const at = await daemon(t, { store: "lmdb:" });
  const [, path] = /unix:\/\/(\S+)/.exec(at.said()) ?? [];
  const client = new Perdure({ url: `unix://${path ?? join(at.directory, "store", "perdure.sock")}`, space: "test" });
  const { id } = await client.emit("w", { a: 1 });
  assert.deepEqual((await at.client().event(id)).value, { a: 1 });
  const stream = client.stream({ after: "0".repeat(32) });
  assert.equal((await stream.next()).value.type, "gap");
  assert.equal((await stream.next()).value.id, id);
  await stream.return();
  await client.cancel(id);
});

test("a request without an answer is repeated with its key, and happens once", async (t) => {
  const at = await daemon(t);
  let sent = 0;
  const keys = new Set();
  const client = at.client({
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (init.method === "POST") keys.add(init.headers["idempotency-key"]);
      if (++sent < 3) throw new TypeError("the connection was lost");
      return response;
    },
  });
  const emitted = await client.emit("w", 1);
  assert.equal(sent, 3);
  assert.equal(keys.size, 1);
  assert.deepEqual((await at.client().events("w")).items.map((each) => each.id), [emitted.id]);
  sent = 1;
  await client.cancel(emitted.id);
  assert.equal(sent, 3);
});

test("what might happen twice is not repeated, and errors say what is known", async (t) => {
  const at = await daemon(t);
  let sent = 0;
  const failing = at.client({ fetch: () => (sent++, Promise.reject(new TypeError("lost"))) });
  await assert.rejects(failing.keys.set("k", 1, { version: null }), (error) => {
    assert.deepEqual([error.status, error.code, error.outcome], [0, "unavailable", "unknown"]);
    return true;
  });
  assert.equal(sent, 1);
  await assert.rejects(at.client().emit("bad name!", 1), refused(400, "invalid_argument"));
  await assert.rejects(at.client().event("no-uuid"), refused(400, "invalid_argument"));
  assert.throws(() => new Perdure({ space: ".." }), PerdureError);
  const answers = [503, 429, 201];
  const busy = at.client({
    fetch: async () => {
      const status = answers.shift();
      const problem = { error: { code: "unavailable", message: "later" }, outcome: "none" };
      return new Response(JSON.stringify(status === 201 ? { id: "x" } : problem), { status });
    },
  });
  assert.deepEqual(await busy.emit("w", 1), { id: "x" });
});

test("a daemon that never answers is given up in time, and a signal ends a request at once", async (t) => {
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => silent.close());
  const url = `http://127.0.0.1:${silent.address().port}`;
  const client = new Perdure({ url, timeout: "50ms", retries: 1 });
  await assert.rejects(client.system.status(), refused(0, "unavailable"));
  const stop = new AbortController();
  const waiting = new Perdure({ url }).claim("w", { wait: "1m" }, { signal: stop.signal });
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
});
