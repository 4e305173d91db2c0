/**
 * Images in the size in which they are seen. Few are loaded at a time, so that changes and the event stream always have a connection,
 * and those that were asked for last come first, because they are on the screen.
 */
import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useState, useSyncExternalStore } from "react";
import { api, imageUrl } from "../api.ts";
import { assets } from "../assets.ts";
import { Problem } from "../errors.ts";
import { sessionEnd } from "../session-end.ts";

/** The widths that the service makes. */
const WIDTHS = [64, 128, 256, 512, 1024, 2048];
const WIDTH = 3;
/** The first pause after a refusal and the longest, in milliseconds. Each is twice as long as the one before. */
const REFUSED_PAUSE = 30_000;
const MOST_REFUSED_PAUSE = 600_000;
/** The first pause after another failure and the longest, in milliseconds. */
const PAUSE = 2000;
const MOST_PAUSE = 15_000;

/** The width to ask for to fill so many pixels. */
export const widthFor = (pixels: number): number => WIDTHS.find((width) => width >= pixels) ?? 2048;

/** What is known of the images of an asset. */
interface Entry {
  /** Widths that the browser has. */
  ready: Set<number>;
  /** Widths that the service has refused. They are asked for again after a while. */
  failed: Set<number>;
  /** Widths that are waited for. */
  asked: Set<number>;
  /** How many components show the asset in a width. */
  users: Map<number, number>;
  listeners: Set<() => void>;
}

interface Wanted {
  asset: string;
  width: number;
  attempts: number;
}

const entries = new Map<string, Entry>();
const wanted: Wanted[] = [];
let loading = 0;

// What one session may not see, the next may.
sessionEnd.add(() => entries.clear());

function entryOf(asset: string): Entry {
  const known = entries.get(asset);
  if (known) return known;
  const entry: Entry = { ready: new Set(), failed: new Set(), asked: new Set(), users: new Map(), listeners: new Set() };
  entries.set(asset, entry);
  return entry;
}

function next(): void {
  while (loading < WIDTH) {
    const one = wanted.pop();
    if (!one) return;
    const entry = entryOf(one.asset);
    // What left the screen in the meantime is not loaded.
    if (!entry.ready.has(one.width) && (entry.users.get(one.width) ?? 0) > 0) void load(one, entry);
    else forget(one, entry);
  }
}

function forget({ width }: Wanted, { asked, failed }: Entry): void {
  asked.delete(width);
  failed.delete(width);
}

async function load(one: Wanted, entry: Entry): Promise<void> {
  loading += 1;
  try {
    await api.image(imageUrl(one.asset, one.width), AbortSignal.timeout(30_000));
    entry.ready.add(one.width);
    forget(one, entry);
  } catch (error) {
    const attempts = one.attempts + 1;
    const isTemporary = error instanceof Problem && error.isTemporary;
    if (!isTemporary) entry.failed.add(one.width);
    const pause = isTemporary
      ? Math.max((error.retryAfter ?? 0) * 1000, Math.min(PAUSE * attempts, MOST_PAUSE))
      : Math.min(REFUSED_PAUSE * 2 ** one.attempts, MOST_REFUSED_PAUSE);
    setTimeout(() => want({ ...one, attempts }), pause);
  } finally {
    loading -= 1;
    for (const listener of entry.listeners) listener();
    next();
  }
}

function want(one: Wanted): void {
  entryOf(one.asset).asked.add(one.width);
  wanted.push(one);
  next();
}

/** Asks for an image until the returned function is called. */
function use(asset: string, width: number): () => void {
  const { ready, asked, users } = entryOf(asset);
  const before = users.get(width) ?? 0;
  users.set(width, before + 1);
  if (before === 0 && !ready.has(width) && !asked.has(width)) want({ asset, width, attempts: 0 });
  return () => void users.set(width, (users.get(width) ?? 1) - 1);
}

/** What is known of an asset, as a query. */
export const assetQuery = (handle: string) => ({ queryKey: ["asset", handle], queryFn: ({ signal }: { signal: AbortSignal }) => assets.read(handle, signal), staleTime: Infinity });
export const useAsset = (handle: string) => useQuery(assetQuery(handle));

const NEVER = () => () => {};

/** The best image of an asset that is there, for `pixels` pixels in width. */
export function useImage(asset: string | undefined, pixels: number): { url: string | undefined; hasFailed: boolean } {
  // An image that was sharp once stays so.
  const [widest, setWidest] = useState(64);
  const width = Math.max(widest, widthFor(pixels));
  useEffect(() => setWidest(width), [width]);
  useEffect(() => (asset === undefined ? undefined : use(asset, width)), [asset, width]);
  const subscribe = useCallback(
    (listener: () => void) => {
      if (asset === undefined) return () => {};
      const { listeners } = entryOf(asset);
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    [asset],
  );
  const best = useSyncExternalStore(asset === undefined ? NEVER : subscribe, () => {
    if (asset === undefined) return 0;
    const { ready, failed } = entryOf(asset);
    const known = WIDTHS.findLast((other) => other <= width && ready.has(other)) ?? WIDTHS.find((other) => ready.has(other));
    return known ?? (failed.has(width) ? -1 : 0);
  });
  return { url: asset !== undefined && best > 0 ? imageUrl(asset, best) : undefined, hasFailed: best < 0 };
}
