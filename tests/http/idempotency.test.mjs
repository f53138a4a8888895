// Idempotency-Key
import assert from "node:assert/strict";
import {test} from "node:test";

import {Daemon, newSpace, scratch, until} from "./daemon.mjs";
import {serve} from "./push_server.mjs";

const daemon = await Daemon.shared();

const keyed = (key) => ({headers: {"Idempotency-Key": key}});
/// The same POST twice: the second must be a replay of the first.
async function twice(at, path, body, key = "key 1") {
  const first = await at.post(path, body, keyed(key));
  const second = await at.post(path, body, keyed(key));
  assert.ok(first.status < 300, `${path}: ${first.status} ${first.text}`);
  assert.equal(first.headers["idempotency-replayed"], undefined);
  assert.deepEqual(
      [second.status, second.json, second.headers["idempotency-replayed"]], [first.status, first.json, "true"], path);
  return first.json;
}

test("a repeat gets the first answer, and has no effect", async () => {
  const space = newSpace();
  const {id} = await twice(daemon, `/v1/${space}/events`, {worker: "w", value: 1});
  const {items} = await daemon.expect(200, "GET", `/v1/${space}/events?worker=w`);
  assert.deepEqual(items.map((each) => each.id), [id]);
});

test("another body with the same key is 422; another space, path or key is another request", async () => {
  const space = newSpace();
  await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w", value: 1}, keyed("k"));
  await daemon.refuse(422, "key_reused", "POST", `/v1/${space}/events`, {worker: "w", value: 2}, keyed("k"));
  for (const [path, key] of [[`/v1/${newSpace()}/events`, "k"], [`/v1/${space}/events`, "l"]]) {
    const answer = await daemon.post(path, {worker: "w", value: 2}, keyed(key));
    assert.deepEqual([answer.status, answer.headers["idempotency-replayed"]], [201, undefined]);
  }
  await daemon.expect(200, "POST", `/v1/${space}/transact`, {set: [{key: "x", value: 1}]}, keyed("k"));
});

test("errors are not kept", async () => {
  const space = newSpace();
  const body = {type: "shop", workspace: 1, next: ["invoice"]};
  await daemon.refuse(404, "not_found", "POST", `/v1/${space}/partitions/p/append`, body, keyed("k"));
  await daemon.expect(201, "PUT", `/v1/${space}/partitions/p`, {types: {shop: {invoice: 1}}});
  const answer = await daemon.post(`/v1/${space}/partitions/p/append`, body, keyed("k"));
  assert.deepEqual([answer.status, answer.headers["idempotency-replayed"]], [201, undefined]);
});

test("a key is 1 to 200 printable characters", async () => {
  const space = newSpace();
  for (const key of ["", "x".repeat(201), "a\tb", "ü"])
    await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/events`, {worker: "w"}, keyed(key));
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/workers`)).items, []);
  await twice(daemon, `/v1/${space}/events`, {worker: "w"}, "x".repeat(200));
});

test("every POST of a space takes a key", async (t) => {
  const space = newSpace();
  const at = (path) => `/v1/${space}/${path}`;
  const server = await serve(
      t,
      ({json}) => (json.op === "init" ? {json: {state: 0}} : {json: {state: json.state + 1, reply: json.state + 1}}));
  await daemon.expect(201, "PUT", at("partitions/p"), {types: {shop: {invoice: 1}}});
  await daemon.expect(201, "PUT", at("debouncers/d"), {quiet: "1h"});
  await daemon.expect(201, "PUT", at("kinds/k"), {url: server.url});
  await daemon.expect(201, "PUT", at("schedules/s"), {cron: "0 0 1 1 *", worker: "v"});
  await daemon.expect(201, "POST", at("events"), Array(8).fill({worker: "w"}));
  const {items: c} = await daemon.expect(200, "POST", at("workers/w/claim"), {max: 6});
  const wrong = [];
  const attempt = async (path, body) => {
    try {
      await twice(daemon, at(path), body);
    } catch (error) {
      wrong.push(`${path}: ${error.message.split("\n")[0]}`);
    }
  };
  await attempt("events", [{worker: "u"}, {worker: "u"}]);
  await attempt(`events/${c[0].id}/complete`, {token: c[0].token});
  await attempt(`events/${c[1].id}/fail`, {token: c[1].token, retry: false});
  await attempt(`events/${c[2].id}/extend`, {token: c[2].token});
  await attempt(`events/${c[3].id}/release`, {token: c[3].token});
  await attempt("workers/w/settle", {complete: [{id: c[4].id, token: c[4].token}]});
  await attempt("workers/w/claim", {max: 1});
  await attempt("workers/w/dead/redrive", {all: true});
  for (const action of ["pause", "unpause", "block", "unblock"]) await attempt(`workers/w/${action}`, {});
  for (const action of ["pause", "unpause", "run"]) await attempt(`schedules/s/${action}`);
  for (const action of ["pause", "unpause"]) await attempt(`debouncers/d/${action}`);
  await attempt("debouncers/d/keys/k", 1);
  await attempt("partitions/p/append", {type: "shop", workspace: 1, next: ["invoice"]});
  await attempt("transact", {emit: [{worker: "u"}]});
  for (const action of ["call", "cast", "priority_call", "priority_cast", "info", "stop"])
    await attempt(`actors/k/a/${action}`, {});
  await attempt("actors/k/a/cast_many", [1]);
  await attempt("actors/k/a/dead/redrive", {});
  assert.deepEqual(wrong, []);
});

test("a claim that is repeated gives the same events and tokens that work", async () => {
  const space = newSpace();
  await daemon.expect(201, "POST", `/v1/${space}/events`, Array(3).fill({worker: "w"}));
  const {items} = await twice(daemon, `/v1/${space}/workers/w/claim`, {max: 2});
  assert.equal(items.length, 2);
  const again = await daemon.expect(200, "POST", `/v1/${space}/workers/w/claim`, {max: 2}, keyed("key 1"));
  for (const {id, token} of again.items)
    await daemon.expect(200, "POST", `/v1/${space}/events/${id}/complete`, {token});
});

test("a claim of large events has a key as others have", async () => {
  const space = newSpace();
  for (let i = 0; i < 4; ++i)
    await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w", value: "x".repeat(1_000_000)});
  const {items} = await twice(daemon, `/v1/${space}/workers/w/claim`, {max: 4});
  assert.ok(items.length >= 1);
});

test("a claim that found nothing is asked anew", async () => {
  const space = newSpace();
  assert.deepEqual((await daemon.expect(200, "POST", `/v1/${space}/workers/w/claim`, {}, keyed("k"))).items, []);
  await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w"});
  assert.equal((await daemon.expect(200, "POST", `/v1/${space}/workers/w/claim`, {}, keyed("k"))).items.length, 1);
});

test("a hundred of the same at once are one", async () => {
  const space = newSpace();
  const answers =
      await Promise.all(Array.from({length: 100}, () => daemon.post(`/v1/${space}/events`, {worker: "w"}, keyed("k"))));
  assert.deepEqual([...new Set(answers.map((each) => each.status))], [201]);
  assert.equal(new Set(answers.map((each) => each.json.id)).size, 1);
  assert.equal(answers.filter((each) => !each.headers["idempotency-replayed"]).length, 1);
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/workers/w`)).counts.total, 1);
});

test("a repeated call waits for the same message", async (t) => {
  const space = newSpace();
  let release;
  const gate = new Promise((resolve) => (release = resolve));
  const server = await serve(t, async ({json}) => {
    if (json.op === "init") return {json: {state: 0}};
    await gate;
    return {json: {state: json.state + 1, reply: json.state + 1}};
  });
  await daemon.expect(201, "PUT", `/v1/${space}/kinds/k`, {url: server.url});
  const call = (timeout) => daemon.post(`/v1/${space}/actors/k/a/call?timeout=${timeout}`, "m", keyed("k"));
  assert.equal((await call("50ms")).status, 504);
  const [second, third] = [call("20s"), call("20s")];
  await until("the message is being handled", () => server.seen.length >= 2);
  release();
  assert.deepEqual([(await second).json, (await third).json], [{reply: 1}, {reply: 1}]);
  const fourth = await call("1s");
  assert.deepEqual([fourth.json, fourth.headers["idempotency-replayed"]], [{reply: 1}, "true"]);
  await daemon.refuse(422, "key_reused", "POST", `/v1/${space}/actors/k/a/call`, "other", keyed("k"));
  assert.equal(await daemon.expect(200, "GET", `/v1/${space}/actors/k/a/state`), 1);
});

test("answers are kept across a restart and kill -9, for 24 hours", async (t) => {
  const own = await Daemon.start(t, {store: `lmdb:${scratch(t)}`, args: ["--test-clock"]});
  const emit = () => own.post("/v1/a/events", {worker: "w"}, keyed("k"));
  const first = await emit();
  await own.kill();
  await own.restart();
  const second = await emit();
  assert.deepEqual([second.json, second.headers["idempotency-replayed"]], [first.json, "true"]);
  assert.equal((await own.stop()).code, 0);
  await own.restart();
  assert.equal((await emit()).headers["idempotency-replayed"], "true");
  await own.expect(200, "POST", "/v1/_/clock", {advance: "25h"});
  const later = await emit();
  assert.deepEqual([later.status, later.headers["idempotency-replayed"]], [201, undefined]);
  assert.notEqual(later.json.id, first.json.id);
});

test("what may have happened is not done again by a repeat, though its caller was told of no answer", async (t) => {
  const space = newSpace();
  let go;
  const held = new Promise((resolve) => (go = resolve));
  const server = await serve(t, async ({json}) => {
    if (json.op === "init") return {json: {state: 0}};
    await held;
    return {json: {state: json.state + 1, reply: json.state + 1}};
  });
  await daemon.expect(201, "PUT", `/v1/${space}/kinds/k`, {url: server.url});
  const path = `/v1/${space}/actors/k/a/priority_call?timeout=100ms`;
  // The daemon may not have heard of the kind yet.
  const first = await until("the kind is served", async () => {
    const answer = await daemon.post(path, {}, keyed("once"));
    return answer.status !== 400 && answer;
  });
  assert.deepEqual([first.status, first.json.outcome], [504, "unknown"]);
  const repeat = await daemon.post(path, {}, keyed("once"));
  assert.deepEqual([repeat.status, repeat.json.outcome], [503, "unknown"]);
  go();
  await until("the first had its effect", async () => (await daemon.get(`/v1/${space}/actors/k/a/state`)).json === 1);
  await daemon.post(path, {}, keyed("once"));
  assert.equal(server.seen.filter(({json}) => json.op === "call").length, 1);
});
