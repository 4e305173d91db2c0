/** Pictures and videos large: looked through, compared, marked, and filtered. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { env } from "node:process";

import type { Page } from "playwright-core";

import { box, node, openBoard, path, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, type Canvas, makeBoard, type Node, png, read, send, stranger, succeeded } from "./service.ts";

const PHOTO = new Uint8Array(readFileSync(join(import.meta.dirname, "../../deploy/local/demo-photo.jpg")));
const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", `look-${name}.png`) });
const dialog = (page: Page, name: string | RegExp) => page.getByRole("dialog", { name });
const tagsOf = (graph: { nodes: Node[] }, title: string): string[] => (graph.nodes.find((one) => one.title === title)?.metadata as { tags?: string[] } | undefined)?.tags ?? [];
const upload = async (file: Uint8Array<ArrayBuffer>, token: string) => (await send<{ asset: { handle: string } }>("POST", "/assets", file, token)).asset.handle;
const at = (title: string, column: number, row: number, asset: string): Partial<Node> & { title: string } => ({ type: "image", title, position: { x: column * 380, y: row * 320 }, width: 340, height: 268, asset });

/** A board with the photograph under these names, in rows. */
async function board(title: string, names: string[], columns = 4) {
  const { token } = await stranger();
  const asset = await upload(PHOTO, token);
  return { token, asset, ...(await makeBoard(title, names.map((name, index) => at(name, index % columns, Math.floor(index / columns), asset)), token)) };
}

async function act(canvas: Canvas, action: string, target: string | undefined, asset: string, params: object, token: string): Promise<void> {
  const { revision } = await read(canvas, token);
  const { run } = await send<{ run: string }>("POST", `/actions/${action}/runs`, { canvasId: canvas.handle, baseRevision: revision, idempotencyKey: randomUUID(), inputs: [asset], targetNodeId: target, params }, token);
  await succeeded(run, token);
}

scene("forty pictures are looked through and five of them chosen with forty-six keys", async ({ page, expect }) => {
  expect(NOBODY);
  const names = Array.from({ length: 40 }, (_, index) => `Shot ${String(index + 1).padStart(2, "0")}`);
  const { canvas, url, token } = await board("Forty", names, 8);
  await openBoard(page, url, token);
  await node(page, "Shot 01").click();
  let keys = 0;
  const press = (key: string) => ((keys += 1), page.keyboard.press(key));
  await press("Enter");
  for (const [index, name] of names.entries()) {
    await dialog(page, name).waitFor();
    if (index % 8 === 0) await press("f");
    if (index < names.length - 1) await press("ArrowRight");
  }
  await press("Escape");
  await dialog(page, /Shot/).waitFor({ state: "detached" });
  await until(canvas, "five are favorites", ({ nodes }) => nodes.filter(({ title }) => title.startsWith("Shot") && tagsOf({ nodes }, title).includes("favorite")).length === 5, token);
  assert(keys <= 46, `${keys} keys`);
  await page.locator('.react-flow__node.selected[aria-label*="Shot 40"]').waitFor();
  await page.locator('.react-flow__node[aria-label*="Shot 33"][aria-label*="a favorite"]').waitFor();
});

scene("a picture is seen closely, with what it was made from and what is known of it, and leaves its place to the next", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url, token, asset } = await board("Closely", ["Espresso", "Cups", "Table"]);
  const slots = await apply(canvas, [{ type: "node.create", clientId: "n", node: { type: "image", title: "Warm", position: { x: 0, y: 340 }, width: 340, height: 268 } }], token);
  await act(canvas, "color-grade", slots["n"], asset, { preset: "warm" }, token);
  await openBoard(page, url, token);
  await node(page, "Espresso").dblclick();
  const look = dialog(page, "Espresso");
  await look.getByRole("img", { name: "Espresso" }).waitFor();
  await look.getByText(/1 of 4 · \d+ × \d+ · JPEG/).waitFor();
  await shot(page, "light");
  await isAccessible();
  const scale = () => look.getByRole("button", { name: /pixel by pixel|show it whole/ }).textContent();
  const whole = await scale();
  await page.keyboard.press("+");
  assert.notEqual(await scale(), whole);
  await page.keyboard.press("z");
  await becomes(scale, whole);
  await page.keyboard.press("z");
  await becomes(scale, "100 %");
  for (let step = 0; step < 12; step += 1) await page.keyboard.press("+");
  await becomes(scale, "800 %");
  await page.keyboard.press("z");
  await becomes(scale, whole);
  await page.keyboard.press("i");
  await look.getByRole("region", { name: "About it" }).getByText(/\d+ × \d+ pixels/).waitFor();
  await isAccessible();

  await page.keyboard.press("ArrowDown");
  const made = dialog(page, "Warm");
  await made.getByText("Made by an Action").waitFor();
  await made.getByRole("region", { name: "Made from" }).getByRole("button", { name: "Espresso" }).waitFor();
  await page.emulateMedia({ colorScheme: "dark" });
  await shot(page, "about-dark");
  await page.setViewportSize({ width: 390, height: 844 });
  await shot(page, "phone");
  await isAccessible();
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.keyboard.press("ArrowUp");
  await dialog(page, "Espresso").waitFor();
  await page.keyboard.press("i");

  const download = page.waitForEvent("download");
  await page.keyboard.press("d");
  assert.match((await download).suggestedFilename(), /Espresso/);
  await page.keyboard.press("ArrowRight");
  await dialog(page, "Cups").waitFor();
  await page.keyboard.press("Delete");
  await dialog(page, "Table").waitFor();
  await until(canvas, "it is deleted", (graph) => titled(graph, "Cups") === undefined, token);
  await dialog(page, "Table").getByRole("button", { name: "Undo" }).click();
  await until(canvas, "it is back", (graph) => titled(graph, "Cups") !== undefined, token);
  await page.keyboard.press("ArrowLeft");
  await dialog(page, "Cups").waitFor();
  // An agent deletes it meanwhile.
  await apply(canvas, [{ type: "node.delete", nodeId: ids["Cups"] }], token);
  await dialog(page, "Table").waitFor();
  await page.keyboard.press("e");
  await dialog(page, "Table").waitFor({ state: "detached" });
  await page.getByRole("form", { name: /Make|Edit/ }).waitFor();
  await page.keyboard.press("Escape");
  // A short press of Space opens it, and another one closes it.
  await node(page, "Table").click();
  await page.keyboard.press(" ");
  await dialog(page, "Table").waitFor();
  await page.keyboard.press(" ");
  await dialog(page, "Table").waitFor({ state: "detached" });
  await page.locator('.react-flow__node.selected[aria-label*="Table"]').waitFor();
});

scene("two pictures are compared in three ways, and several in a grid, at one place and scale", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url, token, asset } = await board("Compared", ["First"]);
  const slots = await apply(canvas, ["Second", "Third", "Fourth"].map((title, index) => ({ type: "node.create", clientId: title, node: { type: "image", title, position: { x: (index + 1) * 380, y: 0 }, width: 340, height: 268 } })), token);
  await act(canvas, "color-grade", slots["Second"], asset, { preset: "warm" }, token);
  await act(canvas, "color-grade", slots["Third"], asset, { contrast: 30, saturation: -60 }, token);
  await act(canvas, "change-aspect-ratio", slots["Fourth"], asset, { ratio: "1:1" }, token);
  assert(ids["First"]);
  await openBoard(page, url, token);
  await page.keyboard.press("0");
  await node(page, "First").click({ position: { x: 20, y: 20 } });
  await node(page, "Second").click({ position: { x: 20, y: 20 }, modifiers: ["Shift"] });
  await page.getByRole("toolbar", { name: /^What to do with/ }).getByRole("button", { name: "Compare", exact: true }).click();
  const compare = dialog(page, /^Compare/);
  const slider = compare.getByRole("slider");
  await compare.locator("img").nth(1).waitFor();
  await shot(page, "slider");
  await isAccessible();
  await page.keyboard.press("ArrowRight");
  await becomes(() => slider.inputValue(), "52");
  await slider.focus();
  await page.keyboard.press("End");
  await becomes(() => slider.getAttribute("aria-valuetext"), "100 percent");
  const modes = () => compare.getByRole("radio", { checked: true }).evaluate((radio) => radio.parentElement?.textContent);
  await page.keyboard.press("m");
  await becomes(modes, "Side by side");
  const planes = () => compare.locator("[data-pane] img").evaluateAll((images) => [...new Set(images.map((image) => image.parentElement?.style.transform))].length);
  await page.keyboard.press("+");
  await becomes(planes, 1, "both at one place and scale");
  await shot(page, "side");
  await page.keyboard.press("m");
  await becomes(modes, "Onion skin");
  await compare.getByRole("slider", { name: "How much is seen of Second" }).waitFor();
  await isAccessible();
  await page.keyboard.press("x");
  await compare.getByRole("slider", { name: "How much is seen of First" }).waitFor();
  await compare.getByRole("button", { name: "Second", exact: true }).click();
  await page.keyboard.press("5");
  await page.keyboard.press("8");
  await until(canvas, "the one with the frame is marked", (graph) => tagsOf(graph, "Second").join() === "rating:5,label:green" && tagsOf(graph, "First").length === 0, token);
  await page.keyboard.press("Escape");
  await compare.waitFor({ state: "detached" });
  await becomes(() => page.locator(".react-flow__node.selected").count(), 2, "what was compared is selected again");

  await page.keyboard.press("Control+a");
  await page.getByRole("toolbar", { name: /^What to do with/ }).getByRole("button", { name: "Compare", exact: true }).click();
  await compare.locator("img").nth(3).waitFor();
  await becomes(modes, "Grid");
  await becomes(planes, 1);
  await page.keyboard.press("ArrowRight");
  await becomes(() => compare.getByRole("button", { name: "Second", exact: true }).getAttribute("aria-pressed"), "true");
  await shot(page, "grid");
  await isAccessible();
  await page.keyboard.press("a");
  await becomes(() => compare.getByRole("button", { name: "Fill the frame" }).getAttribute("aria-pressed"), "true");
  await page.keyboard.press("Delete");
  await becomes(() => compare.locator("[data-pane]").count(), 3);
  await page.keyboard.press("Enter");
  await dialog(page, "Third").waitFor();
  // In the strip, Alt and a click compare with the one that is shown.
  await dialog(page, "Third").getByRole("navigation").getByRole("button", { name: "First" }).click({ modifiers: ["Alt"] });
  await compare.getByRole("slider").waitFor();
});

scene("two people mark one picture at once, and both marks are there", async ({ page, guest, expect, isAccessible }) => {
  expect(NOBODY);
  const [owner, editor] = [await stranger(), await stranger()];
  const { canvas, url } = await makeBoard("Together", [], owner.token);
  // Who is later sends the mark once more.
  expect(`409 POST ${path(canvas, "/operations")}`);
  const { asset } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, PHOTO, owner.token);
  await apply(canvas, [{ type: "node.update", nodeId: asset.node, patch: { title: "Photo", metadata: { tags: ["mood", "rating:2"] } } }], owner.token);
  await admin("share", "--canvas", canvas.handle, "--with", editor.uid, "--role", "editor");
  const other = await guest();
  await openBoard(page, url, owner.token);
  await openBoard(other, url, editor.token);
  for (const one of [page, other]) {
    await node(one, "Photo").click();
    await one.keyboard.press("Enter");
    await dialog(one, "Photo").getByRole("button", { name: "2 stars" }).and(one.locator("[aria-pressed=true]")).waitFor();
  }
  await Promise.all([page.keyboard.press("4"), other.keyboard.press("f")]);
  await Promise.all([page.keyboard.press("6"), other.keyboard.press("9")]);
  const after = await until(canvas, "both are there", (graph) => ["mood", "favorite", "rating:4"].every((tag) => tagsOf(graph, "Photo").includes(tag)) && tagsOf(graph, "Photo").some((tag) => tag.startsWith("label:")), owner.token);
  assert.equal(tagsOf(after, "Photo").length, 4, "of stars and labels, there is one each");
  for (const one of [page, other]) {
    await becomes(() => dialog(one, "Photo").getByRole("button", { name: "4 stars" }).getAttribute("aria-pressed"), "true");
    await becomes(() => dialog(one, "Photo").getByRole("button", { name: "Favorite" }).getAttribute("aria-pressed"), "true");
  }
  await isAccessible();
  await page.keyboard.press("Escape");
  await page.locator('.react-flow__node[aria-label*="a favorite, 4 stars"]').waitFor();
  await shot(page, "marks");
  // On the board, all that are selected are marked from the bar.
  await page.getByRole("toolbar", { name: /^What to do with/ }).getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Mark" }).click();
  await page.getByRole("menuitem", { name: "No stars" }).click();
  await until(canvas, "the stars are gone", (graph) => !tagsOf(graph, "Photo").some((tag) => tag.startsWith("rating:")), owner.token);
});

scene("a filter shows what is marked, is in the address, and leaves out the rest", async ({ page, open, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url, token } = await board("Filtered", ["One", "Two", "Three", "Four", "Five", "Six"]);
  const mark = (title: string, ...tags: string[]) => ({ type: "node.update", nodeId: ids[title], patch: { metadata: { tags } } });
  await apply(canvas, [mark("One", "favorite", "rating:3"), mark("Three", "favorite", "rating:5", "label:red"), mark("Six", "rating:1")], token);
  await openBoard(page, url, token);
  await page.getByRole("button", { name: "Filter", exact: true }).waitFor();
  await page.keyboard.press("0");
  await page.getByRole("application", { name: "Board" }).focus();
  await page.keyboard.press("Shift+F");
  const row = page.getByRole("search", { name: "Filter" });
  await row.getByText("6 of 6").waitFor();
  await row.getByRole("button", { name: "Favorites" }).click();
  await row.getByText("2 of 6").waitFor();
  await page.waitForURL(/filter=favorite/);
  await becomes(() => page.locator(".react-flow__node.faint").count(), 4);
  await shot(page, "filter");
  await isAccessible();
  // The rectangle takes what matches alone, and so does Tab.
  const [first, last] = [await box(node(page, "One")), await box(node(page, "Four"))];
  await page.mouse.move(first.x - 12, first.y - 12);
  await page.mouse.down();
  await page.mouse.move(last.x + last.width + 6, last.y + last.height, { steps: 6 });
  await page.mouse.up();
  await becomes(() => page.locator(".react-flow__node.selected").count(), 2);
  await page.keyboard.press("Escape");
  const reached = new Set<string>();
  for (let step = 0; step < 8; step += 1) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => document.activeElement?.matches(".react-flow__node") && document.activeElement.getAttribute("aria-label"));
    if (name) reached.add(name.split(",")[0] ?? "");
  }
  assert.deepEqual([...reached], ["Image One", "Image Three"]);
  await row.getByLabel("Stars").selectOption("4");
  await row.getByText("1 of 6").waitFor();
  await row.getByRole("button", { name: "Select them" }).click();
  await page.locator('.react-flow__node.selected[aria-label*="Three"]').waitFor();

  const second = await open();
  await second.goto(page.url());
  await second.getByRole("search", { name: "Filter" }).getByText("1 of 6").waitFor();
  await becomes(() => second.getByRole("search").getByLabel("Stars").inputValue(), "4");
  await row.getByRole("button", { name: "End the filter" }).click();
  await page.waitForURL((to) => to.search === "");
  await becomes(() => page.locator(".react-flow__node.faint").count(), 0);
  await page.keyboard.press("Shift+F");
  await row.getByLabel("Text", { exact: true }).fill("fi");
  await row.getByText("1 of 6").waitFor();
  await page.keyboard.press("Escape");
  await row.waitFor({ state: "detached" });
  // On a phone, it leaves most of the window to the board.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole("application", { name: "Board" }).focus();
  await page.keyboard.press("Shift+F");
  assert((await box(row)).height <= 104);
  await row.getByLabel("No alternative text").scrollIntoViewIfNeeded();
  await row.getByLabel("No alternative text").check();
  await row.getByText("0 of 6").waitFor();
  await shot(page, "filter-phone");
  await isAccessible();
});

scene("a video plays in it, between the pictures beside it", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await board("Film", ["Before", "After"]);
  const made = await apply(canvas, [{ type: "node.create", clientId: "v", node: { type: "video", title: "Steam", position: { x: 200, y: 340 }, width: 480, height: 298 } }], token);
  await admin("credits", "grant", "--account", canvas.ownerUid, "--amount", "10");
  const { revision } = await read(canvas, token);
  await send("POST", "/videos/generate", { model: "animatic", prompt: "Steam rises", idempotencyKey: randomUUID(), durationSeconds: 1, resolution: "480p", canvasId: canvas.handle, baseRevision: revision, targetNodeId: made["v"] }, token);
  await until(canvas, "the video is there", (graph) => graph.nodes.some(({ type, asset }) => type === "video" && asset !== undefined), token);
  await openBoard(page, url, token);
  await node(page, "Before").click();
  await page.keyboard.press("Enter");
  await dialog(page, "Before").waitFor();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const look = dialog(page, "Steam");
  await look.locator("video").waitFor();
  await page.waitForFunction(() => (document.querySelector<HTMLVideoElement>("dialog video")?.currentTime ?? 0) > 0);
  await look.getByText(/3 of 3 · .* · MP4/).waitFor();
  await isAccessible();
  await page.keyboard.press("ArrowLeft");
  await dialog(page, "After").waitFor();
  await page.keyboard.press("Escape");
  await page.locator('.react-flow__node.selected[aria-label*="After"]').waitFor();
});
