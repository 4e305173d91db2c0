/** The first hour: the sample campaign, templates, hints, keys, and the word on a session that has ended. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { env } from "node:process";

import type { Page } from "playwright-core";

import { box, node, openBoard, text } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { makeBoard, png, read, send, stranger } from "./service.ts";
import { field, isLive, signIn } from "./steps.ts";

const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? "/tmp", `begin-${name}.png`) });
const canvasOf = (page: Page) => {
  const [, owner, id] = /\/c\/([\w-]+)\/([\w-]+)/.exec(page.url()) ?? assert.fail(page.url());
  return { id: id ?? "", handle: `canvas:${owner}:${id}`, ownerUid: owner ?? "", revision: "" };
};

scene("a new account tries the sample campaign, and its formats arrive", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const ana = await stranger();
  await signIn(page, ana.token);
  const sample = page.getByRole("button", { name: "Try the sample campaign" });
  await sample.waitFor();
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.waitForTimeout(300);
    await shot(page, `first-${scheme}`);
  }
  await isAccessible();
  await page.setViewportSize({ width: 390, height: 844 });
  await shot(page, "first-390");
  await isAccessible();
  await page.setViewportSize({ width: 1280, height: 800 });
  await sample.click();
  await page.getByRole("application", { name: "Board" }).waitFor();
  await isLive(page);
  const canvas = canvasOf(page);
  await becomes(async () => (await read(canvas, ana.token)).nodes.filter(({ asset }) => asset !== undefined).length, 9, "six images and three results");
  await page.keyboard.press("0");
  await becomes(() => page.locator(".react-flow__node-image img").count(), 9);
  await page.waitForTimeout(500);
  await shot(page, "sample");
  // Another canvas of the sample has the images that are stored already.
  const stored = async () => (await send<{ assets: object[] }>("GET", "/assets?limit=100", undefined, ana.token)).assets.length;
  const before = await stored();
  await page.goto("/");
  await page.getByRole("button", { name: "New canvas" }).click();
  const dialog = page.getByRole("dialog", { name: "New canvas" });
  await dialog.getByRole("button", { name: /^Autumn tableware/ }).click();
  await page.getByRole("application", { name: "Board" }).waitFor();
  await becomes(async () => (await read(canvasOf(page), ana.token)).nodes.filter(({ asset }) => asset !== undefined).length, 9);
  assert.notEqual(canvasOf(page).id, canvas.id);
  assert.equal(await stored(), before);
});

scene("a canvas begins with a template", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const ana = await stranger();
  await send("POST", "/canvases", { title: "First" }, ana.token);
  await signIn(page, ana.token);
  for (const [name, title, sections] of [["Campaign from one product image", "Campaign from one product image", 3], ["Lookbook", "Lookbook", 4]] as const) {
    await page.goto("/");
    await page.getByRole("button", { name: "New canvas" }).click();
    const dialog = page.getByRole("dialog", { name: "New canvas" });
    await becomes(() => dialog.getByRole("listitem").count(), 7);
    await shot(page, "gallery");
    await isAccessible();
    await dialog.getByRole("button", { name: new RegExp(`^${name}`) }).click();
    await page.getByRole("button", { name: title, exact: true }).waitFor();
    await becomes(async () => (await read(canvasOf(page), ana.token)).nodes.filter(({ metadata }) => metadata.section).length, sections);
    await page.waitForTimeout(500);
    await shot(page, name.split(" ")[0] as string);
  }
  const readable = await stranger("canvas:read");
  await page.context().clearCookies();
  await signIn(page, readable.token);
  await page.getByRole("heading", { name: "No canvases yet" }).waitFor();
  await becomes(() => page.getByRole("button", { name: /sample|Blank/ }).count(), 0, "who may make none is offered none");
});

scene("each hint is shown once, and is over when it is used", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { asset } = await send<{ asset: { handle: string } }>("POST", "/assets", png(320, 240));
  const { url } = await makeBoard("Hints", [{ type: "image", title: "Hero", asset: asset.handle, position: { x: 0, y: 0 }, width: 320, height: 268 }, ...[1, 2, 3, 4].map((at) => text(`Text ${at}`, at * 400, 0))]);
  await openBoard(page, url);
  const hint = (words: string) => page.getByRole("note").filter({ hasText: words });
  await hint("tidies").waitFor();
  await page.keyboard.press("Escape");
  await becomes(() => page.getByRole("note").count(), 0);
  await node(page, "Hero").click();
  await hint("to make something from this").waitFor();
  await shot(page, "hint");
  const [spot, hero] = [await box(page.getByRole("note")), await box(node(page, "Hero"))];
  assert(spot.y >= hero.y + hero.height || spot.y + spot.height <= hero.y, "beside what it speaks of");
  await isAccessible();
  await page.keyboard.press("g");
  await becomes(() => page.getByRole("note").count(), 0);
  await page.reload();
  await isLive(page);
  await node(page, "Hero").click();
  await page.waitForTimeout(1500);
  assert.equal(await page.getByRole("note").count(), 0, "none comes again");
});

scene("keys are searched", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Keys", [text("One", 0, 0)]);
  await openBoard(page, url);
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await page.keyboard.type("tidy");
  await keys.getByText("Tidy", { exact: true }).waitFor();
  assert.equal(await keys.locator("dt").count(), 1);
  await becomes(() => keys.getByText("Undo", { exact: true }).count(), 0);
  await isAccessible();
  await page.keyboard.type("xyz");
  await keys.getByText("No key does that.").waitFor();
});

scene("a session that ends says so, and a sign-out does not", async ({ page, expect }) => {
  expect(NOBODY, "401 GET /console/api/canvas-agent/v1/canvases", "401 GET /console/api/canvas-agent/v1/auth/status", "401 GET /console/api/canvas-agent/v1/events", "401 GET /console/api/canvas-agent/v1/runs");
  const ana = await stranger("canvas:read,canvas:write");
  await signIn(page, ana.token);
  await page.context().clearCookies();
  await page.reload();
  await field(page).waitFor();
  await page.getByText("Your session has ended.").waitFor();
  await shot(page, "ended");
  await field(page).fill(ana.token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await field(page).waitFor();
  assert.equal(await page.getByText("Your session has ended.").count(), 0);
});
