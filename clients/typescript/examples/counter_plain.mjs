// A durable counter: the behaviour of a kind of actors in plain JavaScript, without any library.
//
//     node counter_plain.mjs 8080 &
//     curl -X PUT http://127.0.0.1:7420/v1/default/kinds/counter -d '{"url": "http://127.0.0.1:8080/"}'
//     curl http://127.0.0.1:7420/v1/default/actors/counter/visits/call -d '{"add": 1}'
import { createServer } from "node:http";

const add = ({ state, message }) => ({ state: state + message.add, reply: state + message.add });
const operations = { init: () => ({ state: 0 }), call: add, cast: add };

const server = createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) body += piece;
  const turn = JSON.parse(body);
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(operations[turn.op]?.(turn) ?? {}));
});
server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}/`);
});
