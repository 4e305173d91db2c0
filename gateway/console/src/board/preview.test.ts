import assert from "node:assert/strict";
import { test } from "node:test";
import { anchorNear, previewOf } from "./preview.ts";

const SOURCE = { width: 400, height: 200 };

test("a crop is placed by its anchor, or by its corner", () => {
  const size = { width: 100, height: 100 };
  assert.deepEqual(previewOf("crop", { ...size, anchor: "bottom-right" }, SOURCE), { size, image: { x: -300, y: -100, ...SOURCE } });
  assert.deepEqual(previewOf("crop", { ...size, x: 10, y: 20 }, SOURCE)?.image, { x: -10, y: -20, ...SOURCE });
  assert.equal(previewOf("crop", { width: 401, height: 10 }, SOURCE), undefined, "the service refuses it");
});

test("a resize with one side keeps the ratio", () => {
  assert.deepEqual(previewOf("resize", { width: 200 }, SOURCE)?.size, { width: 200, height: 100 });
  assert.deepEqual(previewOf("resize", { height: 400, enlarge: "no" }, SOURCE)?.size, SOURCE);
  assert.equal(previewOf("resize", {}, SOURCE), undefined);
});

test("a resize into a box follows the fit", () => {
  const box = { width: 100, height: 100 };
  const of = (fit: string, more: Record<string, string> = {}) => previewOf("resize", { ...box, fit, ...more }, SOURCE);
  assert.deepEqual(of("inside")?.size, { width: 100, height: 50 });
  assert.deepEqual(of("outside")?.size, { width: 200, height: 100 });
  assert.deepEqual(of("fill"), { size: box, image: { x: 0, y: 0, ...box } });
  assert.deepEqual(of("cover", { anchor: "left" }), { size: box, image: { x: -0, y: 0, width: 200, height: 100 } });
  assert.deepEqual(of("contain", { anchor: "bottom", background: "#fff" }), { size: box, image: { x: 0, y: 50, width: 100, height: 50 }, background: "#fff" });
});

test("a box that may not enlarge shrinks until the image covers it", () => {
  assert.deepEqual(previewOf("resize", { width: 800, height: 800, fit: "cover", enlarge: "no" }, SOURCE)?.size, { width: 200, height: 200 });
});

test("a ratio crops to the largest part, or pads to the smallest whole", () => {
  assert.deepEqual(previewOf("change-aspect-ratio", { ratio: "1:1" }, SOURCE)?.size, { width: 200, height: 200 });
  assert.deepEqual(previewOf("change-aspect-ratio", { ratio: "1:1", mode: "pad" }, SOURCE)?.size, { width: 400, height: 400 });
  assert.deepEqual(previewOf("change-aspect-ratio", { ratio: "4:1", mode: "blur" }, SOURCE)?.size, { width: 800, height: 200 });
  assert.equal(previewOf("change-aspect-ratio", { ratio: "wide" }, SOURCE), undefined);
});

test("a quarter turn swaps the sides, and other turns grow unless they must not", () => {
  assert.deepEqual(previewOf("rotate", { degrees: 90 }, SOURCE)?.size, { width: 200, height: 400 });
  assert.deepEqual(previewOf("rotate", { degrees: 45 }, SOURCE)?.size, { width: 424, height: 424 });
  assert.deepEqual(previewOf("rotate", { degrees: 45, expand: "no" }, SOURCE)?.size, SOURCE);
});

test("a point is near to one of nine places", () => {
  assert.deepEqual([[0, 0], [0.5, 0.1], [0.9, 0.2], [0.3, 0.5], [0.5, 0.5], [1, 0.34], [-1, 2], [0.34, 0.67], [7, 7]].map(([x = 0, y = 0]) => anchorNear({ x, y })), ["top-left", "top", "top-right", "left", "center", "right", "bottom-left", "bottom", "bottom-right"]);
});
