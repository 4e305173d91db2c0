import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { exchange, opened } from "../sync/clients.ts";
import type { Action } from "../api.ts";
import type { Node } from "../sync/graph.ts";
import type { Box, Size } from "../view.ts";
import { Board } from "./board.ts";
import { laidOver, scaledOverlay } from "./laying.ts";
import type { Mark } from "./masking.ts";
import { anchorAt, broughtInside, brushWidth, closeStage, type Crop, cropOf, cropped, drawnCrop, entered, entriesOfCrop, type Handle, isInside, largestCrop, madeOnStage, marked, movedCrop, openStage, redone, refusalOf, reopenStage, resizedCrop, sizeMade, snappedBy, type Stage, stepsOf, boxPlace, type Turn, undone, uprightSize, withBrush, withDegrees, withdrawn, withMirror, withQuarter, withRatio, withSidesSwapped, withBoxAt } from "./stage.ts";

const RUNS = { numRuns: 300 };
const side = fc.integer({ min: 1, max: 6000 });
const size = fc.record({ width: side, height: side });
const degrees = fc.integer({ min: -450, max: 450 }).map((tenths) => tenths / 10);
const part = fc.double({ min: -0.5, max: 1.5, noNaN: true });
const point = fc.record({ x: part, y: part });
const handles = fc.constantFrom<Handle>({ x: -1, y: -1 }, { x: 0, y: -1 }, { x: 1, y: -1 }, { x: -1, y: 0 }, { x: 1, y: 0 }, { x: -1, y: 1 }, { x: 0, y: 1 }, { x: 1, y: 1 });
const turns = fc.record({ quarters: fc.constantFrom<Turn["quarters"]>(0, 1, 2, 3), isMirrored: fc.boolean() }, { noNullPrototype: true });

/** A picture, and a rectangle in it. */
const crops = fc.record({ size, degrees, at: point, share: fc.record({ x: fc.double({ min: 0.05, max: 1, noNaN: true }), y: fc.double({ min: 0.05, max: 1, noNaN: true }) }) }).map(({ size, degrees, at, share }) => {
  const box = { x: size.width * at.x, y: size.height * at.y, width: Math.max(size.width * share.x, 1), height: Math.max(size.height * share.y, 1) };
  return { size, crop: broughtInside({ box, degrees }, size) };
});

const stageOf = (change: Partial<Stage> = {}): Stage => ({ tool: "crop", id: "n", asset: "asset:u:1", source: "n", entries: {}, turn: { quarters: 0, isMirrored: false }, ratio: "", marks: [], second: undefined, brush: { kind: "brush", width: 6 }, past: [], future: [], gesture: undefined, replaces: undefined, ...change });
const boxOf = ({ entries }: Stage): Box => Object.fromEntries(["x", "y", "width", "height"].map((name) => [name, Number(entries[name])])) as unknown as Box;
/** Very small pictures hold no turned rectangle of whole pixels. */
const isLarge = ({ width, height }: Size) => Math.min(width, height) >= 8;

test("whatever a pointer does, the rectangle is in the picture, and so are the whole pixels that are sent", () => {
  const change = fc.oneof(
    fc.record({ kind: fc.constant("handle" as const), handle: handles, by: point, isFromMiddle: fc.boolean(), ratio: fc.option(fc.double({ min: 0.3, max: 3, noNaN: true }), { nil: undefined }) }),
    fc.record({ kind: fc.constant("move" as const), by: point }),
    fc.record({ kind: fc.constant("draw" as const), from: point, to: point }),
  );
  fc.assert(
    fc.property(crops, change, ({ size, crop }, change) => {
      const scaled = ({ x, y }: { x: number; y: number }) => ({ x: x * size.width, y: y * size.height });
      const next: Crop =
        change.kind === "move" ? movedCrop(crop, scaled(change.by), size)
        : change.kind === "draw" ? drawnCrop(scaled(change.from), scaled(change.to), crop.degrees, size)
        : resizedCrop(crop, change.handle, scaled(change.by), size, change); // prettier-ignore
      assert(isInside(next, size), JSON.stringify(next));
      if (!isLarge(size)) return;
      const entries = entriesOfCrop(next, size);
      assert(isInside(cropOf(entries, size), size, 0.5), JSON.stringify(entries));
      for (const name of ["x", "y", "width", "height"]) assert(Number.isInteger(Number(entries[name])));
      if (crop.degrees === 0) assert(Number(entries["x"]) >= 0 && Number(entries["x"]) + Number(entries["width"]) <= size.width);
    }),
    RUNS,
  );
});

test("the fields of a rectangle lead back to it", () => {
  fc.assert(
    fc.property(crops, ({ size, crop }) => {
      if (!isLarge(size)) return;
      const entries = entriesOfCrop(crop, size);
      const again = entriesOfCrop(cropOf(entries, size), size);
      const far = ["x", "y", "width", "height"].map((name) => Math.abs(Number(entries[name]) - Number(again[name])));
      assert(Math.max(...far) <= (crop.degrees === 0 ? 0 : 2), JSON.stringify([entries, again]));
      assert.equal(cropOf(entries, size).degrees, crop.degrees);
    }),
    RUNS,
  );
});

test("a ratio is kept to a pixel, and its rectangle is the largest", () => {
  fc.assert(
    fc.property(size, fc.constantFrom("1:1", "4:5", "3:4", "2:3", "9:16", "16:9", "1.91:1"), (size, ratio) => {
      const stage = withRatio(stageOf(), ratio, size);
      const { width, height } = boxOf(stage);
      const [across = 1, down = 1] = ratio.split(":").map(Number);
      assert(width === size.width || height === size.height || Math.abs(width - size.width) <= 1 || Math.abs(height - size.height) <= 1);
      assert(Math.abs(width - Math.max((height * across) / down, 1)) <= Math.max(across / down, 1) + 1e-6, `${width} × ${height}`);
      const swapped = withSidesSwapped(stage, { width: 6000, height: 6000 });
      assert.equal(swapped.ratio, `${down}:${across}`);
      assert.deepEqual([boxOf(swapped).width, boxOf(swapped).height], [height, width]);
    }),
    RUNS,
  );
  assert.deepEqual(boxOf(withRatio(stageOf(), "4:5", { width: 2400, height: 1600 })), { x: 560, y: 0, width: 1280, height: 1600 });
});

test("a picture that is straightened has no empty corner, and its rectangle grows again when it is turned back in one gesture", () => {
  fc.assert(
    fc.property(crops, degrees, ({ size, crop }, angle) => {
      if (!isLarge(size)) return;
      const before = cropped(stageOf(), crop, size);
      const turned = withDegrees(before, angle, size, "g");
      assert(isInside(cropOf(turned.entries, size), size, 0.5));
      const back = withDegrees(turned, crop.degrees, size, "g");
      assert.deepEqual(back.entries, before.entries);
      assert.deepEqual(undone(back).entries, before.entries);
    }),
    RUNS,
  );
  const stage = withDegrees(stageOf(), 2.3, { width: 2400, height: 1600 });
  assert.equal(stage.entries["degrees"], "2.3");
  assert(Number(stage.entries["width"]) > 2200 && Number(stage.entries["width"]) < 2400);
});

test("largest rectangles touch the edges of a turned picture", () => {
  fc.assert(
    fc.property(size, degrees, fc.double({ min: 0.4, max: 2.5, noNaN: true }), (size, degrees, ratio) => {
      const crop = largestCrop(ratio, { x: size.width / 2, y: size.height / 2 }, degrees, size);
      assert(isInside(crop, size, 1e-6));
      const larger = { ...crop, box: { ...crop.box, width: crop.box.width * 1.01 + 2.2, height: crop.box.height * 1.01 + 2.2 } };
      assert(!isInside(larger, size, 1e-6));
    }),
    RUNS,
  );
});

test("four quarter turns and two mirrorings change nothing, and the rectangle stays on the same part", () => {
  fc.assert(
    fc.property(crops, turns, ({ size, crop }, turn) => {
      if (!isLarge(size)) return;
      const upright = size;
      const source = uprightSize(upright, turn);
      const before = cropped(stageOf({ turn }), { ...crop, degrees: 0, box: broughtInside({ ...crop, degrees: 0 }, upright).box }, upright);
      let stage = before;
      for (let step = 0; step < 4; step += 1) stage = withQuarter(stage, 1, uprightSize(source, stage.turn));
      assert.deepEqual([boxOf(stage), stage.turn], [boxOf(before), turn]);
      stage = withQuarter(withQuarter(stage, 1, upright), -1, { width: upright.height, height: upright.width });
      assert.deepEqual([boxOf(stage), stage.turn], [boxOf(before), turn]);
      const mirrored = withMirror(stage, upright);
      assert.notEqual(mirrored.turn.isMirrored, turn.isMirrored);
      assert.deepEqual(boxOf(withMirror(mirrored, upright)), boxOf(before));
    }),
    RUNS,
  );
});

test("a handle snaps within its reach or not at all", () => {
  fc.assert(
    fc.property(crops, handles, point, ({ size, crop }, handle, by) => {
      const way = { x: by.x * size.width, y: by.y * size.height };
      const next = snappedBy(crop, handle, way, size, 6);
      assert(Math.abs(next.x - way.x) <= 6 && Math.abs(next.y - way.y) <= 6);
      const again = snappedBy(crop, handle, next, size, 6);
      assert(Math.abs(again.x - next.x) < 1e-6 && Math.abs(again.y - next.y) < 1e-6);
    }),
    RUNS,
  );
});

test("a text that is dragged stays where it was put", () => {
  fc.assert(
    fc.property(size, point, fc.record({ x: fc.double({ min: 0.05, max: 0.9, noNaN: true }), y: fc.double({ min: 0.05, max: 0.9, noNaN: true }) }), (size, at, share) => {
      const box = { width: size.width * share.x, height: size.height * share.y };
      const place = { x: at.x * size.width, y: at.y * size.height };
      const found = boxPlace(anchorAt(place, box, size), box, size);
      assert(Math.abs(found.x - place.x) <= 0.5 + 1e-6 && Math.abs(found.y - place.y) <= 0.5 + 1e-6);
    }),
    RUNS,
  );
  const stage = withBoxAt(stageOf({ tool: "text" }), { x: 22, y: 18 }, { width: 100, height: 40 }, { width: 400, height: 400 }, 6);
  assert.deepEqual(stage.entries, { anchor: "top-left", offsetX: "20", offsetY: "20" }, "it snaps to the margins");
});

test("steps are undone and done again, gestures are one step, and a gesture that was ended leaves none", () => {
  const size = { width: 400, height: 200 };
  const first = withRatio(stageOf(), "1:1", size);
  const typed = entered(entered(first, "x", "1"), "x", "12");
  assert.equal(typed.past.length, 2);
  assert.equal(undone(typed).entries["x"], "100");
  assert.equal(redone(undone(typed)).entries["x"], "12");
  const dragged = cropped(typed, { box: { x: 0, y: 0, width: 50, height: 50 }, degrees: 0 }, size, "g");
  assert.deepEqual(withdrawn(dragged, "g").entries, typed.entries);
  assert.deepEqual(withdrawn(dragged, "g").future, []);
  let many = stageOf();
  for (let step = 0; step < 150; step += 1) many = withRatio(many, step % 2 === 0 ? "1:1" : "4:5", size);
  assert.equal(many.past.length, 100);
});

test("what is started is exact: nothing, a turn alone, a crop alone, or a turn and then a crop", () => {
  const size = { width: 400, height: 200 };
  assert.deepEqual(stepsOf(stageOf(), size), []);
  assert.equal(refusalOf(stageOf(), size, true), "Nothing is changed yet.");
  const turned = withQuarter(stageOf(), 1, size);
  assert.deepEqual(stepsOf(turned, size), [{ slug: "rotate", entries: { degrees: "90", flip: "none", format: "", quality: "" } }]);
  assert.deepEqual(sizeMade(turned, size), { width: 200, height: 400 });
  const both = withRatio(turned, "1:1", { width: 200, height: 400 });
  assert.deepEqual(stepsOf(both, size).map(({ slug }) => slug), ["rotate", "crop"]);
  assert.deepEqual(boxOf(both), { x: 0, y: 100, width: 200, height: 200 });
  assert.deepEqual(stepsOf(withRatio(stageOf(), "1:1", size), size).map(({ slug }) => slug), ["crop"]);
  const outside = entered(withRatio(stageOf(), "1:1", size), "x", "300");
  assert.equal(refusalOf(outside, size, true), "The rectangle reaches beyond the image.");
  assert.match(refusalOf(outside, size, false) ?? "", /only read/);
  assert.equal(refusalOf(stageOf({ tool: "text" }), size, true), "Write a text first.");
  assert.deepEqual(stepsOf(stageOf({ tool: "text", entries: { text: "New" } }), size), [{ slug: "add-text-to-image", entries: { text: "New" } }]);
});

const made = (provenance: object): Node => ({ id: "r", handle: "node:r", type: "image", title: "", position: { x: 0, y: 0 }, width: 1, height: 1, asset: "asset:u:2", metadata: { provenance: { kind: "action", createdAt: "", elements: [], references: [{ handle: "asset:u:1" }], ...provenance } } }) as unknown as Node;

const colors = (entries: Record<string, string>) => stepsOf(stageOf({ tool: "colors", entries }), { width: 4, height: 4 });

test("colors that change nothing start nothing", () => {
  assert.deepEqual(colors({}), []);
  assert.deepEqual(colors({ exposure: "0", gamma: "1", preset: "none", intensity: "100" }), []);
  assert.equal(colors({ exposure: "0.5" })[0]?.slug, "color-grade");
  assert.equal(madeOnStage(made({ actionId: "action:color-grade", params: { tint: 10 } }))?.tool, "colors");
});

test("what a picture was made with is on the Stage again", () => {
  assert.deepEqual(madeOnStage(made({ actionId: "action:add-text-to-image", params: { text: "A", size: 6 } })), { tool: "text", handle: "asset:u:1", over: undefined, entries: { text: "A", size: "6" }, turn: { quarters: 0, isMirrored: false }, ratio: "", marks: [], second: undefined });
  assert.equal(madeOnStage(made({ actionId: "action:crop", params: { width: 10, height: 10, x: 0, y: 0 } }))?.entries["width"], "10");
  assert.deepEqual(madeOnStage(made({ actionId: "action:rotate", params: { degrees: -90, flip: "horizontal" } }))?.turn, { quarters: 3, isMirrored: true });
  assert.equal(madeOnStage(made({ actionId: "action:rotate", params: { degrees: 12 } })), undefined);
  assert.equal(madeOnStage(made({ actionId: "action:resize", params: { width: 12 } }))?.tool, "size");
  assert.equal(madeOnStage(made({ actionId: "action:change-aspect-ratio", params: { ratio: "4:5" } }))?.tool, "format");
  assert.equal(madeOnStage(made({ actionId: "action:side-by-side-composite", params: {} })), undefined);
  const steps = [{ actionId: "action:rotate", params: { degrees: 90 } }, { actionId: "action:crop", params: { width: 5, height: 5 } }];
  assert.deepEqual(madeOnStage(made({ actionId: "action:crop", params: { width: 5, height: 5 }, steps }))?.turn, { quarters: 1, isMirrored: false });
  assert.equal(madeOnStage(made({ actionId: "action:crop", params: { width: 5, height: 5 }, steps: [{ actionId: "action:resize", params: {} }, steps[1]] })), undefined);
});

test("a size and a format are started once their values are possible, and say what comes out", () => {
  const [size, source] = [(entries: Record<string, string>) => stageOf({ tool: "size", entries }), { width: 400, height: 200 }];
  assert.deepEqual(stepsOf(size({ width: "100" }), source), [{ slug: "resize", entries: { width: "100" } }]);
  assert.deepEqual(sizeMade(size({ width: "100", format: "webp" }), source), { width: 100, height: 50 });
  for (const entries of [{}, { width: "" }, { width: "0" }, { width: "wide" }]) assert.equal(refusalOf(size(entries), source, true), "A value is missing or not possible.");
  assert.deepEqual(sizeMade(stageOf({ tool: "format", entries: { ratio: "1:1", mode: "pad" } }), source), { width: 400, height: 400 });
  assert.deepEqual(stepsOf(stageOf({ tool: "format", entries: { ratio: "1" } }), source), []);
});

const mark = (x: number): Mark => ({ kind: "brush", width: 10, spots: [{ x, y: 0 }] });
const middleOf = ({ at, box }: ReturnType<typeof laidOver>) => [at.x + box.width / 2, at.y + box.height / 2];

test("strokes are steps, those of one held key are one, and a brush stays within its widths", () => {
  const two = marked(marked(stageOf({ tool: "mask" }), mark(1)), mark(2));
  assert.deepEqual([two.marks.length, two.past.length], [2, 2]);
  assert.deepEqual(undone(two).marks, [mark(1)]);
  const held = marked(marked(two, mark(3), "held"), mark(4), "held");
  assert.deepEqual(held.marks, [mark(1), mark(2), mark(4)]);
  assert.deepEqual(undone(held).marks, two.marks);
  assert.deepEqual([0, 1, 40, 41].map((width) => withBrush(two, { width }).brush.width), [1, 1, 40, 40]);
  assert.equal(brushWidth({ kind: "brush", width: 5 }, { width: 300, height: 400 }), 20);
});

test("an overlay needs a second picture, is made larger about its middle, and is there again with it", async () => {
  const [source, shape] = [{ width: 400, height: 300 }, { width: 100, height: 50 }];
  assert.equal(refusalOf(stageOf({ tool: "overlay" }), source, true), "Choose an image to lay over it.");
  const parameters = Object.entries({ scale: 25, rotate: 0, offsetX: 0, offsetY: 0, anchor: "bottom-right" }).map(([id, value]) => ({ id, title: id, type: typeof value === "number" ? "number" : "select", required: false, default: value }));
  const action = { slug: "overlay-image", parameters } as unknown as Action;
  const stage = stageOf({ tool: "overlay", second: { asset: "asset:u:9", title: "Logo" } });
  assert.deepEqual(stepsOf(stage, source), [{ slug: "overlay-image", entries: {} }]);
  assert.deepEqual(laidOver(action, {}, shape, source), { inner: { width: 100, height: 50 }, box: { width: 100, height: 50 }, at: { x: 300, y: 250 } });
  const turned = laidOver(action, { rotate: "90" }, shape, source);
  assert.deepEqual([Math.round(turned.box.width), Math.round(turned.box.height)], [50, 100]);
  const times = fc.double({ min: 0.001, max: 30, noNaN: true });
  fc.assert(
    fc.property(times, fc.integer({ min: -360, max: 360 }), (times, rotate) => {
      const before = stageOf({ ...stage, entries: { rotate: String(rotate), anchor: "center" } });
      const next = scaledOverlay(before, action, times, shape, source, "drag");
      const far = middleOf(laidOver(action, next.entries, shape, source)).map((value, at) => Math.abs(value - (middleOf(laidOver(action, before.entries, shape, source))[at] ?? 0)));
      assert(far.every((value) => value <= 1), String(far));
      assert(Number(next.entries["scale"]) >= 0.1 && Number(next.entries["scale"]) <= 400);
      assert.deepEqual(scaledOverlay(next, action, 1, shape, source, "drag").entries["scale"], "25");
    }),
    RUNS,
  );
});

test("what was entered stays for its picture, and a picture that is deleted ends the Stage with a sentence", async () => {
  const [service, ana] = await opened("ana");
  const id = ana.create({ ...ana.note("Hero", "", {}), type: "image", asset: "asset:u:77" });
  await exchange(service, ana);
  const board = new Board(ana.engine, true, "canvas:u:c", []);
  const said: string[] = [];
  board.onNotice((text) => said.push(text));
  openStage(board, "crop", board.graph.nodes.get(id) as Node);
  assert(board.isWriting);
  board.set({ stage: withRatio(board.getUi().stage as Stage, "1:1", { width: 400, height: 200 }) });
  closeStage(board);
  assert.equal(board.getUi().stage, undefined);
  openStage(board, "crop", board.graph.nodes.get(id) as Node);
  assert.equal(board.getUi().stage?.entries["width"], "200");
  board.delete([board.graph.nodes.get(id) as Node]);
  board.prune();
  assert.equal(board.getUi().stage, undefined);
  assert(said.includes("The image that you worked on is deleted."));
  reopenStage(board, made({ actionId: "action:crop", params: { width: 5, height: 5 } }));
  assert.equal(board.getUi().stage?.replaces, true);
});
