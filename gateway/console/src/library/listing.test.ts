import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Asset } from "../assets.ts";
import { firstPages, nextOf, type Place, sinceOf, type Sort } from "./listing.ts";

const asset = (at: number, index: number): Asset => ({ handle: `asset:ana:${index}`, createdAt: new Date(at * 1000).toISOString(), name: `n${at % 7}`, bytes: at % 11 }) as Asset;
const keys: Record<Sort, (asset: Asset) => string | number> = {
  new: ({ createdAt }) => -Date.parse(createdAt),
  old: ({ createdAt }) => Date.parse(createdAt),
  name: ({ name }) => name,
  size: ({ bytes }) => -bytes,
};
const sorted = (sort: Sort, all: Asset[]) => all.toSorted((one, other) => (keys[sort](one) < keys[sort](other) ? -1 : keys[sort](one) > keys[sort](other) ? 1 : 0));

test("places are listed in one order, each asset once, whatever the pages", async () => {
  const cases = fc.tuple(fc.array(fc.array(fc.nat(100), { maxLength: 12 }), { maxLength: 6 }), fc.constantFrom<Sort>("new", "old", "name", "size"), fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 5 }));
  await fc.assert(
    fc.asyncProperty(cases, async ([times, sort, most, size]) => {
      let index = 0;
      const stored = new Map(times.map((ages, place) => [`canvas:ana:${place}`, sorted(sort, ages.map((at) => asset(at, (index += 1))))]));
      const read = async ({ canvas = "", cursor }: Place) => {
        const from = Number(cursor ?? 0);
        const all = stored.get(canvas) ?? [];
        return { assets: all.slice(from, from + size), cursor: from + size < all.length ? String(from + size) : null };
      };
      let places: Place[] = [...stored].map(([canvas, all]) => ({ canvas, changed: all.map(({ createdAt }) => createdAt).toSorted().at(-1) ?? "", waiting: [] }));
      const listed: Asset[] = [];
      for (let page = 0; places.length > 0; page += 1) {
        assert(page < 200);
        const { items, rest } = await nextOf(places, sort, read, most);
        listed.push(...items.map((item) => item.asset));
        places = rest;
      }
      const all = [...stored.values()].flat();
      assert.deepEqual(new Set(listed.map(({ handle }) => handle)), new Set(all.map(({ handle }) => handle)));
      assert.equal(listed.length, all.length);
      assert.deepEqual(listed.map(keys[sort]), sorted(sort, all).map(keys[sort]));
    }),
    { numRuns: 300 },
  );
});

test("with the newest first, canvases that changed earlier are not read for the first page", async () => {
  const seen: (string | undefined)[] = [];
  const places = Array.from({ length: 50 }, (_, index): Place => ({ canvas: `canvas:ana:${index}`, changed: new Date((50 - index) * 1000).toISOString(), waiting: [] }));
  const read = async ({ canvas }: Place) => (seen.push(canvas), { assets: [asset(50 - Number(canvas?.split(":")[2]), 1)], cursor: null });
  const { items } = await nextOf(places, "new", read, 3);
  assert.equal(items.length, 3);
  assert(seen.length < 10, `${seen.length} are read`);
});

test("a chosen time begins with a day", () => {
  const now = new Date(2026, 10, 30, 13, 5);
  assert.equal(sinceOf("week", now), new Date(2026, 10, 23).toISOString());
  assert.equal(sinceOf("today", now), new Date(2026, 10, 30).toISOString());
  assert.deepEqual(["", "toString"].map((time) => sinceOf(time, now)), [undefined, undefined]);
});

test("no more pages are read than wanted, and it is known whether there are more", async () => {
  for (const [pages, read, isAll] of [[2, 2, true], [3, 3, true], [4, 3, false]] as const) {
    let at = 0;
    const next = (places: Place[] | undefined) => {
      assert.equal(places?.[0]?.cursor, at === 0 ? undefined : String(at));
      at += 1;
      return Promise.resolve({ items: [{ asset: asset(0, at), canvas: undefined }], rest: at < pages ? [{ cursor: String(at), waiting: [] }] : [] });
    };
    const found = await firstPages(3, next);
    assert.deepEqual([found.items.length, found.isAll, at], [read, isAll, read]);
  }
});
