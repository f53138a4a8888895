// /v1/{space}/kinds and /v1/{space}/actors, with a remote behaviour of ours
import assert from "node:assert/strict";
import {test} from "node:test";

import {Daemon, newSpace, until, within} from "./daemon.mjs";
import {serve} from "./push_server.mjs";

const daemon = await Daemon.shared();

/// A counter that can be told to do anything else that a behaviour can.
function behave({json}) {
  const {op, message, state} = json;
  if (op === "init") return {json: {state: 0}};
  if (message?.fail) return {status: 500, text: "told to fail"};
  if (message?.answer) return {json: message.answer};
  if (op === "locked") return {json: {state: state + 100, reply: "was locked"}};
  if (message?.lock) return {json: {lock: true}};
  return {json: {state: state + (message?.add ?? 0), reply: state + (message?.add ?? 0)}};
}

async function counters(t, more = {}, answer = behave) {
  const space = newSpace();
  const server = await serve(t, answer);
  await daemon.expect(
      201, "PUT", `/v1/${space}/kinds/counter`, {url: server.url, retry: {max: 1, delay: "1ms"}, ...more});
  return {space, server, at: (id, path = "") => `/v1/${space}/actors/counter/${encodeURIComponent(id)}${path}`};
}

test("a kind is put, read back, put back, listed and removed", async () => {
  const space = newSpace();
  const spec = {
    url: "http://127.0.0.1:9/x",
    timeout: "7s",
    retry: {max: 3, delay: "50ms", max_delay: "2s"},
    mailbox_max: 12,
    schema: 2
  };
  const made = await daemon.expect(201, "PUT", `/v1/${space}/kinds/k`, spec);
  for (const [name, value] of Object.entries(spec)) assert.deepEqual(made[name], value);
  assert.deepEqual(await daemon.expect(200, "PUT", `/v1/${space}/kinds/k`, made), made);
  assert.deepEqual(await daemon.expect(200, "GET", `/v1/${space}/kinds/k`), made);
  await daemon.expect(201, "PUT", `/v1/${space}/kinds/l`, {url: spec.url});
  const first = await daemon.expect(200, "GET", `/v1/${space}/kinds?limit=1`);
  const second = await daemon.expect(200, "GET", `/v1/${space}/kinds?limit=1&after=${first.next}`);
  assert.deepEqual([first.items[0].kind, second.items[0].kind], ["k", "l"]);
  await daemon.expect(204, "DELETE", `/v1/${space}/kinds/k`);
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/kinds/k`);
});

test("impossible kinds are refused and nothing is stored", async () => {
  const space = newSpace();
  const url = "http://127.0.0.1:9/";
  const bad = [
    {}, null, [], {url: 1}, {url: "nonsense"}, {url: "https://"}, {url, timeout: "x"}, {url, timeout: "0s"},
    {url, retry: {max: -1}}, {url, retry: {factor2: 1}}, {url, mailbox_max: 0}, {url, schema: 0}, {url, colour: 1}
  ];
  for (const body of bad) await daemon.refuse(400, "invalid_argument", "PUT", `/v1/${space}/kinds/k`, body);
  await daemon.refuse(403, "permission_denied", "PUT", `/v1/${space}/kinds/k`, {url: "http://10.1.2.3/"});
  for (const method of ["GET", "PUT", "DELETE"])
    await daemon.refuse(
        400, "invalid_argument", method, `/v1/${space}/kinds/no%20name`, method === "PUT" ? {url} : undefined);
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/kinds`)).items, []);
});

test("call, cast, cast_many and info reach the behaviour in order", async (t) => {
  const {server, space, at} = await counters(t);
  assert.deepEqual(await daemon.expect(200, "POST", at("a", "/call"), {add: 2}), {reply: 2});
  assert.deepEqual(await daemon.expect(202, "POST", at("a", "/cast"), {add: 3}), {});
  await daemon.expect(202, "POST", at("a", "/cast_many"), [{add: 10}, {add: 20}]);
  assert.deepEqual(await daemon.expect(200, "POST", at("a", "/call"), {}), {reply: 35});
  assert.deepEqual(await daemon.expect(200, "POST", at("a", "/priority_call"), {add: 1}), {reply: 36});
  await daemon.expect(202, "POST", at("a", "/priority_cast"), {add: 1});
  await daemon.expect(202, "POST", at("a", "/info"), {add: 1});
  await until("all was handled", async () => (await daemon.expect(200, "GET", at("a", "/state"))) === 38);
  const seen = await daemon.expect(200, "GET", at("a"));
  assert.deepEqual([seen.state, seen.mailbox.length, seen.locked, seen.dead], [38, 0, null, 0]);
  assert.deepEqual(
      server.seen.map((each) => each.json.op),
      ["init", "call", "cast", "cast", "cast", "call", "call", "cast", "info"]);
  const {json} = server.seen[1];
  assert.deepEqual(json.actor, {space, kind: "counter", id: "a"});
  assert.deepEqual(
      [json.message, json.state, json.schema, json.attempt, typeof json.from], [{add: 2}, 0, 1, 1, "string"]);
});

test("what is not there, and what is no message", async (t) => {
  const {at, space} = await counters(t);
  for (const path of ["", "/state"]) await daemon.refuse(404, "not_found", "GET", at("nobody", path));
  for (const body of [{}, "text", null, undefined, 5])
    await daemon.refuse(400, "invalid_argument", "POST", at("a", "/cast_many"), body);
  await daemon.refuse(413, "too_large", "POST", at("a", "/cast_many"), Array(1001).fill(1));
  await daemon.refuse(400, "invalid_argument", "POST", at("a", "/call?timeout=soon"), {});
  await daemon.refuse(400, "invalid_argument", "POST", at("a", "/cast?delay=soon"), {});
  for (const path
           of [`/v1/${space}/actors/no%20kind/a`, at("x".repeat(201)), at("a\u0007b"), at("..").replace("..", "%2E%2E"),
               `/v1/${space}/actors/counter/.`])
    for (const [method, action] of [["GET", ""], ["POST", "/call"], ["POST", "/cast"], ["DELETE", ""]])
      await daemon.refuse(400, "invalid_argument", method, path + action, method === "POST" ? {} : undefined);
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/actors/counter`)).items, []);
});

test("a handler that fails for good is 502, and its message a dead letter that can be redriven", async (t) => {
  let broken = true;
  const {at} =
      await counters(t, {}, (one) => (broken && one.json.message ? {status: 500, text: "broken"} : behave(one)));
  await daemon.refuse(502, "handler_failed", "POST", at("a", "/call"), {add: 1});
  await daemon.expect(202, "POST", at("a", "/cast"), {add: 5});
  const {items, cast} = await until("the cast is dead too", async () => {
    const {items: all} = await daemon.expect(200, "GET", at("a", "/dead"));
    const found = all.find((each) => each.type === "cast");
    return found && {items: all, cast: found};
  });
  assert.deepEqual([cast.message, cast.attempts], [{add: 5}, 2]);
  assert.match(cast.error, /broken/);
  broken = false;
  assert.equal((await daemon.expect(200, "POST", at("a", "/dead/redrive"), {all: true})).redriven, items.length);
  await until("it was handled", async () => (await daemon.get(at("a", "/state"))).json >= 5);
  for (const body of [{colour: 1}, {limit: 0}, []])
    await daemon.refuse(400, "invalid_argument", "POST", at("a", "/dead/redrive"), body);
});

test("a call that is not answered in time is 504 of unknown outcome, and still executes", async (t) => {
  let release;
  const gate = new Promise((resolve) => (release = resolve));
  const {at} = await counters(t, {}, async (one) => {
    if (one.json.message?.slow) await gate;
    return behave(one);
  });
  const late = await daemon.refuse(504, "deadline", "POST", at("a", "/call?timeout=50ms"), {slow: true, add: 7});
  assert.equal(late.json.outcome, "unknown");
  const patient = daemon.expect(200, "POST", at("a", "/call?timeout=none"), {});
  release();
  assert.deepEqual(await patient, {reply: 7});
});

test("lock runs outside the mailbox, shows its owner, and can be taken away", async (t) => {
  let release;
  const gate = new Promise((resolve) => (release = resolve));
  const {at} = await counters(t, {}, async (one) => {
    if (one.json.op === "locked") await gate;
    return behave(one);
  });
  const call = daemon.post(at("a", "/call?timeout=none"), {lock: true});
  const {locked} = await until("it is locked", async () => {
    const seen = await daemon.request("GET", at("a"), {check: false});
    return seen.json.locked && seen.json;
  });
  assert.deepEqual(await daemon.expect(200, "POST", at("a", "/priority_call"), {add: 0}), {reply: 0});
  release();
  assert.deepEqual((await call).json, {reply: "was locked"});
  assert.ok(locked.owner);
  assert.ok(locked.since, "locked.since says since when");
});

test("unlock takes a lock away, and its caller is told", async (t) => {
  const {at} = await counters(t, {}, (one) => (one.json.op === "locked" ? new Promise(() => {}) : behave(one)));
  const call = daemon.post(at("a", "/call?timeout=none"), {lock: true});
  await until("it is locked", async () => (await daemon.request("GET", at("a"), {check: false})).json.locked);
  await daemon.expect(200, "POST", at("a", "/unlock"));
  assert.ok((await call).status >= 400);
  assert.deepEqual(await daemon.expect(200, "POST", at("a", "/call"), {add: 1}), {reply: 1});
  await daemon.refuse(404, "not_found", "POST", at("a", "/unlock"));
});

test("a behaviour may reply later, to others, stop, and have effects", async (t) => {
  const {at, space} = await counters(t);
  await daemon.expect(201, "PUT", `/v1/${space}/partitions/p`, {types: {shop: {invoice: 1}}});
  await daemon.expect(201, "PUT", `/v1/${space}/debouncers/d`, {quiet: "1h"});
  const answer = {
    reply: "done",
    state: 5,
    emit: [{worker: "w", value: "e", delay: "1ms"}],
    cast: [{kind: "counter", id: "b", message: {add: 4}}],
    touch: [{debouncer: "d", key: "k", payload: 1}],
    append: [{partition: "p", type: "shop", workspace: 7, next: ["invoice"], payload: {}}],
  };
  assert.deepEqual(await daemon.expect(200, "POST", at("a", "/call"), {answer}), {reply: "done"});
  const {items} = await daemon.expect(200, "POST", `/v1/${space}/workers/w/claim`, {wait: "5s"});
  assert.equal(items[0].value, "e");
  await until("the cast arrived", async () => (await daemon.get(at("b", "/state"))).json === 4);
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/debouncers/d/keys/k`)).status, "waiting");
  assert.deepEqual(await daemon.expect(200, "GET", `/v1/${space}/partitions/p/numbers?workspace=7`), {invoice: 1});
  await daemon.expect(200, "POST", at("a", "/call"), {answer: {reply: "bye", stop: "enough"}});
});

test("an answer that is wrong is a failed attempt", async (t) => {
  const {at} = await counters(t);
  for (const answer of [{reply: 1, noreply: true}, {colour: 1}, {emit: [{}]}, {emit: "x"}])
    await daemon.refuse(502, "handler_failed", "POST", at("a", "/call"), {answer});
});

test("kill ends the actor and tells its callers at once", async (t) => {
  const {at, space, server} =
      await counters(t, {}, async (one) => (one.json.message?.hang ? new Promise(() => {}) : behave(one)));
  await daemon.expect(200, "POST", at("a", "/call"), {add: 1});
  const waiting = daemon.post(at("a", "/call?timeout=none"), {hang: true});
  await until("its handler runs", () => server.seen.some((each) => each.json.message?.hang));
  await daemon.expect(204, "DELETE", at("a"));
  const told = await within(2_000, "telling the caller", waiting);
  assert.equal(told.status, 410);
  assert.equal(told.json.error.code, "actor_gone");
  await daemon.refuse(404, "not_found", "GET", at("a"));
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/actors/counter`)).items, []);
});

test("stop answers 200", async (t) => {
  const {at} = await counters(t);
  await daemon.expect(200, "POST", at("a", "/call"), {add: 1});
  await daemon.expect(200, "POST", at("a", "/stop"), {reason: "enough"});
  for (const body of [{colour: 1}, []]) await daemon.refuse(400, "invalid_argument", "POST", at("a", "/stop"), body);
});

test("actors are listed by prefix, page by page, whatever their ids are", async (t) => {
  const {at, space} = await counters(t);
  const ids = ["a b", "a/b", "a%2Fb", "a?b#c", "aü→😀", "a\"quote'", "b1", "...", "a+b", "x".repeat(200)];
  for (const id of ids) assert.deepEqual(await daemon.expect(200, "POST", at(id, "/call"), {add: 1}), {reply: 1}, id);
  const seen = [];
  let after = "";
  do {
    const page =
        await daemon.expect(200, "GET", `/v1/${space}/actors/counter?limit=3&after=${encodeURIComponent(after)}`);
    seen.push(...page.items.map((each) => each.id));
    after = page.next;
  } while (after !== null);
  assert.deepEqual(seen.sort(), ids.slice().sort());
  const some = await daemon.expect(200, "GET", `/v1/${space}/actors/counter?prefix=${encodeURIComponent("a/")}`);
  assert.deepEqual(some.items.map((each) => each.id), ["a/b"]);
});

test("a cast is taken once it is durable, whatever the handler does, and a full mailbox is 429", async (t) => {
  const {at} = await counters(
      t, {mailbox_max: 3, timeout: "1h"},
      async (one) => (one.json.op === "init" ? behave(one) : new Promise(() => {})));
  const statuses = [];
  for (let i = 0; i < 6; ++i) statuses.push((await within(2_000, "a cast", daemon.post(at("a", "/cast"), i))).status);
  assert.deepEqual(statuses.slice(0, 3), [202, 202, 202]);
  await daemon.refuse(429, "mailbox_full", "POST", at("a", "/cast"), 1);
});

test("retry.max counts retries, so that 0 means one attempt", async (t) => {
  for (const max of [0, 2]) {
    const {at, server} = await counters(t, {retry: {max, delay: "1ms"}});
    await daemon.refuse(502, "handler_failed", "POST", at("a", "/call"), {fail: true});
    assert.deepEqual(
        server.seen.filter((each) => each.json.op === "call").map((each) => each.json.attempt),
        Array.from({length: max + 1}, (_, i) => i + 1));
  }
});

test("traceparent is passed on to the behaviour with the message", async (t) => {
  const { at, server } = await counters(t);
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  await daemon.expect(200, "POST", at("a", "/call"), {add: 1}, {headers: {traceparent}});
  await daemon.expect(202, "POST", at("a", "/cast"), {add: 1}, {headers: {traceparent}});
  await until("both were handled", () => server.seen.length >= 3);
  const given = server.seen.filter((each) => each.json.op !== "init").map((each) => each.headers.traceparent);
  assert.deepEqual(given, [traceparent, traceparent]);
});

test("a schema that grows upgrades the state", async (t) => {
  const {at, space, server} = await counters(
      t, {}, (one) => (one.json.op === "upgrade" ? {json: {state: one.json.state + 1000}} : behave(one)));
  await daemon.expect(200, "POST", at("a", "/call"), {add: 1});
  await daemon.expect(200, "PUT", `/v1/${space}/kinds/counter`, {url: server.url, schema: 2});
  await until(
      "the new schema is served", async () => (await daemon.expect(200, "POST", at("a", "/call"), {})).reply === 1001);
  assert.equal((await daemon.expect(200, "GET", at("a"))).schema, 2);
});

test("replies may come from another message", async (t) => {
  let from;
  const {at} = await counters(t, {}, (one) => {
    if (one.json.message === "ask") return (from = one.json.from), {json: {noreply: true}};
    if (one.json.message === "tell") return {json: {replies: [{from, reply: "told"}]}};
    return behave(one);
  });
  const asked = daemon.expect(200, "POST", at("a", "/call?timeout=none"), "ask");
  await until("it asked", () => from);
  await daemon.expect(202, "POST", at("a", "/cast"), "tell");
  assert.deepEqual(await within(5_000, "the reply", asked), {reply: "told"});
});

test("dead letters are listed page by page", async (t) => {
  const {at} = await counters(t, {retry: {max: 0}});
  await daemon.expect(202, "POST", at("a", "/cast_many"), Array.from({length: 5}, (_, n) => ({fail: true, n})));
  await until("all are dead", async () => (await daemon.expect(200, "GET", at("a"))).dead === 5);
  const seen = [];
  let after = "";
  do {
    const page = await daemon.expect(200, "GET", `${at("a", "/dead")}?limit=2&after=${encodeURIComponent(after)}`);
    assert.ok(page.items.length <= 2);
    seen.push(...page.items.map((each) => each.message.n));
    after = page.next;
  } while (after !== null);
  assert.deepEqual(seen, [0, 1, 2, 3, 4]);
});
