import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { Perdure } from "perdure";
import { daemon, signal, startListening, test } from "./daemon.mjs";

const plain = fileURLToPath(new URL("../examples/counter_plain.mjs", import.meta.url));

test("1,000 concurrent calls count to 1,000 exactly, though the daemon is killed again and again", async (t) => {
  const calls = 1_000;
  const counter = await startListening(process.execPath, [plain, "0"]);
  t.after(() => counter.stop());
  const at = await daemon(t, { store: "lmdb:" });
  const client = at.client({ retries: 200 });
  await client.kinds.set("counter", { url: counter.url });

  let replied = 0;
  let mark = 100;
  let reached = signal();
  const replies = Array.from({ length: calls }, async () => {
    const reply = await client.actors.call("counter", "visits", { add: 1 }, { timeout: "20s" });
    if (++replied >= mark) reached.resolve();
    return reply;
  });
  const all = Promise.all(replies);
  // Each time some have a reply, and the others are on their way, in the mailbox, handled, or answered just now.
  const before = [];
  while (before.length < 4) {
    await Promise.race([reached.promise, all]);
    await at.kill();
    before.push(replied);
    mark = replied + 100;
    reached = signal();
    await at.restart();
  }

  const sorted = (await all).sort((a, b) => a - b);
  t.diagnostic(`killed after ${before.join(", ")} replies`);
  assert.ok(before[0] < calls, `the first kill came after ${before[0]} replies`);
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
