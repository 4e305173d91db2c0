import { ApiError, WaitTimeoutError, WorkFailedError, type Work } from "./errors.js";
import { readEvents, type ServerEvent } from "./events.js";
import { Operations } from "./operations.js";
import { isTemporary, pauseAfter, sleep, uuid, type Call } from "./transport.js";
import type { Asset, Canvas, ImageJob, Page, RecipeRun, Run, StreamEvent } from "./types.js";

/** Seconds that a read waits at the service for a change. */
const WAIT_SECONDS = 20;
const POLL_MS = 1000;
const DEFAULT_WAIT_MS = 15 * 60_000;
/** Times that a change is made anew after a conflict. */
const CONFLICTS = 5;

export interface WaitOptions {
  /** Milliseconds until the wait ends with `WaitTimeoutError`. Default: 15 minutes. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Called with each state of the work. */
  onChange?: (work: Work) => void;
}

/** Type of the items of an answer with a page. */
type Item<P> = P extends unknown ? { [K in keyof P]: P[K] extends (infer I)[] ? I : never }[keyof P] : never;

/** A client of one service with one token. */
export class CanvasClient extends Operations {
  /**
   * The items of all pages of a list, each once: `paginate((cursor) => client.listAssets({ cursor }))`. An item that moves to a later page
   * while the list is read is left out there.
   */
  async *paginate<P extends { page: Page }>(list: (cursor: string | undefined) => Promise<P>): AsyncGenerator<Item<P>, void, undefined> {
    const seen = new Set<string>();
    let cursor: string | undefined;
    do {
      const answer = await list(cursor);
      for (const item of Object.values(answer).find((member) => Array.isArray(member)) as Item<P>[]) {
        const { handle, id } = item as { handle?: string; id?: string };
        const name = handle ?? id;
        if (name !== undefined && seen.has(name)) continue;
        if (name !== undefined) seen.add(name);
        yield item;
      }
      cursor = answer.page.hasMore ? (answer.page.nextCursor ?? undefined) : undefined;
    } while (cursor !== undefined);
  }

  /**
   * Waits for the end of a run or job, given as a record or by its handle, and returns its last record. Rejects with `WorkFailedError` if it
   * did not succeed, and with `WaitTimeoutError` when the time is over. The service answers when something changes, so little is sent.
   */
  async waitForRun<W extends Work>(work: W, options?: WaitOptions): Promise<W>;
  async waitForRun(work: string, options?: WaitOptions): Promise<Work>;
  async waitForRun(work: Work | string, options: WaitOptions = {}): Promise<Work> {
    const { timeoutMs = DEFAULT_WAIT_MS, signal, onChange } = options;
    const handle = typeof work === "string" ? work : "run" in work ? work.run : work.id;
    const path = handle.startsWith("job:") ? "/jobs/{jobId}" : "/runs/{runId}";
    const deadline = Date.now() + timeoutMs;
    let last: Work | undefined;
    let etag: string | undefined;
    for (;;) {
      const left = Math.max(0, deadline - Date.now());
      const seconds = Math.min(WAIT_SECONDS, Math.ceil(left / 1000));
      const headers = etag && seconds > 0 ? { Prefer: `wait=${seconds}`, "If-None-Match": etag } : {};
      const asked = Date.now();
      const answer = await this.send({ method: "GET", path, segments: [handle], headers }, { signal }, async (response) => ({
        headers: response.headers,
        work: response.status === 304 ? undefined : ((await response.json()) as Work),
      }));
      if (answer.work) {
        if (answer.headers.get("etag") !== etag || !last) onChange?.(answer.work);
        last = answer.work;
        if (last.status === "succeeded") return last;
        if (["failed", "canceled", "expired"].includes(last.status)) throw new WorkFailedError(last);
      }
      if (last && left === 0) throw new WaitTimeoutError(last);
      const known = answer.headers.get("etag") ?? (answer.work ? undefined : etag);
      // Nothing changed, and the service did not wait: a proxy dropped the preference, or the work has no worker.
      if (etag && known === etag && Date.now() - asked < POLL_MS) await sleep(Math.min(POLL_MS, left), signal);
      // Without a tag there is nothing to wait from.
      if (!known) await sleep(Math.min(POLL_MS, left), signal);
      etag = known;
    }
  }

  /** Uploads a file, and repeats the upload without a second effect. In Node.js, `openAsBlob` of `node:fs` opens a file. */
  async uploadFile(
    file: Blob | File,
    options: NonNullable<Parameters<Operations["uploadAsset"]>[1]> = {},
  ): Promise<Asset> {
    const { idempotencyKey = uuid(), fileName = "name" in file ? file.name : undefined } = options;
    return (await this.uploadAsset(file, { ...options, idempotencyKey, fileName })).asset;
  }

  /**
   * Makes a change that is based on the present revision of a canvas. `change` is called with the canvas, and again with the canvas as it is
   * then, if somebody else wrote in between: at most five times. Build the whole request in it, without a key of your own.
   */
  async withRevision<T>(canvasId: string, change: (canvas: Canvas) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const { canvas } = await this.getCanvas(canvasId);
      try {
        return await change(canvas);
      } catch (error) {
        if (!(error instanceof ApiError && error.isRevisionConflict) || attempt === CONFLICTS) throw error;
      }
    }
  }

  /**
   * Follows canvases, and with `runs: "mine"` the runs of the account. The present state comes first, also after a connection was lost: it
   * is opened again, and states that were sent before are left out. What happened in between is in `getCanvasChanges`, from the last revision.
   */
  async *followEvents(
    what: { canvases?: string[]; runs?: "mine"; pointers?: boolean },
    options: { signal?: AbortSignal } = {},
  ): AsyncGenerator<StreamEvent, void, undefined> {
    let canvases = what.canvases ?? [];
    const call = (): Call => ({ method: "GET", path: "/events", query: { canvas: canvases, runs: what.runs, pointers: what.pointers } });
    for await (const { event, data } of this.#follow(call, (name, { run, canvas }) => `${name} ${run ?? canvas}`, options.signal)) {
      const next = { event, data: JSON.parse(data) as unknown } as StreamEvent;
      yield next;
      if (next.event !== "gone") continue;
      const { canvas } = next.data;
      canvases = canvases.filter((each) => each !== canvas && !canvas.endsWith(`:${each.slice(each.lastIndexOf(":") + 1)}`));
      if (canvases.length === 0 && !what.runs) return;
    }
  }

  /** Follows a run, and ends after its last state. */
  async *followRun(run: string, options: { signal?: AbortSignal } = {}): AsyncGenerator<Run, void, undefined> {
    const call = (): Call => ({ method: "GET", path: "/runs/{runId}/events", segments: [run] });
    for await (const { data } of this.#follow(call, () => "", options.signal)) {
      const next = JSON.parse(data) as ImageJob | RecipeRun;
      yield next;
      if (["succeeded", "failed", "canceled", "expired"].includes(next.status)) return;
    }
  }

  /** The events of a stream, over any number of connections; without those that repeat the last one of their `key`. */
  async *#follow(
    call: () => Call,
    key: (event: string, data: { run?: string; canvas?: string }) => string,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<ServerEvent> {
    const last = new Map<string, string>();
    let failures = 0;
    let wasOpen = false;
    for (;;) {
      try {
        const stream = await this.#open(call(), signal);
        wasOpen = true;
        for await (const next of readEvents(stream)) {
          failures = 0;
          const name = key(next.event, JSON.parse(next.data) as { run?: string; canvas?: string });
          if (last.get(name) === next.data) continue;
          last.set(name, next.data);
          yield next;
        }
      } catch (error) {
        if (signal?.aborted || !wasOpen || !isTemporary(error)) throw error;
        await sleep(pauseAfter(error, ++failures) ?? POLL_MS, signal);
        continue;
      }
      // The service ended the stream: it shuts down, or the credential is not valid any more.
      await sleep(POLL_MS, signal);
    }
  }

  #open(call: Call, signal: AbortSignal | undefined): Promise<Response> {
    const stream = { ...call, headers: { Accept: "text/event-stream" } };
    return this.send(stream, { signal, timeoutMs: 0 }, (response) => Promise.resolve(response));
  }
}
