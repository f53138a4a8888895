// Workers with a URL
import assert from "node:assert/strict";
import {createHmac} from "node:crypto";
import {test} from "node:test";

import {Daemon, newSpace, until} from "./daemon.mjs";
import {serve} from "./push_server.mjs";

const daemon = await Daemon.shared();

const emit = async (space, more = {}) =>
    (await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w", value: {n: 1}, ...more})).id;
const ended = (space, id) => daemon.expect(200, "GET", `/v1/${space}/history/${id}?wait=20s`);

test("an event is pushed, signed, and completed by 2xx with the answer as its result", async (t) => {
  const space = newSpace();
  const server = await serve(t, () => ({json: {done: true}}));
  const key = Buffer.from("a secret of 32 bytes, or nearly s");
  const shown = await daemon.expect(
      201, "PUT", `/v1/${space}/workers/w`,
      {url: server.url, secret: `whsec_${key.toString("base64")}`, concurrency: 2, timeout: "5s"});
  assert.deepEqual([shown.url, shown.signed, shown.concurrency, shown.timeout], [server.url, true, 2, "5s"]);
  assert.ok(!JSON.stringify(shown).includes("whsec"));
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const {id} =
      await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w", value: {n: 1}}, {headers: {traceparent}});
  const end = await ended(space, id);
  assert.deepEqual([end.state, end.result, end.attempts], ["completed", {done: true}, 1]);
  const [{json, text, headers}] = server.seen;
  assert.deepEqual(Object.keys(json).sort(), ["attempt", "enqueued_at", "id", "value", "worker"]);
  assert.deepEqual([json.id, json.worker, json.value, json.attempt], [id, "w", {n: 1}, 1]);
  assert.equal(headers["webhook-id"], id);
  assert.equal(headers.traceparent, traceparent);
  assert.ok(Math.abs(Number(headers["webhook-timestamp"]) - Date.now() / 1000) < 60);
  const mac = createHmac("sha256", key).update(`${id}.${headers["webhook-timestamp"]}.${text}`).digest("base64");
  assert.equal(headers["webhook-signature"], `v1,${mac}`);
});

test("webhook-id is the same over retries", async (t) => {
  const space = newSpace();
  const server = await serve(t, (_, n) => ({status: n < 3 ? 500 : 204, text: ""}));
  await daemon.expect(201, "PUT", `/v1/${space}/workers/w`, {url: server.url, retry: {delay: "1ms", max: 5}});
  const id = await emit(space);
  assert.equal((await ended(space, id)).attempts, 3);
  assert.deepEqual(
      server.seen.map((each) => [each.headers["webhook-id"], each.json.attempt]), [[id, 1], [id, 2], [id, 3]]);
});

test("429 and 503 honour Retry-After", async (t) => {
  for (const status of [429, 503]) {
    const space = newSpace();
    const server = await serve(t, () => ({status, headers: {"Retry-After": "3600"}}));
    await daemon.expect(201, "PUT", `/v1/${space}/workers/w`, {url: server.url, retry: {delay: "1ms"}});
    const id = await emit(space);
    const event = await until("it waits", async () => {
      const seen = await daemon.expect(200, "GET", `/v1/${space}/events/${id}`);
      return seen.state === "scheduled" && seen;
    });
    assert.ok(Date.parse(event.delay_until) > Date.now() + 3_000_000);
    assert.match(event.last_error, new RegExp(String(status)));
  }
});

test("410 makes it a dead letter at once, redirects are not followed", async (t) => {
  for (const [status, headers] of [[410, {}], [302, {Location: "http://127.0.0.1:1/"}]]) {
    const space = newSpace();
    const server = await serve(t, () => ({status, headers}));
    await daemon.expect(
        201, "PUT", `/v1/${space}/workers/w`, {url: server.url, retry: {delay: "1ms", max: status === 410 ? 9 : 0}});
    const id = await emit(space);
    const dead = await until("it is dead", async () => {
      const seen = await daemon.expect(200, "GET", `/v1/${space}/events/${id}`);
      return seen.state === "dead" && seen;
    });
    assert.equal(dead.attempts, 1);
    assert.equal(server.seen.length, 1);
  }
});

test("a target that is not there fails the attempt, and nothing else", async () => {
  const space = newSpace();
  await daemon.expect(201, "PUT", `/v1/${space}/workers/w`, {url: "http://127.0.0.1:1/", retry: {max: 0}});
  const id = await emit(space);
  await until(
      "it is dead", async () => (await daemon.expect(200, "GET", `/v1/${space}/events/${id}`)).state === "dead");
  const other = await emit(newSpace());
  assert.ok(other);
});

test("a worker without its url is not pushed any more", async (t) => {
  const space = newSpace();
  const server = await serve(t, () => ({}));
  await daemon.expect(201, "PUT", `/v1/${space}/workers/w`, {url: server.url});
  await ended(space, await emit(space));
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/workers/w`)).served_by, 1);
  await daemon.expect(204, "DELETE", `/v1/${space}/workers/w`);
  await until(
      "nobody serves it", async () => (await daemon.expect(200, "GET", `/v1/${space}/workers/w`)).served_by === 0);
  await emit(space);
  assert.equal((await daemon.expect(200, "POST", `/v1/${space}/workers/w/claim`, {wait: "5s"})).items.length, 1);
  assert.equal(server.seen.length, 1);
});

test("a hundred events are pushed once each, no more at once than allowed", async (t) => {
  const space = newSpace();
  let now = 0, most = 0;
  const server = await serve(t, async () => {
    most = Math.max(most, ++now);
    await new Promise((resolve) => setImmediate(resolve));
    --now;
    return {};
  });
  await daemon.expect(201, "PUT", `/v1/${space}/workers/w`, {url: server.url, concurrency: 4});
  await daemon.expect(
      201, "POST", `/v1/${space}/events`, Array.from({length: 100}, (_, value) => ({worker: "w", value})));
  await until(
      "all are done", async () => (await daemon.expect(200, "GET", `/v1/${space}/workers/w`)).completed === 100);
  assert.deepEqual(
      server.seen.map((each) => each.json.value).sort((a, b) => a - b), Array.from({length: 100}, (_, i) => i));
  assert.ok(most <= 4, `${most} at once`);
});
