/** Hand-over: images as a ZIP, drawings as PNG, the presentation, and paper. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { env } from "node:process";

import type { Download, Page } from "playwright-core";

import { node, openBoard, ROOT, text } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { makeBoard, type Node, png, send } from "./service.ts";

const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? "/tmp", `handover-${name}.png`) });
const upload = async (name: string, width: number, height: number) => {
  const body = png(width, height);
  const { asset } = await send<{ asset: { handle: string } }>("POST", "/assets", body);
  return { title: name, asset: asset.handle, body };
};

/** A board with two Sections of images, and one image beside them. */
async function campaign(): Promise<{ url: string; assets: Record<string, string>; files: Record<string, Uint8Array> }> {
  const images = await Promise.all([["Hero / flower", 400, 300], ["Cup.jpg", 300, 300], ["Bowl", 320, 200], ["Alone", 200, 320]].map(([name, width, height]) => upload(name as string, width as number, height as number)));
  const at = (index: number, x: number, home?: string): Partial<Node> & { title: string } => {
    const { title, asset } = images[index] as (typeof images)[number];
    return { type: "image", title, asset, position: { x, y: 100 }, ...(home !== undefined && { metadata: { sectionId: home } }) };
  };
  const board = await makeBoard("Autumn: launch", [
    { type: "sticky", title: "Moodboard", position: { x: 0, y: 0 }, width: 800, height: 520, metadata: { section: true } },
    { type: "sticky", title: "moodboard", position: { x: 900, y: 0 }, width: 480, height: 520, metadata: { section: true } },
    at(0, 40, "Moodboard"),
    at(1, 420, "Moodboard"),
    at(2, 940, "moodboard"),
    at(3, 1500),
    text("Line", 1500, 520, { metadata: { content: "From earth, for every morning." } }),
  ]);
  return { url: board.url, assets: Object.fromEntries(images.map(({ title, asset }) => [title, asset])), files: Object.fromEntries(images.map(({ title, body }) => [title, body])) };
}

/** The files of a ZIP, which stores them as they are. */
async function unzip(download: Download): Promise<Record<string, Buffer>> {
  const zip = await readFile(await download.path());
  const files: Record<string, Buffer> = {};
  const end = zip.lastIndexOf(Buffer.from("504b0506", "hex"));
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left -= 1) {
    const [size, name, extra, comment, offset] = [zip.readUInt32LE(at + 24), zip.readUInt16LE(at + 28), zip.readUInt16LE(at + 30), zip.readUInt16LE(at + 32), zip.readUInt32LE(at + 42)];
    const start = offset + 30 + zip.readUInt16LE(offset + 26) + zip.readUInt16LE(offset + 28);
    files[zip.toString("utf8", at + 46, at + 46 + name)] = zip.subarray(start, start + size);
    at += 46 + name + extra + comment;
  }
  return files;
}

/** Lets the browser save files without asking where. */
const withoutPicker = (page: Page) => page.addInitScript(() => delete (globalThis as unknown as { showSaveFilePicker?: unknown }).showSaveFilePicker);
const choose = (page: Page, name: string) => page.getByRole("menuitem", { name }).click();
const cards = (page: Page) => page.locator("[data-card]");

scene("the originals of a board, a Section and several images are a ZIP", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  await withoutPicker(page);
  const { url, files } = await campaign();
  await openBoard(page, url);
  await node(page, "Alone").waitFor();
  let download = page.waitForEvent("download");
  await page.keyboard.press("Shift+E");
  await page.getByRole("menu", { name: "Export the board" }).waitFor();
  await shot(page, "menu");
  await isAccessible();
  await choose(page, "Save the originals as ZIP");
  assert.equal((await download).suggestedFilename(), "Autumn launch.zip");
  const all = await unzip(await download);
  assert.deepEqual(Object.keys(all).toSorted(), ["01 Alone.png", "Moodboard/01 Hero flower.png", "Moodboard/02 Cup.png", "moodboard 2/01 Bowl.png"]);
  for (const [path, title] of [["01 Alone.png", "Alone"], ["Moodboard/01 Hero flower.png", "Hero / flower"]] as const) assert(all[path]?.equals(files[title] as Uint8Array), path);
  await cards(page).getByText("4 files saved as “Autumn launch.zip”.").waitFor();

  await node(page, "Hero").click();
  await node(page, "Bowl").click({ modifiers: ["Shift"] });
  download = page.waitForEvent("download");
  await page.getByRole("toolbar", { name: /^What to do/ }).getByRole("button", { name: "Download" }).click();
  assert.deepEqual(Object.keys(await unzip(await download)).toSorted(), ["Moodboard/01 Hero flower.png", "moodboard 2/01 Bowl.png"]);

  // Three interactions: select the Section, Export, ZIP.
  await page.keyboard.press("Escape");
  await page.getByText("Moodboard", { exact: true }).click();
  download = page.waitForEvent("download");
  await page.keyboard.press("Shift+E");
  await choose(page, "Save the originals as ZIP");
  assert.equal((await download).suggestedFilename(), "Moodboard.zip");
  assert.deepEqual(Object.keys(await unzip(await download)).toSorted(), ["Moodboard/01 Hero flower.png", "Moodboard/02 Cup.png"]);
});

scene("a file that cannot be read is named in the ZIP, and an export can be canceled", async ({ page, expect }) => {
  await withoutPicker(page);
  const { url, assets } = await campaign();
  const hidden = `${ROOT}/assets/${encodeURIComponent(assets["Bowl"] ?? "")}`;
  expect(NOBODY, `403 GET ${hidden}`);
  await page.route((address) => address.pathname === hidden, (route) => route.fulfill({ status: 403, json: { error: { code: "forbidden", message: "No." } } }));
  await openBoard(page, url);
  await node(page, "Alone").waitFor();
  const download = page.waitForEvent("download");
  await page.keyboard.press("Shift+E");
  await choose(page, "Save the originals as ZIP");
  const files = await unzip(await download);
  assert.deepEqual(Object.keys(files).toSorted(), ["01 Alone.png", "Moodboard/01 Hero flower.png", "Moodboard/02 Cup.png", "NOT INCLUDED.txt"]);
  assert.equal(files["NOT INCLUDED.txt"]?.toString(), "Bowl: You may not read it.\n");
  await cards(page).getByText("1 of 4 files is left out: you may not read it.").waitFor();
  await cards(page).getByText(/^3 of 4 files saved as “Autumn launch.zip”/).waitFor();

  // Nothing answers any more.
  await page.route(/\/content$/, () => {});
  await page.keyboard.press("Shift+E");
  await choose(page, "Save the originals as ZIP");
  const card = page.getByRole("region", { name: "Export" });
  await card.getByText("0 of 4").waitFor();
  await shot(page, "progress");
  await card.getByRole("button", { name: "Cancel" }).click();
  await cards(page).getByText("The export is canceled.").waitFor();
  await becomes(() => card.count(), 0);
});

scene("a ZIP is written to the file that a person has chosen", async ({ page, expect }) => {
  expect(NOBODY);
  await page.addInitScript(() => {
    const parts: Uint8Array[] = [];
    Object.assign(globalThis, {
      parts,
      showSaveFilePicker: async ({ suggestedName }: { suggestedName: string }) => {
        Object.assign(globalThis, { suggestedName });
        return { createWritable: async () => new WritableStream({ write: (part: Uint8Array) => void parts.push(part) }) };
      },
    });
  });
  const { url } = await campaign();
  await openBoard(page, url);
  await node(page, "Alone").waitFor();
  await page.keyboard.press("Shift+E");
  await choose(page, "Save the originals as ZIP");
  await cards(page).getByText("4 files saved as “Autumn launch.zip”.").waitFor();
  const [name, size] = await page.evaluate(() => {
    const { suggestedName, parts } = globalThis as unknown as { suggestedName: string; parts: Uint8Array[] };
    return [suggestedName, parts.reduce((sum, { byteLength }) => sum + byteLength, 0)] as const;
  });
  assert.equal(name, "Autumn launch.zip");
  assert(size > 1000);
});

scene("what is selected is saved and copied as PNG, and waits for the connection", async ({ page, expect }) => {
  expect(NOBODY);
  await withoutPicker(page);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const { url } = await campaign();
  await openBoard(page, url);
  await node(page, "Alone").click();
  const download = page.waitForEvent("download");
  await page.keyboard.press("Shift+E");
  await page.getByRole("menu", { name: "Export the selection" }).waitFor();
  await choose(page, "Save as PNG, 2048 pixels");
  assert.equal((await download).suggestedFilename(), "Alone.png");
  const file = await readFile(await (await download).path());
  assert.equal(file.toString("latin1", 1, 4), "PNG");
  assert(Math.max(file.readUInt32BE(16), file.readUInt32BE(20)) === 2048, "its longer side");
  // The image itself is copied with all of its pixels, of nodes a drawing.
  const copied = () =>
    page.evaluate(async () => {
      const [item] = await navigator.clipboard.read();
      const image = await createImageBitmap((await item?.getType("image/png")) as Blob);
      return [image.width, image.height] as const;
    });
  await page.keyboard.press("Shift+E");
  await choose(page, "Copy as PNG");
  await cards(page).getByText("Copied as PNG.").waitFor();
  assert.deepEqual(await copied(), [200, 320]);
  await page.context().setOffline(true);
  await page.evaluate(() => dispatchEvent(new Event("offline")));
  await page.keyboard.press("t");
  await page.keyboard.type("x");
  await page.keyboard.press("Escape");
  await page.locator('[data-save="waiting"]').waitFor();
  await page.keyboard.press("Shift+E");
  await choose(page, "Save as PNG, 2048 pixels");
  await cards(page).getByText("Save as PNG, 2048 pixels: Waits for the connection.").waitFor();
  await page.context().setOffline(false);
  await page.locator('[data-save="saved"]').waitFor();
});

scene("a board is presented Section by Section, from keys, clicks and buttons", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { url } = await campaign();
  await openBoard(page, url);
  await node(page, "Bowl").click();
  await page.keyboard.press("Shift+P");
  const shown = page.getByRole("dialog", { name: "Presentation" });
  const at = () => shown.getByRole("status").first().textContent();
  await becomes(at, "Slide 2 of 2: moodboard", "it begins at what is selected");
  await shown.getByRole("img", { name: "Bowl" }).or(shown.locator(".react-flow__node-image")).first().waitFor();
  assert.equal(await shown.locator(".react-flow__node").count(), 2, "nothing of the other Section");
  await page.keyboard.press("Home");
  await becomes(at, "Slide 1 of 2: Moodboard");
  await shown.locator(".react-flow__node-image img").nth(1).waitFor();
  assert.equal(await shown.locator("[data-mark]:visible").count(), 0, "no marks of those who work on it");
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await shot(page, `present-${scheme}`);
  }
  await isAccessible();
  for (const [key, slide] of [[" ", 2], ["ArrowLeft", 1], ["End", 2], ["PageUp", 1]] as const) {
    await page.keyboard.press(key);
    await becomes(async () => (await at())?.startsWith(`Slide ${slide} of 2`), true, key);
  }
  await page.keyboard.press("2");
  await page.keyboard.press("Enter");
  await becomes(at, "Slide 2 of 2: moodboard");
  await page.mouse.click(200, 60);
  await becomes(at, "Slide 1 of 2: Moodboard", "the left side leads back");
  await page.mouse.click(900, 60);
  await becomes(at, "Slide 2 of 2: moodboard");
  await shown.getByRole("button", { name: "Slide before" }).click();
  await becomes(at, "Slide 1 of 2: Moodboard");
  await page.keyboard.press("Escape");
  await becomes(() => shown.count(), 0);
  // Where a browser permits no full screen, it takes the window.
  await page.evaluate(() => (Element.prototype.requestFullscreen = () => Promise.reject(new Error("not permitted"))));
  // The window leaves the full screen some time after the page.
  await becomes(() => page.setViewportSize({ width: 390, height: 844 }).then(() => true, () => false), true);
  await page.keyboard.press("Shift+P");
  await shown.locator(".react-flow__node-image img").first().waitFor();
  await shot(page, "present-phone");
  await isAccessible();
  await shown.getByRole("button", { name: "End the presentation" }).click();
  await becomes(() => shown.count(), 0);
});

scene("each Section is a page on paper", async ({ page, expect }) => {
  expect(NOBODY);
  await page.addInitScript(() => Object.assign(globalThis, { print: () => (document.title = "printed") }));
  const { url } = await campaign();
  await openBoard(page, url);
  await node(page, "Alone").waitFor();
  await page.keyboard.press("Shift+P");
  await page.getByRole("dialog", { name: "Presentation" }).getByRole("button", { name: "Print or save as PDF" }).click();
  await page.waitForFunction(() => document.title === "printed");
  await shot(page, "printing");
  await page.emulateMedia({ media: "print" });
  await shot(page, "paper");
  await page.emulateMedia({ media: null });
  const pdf = await page.pdf({ preferCSSPageSize: true, path: join(env["CANVAS_SCREENSHOTS"] ?? "/tmp", "handover.pdf") });
  assert.equal(pdf.toString("latin1").match(/\/Type\s*\/Page\b/g)?.length, 2);
  await page.keyboard.press("Escape");
});
