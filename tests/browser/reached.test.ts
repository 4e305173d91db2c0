/** What could not be loaded or sent while the service could not be reached goes on by itself when it can. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

import { openBoard, text, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { makeBoard, png, send, stranger } from "./service.ts";

/** Parts of the console that load something, how a person opens them on a board, and what is shown when it is there. */
const PARTS: [name: string, open: (page: Page) => Promise<unknown>, shown: (page: Page) => Promise<unknown>][] = [
  ["the Actions", (page) => page.keyboard.press("p"), (page) => page.getByLabel("Make a new image").waitFor()],
  ["the models", (page) => page.keyboard.press("g"), (page) => page.getByRole("form", { name: /^Make/ }).getByLabel("Model", { exact: true }).waitFor()],
  ["the Recipes", (page) => page.keyboard.press("w"), (page) => page.getByRole("button", { name: /^Storyboard/ }).waitFor()],
  ["the assets", (page) => page.keyboard.press("a"), (page) => page.getByRole("complementary", { name: "Pictures" }).getByRole("gridcell").first().waitFor()],
  ["the runs", (page) => page.keyboard.press("r"), (page) => page.getByRole("complementary", { name: "Queue" }).getByText("Nothing was started on this canvas").waitFor()],
  ["the members", (page) => page.getByRole("button", { name: /^Share/ }).click(), (page) => page.getByRole("dialog").getByText(/@/).first().waitFor()],
  ["the list of canvases", (page) => page.getByRole("link", { name: "Canvas Service" }).click(), (page) => page.getByRole("heading", { level: 2, name: "Away" }).first().waitFor()],
];

scene("what was opened without a network is there when the network is, without a click", async ({ page, open, expect }) => {
  expect(NOBODY);
  // An account of its own: that of the other cases has so many sign-ins that its oldest session may end meanwhile.
  const { token } = await stranger();
  const { canvas, url } = await makeBoard("Away", [], token);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(90, 60), token);
  await openBoard(page, url, token);
  const pages = [page];
  while (pages.length < PARTS.length) {
    const next = await open();
    await next.goto(url);
    await next.locator(".react-flow__node").first().waitFor();
    pages.push(next);
  }
  for (const one of pages) await one.keyboard.press("Control+a");
  await page.context().setOffline(true);
  for (const [index, [, go]] of PARTS.entries()) await go(pages[index] as Page);
  // The attempts of a first read take eight seconds.
  await pages[1]?.getByRole("button", { name: "Try again" }).first().waitFor();
  await page.waitForTimeout(3000);
  await page.context().setOffline(false);
  await Promise.all(PARTS.map(([name, , shown], index) => shown(pages[index] as Page).catch((error: unknown) => assert.fail(`${name}: ${String(error)}`))));
  for (const one of pages) await becomes(() => one.getByRole("button", { name: "Try again" }).count(), 0);
}, 180);

scene("a file that could not be sent is sent when the network is back", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Sent later", [text("Here", 0, 0)]);
  await openBoard(page, url);
  let isAway = true;
  // The pauses between the attempts are too long to wait for: a refusal that names no time ends them.
  await page.clock.install();
  await page.route("**/assets?*", (route) => (isAway ? route.abort() : route.continue()));
  await page.getByLabel("Images to upload").setInputFiles({ name: "harbor.png", mimeType: "image/png", buffer: Buffer.from(png(90, 60)) });
  const list = page.getByRole("region", { name: "Uploads" });
  for (let turn = 0; turn < 40 && !(await list.getByRole("button", { name: "Try again" }).isVisible()); turn += 1) await page.clock.runFor(5000);
  await list.getByText("The service cannot be reached.").waitFor();
  await page.clock.resume();
  isAway = false;
  await page.evaluate(() => dispatchEvent(new Event("online")));
  await until(canvas, "the file is there", ({ nodes }) => nodes.some(({ asset }) => asset !== undefined));
});
