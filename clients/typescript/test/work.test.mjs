import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { GiveUp, PerdureError, RetryLater } from "perdure";
import { daemon, signal, startListening, test } from "./daemon.mjs";

const events = (count, worker = "w") => Array.from({ length: count }, (_, i) => ({ worker, value: i }));

test("all events are worked on, never more at once than asked for, and settled in batches", async (t) => {
  const at = await daemon(t);
  let settles = 0;
  const counting = at.client({
    fetch: (url, init) => {
      if (url.endsWith("/settle")) ++settles;
      return fetch(url, init);
    },
  });
  const emitted = await counting.emitMany(events(500));
  const stop = new AbortController();
  const seen = new Set();
  let running = 0;
  let most = 0;
  const worked = counting.work(
    "w",
    async ({ value }) => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      --running;
      seen.add(value);
      if (seen.size === 500) stop.abort();
      return value * 2;
    },
    { concurrency: 50, signal: stop.signal },
  );
  await worked;
  assert.equal(seen.size, 500);
  assert.ok(most <= 50 && most > 1, `${most} at once`);
  assert.ok(settles < 250, `${settles} requests for 500 events`);
  const counts = (await counting.workers.get("w")).counts;
  assert.deepEqual([counts.total, counts.running, counts.dead], [0, 0, 0]);
  assert.equal((await counting.history(emitted[21].id)).result, 42);
});

test("an event that is emitted while a worker waits is worked on at once", async (t) => {
  const client = (await daemon(t)).client();
  const stop = new AbortController();
  const worked = client.work("w", ({ value }) => value + 1, { signal: stop.signal });
  const { id } = await client.emit("w", 1);
  assert.equal((await client.history(id, { wait: "20s" })).result, 2);
  stop.abort();
  await worked;
});

test("what a handler throws decides what becomes of the event", async (t) => {
  const at = await daemon(t, { args: ["--test-clock"] });
  const client = at.client();
  const told = [];
  const stop = new AbortController();
  const worked = client.work(
    "w",
    ({ value, attempt }) => {
      if (value === "give up") throw new GiveUp("never");
      if (value === "bigint") return 1n;
      if (value === "huge") return "x".repeat(9 << 20);
      if (value === "later" && attempt === 1) throw new RetryLater("soon", "1s");
      return "fine";
    },
    { signal: stop.signal, onError: (error) => told.push(error.message) },
  );
  const once = { retry: { max: 0 } };
  const [later, dead, bigint, huge, fine] = await client.emitMany([
    { worker: "w", value: "later" },
    { worker: "w", value: "give up" },
    { worker: "w", value: "bigint", ...once },
    { worker: "w", value: "huge", ...once },
    { worker: "w", value: "fine" },
  ]);
  assert.equal((await client.history(fine.id, { wait: "20s" })).result, "fine");
  const ended = async (id) => {
    for (;;) {
      const event = await client.event(id);
      if (event.state === "dead" || event.state === "scheduled") return event;
    }
  };
  assert.equal((await ended(dead.id)).last_error, "never");
  assert.match((await ended(bigint.id)).last_error, /BigInt/);
  assert.match((await ended(huge.id)).last_error, /large|MiB|bytes/i);
  assert.equal((await ended(later.id)).state, "scheduled");
  await client.system.advanceClock("2s");
  assert.equal((await client.history(later.id, { wait: "20s" })).attempts, 2);
  assert.ok(told.includes("never") && told.includes("soon"));
  stop.abort();
  await worked;
});

test("a claim is extended while its handler runs, and its end is waited for when the worker stops", async (t) => {
  const at = await daemon(t);
  let extended = signal();
  let count = 0;
  const client = at.client({
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (url.endsWith("/settle") && JSON.parse(init.body).extend && ++count === 5) extended.resolve();
      return response;
    },
  });
  const { id } = await client.emit("w", 1);
  const stop = new AbortController();
  const worked = client.work(
    "w",
    async (_event, job) => {
      stop.abort();
      // Longer than the lock.
      await extended.promise;
      return job.signal.aborted ? "lost" : "held";
    },
    { lock: "300ms", signal: stop.signal },
  );
  await worked;
  const ended = await client.history(id);
  assert.deepEqual([ended.result, ended.attempts], ["held", 1]);
});

test("a handler is told when its claim is lost, and what it returns then has no effect", async (t) => {
  const client = (await daemon(t)).client();
  const { id } = await client.emit("w", 1);
  const stop = new AbortController();
  const worked = client.work(
    "w",
    async (_event, job) => {
      await client.cancel(id, { force: true });
      await once(job.signal, "abort");
      stop.abort();
      return "too late";
    },
    { lock: "200ms", signal: stop.signal },
  );
  await worked;
  assert.equal((await client.history(id)).state, "cancelled");
});

test("a worker goes on by itself when the daemon was killed and is back, and nothing is lost", async (t) => {
  const at = await daemon(t, { store: "lmdb:" });
  const client = at.client();
  await client.emitMany(events(400));
  const stop = new AbortController();
  const done = new Set();
  const middle = signal();
  const worked = client.work(
    "w",
    async ({ value }) => {
      done.add(value);
      if (done.size === 100) middle.resolve();
      await new Promise(setImmediate);
    },
    { concurrency: 20, lock: "2s", wait: "1s", signal: stop.signal },
  );
  await middle.promise;
  await at.kill();
  await at.restart();
  for (;;) {
    const worker = await client.workers.get("w");
    if (worker.counts.total === 0) break;
    assert.equal(worker.counts.dead, 0);
  }
  stop.abort();
  await worked;
  assert.equal(done.size, 400);
});

test("work is refused at once where it can never begin", async (t) => {
  const client = (await daemon(t)).client();
  await assert.rejects(client.work("no such name!", () => {}), (error) => {
    assert.ok(error instanceof PerdureError);
    return error.status === 400;
  });
});

const example = (name) => fileURLToPath(new URL(`../examples/${name}`, import.meta.url));

test("the example of a worker works and stops when it is told to", async (t) => {
  const at = await daemon(t);
  const client = at.client({ space: "default" });
  const child = spawn(process.execPath, [example("worker.mjs")], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, PERDURE_URL: at.url },
  });
  const ended = once(child, "exit");
  const lines = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  const { id } = await client.emit("mail", { to: "ann@example.org" });
  assert.equal(typeof (await client.history(id, { wait: "20s" })).result.sent, "string");
  child.kill("SIGTERM");
  assert.deepEqual(await ended, [0, null]);
  assert.deepEqual(lines, ["waiting for mail", "to ann@example.org, attempt 1", "stopped"]);
});

test("the example of a counter registers itself and counts", async (t) => {
  const at = await daemon(t);
  const counter = await startListening(process.execPath, [example("counter.mjs")], { PERDURE_URL: at.url });
  t.after(() => counter.stop());
  const client = at.client({ space: "default" });
  assert.equal(await client.actors.call("counter", "visits", { add: 99 }), 99);
  assert.equal(await client.actors.call("counter", "visits", { add: 1 }), 100);
  assert.deepEqual((await client.claim("announce"))[0].value, { sum: 100 });
  await assert.rejects(client.actors.call("counter", "visits", "one"), /NUMBER/);
});
