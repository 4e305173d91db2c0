import assert from "node:assert/strict";
import { test } from "node:test";
import { boxBetween, maskSize } from "./masking.ts";

test("a mask is painted in the size of its image, or in 2048 pixels of its shape", () => {
  assert.deepEqual(maskSize({ width: 1500, height: 1000 }), { width: 1500, height: 1000 });
  assert.deepEqual(maskSize({ width: 2048, height: 2048 }), { width: 2048, height: 2048 });
  assert.deepEqual(maskSize({ width: 4096, height: 3000 }), { width: 2048, height: 1500 });
  assert.deepEqual(maskSize({ width: 16384, height: 1 }), { width: 2048, height: 1 });
});

test("a rectangle is drawn in any direction and ends at the edges", () => {
  const size = { width: 100, height: 50 };
  assert.deepEqual(boxBetween([{ x: 10, y: 20 }, { x: 40, y: 30 }], size), { x: 10, y: 20, width: 30, height: 10 });
  assert.deepEqual(boxBetween([{ x: 40, y: 30 }, { x: 10, y: 20 }], size), { x: 10, y: 20, width: 30, height: 10 });
  assert.deepEqual(boxBetween([{ x: -5, y: -5 }, { x: 200, y: 80 }], size), { x: 0, y: 0, width: 100, height: 50 });
  assert.deepEqual(boxBetween([{ x: 120, y: 10 }, { x: 130, y: 20 }], size), { x: 100, y: 10, width: 0, height: 10 });
});
