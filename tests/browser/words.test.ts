/** The words of the console are those of people. */
import { box, node, openBoard, text } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { apply, makeBoard, png, send } from "./service.ts";
import { heading } from "./steps.ts";
import { hasNoWords } from "./words.ts";

scene("no screen has a word of the contract", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Words", [
    text("Brief", 0, 0, { metadata: { content: "Warm light." } }),
    text("Above", 60, 40),
    { type: "image", title: "Hero", position: { x: 400, y: 0 }, width: 320, height: 268 },
    { type: "video", title: "Film", position: { x: 800, y: 0 }, width: 320, height: 268 },
  ]);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(320, 240));
  await apply(canvas, [{ type: "connection.create", fromNodeId: ids["Brief"], toNodeId: ids["Hero"], purpose: "flow" }]);
  await openBoard(page, url);
  await hasNoWords(page, "the board");
  for (const panel of ["findings", "outline", "inspect", "make", "recipes", "assets", "runs"]) {
    for (const title of ["", "Brief", "Hero", "Film"]) {
      await page.keyboard.press("Escape");
      await page.keyboard.press("0");
      await becomes(() => page.locator("[data-moving]").count(), 0);
      if (title !== "") await node(page, title).click({ position: { x: 5, y: 5 } });
      const toggle = page.locator(`[data-panel="${panel}"]`);
      await toggle.click();
      await box(page.getByRole("complementary"));
      await page.waitForTimeout(300);
      await hasNoWords(page, `${panel} of ${title || "nothing"}`);
      await toggle.click();
      await page.getByRole("complementary").waitFor({ state: "detached" });
    }
  }
  await page.keyboard.press("0");
  await becomes(() => page.locator("[data-moving]").count(), 0);
  await node(page, "Brief").click({ position: { x: 5, y: 5 } });
  await page.keyboard.press("Shift+F10");
  await hasNoWords(page, "the menu of the selection");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+a");
  await hasNoWords(page, "the board with everything selected");
  await page.keyboard.press("Control+k");
  await hasNoWords(page, "the palette");
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await hasNoWords(page, "the keys");
  for (const [path, name] of [["/", "Canvases"], ["/runs", "Queue"], ["/recipes", "Recipes"], ["/elements", "Elements"], ["/assets", "Pictures"]] as const) {
    await page.goto(path);
    await heading(page, name);
    await page.waitForTimeout(500);
    await hasNoWords(page, name);
  }
}, 150);
