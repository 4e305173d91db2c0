import { WebhookError } from "./errors.js";
import type { Event } from "./types.js";

/** A request of the service to a webhook. */
export interface WebhookRequest {
  /** Headers, with names in any case. */
  headers: Headers | Record<string, string | string[] | undefined>;
  /** The body as it was received: parsing and serializing changes it. */
  body: string | ArrayBuffer | Uint8Array;
}

export interface WebhookOptions {
  /** How far the time of the signature may be from the clock. Default: 300. */
  toleranceSeconds?: number;
  /** The present time. */
  now?: Date;
}

/**
 * Verifies the signature of a webhook and returns its event. `secrets` are those that may have signed it: during a rotation, the new and
 * the old one. Rejects with `WebhookError`. An event can arrive more than once: do nothing twice for one `id`.
 */
export async function verifyWebhook(request: WebhookRequest, secrets: string | string[], options: WebhookOptions = {}): Promise<Event> {
  const { toleranceSeconds = 300, now = new Date() } = options;
  const accepted = Array.isArray(secrets) ? secrets : [secrets];
  if (accepted.length === 0 || accepted.some((secret) => !secret)) throw new TypeError("a secret is missing");
  const timestamp = header(request.headers, "service-webhook-timestamp");
  if (!/^[0-9]{10,13}$/.test(timestamp)) throw new WebhookError("there is no valid Service-Webhook-Timestamp");
  // Of 13 digits, it is in milliseconds.
  const signedAt = Number(timestamp) / (timestamp.length > 12 ? 1000 : 1);
  if (Math.abs(now.getTime() / 1000 - signedAt) > toleranceSeconds) throw new WebhookError("the signature is too old, or of the future");
  const signatures = header(request.headers, "service-webhook-signature")
    .split(",")
    .map((part) => /^\s*v1=([0-9a-f]{64})\s*$/.exec(part)?.[1])
    .filter((part) => part !== undefined);
  const body = typeof request.body === "string" ? new TextEncoder().encode(request.body) : new Uint8Array(request.body);
  const signed = new Uint8Array([...new TextEncoder().encode(`${timestamp}.`), ...body]);
  let isGenuine = false;
  for (const secret of accepted) {
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", new TextEncoder().encode(secret), algorithm, false, ["verify"]);
    // `verify` compares in constant time, and all pairs are compared.
    for (const signature of signatures) {
      if (await crypto.subtle.verify("HMAC", key, unhex(signature), signed)) isGenuine = true;
    }
  }
  if (!isGenuine) throw new WebhookError("the signature does not match");
  return JSON.parse(new TextDecoder().decode(body)) as Event;
}

function header(headers: WebhookRequest["headers"], name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? "";
  const value = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return Array.isArray(value) ? value.join(",") : (value ?? "");
}

function unhex(digits: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: digits.length / 2 }, (_, index) => parseInt(digits.slice(2 * index, 2 * index + 2), 16));
}
