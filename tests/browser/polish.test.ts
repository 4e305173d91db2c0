/** What makes way on the board, and what is quiet there. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { env } from "node:process";

import { box, node, openBoard, text } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { apply, makeBoard } from "./service.ts";

scene("buttons over the title of a selected Section fade, unless the pointer is on them", async ({ page, expect }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Faded", [{ type: "sticky", title: "Moodboard", position: { x: 0, y: 0 }, width: 900, height: 600, metadata: { section: true } }, text("Far", 2000, 1500)]);
  await openBoard(page, url);
  const title = page.locator("[data-title]");
  await title.click();
  await page.keyboard.press("1");
  await becomes(() => page.locator("[data-moving]").count(), 0);
  const toggles = page.locator("[data-fades]").filter({ has: page.locator("[data-panel]") });
  await page.mouse.move(700, 500);
  // Single turns of the wheel, each of which moves the view by half of it.
  for (let turn = 0; turn < 8; turn += 1) {
    const [from, to] = [await box(title), await box(toggles)];
    await page.mouse.wheel(from.x - to.x - 12, from.y - to.y - 6);
    await page.waitForTimeout(200);
  }
  await becomes(() => toggles.evaluate((element) => getComputedStyle(element).opacity), "0.25");
  await page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", "polish-faded.png") });
  await toggles.getByRole("button").first().hover();
  await becomes(() => toggles.evaluate((element) => getComputedStyle(element).opacity), "1");
  await page.mouse.move(700, 500);
  await page.keyboard.press("Escape");
  await becomes(() => toggles.evaluate((element) => getComputedStyle(element).opacity), "1", "nothing is selected");
});

scene("lines are quiet, are hidden by a key, and stay so after a reload; a small board has a button for its map", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Quiet", [text("One", 0, 0), text("Two", 500, 0), text("Far", 2600, 1500)]);
  await apply(canvas, [{ type: "connection.create", fromNodeId: ids["One"], toNodeId: ids["Two"], purpose: "list" }]);
  await page.setViewportSize({ width: 1440, height: 900 });
  await openBoard(page, url);
  await node(page, "One").click();
  await page.keyboard.press("2");
  await page.keyboard.press("Escape");
  await page.mouse.move(720, 860);
  const line = page.locator(".react-flow__edge path").nth(1);
  await becomes(() => line.evaluate((path) => getComputedStyle(path).opacity), "0.45");
  const map = page.locator("canvas[class*=minimap]");
  const open = page.locator("button[class*=mapButton]");
  await map.waitFor();
  assert.equal(await open.isVisible(), false);
  await page.keyboard.press("o");
  await open.waitFor();
  assert.equal(await map.isVisible(), false, "a panel takes its room");
  await open.click();
  await map.waitFor();
  await page.getByRole("button", { name: "Close outline" }).click();
  await page.keyboard.press("Shift+C");
  await becomes(() => page.locator(".react-flow__edge").count(), 0);
  await page.getByText("1 connection hidden. Shift C shows them again.").waitFor();
  await page.reload();
  await node(page, "One").waitFor();
  await page.waitForTimeout(500);
  assert.equal(await page.locator(".react-flow__edge").count(), 0);
});

scene("a line runs behind the title of a Section", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Crossed", [
    { type: "sticky", title: "A title that a line would cross", position: { x: 300, y: 0 }, width: 400, height: 300, metadata: { section: true } },
    text("One", 0, -44),
    text("Two", 800, -44),
  ]);
  await apply(canvas, [{ type: "connection.create", fromNodeId: ids["One"], toNodeId: ids["Two"], purpose: "flow" }]);
  await openBoard(page, url);
  await page.keyboard.press("0");
  await becomes(() => page.locator("[data-moving]").count(), 0);
  const [line, title] = [await box(page.locator(".react-flow__edge path").nth(1)), await box(page.locator("[data-title]"))];
  assert(line.y > title.y && line.y < title.y + title.height, "it crosses it");
  const at = [title.x + title.width / 2, line.y] as const;
  assert(await page.evaluate(([x, y]) => document.elementFromPoint(x, y)?.closest("[data-title]") != null, at));
  await page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", "polish-crossed.png") });
  // Beside the title, it is there for the pointer.
  const beside = [title.x + title.width + 40, line.y] as const;
  assert(await page.evaluate(([x, y]) => document.elementFromPoint(x, y)?.closest(".react-flow__edge") != null, beside));
});

scene("a view glides to another one, until a person moves it", async ({ guest, expect }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Glide", [text("One", 0, 0), text("Two", 3000, 2000)]);
  const page = await guest({ reducedMotion: "no-preference" });
  await openBoard(page, url);
  const zooms = (frames: number) =>
    page.evaluate(async (frames) => {
      const seen: number[] = [];
      for (let frame = 0; frame < frames; frame += 1) {
        await new Promise((next) => requestAnimationFrame(next));
        seen.push(new DOMMatrix(getComputedStyle(document.querySelector(".react-flow__viewport") as Element).transform).a);
      }
      return seen;
    }, frames);
  const [all] = await zooms(1);
  const gliding = zooms(60);
  await page.keyboard.press("1");
  const seen = await gliding;
  assert(new Set(seen).size > 3, `${seen}`);
  assert.deepEqual(seen, seen.toSorted((one, other) => one - other), "always nearer");
  assert.equal(seen.at(-1), 1);
  const ended = page.evaluate(async (from) => {
    const zoom = () => new DOMMatrix(getComputedStyle(document.querySelector(".react-flow__viewport") as Element).transform).a;
    const next = () => new Promise((done) => requestAnimationFrame(done));
    while (zoom() === from) await next();
    document.querySelector(".react-flow__pane")?.dispatchEvent(new WheelEvent("wheel", { deltaY: 40, clientX: 600, clientY: 400, bubbles: true, cancelable: true }));
    const then = zoom();
    for (let frame = 0; frame < 40; frame += 1) await next();
    return [then, zoom()];
  }, 1);
  await page.keyboard.press("0");
  const [then, now] = await ended;
  assert.equal(now, then, "the wheel has ended it");
  assert.notEqual(now, all);
  // Colors change at once then.
  await page.emulateMedia({ reducedMotion: "reduce" });
});
