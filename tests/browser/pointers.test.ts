/** What people see of each other on a board: pointers, selections, drags, and the view of another person. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

import { drag, middle, node, openBoard, plane, text } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, makeBoard, person, stranger } from "./service.ts";

/** A token, whose label is the name of the sessions that it signs in. */
const named = async (name: string, account: string) => (await admin<{ token: string }>("token", "create", "--account", account, "--label", name, "--scopes", "all")).token;

/** A canvas on which Ana, its owner, and Ben, an editor, have the board open. */
async function together(title: string, ana: Page, ben: Page, ...nodes: ReturnType<typeof text>[]) {
  const made = await makeBoard(title, nodes);
  const friend = await stranger();
  await admin("share", "--canvas", made.canvas.handle, "--with", friend.email, "--role", "editor");
  await openBoard(ana, made.url, await named("Ana", person.uid));
  await openBoard(ben, made.url, await named("Ben", friend.uid));
  await face(ana, "Ben").waitFor();
  await face(ben, "Ana").waitFor();
  return made;
}

const face = (page: Page, name: string) => page.getByRole("list", { name: "Also here" }).getByRole("button", { name: `Follow ${name}` });
const shown = (page: Page, name: string, part: "arrow" | "frame" | "ghost") => page.locator(`[data-peer="${name}"] [data-part="${part}"]`);

/** The requests that a page sends for its pointer. */
function sentBy(page: Page): string[] {
  const sent: string[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/pointer")) sent.push(request.postData() ?? "");
  });
  return sent;
}

/** Waits until an element is at a point of the window, give or take two pixels. */
const isAt = (page: Page, part: ReturnType<typeof shown>, point: { x: number; y: number }) =>
  becomes(async () => {
    const box = await part.boundingBox();
    return box !== null && Math.abs(box.x - point.x) <= 2 && Math.abs(box.y - point.y) <= 2 ? "there" : `at ${box?.x}, ${box?.y}`;
  }, "there");

scene("people see what others point at, select, drag and write, until 10 seconds after the last", async ({ page, guest, expect, isAccessible }) => {
  expect(NOBODY);
  const other = await guest();
  const sent = sentBy(page);
  await together("Pointers", page, other, text("One", 0, 0), text("Two", 600, 300));
  const [here, there] = [await plane(page), await plane(other)];
  for (const [x, y] of [[300, 200], [450, 80]] as const) {
    const from = here(x, y);
    await page.mouse.move(from.x, from.y);
    await isAt(other, shown(other, "Ana", "arrow"), there(x, y));
  }
  await shown(other, "Ana", "arrow").getByText("Ana").waitFor();

  // Movements are thinned out, and told soon.
  const before = sent.length;
  const [start, times] = [Date.now(), [] as number[]];
  for (let step = 0; step < 12; step += 1) {
    const from = here(300 + 20 * step, 220);
    const moved = Date.now();
    await page.mouse.move(from.x, from.y);
    await isAt(other, shown(other, "Ana", "arrow"), there(300 + 20 * step, 220));
    times.push(Date.now() - moved);
  }
  const most = ((Date.now() - start) / 1000) * 8 + 2;
  assert(sent.length - before <= most, `${sent.length - before} requests within ${Date.now() - start} ms`);
  console.log(`a pointer arrives after ${times.toSorted((a, b) => a - b).join(", ")} ms`);

  const one = await middle(node(page, "One"));
  await page.mouse.click(one.x, one.y);
  await shown(other, "Ana", "frame").waitFor();
  await page.mouse.move(one.x, one.y);
  await page.mouse.down();
  await page.mouse.move(one.x + 60, one.y + 90, { steps: 8 });
  const ghost = shown(other, "Ana", "ghost");
  const origin = there(0, 0);
  await isAt(other, ghost, { x: origin.x + 60, y: origin.y + 90 });
  await other.screenshot({ path: `${process.env["CANVAS_SCREENSHOTS"] ?? "."}/pointers-drag.png` });
  await page.mouse.up();
  await ghost.waitFor({ state: "detached" });
  await node(page, "Two").dblclick();
  await page.keyboard.type("Words");
  await shown(other, "Ana", "frame").getByText("Ana is writing…").waitFor();
  await isAccessible();
  await other.screenshot({ path: `${process.env["CANVAS_SCREENSHOTS"] ?? "."}/pointers-writing.png` });
  await page.keyboard.press("Escape");

  await page.waitForTimeout(9000);
  await becomes(() => other.locator('[data-peer="Ana"]').count(), 0);
  const silent = sent.length;
  await page.waitForTimeout(1500);
  assert.equal(sent.length, silent, "nothing is sent while nothing changes");
  assert.equal(await page.locator('[data-peer="Ana"]').count(), 0, "nobody sees the own pointer");
}, 120);

scene("an agent's arrow is where its change was, for a moment", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Agent", [text("One", 0, 0), text("Two", 400, 0)]);
  const agent = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", agent.email, "--role", "editor");
  await openBoard(page, url);
  const sent = sentBy(page);
  await apply(canvas, [{ type: "node.move", nodeId: ids["Two"], position: { x: 400, y: 300 } }], agent.token);
  const arrow = shown(page, "browser test", "arrow");
  await arrow.waitFor();
  await becomes(() => arrow.count(), 0);
  assert.deepEqual(sent, [], "a person alone sends nothing");
});

scene("the view follows a person until it is moved", async ({ page, guest, expect, isAccessible }) => {
  expect(NOBODY);
  const other = await guest();
  await together("Followed", page, other, text("Near", 0, 0), text("Far", 9000, 4000));
  const look = async (title: string) => {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill(title);
    await page.getByRole("option", { name: new RegExp(title) }).first().click();
  };
  await plane(other);
  await page.mouse.move(640, 400);
  await face(other, "Ana").click();
  const bar = other.getByRole("button", { name: /^Following Ana/ });
  await bar.waitFor();
  await becomes(() => face(other, "Ana").getAttribute("aria-pressed"), "true");
  await look("Far");
  const isSeen = async (title: string) => {
    const box = await node(other, title).boundingBox({ timeout: 500 }).catch(() => null);
    return box !== null && box.width > 60 && box.x > 0 && box.y > 0 && box.x < 1280 && box.y < 800;
  };
  await becomes(() => isSeen("Far"), true, "the view follows");
  await isAccessible();
  await other.screenshot({ path: `${process.env["CANVAS_SCREENSHOTS"] ?? "."}/pointers-following.png` });
  await look("Near");
  await becomes(() => isSeen("Near"), true, "and goes on");

  await other.keyboard.press("Escape");
  await bar.waitFor({ state: "detached" });
  await look("Far");
  await page.waitForTimeout(1000);
  assert(await isSeen("Near"), "the view stays");

  await face(other, "Ana").click();
  await becomes(() => isSeen("Far"), true, "it begins where the person is");
  await other.mouse.move(640, 300);
  await other.mouse.wheel(0, 200);
  await bar.waitFor({ state: "detached" });
  await face(other, "Ana").click();
  await bar.waitFor();
  await page.goto("about:blank");
  await bar.waitFor({ state: "detached" });
});

scene("a pointer that is switched off is not sent, and those of others can be hidden", async ({ page, guest, expect, isAccessible }) => {
  expect(NOBODY);
  const other = await guest();
  const sent = sentBy(page);
  const frame = text("Frame", -40, -60, { type: "sticky", width: 400, height: 300, metadata: { section: true } });
  await together("Switched", page, other, frame, text("One", 0, 0, { metadata: { sectionId: "Frame" } }));
  const toggle = async (page: Page, name: string) => {
    await page.getByRole("button", { name: /^Account of/ }).click();
    await page.getByRole("switch", { name }).click();
    await page.keyboard.press("Escape");
  };
  await page.mouse.move(640, 300);
  await shown(other, "Ana", "arrow").waitFor();
  await other.mouse.move(640, 300);
  await shown(page, "Ben", "arrow").waitFor();
  await toggle(other, "Show pointers of others");
  await shown(other, "Ana", "arrow").waitFor({ state: "detached" });
  await toggle(other, "Show pointers of others");
  await shown(other, "Ana", "arrow").waitFor();

  // Who presents does not point.
  await page.keyboard.press("Shift+P");
  await page.getByRole("dialog", { name: "Presentation" }).waitFor();
  const presented = sent.length;
  await page.mouse.move(300, 300, { steps: 10 });
  await page.waitForTimeout(600);
  assert.equal(sent.length, presented);
  await page.keyboard.press("Escape");

  await toggle(page, "Show my pointer");
  const before = sent.length;
  await drag(page, { x: 400, y: 500 }, { x: 700, y: 600 });
  await page.reload();
  await face(page, "Ben").waitFor();
  await drag(page, { x: 400, y: 500 }, { x: 700, y: 600 });
  // What was sent before is gone after 10 seconds.
  await other.locator('[data-peer="Ana"]').first().waitFor({ state: "detached", timeout: 20_000 });
  await becomes(() => other.locator('[data-peer="Ana"]').count(), 0);
  assert.equal(sent.length, before, "nothing is sent");
  await face(other, "Ana").waitFor();
  await page.getByRole("button", { name: /^Account of/ }).click();
  await becomes(() => page.getByRole("switch", { name: "Show my pointer" }).isChecked(), false);
  await isAccessible();
  await page.screenshot({ path: `${process.env["CANVAS_SCREENSHOTS"] ?? "."}/pointers-menu.png` });
  await page.getByRole("switch", { name: "Show my pointer" }).click();
  await page.keyboard.press("Escape");
  await page.mouse.move(600, 320);
  await page.mouse.move(640, 300);
  await shown(other, "Ana", "arrow").waitFor();
});
