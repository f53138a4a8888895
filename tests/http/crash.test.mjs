// Nothing that was acknowledged is lost: by kill -9, by SIGTERM under load, and with two daemons on one store
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {test} from "node:test";

import {Daemon, scratch, until} from "./daemon.mjs";
import {serve} from "./push_server.mjs";

/// Runs `clients` loops of `step(i)` until the daemon is gone; `acknowledged` gets each step that was answered well.
function load(clients, step, acknowledged) {
  let count = 0;
  const loop = async () => {
    for (;;) {
      const i = count++;
      let answer;
      try {
        answer = await step(i);
      } catch (error) {
        if (error.code === "ERR_ASSERTION") throw error;
        return;
      }
      if (answer.status >= 300) return;
      acknowledged.push({i, ...answer});
    }
  };
  return Promise.all(Array.from({length: clients}, loop));
}

const keyed = (i) => ({headers: {"Idempotency-Key": `key ${i}`}});

async function listAll(daemon, path) {
  const items = [];
  let after = "";
  do {
    const page = await daemon.expect(
        200, "GET",
        `${path}${path.includes("?") ? "&" : "?"}limit=1000${after && `&after=${encodeURIComponent(after)}`}`);
    items.push(...page.items);
    after = page.next;
  } while (after !== null);
  return items;
}

/// All kinds of writes at once; what was acknowledged is checked after the end.
async function writeAllKinds(daemon, end) {
  await daemon.expect(201, "PUT", "/v1/a/partitions/p", {types: {shop: {invoice: 1}}});
  await daemon.expect(201, "PUT", "/v1/a/debouncers/d", {quiet: "1h"});
  const emitted = [], appended = [], touched = [], keys = [];
  const loads = [
    load(4, (i) => daemon.post("/v1/a/events", {worker: "w", value: i}), emitted),
    load(4, () => daemon.post("/v1/a/partitions/p/append", {type: "shop", workspace: 1, next: ["invoice"]}), appended),
    load(4, () => daemon.post("/v1/a/debouncers/d/keys/k", 1), touched),
    load(4, (i) => daemon.put(`/v1/a/keys/k${i}`, i), keys),
  ];
  await until("there is load", () => [emitted, appended, touched, keys].every((each) => each.length > 100));
  await end();
  await Promise.all(loads);
  return async () => {
    const stored = new Map((await listAll(daemon, "/v1/a/events?worker=w")).map((each) => [each.id, each.value]));
    for (const {i, json} of emitted) assert.equal(stored.get(json.id), i, "an event that was acknowledged is there");
    const log = await listAll(daemon, "/v1/a/partitions/p/log");
    assert.deepEqual(log.map((each) => each.offset), log.map((_, i) => i + 1), "the log has no gap");
    assert.deepEqual(log.map((each) => each.numbers[0][1]), log.map((_, i) => i + 1), "no number is missing or twice");
    for (const {json} of appended) assert.deepEqual(log[json.offset - 1].numbers[0][1], json.numbers[0]);
    assert.ok(
        (await daemon.expect(200, "GET", "/v1/a/debouncers/d/keys/k")).count >= touched.length,
        "every touch was counted");
    for (const {i} of keys.slice(-200)) assert.equal(await daemon.expect(200, "GET", `/v1/a/keys/k${i}`), i);
  };
}

test(
    "kill -9 in the middle of emits, appends, touches and keys loses nothing acknowledged", {timeout: 120_000},
    async (t) => {
      const daemon = await Daemon.start(t, {store: `lmdb:${scratch(t)}`});
      const check = await writeAllKinds(daemon, () => daemon.kill());
      await daemon.restart();
      await check();
    });

test("SIGTERM under load exits 0 and loses nothing acknowledged", {timeout: 120_000}, async (t) => {
  const daemon = await Daemon.start(t, {store: `lmdb:${scratch(t)}`});
  const polls = Array.from({length: 20}, () => daemon.post("/v1/a/workers/idle/claim", {wait: "5m"}).catch(() => null));
  const check = await writeAllKinds(daemon, async () => {
    const began = performance.now();
    assert.deepEqual(await daemon.stop(), {code: 0, signal: null});
    assert.ok(performance.now() - began < 10_000, `stopping took ${performance.now() - began} ms`);
  });
  for (const answer of await Promise.all(polls))
    assert.ok(answer === null || answer.status === 200 || answer.status === 503, answer?.text);
  await daemon.restart();
  await check();
});

test(
    "a counter counts every call once, although the daemon is killed and calls are repeated", {timeout: 120_000},
    async (t) => {
      const server = await serve(
          t, ({json}) => ({json: json.op === "init" ? {state: 0} : {state: json.state + 1, reply: json.state + 1}}));
      const daemon = await Daemon.start(t, {store: `lmdb:${scratch(t)}`});
      await daemon.expect(201, "PUT", "/v1/a/kinds/counter", {url: server.url, retry: {max: 20}});
      const total = 300;
      const replies = new Map();
      let next = 0;
      const client = async () => {
        while (next < total) {
          const i = next++;
          await until(`call ${i}`, async () => {
            const answer = await daemon.post("/v1/a/actors/counter/c/call?timeout=10s", i, keyed(i)).catch(() => null);
            if (answer?.status === 200) replies.set(i, answer.json.reply);
            return answer?.status === 200;
          }, 60_000);
        }
      };
      const clients = Promise.all(Array.from({length: 32}, client));
      for (const count of [60, 150]) {
        await until("some calls were answered", () => replies.size >= count, 60_000);
        await daemon.kill();
        await daemon.restart();
      }
      await clients;
      assert.deepEqual([...replies.values()].sort((a, b) => a - b), Array.from({length: total}, (_, i) => i + 1));
      assert.equal(await daemon.expect(200, "GET", "/v1/a/actors/counter/c/state"), total);
    });

test("kill -9 in the middle of claims and completions: every event ends once", {timeout: 120_000}, async (t) => {
  const daemon = await Daemon.start(t, {store: `lmdb:${scratch(t)}`});
  const {items} =
      await daemon.expect(201, "POST", "/v1/a/events", Array.from({length: 400}, (_, value) => ({worker: "w", value})));
  const completed = new Map();
  const worker = async () => {
    while (completed.size < items.length) {
      const claim = await daemon.post("/v1/a/workers/w/claim", {max: 5, wait: "200ms", lock: "2s"}).catch(() => null);
      for (const {id, token, value} of claim?.json?.items ?? []) {
        const answer = await daemon.post(`/v1/a/events/${id}/complete`, {token, result: value}).catch(() => null);
        if (answer?.status !== 200) continue;
        assert.ok(!completed.has(id), "no event is completed by two claims");
        completed.set(id, value);
      }
      if ((await daemon.get("/v1/a/workers/w").catch(() => null))?.json?.counts.total === 0) return;
    }
  };
  const workers = Promise.all(Array.from({length: 8}, worker));
  await until("some are done", () => completed.size > 100);
  await daemon.kill();
  await daemon.restart();
  await workers;
  const seen = await daemon.expect(200, "GET", "/v1/a/workers/w");
  assert.deepEqual([seen.counts.total, seen.completed], [0, items.length]);
  for (const [id, value] of completed)
    assert.equal((await daemon.expect(200, "GET", `/v1/a/history/${id}`)).result, value);
});

test("two daemons on one directory share the work", {timeout: 60_000}, async (t) => {
  const store = `lmdb:${scratch(t)}`;
  const [one, two] = [await Daemon.start(t, {store}), await Daemon.start(t, {store})];
  const waiting = two.expect(200, "POST", "/v1/a/workers/w/claim", {wait: "20s", max: 1});
  const {id} = await one.expect(201, "POST", "/v1/a/events", {worker: "w"});
  const {items: [{token}]} = await waiting;
  await one.expect(200, "POST", `/v1/a/events/${id}/complete`, {token});
  assert.equal((await two.expect(200, "GET", `/v1/a/history/${id}`)).state, "completed");
  const seen = new Map();
  const server = await serve(t, ({json}) => void seen.set(json.id, (seen.get(json.id) ?? 0) + 1));
  await one.expect(201, "PUT", "/v1/a/workers/pushed", {url: server.url});
  await until("both serve it", async () => (await two.expect(200, "GET", "/v1/a/workers/pushed")).served_by === 2);
  await two.expect(201, "POST", "/v1/a/events", Array.from({length: 200}, () => ({worker: "pushed"})));
  await one.kill();
  await until(
      "the other does what is left",
      async () => (await two.expect(200, "GET", "/v1/a/workers/pushed")).completed === 200);
  assert.equal(seen.size, 200);
});

test("a thousand idle polls cost little, and all wake", {timeout: 60_000}, async (t) => {
  const daemon = await Daemon.start(t);
  const of = (name) =>
      Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${daemon.child.pid}/status`, "utf8"))[1]);
  const ticks = () => readFileSync(`/proc/${daemon.child.pid}/stat`, "utf8")
                          .split(") ")[1]
                          .split(" ")
                          .slice(11, 13)
                          .reduce((sum, each) => sum + Number(each), 0);
  await daemon.expect(200, "POST", "/v1/a/workers/w/claim", {});
  const [memory, threads] = [of("VmRSS"), of("Threads")];
  const polls =
      Array.from({length: 1_000}, () => daemon.expect(200, "POST", "/v1/a/workers/w/claim", {wait: "1m", max: 1}));
  const connected = () => {
    const local = `:${daemon.port.toString(16).toUpperCase().padStart(4, "0")}`;
    const rows =
        readFileSync(`/proc/${daemon.child.pid}/net/tcp`, "utf8").split("\n").map((line) => line.trim().split(/\s+/));
    return rows.filter((row) => row[1]?.endsWith(local) && row[3] === "01").length;
  };
  await until("all wait", () => connected() >= 1_000);
  for (let i = 0; i < 20; ++i) await daemon.expect(200, "GET", "/v1/_/status");
  const idle = ticks();
  // The one thing here that takes time by itself: idleness.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const spent = ticks() - idle;
  assert.ok(spent <= 10, `${spent} ticks of CPU in a second of idleness`);
  assert.ok(of("Threads") - threads <= 4, `${of("Threads") - threads} more threads`);
  const cost = (of("VmRSS") - memory) / 1024;
  assert.ok(cost < 50, `${cost} MiB for a thousand polls`);
  await daemon.expect(201, "POST", "/v1/a/events", Array(1_000).fill({worker: "w"}));
  const ids = new Set((await Promise.all(polls)).flatMap(({items}) => items.map((each) => each.id)));
  assert.equal(ids.size, 1_000);
});

test("ten times too many requests are answered by 429, and completions go on", {timeout: 60_000}, async (t) => {
  const daemon = await Daemon.start(t, {store: `lmdb:${scratch(t)}`});
  await daemon.expect(201, "POST", "/v1/a/events", {worker: "done"});
  const {items: [{id, token}]} = await daemon.expect(200, "POST", "/v1/a/workers/done/claim", {});
  const answers = Array.from({length: 4_000}, () => daemon.post("/v1/a/events", {worker: "w"}));
  const done = await daemon.post(`/v1/a/events/${id}/complete`, {token});
  assert.equal(done.status, 200);
  const statuses = (await Promise.all(answers)).map((each) => each.status);
  const taken = statuses.filter((each) => each === 201).length;
  assert.equal(taken + statuses.filter((each) => each === 429).length, 4_000);
  assert.equal((await daemon.expect(200, "GET", "/v1/a/workers/w")).counts.total, taken);
});
