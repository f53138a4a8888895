import type { Duration } from "./types.js";

const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** "250ms", "5s", "5m", "24h", "7d" or a number of seconds, in milliseconds. */
export function milliseconds(duration: Duration): number {
  if (typeof duration === "number") return duration * 1_000;
  const parts = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(duration);
  if (!parts) throw new TypeError(`'${duration}' is no duration; write "250ms", "5s", "5m", "24h", "7d" or seconds`);
  return Number(parts[1]) * (units[parts[2] ?? "s"] as number);
}

/** Ends after a time, or when the signal says so: then also without an error. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}

/** How long to wait before the attempt after `failures`: doubles up to `most`, and differs from client to client. */
export function backOff(failures: number, most = 5_000, first = 100): number {
  const whole = Math.min(first * 2 ** Math.min(failures - 1, 20), most);
  return whole / 2 + (Math.random() * whole) / 2;
}
