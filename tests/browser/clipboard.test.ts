/** Nodes on the clipboard: copied, cut, and pasted here and on other canvases. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

import { node, openBoard, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, type Canvas, type Graph, makeBoard, person, png, read, send, stranger } from "./service.ts";

const NODES = "application/x-canvas-nodes";

/** What a press of the keys puts on the clipboard. */
const taken = (page: Page, type: "copy" | "cut"): Promise<string> =>
  page.evaluate(
    ([type, format]) => {
      const clipboardData = new DataTransfer();
      document.querySelector(".react-flow__pane")?.dispatchEvent(new ClipboardEvent(type, { clipboardData, bubbles: true, cancelable: true }));
      return clipboardData.getData(format);
    },
    [type, NODES] as const,
  );

const paste = (page: Page, data: string): Promise<void> =>
  page.evaluate(
    ([data, format]) => {
      const clipboardData = new DataTransfer();
      if (data !== "") clipboardData.setData(format, data);
      document.querySelector(".react-flow__pane")?.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
    },
    [data, NODES] as const,
  );

/** A text that leads to an image of the person. */
async function withImage(title: string): Promise<{ canvas: Canvas; url: string; before: Graph }> {
  const { canvas, ids, url } = await makeBoard(title, [text("Brief", 600, 0, { metadata: { content: "A quiet harbor" } })]);
  const { asset } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(96, 64));
  await apply(canvas, [
    { type: "node.update", nodeId: asset.node, patch: { title: "Photo" } },
    { type: "connection.create", fromNodeId: ids["Brief"], toNodeId: asset.node, purpose: "reference" },
  ]);
  return { canvas, url, before: await read(canvas) };
}

/** Goes to another canvas that may be changed. */
async function goTo(page: Page, url: string): Promise<void> {
  await page.goto(url);
  await page.getByRole("button", { name: "Add a text" }).waitFor();
}

const shown = ({ nodes, connections }: Graph) => ({
  nodes: nodes.map(({ type, title, width, height, asset, metadata }) => [type, title, width, height, asset, metadata.content]).toSorted(),
  connections: connections.map(({ purpose }) => purpose),
});

scene("nodes are cut by keyboard, and pasted after they are gone, with their images and connections", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, before } = await withImage("Cut");
  await openBoard(page, url);
  await page.locator(".react-flow__node img").waitFor();
  await node(page, "Brief").click();
  await page.keyboard.press("Control+a");
  const data = await taken(page, "copy");
  await page.keyboard.press("Control+x");
  await until(canvas, "they are cut", ({ nodes }) => nodes.length === 0);
  await page.getByText("2 things are deleted.").waitFor();
  await paste(page, data);
  const after = await until(canvas, "they are pasted", ({ nodes, connections }) => nodes.length === 2 && connections.length === 1);
  assert.deepEqual(shown(after), shown(before));
  await page.locator(".react-flow__node img").waitFor();
  await becomes(() => page.locator(".react-flow__node.selected").count(), 2);
  await isAccessible();
  await page.keyboard.press("Control+z");
  await until(canvas, "the paste is undone", ({ nodes }) => nodes.length === 0);
  await page.keyboard.press("Control+z");
  await until(canvas, "the cut is undone", ({ nodes, connections }) => before.nodes.every(({ id }) => nodes.some((node) => node.id === id)) && connections.length === 1);

  await paste(page, "");
  await page.getByText("Nothing on the clipboard can be pasted here.").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).getByText("Cut", { exact: true }).waitFor();
});

scene("nodes are pasted on another canvas, without images that cannot be shown there", async ({ page, expect }) => {
  expect(NOBODY);
  const { url, before } = await withImage("Source");
  const mine = await makeBoard("Mine", [text("Here", 0, 600)]);
  const friend = await stranger();
  const theirs = await makeBoard("Theirs", [], friend.token);
  await admin("share", "--canvas", theirs.canvas.handle, "--with", person.uid, "--role", "editor");
  await openBoard(page, url);
  await node(page, "Brief").waitFor();
  await page.keyboard.press("Control+a");
  const data = await taken(page, "copy");

  await goTo(page, mine.url);
  await node(page, "Here").waitFor();
  await paste(page, data);
  const after = await until(mine.canvas, "both are pasted", ({ nodes, connections }) => nodes.length === 3 && connections.length === 1);
  assert.deepEqual(shown({ ...after, nodes: after.nodes.filter(({ title }) => title !== "Here") }), shown(before));
  await page.locator(".react-flow__node img").waitFor();

  await goTo(page, theirs.url);
  await page.getByRole("heading", { name: "This canvas is empty" }).waitFor();
  await paste(page, data);
  await page.getByText("1 image left out").waitFor();
  const left = await until(theirs.canvas, "the text is pasted", ({ nodes }) => nodes.length === 1, friend.token);
  assert.equal(titled(left, "Brief")?.metadata.content, "A quiet harbor");
});
