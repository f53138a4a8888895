// fetch knows no unix sockets; node:http does.
import type { Fetch } from "./transport.js";

export function unixFetch(socketPath: string): Fetch {
  return async (url, init) => {
    const { request } = await import("node:http");
    const { Readable } = await import("node:stream");
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
        // These may have no body, says the constructor of Response.
        const empty = status === 204 || status === 304;
        const body = Readable.toWeb(answer);
        if (empty) void body.cancel();
        resolve(new Response(empty ? null : body, { status, headers }));
      });
      asking.on("error", reject);
      asking.end(init.body as string | undefined);
    });
  };
}
