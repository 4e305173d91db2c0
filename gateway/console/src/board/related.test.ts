import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Action } from "../api.ts";
import { relatedParams } from "./related.ts";

const action = (slug: string, ...ids: [id: string, required: boolean, value?: string | number][]) =>
  ({ slug, parameters: ids.map(([id, required, value]) => ({ id, title: id, type: typeof value === "string" ? "text" : "number", required, default: value })) }) as unknown as Action;
const CROP = action("crop", ["width", true], ["height", true], ["x", false], ["y", false]);
const TEXT = action("add-text-to-image", ["text", true, ""], ["offsetX", false, 0], ["offsetY", false, 0]);
const size = (width: number, height: number) => ({ width, height });
const impossible = (entries: Record<string, string>, ...sizes: Parameters<typeof relatedParams>[2]) => relatedParams(CROP, entries, sizes).map(({ isImpossible }) => isImpossible);
const side = fc.integer({ min: 1, max: 9000 });

test("a rectangle that fits all images is the same for all, else it is the same share of each", () => {
  const entries = { width: "300", height: "200", x: "100", y: "50" };
  assert.deepEqual(relatedParams(CROP, entries, [size(600, 400), size(500, 400)]).map(({ params, isRelated }) => [params, isRelated]), [
    [{ width: 300, height: 200, x: 100, y: 50 }, false],
    [{ width: 300, height: 200, x: 100, y: 50 }, false],
  ]);
  const [first, small] = relatedParams(CROP, entries, [size(600, 400), size(300, 100)]);
  assert.deepEqual([first?.params, first?.isRelated], [{ width: 300, height: 200, x: 100, y: 50 }, false]);
  assert.deepEqual([small?.params, small?.isRelated, small?.shape], [{ width: 150, height: 50, x: 50, y: 13 }, true, size(150, 50)]);
});

test("in relation, a rectangle is in the image", () => {
  const cases = fc.record({ first: fc.record({ width: side, height: side }), other: fc.record({ width: side, height: side }), parts: fc.tuple(...Array.from({ length: 4 }, () => fc.double({ min: 0, max: 1, noNaN: true }))) });
  fc.assert(
    fc.property(cases, ({ first, other, parts: [a = 0, b = 0, c = 0, d = 0] }) => {
      const width = Math.max(Math.round(first.width * a), 1);
      const height = Math.max(Math.round(first.height * b), 1);
      const entries = { width: `${width}`, height: `${height}`, x: `${Math.floor((first.width - width) * c)}`, y: `${Math.floor((first.height - height) * d)}` };
      for (const [index, { params, isImpossible }] of relatedParams(CROP, entries, [first, other]).entries()) {
        const { width: most, height: high } = index === 0 ? first : other;
        const [x, y, w, h] = [params["x"], params["y"], params["width"], params["height"]].map(Number) as [number, number, number, number];
        assert(!isImpossible && x >= 0 && y >= 0 && w >= 1 && h >= 1 && x + w <= most && y + h <= high, JSON.stringify(params));
      }
    }),
  );
});

test("what is not possible for the first image, or of an image that cannot be read, is said; what is not complete is not", () => {
  assert.deepEqual(impossible({ width: "700", height: "10" }, size(600, 400), size(800, 400)), [true, true]);
  assert.deepEqual(impossible({ width: "70", height: "10" }, size(600, 400), undefined, size(80, 40)), [false, true, false]);
  assert.deepEqual(impossible({ width: "70" }, size(600, 400), size(80, 40)), [false, false]);
});

test("offsets are in relation, and all else is the same", () => {
  const [, second] = relatedParams(TEXT, { text: "Sale", offsetX: "60", offsetY: "-40" }, [size(600, 400), size(300, 800)]);
  assert.deepEqual(second?.params, { text: "Sale", offsetX: 30, offsetY: -80 });
  const ratio = action("change-aspect-ratio", ["ratio", true, ""]);
  assert.deepEqual(relatedParams(ratio, { ratio: "4:5" }, [size(600, 400), size(300, 800)]).map(({ shape }) => shape), [size(320, 400), size(300, 375)]);
});
