// The same counter with the library, which also registers it: node counter.mjs, then
//
//     perdure call counter visits '{"add": 1}'
import { createServer } from "node:http";
import { behaviour, Perdure, Refused } from "perdure";

const counter = behaviour("counter", {
  init: () => 0,
  call: ({ state, message }) => {
    if (typeof message?.add !== "number") throw new Refused('send {"add": NUMBER}');
    const sum = state + message.add;
    // Both commit together, or neither: each hundredth is announced once.
    return { state: sum, reply: sum, emit: sum % 100 === 0 ? [{ worker: "announce", value: { sum } }] : [] };
  },
});

const server = createServer(counter).listen(0, "127.0.0.1", async () => {
  const url = `http://127.0.0.1:${server.address().port}/`;
  await new Perdure().kinds.set("counter", { url });
  console.log(`listening on ${url}`);
});
