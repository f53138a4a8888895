import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { PerdureError } from "perdure";
import { daemon, signal, test } from "./daemon.mjs";

/** A client that says when its stream is connected. */
function listening(at) {
  const connected = { now: signal() };
  const client = at.client({
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (url.includes("/stream") && response.ok) connected.now.resolve();
      return response;
    },
  });
  return { client, connected };
}

async function take(stream, count) {
  const changes = [];
  while (changes.length < count) changes.push((await stream.next()).value);
  return changes;
}

test("changes of state come as they happen, of those that are asked for", async (t) => {
  const { client, connected } = listening(await daemon(t));
  const stop = new AbortController();
  const stream = client.stream({ worker: "w", signal: stop.signal });
  const first = stream.next();
  await connected.now.promise;
  await client.emit("other", 1);
  const { id } = await client.emit("w", 1);
  const { value } = await first;
  assert.deepEqual([value.type, value.name, value.id, value.state], ["event", "w", id, "ready"]);
  const [claimed] = await client.claim("w");
  await client.complete(claimed);
  const states = (await take(stream, 2)).map((change) => change.state);
  assert.deepEqual(states, ["running", "completed"]);
  const next = stream.next();
  stop.abort();
  assert.deepEqual(await next, { value: undefined, done: true });
});

test("a stream goes on where it was when the daemon has been killed, and misses nothing", async (t) => {
  const at = await daemon(t, { store: "lmdb:" });
  const { client, connected } = listening(at);
  const stop = new AbortController();
  const stream = client.stream({ worker: "w", signal: stop.signal });
  const first = stream.next();
  await connected.now.promise;
  const ids = [(await client.emit("w", 0)).id];
  assert.equal((await first).value.id, ids[0]);
  await at.kill();
  await at.restart();
  // These happen before the stream is back.
  for (let n = 1; n <= 5; ++n) ids.push((await client.emit("w", n)).id);
  const seen = (await take(stream, 5)).map((change) => change.id);
  assert.deepEqual([ids[0], ...seen], ids);
  stop.abort();
  await stream.return();
});

test("a cursor that was kept goes on behind it, and one that is none is refused", async (t) => {
  const at = await daemon(t);
  const { client, connected } = listening(at);
  const stream = client.stream({ worker: "w" });
  const first = stream.next();
  await connected.now.promise;
  const ids = [];
  for (let n = 0; n < 3; ++n) ids.push((await client.emit("w", n)).id);
  const { cursor } = (await first).value;
  await stream.return();
  const again = client.stream({ worker: "w", after: cursor });
  assert.deepEqual((await take(again, 2)).map((change) => change.id), ids.slice(1));
  await again.return();
  await assert.rejects(client.stream({ after: "nonsense" }).next(), PerdureError);
});

test("a stream ends when it is told to, also after the garbage collector has run", async (t) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  const { client, connected } = listening(await daemon(t));
  const stop = new AbortController();
  const stream = client.stream({ signal: stop.signal });
  const next = stream.next();
  await connected.now.promise;
  // fetch forgets the signal of a request that is collected while its body is still read.
  for (let i = 0; i < 5; ++i) {
    collect();
    await new Promise(setImmediate);
  }
  stop.abort();
  assert.deepEqual(await next, { value: undefined, done: true });
});
