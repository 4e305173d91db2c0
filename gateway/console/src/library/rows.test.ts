import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { rowsOf, shownRatio, stepOf } from "./rows.ts";

const sides = fc.tuple(fc.integer({ min: 0, max: 5000 }), fc.integer({ min: 0, max: 5000 }));

test("every image is in one row, in order; rows are full and none is too wide", () => {
  fc.assert(
    fc.property(fc.array(sides, { maxLength: 60 }), fc.integer({ min: 200, max: 1600 }), fc.constantFrom(88, 150, 240), (sizes, width, height) => {
      const ratios = sizes.map(([width, height]) => shownRatio(width, height));
      const rows = rowsOf(ratios, width, height, 10);
      assert.deepEqual(rows.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, index) => from + index)), ratios.map((_, index) => index));
      for (const [index, row] of rows.entries()) {
        const wide = ratios.slice(row.from, row.to).reduce((sum, ratio) => sum + ratio * row.height, 0) + (row.to - row.from - 1) * 10;
        assert(wide <= width + 0.5, "it fits");
        assert(row.height <= 1.6 * height + 1);
        if (index < rows.length - 1 && row.height < Math.floor(1.6 * height)) assert(wide > width - 2 * (row.to - row.from) * 2.6 - 2, "it is full");
      }
    }),
    { numRuns: 300 },
  );
});

test("keys reach every image, and down and up come back to the same row", () => {
  const ratios = [1, 2, 1, 0.7, 1.5, 2.6, 1, 1, 1];
  const rows = rowsOf(ratios, 500, 150, 10);
  assert(rows.length > 2);
  let at = 0;
  for (let key = stepOf(rows, ratios, at, "ArrowRight"); key !== undefined; key = stepOf(rows, ratios, at, "ArrowRight")) at = key;
  assert.equal(at, ratios.length - 1);
  assert.equal(stepOf(rows, ratios, at, "Home"), 0);
  assert.deepEqual([stepOf(rows, ratios, 0, "ArrowUp"), stepOf(rows, ratios, 0, "ArrowLeft"), stepOf(rows, ratios, 0, "x")], [undefined, undefined, undefined]);
  const below = stepOf(rows, ratios, 0, "ArrowDown") ?? 0;
  assert.equal(below, rows[1]?.from, "the nearest one");
  assert((stepOf(rows, ratios, below, "ArrowUp") ?? 9) < (rows[0]?.to ?? 0));
});
