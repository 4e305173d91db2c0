/** The Stage: crop, turn and text on the picture itself. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { env } from "node:process";

import type { Page } from "playwright-core";

import { box, drag, middle, node, openBoard, path, saved, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { apply, type Canvas, makeBoard, type Node, png, read, send, stranger } from "./service.ts";

const stage = (page: Page) => page.locator("[data-on-stage]");
const handle = (page: Page, name: string) => stage(page).locator(`[data-handle="${name}"]`);
const rectangle = (page: Page) => stage(page).locator("[data-rectangle]");
const spin = (page: Page, name: string) => stage(page).getByRole("spinbutton", { name, exact: true });
const applyButton = (page: Page) => stage(page).getByRole("button", { name: "Apply", exact: true });
const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", `stage-${name}.png`) });
const values = async (page: Page) => Object.fromEntries(await Promise.all(["Left", "Top", "Width", "Height"].map(async (name) => [name, Number(await spin(page, name).inputValue())] as const)));

interface Made {
  actionId: string;
  params: Record<string, unknown>;
  steps?: { actionId: string; params: Record<string, unknown> }[];
}

/** A board with a photo of 400 × 300 pixels. */
async function photo(title: string) {
  const { token } = await stranger();
  const { canvas, url } = await makeBoard(title, [], token);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(400, 300), token);
  const [source] = (await read(canvas, token)).nodes;
  assert(source);
  await apply(canvas, [{ type: "node.update", nodeId: source.id, patch: { title: "Photo" } }], token);
  return { canvas, url, token, source: source.id };
}

const pictures = ({ nodes }: { nodes: Node[] }) => nodes.filter(({ asset }) => asset !== undefined);
const madeBy = (node: Node | undefined) => node?.metadata.provenance as unknown as Made;

/** What the newest picture was made with, once there are so many. */
async function made(canvas: Canvas, count: number, token: string): Promise<{ node: Node; made: Made }> {
  const graph = await until(canvas, `there are ${count} pictures`, (graph) => pictures(graph).length === count && graph.nodes.length === count, token);
  const found = graph.nodes.at(-1) as Node;
  return { node: found, made: madeBy(found) };
}

scene("a picture is cropped with a ratio in four interactions, and with handles to the pixel that the fields show", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token, source } = await photo("Crop");
  expect(`409 POST ${path(canvas, "/operations")}`);
  await page.setViewportSize({ width: 1440, height: 900 });
  await openBoard(page, url, token);
  await node(page, "Photo").click();
  await page.keyboard.press("k");
  await stage(page).getByText("400 × 300 px · 4:3").waitFor();
  await stage(page).getByText("4:5", { exact: true }).click();
  await becomes(() => values(page), { Left: 80, Top: 0, Width: 240, Height: 300 });
  await shot(page, "crop-light");
  await page.emulateMedia({ colorScheme: "dark" });
  await shot(page, "crop-dark");
  await isAccessible();
  await applyButton(page).click();
  const first = await made(canvas, 2, token);
  assert.equal(first.made.actionId, "action:crop");
  const { x, y, width, height, degrees } = first.made.params;
  assert.deepEqual({ x, y, width, height, degrees: degrees ?? 0 }, { x: 80, y: 0, width: 240, height: 300, degrees: 0 });
  assert((await read(canvas, token)).connections.some(({ fromNodeId, toNodeId }) => fromNodeId === source && toNodeId === first.node.id));

  await page.keyboard.press("Escape");
  await node(page, "Photo").click();
  await page.getByRole("toolbar", { name: /^What to do with/ }).getByRole("button", { name: "Crop", exact: true }).click();
  await becomes(() => values(page), { Left: 0, Top: 0, Width: 400, Height: 300 });
  assert.equal(await applyButton(page).getAttribute("aria-disabled"), "true", "nothing is changed");
  // Every handle is a field.
  for (const [name, way] of [["-1 -1", [40, 30]], ["1 1", [-50, -40]], ["-1 0", [20, 0]], ["1 0", [-20, 0]], ["0 -1", [0, 20]], ["0 1", [0, -20]], ["1 -1", [-10, 10]], ["-1 1", [10, -10]]] as const) {
    const before = await values(page);
    const from = await middle(handle(page, name));
    await page.keyboard.down("Control");
    await drag(page, from, { x: from.x + way[0], y: from.y + way[1] });
    await page.keyboard.up("Control");
    assert.notDeepEqual(await values(page), before, name);
  }
  const inside = await middle(rectangle(page));
  await drag(page, inside, { x: inside.x + 30, y: inside.y - 20 });
  // Escape ends a drag, and nothing else.
  const kept = await values(page);
  await page.mouse.move(inside.x + 30, inside.y - 20);
  await page.mouse.down();
  await page.mouse.move(inside.x - 40, inside.y + 40, { steps: 4 });
  await shot(page, "crop-drag");
  await page.keyboard.press("Escape");
  await page.mouse.up();
  assert.deepEqual(await values(page), kept);
  await page.keyboard.press("Control+z");
  assert.notDeepEqual(await values(page), kept);
  await page.keyboard.press("Control+y");
  assert.deepEqual(await values(page), kept);
  // The panel has the same numbers.
  await stage(page).getByRole("button", { name: "All settings" }).click();
  const panel = page.getByRole("complementary", { name: "Details" });
  assert.equal(await panel.locator("form").getByLabel("Width", { exact: true }).inputValue(), String(kept["Width"]));
  await panel.locator("form").getByLabel("Width", { exact: true }).fill("111");
  await becomes(() => spin(page, "Width").inputValue(), "111");
  await panel.getByRole("button", { name: /^Close/ }).click();
  // What was entered is there again.
  await stage(page).getByRole("button", { name: "Cancel" }).click();
  await becomes(() => stage(page).count(), 0);
  await node(page, "Photo").click();
  await page.keyboard.press("k");
  await becomes(() => spin(page, "Width").inputValue(), "111");
  const last = await values(page);
  await page.keyboard.press("Enter");
  const second = await made(canvas, 3, token);
  assert.deepEqual([second.made.params["x"], second.made.params["y"], second.made.params["width"], second.made.params["height"]], [last["Left"], last["Top"], last["Width"], last["Height"]]);
});

scene("a picture is cropped with keys alone, and what they do is read out", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await photo("Keys");
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url, token);
  await page.getByRole("application", { name: "Board" }).focus();
  await page.keyboard.press("Tab");
  await becomes(() => page.evaluate(() => document.activeElement?.getAttribute("aria-label")?.includes("Photo")), true);
  await page.keyboard.press("k");
  await becomes(() => rectangle(page).evaluate((element) => element === document.activeElement), true);
  for (let step = 0; step < 10; step += 1) await page.keyboard.press("Alt+Shift+ArrowLeft");
  await page.keyboard.press("Alt+ArrowUp");
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("ArrowRight");
  await becomes(() => values(page), { Left: 11, Top: 0, Width: 300, Height: 299 });
  await stage(page).getByRole("status").getByText("Crop 300 by 299 at 11, 0").waitFor({ state: "attached" });
  await page.keyboard.press("x");
  await becomes(async () => (await values(page))["Width"], 299);
  await spin(page, "Left").focus();
  await page.keyboard.press("Shift+ArrowUp");
  const before = await values(page);
  await isAccessible();
  await page.keyboard.press("Enter");
  const { made: result } = await made(canvas, 2, token);
  assert.equal(result.params["x"], before["Left"]);
  await page.keyboard.press("Escape");
  await becomes(() => stage(page).count(), 0);
});

scene("a picture is turned, mirrored and straightened, alone and before a crop", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await photo("Turn");
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url, token);
  const open = async () => {
    await page.keyboard.press("Escape");
    await node(page, "Photo").click({ position: { x: 40, y: 40 } });
    await page.keyboard.press("k");
    await stage(page).getByRole("button", { name: "Turn right" }).waitFor();
  };
  await open();
  await stage(page).getByRole("button", { name: "Turn right" }).click();
  await stage(page).getByRole("button", { name: "Mirror" }).click();
  await stage(page).getByText("300 × 400 px").waitFor();
  await applyButton(page).click();
  const alone = await made(canvas, 2, token);
  assert.equal(alone.made.actionId, "action:rotate");
  assert.deepEqual([alone.made.params["degrees"], alone.made.params["flip"]], [270, "horizontal"]);

  await open();
  const slider = stage(page).getByRole("slider", { name: "Straighten, in degrees" });
  await slider.focus();
  for (let step = 0; step < 23; step += 1) await page.keyboard.press("ArrowRight");
  await becomes(() => slider.inputValue(), "2.3");
  await shot(page, "turn");
  await isAccessible();
  await applyButton(page).click();
  const level = await made(canvas, 3, token);
  assert.equal(level.made.actionId, "action:crop");
  assert.equal(level.made.params["degrees"], 2.3);

  await open();
  await stage(page).getByRole("button", { name: "Turn left" }).click();
  await stage(page).getByText("1:1", { exact: true }).click();
  await applyButton(page).click();
  const both = await made(canvas, 4, token);
  assert.deepEqual(both.made.steps?.map(({ actionId }) => actionId), ["action:rotate", "action:crop"]);
  const { asset } = await send<{ asset: { width: number; height: number } }>("GET", `/assets/${both.node.asset}`, undefined, token);
  assert.deepEqual([asset.width, asset.height], [300, 300]);
});

scene("a finger crops a picture on a phone", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await photo("Touch");
  expect(`409 POST ${path(canvas, "/operations")}`);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Emulation.setTouchEmulationEnabled", { enabled: true });
  await page.setViewportSize({ width: 390, height: 844 });
  await openBoard(page, url, token);
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...touchPoints: { x: number; y: number }[]) => devtools.send("Input.dispatchTouchEvent", { type, touchPoints });
  await node(page, "Photo").click();
  await page.getByRole("toolbar", { name: /^What to do with/ }).getByRole("button", { name: "Crop", exact: true }).click();
  await rectangle(page).waitFor();
  const from = await middle(handle(page, "1 1"));
  await touch("touchStart", from);
  for (const step of [10, 40, 80]) await touch("touchMove", { x: from.x - step, y: from.y - step });
  await touch("touchEnd");
  const now = await values(page);
  assert(now["Width"] !== undefined && now["Width"] < 360 && now["Left"] === 0, JSON.stringify(now));
  await shot(page, "touch");
  await isAccessible();
  await applyButton(page).click();
  const { made: result } = await made(canvas, 2, token);
  assert.equal(result.params["width"], now["Width"]);
});

scene("a text is written on a picture, edited later, and takes the place of the one before", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token, source } = await photo("Text");
  expect(`409 POST ${path(canvas, "/operations")}`);
  await page.setViewportSize({ width: 1440, height: 900 });
  await openBoard(page, url, token);
  await node(page, "Photo").click();
  await page.keyboard.press("Shift+T");
  const text = stage(page).locator("[data-stage-text]");
  await text.waitFor();
  await page.keyboard.type("Summer in the city");
  await becomes(() => text.textContent(), "Summer in the city");
  await becomes(() => page.evaluate(() => document.fonts.check('bold 20px "Text sans"')), true, "in the font of the service");
  const start = await middle(text);
  const frame = await box(stage(page).locator("img"));
  await drag(page, start, { x: start.x, y: frame.y + 70 });
  await shot(page, "text");
  await isAccessible();
  await stage(page).getByRole("textbox", { name: "Text" }).focus();
  await page.keyboard.press("Enter");
  const first = await made(canvas, 2, token);
  assert.equal(first.made.actionId, "action:add-text-to-image");
  assert.deepEqual([first.made.params["text"], first.made.params["anchor"], first.made.params["offsetX"]], ["Summer in the city", "top", 0]);
  assert(Number(first.made.params["offsetY"]) > 0, String(first.made.params["offsetY"]));

  // Something leads on from it.
  await apply(canvas, [{ type: "node.update", nodeId: first.node.id, patch: { title: "Poster" } }], token);
  await node(page, "Poster").click();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Edit the text" }).click();
  await becomes(() => stage(page).getByRole("textbox", { name: "Text" }).inputValue(), "Summer in the city");
  assert(await stage(page).getByRole("checkbox", { name: "Replace the image" }).isChecked());
  await stage(page).getByRole("textbox", { name: "Text" }).fill("Autumn in the city");
  await shot(page, "rework");
  await page.keyboard.press("Enter");
  const replaced = await until(canvas, "the new one has taken the place", (graph) => {
    const poster = titled(graph, "Poster");
    return graph.nodes.length === 2 && poster !== undefined && poster.id !== first.node.id && poster.asset !== undefined;
  }, token);
  const poster = titled(replaced, "Poster") as Node;
  assert.deepEqual(poster.position, first.node.position);
  assert.equal(madeBy(poster).params["text"], "Autumn in the city");
  assert.equal(replaced.connections.filter(({ fromNodeId, toNodeId }) => fromNodeId === source && toNodeId === poster.id).length, 1);
  await saved(page);
  await page.keyboard.press("Control+z");
  await until(canvas, "the one before is there again", (graph) => graph.nodes.some(({ id }) => id === first.node.id), token);
});

scene("what a picture was made from can be gone, or on no node, and others can delete what is worked on", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token, source } = await photo("Gone");
  expect(`409 POST ${path(canvas, "/operations")}`);
  const before = await read(canvas, token);
  const asset = before.nodes[0]?.asset;
  const run = { canvasId: canvas.handle, baseRevision: before.revision, idempotencyKey: crypto.randomUUID(), inputs: [asset], params: { width: 300, height: 300, x: 50, y: 0 }, place: { title: "Square" } };
  await send("POST", "/actions/crop/runs", run, token);
  const square = (await made(canvas, 2, token)).node;
  await openBoard(page, url, token);
  await node(page, "Photo").click();
  await page.keyboard.press("k");
  await stage(page).getByText("9:16", { exact: true }).click();
  await page.keyboard.press("Enter");
  const tall = (await made(canvas, 3, token)).node;
  await apply(canvas, [{ type: "node.update", nodeId: tall.id, patch: { title: "Tall" } }, { type: "node.delete", nodeId: source }], token);
  await becomes(() => page.locator(".react-flow__node").count(), 2);
  const edit = async (title: string) => {
    await page.keyboard.press("Escape");
    await page.keyboard.press("0");
    await node(page, title).click({ position: { x: 30, y: 30 } });
    await page.keyboard.press("Shift+F10");
    await page.getByRole("menuitem", { name: "Edit the crop" }).click();
  };
  // What an image of a node was made from is known by the node.
  await edit("Tall");
  await stage(page).getByText("The image that this one was made from is gone.").waitFor();
  assert.equal(await applyButton(page).getAttribute("aria-disabled"), "true");
  await isAccessible();
  // An image that no node shows is still there.
  await page.keyboard.press("Escape");
  await becomes(() => stage(page).count(), 0);
  await edit("Square");
  await becomes(() => values(page), { Left: 50, Top: 0, Width: 300, Height: 300 });
  await stage(page).getByText("2:3", { exact: true }).click();
  await page.keyboard.press("Enter");
  const next = await until(canvas, "it has taken the place", ({ nodes }) => nodes.length === 2 && nodes.every(({ id, asset }) => id !== square.id && asset !== undefined), token);
  const last = titled(next, "Square") as Node;
  assert.equal(madeBy(last).params["width"], 200);
  await edit("Square");
  await rectangle(page).waitFor();
  await apply(canvas, [{ type: "node.delete", nodeId: last.id }], token);
  await page.getByText("The image that you worked on is deleted.").waitFor();
  assert.equal(await stage(page).count(), 0);
});

scene("a held key and the bar show what a picture was made from in its place", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token, source } = await photo("Before");
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url, token);
  await node(page, "Photo").click();
  await page.keyboard.press("k");
  await stage(page).getByText("1:1", { exact: true }).click();
  await page.keyboard.press("Enter");
  const first = await made(canvas, 2, token);
  await apply(canvas, [{ type: "node.update", nodeId: first.node.id, patch: { title: "Square" } }], token);
  const image = node(page, "Square").locator("img");
  const { nodes } = await read(canvas, token);
  const original = nodes.find(({ id }) => id === source)?.asset?.split(":").at(-1) ?? "";
  await node(page, "Square").click();
  const shows = async () => (await image.getAttribute("src"))?.includes(original);
  await becomes(shows, false);
  await page.keyboard.down("q");
  await becomes(shows, true);
  await node(page, "Square").getByText("Before", { exact: true }).waitFor();
  await shot(page, "before");
  await page.keyboard.up("q");
  await becomes(shows, false);
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Before" }).click();
  await becomes(shows, true);
  await isAccessible();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "After" }).click();
  await becomes(shows, false);
});

scene("colors are changed on the picture, and are those of the result", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await photo("Colors");
  expect(`409 POST ${path(canvas, "/operations")}`);
  await page.setViewportSize({ width: 1440, height: 900 });
  await openBoard(page, url, token);
  await node(page, "Photo").click();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Colors" }).click();
  const slider = (name: string) => stage(page).getByRole("slider", { name });
  await slider("Exposure").fill("0.5");
  await slider("Contrast").fill("20");
  await slider("Saturation").fill("-40");
  await slider("Temperature").fill("30");
  await stage(page).getByLabel("Preset").selectOption("faded");
  /** The color at a pixel of the picture, as it is shown on the Stage. */
  const shown = () =>
    stage(page).locator("canvas").evaluate((canvas: HTMLCanvasElement) => {
      const pixel = new OffscreenCanvas(1, 1).getContext("2d") as OffscreenCanvasRenderingContext2D;
      pixel.drawImage(canvas, -50, -20);
      return [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3);
    });
  const still = async () => {
    const before = String(await shown());
    await page.waitForTimeout(200);
    return before === String(await shown());
  };
  await becomes(still, true);
  const colors = await shown();
  assert.notDeepEqual(colors, [200, 80, 128]);
  await shot(page, "colors");
  await isAccessible();
  await applyButton(page).click();
  const first = await made(canvas, 2, token);
  assert.equal(first.made.actionId, "action:color-grade");
  assert.deepEqual([first.made.params["exposure"], first.made.params["preset"]], [0.5, "faded"]);
  const file = await page.evaluate(async (asset) => {
    const response = await fetch(`/console/api/canvas-agent/v1/assets/${asset}/content`);
    const image = await createImageBitmap(await response.blob());
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d") as OffscreenCanvasRenderingContext2D;
    context.drawImage(image, 0, 0);
    return [...context.getImageData(50, 20, 1, 1).data].slice(0, 3);
  }, encodeURIComponent(first.node.asset ?? ""));
  assert(file.every((sample, at) => Math.abs(sample - (colors[at] ?? 0)) <= 2), `${file} is not ${colors}`);
});
