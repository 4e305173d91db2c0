/** The smallest images of assets, for the board from far away. What is in view is kept, and asked for once. */
import { api, imageUrl } from "../api.ts";

/** How many are kept. Of more in view, the others stay boxes. */
const MOST = 2000;
/** How many are loaded at a time. */
const WIDTH = 3;
/** After a failure, how long until the next attempt, in milliseconds. */
const PAUSE = 15_000;

interface Entry {
  bitmap?: ImageBitmap;
  isLoading: boolean;
  /** The frame that showed it last. */
  frame: number;
}

export class Bitmaps {
  #load: (asset: string) => Promise<ImageBitmap>;
  #entries = new Map<string, Entry>();
  /** What is not loaded yet, in the order in which it was asked for. Each has an entry. */
  #waiting = new Set<string>();
  /** What this frame shows and has no entry. */
  #missing = new Set<string>();
  #loading = 0;
  #frame = 0;

  constructor(load: (asset: string) => Promise<ImageBitmap>) {
    this.#load = load;
  }

  /** A frame begins. */
  begin(): void {
    this.#frame += 1;
  }

  /** The image of an asset in the present frame, if it is there. */
  of(asset: string): ImageBitmap | undefined {
    const entry = this.#entries.get(asset);
    if (entry) entry.frame = this.#frame;
    else this.#missing.add(asset);
    return entry?.bitmap;
  }

  /** The frame ends, so it is known what is in view. `changed` is called with each image that arrives. */
  end(changed: () => void): void {
    const tooMany = this.#entries.size + this.#missing.size - MOST;
    if (tooMany > 0) for (const asset of this.#outOfView().slice(0, tooMany)) this.#drop(asset);
    for (const asset of this.#missing) {
      if (this.#entries.size >= MOST) break;
      this.#entries.set(asset, { isLoading: false, frame: this.#frame });
      this.#waiting.add(asset);
    }
    this.#missing.clear();
    this.#next(changed);
  }

  #isInView(entry: Entry): boolean {
    return entry.frame === this.#frame;
  }

  #outOfView(): string[] {
    return [...this.#entries].flatMap(([asset, entry]) => (entry.isLoading || this.#isInView(entry) ? [] : asset));
  }

  #drop(asset: string): void {
    this.#entries.get(asset)?.bitmap?.close();
    this.#entries.delete(asset);
    this.#waiting.delete(asset);
  }

  #next(changed: () => void): void {
    for (const asset of this.#waiting) {
      if (this.#loading >= WIDTH) return;
      const entry = this.#entries.get(asset);
      // What left the view in the meantime is not loaded.
      if (entry && this.#isInView(entry)) void this.#run(asset, entry, changed);
      else this.#drop(asset);
    }
  }

  async #run(asset: string, entry: Entry, changed: () => void): Promise<void> {
    this.#waiting.delete(asset);
    entry.isLoading = true;
    this.#loading += 1;
    try {
      entry.bitmap = await this.#load(asset);
    } catch {
      // It is asked for again when it is drawn the next time, but not at once.
      setTimeout(() => this.#entries.get(asset) === entry && this.#drop(asset), PAUSE);
    }
    entry.isLoading = false;
    this.#loading -= 1;
    changed();
    this.#next(changed);
  }
}

export const bitmaps = new Bitmaps((asset) => api.image(imageUrl(asset, 64), AbortSignal.timeout(30_000)).then(createImageBitmap));
