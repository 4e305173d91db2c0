/**
 * Pictures in the size in which they are seen. Few are loaded at a time, so that changes and the event stream always have a connection,
 * and those that were asked for last come first, because they are on the screen.
 */
import { useEffect, useState, useSyncExternalStore } from "react";
import { api, pictureUrl } from "../api.ts";
import { Problem } from "../errors.ts";

/** The widths that the service makes. */
const WIDTHS = [64, 128, 256, 512, 1024, 2048];
const WIDTH = 3;
const MOST_ATTEMPTS = 8;
/** The least pause between two attempts, in milliseconds. */
const PAUSE = 2000;
const MOST_BITMAPS = 2000;

/** The width to ask for to fill so many pixels. */
export const widthFor = (pixels: number): number => WIDTHS.find((width) => width >= pixels) ?? 2048;

type State = "loading" | "ready" | "failed";

interface Entry {
  state: State;
  attempts: number;
  users: number;
}

const entries = new Map<string, Entry>();
const wanted: string[] = [];
const listeners = new Set<() => void>();
let loading = 0;

function emit(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function next(): void {
  while (loading < WIDTH) {
    const url = wanted.pop();
    if (url === undefined) return;
    const entry = entries.get(url);
    // What left the screen in the meantime is not loaded.
    if (entry?.state === "loading" && entry.users > 0) void load(url, entry);
  }
}

async function load(url: string, entry: Entry): Promise<void> {
  loading += 1;
  try {
    await api.picture(url, AbortSignal.timeout(30_000));
    entry.state = "ready";
    emit();
  } catch (error) {
    entry.attempts += 1;
    const isTemporary = error instanceof Problem && error.isTemporary && entry.attempts < MOST_ATTEMPTS;
    if (isTemporary) {
      setTimeout(() => {
        wanted.push(url);
        next();
      }, Math.max((error.retryAfter ?? 0) * 1000, PAUSE));
    } else {
      entry.state = "failed";
      emit();
    }
  } finally {
    loading -= 1;
    next();
  }
}

function use(url: string): () => void {
  const entry = entries.get(url) ?? { state: "loading", attempts: 0, users: 0 };
  entries.set(url, entry);
  entry.users += 1;
  if (entry.state === "loading" && !wanted.includes(url)) {
    wanted.push(url);
    next();
  }
  return () => {
    entry.users -= 1;
    if (entry.users === 0 && entry.state === "loading") entries.delete(url);
  };
}

/** The best picture of an asset that is there, for `pixels` pixels in width. */
export function usePicture(asset: string | undefined, pixels: number): { url: string | undefined; hasFailed: boolean } {
  // A picture that was sharp once stays so.
  const [widest, setWidest] = useState(64);
  const width = Math.max(widest, widthFor(pixels));
  const url = asset === undefined ? undefined : pictureUrl(asset, width);
  useEffect(() => setWidest(width), [width]);
  useEffect(() => (url === undefined ? undefined : use(url)), [url]);
  const best = useSyncExternalStore(subscribe, () => {
    if (asset === undefined || url === undefined) return undefined;
    const isReady = (width: number) => entries.get(pictureUrl(asset, width))?.state === "ready";
    const smaller = WIDTHS.findLast((other) => other <= width && isReady(other)) ?? WIDTHS.find(isReady);
    return smaller === undefined ? undefined : pictureUrl(asset, smaller);
  });
  const hasFailed = useSyncExternalStore(subscribe, () => url !== undefined && entries.get(url)?.state === "failed");
  return { url: best, hasFailed: hasFailed && best === undefined };
}

// Bitmaps for the overview

const bitmaps = new Map<string, ImageBitmap | "loading" | "failed">();
const waiting: string[] = [];
let decoding = 0;

/** The smallest picture of an asset, as soon as it is there. `changed` is called when it is. */
export function bitmapOf(asset: string, changed: () => void): ImageBitmap | undefined {
  const known = bitmaps.get(asset);
  if (known === undefined) {
    bitmaps.set(asset, "loading");
    waiting.push(asset);
    decode(changed);
  }
  return typeof known === "object" ? known : undefined;
}

function decode(changed: () => void): void {
  if (decoding >= WIDTH) return;
  const asset = waiting.pop();
  if (asset === undefined) return;
  decoding += 1;
  const done = (bitmap: ImageBitmap | undefined) => {
    if (bitmap) bitmaps.set(asset, bitmap);
    // It is asked for again when it is drawn the next time, but not at once.
    else setTimeout(() => bitmaps.delete(asset), 15_000);
    for (const [old, picture] of bitmaps) {
      if (bitmaps.size <= MOST_BITMAPS) break;
      if (typeof picture === "object") picture.close();
      bitmaps.delete(old);
    }
    decoding -= 1;
    changed();
    decode(changed);
  };
  api
    .picture(pictureUrl(asset, 64), AbortSignal.timeout(30_000))
    .then(createImageBitmap)
    .then(done, () => done(undefined));
}
