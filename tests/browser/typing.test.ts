/** What is typed or moved when the page ends, and while it is typed. */
import assert from "node:assert/strict";

import { node, openBoard, saved, text, titled, until } from "./board.ts";
import { NOBODY, scene } from "./browser.ts";
import { makeBoard } from "./service.ts";

scene("what is being typed, and where arrow keys have moved a node, survives a reload", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Untitled", [text("One", 0, 0)]);
  await openBoard(page, url);
  const reload = async () => {
    await page.reload();
    await node(page, "One").waitFor();
    await saved(page);
  };
  await node(page, "One").click();
  await page.keyboard.press("Enter");
  await page.getByLabel("Text of One").waitFor();
  await page.keyboard.type("A quiet harbor");
  await reload();
  await until(canvas, "the text", (graph) => titled(graph, "One")?.metadata.content === "A quiet harbor");
  await node(page, "One").click();
  await page.keyboard.press("ArrowRight");
  await reload();
  await until(canvas, "the move", (graph) => titled(graph, "One")?.position.x === 1);
  await page.getByRole("button", { name: "Untitled" }).click();
  await page.getByLabel("Title of the canvas").fill("Spring");
  await reload();
  await until(canvas, "the title", ({ title }) => title === "Spring");
  await node(page, "One").click();
  await page.keyboard.press("p");
  await page.getByRole("complementary", { name: "Details" }).getByLabel("Title").fill("One, renamed");
  await reload();
  await until(canvas, "the name", (graph) => titled(graph, "One, renamed") !== undefined);
});

scene("a text is saved while it is typed without a pause, and is one undo", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Typed", [text("One", 0, 0)]);
  await openBoard(page, url);
  await node(page, "One").click();
  await page.keyboard.press("Enter");
  await page.getByLabel("Text of One").waitFor();
  let isOver = false;
  const part = until(canvas, "a part of it", (graph) => titled(graph, "One")?.metadata.content !== undefined).finally(() => (isOver = true));
  while (!isOver) await page.keyboard.type("harbor ", { delay: 30 });
  assert.match(titled(await part, "One")?.metadata.content ?? "", /^harbor/);
  await page.keyboard.type("at dawn");
  await page.keyboard.press("Escape");
  await until(canvas, "all of it", (graph) => titled(graph, "One")?.metadata.content?.endsWith("at dawn") === true);
  await page.keyboard.press("Control+z");
  await until(canvas, "it is undone", (graph) => titled(graph, "One")?.metadata.content === undefined);
});
