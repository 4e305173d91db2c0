/**
 * Uploads of pictures onto the board. Each file has one idempotency key, so another attempt is a replay: a file is stored once, and the
 * same file dropped twice is two nodes.
 */
import { CONTRACT } from "../api.ts";
import { Problem, problemOf } from "../errors.ts";
import { backoff } from "../stream.ts";
import { remove } from "../sync/change.ts";
import type { Point } from "../view.ts";
import type { Board } from "./board.ts";
import { moved } from "./gestures.ts";
import { boxOf, middleOf } from "./spatial.ts";

export interface Upload {
  key: string;
  name: string;
  file: File;
  /** Where its middle goes. */
  point: Point;
  /** The part that was sent, from 0 to 1. */
  progress: number;
  problem?: Problem;
}

/** Uploads at a time. The service takes eight of an account. */
const WIDTH = 4;
const MOST_ATTEMPTS = 6;
const GAP = 360;
const TYPES = new Set(["image/png", "image/jpeg", "image/webp", "image/gif"]);

export class Uploads {
  #canvas: string;
  #board: Board;
  #list: readonly Upload[] = [];
  #active = new Set<string>();
  #listeners = new Set<() => void>();

  constructor(canvas: string, board: Board) {
    this.#canvas = canvas;
    this.#board = board;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  readonly getList = (): readonly Upload[] => this.#list;

  /** Begins uploads, the first at `point` and the others beside it. Files that are no pictures are named in the result. */
  add(files: Iterable<File>, point: Point): string[] {
    const all = [...files];
    const pictures = all.filter(({ type }) => TYPES.has(type));
    const columns = Math.ceil(Math.sqrt(pictures.length));
    const added = pictures.map((file, index) => ({
      key: crypto.randomUUID(),
      name: file.name,
      file,
      point: { x: point.x + (index % columns) * GAP, y: point.y + Math.floor(index / columns) * GAP },
      progress: 0,
    }));
    this.#set([...this.#list, ...added]);
    this.#next();
    return all.filter(({ type }) => !TYPES.has(type)).map(({ name }) => name);
  }

  retry(key: string): void {
    this.#set(this.#list.map(({ problem, ...upload }) => (upload.key === key || !problem ? upload : { ...upload, problem })));
    this.#next();
  }

  dismiss(key: string): void {
    this.#set(this.#list.filter((upload) => upload.key !== key));
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
      if (upload.problem || this.#active.has(upload.key)) continue;
      this.#active.add(upload.key);
      void this.#run(upload).finally(() => {
        this.#active.delete(upload.key);
        this.#next();
      });
    }
  }

  async #run(upload: Upload): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        const handle = await this.#send(upload);
        await this.#place(handle, upload.point);
        this.dismiss(upload.key);
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

  /** Sends the file and returns the handle of its node. */
  #send({ key, file }: Upload): Promise<string> {
    return new Promise((resolve, reject) => {
      // fetch does not report the progress of a body.
      const request = new XMLHttpRequest();
      request.open("POST", `${CONTRACT}/assets?canvasId=${encodeURIComponent(this.#canvas)}`);
      const headers = { "Content-Type": file.type, "Idempotency-Key": key, "X-Service-File-Name": encodeURIComponent(file.name), "X-Canvas-Console": "1" };
      for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
      request.upload.addEventListener("progress", ({ loaded, total }) => this.#update(key, { progress: total > 0 ? loaded / total : 0 }));
      request.addEventListener("error", () => reject(new Problem(0, "The service cannot be reached.")));
      request.addEventListener("load", () => {
        const response = new Response(request.responseText, { status: request.status, headers: { "retry-after": request.getResponseHeader("retry-after") ?? "" } });
        if (!response.ok) void problemOf(response).then(reject);
        else void response.json().then(({ asset }: { asset: { node?: string } }) => resolve(asset.node ?? ""), reject);
      });
      request.send(file);
    });
  }

  /** Moves the node from where the service put it to where the file was dropped. One undo takes it away again. */
  async #place(handle: string, point: Point): Promise<void> {
    const { engine } = this.#board;
    await engine.refresh();
    const id = engine.local(handle.replace(/^node:/, ""));
    const node = this.#board.graph.nodes.get(id);
    if (!node) return;
    const middle = middleOf(boxOf(node));
    const changes = moved(this.#board.graph, [id], { x: point.x - middle.x, y: point.y - middle.y });
    engine.perform(`Upload ${node.title}`, changes, { undoToo: [remove(node)] });
  }
}
