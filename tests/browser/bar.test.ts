/** The bar of the selection: what it has, where it is, and how it is reached. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { env } from "node:process";

import type { Page } from "playwright-core";

import { box, node, openBoard, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, makeBoard, type Node, png, read, send, stranger } from "./service.ts";

const bar = (page: Page) => page.getByRole("toolbar", { name: /^What to do with/ });
const button = (page: Page, name: string) => bar(page).getByRole("button", { name, exact: true });
const labels = (page: Page) => bar(page).getByRole("button").evaluateAll((buttons) => buttons.map((button) => button.getAttribute("aria-label") ?? ""));
const menu = (page: Page) => page.getByRole("menuitem").evaluateAll((items) => items.map((item) => item.firstChild?.textContent ?? ""));
const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", `bar-${name}.png`) });

const upload = async (width: number, height: number) => (await send<{ asset: { handle: string } }>("POST", "/assets", png(width, height))).asset.handle;

/** A node of each kind. */
async function pieces() {
  const asset = await upload(320, 240);
  const image = (title: string, x: number): Partial<Node> & { title: string } => ({ type: "image", title, position: { x, y: 0 }, width: 320, height: 268, asset });
  return [
    image("Hero", 0),
    image("Cup", 400),
    { type: "image", title: "Slot", position: { x: 800, y: 0 }, width: 320, height: 268 },
    text("Brief", 0, 400, { metadata: { content: "Warm light." } }),
    { type: "sticky", title: "Frame", position: { x: 400, y: 400 }, width: 500, height: 320, metadata: { section: true } },
    text("Inside", 460, 500, { metadata: { sectionId: "Frame" } }),
  ];
}

async function select(page: Page, ...titles: string[]): Promise<void> {
  await page.keyboard.press("Escape");
  // A window that has just become wider is fitted anew.
  await page.waitForTimeout(300);
  await page.keyboard.press("0");
  for (const [at, title] of titles.entries()) {
    const isSection = title === "Frame";
    await (isSection ? page.getByText(title, { exact: true }).last() : node(page, title)).click({ ...(at > 0 && { modifiers: ["Shift"] }), ...(!isSection && { position: { x: 20, y: 20 } }) });
  }
}

/** What opens others. */
const OPENERS = ["Arrange", "Lines", "Color", "Mark", "Export", "Actions"];
const KINDS: [titles: string[], bar: string[]][] = [
  [["Hero"], ["Edit", "Variations", "Format", "Crop", "Text", "Favorite", "Download", "Delete", "More"]],
  [["Hero", "Cup"], ["Edit each", "Format", "Text", "Actions", "Use in Make", "Compare", "Arrange", "Section", "Download", "Delete", "More"]],
  [["Slot"], ["Upload into it", "Choose an image…", "Delete", "More"]],
  [["Brief"], ["Make from this", "Smaller letters", "Larger letters", "Lines", "Fit to its text", "Delete", "More"]],
  [["Frame"], ["Tidy", "Fit to its members", "Present", "Export", "Color", "Select the members", "Delete", "More"]],
  [["Hero", "Brief", "Inside"], ["Arrange", "Section", "Use in Make", "Download", "Delete", "More"]],
];

scene("every selection has a bar, and all of it is in the menu, the palette, the list of keys and the bar of touch screens, too", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  await page.setViewportSize({ width: 1440, height: 900 });
  const { canvas, ids, url } = await makeBoard("Bars", await pieces());
  await apply(canvas, [{ type: "connection.create", fromNodeId: ids["Brief"], toNodeId: ids["Hero"], purpose: "flow" }]);
  await openBoard(page, url);
  await page.keyboard.press("0");
  for (const [titles, expected] of KINDS) {
    // In a narrow window the view has moved, and in a wide one the selection can be out of it.
    await page.keyboard.press("Escape");
    await page.keyboard.press("0");
    await select(page, ...titles);
    await becomes(() => labels(page), expected);
    await becomes(() => page.locator("[data-moving]").count(), 0);
    await shot(page, titles.join("-"));
    await button(page, "More").click();
    const all = [...expected.filter((name) => name !== "More" && name !== "Delete"), ...(await menu(page)), "Delete"];
    await page.keyboard.press("Escape");
    await page.keyboard.press("Shift+F10");
    await becomes(() => menu(page), all);
    const opened: string[] = [];
    for (const name of OPENERS.filter((name) => all.includes(name))) {
      await page.getByRole("menuitem", { name, exact: true }).click();
      await page.getByRole("menu", { name, exact: true }).waitFor();
      opened.push(...(await menu(page)));
      await page.keyboard.press("Escape");
      await page.keyboard.press("Shift+F10");
    }
    await page.keyboard.press("Escape");
    const leaves = [...all.filter((name) => !OPENERS.includes(name)), ...opened];
    await page.keyboard.press("Control+k");
    const found = await page.getByRole("option").locator("bdi").allTextContents();
    // Two are commands without a selection, too, and have a longer name there.
    assert.deepEqual(leaves.filter((name) => !found.includes(name)), []);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    // In the Prompt of a slot, a question mark is a letter.
    if (titles.includes("Slot")) await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    const keys = await page.getByRole("dialog").locator("dt").allTextContents();
    const shared = ["Section", "Details", "Recipes"];
    // The list does not know what is selected.
    const listed = all.map((name) => (name === "Edit each" ? "Edit" : name));
    assert.deepEqual(listed.filter((name) => !keys.includes(name) && !shared.includes(name)), []);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.setViewportSize({ width: 390, height: 844 });
    // On a phone the Prompt is a sheet, which an item opens.
    await becomes(async () => (await labels(page)).filter((name) => name !== "Make"), all);
    await page.setViewportSize({ width: 1440, height: 900 });
    await becomes(() => bar(page).getAttribute("data-touch"), null);
  }
  await isAccessible();
  await page.keyboard.press("Escape");
  await page.locator(".react-flow__edge").first().focus();
  await becomes(() => labels(page), ["Change the purpose…", "Turn it around", "Delete"]);
  await isAccessible();
  await button(page, "Turn it around").click();
  await until(canvas, "it leads the other way", ({ connections }) => connections[0]?.fromNodeId === ids["Hero"]);
  await button(page, "Delete").click();
  await until(canvas, "it is gone", ({ connections }) => connections.length === 0);
  await becomes(() => bar(page).count(), 0);
});

scene("an image is cropped, formatted, downloaded and deleted with two interactions, in windows of all sizes", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const asset = await upload(320, 240);
  const { canvas, url } = await makeBoard("Two interactions", ["A", "B", "C"].map((title, at) => ({ type: "image", title: `Image ${title}`, position: { x: at * 400, y: 0 }, width: 320, height: 268, asset })));
  await openBoard(page, url);
  for (const [at, width] of [1440, 1024, 390].entries()) {
    const title = `Image ${"ABC"[at]}`;
    await page.setViewportSize({ width, height: width === 390 ? 844 : 800 });
    // The board takes on the size of the window in a later frame.
    await becomes(async () => {
      await page.keyboard.press("0");
      const { x, width: across } = await box(node(page, title));
      return x > 0 && x + across < width;
    }, true);
    await select(page, title);
    await button(page, "Crop").click();
    await page.getByRole("region", { name: "Crop and turn" }).getByRole("spinbutton", { name: "Width" }).waitFor();
    await page.keyboard.press("Escape");
    await select(page, title);
    await button(page, "Format").click();
    await page.getByRole("dialog", { name: "Format" }).getByRole("checkbox", { name: "4:5" }).waitFor();
    await page.keyboard.press("Escape");
    await select(page, title);
    const download = page.waitForEvent("download");
    await button(page, "Download").click();
    assert.match((await download).suggestedFilename(), new RegExp(title));
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await shot(page, `${width}-${scheme}`);
    }
    await isAccessible();
    await button(page, "Delete").click();
    await until(canvas, "it is deleted", (graph) => titled(graph, title) === undefined);
  }
});

scene("at 1024 pixels the bar has icons with names, and what has no room is behind its last button", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Narrow", await pieces());
  await page.setViewportSize({ width: 1000, height: 760 });
  await openBoard(page, url);
  await select(page, "Hero");
  await becomes(() => labels(page), ["Edit", "Variations", "Format", "Crop", "Text", "Favorite", "Download", "Delete", "More"]);
  assert.equal(await button(page, "Crop").getByText("Crop").isVisible(), false);
  await isAccessible();
  await page.setViewportSize({ width: 1100, height: 760 });
  await page.keyboard.press("p");
  await page.setViewportSize({ width: 760, height: 760 });
  await becomes(async () => (await labels(page)).length < 9, true, "beside a panel there is less room");
  const all = await labels(page);
  assert.equal(all.at(-1), "More");
  const [place, stage] = [await box(bar(page)), await box(page.getByRole("application", { name: "Board" }))];
  assert(place.x + place.width <= stage.x + stage.width);
  await button(page, "More").click();
  assert((await menu(page)).includes("Download"));
});

scene("the bar covers no selection at the edges, nor far away, and goes while the view moves", async ({ page, expect }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Edges", [text("Left", 0, 0), text("Right", 1600, 0), text("Top", 800, -400), text("Bottom", 800, 900)]);
  await openBoard(page, url);
  const covers = async (title: string) => {
    const [one, other] = [await box(bar(page)), await box(node(page, title))];
    return one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;
  };
  await page.keyboard.press("0");
  for (const title of ["Left", "Right", "Top", "Bottom"]) {
    await select(page, title);
    assert.equal(await covers(title), false, title);
  }
  await select(page, "Left");
  await page.keyboard.press("1");
  await page.mouse.move(600, 400);
  for (const [x, y] of [[400, 0], [0, 500], [-900, 0], [0, -1000]] as const) {
    await page.mouse.wheel(x, y);
    if ((await node(page, "Left").count()) > 0) assert.equal(await covers("Left"), false);
    const [place, stage] = [await box(bar(page)), await box(page.getByRole("application", { name: "Board" }))];
    assert(place.x >= stage.x && place.y >= stage.y && place.x + place.width <= stage.x + stage.width && place.y + place.height <= stage.y + stage.height);
  }
  await page.keyboard.press("0");
  for (let step = 0; step < 12; step += 1) await page.keyboard.press("-");
  await becomes(() => page.locator(".react-flow__node").count(), 0);
  await becomes(() => labels(page), ["Make from this", "Smaller letters", "Larger letters", "Lines", "Delete", "More"]);
  await page.keyboard.press("0");
  await select(page, "Left");
  const { x, y } = await box(node(page, "Left"));
  await page.mouse.move(x + 20, y + 40);
  await page.mouse.down();
  await page.mouse.move(x + 80, y + 80, { steps: 4 });
  await becomes(() => bar(page).count(), 0, "a drag hides it");
  await page.mouse.up();
  await bar(page).waitFor();
});

scene("Alt F10 and Ctrl period go into the bar, arrows through it, and Escape back to the node", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Keys", [text("One", 0, 0), text("Two", 400, 0)]);
  await openBoard(page, url);
  await node(page, "One").click();
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  for (const key of ["Alt+F10", "Control+."]) {
    await page.keyboard.press(key);
    await becomes(focused, "Make from this");
    await page.keyboard.press("ArrowRight");
    await becomes(focused, "Smaller letters");
    await page.keyboard.press("End");
    await becomes(focused, "More");
    await page.keyboard.press("ArrowRight");
    await becomes(focused, "Make from this");
    await page.keyboard.press("Escape");
    await becomes(async () => (await focused())?.startsWith("Text One"), true);
  }
  await page.keyboard.press("Control+.");
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowDown");
  await page.getByRole("menu", { name: "Selection" }).locator(":focus").waitFor();
  await isAccessible();
  await page.keyboard.press("Escape");
  await becomes(focused, "More");
  await page.keyboard.press("Enter");
  await page.getByRole("menuitem", { name: "Duplicate" }).press("Enter");
  await until(canvas, "it is duplicated", ({ nodes }) => nodes.length === 3);
  await bar(page).waitFor();
  // Without a press of the pointer, Tab reaches it after the nodes.
  await node(page, "Two").focus();
  for (let step = 0; step < 6 && (await bar(page).locator(":focus").count()) === 0; step += 1) await page.keyboard.press("Tab");
  assert.equal(await bar(page).locator(":focus").count(), 1);
});

scene("a viewer has what changes nothing", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Read only", []);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(320, 240));
  const [image] = (await read(canvas)).nodes;
  const viewer = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", viewer.email, "--role", "viewer");
  await openBoard(page, url, viewer.token);
  await select(page, image?.title ?? "");
  await becomes(() => labels(page), ["Download", "More"]);
  await button(page, "More").click();
  assert.deepEqual(await menu(page), ["Look", "Export", "Show the selection", "Details"]);
  await isAccessible();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Delete");
  assert.equal((await read(canvas)).nodes.length, 1);
});
