/** Draws the images of the sample campaign, and takes pictures of the templates that a new canvas can begin with, in light and in dark. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Page } from "playwright-core";

import { SAMPLE, TEMPLATES } from "../../gateway/console/src/screens/templates.ts";
import { draw, IMAGES } from "./art.ts";
import { launch } from "./chromium.ts";
import { admin, apply, BASE_URL, type Canvas, read, send, succeeded } from "./service.ts";

const SAMPLES = join(import.meta.dirname, "../../gateway/console/src/samples");
const MOST_IMAGE = 150_000;
const MOST_PICTURE = 60_000;
const WIDTH = 640;
/** What the sample calls the images of the studio. */
const NAMES: Record<string, string> = {
  "two-cups": "Two cups at the window",
  bowls: "Bowls, oat and slate",
  vase: "Vase with an olive branch",
  carafe: "Carafe and cup",
  glazes: "Glaze tests, kiln 14",
  table: "Table for two",
};

/** The sharpest JPEG of an image that is small enough. */
async function jpeg(page: Page, image: Uint8Array, type: string, most: number): Promise<Uint8Array<ArrayBuffer>> {
  await page.setContent(`<style>body{margin:0}img{display:block}</style><img src="data:${type};base64,${Buffer.from(image).toString("base64")}">`);
  const size = await page.locator("img").evaluate(async (image: HTMLImageElement) => (await image.decode(), { width: image.naturalWidth, height: image.naturalHeight }));
  await page.setViewportSize(size);
  for (let quality = 88; ; quality -= 4) {
    const file = new Uint8Array(await page.screenshot({ type: "jpeg", quality }));
    if (file.length <= most) return file;
    assert(quality > 40, "the image is too large");
  }
}

const browser = await launch();
const page = await browser.newPage();
const drawn = await draw(browser, IMAGES);
const uid = `samples-${randomUUID().slice(0, 8)}`;
await admin("account", "create", "--email", `${uid}@example.com`, "--uid", uid, "--credits", "500");
const { token } = await admin<{ token: string }>("token", "create", "--account", uid, "--label", "samples", "--scopes", "all");

const assets: Record<string, string> = {};
for (const [name, title] of Object.entries(NAMES)) {
  const file = await jpeg(page, drawn[title] ?? assert.fail(title), "image/jpeg", MOST_IMAGE);
  writeFileSync(join(SAMPLES, `${name}.jpg`), file);
  assets[name] = (await send<{ asset: { handle: string } }>("POST", "/assets", file, token)).asset.handle;
}

/** A drawing of a canvas, once its images are in it. */
async function rendered(canvas: Canvas, theme: string): Promise<Uint8Array> {
  for (;;) {
    const response = await fetch(`${BASE_URL}/api/canvas-agent/v1/canvases/${canvas.handle}/render?width=${WIDTH}&theme=${theme}`, { headers: { Authorization: `Bearer ${token}`, Accept: "image/png" } });
    assert(response.ok || response.status === 429 || response.status === 503, `${response.status}`);
    if (response.ok && response.headers.get("etag")) return new Uint8Array(await response.arrayBuffer());
    await new Promise((resume) => setTimeout(resume, 500));
  }
}

async function take(canvas: Canvas, name: string): Promise<void> {
  for (const theme of ["light", "dark"]) writeFileSync(join(SAMPLES, `${name}-${theme}.jpg`), await jpeg(page, await rendered(canvas, theme), "image/png", MOST_PICTURE));
}

for (const { id, title, operations, actions = [] } of [SAMPLE, ...TEMPLATES]) {
  const { canvas } = await send<{ canvas: Canvas }>("POST", "/canvases", { title }, token);
  const ids = await apply(canvas, operations((name) => assets[name] ?? assert.fail(name)), token);
  for (const { action, params, from, into } of actions) {
    const { revision } = await read(canvas, token);
    const body = { canvasId: canvas.handle, baseRevision: revision, idempotencyKey: randomUUID(), inputs: [assets[from]], targetNodeId: ids[into], fit: true, params };
    await succeeded((await send<{ run: string }>("POST", `/actions/${action}/runs`, body, token)).run, token);
  }
  await take(canvas, id);
}
// What each Recipe of the catalog makes, by the draft models
const BRIEF = "A cup of dark clay with a brick glaze, for the first coffee of the day. Warm side light, calm and plain.";
interface Recipe {
  id: string;
  inputs: { key: string; nodeType: string }[];
}
const { recipes } = await send<{ recipes: Recipe[] }>("GET", "/recipes?visibility=approved&limit=100", undefined, token);
for (const { id, inputs } of recipes) {
  const { canvas } = await send<{ canvas: Canvas }>("POST", "/canvases", { title: id }, token);
  const values = Object.fromEntries(inputs.map(({ key, nodeType }) => [key, nodeType === "image" ? assets["two-cups"] : BRIEF]));
  const body = { canvasId: canvas.handle, baseRevision: canvas.revision, idempotencyKey: randomUUID(), inputs: values };
  await succeeded((await send<{ run: string }>("POST", `/recipes/${id}/runs`, body, token)).run, token);
  await take(canvas, `recipe-${id}`);
}
await browser.close();
