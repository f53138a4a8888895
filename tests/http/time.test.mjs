// What ends, or begins, by the passing of time
import assert from "node:assert/strict";
import {test} from "node:test";

import {Daemon, newSpace} from "./daemon.mjs";

const daemon = await Daemon.shared({args: ["--test-clock"]});

const advance = async (by) => Date.parse((await daemon.expect(200, "POST", "/v1/_/clock", {advance: by})).now);
const emit = (space, more = {}) => daemon.post(`/v1/${space}/events`, {worker: "w", ...more});
const claim = async (space, more = {}) =>
    (await daemon.expect(200, "POST", `/v1/${space}/workers/w/claim`, {max: 100, ...more})).items;

test("a delayed event is ready when its time has come, and not before", async () => {
  const space = newSpace();
  await emit(space, {delay: "90s"});
  await advance("89s");
  assert.deepEqual(await claim(space), []);
  await advance("1s");
  assert.equal((await claim(space)).length, 1);
});

test("durations may be numbers of seconds and fractions", async () => {
  const space = newSpace();
  const start = await advance("0s");
  for (const [delay, ms] of [
           ["250ms", 250], ["5s", 5_000], ["5m", 300_000], ["24h", 86_400_000], ["7d", 604_800_000], [1.5, 1_500],
           [3, 3_000], ["1.5h", 5_400_000], ["2", 2_000]]) {
    const {id} = (await emit(space, {delay})).json;
    const {delay_until} = await daemon.expect(200, "GET", `/v1/${space}/events/${id}`);
    assert.equal(Date.parse(delay_until) - start, ms, String(delay));
  }
});

test("a claim that waits is woken by the clock", async () => {
  const space = newSpace();
  await emit(space, {delay: "10m"});
  const waiting = claim(space, {wait: "5m"});
  await daemon.expect(200, "GET", `/v1/${space}/workers/w`);
  await advance("10m");
  const items = await waiting;
  assert.ok(items.length === 1 || (await claim(space)).length === 1);
});

test("a pause ends at its time", async () => {
  const space = newSpace();
  await emit(space);
  const until = new Date((await advance("0s")) + 60_000).toISOString();
  assert.equal((await daemon.expect(200, "POST", `/v1/${space}/workers/w/pause`, {until})).state, "pause");
  await advance("59s");
  assert.deepEqual(await claim(space), []);
  await advance("2s");
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/workers/w`)).state, "run");
  assert.equal((await claim(space)).length, 1);
});

test("a unique key is free again when its time is over", async () => {
  const space = newSpace();
  const unique = { key: "k", for: "1h" };
  assert.equal((await emit(space, {unique})).status, 201);
  const [{id, token}] = await claim(space);
  await daemon.expect(200, "POST", `/v1/${space}/events/${id}/complete`, {token});
  await advance("59m");
  assert.equal((await emit(space, {unique})).status, 200);
  await advance("2m");
  assert.equal((await emit(space, {unique})).status, 201);
});

test("history is kept for the retention", async () => {
  const space = newSpace();
  await daemon.expect(201, "PUT", `/v1/${space}/workers/w`, {retention: "1h"});
  await emit(space);
  const [{id, token}] = await claim(space);
  await daemon.expect(200, "POST", `/v1/${space}/events/${id}/complete`, {token});
  await advance("59m");
  await daemon.expect(200, "GET", `/v1/${space}/history/${id}`);
  await advance("2h");
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/history/${id}`);
});

test("a rate lets no more begin than it says", async () => {
  const space = newSpace();
  await daemon.expect(201, "PUT", `/v1/${space}/workers/w`, {rate: "3/m"});
  for (let i = 0; i < 10; ++i) await emit(space);
  let begun = (await claim(space, {lock: "1d"})).length;
  assert.ok(begun <= 3, `${begun} at once`);
  for (let step = 1; step <= 6; ++step) {
    await advance("20s");
    begun += (await claim(space, {lock: "1d"})).length;
    assert.ok(begun <= 3 + step, `${begun} within ${step * 20} seconds`);
  }
  assert.ok(begun >= 6, `${begun} have begun`);
});

test("retries wait longer by the factor, up to the longest", async () => {
  const space = newSpace();
  await emit(space, {retry: {delay: "10s", factor: 3, max_delay: "1m", max: 3}});
  const waits = [];
  for (let i = 0; i < 4; ++i) {
    const [{id, token}] = await claim(space, {lock: "1d"});
    const now = await advance("0s");
    await daemon.expect(200, "POST", `/v1/${space}/events/${id}/fail`, {token, error: "no"});
    const event = await daemon.expect(200, "GET", `/v1/${space}/events/${id}`);
    if (event.state === "dead") break;
    waits.push((Date.parse(event.delay_until) - now) / 1_000);
    await advance("61s");
  }
  assert.deepEqual(waits, [10, 30, 60]);
});
