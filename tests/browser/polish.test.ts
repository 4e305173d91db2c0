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
