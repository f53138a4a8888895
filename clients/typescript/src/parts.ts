// Debouncers, sequences, keys, schedules, and the daemon itself.
import { PerdureError } from "./errors.js";
import type { Scope } from "./scope.js";
import { segment } from "./transport.js";
import type {
  Append,
  Appended,
  Count,
  DebounceKey,
  Debouncer,
  DebouncerSettings,
  Duration,
  LogEntry,
  NodeInfo,
  Page,
  PageOptions,
  Partition,
  PartitionSettings,
  RequestOptions,
  Schedule,
  ScheduleSettings,
  Status,
  StoredKey,
  Time,
  Window,
} from "./types.js";

export interface PauseOptions {
  by?: string;
  reason?: string;
}

/** Debouncers: many touches of a key become one run, which is an event of the debouncer's worker. */
export class Debouncers {
  constructor(private readonly scope: Scope) {}

  list(page: PageOptions = {}, options?: RequestOptions): Promise<Page<Debouncer>> {
    return this.scope.get("/debouncers", page, options);
  }
  get(name: string, options?: RequestOptions): Promise<Debouncer> {
    return this.scope.get(`/debouncers/${segment(name)}`, {}, options);
  }
  set(name: string, settings: DebouncerSettings, options?: RequestOptions): Promise<Debouncer> {
    return this.scope.put(`/debouncers/${segment(name)}`, settings, options);
  }
  rm(name: string, options?: RequestOptions): Promise<void> {
    return this.scope.remove(`/debouncers/${segment(name)}`, {}, options);
  }
  pause(name: string, why: PauseOptions = {}, options?: RequestOptions): Promise<Debouncer> {
    return this.scope.post(`/debouncers/${segment(name)}/pause`, why, options);
  }
  unpause(name: string, options?: RequestOptions): Promise<Debouncer> {
    return this.scope.post(`/debouncers/${segment(name)}/unpause`, {}, options);
  }

  /** The window that the touch is in. */
  touch(name: string, key: string, payload: unknown = null, options?: RequestOptions): Promise<Window> {
    return this.scope.post(`/debouncers/${segment(name)}/keys/${segment(key)}`, payload, options);
  }
  /** One that was never touched is idle. */
  key(name: string, key: string, options?: RequestOptions): Promise<DebounceKey> {
    return this.scope.get(`/debouncers/${segment(name)}/keys/${segment(key)}`, {}, options);
  }
  keys(name: string, page: PageOptions = {}, options?: RequestOptions): Promise<Page<DebounceKey>> {
    return this.scope.get(`/debouncers/${segment(name)}/keys`, page, options);
  }
  /** Drops the open window. */
  cancel(name: string, key: string, options?: RequestOptions): Promise<void> {
    return this.scope.remove(`/debouncers/${segment(name)}/keys/${segment(key)}`, {}, options);
  }
}

/** Partitions: logs whose entries draw numbers of sequences, without gaps. */
export class Partitions {
  constructor(private readonly scope: Scope) {}

  list(page: PageOptions = {}, options?: RequestOptions): Promise<Page<Partition>> {
    return this.scope.get("/partitions", page, options);
  }
  get(partition: string, options?: RequestOptions): Promise<Partition> {
    return this.scope.get(`/partitions/${segment(partition)}`, {}, options);
  }
  /** May add types and sequences and raise initial values later, and never lowers a number. */
  set(partition: string, settings: PartitionSettings, options?: RequestOptions): Promise<Partition> {
    return this.scope.put(`/partitions/${segment(partition)}`, settings, options);
  }
  append(partition: string, event: Append, options?: RequestOptions): Promise<Appended> {
    return this.scope.post(`/partitions/${segment(partition)}/append`, event, options);
  }
  /** Up to 1,000 entries in one transaction. */
  async appendMany(partition: string, events: Append[], options?: RequestOptions): Promise<Appended[]> {
    const path = `/partitions/${segment(partition)}/append`;
    return (await this.scope.post<{ items: Appended[] }>(path, events, options)).items;
  }
  log<P = unknown>(
    partition: string,
    query: { after?: Count; limit?: number } = {},
    options?: RequestOptions,
  ): Promise<Page<LogEntry<P>>> {
    return this.scope.get(`/partitions/${segment(partition)}/log`, query, options);
  }
  /** The last number of each sequence in a workspace. */
  numbers(partition: string, workspace: Count, options?: RequestOptions): Promise<Record<string, Count>> {
    return this.scope.get(`/partitions/${segment(partition)}/numbers`, { workspace }, options);
  }
}

export interface Condition {
  /** Only if the key is at this version; null: only if it does not exist. Otherwise 412. */
  version?: string | null;
}

/** The application's own data, beside its work. */
export class Keys {
  constructor(private readonly scope: Scope) {}

  list<V = unknown>(
    query: PageOptions & { prefix?: string } = {},
    options?: RequestOptions,
  ): Promise<Page<StoredKey<V>>> {
    return this.scope.get("/keys", query, options);
  }
  /** undefined if there is none. */
  async get<V = unknown>(key: string, options?: RequestOptions): Promise<StoredKey<V> | undefined> {
    try {
      const answer = await this.scope.ask({ method: "GET", path: `/keys/${segment(key)}`, repeat: "same" }, options);
      return { key, value: answer.body as V, version: versionOf(answer.headers) };
    } catch (error) {
      if (error instanceof PerdureError && error.status === 404) return undefined;
      throw error;
    }
  }
  /** The new version. */
  async set(key: string, value: unknown, condition: Condition = {}, options?: RequestOptions): Promise<string> {
    const path = `/keys/${segment(key)}`;
    const ask = { method: "PUT", path, body: value ?? null, ...conditional(condition) } as const;
    return versionOf((await this.scope.ask(ask, options)).headers);
  }
  async rm(key: string, condition: Condition = {}, options?: RequestOptions): Promise<void> {
    const { headers, repeat } = conditional(condition);
    const path = `/keys/${segment(key)}`;
    await this.scope.ask({ method: "DELETE", path, headers, repeat: repeat === "same" ? "gone" : repeat }, options);
  }
}

/** What is done under a condition is not repeated blindly: if it was done, the condition does not hold any more. */
function conditional({ version }: Condition): { headers: Record<string, string>; repeat: "same" | "never" } {
  if (version === undefined) return { headers: {}, repeat: "same" };
  return { headers: version === null ? { "if-none-match": "*" } : { "if-match": `"${version}"` }, repeat: "never" };
}

function versionOf(headers: Headers): string {
  return (headers.get("etag") ?? "").replace(/^"|"$/g, "");
}

/** Events by intervals and cron expressions. */
export class Schedules {
  constructor(private readonly scope: Scope) {}

  list(page: PageOptions = {}, options?: RequestOptions): Promise<Page<Schedule>> {
    return this.scope.get("/schedules", page, options);
  }
  get(name: string, options?: RequestOptions): Promise<Schedule> {
    return this.scope.get(`/schedules/${segment(name)}`, {}, options);
  }
  set(name: string, settings: ScheduleSettings, options?: RequestOptions): Promise<Schedule> {
    return this.scope.put(`/schedules/${segment(name)}`, settings, options);
  }
  rm(name: string, options?: RequestOptions): Promise<void> {
    return this.scope.remove(`/schedules/${segment(name)}`, {}, options);
  }
  pause(name: string, why: PauseOptions = {}, options?: RequestOptions): Promise<Schedule> {
    return this.scope.post(`/schedules/${segment(name)}/pause`, why, options);
  }
  unpause(name: string, options?: RequestOptions): Promise<Schedule> {
    return this.scope.post(`/schedules/${segment(name)}/unpause`, {}, options);
  }
  /** Emits its event now, beside its times; the id of that. */
  async run(name: string, options?: RequestOptions): Promise<string> {
    return (await this.scope.post<{ id: string }>(`/schedules/${segment(name)}/run`, {}, options)).id;
  }
}

/** The daemon. */
export class System {
  constructor(private readonly scope: Scope) {}

  status(options?: RequestOptions): Promise<Status> {
    return this.scope.get("/status", {}, options);
  }
  nodes(options?: RequestOptions): Promise<Page<NodeInfo>> {
    return this.scope.get("/nodes", {}, options);
  }
  spaces(page: PageOptions = {}, options?: RequestOptions): Promise<Page<{ space: string }>> {
    return this.scope.get("/spaces", page, options);
  }
  /** Dispatches nothing any more, on this daemon: what comes in is stored. */
  async hold(options?: RequestOptions): Promise<void> {
    await this.scope.ask({ method: "POST", path: "/hold", repeat: "same" }, options);
  }
  async release(options?: RequestOptions): Promise<void> {
    await this.scope.ask({ method: "POST", path: "/release", repeat: "same" }, options);
  }
  /** Of a daemon with --test-clock: moves its time, and answers once nothing is left to do by then. */
  async advanceClock(advance: Duration, options?: RequestOptions): Promise<Time> {
    const ask = { method: "POST", path: "/clock", body: { advance }, repeat: "never", wait: 60_000 } as const;
    return ((await this.scope.ask(ask, options)).body as { now: Time }).now;
  }
}
