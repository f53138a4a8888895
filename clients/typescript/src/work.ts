// The loop of a worker: claims events by long polls, runs a handler for each, holds on to what runs, and settles what
// has ended, as many at once as there are.
import type { Perdure } from "./client.js";
import { GiveUp, PerdureError, RetryLater } from "./errors.js";
import { backOff, milliseconds, pause } from "./time.js";
import type { Claim, ClaimedEvent, Duration, Settlement } from "./types.js";

export interface Job {
  /** Aborted when the claim is lost: then somebody else works on the event, and what is returned has no effect. */
  signal: AbortSignal;
}

/** What it returns is the result of the event; what it throws fails the attempt. It may run twice for an event. */
export type Handler<V = unknown, R = unknown> = (event: ClaimedEvent<V>, job: Job) => R | Promise<R>;

export interface WorkOptions {
  /** Handlers at once; 10 if it is not said. */
  concurrency?: number;
  /** How long a claim holds if this process is not heard of; 30 s if it is not said. It is extended at half of that. */
  lock?: Duration;
  /** The length of a long poll; 20 s if it is not said. */
  wait?: Duration;
  signal?: AbortSignal;
  /** Told of what failed and is tried again: handlers, and requests to the daemon. */
  onError?: (error: unknown, event?: Claim) => void;
}

/** Of one request; the daemon takes 1,000 items and 8 MiB. */
const batchItemsMax = 500;
const batchBytesMax = 4 << 20;

type Ending = { how: "complete"; result: unknown } | { how: "fail"; error: string; retry?: false; retry_in?: Duration };
interface Ended {
  event: Claim;
  ending: Ending;
  bytes: number;
}

export async function work<V, R>(
  client: Perdure,
  worker: string,
  handler: Handler<V, R>,
  options: WorkOptions,
): Promise<void> {
  await new Loop(client, worker, handler, options).run();
}

class Loop<V, R> {
  /** By token, since a claim that was lost may still run here when the event is claimed again. */
  private readonly running = new Map<string, { event: ClaimedEvent<V>; stop: AbortController }>();
  private ended: Ended[] = [];
  private settling: Promise<void> | undefined;
  private extending = false;
  private wake: () => void = () => {};
  private readonly concurrency: number;
  private readonly lock: Duration;

  constructor(
    private readonly client: Perdure,
    private readonly worker: string,
    private readonly handler: Handler<V, R>,
    private readonly options: WorkOptions,
  ) {
    this.concurrency = options.concurrency ?? 10;
    this.lock = options.lock ?? "30s";
  }

  async run(): Promise<void> {
    const extending = setInterval(() => void this.extend(), milliseconds(this.lock) / 2);
    try {
      await this.claimUntilStopped();
    } finally {
      while (this.running.size > 0 || this.settling) await this.news();
      clearInterval(extending);
    }
  }

  private async claimUntilStopped(): Promise<void> {
    const { signal } = this.options;
    // Without this, one who waits for a free place would not hear of the end.
    const wake = () => this.wake();
    signal?.addEventListener("abort", wake);
    try {
      for (let failures = 0; !signal?.aborted; ) {
        const free = Math.min(this.concurrency - this.running.size, 1_000);
        if (free <= 0) {
          await this.news();
          continue;
        }
        try {
          for (const event of await this.claim(free)) void this.handle(event);
          failures = 0;
        } catch (error) {
          if (signal?.aborted) return;
          if (error instanceof PerdureError && !error.retryable && error.status < 500) throw error;
          this.report(error);
          failures += 1;
          await pause(backOff(failures), signal);
        }
      }
    } finally {
      signal?.removeEventListener("abort", wake);
    }
  }

  private claim(max: number): Promise<ClaimedEvent<V>[]> {
    const { signal, wait = "20s" } = this.options;
    // Repeated with the same key at once, so that what was claimed for an answer that got lost is not left lying; but
    // not for long, since what is answered then may be over.
    const options = signal ? { signal, retries: 2 } : { retries: 2 };
    return this.client.claim<V>(this.worker, { max, wait, lock: this.lock }, options);
  }

  private async handle(event: ClaimedEvent<V>): Promise<void> {
    const stop = new AbortController();
    this.running.set(event.token, { event, stop });
    let ending: Ending;
    let bytes = 0;
    try {
      const result = await this.handler(event, { signal: stop.signal });
      bytes = JSON.stringify(result)?.length ?? 0;
      ending = { how: "complete", result };
    } catch (error) {
      this.report(error, event);
      ending = failure(error);
    }
    if (stop.signal.aborted) {
      this.running.delete(event.token);
      return this.wake();
    }
    this.ended.push({ event, ending, bytes });
    this.settling ??= this.settle();
  }

  /** One request at a time: what ends meanwhile goes together into the next. Until they are settled, they are held. */
  private async settle(): Promise<void> {
    // Those that end in the same turn of the event loop go together, too.
    await Promise.resolve();
    for (let failures = 0; this.ended.length > 0; ) {
      const batch = this.take();
      try {
        await this.send(batch);
        failures = 0;
      } catch (error) {
        this.report(error);
        const passing = !(error instanceof PerdureError) || error.retryable || error.status >= 500;
        if (passing) {
          this.ended.unshift(...batch);
          failures += 1;
          // When it is to stop and nobody is there, the claims run out by themselves.
          if (this.options.signal?.aborted && failures > 5) this.forget(this.ended.splice(0));
          else await pause(backOff(failures));
        } else {
          await this.sendEach(batch);
        }
      }
      this.wake();
    }
    this.settling = undefined;
    this.wake();
  }

  private take(): Ended[] {
    let count = 0;
    for (let bytes = 0; count < this.ended.length && count < batchItemsMax; ++count) {
      bytes += (this.ended[count] as Ended).bytes;
      if (count > 0 && bytes > batchBytesMax) break;
    }
    return this.ended.splice(0, count);
  }

  private async send(batch: Ended[]): Promise<void> {
    const settlement: Required<Pick<Settlement, "complete" | "fail">> = { complete: [], fail: [] };
    for (const { event, ending } of batch) {
      const { how, ...rest } = ending;
      settlement[how].push({ id: event.id, token: event.token, ...rest });
    }
    for (const answer of await this.client.settle(this.worker, settlement))
      if (answer.error) this.report(new PerdureError(answer.error.message, { status: 409, ...answer.error }));
    this.forget(batch);
  }

  /** One of them is refused, and the others must not suffer for it: it fails with what is wrong with it. */
  private async sendEach(batch: Ended[]): Promise<void> {
    for (const each of batch) {
      try {
        await this.send([each]);
      } catch (error) {
        this.report(error, each.event);
        const passing = error instanceof PerdureError && error.retryable;
        if (!passing && each.ending.how === "fail") this.forget([each]);
        else this.ended.push(passing ? each : { ...each, ending: failure(error), bytes: 0 });
      }
    }
  }

  private forget(batch: Ended[]): void {
    for (const { event } of batch) this.running.delete(event.token);
  }

  private async extend(): Promise<void> {
    if (this.extending) return;
    this.extending = true;
    await this.extendAll();
    this.extending = false;
  }

  private async extendAll(): Promise<void> {
    const extend = [...this.running.values()].map(({ event: { id, token } }) => ({ id, token, lock: this.lock }));
    for (let from = 0; from < extend.length; from += batchItemsMax) {
      try {
        const part = extend.slice(from, from + batchItemsMax);
        const answers = await this.client.settle(this.worker, { extend: part }, { retries: 2 });
        answers.forEach((answer, i) => {
          if (!answer.ok) this.running.get(part[i]?.token ?? "")?.stop.abort(new Error("the claim is lost"));
        });
      } catch (error) {
        this.report(error);
      }
    }
  }

  /** Whatever is wrong with the listener must not end the loop. */
  private report(error: unknown, event?: Claim): void {
    try {
      this.options.onError?.(error, event);
    } catch {
      // There is nobody left to tell.
    }
  }

  private news(): Promise<void> {
    return new Promise((resolve) => (this.wake = resolve));
  }
}

function failure(error: unknown): Ending {
  const text = (error instanceof Error ? error.message : String(error)).slice(0, 4_000) || "failed without saying why";
  if (error instanceof RetryLater) return { how: "fail", error: text, retry_in: error.in };
  if (error instanceof GiveUp) return { how: "fail", error: text, retry: false };
  return { how: "fail", error: text };
}
