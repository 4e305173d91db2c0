import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { mainColors } from "./swatches.ts";

test("the main colors of an image are its own, the most frequent first, and each is another", () => {
  const pixels = new Uint8ClampedArray([200, 0, 0, 255, 200, 0, 0, 255, 204, 2, 0, 255, 0, 0, 250, 255, 0, 0, 250, 255, 0, 255, 0, 0]);
  assert.deepEqual(mainColors(pixels, 6), ["#c90100", "#0000fa"]);
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 4, maxLength: 400 }), fc.integer({ min: 1, max: 8 }), (bytes, most) => {
      const colors = mainColors(new Uint8ClampedArray(bytes.slice(0, bytes.length - (bytes.length % 4))), most);
      assert(colors.length <= most && new Set(colors).size === colors.length && colors.every((color) => /^#[0-9a-f]{6}$/.test(color)));
    }),
    { numRuns: 300 },
  );
});
