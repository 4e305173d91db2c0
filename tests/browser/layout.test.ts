/** Where things are on the screen: what would overlap, stick out, or look another way elsewhere. The rules that hold everywhere are in geometry.ts. */
import assert from "node:assert/strict";

import type { Locator, Page } from "playwright-core";

import { box, node, openBoard, path, text } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { faultsOf } from "./geometry.ts";
import { apply, type Canvas, makeBoard, png, read, send, stranger } from "./service.ts";

/** Stores images on a canvas, in nodes with these titles. */
async function addImages(canvas: Canvas, titles: string[], token?: string): Promise<void> {
  for (const [index, title] of titles.entries()) {
    const { asset } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(90 + index, 60), token);
    await apply(canvas, [{ type: "node.update", nodeId: asset.node, patch: { title } }, { type: "node.move", nodeId: asset.node, position: { x: index * 400, y: 300 } }], token);
  }
}

/** How the controls of a dialog look. */
const lookOf = (dialog: Locator) =>
  dialog.evaluate((dialog) =>
    ["h2", "[aria-label=Close]", "select", "label:has([type=search])", "[role=gridcell] button", "[role=gridcell] button > span"].map((selector) => {
      const { fontSize, padding, minHeight, display, gap, textAlign } = getComputedStyle(dialog.querySelector(selector) as Element);
      return { selector, fontSize, padding, minHeight, display, gap, textAlign };
    }),
  );

scene("the picker looks the same whatever opens it", async ({ page, expect }) => {
  expect(NOBODY);
  const { token } = await stranger();
  const { canvas, url } = await makeBoard("Callers", [], token);
  await addImages(canvas, ["One"], token);
  await openBoard(page, url, token);
  await page.keyboard.press("g");
  await page.getByRole("form", { name: /^Make/ }).getByRole("button", { name: "Add an image…" }).click();
  const ofReference = page.getByRole("dialog", { name: "Image to make it from" });
  await ofReference.getByRole("gridcell").first().waitFor();
  const expected = await lookOf(ofReference);
  await page.keyboard.press("Escape");
  await node(page, "One").click();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Make an Element…" }).click();
  await page.getByRole("button", { name: "Choose source images" }).click();
  const ofElement = page.getByRole("dialog", { name: "Source images" });
  await ofElement.getByRole("gridcell").first().waitFor();
  assert.deepEqual(await lookOf(ofElement), expected);
});

scene("long titles from right to left are cut off at their end", async ({ page, expect }) => {
  expect(NOBODY);
  const title = "حملة الخريف لمقهى لومن: أكواب وأوعية ودورق من الطين الداكن مع تزجيج بلون الطوب والشوفان، ضوء جانبي دافئ";
  const { canvas, url } = await makeBoard(title, [text(title, 0, 0), { ...text(`${title} ٢`, 0, 200), type: "sticky", width: 500, height: 300, metadata: { section: true } }]);
  await addImages(canvas, [title]);
  await page.setViewportSize({ width: 700, height: 700 });
  await openBoard(page, url);
  await node(page, title).waitFor();
  await becomes(() => page.getByRole("heading", { level: 1 }).locator("button").evaluate((element) => [getComputedStyle(element).direction, element.scrollWidth > element.clientWidth]), ["rtl", true]);
  assert.deepEqual(await faultsOf(page), []);
  await page.getByRole("link", { name: "Canvas Service" }).click();
  await page.getByRole("heading", { level: 2, name: title }).waitFor();
});

scene("names without a space make no panel wider than it is, and numbers are in their order", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Wide", []);
  await addImages(canvas, ["hero_".repeat(30), "cup_".repeat(39)]);
  await page.route("**/models?*", async (route) => {
    const response = await route.fetch();
    const body = (await response.json()) as { models: { parameters: { name: string; options?: unknown[] }[] }[] };
    for (const { parameters } of body.models) for (const { name, options } of parameters) if (name === "durationSeconds") options?.reverse();
    await route.fulfill({ response, json: body });
  });
  await openBoard(page, url);
  await page.keyboard.press("Control+a");
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const make = page.getByRole("complementary", { name: "Make" });
  const isWithin = () => make.evaluate((panel) => panel.scrollWidth <= panel.clientWidth);
  await make.getByRole("group", { name: "Made from 2 images" }).waitFor();
  await becomes(isWithin, true, "images");
  await make.getByLabel("What to make").selectOption("video");
  const seconds = make.getByLabel("Seconds");
  await becomes(isWithin, true, "videos");
  const options = (await seconds.locator("option").allTextContents()).slice(1).map(Number);
  assert(options.length > 1);
  assert.deepEqual(options, options.toSorted((a, b) => a - b));
});

scene("cards and notices lie over no control and over none of each other", async ({ page, expect }) => {
  const { canvas, ids, url } = await makeBoard("Crowded", [text("Brief", 0, 0, { metadata: { content: "one" } }), text("Other", 400, 0)]);
  expect(NOBODY, `409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url);
  await page.route("**/operations", (route) => route.abort());
  await node(page, "Brief").dblclick();
  await page.keyboard.type(`mine ${"without-a-space".repeat(20)}`);
  await page.keyboard.press("Escape");
  await node(page, "Other").click();
  await page.keyboard.press("Delete");
  await page.getByRole("status").getByText(/^[23] changes wait/).waitFor();
  await apply(canvas, [{ type: "node.update", nodeId: ids["Brief"], patch: { metadata: { content: "theirs" } } }]);
  await page.unroute("**/operations");
  await page.getByRole("region", { name: "Conflict" }).waitFor();
  await page.route("**/assets?*", (route) => route.fulfill({ status: 401, json: { error: { code: "unauthorized", message: "The session has ended." } } }));
  expect("401 POST /console/api/canvas-agent/v1/assets");
  await page.getByLabel("Images to upload").setInputFiles(["a", "b"].map((name) => ({ name: `${name.repeat(120)}.png`, mimeType: "image/png", buffer: Buffer.from(png(90, 60)) })));
  await page.getByRole("region", { name: "Uploads" }).getByText("The session has ended.").first().waitFor();
  for (const width of [1440, 1024, 800, 390]) {
    await page.setViewportSize({ width, height: 800 });
    await page.waitForTimeout(200);
    assert.deepEqual(await faultsOf(page), [], `${width} pixels wide`);
  }
  await page.setViewportSize({ width: 1024, height: 800 });
  await page.getByRole("button", { name: "Details", exact: true }).click();
  await page.getByRole("complementary", { name: "Details" }).waitFor();
  assert.deepEqual(await faultsOf(page), [], "beside a panel");
});

const ringOf = (target: Locator) => target.evaluate((element) => getComputedStyle(element).outlineStyle);

scene("the board has a ring when Tab has brought the keyboard there, and not after the key of a command", async ({ page, expect }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Ring", [text("One", 0, 0)]);
  await openBoard(page, url);
  const board = page.getByRole("application", { name: "Board" });
  await page.mouse.click(640, 700);
  await page.keyboard.press("0");
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), "Board");
  assert.equal(await ringOf(board), "none", "after a command");
  for (let turn = 0; turn < 40 && (turn === 0 || !(await board.evaluate((element) => element === document.activeElement))); turn += 1) await page.keyboard.press("Shift+Tab");
  assert.equal(await ringOf(board), "solid", "after Tab");

  await page.getByRole("button", { name: "Ring", exact: true }).click();
  const field = page.getByLabel("Title of the canvas");
  assert.equal(await field.evaluate((element) => getComputedStyle(element).outlineOffset), "-2px", "the ring is inside of the field");
});

scene("the name of the library is beside no control, and goes where there is no room", async ({ page, expect }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Named", [text("One", 0, 0)]);
  await openBoard(page, url);
  const library = page.locator(".react-flow__attribution");
  const zoom = await box(page.getByRole("group", { name: "Zoom" }));
  const { y, x, width } = await box(library);
  assert(y >= zoom.y + zoom.height, "below the buttons for the scale");
  assert(x + width > 1000, "at the right edge");
  await page.setViewportSize({ width: 390, height: 800 });
  await library.waitFor({ state: "hidden" });
});

const nodesOf = (page: Page) => page.locator(".react-flow__node").evaluateAll((all) => all.map((one) => (({ left, top, right, bottom }) => ({ left, top, right, bottom }))(one.getBoundingClientRect())));

scene("what is added by a key covers nothing, wherever the pointer is", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Added", [text("Here", 0, 0), text("Beside", 300, 0)]);
  await openBoard(page, url);
  for (const key of ["n", "t", "i"]) {
    const { x, y, width, height } = await box(node(page, "Here"));
    await page.mouse.move(x + width / 2, y + height / 2);
    await page.keyboard.press(key);
    await page.keyboard.press("Escape");
    await page.keyboard.press("0");
  }
  await becomes(async () => (await read(canvas)).nodes.length, 5);
  await page.waitForTimeout(300);
  const all = await nodesOf(page);
  for (const [index, a] of all.entries()) {
    for (const b of all.slice(index + 1)) assert(a.left >= b.right || b.left >= a.right || a.top >= b.bottom || b.top >= a.bottom, JSON.stringify([a, b]));
  }
});
