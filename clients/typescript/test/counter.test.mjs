import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Perdure } from "perdure";
import { daemon, signal, startListening } from "./daemon.mjs";

const plain = fileURLToPath(new URL("../examples/counter_plain.mjs", import.meta.url));

test("1,000 concurrent calls count to 1,000 exactly, though the daemon is killed in the middle", async (t) => {
  const calls = 1_000;
  const counter = await startListening(process.execPath, [plain, "0"]);
  t.after(() => counter.stop());
  const at = await daemon(t, { store: "lmdb:" });
  const client = at.client({ retries: 200 });
  await client.kinds.set("counter", { url: counter.url });

  const middle = signal();
  let replied = 0;
  const replies = Array.from({ length: calls }, async () => {
    const reply = await client.actors.call("counter", "visits", { add: 1 }, { timeout: "20s" });
    if (++replied === 300) middle.resolve();
    return reply;
  });
  const all = Promise.all(replies);
  await Promise.race([middle.promise, all]);
  await at.kill();
  const before = replied;
  await at.restart();

  const sorted = (await all).sort((a, b) => a - b);
  t.diagnostic(`${before} replies before the end of the daemon`);
  assert.ok(before >= 300 && before < calls, `${before} replies came before the daemon was killed`);
  assert.equal(await client.actors.state("counter", "visits"), calls);
  assert.deepEqual(sorted, Array.from({ length: calls }, (_, i) => i + 1), "each call has its own number");
});

test("a call that is repeated by another client with the same key gets the same reply", async (t) => {
  const counter = await startListening(process.execPath, [plain, "0"]);
  t.after(() => counter.stop());
  const at = await daemon(t, { store: "lmdb:" });
  const client = at.client();
  await client.kinds.set("counter", { url: counter.url });
  const key = { idempotencyKey: "once" };
  assert.equal(await client.actors.call("counter", "a", { add: 5 }, key), 5);
  await at.kill();
  await at.restart();
  const other = new Perdure({ url: at.url, space: "test" });
  assert.equal(await other.actors.call("counter", "a", { add: 5 }, key), 5);
  assert.equal(await other.actors.call("counter", "a", { add: 1 }), 6);
});
