// /v1/{space}/stream
import assert from "node:assert/strict";
import {test} from "node:test";

import {Daemon, newSpace, scratch, until} from "./daemon.mjs";
import {Listener} from "./listener.mjs";
import {serve} from "./push_server.mjs";

const daemon = await Daemon.shared();

test("the life of an event is told, in order", async (t) => {
  const space = newSpace();
  const listener = await Listener.open(t, daemon, `/v1/${space}/stream`);
  assert.deepEqual([listener.status, listener.type], [200, "text/event-stream"]);
  const {id} = await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w", retry: {delay: "0s", max: 1}});
  const claim = async () => (await daemon.expect(200, "POST", `/v1/${space}/workers/w/claim`, {wait: "5s"})).items[0];
  await daemon.expect(200, "POST", `/v1/${space}/events/${id}/fail`, {token: (await claim()).token, error: "no"});
  await daemon.expect(200, "POST", `/v1/${space}/events/${id}/complete`, {token: (await claim()).token});
  await until("the end", () => listener.states("event").includes("completed"));
  const states = listener.states("event");
  assert.deepEqual([states[0], states[1], states[2], states.at(-1)], ["ready", "running", "failed", "completed"]);
  assert.ok(listener.changes.every((each) => each.name === "w" && each.id === id));
  assert.deepEqual(
      listener.changes.map((each) => each.cursor), listener.changes.map((each) => each.cursor).slice().sort(),
      "cursors sort");
});

test("every part tells what changes", async (t) => {
  const space = newSpace();
  const at = (path) => `/v1/${space}/${path}`;
  const server =
      await serve(t, ({json}) => ({json: json.op === "init" ? {state: 0} : {state: json.state + 1, reply: 1}}));
  const listener = await Listener.open(t, daemon, at("stream"));
  await daemon.expect(201, "PUT", at("workers/w"), {rate: "5/s"});
  await daemon.expect(200, "POST", at("workers/w/pause"), {});
  await daemon.expect(200, "POST", at("workers/w/unpause"), {});
  await daemon.expect(201, "PUT", at("kinds/k"), {url: server.url});
  for (let i = 0; i < 2; ++i) await daemon.expect(200, "POST", at("actors/k/a/call"), 1);
  await daemon.expect(201, "PUT", at("debouncers/d"), {quiet: "5ms"});
  await daemon.expect(202, "POST", at("debouncers/d/keys/key"), 1);
  await daemon.expect(201, "PUT", at("schedules/s"), {cron: "0 0 1 1 *", worker: "v"});
  await daemon.expect(200, "POST", at("schedules/s/run"));
  await daemon.expect(201, "PUT", at("partitions/p"), {types: {t: {}}});
  await daemon.expect(201, "POST", at("partitions/p/append"), {type: "t", workspace: 1});
  await daemon.expect(204, "DELETE", at("schedules/s"));
  await daemon.expect(204, "DELETE", at("actors/k/a"));
  const told = () => new Set(listener.changes.map((each) => `${each.type} ${each.state}`));
  const wanted = [
    "worker set", "worker paused", "worker unpaused", "actor created", "actor handled", "actor killed", "debouncer set",
    "debouncer waiting", "debouncer fired", "event ready", "schedule set", "schedule removed", "partition set",
    "partition appended"
  ];
  await until("all parts", () => wanted.every((each) => told().has(each)), 10_000)
      .catch(() => assert.deepEqual(wanted.filter((each) => !told().has(each)), []));
});

test("filters let only some through", async (t) => {
  const space = newSpace();
  const all = await Listener.open(t, daemon, `/v1/${space}/stream`);
  const some = await Listener.open(t, daemon, `/v1/${space}/stream?worker=b`);
  await daemon.expect(201, "POST", `/v1/${space}/events`, [{worker: "a"}, {worker: "b"}, {worker: "c"}]);
  await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "b"});
  await all.see(4);
  await some.see(2);
  assert.deepEqual(some.changes.map((each) => each.name), ["b", "b"]);
});

test("Last-Event-ID resumes without loss or repeat", async (t) => {
  const space = newSpace();
  const first = await Listener.open(t, daemon, `/v1/${space}/stream`);
  const emit = (count) =>
      daemon.expect(201, "POST", `/v1/${space}/events`, Array.from({length: count}, () => ({worker: "w"})));
  const ids = [];
  for (let i = 0; i < 10; ++i) ids.push(...(await emit(3)).items.map((each) => each.id));
  await first.see(30);
  assert.deepEqual(first.changes.map((each) => each.id).sort(), ids.slice().sort());
  for (const place of [0, 1, 7, 13, 28]) {
    const again = await Listener.open(t, daemon, `/v1/${space}/stream`, {"Last-Event-ID": first.changes[place].cursor});
    await again.see(29 - place);
    assert.deepEqual(
        again.changes.map((each) => each.cursor), first.changes.slice(place + 1).map((each) => each.cursor));
    assert.equal(again.gaps, 0);
    again.close();
  }
  const last = await Listener.open(t, daemon, `/v1/${space}/stream?after=${first.changes[29].cursor}`);
  await emit(1);
  await last.see(1);
  assert.equal(last.changes.length, 1);
});

test("a client that comes and goes while events flow misses none", async (t) => {
  const space = newSpace();
  let busy = true;
  const ids = [];
  const load = (async () => {
    while (busy && ids.length < 2_000)
      ids.push((await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w"})).id);
  })();
  const opened = await Listener.open(t, daemon, `/v1/${space}/stream?worker=w`);
  const beginning = ids.length;
  let listener = opened;
  const seen = [];
  for (let i = 0; i < 10; ++i) {
    await listener.see(10);
    listener.close();
    const got = listener.changes.slice();
    seen.push(...got.map((each) => each.id));
    listener = await Listener.open(t, daemon, `/v1/${space}/stream?worker=w`, {"Last-Event-ID": got.at(-1).cursor});
  }
  busy = false;
  await load;
  await until("the last", () => listener.changes.some((each) => each.id === ids.at(-1)));
  seen.push(...listener.changes.map((each) => each.id));
  assert.equal(new Set(seen).size, seen.length, "none twice");
  const expected = ids.slice(ids.indexOf(seen[0]));
  assert.ok(ids.indexOf(seen[0]) <= beginning + 1);
  assert.deepEqual(seen, expected);
});

test("cursors stay good across kill -9", async (t) => {
  const own = await Daemon.start(t, {store: `lmdb:${scratch(t)}`});
  const first = await Listener.open(t, own, "/v1/a/stream");
  for (let i = 0; i < 5; ++i) await own.expect(201, "POST", "/v1/a/events", {worker: "w"});
  await first.see(5);
  await own.kill();
  await own.restart();
  await own.expect(201, "POST", "/v1/a/events", {worker: "w"});
  const again = await Listener.open(t, own, "/v1/a/stream", {"Last-Event-ID": first.changes[1].cursor});
  await again.see(4);
  assert.deepEqual(
      again.changes.slice(0, 3).map((each) => each.cursor), first.changes.slice(2).map((each) => each.cursor));
});

test("what is no cursor is refused, and one from elsewhere is a gap", async (t) => {
  const space = newSpace();
  for (const cursor of ["nonsense", "x".repeat(32), "zz"]) {
    const answer = await daemon.get(`/v1/${space}/stream?after=${cursor}`);
    assert.equal(answer.status, 400, cursor);
  }
  const other = await Daemon.start(t);
  const old = await Listener.open(t, other, "/v1/a/stream");
  await other.expect(201, "POST", "/v1/a/events", {worker: "w"});
  const [{cursor}] = await old.see(1);
  const lost = await Listener.open(t, daemon, `/v1/${space}/stream`, {"Last-Event-ID": cursor});
  await until("it is told of the gap", () => lost.gaps > 0, 5_000);
});

test("a daemon that stops ends its streams", async (t) => {
  const own = await Daemon.start(t);
  const listener = await Listener.open(t, own, "/v1/a/stream");
  const began = performance.now();
  assert.equal((await own.stop()).code, 0);
  assert.ok(performance.now() - began < 5_000, `it took ${performance.now() - began} ms`);
  await until("the end", () => listener.ended);
});

test("a listener that does not read misses nothing, and holds up nobody", async (t) => {
  const space = newSpace();
  const listener = await Listener.open(t, daemon, `/v1/${space}/stream`);
  listener.request.socket.pause();
  const ids = [];
  for (let i = 0; i < 10; ++i) {
    const made = await daemon.expect(201, "POST", `/v1/${space}/events`, Array(1_000).fill({worker: "w"}));
    ids.push(...made.items.map((each) => each.id));
  }
  listener.request.socket.resume();
  await listener.see(ids.length);
  assert.deepEqual(listener.changes.map((each) => each.id).sort(), ids.sort());
});

test("a listener at one daemon hears what another does to the same store", async (t) => {
  const store = `lmdb:${scratch(t)}`;
  const [one, two] = [await Daemon.start(t, {store}), await Daemon.start(t, {store})];
  const listener = await Listener.open(t, two, "/v1/a/stream");
  const {id} = await one.expect(201, "POST", "/v1/a/events", {worker: "w"});
  assert.equal((await listener.see(1))[0].id, id);
});
