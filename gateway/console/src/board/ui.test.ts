import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { exchange, ModelClient, opened, settle } from "../sync/clients.ts";
import { isSection, type Node } from "../sync/graph.ts";
import { Board, type Remedy, type Surface } from "./board.ts";
import { copiedData, copiedFrom } from "./clipboard.ts";
import { dragOf } from "./gestures.ts";

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
  board.attach({ reveal: () => {}, focus: () => {}, panBy: () => (panned += 1), pointer: () => undefined, free: () => ({ x: -640, y: -400, width: 1280, height: 800 }), follow: () => true } as unknown as Surface);
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
  board.set({ drag: { ...dragOf(board.graph, ids), by: { x: 50, y: 0 } } });
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

test("what others do during a drag moves nothing that is dragged", async () => {
  const place = fc.record({ x: fc.integer({ min: -500, max: 500 }), y: fc.integer({ min: -500, max: 500 }) });
  const move = fc.record({ of: fc.nat({ max: 2 }), to: place });
  await fc.assert(
    fc.asyncProperty(fc.array(move, { maxLength: 6 }), place, async (others, by) => {
      const { service, ana, ben, ids, real, board } = await begin("One", "Two", "Three");
      const starts = ids.map((id) => ana.value(id, "position") as { x: number; y: number });
      board.select(ids);
      board.set({ drag: { ...dragOf(board.graph, ids), by } });
      for (const { of, to } of others) {
        ben.set(real(ids[of] ?? ""), { position: to });
        await exchange(service, ben, ana);
      }
      assert.deepEqual([...(board.getUi().drag?.from.values() ?? [])], starts);
      board.drop();
      const isStill = by.x === 0 && by.y === 0;
      if (!isStill) assert.deepEqual(ids.map((id) => ana.value(id, "position")), starts.map(({ x, y }) => ({ x: x + by.x, y: y + by.y })));
    }),
    { numRuns: 50 },
  );
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

const reason = () => Promise.resolve("The provider refused the request.");

test("new nodes to which the view does not move, and work that ends out of view or fails, are told with a way to them", async () => {
  const { board, ids } = await begin("One", "Two");
  const [shown, said, told]: [string[][], string[], [string, string | undefined][]] = [[], [], []];
  let isSeen = false;
  const surface = { focus: () => {}, reveal: () => {}, follow: () => isSeen, sees: () => isSeen, show: (these: Iterable<string>) => shown.push([...these]), free: () => ({ x: 0, y: 0, width: 1000, height: 800 }) };
  board.attach(surface as unknown as Surface);
  const remedies: Remedy[] = [];
  board.onNotice((text, remedy) => {
    told.push([text, remedy?.label]);
    if (remedy) remedies.push(remedy);
  });
  board.onSaid((text) => said.push(text));
  board.bring(ids);
  assert.deepEqual(told.splice(0), [["2 new things are outside of the view.", "Show"]]);
  remedies[0]?.run();
  assert.deepEqual([shown, [...board.getUi().selection]], [[ids], ids]);
  const nodes = ids.flatMap((id) => board.graph.nodes.get(id) ?? []);
  board.announce({ nodes, failed: undefined, text: "Ready." }, reason);
  isSeen = true;
  board.bring(ids);
  board.announce({ nodes, failed: undefined, text: "Also ready." }, reason);
  board.announce({ nodes, failed: nodes[0], text: "“One” failed." }, reason);
  await settle();
  assert.deepEqual([told, said], [[["Ready.", "Show"], ["“One” failed. The provider refused the request.", "Show"]], ["Also ready."]]);
});
