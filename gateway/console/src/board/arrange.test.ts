import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { applied } from "../sync/change.ts";
import { type Graph, graphOf, type Node } from "../sync/graph.ts";
import { aligned, distributed, dragged, type Edge, gripOf, HELD, linesOf, readingRows, resizedTo, sameSize, snapped, stacked, unitsOf } from "./arrange.ts";
import { newNode } from "./gestures.ts";
import { around, boxOf } from "./spatial.ts";

const EMPTY = graphOf({ title: "", nodes: [], connections: [] });
const node = (id: string, x: number, y: number, rest: Partial<Node> = {}): Node => newNode(EMPTY, "text", id, { x: 0, y: 0 }, { position: { x, y }, width: 100, height: 60, ...rest });
const graph = (...nodes: Node[]): Graph => graphOf({ title: "", nodes, connections: [] });
const locked = { metadata: { locked: true } };
const places = (graph: Graph) => [...graph.nodes.values()].map(({ position: { x, y } }) => [x, y]);

const place = fc.integer({ min: -2000, max: 2000 });
const side = fc.integer({ min: 24, max: 600 });
const boards = fc
  .array(fc.record({ x: place, y: place, width: side, height: side }), { minLength: 2, maxLength: 12 })
  .map((boxes) => graph(...boxes.map(({ x, y, width, height }, at) => node(`n${at}`, x, y, { width, height }))));
const idsOf = (graph: Graph) => [...graph.nodes.keys()];

test("alignment brings an edge or the middle to one line, within the bounds of all, and again it changes nothing", () => {
  fc.assert(
    fc.property(boards, fc.constantFrom<Edge>("left", "right", "top", "bottom", "center", "middle"), (before, edge) => {
      const after = applied(before, aligned(before, idsOf(before), edge));
      const boxes = [...after.nodes.values()].map(boxOf);
      const lines = { left: "x", right: "x", center: "x", top: "y", bottom: "y", middle: "y" } as const;
      const share = { left: 0, top: 0, center: 0.5, middle: 0.5, right: 1, bottom: 1 }[edge];
      const axis = lines[edge];
      const length = axis === "x" ? "width" : "height";
      const found = boxes.map((box) => box[axis] + share * box[length]);
      assert(Math.max(...found) - Math.min(...found) <= 2);
      const [was, now] = [around([...before.nodes.values()].map(boxOf)), around(boxes)];
      assert(was && now && now[axis] >= was[axis] - 0.5 && now[axis] + now[length] <= was[axis] + was[length] + 0.5);
      assert.deepEqual(aligned(after, idsOf(after), edge), []);
    }),
  );
});

test("locked nodes stay, and are what the others are aligned to", () => {
  const before = graph(node("a", 0, 0), node("b", 50, 200, locked), node("c", 300, 400));
  assert.deepEqual(places(applied(before, aligned(before, ["a", "b", "c"], "left"))), [[50, 0], [50, 200], [50, 400]]);
  assert.deepEqual(aligned(before, ["a"], "left"), []);
});

test("a Section is arranged with its members", () => {
  const section = newNode(EMPTY, "section", "s", { x: 0, y: 0 }, { position: { x: 200, y: 0 }, width: 500, height: 400 });
  const before = graph(section, node("in", 240, 80, { metadata: { sectionId: "s" } }), node("out", 0, 600));
  assert.deepEqual(unitsOf(before, ["s", "in", "out"]).map(({ id }) => id), ["s", "out"]);
  assert.deepEqual(places(applied(before, aligned(before, ["s", "in", "out"], "left"))), [[0, 0], [40, 80], [0, 600]]);
});

test("equal gaps keep the outer two, and again they change nothing", () => {
  const before = graph(node("a", 0, 0), node("b", 130, 5), node("c", 500, 9));
  assert.deepEqual(places(applied(before, distributed(before, ["a", "b", "c"], "x"))), [[0, 0], [250, 5], [500, 9]]);
  assert.deepEqual(distributed(before, ["a", "b"], "x"), []);
  fc.assert(
    fc.property(boards, fc.constantFrom("x" as const, "y" as const), (before, axis) => {
      const after = applied(before, distributed(before, idsOf(before), axis));
      assert.deepEqual(distributed(after, idsOf(after), axis), []);
    }),
  );
});

test("one height keeps the ratio of images, whose title is not part of it", () => {
  const image = { type: "image", asset: "asset:u:1" } as const;
  const before = graph(node("a", 0, 0, { ...image, width: 200, height: 128 }), node("b", 300, 0, { ...image, width: 300, height: 328 }), node("c", 700, 0, { width: 50, height: 50 }));
  const after = applied(before, sameSize(before, ["a", "b", "c"], "height"));
  assert.deepEqual([...after.nodes.values()].map(({ width, height }) => [width, height]), [[200, 128], [100, 128], [50, 128]]);
});

test("the front is above everything and the back below it, in the order that was there", () => {
  const before = graph(node("a", 0, 0, { metadata: { zIndex: 3 } }), node("b", 0, 0), node("c", 0, 0, { metadata: { zIndex: 5 } }));
  const levels = (end: "front" | "back") => [...applied(before, stacked(before, ["a", "b"], end)).nodes.values()].map(({ metadata }) => metadata.zIndex);
  assert.deepEqual(levels("front"), [7, 6, 5]);
  assert.deepEqual(levels("back"), [-1, -2, 5]);
});

test("nodes are read in rows from left to right", () => {
  const rows = readingRows([node("c", 0, 100), node("b", 300, 0), node("a", 0, 20), node("d", 200, 129)]);
  assert.deepEqual(rows.map((row) => row.map(({ id }) => id)), [["a", "b"], ["c", "d"]]);
});

test("what is dragged snaps to the nearest line within 6 pixels or stays, and is there then", () => {
  const box = fc.record({ x: place, y: place, width: side, height: side });
  fc.assert(
    fc.property(boards, box, fc.constantFrom(0.25, 1, 4), (graph, box, scale) => {
      const lines = linesOf([...graph.nodes.values()]);
      const { by, guides } = snapped(box, lines, 6 / scale);
      assert(Math.max(Math.abs(by.x), Math.abs(by.y)) <= 6 / scale);
      for (const axis of ["x", "y"] as const) if (!guides.some((guide) => guide.axis === axis)) assert.equal(by[axis], 0);
      const there = { ...box, x: box.x + by.x, y: box.y + by.y };
      // An equal gap depends on the row, which the other axis may have changed.
      const isGap = guides.some(({ gap }) => gap !== undefined);
      const again = snapped(there, lines, 6 / scale).by;
      if (!isGap) assert(Math.max(Math.abs(again.x), Math.abs(again.y)) < 6 / scale);
    }),
  );
  const lines = linesOf([node("a", 0, 0)]);
  const at = (x: number, before?: Parameters<typeof snapped>[4]) => snapped({ x, y: 500, width: 100, height: 60 }, lines, 6, undefined, before);
  assert.deepEqual([at(6).by.x, at(7).by.x], [-6, 0]);
  assert.deepEqual([at(9, at(2).guides).by.x, at(11, at(2).guides).by.x], [-9, 0], "a line is left at 10 pixels");
});

test("a gap that equals that of neighbors is snapped to, and named", () => {
  const { by, guides } = snapped({ x: 277, y: 3, width: 90, height: 50 }, linesOf([node("a", 0, 0), node("b", 140, 0)]), 6, { x: [0, 0.5, 1], y: [] });
  assert.deepEqual([by.x, guides], [3, [{ axis: "x", at: 280, from: 3, to: 53, gap: 40 }]]);
});

test("Shift keeps a drag on an axis, until the other is ahead by 8 pixels", () => {
  const grip = gripOf(graph(node("a", 0, 0)), new Set(["a"]));
  const straight = { ...HELD, isStraight: true };
  const to = (x: number, y: number, before = { x: 0, y: 0 }) => dragged(grip, { x, y }, straight, 1, { by: before }).by;
  assert.deepEqual(to(100, 30), { x: 100, y: 0 });
  assert.deepEqual(to(100, 105, { x: 99, y: 0 }), { x: 100, y: 0 });
  assert.deepEqual(to(100, 109, { x: 99, y: 0 }), { x: 0, y: 109 });
});

test("Ctrl snaps to nothing", () => {
  const before = graph(node("a", 0, 0), node("b", 300, 0));
  const grip = gripOf(before, new Set(["a"]), { x: -1000, y: -1000, width: 3000, height: 3000 });
  const by = (isFree: boolean) => dragged(grip, { x: 297, y: 200 }, { ...HELD, isFree }, 1, { by: { x: 0, y: 0 } }).by.x;
  assert.deepEqual([by(false), by(true)], [300, 297]);
});

test("the edge that is resized snaps, and an image keeps its ratio", () => {
  const before = graph(node("a", 0, 0), node("b", 300, 200));
  const grip = gripOf(before, new Set(["a"]), { x: -1000, y: -1000, width: 3000, height: 3000 });
  assert.deepEqual(resizedTo(grip, { x: 0, y: 0, width: 296, height: 197 }, HELD, 1).box, { x: 0, y: 0, width: 300, height: 200 });
  assert.deepEqual(resizedTo(grip, { x: 0, y: 0, width: 296, height: 148 }, HELD, 1, [], true).box, { x: 0, y: 0, width: 300, height: 150 });
});
