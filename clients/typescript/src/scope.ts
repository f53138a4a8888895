import type { Ask, Transport } from "./transport.js";
import type { RequestOptions } from "./types.js";

type Query = Record<string, string | number | boolean | undefined>;

/** Requests below one path, in the few forms that there are. */
export class Scope {
  constructor(
    private readonly transport: Transport,
    private readonly base: string,
  ) {}

  async get<T>(path: string, query: Query | object = {}, options?: RequestOptions, wait = 0): Promise<T> {
    const ask: Ask = { method: "GET", path: this.base + path, query: query as Query, repeat: "same", wait };
    return (await this.transport.ask(ask, options)).body as T;
  }

  async put<T>(path: string, body: unknown, options?: RequestOptions): Promise<T> {
    const ask: Ask = { method: "PUT", path: this.base + path, body, repeat: "same" };
    return (await this.transport.ask(ask, options)).body as T;
  }

  /** With an idempotency key. */
  async post<T>(path: string, body: unknown, options?: RequestOptions, query: Query = {}, wait = 0): Promise<T> {
    const ask: Ask = { method: "POST", path: this.base + path, query, body, repeat: "keyed", wait };
    return (await this.transport.ask(ask, options)).body as T;
  }

  async remove(path: string, query: Query | object = {}, options?: RequestOptions): Promise<void> {
    const ask: Ask = { method: "DELETE", path: this.base + path, query: query as Query, repeat: "gone" };
    await this.transport.ask(ask, options);
  }

  /** What is none of these. */
  ask(ask: Ask, options?: RequestOptions) {
    return this.transport.ask({ ...ask, path: this.base + ask.path }, options);
  }
}
