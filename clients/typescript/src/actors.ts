import type { Scope } from "./scope.js";
import { milliseconds } from "./time.js";
import { segment } from "./transport.js";
import type {
  ActorInfo,
  DeadLetter,
  Duration,
  Kind,
  KindSettings,
  Page,
  PageOptions,
  RequestOptions,
} from "./types.js";

export interface CallOptions extends RequestOptions {
  /** How long the daemon waits for the reply, 5 s if it is not said; "none" for as long as it takes. */
  timeout?: Duration | "none";
}

function one(kind: string, id: string): string {
  return `/actors/${segment(kind)}/${segment(id)}`;
}

/** Actors: objects with a state and a mailbox. Whoever sends the first message makes one. */
export class Actors {
  constructor(private readonly scope: Scope) {}

  /**
   * Sends a message and waits for the reply. After `deadline` the message is still handled: call again with the same
   * idempotency key to wait on.
   */
  async call<R = unknown>(kind: string, id: string, message: unknown, options: CallOptions = {}): Promise<R> {
    const { query, wait } = callTimes(options);
    const path = `${one(kind, id)}/call`;
    return (await this.scope.post<{ reply: R }>(path, message ?? null, options, query, wait)).reply;
  }

  /** Sends a message; it is handled once, later if a delay is given. */
  async cast(
    kind: string,
    id: string,
    message: unknown,
    options: RequestOptions & { delay?: Duration } = {},
  ): Promise<void> {
    const query = options.delay === undefined ? {} : { delay: options.delay };
    await this.scope.post(`${one(kind, id)}/cast`, message ?? null, options, query);
  }

  /** Up to 1,000 messages in one transaction, handled in this order. */
  async castMany(kind: string, id: string, messages: unknown[], options?: RequestOptions): Promise<void> {
    await this.scope.post(`${one(kind, id)}/cast_many`, messages, options);
  }

  /** A call past the mailbox. It is not repeated when its outcome is unknown, since it has no idempotency key. */
  async priority<R = unknown>(kind: string, id: string, message: unknown, options: CallOptions = {}): Promise<R> {
    const { query, wait } = callTimes(options);
    const path = `${one(kind, id)}/priority_call`;
    const body = message ?? null;
    const answer = await this.scope.ask({ method: "POST", path, body, query, wait, repeat: "never" }, options);
    return (answer.body as { reply: R }).reply;
  }

  /** A cast past the mailbox, under the same reservation. */
  async priorityCast(kind: string, id: string, message: unknown, options?: RequestOptions): Promise<void> {
    const path = `${one(kind, id)}/priority_cast`;
    await this.scope.ask({ method: "POST", path, body: message ?? null, repeat: "never" }, options);
  }

  /** A message past the mailbox and past the lock, for what the actor should hear of at once. */
  async info(kind: string, id: string, message: unknown, options?: RequestOptions): Promise<void> {
    const path = `${one(kind, id)}/info`;
    await this.scope.ask({ method: "POST", path, body: message ?? null, repeat: "never" }, options);
  }

  get<S = unknown>(kind: string, id: string, options?: RequestOptions): Promise<ActorInfo<S>> {
    return this.scope.get(one(kind, id), {}, options);
  }
  state<S = unknown>(kind: string, id: string, options?: RequestOptions): Promise<S> {
    return this.scope.get(`${one(kind, id)}/state`, {}, options);
  }
  list(
    kind: string,
    query: PageOptions & { prefix?: string } = {},
    options?: RequestOptions,
  ): Promise<Page<{ id: string }>> {
    return this.scope.get(`/actors/${segment(kind)}`, query, options);
  }

  async stop(kind: string, id: string, reason?: string, options?: RequestOptions): Promise<void> {
    await this.scope.post(`${one(kind, id)}/stop`, { reason }, options);
  }
  async unlock(kind: string, id: string, options?: RequestOptions): Promise<void> {
    await this.scope.post(`${one(kind, id)}/unlock`, {}, options);
  }
  /** Its state, mailbox and lock go, and whoever waits for a reply gets an error. */
  kill(kind: string, id: string, options?: RequestOptions): Promise<void> {
    return this.scope.remove(one(kind, id), {}, options);
  }

  dead(kind: string, id: string, page: PageOptions = {}, options?: RequestOptions): Promise<Page<DeadLetter>> {
    return this.scope.get(`${one(kind, id)}/dead`, page, options);
  }
  /** Dead letters back into the mailbox; how many. */
  async redrive(kind: string, id: string, options?: RequestOptions): Promise<number> {
    return (await this.scope.post<{ redriven: number }>(`${one(kind, id)}/dead/redrive`, {}, options)).redriven;
  }
}

function callTimes(options: CallOptions): { query: Record<string, string | number>; wait: number } {
  if (options.timeout === "none") return { query: { timeout: "none" }, wait: Infinity };
  const query: Record<string, string | number> = options.timeout === undefined ? {} : { timeout: options.timeout };
  return { query, wait: milliseconds(options.timeout ?? "5s") };
}

/** Kinds of actors whose code is a URL: see `behaviour`. */
export class Kinds {
  constructor(private readonly scope: Scope) {}

  list(page: PageOptions = {}, options?: RequestOptions): Promise<Page<Kind>> {
    return this.scope.get("/kinds", page, options);
  }
  get(kind: string, options?: RequestOptions): Promise<Kind> {
    return this.scope.get(`/kinds/${segment(kind)}`, {}, options);
  }
  set(kind: string, settings: KindSettings, options?: RequestOptions): Promise<Kind> {
    return this.scope.put(`/kinds/${segment(kind)}`, settings, options);
  }
  /** Its actors stay, and their messages wait until somebody serves the kind again. */
  rm(kind: string, options?: RequestOptions): Promise<void> {
    return this.scope.remove(`/kinds/${segment(kind)}`, {}, options);
  }
}
