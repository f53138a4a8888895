import { Actors, Kinds } from "./actors.js";
import { Debouncers, Keys, Partitions, Schedules, System } from "./parts.js";
import { Scope } from "./scope.js";
import { stream, StreamOptions } from "./stream.js";
import { milliseconds } from "./time.js";
import { segment, Transport, TransportOptions } from "./transport.js";
import type {
  Change,
  Claim,
  ClaimedEvent,
  ClaimOptions,
  Duration,
  Emitted,
  EmitOptions,
  EndedEvent,
  Event,
  EventState,
  FailOptions,
  NewEvent,
  Page,
  PageOptions,
  RequestOptions,
  Settled,
  Settlement,
  Time,
  Transact,
  Transacted,
  Why,
} from "./types.js";
import { Handler, work, WorkOptions } from "./work.js";
import { Workers } from "./workers.js";

export interface PerdureOptions extends TransportOptions {
  /** Whose events, actors and so on are meant; "default" if it is not said. */
  space?: string;
}

/**
 * A client of one space of a perdure daemon. It keeps no connection of its own, and may be used by as many as like.
 *
 * Once a promise of something that writes is fulfilled, that is durable. Requests which fail for a passing reason are
 * repeated, with an idempotency key, so that they happen once; what is thrown in the end is a PerdureError.
 */
export class Perdure {
  readonly space: string;
  readonly workers: Workers;
  readonly actors: Actors;
  readonly kinds: Kinds;
  readonly debouncers: Debouncers;
  readonly partitions: Partitions;
  readonly keys: Keys;
  readonly schedules: Schedules;
  /** The daemon itself, which is the same for all spaces. */
  readonly system: System;
  private readonly transport: Transport;
  private readonly scope: Scope;

  constructor(options: PerdureOptions = {}) {
    this.space = options.space ?? "default";
    this.transport = new Transport(options);
    this.scope = new Scope(this.transport, `/v1/${segment(this.space)}`);
    this.workers = new Workers(this.scope);
    this.actors = new Actors(this.scope);
    this.kinds = new Kinds(this.scope);
    this.debouncers = new Debouncers(this.scope);
    this.partitions = new Partitions(this.scope);
    this.keys = new Keys(this.scope);
    this.schedules = new Schedules(this.scope);
    this.system = new System(new Scope(this.transport, "/v1/_"));
  }

  /** Stores an event for a worker. */
  async emit<V>(worker: string, value: V, event: EmitOptions = {}, options?: RequestOptions): Promise<Emitted> {
    return this.scope.post("/events", { worker, value, ...event }, options);
  }

  /** Stores up to 1,000 events in one transaction. */
  async emitMany<V>(events: NewEvent<V>[], options?: RequestOptions): Promise<Emitted[]> {
    return (await this.scope.post<{ items: Emitted[] }>("/events", events, options)).items;
  }

  /** An event that has not ended; 404 once it has, see `history`. */
  async event<V = unknown>(id: string, options?: RequestOptions): Promise<Event<V>> {
    return this.scope.get(`/events/${segment(id)}`, {}, options);
  }

  async events<V = unknown>(
    worker: string,
    query: PageOptions & { state?: EventState } = {},
    options?: RequestOptions,
  ): Promise<Page<Event<V>>> {
    return this.scope.get("/events", { worker, ...query }, options);
  }

  /** How an event ended. With `wait` it is waited for; 404 if it has not ended by then. */
  async history<R = unknown>(
    id: string,
    query: { wait?: Duration } = {},
    options?: RequestOptions,
  ): Promise<EndedEvent<R>> {
    return this.scope.get(`/history/${segment(id)}`, query, options, milliseconds(query.wait ?? 0));
  }

  /** Why an event does not run. */
  async why(id: string, options?: RequestOptions): Promise<Why> {
    return this.scope.get(`/events/${segment(id)}/why`, {}, options);
  }

  /** 409 while it runs, unless forced. */
  async cancel(id: string, query: { force?: boolean } = {}, options?: RequestOptions): Promise<void> {
    await this.scope.remove(`/events/${segment(id)}`, query, options);
  }

  /** Takes events of a worker, each for as long as its lock holds; waits for some if asked to. See also `work`. */
  async claim<V = unknown>(
    worker: string,
    claim: ClaimOptions = {},
    options?: RequestOptions,
  ): Promise<ClaimedEvent<V>[]> {
    const path = `/workers/${segment(worker)}/claim`;
    const wait = milliseconds(claim.wait ?? 0);
    return (await this.scope.post<{ items: ClaimedEvent<V>[] }>(path, claim, options, {}, wait)).items;
  }

  async complete(event: Claim, result?: unknown, options?: RequestOptions): Promise<void> {
    await this.end(event, "complete", { result }, options);
  }

  async fail(event: Claim, error: string, how: FailOptions = {}, options?: RequestOptions): Promise<void> {
    await this.end(event, "fail", { error, ...how }, options);
  }

  /** Until when it is held now. */
  async extend(event: Claim, lock: Duration, options?: RequestOptions): Promise<Time> {
    return (await this.end<{ locked_until: Time }>(event, "extend", { lock }, options)).locked_until;
  }

  /** Gives it back; that counts neither as an attempt nor as a failure. */
  async release(event: Claim, options?: RequestOptions): Promise<void> {
    await this.end(event, "release", {}, options);
  }

  /** Ends many claims at once, or extends them. Without `atomic` those that are stale are answered as such. */
  async settle(worker: string, settlement: Settlement, options?: RequestOptions): Promise<Settled[]> {
    const path = `/workers/${segment(worker)}/settle`;
    return (await this.scope.post<{ items: Settled[] }>(path, settlement, options)).items;
  }

  /**
   * Works on the events of a worker until the signal says to stop: then it claims no more, lets the handlers that run
   * come to their end, and is fulfilled. Rejected if the daemon refuses the claims themselves.
   */
  work<V = unknown, R = unknown>(worker: string, handler: Handler<V, R>, options: WorkOptions = {}): Promise<void> {
    return work(this, worker, handler, options);
  }

  /** Changes of any kind, all of them or none; an answer for each item. */
  async transact(changes: Transact, options?: RequestOptions): Promise<Transacted> {
    return this.scope.post("/transact", changes, options);
  }

  /** Changes of state as they happen; goes on by itself where it was when the connection is lost. */
  stream(options: StreamOptions = {}): AsyncGenerator<Change, void, undefined> {
    return stream(this.transport, `/v1/${segment(this.space)}/stream`, options);
  }

  private async end<T>(event: Claim, how: string, body: object, options: RequestOptions | undefined): Promise<T> {
    return this.scope.post(`/events/${segment(event.id)}/${how}`, { token: event.token, ...body }, options);
  }
}
