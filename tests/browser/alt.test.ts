/** Every image and player has the alternative text of the one rule (gateway/console/src/alt.ts), wherever it is shown. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import type { Locator, Page } from "playwright-core";

import { node, openBoard, path, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, makeBoard, png, read, send, stranger, succeeded } from "./service.ts";
import { heading } from "./steps.ts";

/** What is said of each image and player in it. Images that are hidden are not named. */
const saidIn = (part: Locator) =>
  part.evaluate((part) =>
    [...part.querySelectorAll<HTMLElement>("img:not([aria-hidden=true]), video")].map((shown) => (shown instanceof HTMLImageElement ? shown.alt : shown.getAttribute("aria-label"))).toSorted(),
  );

/** Every image that is hidden is decorative, or stands in something that has a name of its own. */
async function hidesNothing(page: Page): Promise<void> {
  const unnamed = await page.locator('img[aria-hidden="true"]').evaluateAll((images) =>
    images
      .filter((image) => {
        const around = image.closest("button, a, li, [role=group], .react-flow__node");
        return !around || (around.getAttribute("aria-label") ?? around.textContent ?? "").trim() === "";
      })
      .map(({ outerHTML }) => outerHTML),
  );
  assert.deepEqual(unnamed, [], page.url());
}

scene("images and players have the same alternative text on the board, in Look and Compare, among pictures and in the queue", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { token, uid } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "20");
  const { canvas, url } = await makeBoard("Alt texts", [], token);
  const upload = async (width: number) => (await send<{ asset: { handle: string } }>("POST", "/assets", png(width, 60), token)).asset.handle;
  const place = (type: string, title: string, x: number, y: number, rest: object) => ({ type: "node.create", clientId: title.replace(".", "-"), node: { type, title, position: { x, y }, width: 240, height: 188, ...rest } });
  const [boots, photo, line] = [await upload(80), await upload(90), await upload(100)];
  const made = await apply(
    canvas,
    [
      place("image", "Boots", 0, 0, { asset: boots, metadata: { altText: "Red boots on snow" } }),
      place("image", "photo.png", 280, 0, { asset: photo }),
      place("image", "Line", 560, 0, { asset: line, metadata: { altText: "" } }),
      place("image", "image", 0, 240, {}),
      place("video", "Steam", 280, 240, { metadata: { altText: "Steam over a cup" } }),
      place("image", "Narrow", 560, 240, {}),
    ],
    token,
  );
  const start = async (of: string, target: object, rest: object) => {
    const { revision } = await read(canvas, token);
    return (await send<{ run: string }>("POST", of, { canvasId: canvas.handle, baseRevision: revision, idempotencyKey: randomUUID(), ...target, ...rest }, token)).run;
  };
  const { models } = await send<{ models: { handle: string; name: string; type: string }[] }>("GET", "/models?limit=100", undefined, token);
  const sketch = models.find(({ type }) => type === "image");
  assert(sketch, "the embedded runtime makes images");
  const image = await start("/images/generate", { targetNodeIds: [made["image"]] }, { model: sketch.handle, prompt: "a mug at dawn" });
  await succeeded(image, token);
  const action = await start("/actions/resize/runs", { targetNodeId: made["Narrow"] }, { inputs: [boots], params: { width: 40 } });
  await succeeded(action, token);
  await start("/videos/generate", { targetNodeId: made["Steam"] }, { model: "animatic", prompt: "Steam rises", durationSeconds: 1, resolution: "480p" });
  await until(canvas, "the video is there", ({ nodes }) => nodes.every(({ asset }) => asset !== undefined), token);
  await apply(canvas, [{ type: "node.update", nodeId: made["Narrow"], patch: { metadata: { altText: "Narrow boots" } } }], token);
  const all = ["Generated picture: a mug at dawn", "Narrow boots", "Picture without description", "Red boots on snow", "Steam over a cup"];

  await openBoard(page, url, token);
  const board = page.locator(".react-flow");
  await becomes(() => saidIn(board), all);
  await becomes(() => board.locator("img[aria-hidden=true]").count(), 1, "what is decorative");
  await page.getByRole("button", { name: "Play Steam" }).click();
  await becomes(() => board.locator("video").getAttribute("aria-label"), "Steam over a cup");
  await page.keyboard.press("Escape");
  await isAccessible();

  await node(page, "Boots").click();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  const frame = dialog.getByRole("group", { name: "Picture", exact: true });
  for (const said of [["Red boots on snow"], ["Picture without description"], [], ["Generated picture: a mug at dawn"], ["Steam over a cup"], ["Narrow boots"]]) {
    await becomes(() => saidIn(frame), said);
    await hidesNothing(page);
    await page.keyboard.press("ArrowRight");
  }
  await page.keyboard.press("Escape");

  await node(page, "Boots").click();
  await node(page, "Narrow").click({ modifiers: ["Shift"] });
  await page.getByRole("toolbar", { name: /^What to do with/ }).getByRole("button", { name: "Compare", exact: true }).click();
  await becomes(() => saidIn(dialog), ["Narrow boots", "Red boots on snow"]);
  await page.keyboard.press("Escape");

  await page.goto("/assets");
  await heading(page, "Pictures");
  await page.waitForFunction(() => document.querySelectorAll("main [role=gridcell] img").length >= 5);
  await becomes(() => saidIn(page.getByRole("main")), [], "the name of each stands below it");
  await hidesNothing(page);
  await page.getByRole("button", { name: /^Open Boots/ }).click();
  await becomes(() => saidIn(frame), ["Red boots on snow"]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: /^Open image/ }).click();
  await becomes(() => saidIn(frame), ["Generated picture: a mug at dawn"]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: /^Open Steam/ }).click();
  await becomes(() => saidIn(frame), ["Steam over a cup"]);
  await page.keyboard.press("Escape");

  await page.goto(`/runs?canvas=${encodeURIComponent(canvas.handle)}`);
  await heading(page, "Queue");
  const main = page.getByRole("main");
  const row = (name: string) => main.getByRole("listitem").filter({ has: page.getByRole("button", { name: new RegExp(`^${name}`, "i") }) });
  await becomes(() => saidIn(row("a mug")), ["Generated picture: a mug at dawn"]);
  await becomes(() => saidIn(row("Resize")), ["Resize"]);
  await hidesNothing(page);
  await row("Resize").getByRole("button", { name: /^Resize/ }).click();
  const outputs = page.getByRole("list", { name: "Outputs" });
  await becomes(() => saidIn(outputs), ["Narrow boots"]);
  await isAccessible();
  await outputs.getByRole("button", { name: "Look at output 1: Narrow boots" }).click();
  await becomes(() => saidIn(frame), ["Narrow boots"]);
  await page.keyboard.press("Escape");
  await row("Steam rises").getByRole("button", { name: /^Steam rises/i }).click();
  await becomes(() => row("Steam rises").locator("video").getAttribute("aria-label"), "Steam over a cup");
  // Without its node, a result is what was started.
  expect(`404 GET ${path(canvas, `/nodes/${encodeURIComponent(`node:${made["Narrow"]}`)}`)}`);
  await apply(canvas, [{ type: "node.delete", nodeId: made["Narrow"] }], token);
  await page.goto(`/runs?run=${encodeURIComponent(action)}`);
  await becomes(() => saidIn(outputs), ["Resize"]);
});
