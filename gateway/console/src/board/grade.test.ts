import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { grade } from "./grade.ts";

function graded(color: [number, number, number], params: Record<string, string | number>): number[] {
  const pixels = new Uint8ClampedArray([...color, 77]);
  grade(pixels, params);
  assert.equal(pixels[3], 77);
  return [...pixels].slice(0, 3);
}

const near = (found: number[], expected: number[]) => assert(found.every((value, at) => Math.abs(value - (expected[at] ?? 0)) <= 1), `${found} is not ${expected}`);

test("colors are those of the service: its own examples", () => {
  near(graded([200, 100, 50], { saturation: -100 }), [117, 117, 117]);
  near(graded([200, 100, 50], { saturation: 50 }), [241, 91, 16]);
  near(graded([255, 0, 0], { vibrance: 100 }), [255, 0, 0]);
  near(graded([200, 100, 50], { preset: "noir" }), [114, 114, 114]);
  near(graded([200, 100, 50], { preset: "sepia" }), [165, 147, 114]);
  near(graded([200, 100, 50], { preset: "sepia", intensity: 50 }), [182, 123, 82]);
  near(graded([200, 100, 50], { preset: "warm" }), [216, 102, 44]);
  near(graded([200, 100, 50], { preset: "cool" }), [180, 100, 55]);
  near(graded([0, 0, 0], { preset: "faded" }), [26, 26, 26]);
  near(graded([255, 255, 255], { preset: "faded" }), [240, 240, 240]);
});

test("neutral values change nothing, and gray stays gray", () => {
  const sample = fc.integer({ min: 0, max: 255 });
  const percent = fc.integer({ min: -100, max: 100 });
  fc.assert(fc.property(sample, sample, sample, (r, g, b) => assert.deepEqual(graded([r, g, b], { preset: "none", gamma: 1 }), [r, g, b])), { numRuns: 300 });
  fc.assert(
    fc.property(sample, percent, percent, percent, percent, (v, contrast, saturation, highlights, shadows) => {
      const [r, g, b] = graded([v, v, v], { contrast, saturation, highlights, shadows }) as [number, number, number];
      assert(Math.abs(r - g) <= 1 && Math.abs(g - b) <= 1);
    }),
    { numRuns: 300 },
  );
});
