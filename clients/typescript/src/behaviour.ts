// Remote behaviours: the code of a kind of actors, as a listener for node:http.
import { Refused } from "./errors.js";
import type { Append, Duration } from "./types.js";

export interface ActorId {
  space: string;
  kind: string;
  id: string;
}

/** What a handler is given. It may be asked again for the same message, and has to answer the same then. */
export interface Turn<S, M> {
  message: M;
  state: S;
  actor: ActorId;
  /** The caller, for a reply that comes with a later message: see `replies`. null where nobody waits. */
  from: string | null;
  /** Begins with 1. */
  attempt: number;
  /** Of the state. */
  schema: number;
}

/** What a handler answers. It all happens in one transaction, together with the end of the message, or not at all. */
export interface Answered<S, R = unknown> {
  /** Absent: stays as it is. */
  state?: S;
  reply?: R;
  /** The caller waits on, for a later message that answers it in `replies`. */
  noreply?: true;
  /** Goes on with `locked`, for the same message, while no other message of the mailbox is handled. */
  lock?: true;
  /** The actor ends, with this reason. */
  stop?: string;
  emit?: { worker: string; value?: unknown; delay?: Duration }[];
  cast?: { kind: string; id: string; message?: unknown; delay?: Duration }[];
  touch?: { debouncer: string; key: string; payload?: unknown }[];
  append?: (Append & { partition: string })[];
  replies?: { from: string; reply: unknown }[];
}

type Awaitable<T> = T | Promise<T>;

export interface Behaviour<S, Call = any, Cast = any, Reply = unknown, Info = any> {
  /** The state of a new actor; null if there is no such handler. */
  init?: (turn: { actor: ActorId; schema: number }) => Awaitable<S>;
  call?: (turn: Turn<S, Call>) => Awaitable<Answered<S, Reply> | void>;
  cast?: (turn: Turn<S, Cast>) => Awaitable<Answered<S> | void>;
  info?: (turn: Turn<S, Info>) => Awaitable<Answered<S> | void>;
  /** Runs outside of any transaction, may take long, and may have side effects. */
  locked?: (turn: Turn<S, Call | Cast>) => Awaitable<Answered<S, Reply> | void>;
  /** The state in the schema `toSchema`, from one that was stored in the older `schema`. */
  upgrade?: (turn: { state: unknown; actor: ActorId; schema: number; toSchema: number }) => Awaitable<S>;
}

/** As much of node's request and response as is needed. */
export interface ListenerRequest extends AsyncIterable<unknown> {
  method?: string | undefined;
}
export interface ListenerResponse {
  writeHead(status: number, headers: Record<string, string>): unknown;
  end(body: string): unknown;
}
export type Listener = (request: ListenerRequest, response: ListenerResponse) => void;

interface Asked {
  op: string;
  actor: ActorId;
  message: any;
  state: any;
  schema: number;
  from: string | null;
  attempt: number;
  to_schema?: number;
}

/** Of a request; the daemon sends states of up to 16 MiB. */
const bodyBytesMax = 32 << 20;

/**
 * A listener for `http.createServer` that serves a kind of actors. Tell the daemon where it is with `kinds.set`.
 *
 * A handler that throws fails the attempt, which is tried again; one that throws Refused refuses the message for good.
 */
export function behaviour<S, Call = any, Cast = any, Reply = unknown, Info = any>(
  kind: string,
  handlers: Behaviour<S, Call, Cast, Reply, Info>,
): Listener {
  return (request, response) => {
    serve(kind, handlers as Behaviour<unknown>, request).then(
      (answer) => send(response, 200, answer),
      (error: unknown) => {
        const detail = error instanceof Error ? error.message : String(error);
        if (error instanceof Refused) send(response, 400, { title: "Bad Request", status: 400, detail });
        else send(response, 500, { title: "Internal Server Error", status: 500, detail });
      },
    );
  };
}

function send(response: ListenerResponse, status: number, body: unknown): void {
  const type = status === 200 ? "application/json" : "application/problem+json";
  response.writeHead(status, { "content-type": type });
  response.end(JSON.stringify(body));
}

async function serve(kind: string, handlers: Behaviour<unknown>, request: ListenerRequest): Promise<object> {
  const asked = await read(request);
  if (asked.actor.kind !== kind) throw new Error(`this serves the kind ${kind}, and was asked for ${asked.actor.kind}`);
  const { op, to_schema, ...turn } = asked;
  switch (op) {
    case "init":
      return { state: (await handlers.init?.(turn)) ?? null };
    case "upgrade": {
      if (!handlers.upgrade) throw new Error(`${kind} has no upgrade from schema ${turn.schema}`);
      return { state: await handlers.upgrade({ ...turn, toSchema: to_schema as number }) };
    }
    case "call":
    case "cast":
    case "info":
    case "locked": {
      const handler = handlers[op];
      if (!handler) throw new Refused(`actors of the kind ${kind} take no ${op}`);
      return (await handler(turn)) ?? {};
    }
    default:
      throw new Error(`this version of the library does not know the operation ${op}`);
  }
}

async function read(request: ListenerRequest): Promise<Asked> {
  if (request.method !== "POST") throw new Refused("this is a behaviour of perdure, which is POSTed to");
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of request) {
    text += decoder.decode(piece as Uint8Array, { stream: true });
    if (text.length > bodyBytesMax) throw new Error("the request is too large");
  }
  const asked = JSON.parse(text + decoder.decode()) as Asked;
  if (typeof asked?.op !== "string" || typeof asked.actor?.kind !== "string")
    throw new Refused("the request is none that perdure sends to a behaviour");
  return asked;
}
