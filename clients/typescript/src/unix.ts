// fetch knows no unix sockets; node:http does.
import type { Answer } from "node:http";
import type { Fetch } from "./transport.js";

export function unixFetch(socketPath: string): Fetch {
  return async (url, init) => {
    const { request } = await import("node:http");
    const { pathname, search } = new URL(url);
    const options = {
      socketPath,
      path: pathname + search,
      method: init.method ?? "GET",
      headers: { ...(init.headers as Record<string, string>), host: "localhost" },
    };
    return new Promise<Response>((resolve, reject) => {
      const asking = request(init.signal ? { ...options, signal: init.signal } : options, (answer) => {
        const headers = new Headers();
        for (const [name, value] of Object.entries(answer.headers)) headers.set(name, String(value));
        const status = answer.statusCode ?? 500;
        // These have no body, says the constructor of Response.
        const empty = status === 204 || status === 304;
        if (empty) answer.resume();
        resolve(new Response(empty ? null : bodyOf(answer), { status, headers }));
      });
      asking.on("error", reject);
      asking.end(init.body as string | undefined);
    });
  };
}

/** By hand, since Readable.toWeb of node 18 throws when a stream is cancelled. Answers are read at once, so none waits. */
function bodyOf(answer: Answer): ReadableStream<Uint8Array> {
  let over = false;
  const once = (act: () => void) => () => {
    if (!over) act();
    over = true;
  };
  return new ReadableStream<Uint8Array>({
    start(body) {
      answer.on("data", (piece) => over || body.enqueue(piece));
      answer.on("end", once(() => body.close()));
      answer.on("error", (error) => once(() => body.error(error))());
      answer.on("close", once(() => body.error(new Error("the connection was lost"))));
    },
    cancel() {
      over = true;
      answer.destroy();
    },
  });
}
