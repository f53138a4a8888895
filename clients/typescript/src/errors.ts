/** What went wrong, as the daemon says it; `outcome` tells whether it may have taken effect all the same. */
export class PerdureError extends Error {
  override readonly name = "PerdureError";
  /** Of the answer; 0 if there was none. */
  readonly status: number;
  /** "invalid_argument", "not_found", "stale_token", "unavailable", ... */
  readonly code: string;
  /** "none": nothing changed. "unknown": it may have happened; repeat it with the same idempotency key, or look. */
  readonly outcome: "none" | "unknown";
  /** In seconds, if the daemon asks to wait for so long. */
  readonly retryAfter: number | undefined;
  override readonly cause: unknown;

  constructor(message: string, about: PerdureErrorInfo) {
    super(message);
    this.status = about.status;
    this.code = about.code;
    this.outcome = about.outcome ?? "none";
    this.retryAfter = about.retryAfter;
    this.cause = about.cause;
  }

  /** Whether the very same request may succeed later. */
  get retryable(): boolean {
    return this.status === 0 || this.status === 429 || this.status === 503;
  }
}

export interface PerdureErrorInfo {
  status: number;
  code: string;
  outcome?: "none" | "unknown";
  retryAfter?: number | undefined;
  cause?: unknown;
}

interface Problem {
  title?: string;
  detail?: string;
  error?: { code?: string; message?: string };
  outcome?: string;
}

/** The error that an answer which is not 2xx stands for. */
export function errorOf(status: number, headers: Headers, body: string): PerdureError {
  let problem: Problem = {};
  try {
    problem = (JSON.parse(body) ?? {}) as Problem;
  } catch {
    // Something between us and the daemon has answered; the status is all there is to go by.
  }
  const after = Number(headers.get("retry-after") ?? NaN);
  const message = problem.error?.message ?? problem.detail ?? problem.title ?? `HTTP ${status} ${body.slice(0, 200)}`;
  return new PerdureError(message.trim(), {
    status,
    code: problem.error?.code ?? (status >= 500 ? "unavailable" : "invalid_argument"),
    outcome: problem.outcome === "none" || (problem.outcome === undefined && status < 500) ? "none" : "unknown",
    retryAfter: Number.isFinite(after) ? after : undefined,
  });
}

/** Thrown by a handler of a worker: the event is tried again after `in`, as long as its retry policy allows. */
export class RetryLater extends Error {
  override readonly name = "RetryLater";
  readonly in: string | number;
  constructor(message: string, delay: string | number) {
    super(message);
    this.in = delay;
  }
}

/** Thrown by a handler of a worker: the event is not tried again, and is a dead letter (or dropped) at once. */
export class GiveUp extends Error {
  override readonly name = "GiveUp";
}

/** Thrown by a handler of a behaviour: the message is refused for good, and its caller gets invalid_argument. */
export class Refused extends Error {
  override readonly name = "Refused";
}

/** The signature of a webhook does not fit. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
}
