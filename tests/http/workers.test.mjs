// /v1/{space}/workers
import assert from "node:assert/strict";
import {test} from "node:test";

import {Daemon, newSpace, until, within} from "./daemon.mjs";

const daemon = await Daemon.shared();

const emit = (space, worker, count = 1, more = {}) => daemon.expect(
    201, "POST", `/v1/${space}/events`, Array.from({length: count}, (_, i) => ({worker, value: i, ...more})));
const claim = async (space, worker, body = {}) =>
    (await daemon.expect(200, "POST", `/v1/${space}/workers/${worker}/claim`, body)).items;
const worker = (space, name = "w") => daemon.expect(200, "GET", `/v1/${space}/workers/${name}`);

test("a worker that nobody has heard of is empty and unserved", async () => {
  const seen = await worker(newSpace());
  assert.deepEqual(seen.counts, {total: 0, ready: 0, scheduled: 0, running: 0, dead: 0});
  assert.deepEqual([seen.state, seen.rules, seen.served_by, seen.oldest], ["run", [], 0, null]);
  assert.deepEqual(seen.retry, {delay: "5m", factor: 1, max_delay: "1d", jitter: "0s", max: 2, then: "dead"});
});

test("counts are those of the stored events", async () => {
  const space = newSpace();
  await emit(space, "w", 3);
  await emit(space, "w", 2, {delay: "1h"});
  const [one, two] = await claim(space, "w", {max: 2});
  await daemon.expect(200, "POST", `/v1/${space}/events/${one.id}/complete`, {token: one.token});
  await daemon.expect(200, "POST", `/v1/${space}/events/${two.id}/fail`, {token: two.token, retry: false});
  const seen = await worker(space);
  assert.deepEqual(seen.counts, {total: 3, ready: 1, scheduled: 2, running: 0, dead: 1});
  assert.deepEqual([seen.completed, seen.failed], [1, 1]);
  assert.notEqual(seen.oldest, null);
});

test("workers are listed page by page", async () => {
  const space = newSpace();
  const names = Array.from({length: 12}, (_, i) => `w${String(i).padStart(2, "0")}`);
  for (const name of names) await emit(space, name);
  const first = await daemon.expect(200, "GET", `/v1/${space}/workers?limit=5`);
  const second = await daemon.expect(200, "GET", `/v1/${space}/workers?limit=5&after=${first.next}`);
  const third = await daemon.expect(200, "GET", `/v1/${space}/workers?limit=5&after=${second.next}`);
  assert.deepEqual([...first.items, ...second.items, ...third.items].map((each) => each.worker), names);
  assert.equal(third.next, null);
  await daemon.refuse(400, "invalid_argument", "GET", `/v1/${space}/workers?limit=5000`);
});

test("settings are put, read back in the same shape, put back, and removed", async () => {
  const space = newSpace();
  const settings = {
    retry: {delay: "10s", factor: 2, max_delay: "1h", jitter: "500ms", max: 7, then: "drop"},
    rate: "10/s",
    limit_per_key: 3,
    retention: "2d"
  };
  const made = await daemon.expect(201, "PUT", `/v1/${space}/workers/w`, settings);
  for (const [name, value] of Object.entries(settings)) assert.deepEqual(made[name], value);
  const read = await worker(space);
  assert.deepEqual(await daemon.expect(200, "PUT", `/v1/${space}/workers/w`, read), read);
  await daemon.expect(204, "DELETE", `/v1/${space}/workers/w`);
  assert.equal((await worker(space)).rate, null);
});

test("a second PUT of the same worker is not new", async () => {
  const space = newSpace();
  await daemon.expect(201, "PUT", `/v1/${space}/workers/w`, {});
  await daemon.expect(200, "PUT", `/v1/${space}/workers/w`, {});
  await daemon.expect(201, "PUT", `/v1/${space}/workers/p`, {url: "http://127.0.0.1:9/"});
  await daemon.expect(200, "PUT", `/v1/${space}/workers/p`, {url: "http://127.0.0.1:9/"});
});

test("bad settings are refused and change nothing", async () => {
  const space = newSpace();
  const before = await daemon.expect(201, "PUT", `/v1/${space}/workers/w`, {rate: "10/s"});
  const bad = [
    {rate: 10},
    {rate: "10"},
    {rate: "0/s"},
    {rate: "-1/s"},
    {rate: "10/parsec"},
    {limit_per_key: 0},
    {limit_per_key: "1"},
    {retention: "forever"},
    {retry: {max: "2"}},
    {retry: []},
    {colour: 1},
    {secret: "x"},
    {concurrency: 2},
    {url: 5},
    {url: "ftp://127.0.0.1/"},
    {url: "not a url"},
    {url: "http://127.0.0.1:9/", concurrency: 0},
    {url: "http://127.0.0.1:9/", timeout: "0s"},
    {url: "http://127.0.0.1:9/", secret: "whsec_!!!"},
    {url: "http://127.0.0.1:99999/"},
    [],
    "text",
  ];
  for (const body of bad) await daemon.refuse(400, "invalid_argument", "PUT", `/v1/${space}/workers/w`, body);
  // A name is judged by the address that is connected to, when it is.
  for (const url of ["http://10.0.0.1/", "http://169.254.169.254/latest", "http://[::ffff:10.0.0.1]/"])
    await daemon.refuse(403, "permission_denied", "PUT", `/v1/${space}/workers/w`, {url});
  assert.deepEqual(await worker(space), before);
});

test("pause and block are rules, idempotent, and block is the stronger", async () => {
  const space = newSpace();
  await emit(space, "w");
  const paused = await daemon.expect(
      200, "POST", `/v1/${space}/workers/w/pause`, {reason: "lunch", until: "2100-01-01T00:00:00Z"});
  assert.equal(paused.state, "pause");
  assert.deepEqual([paused.rules[0].reason, paused.rules[0].until], ["lunch", "2100-01-01T00:00:00.000Z"]);
  assert.equal((await daemon.expect(200, "POST", `/v1/${space}/workers/w/pause`, {})).rules.length, 1);
  assert.deepEqual(await claim(space, "w"), []);
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/events?worker=w`)).items[0].state, "paused");
  const both = await daemon.expect(200, "POST", `/v1/${space}/workers/w/block`);
  assert.deepEqual([both.state, both.rules.length], ["block", 2]);
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/events?worker=w`)).items[0].state, "blocked");
  assert.equal((await daemon.expect(200, "POST", `/v1/${space}/workers/w/unblock`)).state, "pause");
  const free = await daemon.expect(200, "POST", `/v1/${space}/workers/w/unpause`);
  assert.deepEqual([free.state, free.rules], ["run", []]);
  await daemon.expect(200, "POST", `/v1/${space}/workers/w/unpause`);
  assert.equal((await claim(space, "w")).length, 1);
  for (const rule of ["pause", "block", "unpause", "unblock"])
    for (const body of [{colour: 1}, [], "text", {reason: 5}])
      await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/workers/w/${rule}`, body);
  await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/workers/w/pause`, {until: "soon"});
});

test("claim takes as many as are asked for, and refuses what makes no sense", async () => {
  const space = newSpace();
  await emit(space, "w", 15);
  assert.equal((await claim(space, "w")).length, 10, "ten unless told");
  assert.equal((await claim(space, "w", {max: 3})).length, 3);
  assert.equal((await claim(space, "w", {max: 1000})).length, 2);
  assert.deepEqual(await claim(space, "w", {wait: "10ms"}), []);
  const bad =
      [{max: 0}, {max: 1001}, {max: "3"}, {wait: "6m"}, {wait: "x"}, {lock: "0s"}, {lock: "x"}, {worker: "w"}, [], 7];
  for (const body of bad) await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/workers/w/claim`, body);
  await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/workers/no%20name/claim`, {});
});

test("a claim that waits wakes with the emit", async () => {
  const space = newSpace();
  const times = [];
  for (let i = 0; i < 5; ++i) {
    const waiting = claim(space, "w", {wait: "20s", max: 1});
    await worker(space);
    const began = performance.now();
    await emit(space, "w");
    assert.equal((await within(5_000, "waking", waiting)).length, 1);
    times.push(performance.now() - began);
  }
  assert.ok(Math.min(...times) < 100, `it took ${times} ms`);
});

test("a client that hangs up while it waits does not swallow the event", async () => {
  const space = newSpace();
  for (let i = 0; i < 40; ++i) {
    const raw = await daemon.raw();
    // Once it was answered, the daemon knows the connection, and reads what comes next at once.
    await raw.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await raw.answer();
    await raw.send(
        `POST /v1/${space}/workers/w/claim HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\n\r\n{"wait":"20s"}`);
    await daemon.expect(200, "GET", `/v1/${space}/workers/w`);
    if (i % 2)
      raw.socket.resetAndDestroy();
    else
      raw.end();
    await raw.ended;
    await daemon.expect(200, "GET", `/v1/${space}/workers/w`);
    await emit(space, "w");
    const [event] = await until("somebody who listens gets the event", async () => {
      const items = await claim(space, "w", {wait: "1s"});
      return items.length ? items : null;
    }, 5_000);
    await daemon.expect(200, "POST", `/v1/${space}/events/${event.id}/complete`, {token: event.token});
  }
});

test("settle answers for each item", async () => {
  const space = newSpace();
  await emit(space, "w", 5);
  const items = await claim(space, "w");
  const [a, b, c, d, e] = items.map(({id, token}) => ({id, token}));
  const answer = await daemon.expect(200, "POST", `/v1/${space}/workers/w/settle`, {
    complete: [{...a, result: 1}],
    fail: [{...b, error: "no", retry: false}],
    extend: [{...c, lock: "1h"}],
    release: [d],
  });
  assert.deepEqual(answer.items.map((each) => each.ok), [true, true, true, true]);
  const stale = await daemon.expect(200, "POST", `/v1/${space}/workers/w/settle`, {complete: [d, e]});
  assert.deepEqual(stale.items.map((each) => each.ok), [false, true]);
  assert.equal(stale.items[0].error.code, "stale_token");
  assert.deepEqual((await worker(space)).counts, {total: 2, ready: 1, scheduled: 0, running: 1, dead: 1});
});

test("an atomic settle with a stale token changes nothing", async () => {
  const space = newSpace();
  await emit(space, "w", 2);
  const [a, b] = (await claim(space, "w")).map(({id, token}) => ({id, token}));
  await daemon.expect(200, "POST", `/v1/${space}/events/${b.id}/release`, {token: b.token});
  await daemon.refuse(409, "stale_token", "POST", `/v1/${space}/workers/w/settle`, {complete: [a, b], atomic: true});
  assert.equal((await worker(space)).completed, 0);
  for (const body
           of [{complete: a}, {complete: [{id: a.id}]}, {complete: [{...a, error: "x"}]}, {finish: [a]},
               {complete: [a], fail: [a]}, {atomic: 1}, []])
    await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/workers/w/settle`, body);
  await daemon.refuse(413, "too_large", "POST", `/v1/${space}/workers/w/settle`, {complete: Array(1001).fill(a)});
  assert.equal((await worker(space)).counts.running, 1);
});

test("dead letters are listed and redriven with retries 0", async () => {
  const space = newSpace();
  await emit(space, "w", 6);
  const items = await claim(space, "w");
  await daemon.expect(
      200, "POST", `/v1/${space}/workers/w/settle`,
      {fail: items.map(({id, token}) => ({id, token, error: "no", retry: false}))});
  const page = await daemon.expect(200, "GET", `/v1/${space}/workers/w/dead?limit=4`);
  const rest =
      await daemon.expect(200, "GET", `/v1/${space}/workers/w/dead?limit=4&after=${encodeURIComponent(page.next)}`);
  assert.deepEqual([...page.items, ...rest.items].map((each) => each.id).sort(), items.map((each) => each.id).sort());
  const one = page.items[0].id;
  assert.deepEqual(
      await daemon.expect(200, "POST", `/v1/${space}/workers/w/dead/redrive`, {ids: [one]}), {redriven: 1});
  const again = await daemon.expect(200, "GET", `/v1/${space}/events/${one}`);
  assert.deepEqual([again.state, again.retries], ["ready", 0]);
  for (const body
           of [{}, {all: false}, {all: true, ids: [one]}, {ids: "x"}, {ids: ["x"]}, {ids: [5]},
               {all: true, rate: "fast"}, {all: 1}, []])
    await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/workers/w/dead/redrive`, body);
  assert.deepEqual(
      await daemon.expect(200, "POST", `/v1/${space}/workers/w/dead/redrive`, {all: true, rate: "100/s"}),
      {redriven: 5});
  assert.equal((await worker(space)).counts.dead, 0);
});

test("attempts show recent executions", async () => {
  const space = newSpace();
  await emit(space, "w", 2);
  const [a, b] = await claim(space, "w");
  await daemon.expect(200, "POST", `/v1/${space}/events/${a.id}/complete`, {token: a.token, result: "r"});
  await daemon.expect(200, "POST", `/v1/${space}/events/${b.id}/fail`, {token: b.token, error: "e"});
  const {items} = await daemon.expect(200, "GET", `/v1/${space}/workers/w/attempts`);
  assert.deepEqual(
      items.map((each) => [each.event, each.outcome]).sort(), [[a.id, "completed"], [b.id, "failed"]].sort());
  assert.equal(items.find((each) => each.event === b.id).error, "e");
});

test("limit_key lets no more run at once than the worker allows", async () => {
  const space = newSpace();
  await emit(space, "w", 3, {limit_key: "tenant 1"});
  await emit(space, "w", 1, {limit_key: "tenant 2"});
  const items = await claim(space, "w");
  assert.deepEqual(items.map((each) => each.limit_key).sort(), ["tenant 1", "tenant 2"]);
});
