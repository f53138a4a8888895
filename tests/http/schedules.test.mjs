// /v1/{space}/schedules, and time in tests
import assert from "node:assert/strict";
import {test} from "node:test";

import {Daemon, newSpace} from "./daemon.mjs";

const daemon = await Daemon.shared({args: ["--test-clock"]});

const advance = (by) => daemon.expect(200, "POST", "/v1/_/clock", {advance: by});
const claim = async (space, worker = "w") =>
    (await daemon.expect(200, "POST", `/v1/${space}/workers/${worker}/claim`, {max: 1000})).items;

test("a schedule is put, read back, put back, listed and removed", async () => {
  const space = newSpace();
  const made =
      await daemon.expect(201, "PUT", `/v1/${space}/schedules/tick`, {every: "Daily", worker: "w", value: {a: 1}});
  assert.equal(made.every, "Daily");
  assert.notEqual(made.next, null);
  await advance("0s");  // It is due at once, and changes by that.
  const read = await daemon.expect(200, "GET", `/v1/${space}/schedules/tick`);
  assert.deepEqual(await daemon.expect(200, "PUT", `/v1/${space}/schedules/tick`, read), read);
  await daemon.expect(
      201, "PUT", `/v1/${space}/schedules/tock`,
      {cron: "*/5 * * * *", timezone: "Europe/Berlin", worker: "w", missed: "all", jitter: "2s"});
  const first = await daemon.expect(200, "GET", `/v1/${space}/schedules?limit=1`);
  const second = await daemon.expect(200, "GET", `/v1/${space}/schedules?limit=1&after=${first.next}`);
  assert.deepEqual([first.items[0].name, second.items[0].name], ["tick", "tock"]);
  assert.deepEqual(
      [second.items[0].cron, second.items[0].timezone, second.items[0].missed, second.items[0].jitter],
      ["*/5 * * * *", "Europe/Berlin", "all", "2s"]);
  await daemon.expect(204, "DELETE", `/v1/${space}/schedules/tick`);
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/schedules/tick`);
});

test("the intervals have the names of the seed, in any case", async () => {
  const space = newSpace();
  for (const every of ["Daily", "weekly", "FORTNIGHTLY", "Every 12hrs", "every 1HR", "Every 1min"])
    await daemon.expect(201, "PUT", `/v1/${space}/schedules/s${every.length}${every[0]}`, {every, worker: "w"});
});

test("impossible schedules are refused and nothing is stored", async () => {
  const space = newSpace();
  const bad = [
    {},
    {every: "Daily"},
    {worker: "w"},
    {every: "Sometimes", worker: "w"},
    {every: "Daily", cron: "* * * * *", worker: "w"},
    {cron: "* * * *", worker: "w"},
    {cron: "61 * * * *", worker: "w"},
    {cron: "", worker: "w"},
    {cron: "* * * * *", timezone: "Mars/Olympus", worker: "w"},
    {every: 5, worker: "w"},
    {every: "Daily", worker: "w", missed: "some"},
    {every: "Daily", worker: "w", jitter: "x"},
    {every: "Daily", worker: "no name"},
    {every: "Daily", worker: "w", colour: 1},
    [],
    null,
    {cron: "0 0 31 2 *", worker: "w"},
  ];
  for (const body of bad) await daemon.refuse(400, "invalid_argument", "PUT", `/v1/${space}/schedules/s`, body);
  await daemon.refuse(
      400, "invalid_argument", "PUT", `/v1/${space}/schedules/no%20name`, {every: "Daily", worker: "w"});
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/schedules`)).items, []);
  for (const action of ["pause", "unpause", "run"])
    await daemon.refuse(404, "not_found", "POST", `/v1/${space}/schedules/none/${action}`);
});

test("a schedule fires when its time has come, and not while it is paused", async () => {
  const space = newSpace();
  await daemon.expect(201, "PUT", `/v1/${space}/schedules/s`, {every: "Every 1hr", worker: "w", value: "v"});
  await advance("61m");
  const events = await claim(space);
  // An interval begins with its first run.
  assert.deepEqual(events.map((each) => each.value), ["v", "v"]);
  for (const {id, token} of events) await daemon.expect(200, "POST", `/v1/${space}/events/${id}/complete`, {token});
  const paused = await daemon.expect(200, "POST", `/v1/${space}/schedules/s/pause`, {reason: "holiday", by: "ada"});
  assert.deepEqual([paused.paused.reason, paused.paused.by], ["holiday", "ada"]);
  await advance("3h");
  assert.deepEqual(await claim(space), []);
  assert.equal((await daemon.expect(200, "POST", `/v1/${space}/schedules/s/unpause`)).paused, null);
  const {id} = await daemon.expect(200, "POST", `/v1/${space}/schedules/s/run`);
  assert.ok((await claim(space)).some((each) => each.id === id));
  const seen = await daemon.expect(200, "GET", `/v1/${space}/schedules/s`);
  assert.notEqual(seen.last, null);
  await daemon.expect(204, "DELETE", `/v1/${space}/schedules/s`);
  for (const body of [{colour: 1}, [], {reason: 1}])
    await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/schedules/s/pause`, body);
});

test("actions without fields refuse fields", async () => {
  const space = newSpace();
  await daemon.expect(201, "PUT", `/v1/${space}/schedules/s`, {every: "Daily", worker: "w"});
  for (const action of ["unpause", "run"])
    await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/schedules/s/${action}`, {colour: 1});
  for (const action of ["hold", "release"])
    await daemon.refuse(400, "invalid_argument", "POST", `/v1/_/${action}`, {colour: 1});
});

test("the clock stands still until it is moved", async () => {
  const before = (await daemon.expect(200, "GET", "/v1/_/status")).now;
  assert.equal((await daemon.expect(200, "GET", "/v1/_/status")).now, before);
  assert.equal(Date.parse((await advance("5m")).now) - Date.parse(before), 300_000);
  for (const body of [undefined, {}, {advance: "x"}, {advance: "-1s"}, {advance: "1s", colour: 1}, []])
    await daemon.refuse(400, "invalid_argument", "POST", "/v1/_/clock", body);
});

test("without --test-clock the clock is not moved", async (t) => {
  const other = await Daemon.start(t);
  await other.refuse(400, "invalid_argument", "POST", "/v1/_/clock", {advance: "5m"});
});

test("an event that always fails is attempted at 0, 5 and 10 minutes, and is dead then", async () => {
  const space = newSpace();
  const began = performance.now();
  const start = Date.parse((await daemon.expect(200, "GET", "/v1/_/status")).now);
  const {id} = await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w"});
  const minutes = [];
  for (let minute = 0; minute <= 15; ++minute) {
    for (const each of await claim(space)) {
      minutes.push(minute);
      await daemon.expect(200, "POST", `/v1/${space}/events/${each.id}/fail`, {token: each.token, error: "always"});
    }
    await advance("1m");
  }
  assert.deepEqual(minutes, [0, 5, 10]);
  const dead = await daemon.expect(200, "GET", `/v1/${space}/events/${id}`);
  assert.deepEqual([dead.state, dead.attempts], ["dead", 3]);
  assert.deepEqual(dead.failures.map((each) => Math.round((Date.parse(each.at) - start) / 60_000)), [0, 5, 10]);
  assert.ok(performance.now() - began < 5_000);
});

test("a claim is lost when its lock has run out", async () => {
  const space = newSpace();
  const {id} = await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w"});
  const [{token}] = await claim(space);
  await advance("31s");
  const [again] = await claim(space);
  assert.equal(again.id, id);
  await daemon.refuse(409, "stale_token", "POST", `/v1/${space}/events/${id}/complete`, {token});
});
