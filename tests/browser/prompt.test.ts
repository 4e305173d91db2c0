/** The Prompt on the board: making, editing and varying where the results will be. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

import { box, drag, middle, node, openBoard, ROOT, saved, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, makeBoard, png, read, send, stranger } from "./service.ts";

const prompt = (page: Page) => page.getByRole("form", { name: /^Make/ });
const field = (page: Page) => prompt(page).getByLabel("Prompt", { exact: true });
const hasKeyboard = (page: Page) => becomes(() => field(page).evaluate((field) => field === document.activeElement), true, "the Prompt has the keyboard");
/** Enter is ignored for a moment after the Prompt was opened. */
const isOpen = async (page: Page) => (await hasKeyboard(page), await page.waitForTimeout(320));
const made = (graph: { nodes: { asset?: string }[] }) => graph.nodes.filter(({ asset }) => asset !== undefined);

async function chooseModel(page: Page, name: string): Promise<void> {
  const models = prompt(page).getByLabel("Model", { exact: true });
  await models.selectOption((await models.locator("option", { hasText: name }).first().getAttribute("value")) ?? "");
}

/** A board of an account with credit, with named images. */
async function boardWith(name: string, titles: string[], amount = 100) {
  const { uid, token } = await stranger();
  if (amount > 0) await admin("credits", "grant", "--account", uid, "--amount", String(amount));
  const { canvas, url } = await makeBoard(name, [], token);
  for (const [index, title] of titles.entries()) {
    const { asset } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(96 + index, 96), token);
    await apply(canvas, [{ type: "node.update", nodeId: asset.node, patch: { title } }, { type: "node.move", nodeId: asset.node, position: { x: index * 400, y: 0 } }], token);
  }
  return { canvas, url, token };
}

scene("a key, a text and Enter make an image in the place that the key has made, and Enter makes another beside it", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Filled", ["Photo"]);
  await openBoard(page, url, token);
  await page.getByRole("application", { name: "Board" }).focus();
  await page.keyboard.press("i");
  await isOpen(page);
  const slot = await box(page.locator(".react-flow__node-image").last());
  const own = await box(prompt(page));
  assert(own.x >= slot.x && own.x + own.width <= slot.x + slot.width + 1 && own.y >= slot.y, "the field lies in the place");
  await isAccessible();
  await page.keyboard.type("A quiet harbor");
  await page.keyboard.press("Shift+Enter");
  await page.keyboard.type("at dawn");
  await page.keyboard.press("Enter");
  const after = await until(canvas, "the image is in its place", (graph) => made(graph).length === 2, token);
  assert.equal(after.nodes.length, 2, "no other node is made");
  assert.equal(after.nodes[1]?.title, "A quiet harbor");
  await hasKeyboard(page);
  await becomes(() => field(page).inputValue(), "A quiet harbor\nat dawn");
  await page.keyboard.press("Enter");
  await until(canvas, "another one is made", (graph) => made(graph).length === 3, token);
  await isAccessible();
  // The place that was filled is selected no more, and neither is what Enter has made before.
  await becomes(() => page.locator(".react-flow__node.selected").count(), 1);
});

scene("an empty board asks for a prompt at once, and two clicks and a text make the first image", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("First", []);
  await openBoard(page, url, token);
  await field(page).click();
  await isAccessible();
  await page.waitForTimeout(320);
  await page.keyboard.type("A quiet harbor");
  await page.keyboard.press("Enter");
  await until(canvas, "the image is made", (graph) => made(graph).length === 1, token);
  await hasKeyboard(page);
  for (const [width, height] of [[1440, 900], [1024, 700]] as const) {
    await page.setViewportSize({ width, height });
    const { x, y, width: across, height: down } = await box(prompt(page));
    assert(x >= 0 && y >= 0 && x + across <= width && y + down <= height, `the Prompt is in the window of ${width}`);
    await isAccessible();
  }
});

scene("images are chips: their roles, their order and their end are changed by pointer and by keyboard", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Chips", ["Hero", "Cup"]);
  await openBoard(page, url, token);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("g");
  await isOpen(page);
  await chooseModel(page, "Sketch");
  const chips = prompt(page).locator("[data-chip]");
  await becomes(() => chips.locator("bdi").allTextContents(), ["Hero", "Cup"]);
  await chips.nth(1).press("Alt+ArrowLeft");
  await becomes(() => chips.locator("bdi").allTextContents(), ["Cup", "Hero"]);
  await becomes(() => chips.first().evaluate((chip) => chip === document.activeElement), true, "the keyboard moves with the chip");
  await chips.first().press("Enter");
  await prompt(page).getByLabel("What Cup is for").selectOption({ label: "same style" });
  await isAccessible();
  await prompt(page).getByRole("button", { name: "Move Cup to the right" }).click();
  await becomes(() => chips.locator("bdi").allTextContents(), ["Hero", "Cup"]);
  await field(page).fill("together");
  await prompt(page).getByRole("button", { name: /^Make · / }).click();
  const graph = await until(canvas, "the image is made", (graph) => made(graph).length === 3, token);
  const provenance = graph.nodes.find(({ title }) => title === "together")?.metadata.provenance as { references: { role?: string }[] };
  assert.deepEqual(provenance.references.map(({ role }) => role), [undefined, "style"]);
  await chips.first().press("Delete");
  await becomes(() => chips.locator("bdi").allTextContents(), ["Cup"]);
  assert.equal((await read(canvas, token)).nodes.length, 3, "no node is deleted");
});

scene("an @ offers the images of the board by their titles, and what it mentions is sent by its number", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Mentions", ["Hero", "Cup"]);
  await openBoard(page, url, token);
  await node(page, "Hero").click();
  await page.keyboard.press("g");
  await isOpen(page);
  await chooseModel(page, "Sketch");
  await prompt(page).getByLabel("What to make").selectOption("edit");
  await prompt(page).getByText("changed", { exact: true }).waitFor();
  await field(page).focus();
  await page.keyboard.type("backlit, steam like @cu");
  const offers = page.getByRole("listbox", { name: "Images and Elements" });
  await becomes(() => offers.getByRole("option").allTextContents(), ["Cupimage"]);
  await becomes(() => page.locator(":focus").getAttribute("role"), "combobox");
  await isAccessible();
  await page.keyboard.press("Enter");
  await becomes(() => field(page).inputValue(), "backlit, steam like @Cup ");
  await becomes(() => prompt(page).locator("[data-chip] bdi").allTextContents(), ["Hero", "Cup"]);
  await page.keyboard.press("Enter");
  const graph = await until(canvas, "the edit is made", (graph) => made(graph).length === 3, token);
  const { prompt: sent, operation } = graph.nodes.find(({ title }) => title !== "Hero" && title !== "Cup")?.metadata.provenance as { prompt: string; operation: string };
  assert.deepEqual([sent, operation], ["backlit, steam like image 2", "edit"]);
  // What is taken out stays in the text, and is struck.
  await prompt(page).getByRole("button", { name: "Remove Cup" }).click();
  await becomes(() => prompt(page).locator("s").allTextContents(), ["@Cup"]);
  await field(page).fill("backlit");
  await becomes(() => prompt(page).locator("s").count(), 0);
});

scene("a node and a file that are dropped on the Prompt are images of it, and the node stays where it was", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Dropped", ["Hero", "Cup"]);
  await openBoard(page, url, token);
  await node(page, "Hero").click();
  await page.keyboard.press("g");
  await isOpen(page);
  const before = (await read(canvas, token)).revision;
  await field(page).fill("together");
  const names = () => prompt(page).locator("[data-chip] bdi").allTextContents();
  const data = await page.evaluateHandle((bytes) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([new Uint8Array(bytes)], "steam.png", { type: "image/png" }));
    return transfer;
  }, [...png(64, 64)]);
  await prompt(page).dispatchEvent("drop", { dataTransfer: data });
  await becomes(names, ["Hero", "steam.png"]);
  const { x, y } = await middle(prompt(page));
  await drag(page, await middle(node(page, "Cup")), { x, y: y - 30 });
  await becomes(names, ["Hero", "steam.png", "Cup"]);
  await saved(page);
  assert.equal((await read(canvas, token)).revision, before, "nothing has moved");
  // Anywhere else, it is moved and selected.
  const from = await middle(node(page, "Cup"));
  await drag(page, from, { x: from.x, y: from.y - 60 });
  await prompt(page).waitFor({ state: "detached" });
  await until(canvas, "the node is moved", (graph) => (titled(graph, "Cup")?.position.y ?? 0) < 0, token);
  await becomes(() => node(page, "Cup").evaluate((node) => node.classList.contains("selected")), true);
});

scene("a price that rose is said, and accepted with one click", async ({ page, expect, isAccessible }) => {
  expect(NOBODY, `402 POST ${ROOT}/images/generate`);
  const { canvas, url, token } = await boardWith("Risen", []);
  await page.route("**/models?*", async (route) => {
    const response = await route.fetch();
    const { models } = (await response.json()) as { models: object[] };
    await route.fulfill({ response, json: { models: models.map((model) => ({ ...model, creditCost: 0 })) } });
  });
  await openBoard(page, url, token);
  await chooseModel(page, "Sketch");
  await field(page).fill("A quiet harbor");
  await prompt(page).getByRole("button", { name: "Make · no credits" }).click();
  const alert = prompt(page).getByRole("alert");
  await isAccessible();
  await page.unroute("**/models?*");
  await alert.getByRole("button", { name: "Make for 1 credit" }).click();
  await until(canvas, "the image is made", (graph) => made(graph).length === 1, token);
});

scene("without enough credit the Prompt says so, and where credit is", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { url, token } = await boardWith("Poor", [], 1);
  await openBoard(page, url, token);
  await chooseModel(page, "Sketch");
  await field(page).fill("A quiet harbor");
  await becomes(() => prompt(page).getByRole("button", { name: "Make · 1 credit" }).isDisabled(), false);
  await prompt(page).getByRole("radio", { name: "4" }).check();
  await prompt(page).getByText("Needs 4 credits, you have 1.").waitFor();
  await becomes(() => prompt(page).getByRole("button", { name: "Make 4 · 4 credits" }).isDisabled(), true);
  await isAccessible();
  await prompt(page).getByRole("link", { name: "Credit" }).click();
  await page.waitForURL(/\/settings\/credit/);
});

scene("offline, one can type, and the start waits for the connection", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Offline", []);
  await openBoard(page, url, token);
  await chooseModel(page, "Sketch");
  await page.context().setOffline(true);
  await field(page).fill("A quiet harbor");
  await becomes(() => prompt(page).getByRole("button", { name: "Waits for the connection" }).isDisabled(), true);
  await page.context().setOffline(false);
  await prompt(page).getByRole("button", { name: "Make · 1 credit" }).click();
  await until(canvas, "the image is made", (graph) => made(graph).length === 1, token);
});

scene("Escape gives the keyboard back and keeps the text, also over a reload; the arrow brings the last prompt", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Kept", ["Hero"]);
  await openBoard(page, url, token);
  await node(page, "Hero").click();
  await page.keyboard.press("g");
  await isOpen(page);
  await page.keyboard.type("A quiet harbor");
  await page.keyboard.press("Escape");
  await prompt(page).waitFor({ state: "detached" });
  await becomes(() => node(page, "Hero").evaluate((node) => node === document.activeElement), true);
  await page.keyboard.press("g");
  await becomes(() => field(page).inputValue(), "A quiet harbor");
  await page.reload();
  await node(page, "Hero").click();
  await page.keyboard.press("g");
  await isOpen(page);
  await becomes(() => field(page).inputValue(), "A quiet harbor");
  await page.keyboard.press("Enter");
  await until(canvas, "the image is made", (graph) => made(graph).length === 2, token);
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await isOpen(page);
  await page.keyboard.press("ArrowUp");
  await becomes(() => field(page).inputValue(), "A quiet harbor");
  await page.keyboard.press("ArrowDown");
  await becomes(() => field(page).inputValue(), "");
});

scene("a place for a video takes its frames from what is connected to it", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Frames", ["Dawn", "Noon"]);
  const { nodes } = await read(canvas, token);
  const [dawn, noon] = nodes;
  const operations = [
    { type: "node.create", clientId: "film", node: { type: "video", title: "Film", position: { x: 0, y: 400 }, width: 480, height: 300 } },
    { type: "connection.create", fromNodeId: dawn?.id, toNodeId: "film", purpose: "first-frame" },
    { type: "connection.create", fromNodeId: noon?.id, toNodeId: "film", purpose: "last-frame" },
  ];
  await apply(canvas, operations, token);
  await openBoard(page, url, token);
  await node(page, "Film").click();
  await chooseModel(page, "Animatic");
  await becomes(() => prompt(page).locator("[data-chip]").allTextContents(), ["Dawnbegins with", "Noonends with"]);
  await prompt(page).getByLabel("Seconds").selectOption("1");
  await field(page).fill("Fog lifts");
  await isAccessible();
  await prompt(page).getByRole("button", { name: "Make · 1 credit" }).click();
  const after = await until(canvas, "the video is in its place", (graph) => titled(graph, "Film")?.asset !== undefined, token);
  assert.equal(after.nodes.length, 3);
});

scene("Enter that ends a composition starts nothing, and neither does one right after the opening", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Composed", ["Hero"]);
  await openBoard(page, url, token);
  await node(page, "Hero").click();
  await page.keyboard.press("g");
  await hasKeyboard(page);
  await field(page).evaluate((field) => field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true })));
  await page.waitForTimeout(320);
  await field(page).fill("港");
  await field(page).dispatchEvent("keydown", { key: "Enter", isComposing: true });
  await page.waitForTimeout(500);
  assert.equal((await read(canvas, token)).nodes.length, 1);
  await field(page).press("Enter");
  await until(canvas, "the image is made", (graph) => made(graph).length === 2, token);
});

scene("a place says how far its work is and ends it, says why it failed, and tries again", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("States", []);
  const target = await apply(canvas, [{ type: "node.create", clientId: "slot", node: { type: "image", title: "Slot", position: { x: 0, y: 0 }, width: 320, height: 320 } }], token);
  assert(target);
  const job = { id: "job:0198c5b0-3c1d-7a42-b0fe-91c2d3e4f506", run: "run:0198c5b0-3c1d-7a42-b0fe-91c2d3e4f506", operation: "generate" };
  let status = "running";
  // The service alone writes the work of a node.
  await page.route(
    (url) => /\/canvases\/[^/]+$/.test(url.pathname),
    async (route) => {
      const response = await route.fetch();
      const { canvas } = (await response.json()) as { canvas: { nodes: { metadata: object }[] } };
      await route.fulfill({ response, json: { canvas: { ...canvas, nodes: canvas.nodes.map((one) => ({ ...one, metadata: { ...one.metadata, job: { ...job, status } } })) } } });
    },
  );
  expect(`404 GET ${ROOT}/runs/${encodeURIComponent(job.run)}`);
  await openBoard(page, url, token);
  await node(page, "Slot").click();
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("dialog", { name: /^Cancel/ }).waitFor();
  await page.keyboard.press("Escape");
  await isAccessible();
  status = "failed";
  await page.reload();
  await node(page, "Slot").click();
  await prompt(page).getByText("Failed", { exact: true }).waitFor();
  await field(page).fill("A quiet harbor");
  await prompt(page).getByRole("button", { name: "Try again" }).waitFor();
  await isAccessible();
});

