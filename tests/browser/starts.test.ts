/** Starts of work that costs credit, when the network fails. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

import { node, openBoard, path, ROOT, saved, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, makeBoard, read, send, stranger } from "./service.ts";

const panel = (page: Page) => page.getByRole("complementary", { name: "Make" });

/** Fills in the form that makes an image or a video for 1 credit, and returns its button. */
async function prepare(page: Page, kind: "Images" | "Video") {
  await page.getByRole("button", { name: "Make", exact: true }).click();
  await panel(page).getByLabel("What to make").selectOption(kind === "Video" ? "video" : "generate");
  const models = panel(page).getByLabel("Model", { exact: true });
  const model = models.locator("option", { hasText: kind === "Video" ? "Animatic" : "Sketch" }).first();
  await models.selectOption((await model.getAttribute("value")) ?? "");
  await panel(page).getByLabel("Prompt").fill("a kite");
  if (kind === "Video") await panel(page).getByLabel("Seconds").selectOption("1");
  return panel(page).getByRole("button", { name: "Make · 1 credit" });
}

const runsOf = async (token: string) => (await send<{ runs: { kind: string }[] }>("GET", "/runs", undefined, token)).runs.map(({ kind }) => kind).toSorted();

scene("a start whose answer is lost is sent again until there is one, and charged once", async ({ page, open, expect }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "10");
  const { canvas, url } = await makeBoard("Answer lost", [], token);
  // Two tabs change one canvas at a time: the later one repeats its batch or its start on the other's revision.
  expect(`409 POST ${path(canvas, "/operations")}`, `409 POST ${ROOT}/images/generate`, `409 POST ${ROOT}/videos/generate`);
  await openBoard(page, url, token);
  const other = await open();
  await other.goto(url);
  const answered: (() => Promise<void>)[] = [];
  for (const [one, kind, address] of [[page, "Images", "**/images/generate"], [other, "Video", "**/videos/generate"]] as const) {
    await one.bringToFront();
    const start = await prepare(one, kind);
    let attempts = 0;
    const isOver = Promise.withResolvers<void>();
    await one.route(address, async (route) => {
      attempts += 1;
      if (attempts === 1) await route.fetch();
      await route.abort();
      if (attempts === 6) isOver.resolve();
    });
    await start.click();
    answered.push(async () => {
      await isOver.promise;
      await panel(one).getByText("No answer yet. The same request is sent again.").waitFor();
      await becomes(() => panel(one).getByRole("button", { name: "Starting…" }).getAttribute("aria-disabled"), "true");
      await one.unroute(address);
      await start.waitFor({ timeout: 30_000 });
      await becomes(() => panel(one).getByRole("alert").count(), 0);
    });
  }
  await Promise.all(answered.map((one) => one()));
  await until(canvas, "the image is made", ({ nodes }) => nodes.some(({ asset }) => asset !== undefined), token);
  assert.deepEqual(await runsOf(token), ["image", "video"]);
  assert.equal((await read(canvas, token)).nodes.length, 2);
  assert.equal((await send<{ creditBalance: number }>("GET", "/auth/status", undefined, token)).creditBalance, 8);
}, 120);

scene("a start that was never sent leaves nothing on the canvas", async ({ page, expect }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "10");
  const { canvas, url } = await makeBoard("Never sent", [], token);
  await openBoard(page, url, token);
  const start = await prepare(page, "Images");
  for (let clicks = 0; clicks < 2; clicks += 1) {
    await page.route("**/operations", (route) => route.abort());
    await start.click();
    await panel(page).getByRole("alert").getByText("The service cannot be reached.").waitFor();
    await becomes(() => panel(page).getByRole("button", { name: "Waits for the connection" }).isDisabled(), true);
    await page.unroute("**/operations");
    await page.getByRole("button", { name: "Try now" }).click();
    await saved(page);
    await start.waitFor();
  }
  assert.deepEqual((await read(canvas, token)).nodes, []);
  await becomes(() => page.locator(".react-flow__node").count(), 0);
  assert.deepEqual(await runsOf(token), []);
});

scene("a refused start leaves undo and redo as they were", async ({ page, expect }) => {
  expect(NOBODY, `402 POST ${ROOT}/images/generate`);
  const { uid, token } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "10");
  const { canvas, url } = await makeBoard("Refused", [text("Moved", 0, 0)], token);
  await openBoard(page, url, token);
  const isAt = (y: number) => until(canvas, `the node is at ${y}`, (graph) => titled(graph, "Moved")?.position.y === y, token);
  await node(page, "Moved").click();
  for (const y of [1, 2]) {
    await page.keyboard.press("ArrowDown");
    await isAt(y);
  }
  await page.keyboard.press("Control+z");
  await isAt(1);
  const start = await prepare(page, "Images");
  await panel(page).getByLabel("Spend at most").fill("0");
  await start.click();
  await panel(page).getByRole("alert").waitFor();
  await until(canvas, "nothing is left of the start", ({ nodes }) => nodes.length === 1, token);
  const history = page.getByRole("group", { name: "History" });
  await history.getByRole("button", { name: "Redo" }).click();
  await isAt(2);
  for (const y of [1, 0]) {
    await history.getByRole("button", { name: "Undo" }).click();
    await isAt(y);
  }
  assert.equal((await read(canvas, token)).nodes.length, 1);
});
