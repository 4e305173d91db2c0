/** Uploads that are under way or have failed while a person does something else. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

import { node, openBoard, path, ROOT, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { makeBoard, png, send, stranger } from "./service.ts";
import { field, heading, signIn } from "./steps.ts";

const slot = { title: "Hero", type: "image", position: { x: 100, y: 100 }, width: 300, height: 200 };
const picture = (name: string) => ({ name, mimeType: "image/png", buffer: Buffer.from(png(90, 60)) });
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

scene("a picture takes its place in a slot although the board was left before it had arrived", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Left", [slot]);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url);
  const release = await hold(page);
  await node(page, "Hero").click();
  await page.getByLabel("Pictures to upload").setInputFiles(picture("harbor.png"));
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
  await page.getByLabel("Pictures to upload").setInputFiles(picture("harbor.png"));
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
  await page.getByLabel("Pictures to upload").first().setInputFiles([picture("pier.png"), picture("boat.png")]);
  await page.getByRole("progressbar", { name: "Upload of pier.png" }).waitFor();
  assert(await asksBeforeLeaving(page));
  await page.getByRole("link", { name: "Runs" }).click();
  await heading(page, "Runs");
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  const question = page.getByRole("dialog", { name: "Sign out?" });
  await question.getByText("2 uploads are not saved and will be deleted.").waitFor();
  await isAccessible();
  await question.getByRole("button", { name: "Keep" }).click();
  await page.getByRole("link", { name: "Assets" }).click();
  await page.getByRole("progressbar", { name: "Upload of boat.png" }).waitFor();

  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await question.getByRole("button", { name: "Sign out anyway" }).click();
  await field(page).waitFor();
  release();
  await field(page).fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("link", { name: "Assets" }).click();
  await page.getByRole("heading", { name: "No assets yet" }).waitFor();
  await becomes(() => list(page).count(), 0);
  const { assets } = await send<{ assets: object[] }>("GET", "/assets", undefined, token);
  assert.equal(assets.length, 0);
});
