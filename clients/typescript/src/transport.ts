// Requests to the daemon: their paths and headers, what is repeated when it fails, and what is not.
import { randomUUID } from "node:crypto";
import { errorOf, PerdureError } from "./errors.js";
import { backOff, milliseconds, pause } from "./time.js";
import type { Duration, RequestOptions } from "./types.js";
import { unixFetch } from "./unix.js";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface TransportOptions {
  /** "http://127.0.0.1:7420" or "unix:///path/to/socket"; PERDURE_URL or the first of these if it is not said. */
  url?: string;
  /** PERDURE_TOKEN if it is not said. */
  token?: string;
  /** In the place of the global one. */
  fetch?: Fetch;
  /** How often a request is repeated after network errors, 503 and 429; 5 if it is not said. */
  retries?: number;
  /** For one attempt, beside what the request itself waits for; 30 s if it is not said. */
  timeout?: Duration;
}

/** What repeating a request whose outcome is unknown would do. */
export type Repeat =
  | "same" // As much as sending it once: reads, and settings that are replaced.
  | "keyed" // The same, by the idempotency key that is sent with it.
  | "gone" // The same, but a repeat finds nothing any more, which is what was wanted.
  | "never"; // It might happen twice.

export interface Ask {
  method: "GET" | "PUT" | "POST" | "DELETE";
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  /** undefined for none. */
  body?: unknown;
  headers?: Record<string, string>;
  repeat: Repeat;
  /** How long the daemon may wait before it answers, in milliseconds. */
  wait?: number;
}

export interface Answer {
  status: number;
  headers: Headers;
  body: unknown;
}

/** A part of a path. Those that URLs understand as steps are no names in perdure. */
export function segment(text: string): string {
  if (text === "" || text === "." || text === "..")
    throw new PerdureError(`'${text}' is neither a name nor a key`, { status: 400, code: "invalid_argument" });
  return encodeURIComponent(text);
}

function environment(name: string): string | undefined {
  return typeof process === "undefined" ? undefined : process.env[name] || undefined;
}

export class Transport {
  private readonly base: string;
  private readonly token: string | undefined;
  private readonly fetch: Fetch;
  private readonly retries: number;
  private readonly timeout: number;

  constructor(options: TransportOptions) {
    const url = options.url ?? environment("PERDURE_URL") ?? "http://127.0.0.1:7420";
    const socket = url.startsWith("unix://") ? url.slice("unix://".length) : undefined;
    this.base = socket === undefined ? url.replace(/\/+$/, "") : "http://localhost";
    this.token = options.token ?? environment("PERDURE_TOKEN");
    this.fetch = options.fetch ?? (socket === undefined ? (to, init) => fetch(to, init) : unixFetch(socket));
    this.retries = options.retries ?? 5;
    this.timeout = milliseconds(options.timeout ?? "30s");
  }

  /** The JSON of a 2xx; anything else is thrown as a PerdureError. */
  async ask(ask: Ask, options: RequestOptions = {}): Promise<Answer> {
    const init = this.request(ask, options);
    const retries = options.retries ?? this.retries;
    for (let failures = 0; ; ) {
      try {
        return await this.once(ask, init, options.signal);
      } catch (error) {
        if (!(error instanceof PerdureError)) throw error;
        if (ask.repeat === "gone" && failures > 0 && error.status === 404) return { ...nothing };
        failures += 1;
        const safe = error.outcome === "none" || ask.repeat !== "never";
        if (failures > retries || !error.retryable || !safe) throw error;
        await pause(Math.max(backOff(failures), (error.retryAfter ?? 0) * 1_000), options.signal);
        options.signal?.throwIfAborted();
      }
    }
  }

  /** The answer as it comes in, for those that do not end. */
  async open(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    const init = this.request({ method: "GET", path, headers, repeat: "same" }, {});
    const response = await this.reach(path, { ...init, signal });
    if (!response.ok) throw errorOf(response.status, response.headers, await response.text());
    return response;
  }

  private request(ask: Ask, options: RequestOptions): RequestInit {
    const headers: Record<string, string> = { accept: "application/json", ...ask.headers };
    if (this.token) headers["authorization"] = `Bearer ${this.token}`;
    if (options.traceparent) headers["traceparent"] = options.traceparent;
    if (ask.repeat === "keyed") headers["idempotency-key"] = options.idempotencyKey ?? randomUUID();
    if (ask.body === undefined) return { method: ask.method, headers };
    headers["content-type"] = "application/json";
    return { method: ask.method, headers, body: JSON.stringify(ask.body) };
  }

  private async once(ask: Ask, init: RequestInit, signal: AbortSignal | undefined): Promise<Answer> {
    signal?.throwIfAborted();
    const stop = new AbortController();
    const abort = () => stop.abort(signal?.reason);
    signal?.addEventListener("abort", abort);
    const longest = this.timeout + (ask.wait ?? 0);
    // Timers do not go further than 2^31 milliseconds.
    const late = longest < 2 ** 31 ? setTimeout(() => stop.abort(new Error("no answer in time")), longest) : undefined;
    // fetch may forget the signal once the answer has begun, so that it cannot be left to it alone.
    const aborted = new Promise<never>((_, reject) => {
      stop.signal.addEventListener("abort", () => reject(stop.signal.reason));
    });
    try {
      return await Promise.race([this.exchange(target(ask), { ...init, signal: stop.signal }), aborted]);
    } catch (error) {
      signal?.throwIfAborted();
      throw error instanceof PerdureError ? error : this.unreachable(error);
    } finally {
      clearTimeout(late);
      signal?.removeEventListener("abort", abort);
    }
  }

  private async exchange(path: string, init: RequestInit): Promise<Answer> {
    const response = await this.reach(path, init);
    const text = await response.text();
    if (!response.ok) throw errorOf(response.status, response.headers, text);
    return { status: response.status, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
  }

  private async reach(path: string, init: RequestInit): Promise<Response> {
    try {
      return await this.fetch(this.base + path, { ...init, redirect: "error" });
    } catch (error) {
      init.signal?.aborted && init.signal.throwIfAborted();
      throw this.unreachable(error);
    }
  }

  private unreachable(cause: unknown): PerdureError {
    const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
    const text = inner instanceof Error ? inner.message || (inner as { code?: string }).code : String(inner);
    return new PerdureError(`the daemon at ${this.base} does not answer: ${text}`, {
      status: 0,
      code: "unavailable",
      outcome: "unknown",
      cause,
    });
  }
}

const nothing: Answer = { status: 204, headers: new Headers(), body: undefined };

function target(ask: Ask): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(ask.query ?? {})) if (value !== undefined) query.set(name, String(value));
  const text = query.toString();
  return text === "" ? ask.path : `${ask.path}?${text}`;
}
