// /v1/{space}/events and /v1/{space}/history
import assert from "node:assert/strict";
import {test} from "node:test";

import {Daemon, newSpace, within} from "./daemon.mjs";

const daemon = await Daemon.shared();

const unknown = "00000000-0000-7000-8000-000000000000";

async function claimOne(space, worker, more = {}) {
  const {items} = await daemon.expect(200, "POST", `/v1/${space}/workers/${worker}/claim`, {max: 1, ...more});
  assert.equal(items.length, 1);
  return items[0];
}

async function emit(space, worker, value = null, more = {}) {
  return (await daemon.expect(201, "POST", `/v1/${space}/events`, {worker, value, ...more})).id;
}

test("an event goes from emitted to claimed to completed to history", async () => {
  const space = newSpace();
  const id = await emit(space, "mail", {to: "ada"});
  const ready = await daemon.expect(200, "GET", `/v1/${space}/events/${id}`);
  assert.equal(ready.state, "ready");
  assert.deepEqual(ready.value, {to: "ada"});
  assert.deepEqual([ready.retries, ready.attempts, ready.locked_at, ready.last_error], [0, 0, null, null]);
  const claimed = await claimOne(space, "mail");
  assert.deepEqual([claimed.id, claimed.attempt, claimed.value], [id, 1, {to: "ada"}]);
  const running = await daemon.expect(200, "GET", `/v1/${space}/events/${id}`);
  assert.equal(running.state, "running");
  assert.notEqual(running.locked_at, null);
  const held = Date.parse(claimed.locked_until) - Date.parse(running.locked_at);
  assert.ok(Math.abs(held - 30_000) < 50, `the lock is 30 s unless told, and not ${held} ms`);
  await daemon.expect(200, "POST", `/v1/${space}/events/${id}/complete`, {token: claimed.token, result: {sent: true}});
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/events/${id}`);
  const ended = await daemon.expect(200, "GET", `/v1/${space}/history/${id}`);
  assert.deepEqual([ended.state, ended.result, ended.attempts], ["completed", {sent: true}, 1]);
});

test("an array of events is one transaction", async () => {
  const space = newSpace();
  const {items} = await daemon.expect(201, "POST", `/v1/${space}/events`, [{worker: "a", value: 1}, {worker: "b"}]);
  assert.equal(items.length, 2);
  await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/events`, [{worker: "a"}, {worker: "not good"}]);
  await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/events`, [{worker: "a"}, {wroker: "b"}]);
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/events?worker=a`)).items.length, 1);
  assert.deepEqual((await daemon.expect(201, "POST", `/v1/${space}/events`, [])).items, []);
});

test("bad events are refused and nothing is stored", async () => {
  const space = newSpace();
  const bad = [
    undefined,
    null,
    1,
    "text",
    true,
    {},
    {value: 1},
    {worker: null},
    {worker: 3},
    {worker: ""},
    {worker: "w", colour: 1},
    {worker: "w", delay: "soon"},
    {worker: "w", delay: -1},
    {worker: "w", delay: "-5s"},
    {worker: "w", delay: "5 s"},
    {worker: "w", delay: {}},
    {worker: "w", delay: "5s", at: "2030-01-01T00:00:00Z"},
    {worker: "w", at: "tomorrow"},
    {worker: "w", at: 5},
    {worker: "w", at: "2030-13-01T00:00:00Z"},
    {worker: "w", id: "x"},
    {worker: "w", id: 7},
    {worker: "w", priority: 10},
    {worker: "w", priority: -1},
    {worker: "w", priority: 1.5},
    {worker: "w", priority: "1"},
    {worker: "w", retry: 3},
    {worker: "w", retry: {max: -1}},
    {worker: "w", retry: {then: "explode"}},
    {worker: "w", retry: {tries: 1}},
    {worker: "w", retry: {factor: "2"}},
    {worker: "w", retry: {factor: -1}},
    {worker: "w", unique: {}},
    {worker: "w", unique: "k"},
    {worker: "w", unique: {key: ""}},
    {worker: "w", unique: {key: "k", until: 1}},
    {worker: "w", unique: {key: "k".repeat(201)}},
    {worker: "w", limit_key: 1},
    {worker: "w", limit_key: "k".repeat(201)},
    {worker: "w", limit_key: "a\u0007b"},
  ];
  for (const body of bad) await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/events`, body);
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/workers`)).items, []);
});

test("delay, at and priority say when it is its turn", async () => {
  const space = newSpace();
  const later = await emit(space, "w", 1, {delay: "1h"});
  const seen = await daemon.expect(200, "GET", `/v1/${space}/events/${later}`);
  assert.equal(seen.state, "scheduled");
  assert.ok(Math.abs(Date.parse(seen.delay_until) - Date.now() - 3_600_000) < 10_000);
  const at = await emit(space, "w", 1, {at: "2100-01-31T08:15:00+02:00"});
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/events/${at}`)).delay_until, "2100-01-31T06:15:00.000Z");
  const past = await emit(space, "w", "past", {at: "2001-01-01T00:00:00Z"});
  assert.equal((await claimOne(space, "w")).id, past);
  await emit(space, "p", "last", {priority: 9});
  await emit(space, "p", "first", {priority: 0});
  await emit(space, "p", "middle", {priority: 5});
  const {items} = await daemon.expect(200, "POST", `/v1/${space}/workers/p/claim`, {max: 10});
  assert.deepEqual(items.map((each) => each.value), ["first", "middle", "last"]);
});

test("an id of one's own is kept, and makes a second event a duplicate", async () => {
  const space = newSpace();
  const id = "018f4e5a-0000-7000-8000-0000000000ab";
  assert.equal(await emit(space, "w", 1, {id}), id);
  assert.deepEqual(await daemon.expect(200, "POST", `/v1/${space}/events`, {worker: "w", id}), {id, duplicate: true});
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/events?worker=w`)).items.length, 1);
});

test("a duplicate by unique gets the id of the first", async () => {
  const space = newSpace();
  const unique = { key: "order 7 / ü", for: "1h" };
  const id = await emit(space, "w", 1, {unique});
  const second = await daemon.expect(200, "POST", `/v1/${space}/events`, {worker: "w", value: 2, unique});
  assert.deepEqual(second, {id, duplicate: true});
  const {items} = await daemon.expect(201, "POST", `/v1/${space}/events`, [{worker: "w", unique}, {worker: "w"}]);
  assert.deepEqual(items[0], {id, duplicate: true});
  assert.equal(items[1].duplicate, undefined);
});

test("events are listed by worker and state, page by page, without loss or repeat", async () => {
  const space = newSpace();
  const events = Array.from({length: 25}, (_, i) => ({worker: "w", value: i, ...(i % 5 === 0 ? {delay: "1h"} : {})}));
  const {items} = await daemon.expect(201, "POST", `/v1/${space}/events`, events);
  const seen = [];
  let after = "";
  do {
    const page = await daemon.expect(
        200, "GET", `/v1/${space}/events?worker=w&limit=7${after && `&after=${encodeURIComponent(after)}`}`);
    assert.ok(page.items.length <= 7);
    seen.push(...page.items.map((each) => each.id));
    after = page.next;
  } while (after !== null);
  assert.deepEqual(seen.slice().sort(), items.map((each) => each.id).sort());
  for (const [state, count] of [
           ["scheduled", 5], ["ready", 20], ["running", 0], ["dead", 0], ["paused", 0], ["blocked", 0]])
    assert.equal(
        (await daemon.expect(200, "GET", `/v1/${space}/events?worker=w&state=${state}&limit=1000`)).items.length, count,
        state);
  for (const bad
           of ["limit=0", "limit=1001", "limit=x", "limit=-1", "limit=", "limit=1&limit=2", "state=lost",
               "after=nonsense"])
    await daemon.refuse(400, "invalid_argument", "GET", `/v1/${space}/events?worker=w&${bad}`);
});

test("what is no id, and what is not there", async () => {
  const space = newSpace();
  for (const path of ["", "/why"])
    await daemon.refuse(404, "not_found", "GET", `/v1/${space}/events/${unknown}${path}`);
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/history/${unknown}`);
  await daemon.refuse(404, "not_found", "DELETE", `/v1/${space}/events/${unknown}`);
  for (const [method, path] of [
           ["GET", ""], ["GET", "/why"], ["DELETE", ""], ["POST", "/complete"], ["POST", "/extend"]])
    await daemon.refuse(
        400, "invalid_argument", method, `/v1/${space}/events/nonsense${path}`,
        method === "POST" ? {token: "x"} : undefined);
  await daemon.refuse(400, "invalid_argument", "GET", `/v1/${space}/history/${unknown}?wait=never`);
});

test("an event is cancelled, but while it runs only by force", async () => {
  const space = newSpace();
  const waiting = await emit(space, "w");
  await daemon.expect(204, "DELETE", `/v1/${space}/events/${waiting}`);
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/history/${waiting}`)).state, "cancelled");
  const running = await emit(space, "w");
  const {token} = await claimOne(space, "w");
  await daemon.refuse(409, "wrong_state", "DELETE", `/v1/${space}/events/${running}`);
  await daemon.expect(204, "DELETE", `/v1/${space}/events/${running}?force=true`);
  await daemon.refuse(409, "stale_token", "POST", `/v1/${space}/events/${running}/complete`, {token});
});

test("events of a worker are cancelled in bulk", async () => {
  const space = newSpace();
  await daemon.expect(
      201, "POST", `/v1/${space}/events`, [{worker: "w"}, {worker: "w"}, {worker: "w", delay: "1h"}, {worker: "v"}]);
  assert.deepEqual(await daemon.expect(200, "DELETE", `/v1/${space}/workers/w/events?state=scheduled`), {cancelled: 1});
  assert.deepEqual(await daemon.expect(200, "DELETE", `/v1/${space}/workers/w/events`), {cancelled: 2});
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/workers/v`)).counts.total, 1);
  await daemon.refuse(400, "invalid_argument", "DELETE", `/v1/${space}/workers/v/events?state=all`);
  await daemon.refuse(400, "invalid_argument", "DELETE", `/v1/${space}/workers/not%20good/events`);
});

test("why says what stands in the way", async () => {
  const space = newSpace();
  const id = await emit(space, "w");
  const codes = async () =>
      (await daemon.expect(200, "GET", `/v1/${space}/events/${id}/why`)).reasons.map((each) => each.code);
  assert.deepEqual(await codes(), ["unserved"]);
  await daemon.expect(200, "POST", `/v1/${space}/workers/w/pause`, {reason: "lunch", by: "ada"});
  const why = await daemon.expect(200, "GET", `/v1/${space}/events/${id}/why`);
  assert.match(why.why, /paused/);
  assert.ok(why.reasons.some((each) => each.by === "ada" && each.since !== null));
});

test("history waits for the end", async () => {
  const space = newSpace();
  const id = await emit(space, "w");
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/history/${id}`);
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/history/${id}?wait=20ms`);
  const ended = daemon.expect(200, "GET", `/v1/${space}/history/${id}?wait=20s`);
  const {token} = await claimOne(space, "w");
  await daemon.expect(200, "POST", `/v1/${space}/events/${id}/complete`, {token});
  assert.equal((await within(5_000, "the end", ended)).state, "completed");
});

test("fail retries by the policy, at once, later, or not at all", async () => {
  const space = newSpace();
  const id = await emit(space, "w", 1, {retry: {delay: "0s", max: 1}});
  let claim = await claimOne(space, "w");
  await daemon.expect(200, "POST", `/v1/${space}/events/${id}/fail`, {token: claim.token, error: "no luck"});
  claim = await claimOne(space, "w", {wait: "5s"});
  assert.deepEqual([claim.attempt, claim.retries, claim.last_error], [2, 1, "no luck"]);
  await daemon.expect(200, "POST", `/v1/${space}/events/${id}/fail`, {token: claim.token, error: "again"});
  const dead = await daemon.expect(200, "GET", `/v1/${space}/events/${id}`);
  assert.deepEqual([dead.state, dead.attempts, dead.last_error, dead.failures.length], ["dead", 2, "again", 2]);
  const second = await emit(space, "v");
  claim = await claimOne(space, "v");
  await daemon.refuse(
      400, "invalid_argument", "POST", `/v1/${space}/events/${second}/fail`,
      {token: claim.token, retry: false, retry_in: "1s"});
  await daemon.expect(200, "POST", `/v1/${space}/events/${second}/fail`, {token: claim.token, retry_in: "1h"});
  const later = await daemon.expect(200, "GET", `/v1/${space}/events/${second}`);
  assert.equal(later.state, "scheduled");
  assert.ok(Date.parse(later.delay_until) > Date.now() + 3_000_000);
  const third = await emit(space, "u", 1, {retry: {then: "drop"}});
  claim = await claimOne(space, "u");
  await daemon.expect(200, "POST", `/v1/${space}/events/${third}/fail`, {token: claim.token, retry: false});
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/history/${third}`)).state, "dropped");
});

test("extend prolongs, release is uncounted, and a lost claim is stale", async () => {
  const space = newSpace();
  const id = await emit(space, "w");
  let claim = await claimOne(space, "w", {lock: "10s"});
  const {locked_until} =
      await daemon.expect(200, "POST", `/v1/${space}/events/${id}/extend`, {token: claim.token, lock: "1h"});
  assert.ok(Date.parse(locked_until) > Date.now() + 3_000_000);
  await daemon.expect(200, "POST", `/v1/${space}/events/${id}/release`, {token: claim.token});
  const old = claim.token;
  claim = await claimOne(space, "w");
  assert.equal(claim.retries, 0);
  for (const [action, more] of [["complete", {}], ["fail", {error: "x"}], ["extend", {lock: "1s"}], ["release", {}]])
    await daemon.refuse(409, "stale_token", "POST", `/v1/${space}/events/${id}/${action}`, {token: old, ...more});
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/events/${id}`)).state, "running");
  for (const body of [undefined, {}, {token: 1}, {token: "zzz"}, {token: claim.token, colour: 1}, []])
    for (const action of ["complete", "fail", "extend", "release"])
      await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/events/${id}/${action}`, body);
  await daemon.expect(200, "POST", `/v1/${space}/events/${id}/complete`, {token: claim.token});
});

test("traceparent is kept with the event, if it is one", async () => {
  const space = newSpace();
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w"}, {headers: {traceparent}});
  assert.equal((await claimOne(space, "w")).traceparent, traceparent);
  await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w"}, {headers: {traceparent: "nonsense"}});
  assert.equal((await claimOne(space, "w")).traceparent, null);
});
