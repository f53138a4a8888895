// Changes of state, as server-sent events.
import { PerdureError } from "./errors.js";
import { backOff, pause } from "./time.js";
import type { Transport } from "./transport.js";
import type { Change } from "./types.js";

export interface StreamOptions {
  worker?: string;
  kind?: string;
  debouncer?: string;
  schedule?: string;
  partition?: string;
  /** The cursor of the last change that was seen; changes from now on if it is not given. */
  after?: string;
  signal?: AbortSignal;
}

/** The daemon says something every 15 s; one that is silent for so long is gone, even if the connection is not. */
const silenceMax = 45_000;

interface Message {
  id: string | undefined;
  event: string;
  data: string;
}

/** Splits what comes in into messages; there may be several in a piece, or a part of one. */
class Parser {
  private rest = "";
  private message: Message = { id: undefined, event: "", data: "" };

  *feed(text: string): Generator<Message> {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      const at = line.indexOf(":");
      const name = at < 0 ? line : line.slice(0, at);
      const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
      if (line === "") {
        yield this.message;
        this.message = { id: undefined, event: "", data: "" };
      } else if (name === "id") {
        this.message.id = value;
      } else if (name === "event") {
        this.message.event = value;
      } else if (name === "data") {
        this.message.data += value;
      }
    }
  }
}

export async function* stream(
  transport: Transport,
  path: string,
  options: StreamOptions,
): AsyncGenerator<Change, void, undefined> {
  const { after, signal, ...filter } = options;
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
  const target = query.toString() === "" ? path : `${path}?${query}`;
  let cursor = after;
  let failures = 0;
  while (!signal?.aborted) {
    const stop = new AbortController();
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    const abort = () => {
      stop.abort();
      // fetch forgets the signal if its request is collected as garbage while the body is read.
      reader?.cancel().catch(() => {});
    };
    signal?.addEventListener("abort", abort);
    let silence = setTimeout(abort, silenceMax);
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (cursor) headers["last-event-id"] = cursor;
      const response = await transport.open(target, headers, stop.signal);
      failures = 0;
      const parser = new Parser();
      const decoder = new TextDecoder();
      reader = (response.body as ReadableStream<Uint8Array>).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        clearTimeout(silence);
        silence = setTimeout(abort, silenceMax);
        for (const message of parser.feed(decoder.decode(value, { stream: true }))) {
          // An id alone says where we are, too.
          if (message.id !== undefined) cursor = message.id;
          if (message.data !== "") yield changeOf(message, cursor ?? "");
        }
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof PerdureError && !error.retryable) throw error;
    } finally {
      clearTimeout(silence);
      signal?.removeEventListener("abort", abort);
      abort();
    }
    failures += 1;
    await pause(backOff(failures), signal);
  }
}

function changeOf(message: Message, cursor: string): Change {
  const change = JSON.parse(message.data) as Change;
  if (message.event !== "gap") return { ...change, cursor };
  return { type: "gap", name: "", state: "", at: new Date().toISOString(), cursor };
}
