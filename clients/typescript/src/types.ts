// The shapes of requests and answers, as docs/reference and /v1/_/openapi.json of the daemon have them.

/** "250ms", "5s", "5m", "24h", "7d", or a number of seconds. */
export type Duration = string | number;
/** RFC 3339, such as "2026-01-31T08:15:00.000Z". */
export type Time = string;
/** Integers above 2^53 come as text, so that they stay exact. */
export type Count = number | string;

export interface Page<T> {
  items: T[];
  /** What to pass as `after` for the next page; null if this is the last. */
  next: string | null;
}
export interface PageOptions {
  /** From 1 to 1,000; 100 if it is not said. */
  limit?: number;
  after?: string;
}

export interface RequestOptions {
  signal?: AbortSignal;
  /** A repeat with the same key has its effect once, also from another process; a new one is made if you give none. */
  idempotencyKey?: string;
  /** How often a request that may have failed for a passing reason is repeated. */
  retries?: number;
  /** W3C trace context, stored with events and passed on. */
  traceparent?: string;
}

// Events

export interface RetryPolicy {
  delay?: Duration;
  factor?: number;
  max_delay?: Duration;
  jitter?: Duration;
  /** Retries, so that 2 means three attempts. */
  max?: number;
  then?: "dead" | "drop";
}
export interface EmitOptions {
  delay?: Duration;
  at?: Time;
  id?: string;
  retry?: RetryPolicy;
  /** 0 (first) to 9. */
  priority?: number;
  unique?: { key: string; for?: Duration };
  limit_key?: string;
}
export interface NewEvent<V = unknown> extends EmitOptions {
  worker: string;
  value?: V;
}
export interface Emitted {
  id: string;
  /** There was an event with the same unique key, and this is its id. */
  duplicate?: boolean;
}
export type EventState = "scheduled" | "ready" | "running" | "paused" | "blocked" | "dead";
export interface Failure {
  attempt: number;
  at: Time;
  error: string;
}
export interface Event<V = unknown> {
  id: string;
  worker: string;
  value: V;
  state: EventState;
  priority: number;
  retries: number;
  attempts: number;
  losses: number;
  enqueued_at: Time;
  delay_until: Time;
  locked_at: Time | null;
  locked_until: Time | null;
  owner: string | null;
  last_error: string | null;
  failures: Failure[];
  limit_key: string | null;
  unique_key: string | null;
  traceparent: string | null;
  module: string;
  modifier: string;
  retry?: RetryPolicy;
}
export interface EndedEvent<R = unknown> {
  id: string;
  worker: string;
  state: "completed" | "dropped" | "cancelled";
  result: R;
  attempts: number;
  finished_at: Time;
  last_error: string | null;
}
export interface Why {
  why: string;
  reasons: { code: string; text: string; since: Time | null; by: string | null }[];
}

// Workers

export interface WorkerSettings {
  retry?: RetryPolicy;
  /** "10/s", "600/m", "5/10s". */
  rate?: string | null;
  limit_per_key?: number;
  retention?: Duration;
  losses_max?: number;
  /** Makes it a push worker: the daemon POSTs the events there. */
  url?: string;
  /** Signs what is pushed; written, and never shown. */
  secret?: string;
  concurrency?: number;
  timeout?: Duration;
}
export interface Rule {
  type: "pause" | "block";
  reason: string | null;
  by: string | null;
  since: Time;
  until: Time | null;
}
export interface RuleOptions {
  reason?: string;
  by?: string;
  until?: Time;
}
export interface Worker {
  worker: string;
  state: "run" | "pause" | "block";
  rules: Rule[];
  counts: { total: number; ready: number; scheduled: number; running: number; dead: number };
  oldest: Time | null;
  completed: number;
  failed: number;
  dropped: number;
  cancelled: number;
  lost: number;
  served_by: number;
  retry: Required<RetryPolicy>;
  rate: string | null;
  limit_per_key: number;
  retention: string;
  losses_max: number;
  url?: string;
  signed?: boolean;
  concurrency?: number;
  timeout?: string;
}
export interface Attempt {
  event: string;
  attempt: number;
  outcome: string;
  started: Time;
  ended: Time;
  value: unknown;
  result: unknown;
  error: string | null;
}
export interface ClaimOptions {
  /** From 1 to 1,000; 10 if it is not said. */
  max?: number;
  /** How long to wait for work; at most 5 minutes. */
  wait?: Duration;
  /** How long the claim holds, unless it is extended; 30 s if it is not said. */
  lock?: Duration;
}
/** Who has an event: by these two it is completed, failed, extended or released. */
export interface Claim {
  id: string;
  token: string;
}
export interface ClaimedEvent<V = unknown> extends Claim {
  worker: string;
  value: V;
  attempt: number;
  retries: number;
  priority: number;
  locked_until: Time | null;
  enqueued_at: Time;
  limit_key: string | null;
  last_error: string | null;
  traceparent: string | null;
}
export interface FailOptions {
  /** false: not tried again. */
  retry?: boolean;
  retry_in?: Duration;
}
export interface Settlement {
  complete?: (Claim & { result?: unknown })[];
  fail?: (Claim & { error?: string } & FailOptions)[];
  extend?: (Claim & { lock?: Duration })[];
  release?: Claim[];
  /** One that is stale refuses all. */
  atomic?: boolean;
}
export interface Settled {
  id: string;
  ok: boolean;
  locked_until?: Time;
  error?: { code: string; message: string };
}

// Actors

export interface Kind {
  kind: string;
  url: string;
  timeout: string;
  locked_timeout: string;
  retry: { max: number; delay: string; max_delay: string };
  mailbox_max: Count;
  schema: number;
}
export interface KindSettings {
  url: string;
  timeout?: Duration;
  locked_timeout?: Duration;
  retry?: { max?: number; delay?: Duration; max_delay?: Duration };
  mailbox_max?: number;
  schema?: number;
}
export interface ActorInfo<S = unknown> {
  state: S | null;
  version: string;
  schema: number;
  mailbox: { length: Count; oldest: Time | null };
  locked: { owner: string; token: string } | null;
  dead: Count;
  waiting: Count;
}
export interface DeadLetter {
  id: string;
  type: "call" | "cast";
  message: unknown;
  error: string;
  attempts: number;
  at: Time;
}

// Debouncers

export interface DebouncerSettings {
  quiet?: Duration;
  max_wait?: Duration | null;
  /** In the place of `quiet` and `max_wait`. */
  window?: Duration;
  max_count?: number;
  edge?: "trailing" | "leading" | "both";
  payload?: "last" | "first" | "all" | "merge";
  /** Who gets the runs; the name of the debouncer if it is not said. */
  worker?: string;
  retry?: RetryPolicy;
}
export interface Debouncer extends DebouncerSettings {
  name: string;
  paused: { by: string; reason: string; since: Time } | null;
}
export interface Window {
  fires_at: Time;
  first: Time;
  latest: Time;
  count: Count;
}
export interface DebounceKey {
  key: string;
  status: "idle" | "waiting" | "running";
  fires_at: Time | null;
  first: Time | null;
  latest: Time | null;
  count: Count;
  owner: string | null;
  token: string | null;
  since: Time | null;
  event: string | null;
  pending: boolean;
}
/** The value of the event that is the run of a debouncer. */
export interface DebounceRun<P = unknown> {
  debouncer: string;
  key: string;
  payload?: P;
  payloads?: P[];
  count: Count;
  first: Time;
  latest: Time;
  token: string;
}

// Sequences

export interface PartitionSettings {
  /** Workspace types, their sequences and initial values. */
  types: Record<string, Record<string, Count>>;
  trust?: string;
}
export interface Partition {
  name: string;
  types: Record<string, Record<string, Count>>;
  trust: string;
  offset: Count;
  flushed_offset: Count;
  owner: { session: string; token: string } | null;
}
export interface Append {
  type: string;
  workspace: Count;
  /** The sequences of which a number is drawn, one for each time that it is named. */
  next?: string[];
  payload?: unknown;
}
export interface Appended {
  offset: Count;
  numbers: Count[];
}
export interface LogEntry<P = unknown> {
  offset: Count;
  type: string;
  workspace: Count;
  numbers: [sequence: string, number: Count][];
  payload: P;
  at: Time;
}

// Keys and transactions

export interface StoredKey<V = unknown> {
  key: string;
  value: V;
  version: string;
}
export interface Transact {
  /** No version: the key must not exist. */
  check?: { key: string; version?: string | null }[];
  set?: { key: string; value: unknown }[];
  clear?: string[];
  emit?: NewEvent[];
  cast?: { kind: string; id: string; message?: unknown; delay?: Duration }[];
  touch?: { debouncer: string; key: string; payload?: unknown }[];
  append?: (Append & { partition: string })[];
  complete?: (Claim & { result?: unknown })[];
  fail?: (Claim & { error?: string } & FailOptions)[];
}
export interface Transacted {
  /** Of all that was set. */
  version: string;
  check?: Record<string, never>[];
  set?: { key: string }[];
  clear?: { key: string }[];
  emit?: Emitted[];
  cast?: Record<string, never>[];
  touch?: { fires_at: Time; count: Count }[];
  append?: Appended[];
  complete?: { id: string }[];
  fail?: { id: string }[];
}

// Schedules

export interface ScheduleSettings {
  /** "Daily", "Weekly", "Fortnightly", "Every 12hrs", "Every 1hr", "Every 1min". */
  every?: string;
  /** "0-59/5 * * * *" and the like, in the place of `every`. */
  cron?: string;
  timezone?: string;
  worker: string;
  value?: unknown;
  missed?: "one" | "all" | "skip";
  jitter?: Duration;
}
export interface Schedule extends ScheduleSettings {
  name: string;
  created: Time;
  last: Time | null;
  next: Time | null;
  missed_count: number;
  paused: { by: string; reason: string; since: Time } | null;
}

// The system

export interface Status {
  version: string;
  store: string;
  held: boolean;
  now: Time;
  uptime: string;
  sessions: number;
}
export interface NodeInfo {
  id: string;
  name: string;
  ttl: string;
  renewals: Count;
}

/** A change of state; `type` "gap" says that older changes are gone, so that one has to look anew. */
export interface Change {
  type: "event" | "worker" | "actor" | "debouncer" | "schedule" | "partition" | "gap" | (string & {});
  /** Of the worker, kind, debouncer, schedule or partition. */
  name: string;
  /** Of the event or actor, or the key of a debouncer. */
  id?: string;
  state: string;
  at: Time;
  attempt?: number;
  count?: Count;
  offset?: Count;
  version?: string;
  error?: string;
  /** What to pass as `after` to go on behind it. */
  cursor: string;
}
