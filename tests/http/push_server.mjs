// A server of ours that the daemon sends requests to, for push workers and remote behaviours.
import http from "node:http";

/// `answer` is given each request as {json, text, headers, path} and how many there were, and gives {status, headers,
/// json or text}, or a promise of it.
export async function serve(t, answer) {
  const seen = [];
  const server = http.createServer((request, response) => {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    request.on("end", async () => {
      const text = Buffer.concat(pieces).toString();
      const one = {text, json: JSON.parse(text), headers: request.headers, path: request.url};
      seen.push(one);
      const {status = 200, headers = {}, json = {}, text: out} = (await answer(one, seen.length)) ?? {};
      response.writeHead(status, {"Content-Type": "application/json", ...headers});
      response.end(out ?? JSON.stringify(json));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {seen, url: `http://127.0.0.1:${server.address().port}/`, server};
}
