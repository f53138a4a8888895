// /v1/{space}/debouncers
import assert from "node:assert/strict";
import {test} from "node:test";

import {Daemon, newSpace} from "./daemon.mjs";

const daemon = await Daemon.shared({args: ["--test-clock"]});

const advance = (by) => daemon.expect(200, "POST", "/v1/_/clock", {advance: by});
const claim = async (space, worker = "d") =>
    (await daemon.expect(200, "POST", `/v1/${space}/workers/${worker}/claim`, {max: 100, lock: "1h"})).items;
const complete = (space, {id, token}) => daemon.expect(200, "POST", `/v1/${space}/events/${id}/complete`, {token});
const key = (space, name = "k") => daemon.expect(200, "GET", `/v1/${space}/debouncers/d/keys/${name}`);

async function debouncer(settings) {
  const space = newSpace();
  await daemon.expect(201, "PUT", `/v1/${space}/debouncers/d`, settings);
  return {
    space,
    touch: (payload, name = "k") =>
        daemon.expect(202, "POST", `/v1/${space}/debouncers/d/keys/${encodeURIComponent(name)}`, payload)
  };
}

test("a debouncer is put, read back, put back, listed and removed", async () => {
  const space = newSpace();
  const spec = {quiet: "2s", max_wait: "10s", edge: "both", payload: "merge", max_count: 5, worker: "rebuild"};
  const made = await daemon.expect(201, "PUT", `/v1/${space}/debouncers/a`, spec);
  for (const [name, value] of Object.entries(spec)) assert.deepEqual(made[name], value);
  assert.deepEqual(await daemon.expect(200, "PUT", `/v1/${space}/debouncers/a`, made), made);
  assert.deepEqual(await daemon.expect(200, "GET", `/v1/${space}/debouncers/a`), made);
  const window = await daemon.expect(201, "PUT", `/v1/${space}/debouncers/b`, {window: "2s"});
  assert.deepEqual([window.window, window.quiet], ["2s", undefined]);
  const first = await daemon.expect(200, "GET", `/v1/${space}/debouncers?limit=1`);
  const second = await daemon.expect(200, "GET", `/v1/${space}/debouncers?limit=1&after=${first.next}`);
  assert.deepEqual([first.items[0].name, second.items[0].name], ["a", "b"]);
  await daemon.expect(204, "DELETE", `/v1/${space}/debouncers/a`);
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/debouncers/a`);
});

test("impossible settings are refused and nothing is stored", async () => {
  const space = newSpace();
  const bad = [
    {quiet: "2s", window: "2s"},
    {quiet: "10s", max_wait: "2s"},
    {window: "0s", edge: "leading"},
    {quiet: "x"},
    {quiet: -1},
    {quiet: "2s", edge: "sharp"},
    {quiet: "2s", payload: "sum"},
    {quiet: "2s", max_count: -1},
    {quiet: "2s", max_count: 1.5},
    {quiet: "2s", worker: "no name"},
    {quiet: "2s", colour: 1},
    [],
    "2s",
  ];
  for (const body of bad) await daemon.refuse(400, "invalid_argument", "PUT", `/v1/${space}/debouncers/d`, body);
  await daemon.refuse(400, "invalid_argument", "PUT", `/v1/${space}/debouncers/no%20name`, {quiet: "2s"});
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/debouncers`)).items, []);
});

test("what is not there is not touched", async () => {
  const space = newSpace();
  await daemon.refuse(404, "not_found", "POST", `/v1/${space}/debouncers/d/keys/k`, 1);
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/debouncers/d/keys/k`);
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/debouncers/d/keys`);
  for (const action of ["pause", "unpause"])
    await daemon.refuse(404, "not_found", "POST", `/v1/${space}/debouncers/d/${action}`);
  await daemon.expect(201, "PUT", `/v1/${space}/debouncers/d`, {quiet: "2s"});
  for (const name of ["x".repeat(201), "a%07b", "%2E%2E", ".", "%ff", "%7F"])
    for (const method of ["POST", "GET", "DELETE"])
      await daemon.refuse(400, "invalid_argument", method, `/v1/${space}/debouncers/d/keys/${name}`);
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/debouncers/d/keys`)).items, []);
});

test("many touches are one run, an event with what was touched", async () => {
  const {space, touch} = await debouncer({quiet: "2s", max_wait: "10s"});
  assert.deepEqual((await key(space)).status, "idle");
  const first = await touch({n: 1});
  assert.equal(Date.parse(first.fires_at) - Date.parse(first.first), 2_000);
  await advance("1s");
  const second = await touch({n: 2});
  assert.deepEqual([second.count, second.first], [2, first.first]);
  const waiting = await key(space);
  assert.deepEqual([waiting.status, waiting.count, waiting.pending, waiting.token], ["waiting", 2, true, null]);
  assert.deepEqual(await claim(space), []);
  await advance("2s");
  const [run] = await claim(space);
  assert.deepEqual(Object.keys(run.value).sort(), ["count", "debouncer", "first", "key", "latest", "payload", "token"]);
  assert.deepEqual(
      [run.value.debouncer, run.value.key, run.value.payload, run.value.count, run.value.token],
      ["d", "k", {n: 2}, 2, run.token]);
  const running = await key(space);
  assert.deepEqual([running.status, running.pending, running.event], ["running", false, run.id]);
  await touch({n: 3});
  assert.equal((await key(space)).pending, true);
  await advance("5s");
  assert.deepEqual(await claim(space), [], "one run of a key at a time");
  await complete(space, run);
  await advance("1s");
  const [next] = await claim(space);
  assert.equal(next.value.payload.n, 3);
  await complete(space, next);
  assert.equal((await key(space)).status, "idle");
});

test("max_wait, max_count and window bound the waiting", async () => {
  const bounded = await debouncer({quiet: "2s", max_wait: "3s"});
  for (let i = 0; i < 3; ++i) await bounded.touch(i), await advance("1s");
  assert.equal((await claim(bounded.space))[0].value.count, 3);
  const counted = await debouncer({quiet: "1h", max_count: 3});
  for (let i = 0; i < 3; ++i) await counted.touch(i);
  await advance("0s");
  assert.equal((await claim(counted.space))[0].value.count, 3);
  const window = await debouncer({window: "2s"});
  await window.touch(1);
  await advance("1s");
  await window.touch(2);
  await advance("1s");
  assert.equal((await claim(window.space))[0].value.count, 2);
});

test("payloads are first, last, all or merged", async () => {
  for (const [payload, expected] of [
           ["first", {a: 1, b: 1}], ["last", {a: 2, b: null}], ["merge", {a: 2}],
           ["all", [{a: 1, b: 1}, {a: 2, b: null}]]]) {
    const {space, touch} = await debouncer({quiet: "2s", payload});
    await touch({a: 1, b: 1});
    await touch({a: 2, b: null});
    await advance("2s");
    const [{value}] = await claim(space);
    assert.deepEqual(payload === "all" ? value.payloads : value.payload, expected, payload);
    assert.equal(Object.hasOwn(value, payload === "all" ? "payload" : "payloads"), false);
  }
});

test("leading runs at once, both once more at the end", async () => {
  for (const edge of ["leading", "both"]) {
    const {space, touch} = await debouncer({quiet: "2s", edge});
    await touch(1);
    await advance("0s");
    const [run] = await claim(space);
    assert.equal(run.value.payload, 1, edge);
    await complete(space, run);
    await touch(2);
    await advance("0s");
    assert.deepEqual(await claim(space), []);
    await advance("3s");
    assert.equal((await claim(space)).length, edge === "both" ? 1 : 0, edge);
  }
});

test("a window is cancelled, and a pause holds the firing", async () => {
  const {space, touch} = await debouncer({quiet: "2s"});
  await touch(1);
  await daemon.expect(204, "DELETE", `/v1/${space}/debouncers/d/keys/k`);
  assert.equal((await key(space)).status, "idle");
  await advance("3s");
  assert.deepEqual(await claim(space), []);
  await touch(2);
  const paused = await daemon.expect(200, "POST", `/v1/${space}/debouncers/d/pause`, {reason: "r"});
  assert.equal(paused.paused.reason, "r");
  await advance("3s");
  assert.deepEqual(await claim(space), []);
  assert.equal((await daemon.expect(200, "POST", `/v1/${space}/debouncers/d/unpause`)).paused, null);
  await advance("3s");
  assert.equal((await claim(space)).length, 1);
  await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/debouncers/d/pause`, {colour: 1});
});

test("keys are listed page by page, whatever their names are", async () => {
  const {space, touch} = await debouncer({quiet: "1h"});
  const names = ["a b", "a/b", "ü→😀", "%25", "a?b=c&d", "..a", "x".repeat(200)];
  for (const name of names) await touch(1, name);
  const seen = [];
  let after = "";
  do {
    const page =
        await daemon.expect(200, "GET", `/v1/${space}/debouncers/d/keys?limit=2&after=${encodeURIComponent(after)}`);
    seen.push(...page.items.map((each) => each.key));
    after = page.next;
  } while (after !== null);
  assert.deepEqual(seen.sort(), names.slice().sort());
});
