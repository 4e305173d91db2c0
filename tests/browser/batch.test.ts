/** Actions on several images, formats, and images that are made for each: all as one step. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { env } from "node:process";

import type { Page } from "playwright-core";

import { node, openBoard, path, ROOT, saved, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, type Graph, makeBoard, png, read, send, stranger } from "./service.ts";

const bar = (page: Page) => page.getByRole("toolbar", { name: /^What to do with/ });
const item = (page: Page, name: string) => bar(page).getByRole("button", { name, exact: true });
const inspect = (page: Page) => page.getByRole("complementary", { name: "Details" });
const format = (page: Page) => page.getByRole("dialog", { name: "Format" });
const card = (page: Page) => page.getByRole("region", { name: "Progress" });
const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", `batch-${name}.png`) });
/** What was made on the board. */
const made = ({ nodes }: Graph) => nodes.filter(({ title, asset }) => asset !== undefined && !/^Photo \d+$/.test(title));

/** A board of an account of its own, with an image of each size in rows of four. */
async function boardWith(name: string, sizes: [width: number, height: number][], credits = 0) {
  const { uid, token } = await stranger();
  if (credits > 0) await admin("credits", "grant", "--account", uid, "--amount", String(credits));
  const { canvas, url } = await makeBoard(name, [], token);
  for (const [at, [width, height]] of sizes.entries()) {
    const { asset } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(width + at, height), token);
    const position = { x: (at % 4) * 400, y: Math.floor(at / 4) * 400 };
    await apply(canvas, [{ type: "node.update", nodeId: asset.node, patch: { title: `Photo ${at + 1}` } }, { type: "node.move", nodeId: asset.node, position }], token);
  }
  return { canvas, url, token };
}

async function openAll(page: Page, url: string, token: string): Promise<void> {
  await openBoard(page, url, token);
  await node(page, "Photo 1").waitFor();
  await page.keyboard.press("0");
  await page.keyboard.press("Control+a");
}

/** Which source each result comes from, by their titles. */
const sourcesOf = (graph: Graph) => graph.connections.map(({ fromNodeId }) => graph.nodes.find(({ id }) => id === fromNodeId)?.title).toSorted();

async function crop(page: Page, width: string, height: string): Promise<void> {
  await item(page, "Actions").click();
  await page.getByRole("menuitem", { name: "Crop" }).click();
  await inspect(page).locator("form").getByLabel("Width", { exact: true }).fill(width);
  await inspect(page).locator("form").getByLabel("Height", { exact: true }).fill(height);
}

scene("twelve images are cropped as one step, and what does not fit all is in relation to each", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  await page.setViewportSize({ width: 1440, height: 900 });
  const { canvas, url, token } = await boardWith("Twelve", Array.from({ length: 12 }, (_, at) => (at % 3 === 2 ? [40, 30] : [400, 300])));
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openAll(page, url, token);
  await crop(page, "200", "150");
  const form = inspect(page);
  await form.getByText("1 of 12", { exact: true }).waitFor();
  await form.getByRole("button", { name: "Photo 3", exact: true }).click();
  await form.getByText("3 of 12 · in relation").waitFor();
  await shot(page, "form");
  await isAccessible();
  await form.getByRole("button", { name: "Crop 12 images" }).click();
  await card(page).getByText(/^Crop · \d+ of 12$/).waitFor();
  await shot(page, "card");
  await card(page).getByText("12 images are cropped.").waitFor({ timeout: 60_000 });
  await shot(page, "done");
  const after = await until(canvas, "twelve results", (graph) => made(graph).length === 12, token);
  assert.deepEqual(sourcesOf(after), Array.from({ length: 12 }, (_, at) => `Photo ${at + 1}`).toSorted(), "each from its own");
  const sizes = new Set(made(after).map(({ metadata }) => JSON.stringify((metadata.provenance as { params?: { width: number; height: number } }).params)));
  assert(sizes.size > 1, `in relation: ${[...sizes].join(" ")}`);
  await isAccessible();
}, 180);

scene("of five images one is refused: the others are made, it is tried again alone, and an undo takes all back", async ({ page, expect, isAccessible }) => {
  expect(NOBODY, `422 POST ${ROOT}/actions/crop/runs`);
  const { canvas, url, token } = await boardWith("One fails", Array.from({ length: 5 }, () => [96, 64]));
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openAll(page, url, token);
  let starts = 0;
  await page.route("**/actions/crop/runs", (route) => {
    starts += 1;
    if (starts !== 2) return route.continue();
    return route.fulfill({ status: 422, contentType: "application/json", body: JSON.stringify({ error: { code: "unprocessable_entity", message: "The image cannot be read." } }) });
  });
  await crop(page, "32", "32");
  await inspect(page).getByRole("button", { name: "Crop 5 images" }).click();
  await card(page).getByText("4 images are cropped. 1 failed.").waitFor({ timeout: 60_000 });
  await shot(page, "failed");
  await isAccessible();
  assert.equal((await until(canvas, "its target is gone", ({ nodes }) => nodes.length === 9, token)).connections.length, 4);
  await card(page).getByRole("button", { name: "Show failed" }).click();
  await becomes(() => page.locator(".react-flow__node.selected").count(), 1);
  await card(page).getByRole("button", { name: "Try the failed again" }).click();
  await card(page).getByText("5 images are cropped.").waitFor({ timeout: 60_000 });
  assert.equal(starts, 6, "the others are not started again");
  await card(page).getByRole("button", { name: "Undo" }).click();
  await until(canvas, "all are taken back", ({ nodes }) => nodes.length === 5, token);
  await becomes(() => card(page).count(), 0);
}, 180);

scene("a page that is reloaded in the middle shows how far a batch is, and starts what was not started", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Reloaded", Array.from({ length: 6 }, () => [96, 64]));
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openAll(page, url, token);
  let [starts, isHeld] = [0, true];
  await page.route("**/actions/rotate/runs", (route) => {
    starts += 1;
    return starts <= 2 || !isHeld ? route.continue() : undefined;
  });
  await item(page, "Actions").click();
  await page.getByRole("menuitem", { name: "Turn" }).click();
  await inspect(page).locator("form").getByLabel("Degrees", { exact: true }).fill("90");
  await inspect(page).getByRole("button", { name: "Turn 6 images" }).click();
  await card(page).getByText("Rotate · 2 of 6").waitFor({ timeout: 60_000 });
  await page.reload();
  isHeld = false;
  await card(page).getByText("2 images are turned. 4 failed.").waitFor({ timeout: 60_000 });
  await card(page).getByText("It was not started.").waitFor();
  await isAccessible();
  await card(page).getByRole("button", { name: "Try the failed again" }).click();
  await card(page).getByText("6 images are turned.").waitFor({ timeout: 60_000 });
  const after = await until(canvas, "six results", (graph) => made(graph).length === 6, token);
  assert.equal(after.nodes.length, 12, "no target twice");
}, 180);

scene("an undo takes back what is not made yet, and a redo brings back what was", async ({ page, expect }) => {
  expect(NOBODY, ...["404", "409", "422"].map((status) => `${status} POST ${ROOT}/actions/change-aspect-ratio/runs`));
  const { canvas, url, token } = await boardWith("Taken back", [[96, 64], [96, 64]]);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openAll(page, url, token);
  const released = Promise.withResolvers<void>();
  await page.route("**/change-aspect-ratio/runs", (route) => released.promise.then(() => route.continue()));
  await item(page, "Format").click();
  await format(page).getByRole("checkbox", { name: "1:1", exact: true }).check();
  await format(page).getByRole("button", { name: "Make 2" }).click();
  await card(page).getByText("Format 1:1 · 0 of 2").waitFor();
  await until(canvas, "their places are there", ({ nodes }) => nodes.length === 4, token);
  await page.keyboard.press("Control+z");
  await until(canvas, "they are taken back", ({ nodes }) => nodes.length === 2, token);
  await becomes(() => card(page).count(), 0);
  released.resolve();
  await page.keyboard.press("Control+a");
  await item(page, "Format").click();
  await format(page).getByRole("checkbox", { name: "4:5", exact: true }).check();
  await format(page).getByRole("button", { name: "Make 2" }).click();
  await card(page).getByText("2 images are in their new format.").waitFor({ timeout: 60_000 });
  await page.keyboard.press("Control+z");
  await until(canvas, "results are taken back, too", ({ nodes }) => nodes.length === 2, token);
  await page.keyboard.press("Control+Shift+z");
  await until(canvas, "a redo brings them back", (graph) => made(graph).length === 2 && graph.connections.length === 2, token);
  await saved(page);
}, 180);

scene("one image is made for each that is selected, for the sum of the prices", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  await page.setViewportSize({ width: 1440, height: 900 });
  const { canvas, url, token } = await boardWith("For each", [[96, 64], [96, 64], [96, 64]], 20);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openAll(page, url, token);
  await item(page, "Edit each").click();
  const prompt = page.getByRole("form", { name: /^Make/ });
  const models = prompt.getByLabel("Model", { exact: true });
  await models.selectOption((await models.locator("option", { hasText: "Sketch" }).first().getAttribute("value")) ?? "");
  await prompt.getByLabel("Prompt", { exact: true }).fill("make it backlit");
  assert.equal(await prompt.getByRole("radio", { name: "One for each (×3)" }).isChecked(), true);
  await prompt.getByRole("button", { name: "Make 3 · 3 credits" }).waitFor();
  await shot(page, "each");
  await isAccessible();
  await prompt.getByRole("radio", { name: "All together" }).check();
  await prompt.getByRole("button", { name: "Make · 1 credit" }).waitFor();
  await prompt.getByRole("radio", { name: "One for each (×3)" }).check();
  await prompt.getByRole("button", { name: "Make 3 · 3 credits" }).click();
  await card(page).getByText("3 images are ready.").waitFor({ timeout: 60_000 });
  const after = await until(canvas, "three results", (graph) => made(graph).length === 3, token);
  assert.deepEqual(sourcesOf(after), ["Photo 1", "Photo 2", "Photo 3"]);
}, 180);

scene("three images in two formats are rows of one image each, connected to their own source", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Formats", [[96, 64], [96, 64], [96, 64]]);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openAll(page, url, token);
  await item(page, "Format").click();
  for (const ratio of ["1:1", "9:16"]) await format(page).getByRole("checkbox", { name: ratio, exact: true }).check();
  await format(page).getByRole("radio", { name: "Blurred" }).check();
  await format(page).getByRole("button", { name: "Make 6" }).waitFor();
  await shot(page, "formats");
  await isAccessible();
  await page.keyboard.press("Escape");
  await format(page).waitFor({ state: "detached" });
  assert.equal(await page.locator(".react-flow__node.selected").count(), 3, "the selection stays");
  await item(page, "Format").click();
  for (const ratio of ["1:1", "9:16"]) await format(page).getByRole("checkbox", { name: ratio, exact: true }).check();
  await format(page).getByRole("button", { name: "Make 6" }).press("Enter");
  await card(page).getByText("6 images are in their new format.").waitFor({ timeout: 60_000 });
  await shot(page, "formats-done");
  const after = await until(canvas, "six results", (graph) => made(graph).length === 6, token);
  assert.deepEqual(sourcesOf(after), ["Photo 1", "Photo 1", "Photo 2", "Photo 2", "Photo 3", "Photo 3"]);
  const rows = Map.groupBy(made(after), ({ position }) => position.y);
  assert.deepEqual([...rows.values()].map((row) => new Set(row.map(({ title }) => title.split(",")[0])).size), [1, 1, 1], "one row a source");
}, 180);

scene("three formats with a text are nine interactions", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  await page.setViewportSize({ width: 1440, height: 900 });
  const { canvas, url, token } = await boardWith("Nine", [[480, 320]]);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url, token);
  await page.keyboard.press("0");
  const begin = Date.now();
  await node(page, "Photo 1").click();
  await item(page, "Format").click();
  for (const ratio of ["1:1", "4:5", "16:9"]) await format(page).getByRole("checkbox", { name: ratio, exact: true }).click();
  await format(page).getByRole("button", { name: "Make 3" }).click();
  await item(page, "Text").click({ timeout: 60_000 });
  await becomes(() => inspect(page).getByLabel("Text", { exact: true }).evaluate((field) => field === document.activeElement), true, "the text has the keyboard");
  await page.keyboard.type("Winter sale");
  await page.keyboard.press("Enter");
  const after = await until(canvas, "six results", (graph) => made(graph).length === 6, token);
  console.log(`three formats with a text: ${Date.now() - begin} ms`);
  await page.keyboard.press("0");
  await shot(page, "nine");
  assert.equal(after.connections.length, 6);
  await card(page).getByText("3 images are ready, with their text.").waitFor();
  assert.equal((await read(canvas, token)).nodes.length, 7);
  await isAccessible();
}, 180);
