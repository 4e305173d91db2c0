import assert from "node:assert/strict";
import { test } from "node:test";
import { opened } from "../sync/clients.ts";
import type { Node } from "../sync/graph.ts";
import { canCompare, canLook, compare, lookAt, madeFrom, siblingsOf, sourcesOf } from "./album.ts";
import { Board } from "./board.ts";

const made = (run: string, references: { handle: string }[]) => ({ provenance: { kind: "generated", run, references, elements: [], createdAt: "" } });
const titles = (nodes: Node[]) => nodes.map(({ title }) => title);

/** Two rows of pictures with a text, of which two are in a Section and two are variants of a run. */
async function album() {
  const [, ana] = await opened("ana");
  const at = (title: string, x: number, y: number, rest: Partial<Node> = {}, metadata: object = {}) =>
    ana.create({ ...ana.note(title, "", metadata), type: "image", asset: `asset:u:${title}`, position: { x, y }, width: 100, height: 100, ...rest } as Node);
  const section = ana.create({ ...ana.note("Frame", "", { section: true }), position: { x: 900, y: 0 } });
  const ids = {
    four: at("Four", 120, 200),
    one: at("One", 0, 0),
    three: at("Three", 0, 200, { type: "video" }),
    two: at("Two", 120, 10),
    text: at("Text", 240, 0, { type: "text", asset: undefined } as never),
    left: at("Left", 1000, 100, {}, { sectionId: section }),
    right: at("Right", 1200, 100, {}, { sectionId: section }),
    first: at("First", 0, 900, {}, made("run:1", [{ handle: "asset:u:One" }])),
    second: at("Second", 200, 900, {}, made("run:1", [{ handle: "asset:u:One" }])),
  };
  const board = new Board(ana.engine);
  const node = (id: string) => ana.graph.nodes.get(id) as Node;
  return { ana, ids, board, node };
}

test("the arrow keys go through what was selected, the variants of a run, the Section, or the board, in reading order", async () => {
  const { ana, ids } = await album();
  const through = (at: string, among?: string[]) => titles(siblingsOf(ana.graph, { at, ...(among && { among }) }));
  assert.deepEqual(through(ids.one), ["One", "Two", "Left", "Right", "Three", "Four", "First", "Second"]);
  assert.deepEqual(through(ids.right), ["Left", "Right"]);
  assert.deepEqual(through(ids.second), ["First", "Second"]);
  assert.deepEqual(through(ids.four, [ids.four, ids.one, ids.text]), ["Four", "One"]);
  assert.deepEqual(titles(siblingsOf(ana.graph, { at: ids.one }, new Set([ids.three]))), ["One", "Three"], "what matches the filter, and itself");
  assert.deepEqual(through("gone", [ids.one, ids.two]).length > 0, true);
});

test("a picture leads to what it was made from, and that to what was made from it", async () => {
  const { ana, ids, node } = await album();
  assert.deepEqual(titles(sourcesOf(ana.graph, node(ids.first))), ["One"]);
  assert.deepEqual(titles(madeFrom(ana.graph, node(ids.one))), ["First", "Second"]);
  ana.engine.perform("Connect", [{ do: "connect", connection: { id: "c", handle: "", fromNodeId: ids.two, toNodeId: ids.three, from: "", to: "", purpose: "flow" } }]);
  assert.deepEqual([titles(sourcesOf(ana.graph, node(ids.three))), titles(madeFrom(ana.graph, node(ids.two)))], [["Two"], ["Three"]]);
  assert.deepEqual(sourcesOf(ana.graph, node(ids.one)), []);
});

test("pictures and videos are looked at, one or the first of several, and two to eight pictures are compared", async () => {
  const { ids, board, node } = await album();
  assert.deepEqual([canLook([node(ids.one), node(ids.three)]), canLook([node(ids.one), node(ids.text)]), canLook([])], [true, false, false]);
  assert.deepEqual([canCompare([node(ids.one)]), canCompare([node(ids.one), node(ids.two)]), canCompare([node(ids.one), node(ids.three)]), canCompare(Array<Node>(9).fill(node(ids.one)))], [false, true, false, false]);
  lookAt(board, [ids.two]);
  assert.deepEqual([board.getUi().look, [...board.getUi().selection]], [{ at: ids.two }, [ids.two]]);
  lookAt(board, [ids.two, ids.one, ids.text]);
  assert.deepEqual([board.getUi().look, [...board.getUi().selection]], [{ at: ids.one, among: [ids.one, ids.two] }, [ids.one]]);
  compare(board, [ids.two, ids.one]);
  assert.deepEqual(board.getUi().look, { at: ids.one, compared: [ids.one, ids.two] });
});
