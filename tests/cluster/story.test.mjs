// Everything that perdure does, on stores on servers across a network: it is there after a restart, daemons share it,
// and when one of them dies the others go on.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {readFileSync} from "node:fs";
import {test} from "node:test";

import {Daemon, until} from "../http/daemon.mjs";
import {serve} from "../http/push_server.mjs";
import {answered, results, said, Sessions} from "../http/sessions.mjs";

import {engines} from "./engines.mjs";
import {directory, perdure} from "./servers.mjs";

/// Within that a session is taken for dead that is silent: its TTL, and a second.
const deathLimit = 6_000;

const count = ({json}) => ({
  json: json.op === "init" ? {state: 0} : {state: json.state + json.message.add, reply: json.state + json.message.add}
});

async function claimOne(daemon, worker, wait = "20s") {
  const {items} = await daemon.expect(200, "POST", `/v1/a/workers/${worker}/claim`, {max: 1, wait, lock: "30s"});
  assert.equal(items.length, 1, `an event of ${worker}`);
  return items[0];
}

/// Does one of everything; returns what checks, on any daemon of the store, that it is still there.
async function doEverything(t, daemon) {
  const {id: pulled} = await daemon.expect(201, "POST", "/v1/a/events", {worker: "pull", value: {n: 1}});
  const claimed = await claimOne(daemon, "pull");
  assert.deepEqual([claimed.id, claimed.value, claimed.attempt], [pulled, {n: 1}, 1]);
  await daemon.expect(200, "POST", `/v1/a/events/${pulled}/complete`, {token: claimed.token, result: "done"});

  const hook = await serve(t, () => ({json: {result: "pushed"}}));
  await daemon.expect(201, "PUT", "/v1/a/workers/push", {url: hook.url});
  const {id: pushed} = await daemon.expect(201, "POST", "/v1/a/events", {worker: "push", value: 5});
  const history = await daemon.expect(200, "GET", `/v1/a/history/${pushed}?wait=20s`);
  assert.deepEqual([history.state, hook.seen.length, hook.seen[0].json.value], ["completed", 1, 5]);

  const out = `${directory(t)}/worked`;
  const {id: worked} = await daemon.expect(201, "POST", "/v1/a/events", {worker: "shell", value: {to: "ann"}});
  const worker = spawn(
      process.env.PERDURE_BINARY,
      ["work", "shell", "--space", "a", "--url", daemon.url, "--", "sh", "-c", `cat > '${out}'`], {stdio: "ignore"});
  t.after(() => worker.kill("SIGKILL"));
  assert.equal((await daemon.expect(200, "GET", `/v1/a/history/${worked}?wait=20s`)).state, "completed");
  assert.deepEqual(JSON.parse(readFileSync(out, "utf8")), {to: "ann"});
  worker.kill("SIGTERM");

  const behaviour = await serve(t, count);
  await daemon.expect(201, "PUT", "/v1/a/kinds/counter", {url: behaviour.url, retry: {max: 20, delay: "100ms"}});
  for (const reply of [2, 4])
    assert.deepEqual(await daemon.expect(200, "POST", "/v1/a/actors/counter/c/call?timeout=20s", {add: 2}), {reply});

  await daemon.expect(201, "PUT", "/v1/a/debouncers/d", {quiet: "300ms", payload: "last", worker: "fired"});
  for (const payload of [1, 2]) await daemon.expect(202, "POST", "/v1/a/debouncers/d/keys/k", payload);
  const fired = await claimOne(daemon, "fired");
  assert.deepEqual([fired.value.key, fired.value.payload, fired.value.count], ["k", 2, 2]);
  await daemon.expect(200, "POST", `/v1/a/events/${fired.id}/complete`, {token: fired.token});

  await daemon.expect(201, "PUT", "/v1/a/partitions/p", {types: {shop: {invoice: 1, order: 1000}}});
  const entry = {type: "shop", workspace: 7, next: ["invoice", "order"], payload: {sum: 5}};
  assert.deepEqual(
      await daemon.expect(201, "POST", "/v1/a/partitions/p/append", entry), {offset: 1, numbers: [1, 1000]});

  const schedule =
      await daemon.expect(201, "PUT", "/v1/a/schedules/tick", {cron: "0 8 * * 1-5", worker: "ticked", value: 1});
  await daemon.expect(200, "POST", "/v1/a/schedules/tick/run");
  const ticked = await claimOne(daemon, "ticked");
  await daemon.expect(200, "POST", `/v1/a/events/${ticked.id}/complete`, {token: ticked.token});

  const made = await daemon.put("/v1/a/keys/stock", {apples: 10});
  const stale = {headers: {"If-Match": made.headers.etag}};
  const changed = await daemon.put("/v1/a/keys/stock", {apples: 9}, stale);
  assert.deepEqual([made.status, changed.status], [201, 200]);
  assert.equal((await daemon.put("/v1/a/keys/stock", {apples: 8}, stale)).status, 412);

  const transaction = {
    check: [{key: "stock", version: changed.headers.etag.slice(1, -1)}],
    set: [{key: "stock", value: {apples: 7}}],
    emit: [{worker: "later", value: "later"}],
    cast: [{kind: "counter", id: "c", message: {add: 3}}],
    append: [{partition: "p", type: "shop", workspace: 7, next: ["order"]}]
  };
  const keyed = {headers: {"Idempotency-Key": "once"}};
  const done = await daemon.expect(200, "POST", "/v1/a/transact", transaction, keyed);
  assert.deepEqual(done.append, [{offset: 2, numbers: [1001]}]);
  await daemon.refuse(409, "wrong_state", "POST", "/v1/a/transact", transaction);

  return async (other) => {
    const ended = await other.expect(200, "GET", `/v1/a/history/${pulled}`);
    assert.deepEqual([ended.state, ended.result], ["completed", "done"]);
    for (const id of [pushed, worked])
      assert.equal((await other.expect(200, "GET", `/v1/a/history/${id}`)).state, "completed");
    await until(
        "the cast was handled", async () => (await other.expect(200, "GET", "/v1/a/actors/counter/c/state")) === 7);
    const log = (await other.expect(200, "GET", "/v1/a/partitions/p/log?after=0")).items;
    assert.deepEqual(
        log.map(({offset, numbers}) => [offset, numbers]),
        [[1, [["invoice", 1], ["order", 1000]]], [2, [["order", 1001]]]]);
    assert.deepEqual(
        await other.expect(200, "GET", "/v1/a/partitions/p/numbers?workspace=7"), {invoice: 1, order: 1001});
    assert.equal((await other.expect(200, "GET", "/v1/a/schedules/tick")).next, schedule.next);
    assert.equal((await other.expect(200, "GET", "/v1/a/debouncers/d/keys/k")).status, "idle");
    assert.deepEqual(await other.expect(200, "GET", "/v1/a/keys/stock"), {apples: 7});
    assert.deepEqual(await other.expect(200, "POST", "/v1/a/transact", transaction, keyed), done, "the same answer");
    const later = await other.expect(200, "GET", "/v1/a/events?worker=later");
    assert.deepEqual(later.items.map((each) => [each.id, each.value]), [[done.emit[0].id, "later"]]);
  };
}

async function verify(store) {
  const {code, out, err} = await perdure(["verify", "--store", store, "--json"]);
  assert.equal(code, 0, err);
  const {rows, problem_count} = JSON.parse(out);
  assert.ok(rows > 0);
  assert.equal(problem_count, 0);
}

for (const {name, skip, start} of engines) {
  test(`${name}: everything works, and is still there after a restart`, {skip, timeout: 60_000}, async (t) => {
    const {url: store} = await start(t);
    const daemon = await Daemon.start(t, {store});
    assert.match(daemon.said, /new store/);
    const check = await doEverything(t, daemon);
    await check(daemon);
    assert.deepEqual(await daemon.stop(), {code: 0, signal: null});
    await verify(store);
    const again = await Daemon.start(t, {store});
    assert.doesNotMatch(again.said, /new store/);
    await check(again);
    await verify(store);
  });

  test(`${name}: a long transcript is read whole, also by a daemon that follows a dead one`, {skip, timeout: 90_000}, async (t) => {
    const {url: store} = await start(t);
    const world = await Sessions.start(t, {store, args: ["--debounce-seconds", "0"]});
    const transcript = world.transcript();
    const uuids = Array.from({length: 20_000}, (_, i) => `m${i}`);
    transcript.append(...uuids.map((uuid, i) => said(uuid, i, "x".repeat(300))));
    // More than one transaction of etcd has room for.
    transcript.append(
        said("long", 20_001, "x".repeat(2_000_000)),
        answered("call", 20_002, [{type: "tool_use", id: "t", name: "Bash", input: {}}]),
        results("result", 20_003, {tool_use_id: "t", content: "y".repeat(200_000)}));
    assert.ok(transcript.size > 8 << 20);
    await world.start("s", transcript);
    await until("it is being read", async () => (await world.key("s")).status === "running");
    await world.daemon.restart();
    await until(
        "all is read", async () => (await world.session("s")).read.offset === transcript.size, 60_000);
    const messages = await world.messages("s");
    assert.deepEqual(messages.map((each) => each.uuid), [...uuids, "long", "call"]);
    const [long, call] = messages.slice(-2);
    assert.ok(long.cut && long.body.length >= 250_000, `${long.body.length} characters`);
    assert.equal(call.tools[0].output.length, 50_000);
    await verify(store);
  });

  test(
      `${name}: two daemons share the work, and one goes on when the other dies`, {skip, timeout: 60_000},
      async (t) => {
        const {url: store} = await start(t);
        const [one, two] = await Promise.all([Daemon.start(t, {store}), Daemon.start(t, {store})]);

        // What one takes in, the other hands out at once; a claim is as good at either.
        for (let i = 0; i < 30; ++i) {
          const waiting = claimOne(two, "w");
          const {id} = await one.expect(201, "POST", "/v1/a/events", {worker: "w"});
          const {token} = await waiting;
          await one.expect(200, "POST", `/v1/a/events/${id}/complete`, {token});
          assert.equal((await two.expect(200, "GET", `/v1/a/history/${id}`)).state, "completed");
        }
        const made = await one.put("/v1/a/keys/k", 1);
        assert.equal((await two.get("/v1/a/keys/k")).headers.etag, made.headers.etag);

        // Both push. One of them dies with what it works on.
        const held = [];
        const all = new Map();
        let hold = true;
        const server = await serve(t, ({json}) => {
          all.set(json.id, (all.get(json.id) ?? 0) + 1);
          return hold ? new Promise((resolve) => held.push(resolve)) : {};
        });
        await one.expect(201, "PUT", "/v1/a/workers/pushed", {url: server.url, concurrency: 4, timeout: "60s"});
        await until(
            "both serve it", async () => (await two.expect(200, "GET", "/v1/a/workers/pushed")).served_by === 2);
        await one.expect(201, "POST", "/v1/a/events", Array.from({length: 20}, () => ({worker: "pushed"})));
        await until("both work on as many as they may", () => held.length === 8);
        // A counter, called at both: its messages are handled one by one, wherever.
        const behaviour = await serve(t, count);
        await one.expect(201, "PUT", "/v1/a/kinds/counter", {url: behaviour.url, retry: {max: 20, delay: "50ms"}});
        const replies = await Promise.all(Array.from({length: 20}, async (_, i) => {
          const {reply} =
              await[one, two][i % 2].expect(200, "POST", "/v1/a/actors/counter/c/call?timeout=20s", {add: 1});
          return reply;
        }));
        assert.deepEqual(replies.sort((a, b) => a - b), Array.from({length: 20}, (_, i) => i + 1));

        const first = new Set(all.keys());
        await one.kill();
        const died = performance.now();
        hold = false;
        held.forEach((resolve) => resolve({}));
        await until("what the dead one worked on is done again", () => [...all].filter(([, n]) => n > 1).length === 4);
        const freed = performance.now() - died;
        t.diagnostic(`${name}: the claims of a daemon that was killed were taken over after ${freed.toFixed(0)} ms`);
        assert.ok(freed < deathLimit, `${freed} ms`);
        await until(
            "everything is done", async () => (await two.expect(200, "GET", "/v1/a/workers/pushed")).completed === 20);
        assert.equal(all.size, 20);
        for (const [event, times] of all)
          assert.ok(times === 1 || first.has(event), "only what it worked on is done twice");
        assert.equal((await two.expect(200, "POST", "/v1/a/actors/counter/c/call?timeout=20s", {add: 1})).reply, 21);
        assert.equal((await two.expect(200, "GET", "/v1/a/workers/pushed")).served_by, 1);
        await verify(store);
      });
}
