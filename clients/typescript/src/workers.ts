import type { Scope } from "./scope.js";
import { segment } from "./transport.js";
import type {
  Attempt,
  Event,
  EventState,
  Page,
  PageOptions,
  RequestOptions,
  RuleOptions,
  Worker,
  WorkerSettings,
} from "./types.js";

function one(worker: string): string {
  return `/workers/${segment(worker)}`;
}

/** Workers: their settings, whether they run, and what failed for good. */
export class Workers {
  constructor(private readonly scope: Scope) {}

  list(page: PageOptions = {}, options?: RequestOptions): Promise<Page<Worker>> {
    return this.scope.get("/workers", page, options);
  }
  /** One that nobody has heard of is answered too, with nothing in it. */
  get(worker: string, options?: RequestOptions): Promise<Worker> {
    return this.scope.get(one(worker), {}, options);
  }
  /** Replaces the settings. What GET adds to them may be there, and is passed over. */
  set(worker: string, settings: WorkerSettings, options?: RequestOptions): Promise<Worker> {
    return this.scope.put(one(worker), settings, options);
  }
  /** Back to the settings that it had at first; its events stay. */
  rm(worker: string, options?: RequestOptions): Promise<void> {
    return this.scope.remove(one(worker), {}, options);
  }

  pause(worker: string, rule: RuleOptions = {}, options?: RequestOptions): Promise<Worker> {
    return this.scope.post(`${one(worker)}/pause`, rule, options);
  }
  unpause(worker: string, options?: RequestOptions): Promise<Worker> {
    return this.scope.post(`${one(worker)}/unpause`, {}, options);
  }
  block(worker: string, rule: RuleOptions = {}, options?: RequestOptions): Promise<Worker> {
    return this.scope.post(`${one(worker)}/block`, rule, options);
  }
  unblock(worker: string, options?: RequestOptions): Promise<Worker> {
    return this.scope.post(`${one(worker)}/unblock`, {}, options);
  }

  dead<V = unknown>(worker: string, page: PageOptions = {}, options?: RequestOptions): Promise<Page<Event<V>>> {
    return this.scope.get(`${one(worker)}/dead`, page, options);
  }
  /** Dead letters back to ready; how many. */
  async redrive(
    worker: string,
    which: { ids: string[]; rate?: string } | { all: true; rate?: string },
    options?: RequestOptions,
  ): Promise<number> {
    return (await this.scope.post<{ redriven: number }>(`${one(worker)}/dead/redrive`, which, options)).redriven;
  }
  /** The last that ended, with how. */
  attempts(worker: string, options?: RequestOptions): Promise<Page<Attempt>> {
    return this.scope.get(`${one(worker)}/attempts`, {}, options);
  }
  /** Cancels all its events, or those in one state; how many. */
  async cancelAll(worker: string, query: { state?: EventState } = {}, options?: RequestOptions): Promise<number> {
    const path = `${one(worker)}/events`;
    const answer = await this.scope.ask({ method: "DELETE", path, query, repeat: "same" }, options);
    return (answer.body as { cancelled: number }).cancelled;
  }
}

