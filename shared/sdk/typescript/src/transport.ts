import { ApiError, ConnectionError } from "./errors.js";
import type { ErrorEnvelope } from "./types.js";

const API_ROOT = "/api/canvas-agent/v1";
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

export interface ClientOptions {
  /** Origin of the service, for example `https://canvas.example.com`. */
  baseUrl: string;
  /** A token, `cba_…`. */
  token: string;
  /** Attempts after the first one, of requests that may be repeated. Default: 4. */
  retries?: number;
  /** Milliseconds that an attempt may take, but for uploads and streams. Default: 120000. */
  timeoutMs?: number;
  /** Used in place of the global `fetch`. */
  fetch?: typeof fetch;
}

/** Options of every request. */
export interface Options {
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
}

type Value = string | number | boolean;

/** A request of an operation. */
export interface Call {
  method: string;
  /** Path below the API root, with a name in braces for each segment. */
  path: string;
  segments?: string[];
  query?: Record<string, Value | Value[] | undefined>;
  headers?: Record<string, string | undefined>;
  body?: object | Blob;
  /** The body takes an idempotency key. */
  takesKey?: boolean;
  /** Spends credit: such a request is never repeated. */
  isPaid?: boolean;
}

/** A request, the same in each attempt. */
interface Prepared {
  name: string;
  url: URL;
  init: RequestInit;
  headers: Headers;
  isRepeatable: boolean;
  timeoutMs: number;
}

/**
 * Sends requests, and repeats those that may be: after 429, 5xx or no answer, reads, dry runs, and mutations with an idempotency key that
 * spend no credit. Key and body stay the same, so the repetition has one effect.
 */
export class Transport {
  readonly #base: string;
  readonly #token: string;
  readonly #timeoutMs: number;
  readonly #fetch: typeof fetch;
  protected readonly retries: number;

  constructor({ baseUrl, token, retries = 4, timeoutMs = 120_000, fetch: send }: ClientOptions) {
    this.#base = new URL(baseUrl).href.replace(/\/+$/, "");
    this.#token = token;
    this.#timeoutMs = timeoutMs;
    this.#fetch = send ?? ((input, init) => fetch(input, init));
    this.retries = retries;
  }

  protected json<T>(call: Call, options: Options): Promise<T> {
    return this.send(call, options, async (response) => (await response.json()) as T);
  }

  protected text(call: Call, options: Options): Promise<string> {
    return this.send(call, options, (response) => response.text());
  }

  protected bytes(call: Call, options: Options): Promise<Blob> {
    return this.send(call, options, (response) => response.blob());
  }

  /** Sends a request until `read` has read a successful answer, or the failure is final. */
  protected async send<T>(call: Call, options: Options, read: (response: Response) => Promise<T>): Promise<T> {
    const request = this.#prepare(call, options);
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt(request, options.signal, read);
      } catch (error) {
        const pause = request.isRepeatable && attempt <= this.retries ? pauseAfter(error, attempt) : undefined;
        if (pause === undefined) throw error;
        await sleep(pause, options.signal);
      }
    }
  }

  #prepare(call: Call, options: Options): Prepared {
    const { method, body, headers: own = {}, query = {} } = call;
    const segments = [...(call.segments ?? [])];
    const path = call.path.replace(/\{\w+\}/g, (name) => segment(name, segments.shift()));
    const url = new URL(this.#base + API_ROOT + path);
    for (const [name, value] of Object.entries(query)) {
      for (const each of Array.isArray(value) ? value : [value]) {
        if (each !== undefined) url.searchParams.append(name, String(each));
      }
    }
    const headers = new Headers({ Authorization: `Bearer ${this.#token}` });
    for (const [name, value] of Object.entries(own)) {
      if (value !== undefined) headers.set(name, name === "X-Service-File-Name" ? encodeURIComponent(value) : value);
    }
    const init: RequestInit = { method, redirect: "manual", cache: "no-store" };
    let isRepeatable = method === "GET" || headers.has("Idempotency-Key");
    if (body instanceof Blob) {
      headers.set("Content-Type", body.type || "application/octet-stream");
      init.body = body;
    } else if (body !== undefined) {
      const keyed: { idempotencyKey?: unknown; validateOnly?: unknown } = { ...body };
      if (call.takesKey) keyed.idempotencyKey ??= uuid();
      isRepeatable ||= keyed.validateOnly === true || (keyed.idempotencyKey !== undefined && !call.isPaid);
      headers.set("Content-Type", "application/json");
      init.body = JSON.stringify(keyed);
    }
    const timeoutMs = options.timeoutMs ?? (body instanceof Blob ? 0 : this.#timeoutMs);
    return { name: `${method} ${call.path}`, url, init, headers, isRepeatable, timeoutMs };
  }

  async #attempt<T>(request: Prepared, signal: AbortSignal | undefined, read: (response: Response) => Promise<T>): Promise<T> {
    const { name, url, init, timeoutMs } = request;
    const headers = new Headers(request.headers);
    // Sent, so that also a request without an answer can be found in the logs of the service.
    const requestId = uuid();
    headers.set("X-Request-ID", requestId);
    const signals = [signal, timeoutMs > 0 ? AbortSignal.timeout(timeoutMs) : undefined].filter((each) => each !== undefined);
    try {
      const response = await this.#fetch(url, { ...init, headers, signal: AbortSignal.any(signals) });
      if (response.ok || response.status === 304) return await read(response);
      const envelope = (await response.json().catch(() => ({}))) as Partial<ErrorEnvelope>;
      throw new ApiError(response, response.headers.get("x-request-id") ?? requestId, envelope.error ?? {});
    } catch (error) {
      if (signal?.aborted || error instanceof ApiError) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new ConnectionError(`${name}: no complete answer: ${reason}`, requestId, error);
    }
  }
}

/** `true` for a failure that may pass by itself. */
export function isTemporary(error: unknown): boolean {
  return error instanceof ConnectionError || (error instanceof ApiError && (error.status === 429 || error.status >= 500));
}

/**
 * Milliseconds before the attempt that follows the failed one of this number; `undefined` if a repetition would fail in the same way, or
 * the service asks for too long a pause. Half of a pause is random, so that clients that failed together do not return together.
 */
export function pauseAfter(error: unknown, attempt: number): number | undefined {
  if (!isTemporary(error)) return undefined;
  const grown = Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS);
  const asked = error instanceof ApiError ? (error.retryAfterMs ?? 0) : 0;
  return asked > LONGEST_PAUSE_MS ? undefined : Math.max(asked, grown * (0.5 + Math.random() / 2));
}

/** Waits; rejects when the signal aborts. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** An id in one segment of a path. */
function segment(name: string, id: string | undefined): string {
  // A URL drops "." and "..", so that the request would address another resource.
  if (!id || id === "." || id === "..") throw new TypeError(`${JSON.stringify(id)} is no value of ${name}`);
  return encodeURIComponent(id);
}

/** `crypto.randomUUID` exists only in pages that were served over HTTPS. */
export function uuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

