import assert from "node:assert/strict";
import { test } from "node:test";
import { exchange, ModelClient, opened, settle } from "../sync/clients.ts";
import { isSection, type Node } from "../sync/graph.ts";
import { Board, type Surface } from "./board.ts";
import { copiedData, copiedFrom } from "./clipboard.ts";

const HERE = "canvas:u:c";

/** A board of the client. */
function boardOf({ engine }: ModelClient): Board {
  const board = new Board(engine);
  engine.subscribe(() => board.prune());
  return board;
}

async function begin(...titles: string[]) {
  const [service, ana, ben] = await opened("ana", "ben");
  const ids = titles.map((title) => ana.create(ana.note(title)));
  await exchange(service, ana, ben);
  const real = (id: string) => ana.engine.real(id);
  return { service, ana, ben, ids, real, board: boardOf(ana) };
}

const titles = ({ graph }: Board) => [...graph.nodes.values()].map(({ title }) => title).toSorted();
const copy = (board: Board, canvas = HERE) => copiedFrom(copiedData(board.graph, board.getUi().selection, canvas, board.engine.real)) ?? assert.fail();

test("what is deleted, by whomever, is no longer selected", async () => {
  const { service, ana, ben, ids, real, board } = await begin("One", "Two");
  board.select(ids);
  board.set({ isCollecting: true });
  const two = ben.graph.nodes.get(real(ids[1] ?? "")) ?? assert.fail();
  ben.engine.perform("Delete", [{ do: "delete", node: two, connections: [], members: [] }]);
  await exchange(service, ben, ana);
  assert.deepEqual([...board.getUi().selection], [ids[0]]);
  board.set({ isCollecting: false });
  assert(!board.keepsSelection, "Tab selects again");

  let panned = 0;
  board.attach({ reveal: () => {}, focus: () => {}, panBy: () => (panned += 1), pointer: () => undefined, middle: () => ({ x: 0, y: 0 }) } as unknown as Surface);
  board.create("sticky");
  board.escape();
  board.undo();
  assert.equal(board.getUi().selection.size, 0);
  board.nudge({ x: 8, y: 0 });
  assert.equal(panned, 1, "arrow keys move the view");
});

test("Escape takes a drag and a resize back, and keeps the selection", async () => {
  const { ana, ids, board } = await begin("One");
  const [id = ""] = ids;
  board.select(ids);
  board.set({ drag: { ids: new Set(ids), by: { x: 50, y: 0 } } });
  board.nudge({ x: 8, y: 0 });
  assert.equal(board.getUi().drag?.by.x, 50, "arrow keys move nothing that the pointer moves");
  board.escape();
  board.drop();
  assert.deepEqual(ana.value(id, "position"), { x: 0, y: 0 });
  board.set({ resize: { id, box: { x: 0, y: 0, width: 900, height: 900 } } });
  board.escape();
  assert.deepEqual([board.getUi().resize, [...board.getUi().selection]], [undefined, ids]);
  board.nudge({ x: 8, y: 0 });
  board.escape();
  assert.deepEqual(ana.value(id, "position"), { x: 8, y: 0 }, "what arrow keys moved stays");
  assert.equal(board.getUi().selection.size, 0);
});

test("copies of nodes that exist are duplicates, also where the text has changed since", async () => {
  const { ids, board } = await begin("One");
  board.select(ids);
  const copied = copy(board);
  board.write(ids[0] ?? "", "title", "One, changed", "One", "s");
  board.paste(copied, HERE, "u");
  assert.deepEqual(titles(board), ["One, changed", "One, changed"]);
});

test("a Section that is cut is pasted with its members, images and connections, and one undo brings the cut back", async () => {
  const { service, ana, board } = await begin("Elsewhere");
  const section = ana.create(ana.note("Frame", "", { section: true }));
  const inside = ana.create(ana.note("Inside", "words", { sectionId: section, color: "#ff0000" }));
  const image = ana.create({ ...ana.note("Photo", "", { sectionId: section }), type: "image", asset: "asset:u:1" });
  ana.engine.perform("Connect", [{ do: "connect", connection: { id: "c1", handle: "", fromNodeId: inside, toNodeId: image, from: "", to: "", purpose: "reference", role: "style" } }]);
  await exchange(service, ana);
  board.select([section]);
  const copied = copy(board);
  board.cut();
  assert.deepEqual(titles(board), ["Elsewhere"]);
  board.paste(copied, HERE, "somebody");
  await ana.drain();
  const made = [...service.graph.nodes.values()];
  const named = (title: string) => made.find((node) => node.title === title) as Node;
  assert.equal(made.length, 4);
  assert(isSection(named("Frame")));
  assert.deepEqual([named("Inside"), named("Photo")].map(({ metadata }) => metadata.sectionId), [named("Frame").id, named("Frame").id]);
  assert.deepEqual([named("Inside").metadata.content, named("Inside").metadata.color, named("Photo").asset], ["words", "#ff0000", "asset:u:1"]);
  assert.deepEqual([...service.graph.connections.values()].map(({ fromNodeId, toNodeId, role }) => [fromNodeId, toNodeId, role]), [[named("Inside").id, named("Photo").id, "style"]]);
  board.undo();
  assert.deepEqual(titles(board), ["Elsewhere"]);
  board.undo();
  assert.deepEqual([titles(board), board.graph.connections.size], [["Elsewhere", "Frame", "Inside", "Photo"], 1]);
});

test("on another canvas, only own images are pasted, and only by its owner", async () => {
  const { ana, board } = await begin();
  const notices: string[] = [];
  board.onNotice((text) => notices.push(text));
  const of = (title: string, asset: string) => ana.create({ ...ana.note(title), type: "image", asset });
  board.select([ana.create(ana.note("Note")), of("Own", "asset:u:1"), of("Foreign", "asset:other:1")]);
  const copied = copy(board, "canvas:u:other");
  board.delete();
  notices.length = 0;
  const pastedBy = (account: string) => {
    board.paste(copied, HERE, account);
    const found = titles(board);
    board.undo();
    return found;
  };
  assert.deepEqual(pastedBy("u"), ["Note", "Own"]);
  assert.deepEqual(pastedBy("editor"), ["Note"]);
  assert.deepEqual(notices.map((text) => text.split(":")[0]), ["1 image left out", "2 images left out"]);
  await settle();
});

