/** Lists of assets: those of one canvas, of no canvas, or of all, in one order. The service lists each place by itself. */
import { answer, type CanvasSummary, contract } from "../api.ts";
import { allCanvases, type Asset } from "../assets.ts";
import { Problem } from "../errors.ts";

/** The query of the lists, which all that changes assets invalidates. */
export const ASSETS = "assets";

/** Which assets are listed: all of the account, those in no canvas, or those of the canvas with this handle. */
export type Where = "all" | "none" | `canvas:${string}`;
export type Sort = "new" | "old" | "name" | "size";

/** What the service filters by, and its order. */
export interface Filter {
  kind: "image" | "all";
  sort: Sort;
  q?: string;
  model?: string;
  since?: string;
  tag?: string;
}

/** An asset and the title of the canvas that it is stored in, if it is known. */
export interface Listed {
  asset: Asset;
  canvas: string | undefined;
}

/** A place of a list, and what was read of it and is not listed yet. */
export interface Place {
  /** Handle of its canvas; without one, the assets that are in no canvas. */
  canvas?: string | undefined;
  title?: string | undefined;
  /** When the canvas changed last: nothing in it was stored later. */
  changed?: string | undefined;
  /** Where it goes on: undefined before the first page, null after the last. */
  cursor?: string | null | undefined;
  waiting: Asset[];
}

/** How many items a page has, and how many places are read at a time. */
const PAGE = 60;
const WIDTH = 4;

const compare = <T extends string | number>(one: T, other: T): number => (one < other ? -1 : one > other ? 1 : 0);
const ORDERS: Record<Sort, (one: Asset, other: Asset) => number> = {
  new: (one, other) => compare(other.createdAt, one.createdAt),
  old: (one, other) => compare(one.createdAt, other.createdAt),
  name: (one, other) => compare(one.name.toLowerCase(), other.name.toLowerCase()),
  size: (one, other) => compare(other.bytes, one.bytes),
};

/**
 * The next items of several places in one order, and the places as they are after them. Each place is read when its next item could come
 * first; with the newest first, a canvas that changed before what is known has to wait.
 */
export async function nextOf(places: readonly Place[], sort: Sort, read: (place: Place) => Promise<{ assets: Asset[]; cursor: string | null }>, most = PAGE): Promise<{ items: Listed[]; rest: Place[] }> {
  const order = ORDERS[sort];
  const open = places.map((place) => ({ ...place, waiting: [...place.waiting] }));
  const items: Listed[] = [];
  while (items.length < most) {
    let first: Place | undefined;
    for (const place of open) if (place.waiting[0] && (!first?.waiting[0] || order(place.waiting[0], first.waiting[0]) < 0)) first = place;
    const head = first?.waiting[0];
    const isLater = ({ cursor, changed }: Place) => sort === "new" && cursor === undefined && head !== undefined && changed !== undefined && changed < head.createdAt;
    const unread = open.filter((place) => place.waiting.length === 0 && place.cursor !== null && !isLater(place));
    if (unread.length > 0) {
      await Promise.all(
        unread.slice(0, WIDTH).map(async (place) => {
          const page = await read(place);
          place.waiting = page.assets;
          place.cursor = page.cursor;
        }),
      );
    } else if (first && head) {
      first.waiting.shift();
      items.push({ asset: head, canvas: first.title });
    } else break;
  }
  return { items, rest: open.filter(({ waiting, cursor }) => waiting.length > 0 || cursor !== null) };
}

async function placesOf(where: Where, signal: AbortSignal): Promise<Place[]> {
  if (where === "none") return [{ waiting: [] }];
  if (where !== "all") return [{ canvas: where, waiting: [] }];
  return [{ waiting: [] }, ...(await ownCanvases(signal)).map(({ handle, title, updatedAt }) => ({ canvas: handle, title: title || "Untitled", changed: updatedAt, waiting: [] }))];
}

/** What is stored in a canvas belongs to its owner. A session without `canvas:read` sees what is in no canvas. */
async function ownCanvases(signal: AbortSignal): Promise<CanvasSummary[]> {
  const all = await allCanvases(signal).catch((error: unknown) => {
    if (error instanceof Problem && error.status === 403) return [];
    throw error;
  });
  return all.filter(({ accessRole }) => accessRole === "owner");
}

/** The first page of a list, or the one after `places`. */
export async function pageOf(where: Where, filter: Filter, places: Place[] | undefined, signal: AbortSignal): Promise<{ items: Listed[]; rest: Place[] }> {
  const read = async ({ canvas, cursor }: Place) => {
    const query = { ...filter, limit: PAGE, ...(canvas !== undefined && { canvasId: canvas }), ...(cursor && { cursor }) };
    const { assets, page } = await answer(contract.GET("/api/canvas-agent/v1/assets", { params: { query }, signal }));
    return { assets, cursor: page.nextCursor ?? null };
  };
  return nextOf(places ?? (await placesOf(where, signal)), filter.sort, read);
}

/** The items of at most so many pages, and whether these are all. `next` reads the first page, or the one after some places. */
export async function firstPages(most: number, next: (places: Place[] | undefined) => Promise<{ items: Listed[]; rest: Place[] }>): Promise<{ items: Listed[]; isAll: boolean }> {
  const all: Listed[] = [];
  let places: Place[] | undefined;
  for (let page = 0; page < most && places?.length !== 0; page += 1) {
    const { items, rest } = await next(places);
    all.push(...items);
    places = rest;
  }
  return { items: all, isAll: places?.length === 0 };
}

/** Times that a person chooses, as days before today. */
export const TIMES = { today: ["Today", 0], week: ["Last 7 days", 7], month: ["Last 30 days", 30], year: ["Last 12 months", 365] } as const;

/** The beginning of a chosen time; undefined if it is none. It is that of a day, so the same list has the same query all day. */
export function sinceOf(time: string, now = new Date()): string | undefined {
  if (!Object.hasOwn(TIMES, time)) return undefined;
  const [, days] = TIMES[time as keyof typeof TIMES];
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() - days).toISOString();
}
