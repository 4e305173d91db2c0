/** How nodes are lined up, stacked and kept in place. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

import { dragBy, middle, node, openBoard, path, saved, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { apply, type Graph, makeBoard, read } from "./service.ts";

const at = (graph: Graph, title: string) => titled(graph, title)?.position;
const places = (graph: Graph) => graph.nodes.map(({ title, position: { x, y } }) => `${title} ${x} ${y}`).toSorted();
/** How many units of the plane a pixel is. */
const unit = async (page: Page) => 100 / Number.parseFloat((await page.getByRole("button", { name: /full size$/ }).textContent()) ?? "");

scene("what is dragged and resized snaps to others, with a line, unless Ctrl is held", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Snap", [text("One", 0, 0), text("Two", 310, 300)]);
  await openBoard(page, url);
  await page.keyboard.press("1");
  const from = await middle(node(page, "Two"));
  const to = (x: number, y: number) => page.mouse.move(from.x + x, from.y + y, { steps: 6 });
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  // A drag begins after 4 pixels.
  await to(-5, 0);
  await to(-311, 40);
  await becomes(() => page.locator("[data-guide]").count(), 1);
  await isAccessible();
  await page.keyboard.down("Control");
  await becomes(() => page.locator("[data-guide]").count(), 0);
  await page.keyboard.up("Control");
  await page.mouse.up();
  await until(canvas, "its left edge is that of the other", (graph) => at(graph, "Two")?.x === 0);
  await node(page, "Two").click();
  await dragBy(page, page.locator(".react-flow__resize-control.bottom.right.handle"), -36, 20);
  await until(canvas, "it is resized", (graph) => titled(graph, "Two")?.height === 140);
  await dragBy(page, page.locator(".react-flow__resize-control.bottom.right.handle"), 33, 0);
  await until(canvas, "it is as wide as the other", (graph) => titled(graph, "Two")?.width === 240);
});

scene("Shift keeps a drag on an axis, and Alt makes a copy", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Held", [text("Other", 2000, 2000), text("One", 0, 0)]);
  await apply(canvas, [{ type: "node.delete", nodeId: ids["Other"] }]);
  await openBoard(page, url);
  await page.keyboard.press("1");
  const drag = async (key: string, x: number, y: number) => {
    const from = await middle(node(page, "One"));
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    await page.mouse.move(from.x + x / 2, from.y + y / 2, { steps: 4 });
    await page.keyboard.down(key);
    await page.mouse.move(from.x + x, from.y + y, { steps: 4 });
    if (key === "Alt") await becomes(() => page.locator("[data-ghost]").count(), 1);
    await page.mouse.up();
    await page.keyboard.up(key);
  };
  const scale = await unit(page);
  await drag("Shift", 100 / scale, 30 / scale);
  const moved = await until(canvas, "it has moved", (graph) => at(graph, "One")?.x !== 0);
  assert.deepEqual(at(moved, "One"), { x: 100, y: 0 });
  await drag("Alt", 40, 200);
  const copied = await until(canvas, "there is a copy", ({ nodes }) => nodes.length === 2);
  assert.equal(copied.nodes.filter(({ position }) => position.x === 100 && position.y === 0).length, 1, "the original stays");
  await page.keyboard.press("Control+z");
  await until(canvas, "the copy is undone", ({ nodes }) => nodes.length === 1);
});

scene("keys align, distribute and stack, arrows move by 1 and 10", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Lined up", [text("A", 0, 0), text("B", 330, 37), text("C", 900, 90)]);
  await openBoard(page, url);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Alt+w");
  await until(canvas, "the tops are level", ({ nodes }) => nodes.every(({ position }) => position.y === 0));
  await page.keyboard.press("Alt+Shift+h");
  await until(canvas, "the gaps are equal", (graph) => at(graph, "B")?.x === 450);
  await page.keyboard.press("Control+z");
  await page.keyboard.press("Control+z");
  await until(canvas, "each was a step", (graph) => at(graph, "B")?.x === 330 && at(graph, "B")?.y === 37);
  await node(page, "A").click();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Shift+ArrowDown");
  await until(canvas, "it has moved", (graph) => JSON.stringify(at(graph, "A")) === JSON.stringify({ x: 1, y: 10 }));
  await page.keyboard.press("Shift+g");
  await until(canvas, "it is in front", (graph) => (titled(graph, "A")?.metadata as { zIndex?: number }).zIndex === 1);
});

scene("Tidy, rows, columns and grids are those of the service, in one step", async ({ page, expect }) => {
  expect(NOBODY);
  const boxes = Array.from({ length: 12 }, (_, index) => text(`n${index}`, (index % 4) * 290 + (index % 3) * 11, Math.floor(index / 4) * 190 + (index % 5) * 9));
  const { canvas, ids, url } = await makeBoard("Tidy", boxes);
  // The operation is sent again when the board was behind its own last change.
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url);
  const before = await read(canvas);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Shift+a");
  const after = await until(canvas, "it is tidy", ({ revision }) => revision !== before.revision);
  for (const [index, { title }] of boxes.entries()) assert.deepEqual(at(after, title), { x: (index % 4) * 280, y: Math.floor(index / 4) * 160 }, title);
  await saved(page);
  await becomes(() => page.getByRole("button", { name: "Undo", exact: true }).getAttribute("title"), "Undo: Tidy");
  await page.keyboard.press("Control+z");
  const undone = await until(canvas, "it is undone", ({ revision }) => revision !== after.revision);
  assert.deepEqual(places(undone), places(before));
  await page.keyboard.press("Control+Shift+z");
  const again = await until(canvas, "it is tidy again", ({ revision }) => revision !== undone.revision);
  assert.deepEqual(places(again), places(after));
  for (const [label, layout] of [["Arrange in a row", "row"], ["Arrange in a column", "column"], ["Arrange in a grid", "grid"]] as const) {
    const { revision } = await read(canvas);
    await page.keyboard.press("Control+k");
    await page.keyboard.type(label);
    await page.keyboard.press("Enter");
    const arranged = await until(canvas, label, (graph) => graph.revision !== revision);
    await apply(canvas, [{ type: "layout.arrange", layout, nodeIds: boxes.map(({ title }) => ids[title]) }]);
    assert.deepEqual(places(await read(canvas)), places(arranged), "the service changes nothing of it");
    await saved(page);
  }
});

scene("what is locked stays where it is, until it is unlocked", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Locked", [text("One", 0, 0), text("Two", 400, 0)]);
  await openBoard(page, url);
  await node(page, "One").click();
  await page.keyboard.press("Shift+l");
  await until(canvas, "it is locked", (graph) => (titled(graph, "One")?.metadata as { locked?: boolean }).locked === true);
  await becomes(() => page.locator(".react-flow__resize-control").count(), 0);
  await dragBy(page, node(page, "One"), 80, 60);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Delete");
  const notice = page.getByRole("status").filter({ hasText: "“One” cannot be deleted while locked." });
  await notice.waitFor();
  await isAccessible();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Shift+ArrowDown");
  const moved = await until(canvas, "the other moves alone", (graph) => at(graph, "Two")?.y === 10);
  assert.deepEqual(at(moved, "One"), { x: 0, y: 0 });
  await notice.getByRole("button", { name: "Unlock" }).click();
  await until(canvas, "it is unlocked", (graph) => (titled(graph, "One")?.metadata as { locked?: boolean }).locked === undefined);
  await node(page, "One").click();
  await page.keyboard.press("Delete");
  await until(canvas, "it is deleted", ({ nodes }) => nodes.length === 1);
});

scene("a text grows while it is written, shrinks again, and is one step with its height", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Growing", [text("Brief", 0, 0, { metadata: { content: "Short" } }), text("Note", 400, 0, { type: "sticky", width: 240, height: 240, metadata: { content: "Short" } })]);
  await openBoard(page, url);
  await page.keyboard.press("1");
  const height = (title: string) => async () => titled(await read(canvas), title)?.height ?? 0;
  await node(page, "Brief").dblclick();
  const field = page.getByRole("textbox", { name: "Text of Brief" });
  await field.fill(Array.from({ length: 12 }, (_, at) => `Line ${at}`).join("\n"));
  await becomes(async () => (await height("Brief")()) > 250, true);
  await becomes(() => field.evaluate(({ scrollHeight, clientHeight }) => scrollHeight <= clientHeight), true, "all of it is seen");
  await field.fill("Short again");
  await becomes(height("Brief"), 120, "not lower than it was");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+z");
  await until(canvas, "text and height are one step", (graph) => titled(graph, "Brief")?.metadata.content === "Short" && titled(graph, "Brief")?.height === 120);

  await node(page, "Note").dblclick();
  const note = page.getByRole("textbox", { name: "Text of Note" });
  const letters = () => note.evaluate((field) => Number.parseFloat(getComputedStyle(field).fontSize));
  assert.equal(await letters(), 26);
  await note.fill("Words and words. ".repeat(12));
  await becomes(async () => (await letters()) < 26, true, "letters shrink first");
  await becomes(height("Note"), 240);
  await note.fill("Words and words. ".repeat(60));
  await becomes(letters, 12);
  await becomes(async () => (await height("Note")()) > 240, true, "then the note grows");
});
