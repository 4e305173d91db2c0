import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { graphOf, type Node } from "../sync/graph.ts";
import { newNode } from "./gestures.ts";
import { pictureOf, ratioOf, resizedPicture, shapeOfAction, shapeOfImage, sizeOfResult } from "./shapes.ts";

const EMPTY = graphOf({ title: "", nodes: [], connections: [] });
const image = (width: number, height: number, rest: Partial<Node> = {}): Node => newNode(EMPTY, "image", "i", { x: 0, y: 0 }, { position: { x: 0, y: 0 }, title: "Hero", width, height, ...rest });
const source = (side: number) => image(side, side + 28);
const photo = { width: 2400, height: 1600 };

test("the shape of a result follows from the parameters of the Action", () => {
  const shape = (slug: string, params: Record<string, string | number>, ...inputs: { width: number; height: number }[]) => shapeOfAction(slug, params, inputs.length > 0 ? inputs : [photo]);
  assert.deepEqual(shape("crop", { width: 800, height: 1000, anchor: "center" }), { width: 800, height: 1000 });
  assert.deepEqual(shape("change-aspect-ratio", { ratio: "4:5", mode: "crop" }), { width: 1280, height: 1600 });
  assert.deepEqual(shape("rotate", { degrees: 90, expand: "yes" }), { width: 1600, height: 2400 });
  for (const slug of ["color-grade", "overlay-image", "add-text-to-image"]) assert.deepEqual(shape(slug, {}), photo);
  const second = { width: 800, height: 800 };
  assert.deepEqual(shape("side-by-side-composite", { direction: "horizontal", scale: "match", gap: 10 }, photo, second), { width: 1200 + 800 + 10, height: 800 });
  assert.deepEqual(shape("side-by-side-composite", { direction: "vertical", scale: "none", gap: 0 }, photo, second), { width: 2400, height: 2400 });
  assert.equal(shape("crop", { width: 9999, height: 10 }), undefined, "not possible");
  assert.equal(shape("unknown", {}), undefined);
  assert.equal(shapeOfAction("crop", {}, []), undefined);
});

test("an image has the size that was chosen, or the shape of the picture that it changes", () => {
  assert.deepEqual(shapeOfImage("1024x1536", undefined), { width: 1024, height: 1536 });
  assert.deepEqual(shapeOfImage("auto", image(300, 228)), { width: 300, height: 200 });
  assert.equal(shapeOfImage("", undefined), undefined);
});

test("the longer side of a result is that of its source, within 240 and 640", () => {
  assert.deepEqual(sizeOfResult({ width: 4, height: 5 }, source(400), "Hero"), { width: 320, height: 428 });
  assert.deepEqual(sizeOfResult({ width: 1, height: 1 }, source(100), "Hero"), { width: 240, height: 268 });
  assert.deepEqual(sizeOfResult({ width: 2, height: 1 }, source(2000), "Hero"), { width: 640, height: 348 });
  assert.deepEqual(sizeOfResult({ width: 1, height: 1 }, undefined, "Hero"), { width: 320, height: 348 });
  assert.deepEqual(sizeOfResult(undefined, source(400), "Hero"), { width: 320, height: 320 }, "the default, which the service fits");
});

test("a picture that is resized is shown whole, and a side that is not moved stays", () => {
  const side = fc.integer({ min: 1, max: 4000 });
  fc.assert(
    fc.property(side, side, fc.integer({ min: 24, max: 3000 }), fc.boolean(), (width, height, across, isTop) => {
      const node = image(320, 348);
      const box = isTop ? { x: 10, y: 48, width: across, height: 300 } : { x: 0, y: 0, width: across, height: 300 };
      const next = resizedPicture(node, box, { width, height });
      const picture = pictureOf({ ...next, title: node.title });
      assert(Math.abs(picture.height - Math.max((across * height) / width, 1)) <= 0.5 + 1e-9);
      assert.equal(isTop ? next.y + next.height : next.y, isTop ? 348 : 0);
    }),
    { numRuns: 300, seed: 7 },
  );
});

test("a ratio is that of small numbers, or a decimal", () => {
  assert.equal(ratioOf({ width: 2400, height: 1600 }), "3:2");
  assert.equal(ratioOf({ width: 1024, height: 1024 }), "1:1");
  assert.equal(ratioOf({ width: 1200, height: 628 }), "1.91:1");
  assert.equal(ratioOf({ width: 628, height: 1200 }), "1:1.91");
});
