import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Model } from "../api.ts";
import { Engine } from "../sync/engine.ts";
import { graphOf, type Node } from "../sync/graph.ts";
import { Board, type Ui } from "./board.ts";
import { choose, followSelection, formOf, keyOf, lastPrompts, makeAgain, openPrompt, panelSubject, placePrompt, selectResults, shownSubject, type Subject, write } from "./prompting.ts";
import { touches } from "./spatial.ts";

const node = (id: string, rest: Partial<Node> = {}): Node => ({ id, handle: `node:${id}`, type: "image", title: id, position: { x: 0, y: 0 }, width: 320, height: 320, metadata: {}, ...rest }) as Node;
const picture = (id: string, rest: Partial<Node> = {}) => node(id, { asset: `asset:u:${id}` as never, ...rest });
const text = (id: string, content: string) => node(id, { type: "text", metadata: { content } });
const connection = (fromNodeId: string, toNodeId: string, purpose: string, role?: string) => ({ id: `${fromNodeId} ${toNodeId}`, fromNodeId, toNodeId, purpose, ...(role && { role }) });
const graph = (nodes: Node[], connections: object[] = []) => graphOf({ title: "", nodes, connections: connections as never });

const parameter = (name: string, capabilities: string[], rest: object = {}) => ({ name, label: "", description: "", type: "string", required: false, capabilities, ...rest });
const model = (id: string, capabilities: string[], rest: object = {}): Model =>
  ({ id, handle: `model:${id}`, modelId: id, provider: "managed", connectionName: "Managed", name: id, type: "image", capabilities, parameters: [], standIn: false, creditCost: 1, ...rest }) as unknown as Model;
const SKETCH = model("sketch", ["image.generate", "image.edit", "image.variations"], {
  parameters: [parameter("size", ["image.generate"], { options: [{ label: "", value: "1x1" }] }), parameter("references", ["image.generate", "image.edit"], { max: 2 })],
});
const PLAIN = model("plain", ["image.generate"], { creditCost: 3 });
const FILM = model("film", ["video.generate", "video.generate.fromImage", "video.generate.fromFrames"], { type: "video" });
const MODELS = [PLAIN, SKETCH, FILM];
const ALL = { image: true, video: true };
const about = (...ids: string[]): Subject => ({ ids, selection: new Set(ids) });
const NOTHING: Pick<Ui, "settings" | "written"> = { settings: {}, written: {} };

test("a Prompt is made from what is selected: images guide it, and a text is sent unless something is typed", () => {
  const board = graph([picture("Photo"), text("Brief", "A harbor")]);
  const subject = about("Photo", "Brief");
  const form = formOf(board, subject, NOTHING, MODELS, ALL);
  assert.deepEqual([form.mode, form.model?.id, form.typed, form.prompt, form.text?.id], ["generate", "plain", "", "A harbor", "Brief"]);
  assert.deepEqual(form.chips.map(({ asset, use }) => [asset, use]), [["asset:u:Photo", "guide"]]);
  const typed = formOf(board, subject, { ...NOTHING, written: { [keyOf(subject)]: { prompt: "like @Photo" } } }, MODELS, ALL);
  assert.equal(typed.prompt, "like image 1");
  const without = formOf(board, subject, { ...NOTHING, written: { [keyOf(subject)]: { isWithoutText: true } } }, MODELS, ALL);
  assert.deepEqual([without.text, without.prompt], [undefined, ""]);
});

test("a place has what is connected to it, for what it is connected, and is filled", () => {
  const place = node("Place");
  const board = graph([place, picture("Photo"), text("Brief", "A harbor")], [connection("Photo", "Place", "reference", "style"), connection("Brief", "Place", "flow")]);
  const form = formOf(board, about("Place"), { ...NOTHING, settings: { count: 2 } }, MODELS, ALL);
  assert.deepEqual([form.chips.map(({ use }) => use), form.prompt, form.into, form.price], [["style"], "A harbor", [place], 6]);
});

test("a place of which the work goes on is not filled again, and what follows is made beside it", () => {
  const job = { id: "job:1", run: "run:1", operation: "generate", status: "running" };
  const form = formOf(graph([node("Place", { metadata: { job: job as never } })]), about("Place"), NOTHING, MODELS, ALL);
  assert.deepEqual([form.into, form.beside?.id], [[], "Place"]);
});

test("the mode is one that the images and some model permit, and the model one that can do it", () => {
  const board = graph([picture("Photo")]);
  const modes = (kinds: typeof ALL, subject = about("Photo")) => formOf(board, subject, NOTHING, MODELS, kinds).modes;
  assert.deepEqual(modes(ALL), ["generate", "edit", "variations", "video"]);
  assert.deepEqual(modes(ALL, about()), ["generate", "video"]);
  assert.deepEqual(modes({ image: true, video: false }, about()), ["generate"]);
  assert.deepEqual(modes({ image: false, video: true }, about()), ["video"]);
  const edit = formOf(board, about("Photo"), { settings: { imageModel: "plain" }, written: { Photo: { mode: "edit" } } }, MODELS, ALL);
  assert.deepEqual([edit.mode, edit.model?.id], ["edit", "sketch"]);
  const alone = formOf(board, about(), { settings: { imageModel: "plain" }, written: { "": { mode: "edit" } } }, MODELS, ALL);
  assert.deepEqual([alone.mode, alone.model?.id], ["generate", "plain"]);
});

test("more images than the model takes are a problem that names the number, and as many are none", () => {
  const board = graph(["A", "B", "C"].map((id) => picture(id)));
  const problem = (...ids: string[]) => formOf(board, about(...ids), { settings: { imageModel: "sketch" }, written: {} }, MODELS, ALL).problem;
  assert.deepEqual([problem("A"), problem("A", "B"), problem("A", "B", "C")], [undefined, undefined, "This model takes 2 images"]);
});

test("two images are the frames of a video, until somebody decides", () => {
  const board = graph([node("Film", { type: "video" }), picture("Dawn"), picture("Noon")]);
  const subject = about("Film", "Dawn", "Noon");
  assert.deepEqual(formOf(board, subject, NOTHING, MODELS, ALL).chips.map(({ use }) => use), ["first", "last"]);
  const chips = [{ asset: "asset:u:Dawn", title: "Dawn", use: "last" as const }, { asset: "asset:u:Noon", title: "Noon" }];
  const decided = formOf(board, subject, { ...NOTHING, written: { [keyOf(subject)]: { chips } } }, MODELS, ALL);
  assert.deepEqual([decided.chips.map(({ use }) => use), decided.problem], [["last", "none"], "A last frame needs a first frame."]);
});

test("settings are those that were chosen; those of a draft are its own", () => {
  const form = formOf(graph([]), about(), { settings: { imageModel: "sketch", size: "1x1", count: 3 }, written: {} }, MODELS, ALL);
  assert.deepEqual([form.model?.id, form.settings.size, form.options("size"), form.settings.count, form.price], ["sketch", "1x1", ["1x1"], 3, 3]);
  const draft = { of: "Photo", into: [], operation: "generate" as const, model: "gone", provider: "managed", prompt: "a harbor", references: [], elements: [], size: "2x2", quality: "", count: 2 };
  const again = formOf(graph([]), { ...about(), draft }, { settings: { imageModel: "sketch", size: "1x1" }, written: {} }, MODELS, ALL);
  assert.deepEqual([again.model?.id, again.settings.size, again.settings.count, again.prompt, again.isModelGone], ["plain", "2x2", 2, "a harbor", true]);
});

test("without models there is a form in which one can type", () => {
  const form = formOf(graph([]), about(), { settings: {}, written: { "": { prompt: "a harbor" } } }, [], ALL);
  assert.deepEqual([form.model, form.modes, form.typed, form.problem, form.price], [undefined, [], "a harbor", undefined, 0]);
});

const boardOf = (...nodes: Node[]): Board => {
  const engine = { getSnapshot: () => ({ graph: graph(nodes) }), real: (id: string) => id } as unknown as Engine;
  return new Board(engine);
};
const isShown = (board: Board) => shownSubject(board.graph, board.getUi())?.ids;

test("the Prompt is shown where a place is selected, on an empty board, and where it was opened", () => {
  const board = boardOf(node("Place"), picture("Photo"));
  assert.equal(isShown(board), undefined);
  board.select(["Photo"]);
  assert.equal(isShown(board), undefined);
  openPrompt(board);
  assert.deepEqual(isShown(board), ["Photo"]);
  board.select(["Place"]);
  assert.deepEqual(isShown(board), ["Place"]);
  board.select(["Place", "Photo"]);
  assert.equal(isShown(board), undefined);
  assert.deepEqual(isShown(boardOf()), []);
  board.select(["Place"]);
  board.set({ panel: "make" });
  assert.equal(isShown(board), undefined, "the panel is the Prompt");
});

test("what was written stays with what it is about, and settings with all", () => {
  const board = boardOf(picture("A"), picture("B"));
  board.select(["A"]);
  openPrompt(board);
  write(board, { prompt: "a harbor" });
  choose(board, { count: 2 });
  board.select(["B"]);
  openPrompt(board);
  const form = () => formOf(board.graph, shownSubject(board.graph, board.getUi()) as Subject, board.getUi(), MODELS, ALL);
  assert.deepEqual([form().typed, form().settings.count], ["", 2]);
  board.select(["A"]);
  openPrompt(board);
  assert.equal(form().typed, "a harbor");
});

test("a Prompt goes on with its results, unless something else was selected meanwhile", () => {
  const board = boardOf(picture("A"), picture("B"), picture("C"));
  board.select(["A"]);
  openPrompt(board);
  selectResults(board, ["B"]);
  assert.deepEqual([[...board.getUi().selection], isShown(board)], [["B"], ["A"]]);
  board.select(["C"]);
  selectResults(board, ["A", "B"]);
  assert.deepEqual([board.getUi().selection.size, isShown(board)], [2, undefined]);
});

test("of twenty-one Prompts, the first is forgotten", () => {
  const board = boardOf(...Array.from({ length: 21 }, (_, index) => picture(`N${index}`)));
  for (const id of board.graph.nodes.keys()) {
    board.select([id]);
    openPrompt(board);
    write(board, { prompt: id });
  }
  const keys = Object.keys(board.getUi().written);
  assert.deepEqual([keys.length, keys[0], keys.at(-1)], [20, "N1", "N20"]);
});

test("what was written in the panel stays, whatever is selected, until the selection is asked for", () => {
  const board = boardOf(picture("A"), picture("B"));
  board.set({ panel: "make" });
  board.select(["A"]);
  assert.deepEqual(panelSubject(board.getUi()).ids, ["A"]);
  write(board, { prompt: "a harbor" });
  board.select(["B"]);
  assert.deepEqual(panelSubject(board.getUi()).ids, ["A"]);
  followSelection(board);
  assert.deepEqual([panelSubject(board.getUi()).ids, board.getUi().written], [["B"], {}]);
});

test("another attempt has settings of its own", () => {
  const board = boardOf();
  makeAgain(board, { of: "Photo", into: [], operation: "generate", model: "sketch", provider: "managed", prompt: "a harbor", references: [], elements: [], size: "", quality: "", count: 2 });
  choose(board, { count: 4 });
  const form = formOf(board.graph, panelSubject(board.getUi()), board.getUi(), MODELS, ALL);
  assert.deepEqual([form.model?.id, form.settings.count, board.getUi().settings], ["sketch", 4, {}]);
});

test("the last prompts of a board are its own, the newest first, each once", () => {
  const made = (id: string, prompt: string, createdAt: string) => node(id, { metadata: { provenance: { prompt, createdAt } as never } });
  const board = graph([made("A", "old", "2026-01-01T00:00:00Z"), made("B", "new", "2026-01-02T00:00:00Z"), made("C", "old", "2025-01-01T00:00:00Z"), node("D", { metadata: { prompt: "now" } }), node("E")]);
  assert.deepEqual(lastPrompts(board), ["now", "new", "old"]);
});

const WIDE = { width: 1440, height: 900 };

const high = (height: number) => () => height;

test("a Prompt lies in its place, below it, above it, or at the bottom", () => {
  const place = { x: 400, y: 300, width: 320, height: 320 };
  const [inside, below, above, bottom] = [{ left: 408, top: 372, width: 304 }, { left: 280, top: 632, width: 560 }, { left: 280, top: 188, width: 560 }, { left: 470, top: 624, width: 560 }];
  assert.deepEqual(placePrompt(WIDE, high(240), place, 0), inside);
  assert.deepEqual(placePrompt(WIDE, (width) => (width < 400 ? 310 : 150), place, 0), below, "it is too high for its place");
  assert.deepEqual(placePrompt(WIDE, high(120), place, undefined), below);
  assert.deepEqual(placePrompt(WIDE, high(200), { ...place, y: 400 }, undefined), above);
  assert.deepEqual(placePrompt(WIDE, high(200), { x: 0, y: 0, width: 1440, height: 900 }, undefined), bottom);
  assert.deepEqual(placePrompt(WIDE, high(200), undefined, undefined), bottom);
});

test("a Prompt leaves the title of its place and the bar of the selection in sight, and covers nothing else if it can", () => {
  const place = { x: 400, y: 300, width: 320, height: 320 };
  assert.equal(placePrompt(WIDE, high(240), place, 28).top, 344);
  assert.equal(placePrompt(WIDE, high(200), { ...place, y: 400 }, undefined, "above").top, 136);
  const isOver = (other: { x: number; y: number; width: number; height: number }) => placePrompt(WIDE, high(200), { ...place, y: 280 }, undefined, undefined, (own) => touches(own, other));
  assert.deepEqual(isOver({ x: 500, y: 660, width: 50, height: 50 }), { left: 280, top: 68, width: 560 });
  assert.deepEqual(isOver({ x: 500, y: 0, width: 50, height: 900 }), { left: 732, top: 280, width: 560 });
  assert.deepEqual(isOver({ x: 0, y: 0, width: 1440, height: 900 }), { left: 280, top: 612, width: 560 });
});

test("a place that is 280 pixels wide has its Prompt in it, and a smaller one has it below", () => {
  const [less, enough] = [279, 280].map((width) => placePrompt(WIDE, high(100), { x: 400, y: 300, width, height: 300 }, 0));
  assert.deepEqual([less, enough], [{ left: 259.5, top: 612, width: 560 }, { left: 408, top: 492, width: 264 }]);
});

test("a Prompt is never outside of the board, and covers nothing but its place while there is room", () => {
  const box = fc.record({ x: fc.integer({ min: -2000, max: 3000 }), y: fc.integer({ min: -2000, max: 3000 }), width: fc.nat(3000), height: fc.nat(3000) });
  fc.assert(
    fc.property(fc.integer({ min: 760, max: 2000 }), fc.integer({ min: 500, max: 1400 }), fc.integer({ min: 96, max: 300 }), fc.option(box, { nil: undefined }), fc.boolean(), (width, height, own, about, isPlace) => {
      const at = placePrompt({ width, height }, high(own), about, isPlace ? 0 : undefined);
      assert.ok(at.left >= 0 && at.top >= 0 && at.left + at.width <= width && at.top + own <= height, JSON.stringify(at));
      if (!about) return;
      const isOver = at.top < about.y + about.height && about.y < at.top + own;
      const isInside = isPlace && about.y <= at.top && at.top + own <= about.y + about.height;
      const fits = (top: number) => top >= 64 && top + own <= height - 76;
      if (isOver && !isInside) assert.ok(!fits(about.y + about.height + 12) && !fits(about.y - 12 - own), JSON.stringify(at));
    }),
    { numRuns: 300 },
  );
});

test("several selected images are changed each by itself, others guide all of them, and the price is the sum", () => {
  const board = graph(["A", "B", "C", "Look"].map((id) => picture(id)));
  const subject = about("A", "B", "C");
  const form = (written: object) => formOf(board, subject, { settings: { count: 2 }, written: { [keyOf(subject)]: written } }, [SKETCH, PLAIN], ALL);
  const edit = form({ mode: "edit" });
  assert.deepEqual([edit.isEach, edit.each.length, edit.total, edit.price, edit.problem], [true, 3, 6, 6, undefined]);
  assert.deepEqual([form({ mode: "edit", isEach: false }).total, form({ mode: "edit", isEach: false }).problem], [2, "This model takes 2 images"]);
  assert.deepEqual([form({}).isEach, form({}).each.length, form({ isEach: true }).total], [false, 3, 6]);
  const chips = [...edit.entries, { asset: "asset:u:Look", title: "Look", of: "Look" }];
  const guided = form({ mode: "edit", chips, prompt: "like @Look" });
  assert.deepEqual([guided.each.length, guided.prompt, guided.problem], [3, "like image 2", undefined]);
  assert.equal(formOf(board, about("A"), { settings: {}, written: { A: { mode: "edit", chips } } }, [SKETCH], ALL).isEach, false, "one that is edited with others is one");
});
