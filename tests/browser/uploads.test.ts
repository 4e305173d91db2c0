/** What is dropped and pasted, and uploads that are under way or have failed while a person does something else. */
import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { Page } from "playwright-core";

import { box, node, openBoard, path, ROOT, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { BASE_URL, makeBoard, png, read, send, stranger } from "./service.ts";
import { field, heading, signIn } from "./steps.ts";

const slot = { title: "Hero", type: "image", position: { x: 100, y: 100 }, width: 300, height: 200 };
const image = (name: string) => ({ name, mimeType: "image/png", buffer: Buffer.from(png(90, 60)) });
const list = (page: Page) => page.getByRole("region", { name: "Uploads" });

/** Holds uploads back until the returned function is called. */
async function hold(page: Page): Promise<() => void> {
  let release = () => {};
  const held = new Promise<void>((resume) => (release = resume));
  await page.route(/\/assets(\?canvasId=.*)?$/, async (route) => {
    if (route.request().method() === "POST") await held;
    // The page may be gone by then.
    await route.continue().catch(() => {});
  });
  return release;
}

/** Whether the browser asks before it leaves the page. The page stays. */
async function asksBeforeLeaving(page: Page): Promise<boolean> {
  const asked = page.waitForEvent("dialog", { timeout: 5000 });
  await page.close({ runBeforeUnload: true });
  const dialog = await asked.catch(() => undefined);
  await dialog?.dismiss();
  return dialog?.type() === "beforeunload";
}

scene("an image takes its place in a slot although the board was left before it had arrived", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Left", [slot]);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url);
  const release = await hold(page);
  await node(page, "Hero").click();
  await page.getByLabel("Images to upload").setInputFiles(image("harbor.png"));
  await page.getByRole("progressbar", { name: "Upload of harbor.png" }).waitFor();
  assert(await asksBeforeLeaving(page), "on the board");
  await page.getByRole("link", { name: "Canvas Service" }).click();
  await heading(page, "Canvases");
  assert(await asksBeforeLeaving(page), "elsewhere in the console");
  release();
  const after = await until(canvas, "the slot is filled", (graph) => titled(graph, "Hero")?.asset !== undefined);
  assert.deepEqual(titled(after, "Hero")?.position, { x: 100, y: 100 });
  assert.equal(after.nodes.length, 1);
});

scene("an upload that failed is still there after the board was left, and fills its slot at the next attempt", async ({ page, expect, isAccessible }) => {
  const { canvas, url } = await makeBoard("Failed", [slot]);
  expect(NOBODY, `409 POST ${path(canvas, "/operations")}`, `401 POST ${ROOT}/assets`);
  await openBoard(page, url);
  await page.route("**/assets?*", (route) => route.fulfill({ status: 401, json: { error: { code: "unauthorized", message: "The session has ended." } } }));
  await node(page, "Hero").click();
  await page.getByLabel("Images to upload").setInputFiles(image("harbor.png"));
  await list(page).getByText("The session has ended.").waitFor();
  await page.getByRole("link", { name: "Canvas Service" }).click();
  await heading(page, "Canvases");
  await page.goBack();
  await list(page).getByText("The session has ended.").waitFor();
  await isAccessible();
  await page.unroute("**/assets?*");
  await list(page).getByRole("button", { name: "Try again" }).click();
  await until(canvas, "the slot is filled", (graph) => graph.nodes.length === 1 && titled(graph, "Hero")?.asset !== undefined);
  await list(page).waitFor({ state: "detached" });
});

scene("uploads of the assets page go on elsewhere, and signing out asks before it ends them", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { token } = await stranger();
  await signIn(page, token, "/assets");
  const release = await hold(page);
  await page.getByLabel("Images to upload").first().setInputFiles([image("pier.png"), image("boat.png")]);
  await page.getByRole("progressbar", { name: "Upload of pier.png" }).waitFor();
  assert(await asksBeforeLeaving(page));
  await page.getByRole("link", { name: "Queue" }).click();
  await heading(page, "Queue");
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  const question = page.getByRole("dialog", { name: "Sign out?" });
  await question.getByText("2 uploads are not saved and will be deleted.").waitFor();
  await isAccessible();
  await question.getByRole("button", { name: "Keep" }).click();
  await page.getByRole("link", { name: "Pictures" }).click();
  await page.getByRole("progressbar", { name: "Upload of boat.png" }).waitFor();

  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await question.getByRole("button", { name: "Sign out anyway" }).click();
  await field(page).waitFor();
  release();
  await field(page).fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("link", { name: "Pictures" }).click();
  await page.getByRole("heading", { name: "No pictures yet" }).waitFor();
  await becomes(() => list(page).count(), 0);
  const { assets } = await send<{ assets: object[] }>("GET", "/assets", undefined, token);
  assert.equal(assets.length, 0);
});

scene("a file that is dropped beside the board is uploaded, and nowhere left to the browser, which would leave the page", async ({ page, expect, afterwards }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Beside", []);
  expect(`409 POST ${path(canvas, "/operations")}`);
  const file = join(tmpdir(), `canvas-${canvas.id}.png`);
  await writeFile(file, png(120, 80));
  afterwards(() => rm(file));
  const devtools = await page.context().newCDPSession(page);
  /** Drags the file from outside of the browser, which does with it what it likes unless the page takes or refuses it. */
  const drop = async (x: number, y: number) => {
    await page.evaluate(() => {
      document.body.removeAttribute("data-handled");
      addEventListener("dragover", (event) => document.body.setAttribute("data-handled", String(event.defaultPrevented)), { once: true });
    });
    const data = { items: [], files: [file], dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"] as const) await devtools.send("Input.dispatchDragEvent", { type, x, y, data });
    await becomes(() => page.locator("body").getAttribute("data-handled"), "true");
  };
  await openBoard(page, url);
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const panel = await box(page.getByRole("complementary", { name: "Make" }));
  await drop(panel.x + panel.width / 2, panel.y + 200);
  await until(canvas, "a file that was dropped on the panel", ({ nodes }) => nodes.length === 1 && nodes[0]?.asset !== undefined);
  await drop(400, 20);
  await until(canvas, "a file that was dropped on the header", ({ nodes }) => nodes.length === 2);
  // Nothing takes a file over a dialog and on a page without images.
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await drop(640, 400);
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Canvas Service" }).click();
  await heading(page, "Canvases");
  await drop(640, 400);
  await page.waitForTimeout(500);
  assert.equal(page.url(), `${BASE_URL}/`);
  assert.equal((await read(canvas)).nodes.length, 2);
});

scene("a text that is longer than a node may be is pasted as far as it fits, and that is told", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Pasted", []);
  await openBoard(page, url);
  const paste = (text: string) =>
    page.evaluate((text) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", text);
      document.querySelector(".react-flow__pane")?.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
    }, text);
  // The service counts characters: the last one that fits takes two units of a string.
  const whole = `${"x".repeat(23_999)}😀`;
  await paste(`${whole} and more`);
  await page.getByText("A text holds 24,000 characters. The rest of the text is left out.").waitFor();
  await until(canvas, "the text is saved", ({ nodes }) => nodes[0]?.metadata.content === whole);
  await isAccessible();
});

scene("what does not fit into a field of a node or into a prompt is left out, and the page says so", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Cut", [text("One", 0, 0, { metadata: { content: "harbor ".repeat(1200) } })]);
  await openBoard(page, url);
  /** An event of a paste that inserts nothing: what the browser cuts is known from its lengths. */
  const paste = (label: string, length: number) =>
    page.getByLabel(label, { exact: true }).evaluate((field, length) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", "x".repeat(length));
      field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
    }, length);
  const cut = page.getByText("The rest of the text is left out.");
  await node(page, "One").click();
  await page.keyboard.press("F2");
  // All of it is marked, and replaced.
  await paste("Title", 160);
  await becomes(() => cut.count(), 0);
  await paste("Title", 161);
  await page.getByText("A title holds 160 characters.").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Enter");
  await paste("Text of One", 24_001);
  await page.getByText("A text holds 24,000 characters.").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Make", exact: true }).click();
  await page.getByText("A prompt holds 8,000 characters. The rest of a longer text is left out.").waitFor();
  await isAccessible();
});
