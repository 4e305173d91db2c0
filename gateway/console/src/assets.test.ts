import assert from "node:assert/strict";
import { test } from "node:test";
import { aiBadgeOf, formatOf, nodeSizeOf } from "./assets.ts";

test("a node is sized for its image and its title as the service sizes it", () => {
  assert.deepEqual(nodeSizeOf({ width: 600, height: 400 }, "Lamp"), { width: 320, height: 241 });
  assert.deepEqual(nodeSizeOf({ width: 600, height: 400 }, " "), { width: 320, height: 213 });
  assert.deepEqual(nodeSizeOf({ width: 400, height: 800 }, "Lamp"), { width: 160, height: 348 });
  assert.deepEqual(nodeSizeOf({ width: 1, height: 30_000 }, "Lamp"), { width: 1, height: 320 });
  assert.deepEqual(nodeSizeOf({ width: 640, height: 100 }, "Lamp"), { width: 320, height: 50 });
  assert.deepEqual(nodeSizeOf({ width: 0, height: 0 }, ""), { width: 1, height: 1 });
});

test("only what was made with AI has a badge", () => {
  assert.deepEqual(
    (["yes", "partly", "no", "unknown"] as const).map((aiGenerated) => aiBadgeOf({ aiGenerated })),
    ["AI", "partly AI", undefined, undefined],
  );
});

test("media types are named as people name them", () => {
  assert.equal(formatOf("image/jpeg"), "JPEG");
});
