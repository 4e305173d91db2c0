import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { graphOf, isSection, type Node } from "../sync/graph.ts";
import type { Box } from "../view.ts";
import { newNode } from "./gestures.ts";
import { arranged, between, GAP, onPlane, pannedTo, placeFor, placesAround, placesFor, roomFor, shareIn, viewFor } from "./places.ts";
import { around, boxOf, encloses, touches } from "./spatial.ts";

const isNear = (one: number, other: number) => assert(Math.abs(one - other) < 1e-6 * (1 + Math.abs(one)), `${one} ${other}`);

test("a view on the way between two keeps the point that is at one place in both, and begins and ends with them", () => {
  const zoom = fc.double({ min: 0.02, max: 8, noNaN: true });
  const offset = fc.double({ min: -5000, max: 5000, noNaN: true });
  const views = fc.record({ x: offset, y: offset, zoom });
  fc.assert(
    fc.property(views, views, fc.double({ min: 0, max: 1, noNaN: true }), (from, to, part) => {
      fc.pre(Math.abs(from.zoom - to.zoom) > 0.01);
      for (const side of ["x", "y"] as const) {
        isNear(between(from, to, 0)[side], from[side]);
        isNear(between(from, to, 1)[side], to[side]);
        const fixed = (from[side] - to[side]) / (to.zoom - from.zoom);
        const now = between(from, to, part);
        isNear(fixed * now.zoom + now[side], fixed * from.zoom + from[side]);
      }
    }),
  );
  assert.deepEqual(between({ x: 0, y: 10, zoom: 2 }, { x: 8, y: 10, zoom: 2 }, 0.25), { x: 2, y: 10, zoom: 2 });
});

const EMPTY = graphOf({ title: "", nodes: [], connections: [] });
const board = (...nodes: Node[]) => graphOf({ title: "", nodes, connections: [] });
const made = (kind: "image" | "section", id: string, { x, y, width, height }: Box, sectionId?: string): Node =>
  newNode(EMPTY, kind, id, { x: 0, y: 0 }, { position: { x, y }, width, height, metadata: { ...(kind === "section" && { section: true }), ...(sectionId && { sectionId }) } });
const image = (id: string, x: number, y: number, width = 320, height = 348, home?: string) => made("image", id, { x, y, width, height }, home);

const FREE: Box = { x: 0, y: 0, width: 1400, height: 900 };
const where = (x: number, y: number) => ({ at: { x, y }, free: FREE });
const cells = (count: number) => arranged(Array.from({ length: count }, () => ({ width: 100, height: 50 })));
const area = ({ width, height }: Box) => width * height;
const place = fc.integer({ min: -3000, max: 3000 });
const side = fc.integer({ min: 24, max: 900 });
const box = fc.record({ x: place, y: place, width: side, height: side });
const size = fc.record({ width: side, height: side });
const crowd = fc.array(fc.record({ box, isSection: fc.boolean() }), { maxLength: 60 });
const grown = ({ x, y, width, height }: Box): Box => ({ x: x - GAP + 1, y: y - GAP + 1, width: width + 2 * GAP - 2, height: height + 2 * GAP - 2 });

/** A board on which nodes lie as they fall, and members of Sections are so by their middle. */
const boards = crowd.map((all) => {
  const sections = all.flatMap(({ box, isSection }, index) => (isSection && index % 5 === 0 ? made("section", `s${index}`, { ...box, width: box.width * 2, height: box.height * 2 }) : []));
  const nodes = all.flatMap(({ box, isSection }, index) => {
    if (isSection && index % 5 === 0) return [];
    const home = sections.find((section) => encloses(boxOf(section), box));
    return made("image", `n${index}`, box, home?.id);
  });
  return sections.concat(nodes);
});

test("new nodes cover nothing, cross no frame, and are where they were before on the same board, in 10 000 boards", () => {
  fc.assert(
    fc.property(boards, fc.array(size, { minLength: 1, maxLength: 9 }), fc.option(fc.nat()), box, fc.record({ x: place, y: place }), (nodes, sizes, pick, free, at) => {
      const graph = board(...nodes);
      const images = nodes.filter((node) => !isSection(node));
      const source = pick === null || images.length === 0 ? undefined : images[pick % images.length];
      const where = { ...(source && { sources: [source] }), at, free };
      const points = placesFor(graph, sizes, where);
      const boxes = points.map((point, index) => ({ ...point, ...(sizes[index] ?? assert.fail()) }));
      for (const [index, one] of boxes.entries()) {
        assert(images.every((node) => !touches(boxOf(node), grown(one))), "away from all others");
        assert(boxes.every((other, at) => at === index || !touches(other, grown(one))), "and from each other");
        for (const section of nodes.filter(isSection)) assert(encloses(boxOf(section), one) || !touches(boxOf(section), one), "inside of a Section or outside");
      }
      assert.deepEqual(placesFor(board(...nodes.toReversed()), sizes, where), points, "whatever the order of the nodes, where Sections are not nested");
    }),
    { numRuns: 10_000, seed: 7 },
  );
});

test("results are to the right of their source, or else below it, with level tops", () => {
  const source = image("a", 0, 0);
  const where = { sources: [source], free: FREE };
  assert.deepEqual(placesFor(board(source), [{ width: 200, height: 100 }, { width: 100, height: 300 }], where), [{ x: 344, y: 0 }, { x: 568, y: 0 }]);
  const wall = image("w", 400, -2000, 40, 4000);
  assert.deepEqual(placesFor(board(source, wall), [{ width: 200, height: 100 }], where), [{ x: 0, y: 372 }]);
});

test("of free places, the first that is seen as a whole is taken, or the one that is seen most", () => {
  const source = image("a", 1200, 0);
  assert.deepEqual(placesFor(board(source), [{ width: 320, height: 348 }], { sources: [source], free: { x: 0, y: 0, width: 1540, height: 900 } }), [{ x: 1200, y: 372 }], "below, since the right is out of view");
  const [far] = placesFor(board(source), [{ width: 320, height: 348 }], { sources: [source], free: { x: -9000, y: 0, width: 800, height: 800 } });
  assert(far && encloses({ x: -9000, y: 0, width: 800, height: 800 }, { ...far, width: 320, height: 348 }), "in view, since the source is not");
});

test("a result joins the Section of its source, or is to the right of it", () => {
  const section = made("section", "s", { x: 0, y: 0, width: 900, height: 600 });
  const source = image("a", 40, 100, 320, 348, "s");
  const [first] = placesFor(board(section, source), [{ width: 320, height: 348 }], { sources: [source], free: FREE });
  assert.deepEqual(first, { x: 384, y: 100 });
  const [wide] = placesFor(board(section, source), [{ width: 640, height: 348 }], { sources: [source], free: { x: 0, y: 0, width: 3000, height: 2000 } });
  assert.deepEqual(wide, { x: 924, y: 100 });
});

test("a free place that was asked for is taken, and otherwise the nearest", () => {
  assert.deepEqual(placeFor(EMPTY, { width: 100, height: 100 }, where(300, 200)), { x: 250, y: 150 });
  assert.deepEqual(placeFor(board(image("a", 0, 0)), { width: 100, height: 100 }, where(320, 100)), { x: 344, y: 50 });
  const section = made("section", "s", { x: 0, y: 0, width: 900, height: 600 });
  assert.deepEqual(placeFor(board(section), { width: 100, height: 100 }, where(890, 300)), { x: 800, y: 250 }, "inside of the Section at the point");
});

test("up to four are a row, more are a grid", () => {
  assert.deepEqual(new Set(cells(4).map(({ y }) => y)), new Set([0]));
  assert.deepEqual(cells(5).map(({ x, y }) => [x, y]), [[0, 0], [124, 0], [248, 0], [0, 74], [124, 74]]);
});

test("places around a node are near and free, and for a Section only other Sections are in the way", () => {
  const b = image("b", 40, 40);
  const graph = board(image("a", 0, 0), b, image("c", 500, 40), made("section", "s", { x: -500, y: -500, width: 4000, height: 4000 }));
  const places = placesAround(graph, b);
  for (const point of places) for (const id of ["a", "c"]) assert(!touches(boxOf(graph.nodes.get(id) as Node), { ...boxOf(b), ...point }));
  assert(places[0] && Math.hypot(places[0].x - 40, places[0].y - 40) < 500);
});

const views = fc.record({ x: place, y: place, zoom: fc.double({ min: 0.05, max: 8, noNaN: true }) });
const screens = fc.record({ x: fc.constant(76), y: fc.constant(64), width: fc.integer({ min: 200, max: 1600 }), height: fc.integer({ min: 200, max: 1000 }) });

test("the view stays, moves at its scale, or is zoomed out by at most half: then enough of the new nodes is seen", () => {
  const ways = new Set<string>();
  fc.assert(
    fc.property(views, screens, fc.array(box, { minLength: 1, maxLength: 4 }), fc.array(box, { maxLength: 1 }), (view, free, targets, sources) => {
      const next = viewFor(view, free, targets, sources);
      if (!next) return void ways.add("none");
      const seen = onPlane(free, next);
      const shown = targets.reduce((sum, box) => sum + shareIn(box, seen) * area(box), 0);
      assert(shown >= 0.6 * targets.reduce((sum, box) => sum + area(box), 0) - 1e-6);
      assert(next.zoom <= view.zoom && next.zoom >= view.zoom / 2);
      ways.add(next === view ? "same" : next.zoom === view.zoom ? "moved" : "zoomed");
      if (next.zoom < view.zoom) assert(next.zoom >= 0.25);
      if (next === view) return;
      const all = around([...targets, ...sources]) ?? assert.fail();
      const { x, y, width, height } = all;
      assert(encloses({ x: seen.x - 1e-6, y: seen.y - 1e-6, width: seen.width + 2e-6, height: seen.height + 2e-6 }, { x, y, width, height }), "with what they are made from");
      assert.equal(viewFor(next, free, targets, sources), next, "and then it stays");
    }),
    { numRuns: 3000, seed: 7 },
  );
  assert.deepEqual([...ways].toSorted(), ["moved", "none", "same", "zoomed"]);
});

test("a view that is moved by the least moves not at all if nothing is hidden", () => {
  const view = { x: 0, y: 0, zoom: 1 };
  const free = { x: 76, y: 64, width: 1000, height: 700 };
  assert.deepEqual(pannedTo(view, free, { x: 200, y: 200, width: 100, height: 100 }), view);
  assert.deepEqual(pannedTo(view, free, { x: 1100, y: 200, width: 100, height: 100 }), { x: -140, y: 0, zoom: 1 });
  assert.equal(pannedTo(view, free, { x: 0, y: 0, width: 2000, height: 100 }), undefined);
});

test("room is made for something with pixels above and below it, or the view stays", () => {
  const ways = new Set<string>();
  fc.assert(
    fc.property(views, screens, box, fc.integer({ min: 0, max: 52 }), fc.integer({ min: 0, max: 260 }), (view, free, box, above, below) => {
      const next = roomFor(view, free, box, above, below);
      if (!next) return void ways.add("none");
      const { x, y, zoom } = next;
      assert(zoom <= view.zoom && zoom >= view.zoom * 0.35);
      ways.add(zoom === view.zoom ? "moved" : "zoomed");
      const [left, top] = [box.x * zoom + x, box.y * zoom + y];
      assert(left >= free.x && left + box.width * zoom <= free.x + free.width);
      assert(top - above >= free.y && top + box.height * zoom + below <= free.y + free.height);
    }),
    { numRuns: 2000, seed: 7 },
  );
  assert.deepEqual([...ways].toSorted(), ["moved", "none", "zoomed"]);
});
