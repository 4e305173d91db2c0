/** Images wherever they are chosen, the rows of what was started, the lines of the credit, and the drawings of the canvases. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import type { Locator, Page } from "playwright-core";

import { node, openBoard, ROOT, saved, text, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, BASE_URL, type Canvas, makeBoard, makeCanvas, png, read, send, stranger, succeeded } from "./service.ts";
import { heading, signIn } from "./steps.ts";

interface Stored {
  id: string;
  handle: string;
  node: string;
}

/** Stores an image on a canvas, in a node with this title. The name of its file says nothing. */
async function store(canvas: Canvas, title: string, token: string, [width, height]: [number, number] = [120, 80]): Promise<Stored> {
  const { asset } = await send<{ asset: Stored }>("POST", `/assets?canvasId=${canvas.handle}`, png(width, height), token);
  await apply(canvas, [{ type: "node.update", nodeId: asset.node, patch: { title } }], token);
  return asset;
}

async function withCredit(): Promise<{ uid: string; token: string }> {
  const one = await stranger();
  await admin("credits", "grant", "--account", one.uid, "--amount", "100");
  return one;
}

const dialog = (page: Page) => page.getByRole("dialog").last();
const side = (page: Page, name: string) => page.getByRole("complementary", { name });

/** Waits until a choice of images shows some. */
async function showsImages(where: Locator): Promise<void> {
  await where.locator("[role=gridcell] img").first().waitFor();
  await becomes(() => where.locator("[role=gridcell] select, [role=gridcell] option").count(), 0);
}

/** Where images are chosen, each from an open board: what opens it, and what it is in. */
const CHOOSERS: [what: string, open: (page: Page) => Promise<Locator>][] = [
  ["the panel beside the board", async (page) => (await page.keyboard.press("a"), side(page, "Pictures"))],
  ["a reference of the Prompt", async (page) => (await onMake(page), side(page, "Make").getByRole("button", { name: "Add an image…" }).click(), dialog(page))],
  [
    "an image in place of a reference",
    async (page) => {
      await onMake(page, "Hero");
      await side(page, "Make").locator("[data-chip]").first().click();
      await side(page, "Make").getByRole("button", { name: "Replace…" }).click();
      return dialog(page);
    },
  ],
  [
    "an Element of the Prompt",
    async (page) => {
      await onMake(page);
      await side(page, "Make").getByRole("button", { name: "Add an image…" }).click();
      await dialog(page).getByText("Elements", { exact: true }).click();
      await dialog(page).getByRole("button", { name: /^Soft light/ }).waitFor();
      return dialog(page);
    },
  ],
  [
    "a frame of a video",
    async (page) => {
      await onMake(page);
      await side(page, "Make").getByLabel("What to make").selectOption("video");
      await side(page, "Make").getByRole("button", { name: "Add an image…" }).click();
      return dialog(page);
    },
  ],
  [
    "the second input of an Action",
    async (page) => {
      await node(page, "Hero").click();
      await page.keyboard.press("p");
      await side(page, "Details").getByLabel("Make a new image").selectOption({ label: "Overlay image" });
      await side(page, "Details").locator("form [aria-labelledby]").last().click();
      return dialog(page);
    },
  ],
  [
    "the source images of an Element",
    async (page) => {
      await node(page, "Hero").click();
      await page.keyboard.press("Shift+F10");
      await page.getByRole("menuitem", { name: "Make an Element…" }).click();
      await page.getByRole("button", { name: "Choose source images" }).click();
      return dialog(page);
    },
  ],
  [
    "an input of a Recipe",
    async (page) => {
      await page.keyboard.press("w");
      await side(page, "Recipes").getByRole("button", { name: /^Material close-up/ }).click();
      await side(page, "Recipes").getByRole("button", { name: "Choose an image for Product" }).first().click();
      return dialog(page);
    },
  ],
];

async function onMake(page: Page, title?: string): Promise<void> {
  if (title !== undefined) await node(page, title).click();
  await page.getByRole("button", { name: "Make", exact: true }).click();
  await side(page, "Make").waitFor();
}

scene("whatever chooses an image shows images", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { token } = await withCredit();
  const { canvas, url } = await makeBoard("Choosers", [text("Brief", 0, 500, { metadata: { content: "A quiet harbor at dawn, seen from the pier" } })], token);
  const hero = await store(canvas, "Hero", token, [200, 90]);
  const tall = await store(canvas, "Tall", token, [60, 160]);
  await apply(canvas, [hero, tall].map(({ node }, index) => ({ type: "node.move", nodeId: node, position: { x: 400 * index, y: 0 } })), token);
  await send("POST", "/elements", { name: "Soft light", type: "style", sourceAssetIds: [hero.id], guidelines: "Always soft." }, token);
  await openBoard(page, url, token);
  for (const [what, open] of CHOOSERS) {
    try {
      await showsImages(await open(page));
      await isAccessible();
    } catch (error) {
      throw new Error(`${what}: ${String(error)}`, { cause: error });
    }
    await page.goto(url);
    await node(page, "Hero").waitFor();
    await saved(page);
  }

  await page.keyboard.press("w");
  await side(page, "Recipes").getByRole("button", { name: /^Storyboard/ }).click();
  await side(page, "Recipes").getByRole("button", { name: /^Choose a text of the canvas for/ }).first().click();
  await dialog(page).getByRole("gridcell").getByText("A quiet harbor at dawn, seen from the pier").waitFor();
  await isAccessible();
  await dialog(page).getByRole("gridcell").getByRole("button").click();
  await side(page, "Recipes").getByText("Brief", { exact: true }).first().waitFor();

  await page.goto("/assets");
  await showsImages(page.getByRole("main"));
  await page.goto("/recipes?recipe=material-close-up");
  await page.getByRole("button", { name: /^Choose an image for Product/ }).click();
  await showsImages(dialog(page));
}, 180);

scene("the wide cover of last week is found with three interactions, and put on the board", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { token } = await stranger();
  const { canvas } = await makeBoard("Campaign", [], token);
  for (const [index, title] of ["Wide cover", "Tall story", "Square", "Wide cover of the cup"].entries()) await store(canvas, title, token, [200 - index, 80 + 20 * index]);
  const { canvas: other, url } = await makeBoard("Poster", [], token);
  await openBoard(page, url, token);
  const asked = page.waitForRequest((request) => /\/assets\?/.test(request.url()) && new URL(request.url()).searchParams.has("since") && new URL(request.url()).searchParams.get("q") === "wide cover cup");
  await page.keyboard.press("a");
  const panel = side(page, "Pictures");
  await panel.getByLabel("Search by title, name or prompt").fill("wide cover cup");
  await panel.getByLabel("When").selectOption("Last 7 days");
  await asked;
  await becomes(() => panel.getByRole("gridcell").count(), 1);
  const tile = panel.getByRole("button", { name: /^Put on the board: Wide cover of the cup just now · 197 × 140/ });
  await tile.waitFor();
  await isAccessible();
  await tile.click();
  const { nodes } = await until(other, "it is on the board", (graph) => graph.nodes.length === 1, token);
  assert.equal(nodes[0]?.title, "Wide cover of the cup");
  await panel.getByLabel("Search by title, name or prompt").fill("nothing of the kind");
  await panel.getByText("No image matches").waitFor();
  await panel.getByRole("button", { name: "Show all" }).click();
  await panel.getByRole("gridcell").nth(3).waitFor();
});

scene("images are rows in their own ratios, of which those in view are drawn, and keys move among them", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { token } = await stranger();
  const names = Array.from({ length: 90 }, (_, index) => `${String(index).padStart(2, "0")}.png`);
  for (const [index, name] of names.entries()) {
    const headers = { Authorization: `Bearer ${token}`, "Content-Type": "image/png", "X-Service-File-Name": name };
    const response = await fetch(`${BASE_URL}/api/canvas-agent/v1/assets`, { method: "POST", headers, body: png(40 + (index % 7) * 20, 40 + (index % 5) * 25) });
    assert.equal(response.status, 201);
  }
  await signIn(page, token, "/assets?sort=name");
  const grid = page.getByRole("grid", { name: "Images" });
  const tile = (name: string) => grid.getByRole("button", { name: new RegExp(`^Open ${name}`) });
  await tile("00.png").waitFor();
  await becomes(async () => (await grid.getByRole("gridcell").count()) < 80, true, "not all are drawn");
  const shapes = await grid.getByRole("row").first().getByRole("gridcell").evaluateAll((cells) => cells.map((cell) => cell.querySelector("span:not(.unseen)")?.getBoundingClientRect()).map((box) => [box?.width, box?.height]));
  assert.equal(new Set(shapes.map(([, height]) => height)).size, 1, "equally high");
  assert(new Set(shapes.map(([width]) => width)).size > 1, "and each as wide as its ratio");
  await isAccessible();
  await tile("00.png").focus();
  await page.keyboard.press("ArrowRight");
  const focused = () => page.evaluate(() => /(\d\d)\.png/.exec(document.activeElement?.textContent ?? "")?.[1]);
  await becomes(focused, "01");
  await page.keyboard.press("ArrowDown");
  await becomes(async () => Number(await focused()) > 3, true, "to the next row");
  await page.keyboard.press("ArrowUp");
  await becomes(focused, "01");
  for (let [end, tries] = ["", 0]; end !== "89" && tries < 5; tries += 1) {
    await page.keyboard.press("End");
    await page.waitForTimeout(400);
    end = (await focused()) ?? "";
  }
  await becomes(focused, "89", "the last one is read and reached");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "89.png" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("L", { exact: true }).click();
  await becomes(() => page.evaluate(() => localStorage.getItem("canvas.pictures")), "l");
  await page.reload();
  await becomes(() => page.getByLabel("L", { exact: true }).isChecked(), true, "the size stays");
});

/** Makes images on a canvas with the draft model. */
async function make(canvas: Canvas, targets: string[], prompt: string, token: string): Promise<string> {
  const { revision } = await read(canvas, token);
  const start = { model: "sketch", prompt, canvasId: canvas.id, baseRevision: revision, targetNodeIds: targets, idempotencyKey: randomUUID() };
  const { run } = await send<{ run: string }>("POST", "/images/generate", start, token);
  await succeeded(run, token);
  return run;
}

scene("a run is seen by its results, on its page and beside the board, shown there, and made again", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { token } = await withCredit();
  const { canvas, ids, url } = await makeBoard("Queue", ["One", "Two", "Three"].map((title, index) => ({ type: "image", title, position: { x: index * 400, y: 0 } })), token);
  await make(canvas, Object.values(ids), "Steam over a cup, backlit", token);
  await openBoard(page, url, token);
  await page.keyboard.press("r");
  const row = (within: Locator) => within.getByRole("listitem").filter({ has: page.getByRole("button", { name: /^Steam over a cup/ }) });
  const beside = row(side(page, "Queue"));
  await becomes(() => beside.locator("img").count(), 3);
  await beside.getByText("Succeeded").waitFor();
  await beside.getByText("3 credits").waitFor();
  await beside.getByText("Sketch").waitFor();
  await isAccessible();
  await beside.getByRole("button", { name: "Show" }).click();
  await becomes(() => page.locator(".react-flow__node.selected").count(), 3);
  await beside.getByRole("button", { name: "Again" }).click();
  await becomes(() => side(page, "Make").getByLabel("Prompt", { exact: true }).inputValue(), "Steam over a cup, backlit");

  await page.goto("/runs");
  await heading(page, "Queue");
  const listed = row(page.getByRole("main"));
  await becomes(() => listed.locator("img").count(), 3);
  await listed.getByText("in Queue").waitFor();
  await isAccessible();
  await page.setViewportSize({ width: 390, height: 844 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, "nothing is cut off on a phone");
  await isAccessible();
  await page.setViewportSize({ width: 1280, height: 800 });
  await listed.getByRole("link", { name: "Again: Steam over a cup, backlit" }).click();
  await becomes(() => side(page, "Make").getByLabel("Prompt", { exact: true }).inputValue(), "Steam over a cup, backlit");
});

scene("a canvas is renamed in the list, and drawn dark in the dark", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { token } = await stranger();
  const { canvas } = await makeCanvas("Untitled", token);
  await page.emulateMedia({ colorScheme: "dark" });
  const drawn = page.waitForRequest((request) => /\/render\?width=512&theme=dark$/.test(request.url()));
  await signIn(page, token);
  await drawn;
  const card = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "Untitled", level: 2 }) });
  await card.locator("img").waitFor();
  await page.getByRole("button", { name: "Rename Untitled" }).press("Enter");
  const field = page.getByLabel("Title of the canvas");
  await field.fill("Autumn");
  await field.press("Escape");
  await field.waitFor({ state: "detached" });
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), "Rename Untitled");
  await page.keyboard.press("Enter");
  // Somebody else changes the canvas meanwhile.
  await apply(canvas, [{ type: "node.create", node: { type: "sticky", title: "Note", position: { x: 900, y: 0 } } }], token);
  expect(`409 POST ${ROOT}/canvases/${encodeURIComponent(canvas.handle)}/operations`);
  await field.fill("Autumn campaign");
  await isAccessible();
  await field.press("Enter");
  await page.getByRole("heading", { name: "Autumn campaign", level: 2 }).waitFor();
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), "Rename Autumn campaign");
});
