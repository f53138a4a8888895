// The client of perdure: durable actors, queues, debouncers and sequences that outlive your process.
export { Perdure } from "./client.js";
export type { PerdureOptions } from "./client.js";
export { GiveUp, PerdureError, Refused, RetryLater, WebhookError } from "./errors.js";
export type { PerdureErrorInfo } from "./errors.js";
export { behaviour } from "./behaviour.js";
export type {
  ActorId,
  Answered,
  Behaviour,
  Listener,
  ListenerRequest,
  ListenerResponse,
  Turn,
} from "./behaviour.js";
export { verifyWebhook } from "./webhook.js";
export type { PushedEvent, WebhookRequest } from "./webhook.js";
export type { Handler, Job, WorkOptions } from "./work.js";
export type { StreamOptions } from "./stream.js";
export type { CallOptions } from "./actors.js";
export type { Condition, PauseOptions } from "./parts.js";
export type { Fetch, TransportOptions } from "./transport.js";
export * from "./types.js";
