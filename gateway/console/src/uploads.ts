/**
 * Uploads of images. Each file has one idempotency key, so another attempt is a replay: a file is stored once, and the
 * same file dropped twice is two assets. Uploads go on when their screen is left, and those that failed are still listed
 * when it is opened again.
 */
import { CONTRACT, served } from "./api.ts";
import { type Asset, removedOf } from "./assets.ts";
import { Problem, problemOf } from "./errors.ts";
import { isHeic, jpegOrHeic } from "./heic.ts";
import { backoff } from "./stream.ts";

export interface Upload {
  key: string;
  name: string;
  file: File;
  /** The part that was sent, from 0 to 1. */
  progress: number;
  problem?: Problem;
  /** It has arrived, and others get it without something: what is said of it until it is dismissed. */
  stored?: Asset;
}

/** Uploads at a time. The service takes eight of an account. */
const WIDTH = 4;
const MOST_ATTEMPTS = 6;
/**
 * The types of files that the service takes. Some systems name that of a JPEG in another way. JPEG is the first and HEIC is not among them,
 * so that Safari gives a JPEG of a photograph.
 */
const FILE_TYPES = ["image/jpeg", "image/jpg", "image/pjpeg", "image/png", "image/webp", "image/gif", "image/avif", "video/mp4"];
/** What file inputs accept. */
export const ACCEPTED = FILE_TYPES.join(",");

const isAccepted = (file: File): boolean => FILE_TYPES.includes(file.type) || isHeic(file);

/** What is said of files of other types. */
export const refusalOf = (names: string[]): string => `${names.join(", ")}: only PNG, JPEG, WebP, GIF and AVIF images and MP4 videos can be uploaded.`;

/** Whether another attempt can succeed, perhaps after the next sign-in. */
export const isRepeatable = ({ isTemporary, status }: Problem): boolean => isTemporary || status === 401;

/** The uploads of this page, by where they go. */
const all = new Map<string, Uploads>();

/** The uploads to `where`: those of an earlier visit to its screen, or new ones. */
export function uploadsTo<Kind extends Uploads>(where: string, make: () => Kind): Kind {
  const known = all.get(where) ?? make();
  all.set(where, known);
  return known as Kind;
}

/** How many files would be lost with this page. */
export const countUploads = (): number => [...all.values()].reduce((sum, uploads) => sum + uploads.countOpen(), 0);

/** Sends again what failed because the service could not be reached. */
export function resumeUploads(): void {
  for (const uploads of all.values()) for (const { key, problem } of uploads.getList()) if (problem?.isTemporary) uploads.retry(key);
}

/** Ends all uploads: nothing is sent for who signs in next. */
export function endUploads(): void {
  for (const uploads of all.values()) uploads.end();
  all.clear();
}

export class Uploads {
  #canvas: string | undefined;
  #stored: (asset: Asset, key: string) => Promise<void> | void;
  #list: readonly Upload[] = [];
  #active = new Set<string>();
  #listeners = new Set<() => void>();
  #ended = new AbortController();

  /** Uploads into a canvas, in which each gets a node, or without one. `stored` is called with the key of each upload that has arrived. */
  constructor(canvas: string | undefined, stored: (asset: Asset, key: string) => Promise<void> | void) {
    this.#canvas = canvas;
    this.#stored = stored;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  readonly getList = (): readonly Upload[] => this.#list;

  /** Begins uploads. Files that are neither images nor videos are named in `refused`. */
  add(files: Iterable<File>): { added: Upload[]; refused: string[] } {
    const all = [...files];
    const known = all.filter(isAccepted);
    const added = known.map((file): Upload => ({ key: crypto.randomUUID(), name: file.name, file, progress: 0 }));
    this.#set([...this.#list, ...added]);
    // The caller may have something to remember of each first.
    queueMicrotask(() => this.#next());
    return { added, refused: all.filter((file) => !isAccepted(file)).map(({ name }) => name) };
  }

  retry(key: string): void {
    this.#set(this.#list.map(({ problem, ...upload }) => (upload.key === key || !problem ? upload : { ...upload, problem })));
    this.#next();
  }

  dismiss(...keys: string[]): void {
    this.#set(this.#list.filter((upload) => !keys.includes(upload.key)));
  }

  /** How many are under way, or can be tried again. */
  countOpen(): number {
    return this.#list.filter(({ problem, stored }) => !stored && (!problem || isRepeatable(problem))).length;
  }

  end(): void {
    this.#ended.abort();
    this.#set([]);
  }

  #set(list: readonly Upload[]): void {
    this.#list = list;
    for (const listener of this.#listeners) listener();
  }

  #update(key: string, change: Partial<Upload>): void {
    this.#set(this.#list.map((upload) => (upload.key === key ? { ...upload, ...change } : upload)));
  }

  #next(): void {
    for (const upload of this.#list) {
      if (this.#active.size >= WIDTH) return;
      if (upload.problem || upload.stored || this.#active.has(upload.key)) continue;
      this.#active.add(upload.key);
      void this.#run(upload).finally(() => {
        this.#active.delete(upload.key);
        this.#next();
      });
    }
  }

  async #run(upload: Upload): Promise<void> {
    let { file } = upload;
    for (let attempt = 0; !this.#ended.signal.aborted; attempt += 1) {
      try {
        // Converted once, so that another attempt sends the same bytes.
        if (isHeic(file) && attempt === 0) {
          file = await jpegOrHeic(file);
          this.#update(upload.key, { file });
        }
        const stored = await this.#send({ ...upload, file });
        await this.#stored(stored, upload.key);
        if (removedOf([stored]) === undefined) this.dismiss(upload.key);
        else this.#update(upload.key, { stored });
        return;
      } catch (error) {
        const problem = error instanceof Problem ? error : new Problem(0, "The upload failed.");
        if (!problem.isTemporary || attempt + 1 === MOST_ATTEMPTS) {
          this.#update(upload.key, { problem });
          return;
        }
        await new Promise((resume) => setTimeout(resume, problem.retryAfter ? problem.retryAfter * 1000 : backoff(attempt)));
      }
    }
  }

  #send({ key, file }: Upload): Promise<Asset> {
    return new Promise((resolve, reject) => {
      // fetch does not report the progress of a body.
      const request = new XMLHttpRequest();
      const query = this.#canvas === undefined ? "" : `?canvasId=${encodeURIComponent(this.#canvas)}`;
      request.open("POST", `${CONTRACT}/assets${query}`);
      const headers = { "Content-Type": file.type, "Idempotency-Key": key, "X-Service-File-Name": encodeURIComponent(file.name), "X-Canvas-Console": "1" };
      if (served !== undefined) Object.assign(headers, { "X-Canvas-Account": served });
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.addEventListener("progress", ({ loaded, total }) => this.#update(key, { progress: total > 0 ? loaded / total : 0 }));
      request.addEventListener("error", () => reject(new Problem(0, "The service cannot be reached.")));
      request.addEventListener("load", () => {
        const response = new Response(request.responseText, { status: request.status, headers: { "retry-after": request.getResponseHeader("retry-after") ?? "" } });
        if (!response.ok) void problemOf(response).then(reject);
        else void response.json().then(({ asset }: { asset: Asset }) => resolve(asset), reject);
      });
      this.#ended.signal.addEventListener("abort", () => request.abort());
      request.send(file);
    });
  }
}
