/** The short names of nodes, where people meet them: beside what is found, in the check, and under the pointer. */
import { becomes, NOBODY, scene } from "./browser.ts";
import { node, openBoard, text } from "./board.ts";
import { makeBoard, png, send } from "./service.ts";

scene("the ref of a node is shown in the check and under the pointer", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Refs", [text("Below", 0, 0), text("Above", 60, 40)]);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(96, 64));
  await openBoard(page, url);
  await page.getByRole("button", { name: /^Check/ }).click();
  const finding = page.getByRole("complementary", { name: "Check" }).getByRole("listitem").filter({ hasText: "Two things cover each other." });
  await becomes(async () => (await finding.locator("code").allTextContents()).map((ref) => ref.trim()).toSorted(), ["n1", "n2"]);
  await isAccessible();
  await becomes(() => node(page, "Above").locator("[title]").first().getAttribute("title"), "n2");
  const image = page.locator(".react-flow__node-image");
  await becomes(async () => (await image.textContent())?.includes("n3"), false);
  await image.hover();
  await image.getByText("96 × 64").waitFor();
  await image.getByText("· n3").waitFor();
});
