import assert from "node:assert/strict";
import { behaviour, PerdureError, Refused } from "perdure";
import { daemon, serve, test } from "./daemon.mjs";

const account = behaviour("account", {
  init: ({ actor }) => ({ owner: actor.id, balance: 0, waiting: null }),
  call: ({ message, state, from }) => {
    if (message === "wait") return { state: { ...state, waiting: from }, noreply: true };
    if (message === "slow") return { lock: true };
    if (message === "throw") throw new Error("out of order");
    if (message === "balance") return { reply: state.balance };
    if (message.withdraw > state.balance) throw new Refused("not enough money");
    const left = { ...state, balance: state.balance - message.withdraw };
    return {
      state: left,
      reply: left.balance,
      emit: [{ worker: "bank", value: message }],
      cast: [{ kind: "account", id: message.to, message: { deposit: message.withdraw } }],
      touch: [{ debouncer: "statement", key: state.owner, payload: left.balance }],
      append: [{ partition: "book", type: "bank", workspace: 1, next: ["entry"], payload: message }],
    };
  },
  cast: ({ message, state }) => {
    const next = { ...state, balance: state.balance + (message.deposit ?? 0), waiting: null };
    return state.waiting ? { state: next, replies: [{ from: state.waiting, reply: "at last" }] } : { state: next };
  },
  locked: ({ state }) => ({ state: { ...state, balance: state.balance + 1 }, reply: "done under the lock" }),
});

async function bank(t) {
  const client = (await daemon(t)).client();
  const url = await serve(t, account);
  await client.kinds.set("account", { url, retry: { max: 1, delay: "10ms" } });
  await client.debouncers.set("statement", { quiet: "1h" });
  await client.partitions.set("book", { types: { bank: { entry: 1 } } });
  return { client, url };
}

test("a behaviour answers calls and casts, and all that it asks for happens together", async (t) => {
  const { client } = await bank(t);
  await client.actors.castMany("account", "ada", [{ deposit: 50 }, { deposit: 50 }]);
  assert.equal(await client.actors.call("account", "ada", { withdraw: 30, to: "bob" }), 70);
  assert.equal(await client.actors.call("account", "bob", "balance"), 30);
  assert.equal((await client.workers.get("bank")).counts.total, 1);
  assert.equal((await client.debouncers.key("statement", "ada")).status, "waiting");
  assert.deepEqual(await client.partitions.numbers("book", 1), { entry: 1 });
  assert.deepEqual(await client.actors.state("account", "bob"), { owner: "bob", balance: 30, waiting: null });
  assert.equal((await client.actors.get("account", "ada")).mailbox.length, 0);
  assert.deepEqual((await client.actors.list("account", { prefix: "a" })).items, [{ id: "ada" }]);
});

test("a message that is refused is not tried again, and one that fails is a dead letter in the end", async (t) => {
  const { client } = await bank(t);
  await assert.rejects(client.actors.call("account", "ada", { withdraw: 1, to: "bob" }), (error) => {
    assert.ok(error instanceof PerdureError);
    assert.equal(error.code, "invalid_argument");
    assert.match(error.message, /not enough money/);
    return true;
  });
  await assert.rejects(client.actors.call("account", "ada", "throw"), (error) => {
    assert.deepEqual([error.status, error.code], [502, "handler_failed"], error.message);
    assert.match(error.message, /out of order/);
    return true;
  });
  assert.equal(await client.actors.call("account", "ada", "balance"), 0);
  await assert.rejects(client.actors.info("account", "ada", 1).then(() => client.actors.call("account", "ada", null)));
});

test("callers may wait for a later message, and long work runs under the lock", async (t) => {
  const { client } = await bank(t);
  const waiting = client.actors.call("account", "ada", "wait", { timeout: "none" });
  // Its turn comes after that of the call, whenever that is pushed.
  for (;;) {
    const state = await client.actors.get("account", "ada").catch(() => undefined);
    if (state?.state?.waiting) break;
  }
  await client.actors.cast("account", "ada", { deposit: 1 });
  assert.equal(await waiting, "at last");
  assert.equal(await client.actors.call("account", "ada", "slow", { timeout: "30s" }), "done under the lock");
  assert.equal(await client.actors.priority("account", "ada", "balance"), 2);
});

test("actors are killed, and kinds are set, listed and removed", async (t) => {
  const { client, url } = await bank(t);
  await client.actors.cast("account", "a/ü", { deposit: 1 });
  assert.equal(await client.actors.call("account", "a/ü", "balance"), 1);
  await client.actors.kill("account", "a/ü");
  await assert.rejects(client.actors.state("account", "a/ü"), (error) => error.status === 404);
  assert.equal((await client.kinds.get("account")).url, url);
  assert.deepEqual((await client.kinds.list()).items.map((each) => each.kind), ["account"]);
  await client.kinds.rm("account");
  assert.deepEqual((await client.kinds.list()).items, []);
});

test("a state of an older schema is upgraded by the behaviour", async (t) => {
  const client = (await daemon(t)).client();
  const plain = behaviour("note", { init: () => "text", call: ({ state }) => ({ state, reply: state }) });
  const first = await serve(t, plain);
  await client.kinds.set("note", { url: first });
  assert.equal(await client.actors.call("note", "n", 1), "text");
  const second = await serve(
    t,
    behaviour("note", {
      init: () => ({ text: "text" }),
      upgrade: ({ state, schema, toSchema }) => ({ text: state, from: schema, to: toSchema }),
      call: ({ state }) => ({ reply: state }),
    }),
  );
  await client.kinds.set("note", { url: second, schema: 2 });
  assert.deepEqual(await client.actors.call("note", "n", 2), { text: "text", from: 1, to: 2 });
});
