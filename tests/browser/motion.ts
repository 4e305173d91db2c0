/**
 * Films two people and an agent at work on one board: writes frames, and when each was seen, into a directory. motion.py makes an animated
 * picture of them. `tests/browser/run --motion` runs both.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Page } from "playwright-core";

import { middle, node } from "./board.ts";
import { launch } from "./chromium.ts";
import { admin, apply, read, send, signInLink, succeeded } from "./service.ts";
import { isLive } from "./steps.ts";
import { openStudio } from "./studio.ts";

const [directory] = process.argv.slice(2);
assert(directory, "usage: motion.ts DIRECTORY");
rmSync(directory, { recursive: true, force: true });
mkdirSync(directory, { recursive: true });

const browser = await launch();
const studio = await openStudio(browser);
const { canvas } = studio;

/** A browser of this person, on the board. */
async function visit(account: string): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1200, height: 750 }, colorScheme: "light" });
  const page = await context.newPage();
  await page.goto(await signInLink(account));
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { level: 1, name: "Canvases" }).waitFor();
  await page.goto(studio.url);
  await isLive(page);
  await node(page, "Square").waitFor();
  await page.keyboard.press("0");
  return page;
}

const [ana, mateo] = [await visit(studio.ana.uid), await visit(studio.mateo.uid)];
const { token: agent } = await admin<{ token: string }>("token", "create", "--account", studio.ana.uid, "--label", "Shot list agent", "--surface", "tool", "--scopes", "canvas:read,canvas:write,asset:read,image:generate,job:manage");
const pause = (milliseconds: number) => ana.waitForTimeout(milliseconds);
const glide = async (page: Page, title: string) => page.mouse.move((await middle(node(page, title))).x, (await middle(node(page, title))).y, { steps: 12 });
await pause(2500);

// A recording of the page has no pointer.
await ana.evaluate(() => {
  const pointer = document.createElement("div");
  Object.assign(pointer.style, { position: "fixed", left: "-20px", top: "-20px", width: "14px", height: "14px", borderRadius: "50%", background: "#1f1f1f", border: "2px solid #fff", boxShadow: "0 1px 4px #0008", zIndex: "99999", pointerEvents: "none" });
  document.documentElement.append(pointer);
  addEventListener("pointermove", ({ clientX, clientY }) => Object.assign(pointer.style, { left: `${clientX - 8}px`, top: `${clientY - 8}px` }), true);
});
const screen = await ana.context().newCDPSession(ana);
const seen: number[] = [];
screen.on("Page.screencastFrame", ({ data, metadata, sessionId }) => {
  writeFileSync(join(directory, `${seen.length}.jpg`), Buffer.from(data, "base64"));
  seen.push(metadata.timestamp ?? 0);
  void screen.send("Page.screencastFrameAck", { sessionId });
});
await screen.send("Page.startScreencast", { format: "jpeg", quality: 92, maxWidth: 960, maxHeight: 600 });

// Mateo points at what he likes.
await pause(700);
for (const title of ["Vase with an olive branch", "Table for two"]) {
  await glide(mateo, title);
  await pause(500);
}

// The agent plans three posters below, and makes them.
const bottom = Math.max(...(await read(canvas, agent)).nodes.map(({ position, height }) => position.y + height));
const created = await apply(canvas, [
  { type: "node.create", clientId: "posters", node: { type: "sticky", title: "Posters", position: { x: 0, y: bottom + 80 }, width: 1290, height: 560, metadata: { section: true } } },
  ...["Dawn", "Noon", "Evening"].map((title, index) => ({
    type: "node.create", clientId: title, node: { type: "image", title, position: { x: 40 + index * 420, y: bottom + 160 }, width: 370, height: 440, metadata: { sectionId: "posters" } },
  })),
], agent);
await pause(400);
await ana.keyboard.press("0");
await pause(900);
const targets = ["Dawn", "Noon", "Evening"].map((title) => created[title]);
const { revision } = await read(canvas, agent);
const { run } = await send<{ run: string }>("POST", "/images/generate", {
  canvasId: canvas.handle, baseRevision: revision, idempotencyKey: randomUUID(), model: "sketch", size: "1024x1536", targetNodeIds: targets,
  prompt: "A poster for Café Lumen: one cup on dark wood, light from the left",
}, agent);
await succeeded(run, agent);
await pause(1800);

// Ana goes there, marks the one that she likes, and looks at it.
await ana.getByRole("button", { name: "Show", exact: true }).first().click();
await pause(1200);
await glide(ana, "Noon");
await node(ana, "Noon").click({ position: { x: 60, y: 60 } });
await pause(500);
await ana.keyboard.press("f");
await pause(900);
await ana.keyboard.press("Enter");
await ana.getByRole("dialog").getByRole("img", { name: "Noon" }).waitFor();
await pause(1600);
await ana.keyboard.press("Escape");
await pause(900);
await ana.keyboard.press("0");
await pause(1500);

await screen.send("Page.stopScreencast");
seen.push(Date.now() / 1000);
writeFileSync(join(directory, "seen.json"), JSON.stringify(seen));
assert(seen.length > 30, `only ${seen.length} frames`);
await browser.close();
