import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { exchange, opened } from "../sync/clients.ts";
import type { Node } from "../sync/graph.ts";
import { commandOf, freePart, type Item, itemsOf, keyRows, kindOf, leavesOf, placeBar } from "./bar.ts";
import { Board } from "./board.ts";
import { COMMANDS } from "./commands.ts";
import { touches } from "./spatial.ts";

const SCOPES = ["image:generate", "asset:read"];
const press = (key: string, held: Partial<Record<"ctrlKey" | "shiftKey" | "altKey", true>> = {}, code = "") => ({ key, code, ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...held });

/** A board with a node of each kind, and a connection. */
async function studio(canChange = true) {
  const [service, ana] = await opened("ana");
  const add = (title: string, rest: Partial<Node> = {}, metadata: Partial<Node["metadata"]> = {}) => ana.create({ ...ana.note(title, "", metadata), ...rest });
  const image = { type: "image", asset: "asset:u:1" } as const;
  const ids = {
    image: add("Hero", image),
    other: add("Cup", { ...image, asset: "asset:u:2" }),
    third: add("Bowl", { ...image, asset: "asset:u:3" }),
    slot: add("Slot", { type: "image" }),
    text: add("Brief", { type: "text" }, { content: "words" }),
    section: add("Frame", {}, { section: true }),
    video: add("Film", { type: "video", asset: "asset:u:4" }),
  };
  ana.set(ids.third, { "metadata.sectionId": ids.section });
  ana.engine.perform("Connect", [{ do: "connect", connection: { id: "c1", handle: "", fromNodeId: ids.text, toNodeId: ids.image, from: "", to: "", purpose: "flow" } }]);
  await exchange(service, ana);
  const board = new Board(ana.engine, canChange, "canvas:u:c", SCOPES);
  const select = (...titles: (keyof typeof ids)[]) => board.select(titles.map((title) => ids[title]));
  return { ana, board, ids, select };
}

const KINDS = {
  image: ["image"],
  images: ["image", "other"],
  slot: ["slot"],
  text: ["text"],
  section: ["section"],
  video: ["video"],
  mixed: ["image", "text", "section"],
} as const;
const names = (items: Item[]) => items.map(({ id }) => id);

test("every item of every selection is in the bar or behind its last button, and in the list of keys", async () => {
  const { board, select } = await studio();
  const known = new Set([...keyRows(true).map(({ id }) => id), ...COMMANDS.map(({ id }) => id)]);
  for (const [kind, titles] of [...Object.entries(KINDS), ["link", undefined] as const]) {
    if (titles) select(...titles);
    else board.selectLink("c1");
    assert.equal(kindOf(board.selected, board.graph.connections.get(board.getUi().link ?? "")), kind);
    const items = itemsOf(board);
    const primary = items.filter(({ isPrimary }) => isPrimary);
    assert(primary.length > 0, kind);
    assert.deepEqual(items.slice(0, primary.length), primary, `${kind}: what the bar has room for comes first`);
    for (const { id } of items) assert(known.has(id), `${kind}: ${id} is in the list of keys`);
    assert.equal(new Set(leavesOf(items).map(({ label }) => label)).size, leavesOf(items).length, `${kind}: each has a label of its own`);
    assert.equal(items.filter(({ id }) => id === "delete").length, 1, `${kind}: Delete`);
  }
  board.select([]);
  assert.deepEqual(itemsOf(board), []);
});

test("what a selection has follows what it is", async () => {
  const { board, select, ids, ana } = await studio();
  const has = (...titles: (keyof typeof ids)[]) => {
    select(...titles);
    return names(leavesOf(itemsOf(board)));
  };
  assert(["crop", "format", "add-text", "download", "edit", "variations"].every((id) => has("image").includes(id)));
  assert(["crop", "format", "add-text", "edit"].every((id) => has("image", "other", "third").includes(id)), "on each of several");
  assert(has("image", "other").includes("join") && !has("image", "other", "third").includes("join"));
  assert(has("image", "other", "third").includes("across") && !has("image", "other").includes("across"));
  assert(has("image").includes("look") && has("video").includes("look") && !has("slot").includes("look") && !has("image", "text").includes("look"));
  assert(has("image", "other").includes("compare") && !has("image").includes("compare") && !has("image", "text").includes("compare"));
  assert(["favorite", "star-3", "label-red"].every((id) => has("image", "text", "section").includes(id)) && !has("text").includes("favorite"));
  assert(!has("section").includes("upload") && has("slot").includes("upload"));
  select("text");
  board.lock(true);
  assert.equal(itemsOf(board).find(({ id }) => id === "lock")?.label, "Unlock");
  board.delete();
  assert(ana.graph.nodes.has(ids.text), "what is locked is not deleted");
  board.lock(false);
  board.delete();
  assert(!ana.graph.nodes.has(ids.text));
});

test("who may only read has what changes nothing", async () => {
  const { board, select } = await studio(false);
  select("image");
  assert.deepEqual(names(itemsOf(board)), ["download", "look", "export", "show", "inspect"]);
  select("image", "other");
  assert.deepEqual(names(itemsOf(board)), ["compare", "download", "look", "export", "show", "inspect"]);
  select("section");
  assert.deepEqual(names(itemsOf(board)), ["present", "export", "members", "show", "inspect"]);
  board.selectLink("c1");
  assert.deepEqual(itemsOf(board), []);
});

test("without scopes for images, none can be made", async () => {
  const { ana, ids } = await studio();
  const board = new Board(ana.engine, true, "canvas:u:c", []);
  board.select([ids.image]);
  assert(!itemsOf(board).some(({ id }) => ["edit", "variations", "again"].includes(id)));
});

test("keys do what the bar has, wherever letters are on the keyboard", async () => {
  const { board, ids, select, ana } = await studio();
  select("image", "other");
  commandOf(press("ArrowRight"), board)?.run(board);
  board.settle();
  assert.deepEqual(ana.value(ids.image, "position"), { x: 1, y: 0 });
  select("other");
  commandOf(press("ArrowDown", { shiftKey: true }), board)?.run(board);
  board.settle();
  assert.deepEqual(ana.value(ids.other, "position"), { x: 1, y: 10 });
  select("image", "other");
  commandOf(press("å", { altKey: true }, "KeyW"), board)?.run(board);
  assert.deepEqual(ana.value(ids.other, "position"), { x: 1, y: 0 });
  commandOf(press("G", { shiftKey: true }), board)?.run(board);
  assert.equal(ana.value(ids.other, "metadata.zIndex"), 2);
  select("image", "text");
  commandOf(press("f"), board)?.run(board);
  assert.deepEqual(ana.value(ids.image, "metadata.tags"), ["favorite"]);
  select("other");
  commandOf(press("Enter"), board)?.run(board);
  assert.deepEqual(board.getUi().look, { at: ids.other });
  board.select([]);
  assert.equal(commandOf(press("Delete"), board), undefined);
});

test("more nodes than have a use for it are arranged, put into a Section and deleted alone", async () => {
  const { ana, board } = await studio();
  board.select(Array.from({ length: 201 }, (_, at) => ana.create(ana.note(`n${at}`))));
  assert.deepEqual(names(itemsOf(board)), ["arrange", "delete", "section", "export", "duplicate", "show", "lock"]);
  const row = leavesOf(itemsOf(board)).find(({ id }) => id === "row");
  assert.equal(row?.refused, "At most 200 at a time");
  board.select([...board.getUi().selection].slice(1));
  assert.equal(leavesOf(itemsOf(board)).find(({ id }) => id === "row")?.refused, undefined);
});

test("a connection is turned around", async () => {
  const { board } = await studio();
  board.selectLink("c1");
  const { fromNodeId, toNodeId } = board.graph.connections.get("c1") ?? assert.fail();
  itemsOf(board).find(({ id }) => id === "around")?.run();
  const turned = board.graph.connections.get(board.getUi().link ?? "") ?? assert.fail();
  assert.deepEqual([turned.fromNodeId, turned.toNodeId, board.graph.connections.size], [toNodeId, fromNodeId, 1]);
});

test("the bar is in the free part of the board, and covers the selection only where that leaves no room", () => {
  const length = fc.integer({ min: 0, max: 4000 });
  const screen = fc.record({ width: fc.integer({ min: 760, max: 2000 }), height: fc.integer({ min: 400, max: 1400 }) });
  const bar = fc.record({ width: fc.integer({ min: 80, max: 660 }), height: fc.constant(44) });
  const box = fc.record({ x: fc.integer({ min: -3000, max: 3000 }), y: fc.integer({ min: -3000, max: 3000 }), width: length, height: length });
  fc.assert(
    fc.property(box, bar, screen, (box, bar, screen) => {
      const free = freePart(screen);
      const { x, y } = placeBar(box, bar, free);
      assert(x >= free.x + 8 && x + bar.width <= free.x + free.width - 8 && y >= free.y + 8 && y + bar.height <= free.y + free.height - 8);
      const [down, across] = [bar.height + 16, bar.width + 16];
      const isFilled =
        box.y - free.y < down && free.y + free.height - box.y - box.height < down && box.x - free.x < across && free.x + free.width - box.x - box.width < across;
      if (!isFilled) assert(!touches({ x, y, ...bar }, box));
    }),
    { numRuns: 1000 },
  );
});

test("the bar is not over the Prompt", () => {
  const [free, bar, picture] = [freePart({ width: 1440, height: 900 }), { width: 600, height: 44 }, { x: 500, y: 80, width: 320, height: 320 }];
  assert.deepEqual(placeBar(picture, bar, free), { x: 360, y: 408 });
  assert.deepEqual(placeBar(picture, bar, free, { x: 380, y: 412, width: 560, height: 240 }), { x: 360, y: 660 }, "below it");
  assert.deepEqual(placeBar({ ...picture, y: 320 }, bar, free, { x: 380, y: 70, width: 560, height: 240 }), { x: 360, y: 648 }, "below the selection");
});
