// What a push worker is sent, and whether it is from who knows the secret (Standard Webhooks).
import { createHmac, timingSafeEqual } from "node:crypto";
import { WebhookError } from "./errors.js";
import { milliseconds } from "./time.js";
import type { Duration, Time } from "./types.js";

/** The body that is pushed for an event. Its webhook-id is the id of the event, the same for each attempt. */
export interface PushedEvent<V = unknown> {
  id: string;
  worker: string;
  value: V;
  attempt: number;
  enqueued_at: Time;
}

export interface WebhookRequest {
  /** "whsec_<base64>", or any other text as it is. */
  secret: string;
  headers: Record<string, string | string[] | undefined> | Headers;
  /** As it came in, before anything has parsed it. */
  body: string | Uint8Array;
  /** How far the timestamp may be from the time here; 5 minutes if it is not said. */
  tolerance?: Duration;
  now?: Date;
}

/** The event, if the request was signed with the secret a short time ago. Throws a WebhookError otherwise. */
export function verifyWebhook<V = unknown>(request: WebhookRequest): PushedEvent<V> {
  const { secret, body, tolerance = "5m", now = new Date() } = request;
  const id = header(request.headers, "webhook-id");
  const timestamp = header(request.headers, "webhook-timestamp");
  const signatures = header(request.headers, "webhook-signature");
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookError("webhook-timestamp is not a number of seconds");
  if (Math.abs(now.getTime() - Number(timestamp) * 1_000) > milliseconds(tolerance))
    throw new WebhookError("webhook-timestamp is too far from the time of this machine");
  const expected = createHmac("sha256", keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest();
  const fits = signatures.split(" ").map((each) => {
    const given = each.startsWith("v1,") ? fromBase64(each.slice(3)) : undefined;
    return given !== undefined && given.length === expected.length && timingSafeEqual(given, expected);
  });
  if (!fits.includes(true)) throw new WebhookError("no signature in webhook-signature fits the body and the secret");
  return JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body)) as PushedEvent<V>;
}

function header(headers: WebhookRequest["headers"], name: string): string {
  const found = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof found !== "string" || found === "") throw new WebhookError(`the request lacks ${name}`);
  return found;
}

function keyOf(secret: string): Uint8Array {
  if (secret === "") throw new WebhookError("the secret is empty");
  if (!secret.startsWith("whsec_")) return new TextEncoder().encode(secret);
  const key = fromBase64(secret.slice("whsec_".length));
  if (!key || key.length === 0) throw new WebhookError("what stands behind whsec_ in the secret is not base64");
  return key;
}

function fromBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}
