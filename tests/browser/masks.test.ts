/** Edits within a mask that is painted on the Stage. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { env } from "node:process";

import type { Page } from "playwright-core";

import { box, drag, node, openBoard, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, makeBoard, png, read, send, stranger } from "./service.ts";

const stage = (page: Page) => page.locator("[data-on-stage=mask]");
const paper = (page: Page) => stage(page).locator("[data-paper]");
const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", `mask-${name}.png`) });

/** A board with a photo of 400 × 300 pixels, of an account with credit. */
async function photo(title: string) {
  const { uid, token } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "10");
  const { canvas, url } = await makeBoard(title, [], token);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(400, 300), token);
  const [source] = (await read(canvas, token)).nodes;
  assert(source);
  await apply(canvas, [{ type: "node.update", nodeId: source.id, patch: { title: "Photo" } }], token);
  return { canvas, url, token, source };
}

/** Where a share of the picture is on the screen. */
async function places(page: Page) {
  const { x, y, width, height } = await box(paper(page));
  return (across: number, down: number) => ({ x: x + width * across, y: y + height * down });
}

/** Whether the pixels of the picture are painted, row by row. */
const mask = (page: Page) =>
  paper(page).evaluate((paper: HTMLCanvasElement) => {
    const { width, height } = paper;
    const copy = new OffscreenCanvas(width, height).getContext("2d") as OffscreenCanvasRenderingContext2D;
    copy.drawImage(paper, 0, 0);
    const { data } = copy.getImageData(0, 0, width, height);
    return Array.from({ length: height }, (_, y) => Array.from({ length: width }, (_, x) => ((data[(y * width + x) * 4 + 3] ?? 0) > 127 ? "#" : " ")).join(""));
  });

/** Whether the picture is painted at these shares of it. */
async function painted(page: Page, ...at: [number, number][]): Promise<boolean[]> {
  const rows = await mask(page);
  return at.map(([x, y]) => rows[Math.floor(y * 300)]?.[Math.floor(x * 400)] === "#");
}

/** How many pixels are painted along the line down through this share of the picture. */
const height = async (page: Page, across: number) => (await mask(page)).filter((row) => row[Math.floor(across * 400)] === "#").length;

scene("what is painted over an image is all that an edit changes", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token, source } = await photo("Masks");
  await page.setViewportSize({ width: 1440, height: 900 });
  await openBoard(page, url, token);
  await node(page, "Photo").click();
  await page.keyboard.press("b");
  await paper(page).waitFor();
  const make = stage(page).getByRole("button", { name: "Make · 1 credit" });
  assert(await make.isDisabled(), "nothing is painted");
  await stage(page).getByText("Paint what may change first.").waitFor();
  const at = await places(page);
  await stage(page).getByText("Rectangle", { exact: true }).click();
  await drag(page, at(0.1, 0.1), at(0.9, 0.4));
  await stage(page).getByText("24 % may change").waitFor();
  await stage(page).getByText("Eraser", { exact: true }).click();
  await drag(page, at(0.1, 0.1), at(0.2, 0.1));
  await stage(page).getByText("Brush", { exact: true }).click();
  await drag(page, at(0.3, 0.6), at(0.6, 0.65));
  assert.deepEqual(await painted(page, [0.15, 0.1], [0.5, 0.2], [0.45, 0.62], [0.5, 0.9]), [false, true, true, false]);
  // Escape drops a stroke, and nothing else.
  const begin = at(0.3, 0.9);
  await page.mouse.move(begin.x, begin.y);
  await page.mouse.down();
  await page.mouse.move(begin.x + 80, begin.y, { steps: 4 });
  assert.deepEqual(await painted(page, [0.3, 0.9]), [true]);
  await page.keyboard.press("Escape");
  await page.mouse.up();
  assert.deepEqual(await painted(page, [0.3, 0.9], [0.5, 0.2]), [false, true]);
  await stage(page).getByRole("button", { name: "Invert" }).click();
  await becomes(() => painted(page, [0.15, 0.1], [0.5, 0.2], [0.5, 0.9]), [true, false, true]);
  await page.keyboard.press("Control+z");
  await becomes(() => painted(page, [0.15, 0.1], [0.5, 0.2], [0.5, 0.9]), [false, true, false]);
  const prompt = stage(page).getByRole("textbox", { name: "Prompt" });
  await prompt.fill("a starry sky");
  await stage(page).getByLabel("Feather").fill("4");
  await shot(page, "light");
  await isAccessible();
  await page.emulateMedia({ colorScheme: "dark" });
  await shot(page, "dark");
  await isAccessible();
  await page.keyboard.press("Escape");
  await becomes(() => stage(page).count(), 0);
  // What was painted and written is there again, and an edit without the Stage does not use it.
  await page.keyboard.press("b");
  await becomes(() => painted(page, [0.15, 0.1], [0.5, 0.2], [0.5, 0.9]), [false, true, false]);
  assert.equal(await prompt.inputValue(), "a starry sky");
  await page.keyboard.down("q");
  await becomes(() => paper(page).isVisible(), false);
  await page.keyboard.up("q");
  await becomes(() => paper(page).isVisible(), true);

  const uploads: string[] = [];
  const edits: Record<string, unknown>[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().includes("/assets?")) uploads.push(request.url());
    if (request.method() === "POST" && request.url().endsWith("/images/edit")) edits.push(request.postDataJSON() as Record<string, unknown>);
  });
  await make.click();
  await becomes(() => stage(page).count(), 0);
  const made = await until(canvas, "the edit is made", ({ nodes }) => nodes.filter(({ asset }) => asset !== undefined).length === 2, token);
  assert.equal(made.nodes.length, 2, "no node shows the mask");
  assert.ok(uploads.length === 1 && uploads[0]?.includes("node=none"), String(uploads));
  assert.deepEqual([edits[0]?.["source"], edits[0]?.["maskFeather"], edits[0]?.["maskComposite"]], [`node:${source.id}`, 4, true]);
  const result = made.nodes.find(({ id }) => id !== source.id);
  assert.match((result?.metadata.provenance as { mask?: string } | undefined)?.mask ?? "", /^asset:/);
  const { runs } = await send<{ runs: { id: string }[] }>("GET", "/runs", undefined, token);
  const job = await send<{ images: { masked: boolean; width: number; height: number }[] }>("GET", `/jobs/${runs[0]?.id.replace("run:", "job:")}`, undefined, token);
  assert.deepEqual(job.images.map(({ masked, width, height }) => ({ masked, width, height })), [{ masked: true, width: 400, height: 300 }]);
  // Outside of what was painted, the pixels are those of the source.
  const pixels = await page.evaluate(async (asset) => {
    const image = await createImageBitmap(await (await fetch(`/console/api/canvas-agent/v1/assets/${asset}/content`)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d", { willReadFrequently: true }) as OffscreenCanvasRenderingContext2D;
    context.drawImage(image, 0, 0);
    return ([[200, 270], [60, 30], [200, 60]] as const).map(([x, y]) => [...context.getImageData(x, y, 1, 1).data].slice(0, 3).join());
  }, encodeURIComponent(result?.asset ?? ""));
  // Those of the picture grow by 4 across and down.
  assert.deepEqual([pixels[0], pixels[1]], ["32,56,128", "240,120,128"]);
  assert.notEqual(pixels[2], "32,240,128");
});

scene("a mask is painted with keys, and how much of the image may change is read out", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { url, token } = await photo("Mask keys");
  await openBoard(page, url, token);
  await node(page, "Photo").click();
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Make" });
  await panel.getByLabel("What to make").selectOption("edit");
  await panel.getByRole("button", { name: "Paint what may change" }).click();
  const plane = stage(page).getByRole("application");
  await becomes(() => plane.evaluate((element) => element === document.activeElement), true);
  await page.keyboard.down(" ");
  for (let step = 0; step < 20; step += 1) await page.keyboard.press("ArrowRight");
  await page.keyboard.up(" ");
  await page.keyboard.press("Shift+ArrowDown");
  await page.keyboard.press("Shift+ArrowDown");
  assert.deepEqual(await painted(page, [0.5, 0.5], [0.7, 0.5], [0.4, 0.5], [0.7, 0.62]), [true, true, false, false]);
  await stage(page).getByRole("status").getByText(/^2\.\d % of the image may change$/).waitFor({ state: "attached" });
  const before = await height(page, 0.6);
  await page.keyboard.press("x");
  for (let step = 0; step < 4; step += 1) await page.keyboard.press(",");
  await page.keyboard.press("Shift+ArrowUp");
  await page.keyboard.press("Shift+ArrowUp");
  await isAccessible();
  assert((await height(page, 0.6)) === before, "the brush has only moved");
  await page.keyboard.press(" ");
  await becomes(async () => (await stage(page).getByRole("radio", { name: "Eraser" }).isChecked()) && (await height(page, 0.6)) <= before, true);
  await page.keyboard.press("Control+z");
  await page.keyboard.press("Control+z");
  await becomes(() => painted(page, [0.5, 0.5]), [false]);
  await page.keyboard.press("Control+y");
  await becomes(() => painted(page, [0.5, 0.5]), [true]);
  // The form is in the panel then, and starts with the mask.
  assert.equal(await stage(page).getByRole("textbox", { name: "Prompt" }).count(), 0);
  await panel.getByRole("textbox", { name: "Prompt" }).fill("fog");
  const upload = page.waitForRequest((request) => request.url().includes("node=none"));
  await panel.getByRole("button", { name: "Make · 1 credit" }).click();
  await upload;
  await becomes(() => stage(page).count(), 0);
});

scene("a pen paints as wide as it presses, and the palm paints nothing", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { url, token } = await photo("Pen");
  const devtools = await page.context().newCDPSession(page);
  await page.setViewportSize({ width: 390, height: 844 });
  await openBoard(page, url, token);
  await node(page, "Photo").click();
  await page.keyboard.press("b");
  await paper(page).waitFor();
  const at = await places(page);
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...touchPoints: { x: number; y: number }[]) => devtools.send("Input.dispatchTouchEvent", { type, touchPoints });
  const finger = async (down: number) => {
    await touch("touchStart", at(0.2, down));
    for (const across of [0.4, 0.6, 0.8]) await touch("touchMove", at(across, down));
    await touch("touchEnd");
  };
  await finger(0.2);
  await becomes(() => painted(page, [0.5, 0.2]), [true]);
  // A second finger ends the stroke of the first, and zooms.
  await touch("touchStart", at(0.2, 0.4));
  await touch("touchMove", at(0.4, 0.4));
  await touch("touchStart", at(0.4, 0.4), at(0.6, 0.4));
  await touch("touchMove", at(0.8, 0.4), at(0.6, 0.5));
  await touch("touchEnd");
  await becomes(() => painted(page, [0.3, 0.4], [0.7, 0.4], [0.5, 0.2]), [false, false, true]);
  await stage(page).getByTitle(/^Show it whole/).click();
  await stage(page).getByRole("button", { name: "Clear" }).click();
  const pen = async (type: "mousePressed" | "mouseMoved" | "mouseReleased", across: number, force: number) => {
    const { x, y } = at(across, 0.6);
    await devtools.send("Input.dispatchMouseEvent", { type, x, y, button: "left", buttons: type === "mouseReleased" ? 0 : 1, clickCount: 1, pointerType: "pen", force });
  };
  await pen("mousePressed", 0.1, 0.2);
  for (const across of [0.2, 0.3, 0.4]) await pen("mouseMoved", across, 0.2);
  for (const across of [0.5, 0.6, 0.7, 0.8]) await pen("mouseMoved", across, 0.9);
  await pen("mouseReleased", 0.8, 0);
  await becomes(() => painted(page, [0.3, 0.6], [0.7, 0.6]), [true, true]);
  const [light, firm] = [await height(page, 0.25), await height(page, 0.7)];
  assert(light >= 3 && firm > 3 * light && firm <= 24, `${light} and ${firm} pixels`);
  await finger(0.3);
  await page.waitForTimeout(200);
  assert.deepEqual(await painted(page, [0.5, 0.3]), [false]);
  await shot(page, "phone");
  await isAccessible();
});
