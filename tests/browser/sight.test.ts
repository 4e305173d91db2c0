/** What is worked on stays in sight and in reach, whatever is shown beside it. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { env } from "node:process";

import type { Locator, Page } from "playwright-core";

import { box, middle, node, openBoard, path, ROOT, text, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { ownGateway } from "./processes.ts";
import { admin, apply, BASE_URL, makeBoard, png, read, send, stranger } from "./service.ts";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

const bar = (page: Page) => page.getByRole("toolbar", { name: /^What to do with/ });
const prompt = (page: Page) => page.getByRole("form", { name: /^Make/ });
const stage = (page: Page) => page.locator("[data-on-stage]");
const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", `sight-${name}.png`) });
const touches = (a: { x: number; y: number; width: number; height: number }, b: typeof a) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
const isStill = (page: Page) => becomes(() => page.locator("[data-moving]").count(), 0);

/** A board of an account with credit, with images of this size in a row. */
async function boardWith(name: string, titles: string[], [width, height]: [number, number] = [400, 300], gap = 40) {
  const { uid, token } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "50");
  const { canvas, url } = await makeBoard(name, [], token);
  for (const [at, title] of titles.entries()) {
    const { asset } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(width + at, height), token);
    await apply(canvas, [{ type: "node.update", nodeId: asset.node, patch: { title } }, { type: "node.move", nodeId: asset.node, position: { x: at * (320 + gap), y: 0 } }], token);
  }
  return { canvas, url, token };
}

scene("a click with Shift adds what lies below the bar, which does nothing then", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Below the bar", ["Left", "Middle", "Right"]);
  const { nodes } = await read(canvas, token);
  const of = (title: string) => nodes.find((one) => one.title === title)?.id;
  // The bar of the first is over the second.
  await apply(canvas, [{ type: "node.move", nodeId: of("Left"), position: { x: 0, y: 400 } }, { type: "node.move", nodeId: of("Middle"), position: { x: 0, y: 110 } }], token);
  await openBoard(page, url, token);
  await page.keyboard.press("0");
  await node(page, "Left").click();
  await becomes(async () => touches(await box(bar(page)), await box(node(page, "Middle"))), true);
  const at = await middle(bar(page));
  await page.keyboard.down("Shift");
  await becomes(() => bar(page).evaluate((element) => getComputedStyle(element).pointerEvents), "none");
  await page.mouse.click(at.x, at.y);
  await page.keyboard.up("Shift");
  await becomes(() => page.locator(".react-flow__node.selected").count(), 2);
  await becomes(() => stage(page).count(), 0);
  await becomes(() => bar(page).evaluate((element) => getComputedStyle(element).pointerEvents), "auto");
  await isAccessible();
});

scene("Delete is in the bar of every selection, and last in its menu, whose groups are apart", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Delete", ["One", "Two"]);
  await apply(canvas, [{ type: "node.create", node: { ...text("Words", 0, 400), type: "text" } }], token);
  await page.setViewportSize({ width: 1440, height: 900 });
  await openBoard(page, url, token);
  await page.keyboard.press("0");
  for (const title of ["One", "Words"]) {
    await node(page, title).click();
    await bar(page).getByRole("button", { name: "Delete" }).waitFor();
  }
  await node(page, "One").click({ button: "right" });
  const items = page.getByRole("menuitem");
  assert.match((await items.last().textContent()) ?? "", /^Delete/);
  const last = await box(items.last());
  assert(last.y + last.height <= 900, "it is seen in a menu that is too long, too");
  assert(await page.locator("[role=menuitem][data-first]").count() > 2);
  await isAccessible();
  await shot(page, "menu");
  await page.keyboard.press("Escape");
  await node(page, "One").click();
  await bar(page).getByRole("button", { name: "Delete" }).click();
  await until(canvas, "it is deleted", ({ nodes }) => nodes.every(({ title }) => title !== "One"), token);
});

scene("what is added where there is no room is shown, and its Prompt beside it", async ({ page, expect }) => {
  expect(NOBODY);
  const rows = Array.from({ length: 12 }, (_, at) => text(`Note ${at}`, (at % 4) * 280, Math.floor(at / 4) * 160));
  const { url } = await makeBoard("Full", rows);
  await page.setViewportSize({ width: 1024, height: 700 });
  await openBoard(page, url);
  await page.keyboard.press("0");
  await page.keyboard.press("i");
  const slot = page.locator(".react-flow__node-image");
  await slot.waitFor();
  await prompt(page).waitFor();
  await isStill(page);
  const own = await box(slot);
  assert(own.x >= 76 && own.x + own.width <= 1024 && own.y >= 56 && own.y + own.height <= 700 - 76, `the place is in view: ${JSON.stringify(own)}`);
  await shot(page, "added");
});

scene("the Prompt that is opened for an image does not cover it", async ({ page, expect }) => {
  expect(NOBODY);
  const { url, token } = await boardWith("Not covered", ["Hero"]);
  for (const [width, height] of [[1440, 900], [1024, 700]] as const) {
    await page.setViewportSize({ width, height });
    if (width === 1440) await openBoard(page, url, token);
    await node(page, "Hero").click();
    await page.keyboard.press("2");
    await isStill(page);
    await bar(page).getByRole("button", { name: "Edit", exact: true }).click();
    await prompt(page).waitFor();
    await isStill(page);
    await becomes(async () => touches(await box(page.locator("[data-prompt]")), await box(node(page, "Hero"))), false, `${width}`);
    await becomes(async () => touches(await box(bar(page)), await box(node(page, "Hero"))), false, `${width}, its bar`);
    await shot(page, `prompt-${width}`);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
  }
});

scene("Escape closes the Stage while it is fetched", async ({ page, expect }) => {
  expect(NOBODY);
  const { url, token } = await boardWith("Not there yet", ["Photo"]);
  const waiting: (() => void)[] = [];
  await page.route(/\/static\/stage-[^/]*\.js$/, async (route) => {
    await new Promise<void>((resume) => waiting.push(resume));
    await route.continue();
  });
  await openBoard(page, url, token);
  await node(page, "Photo").click();
  await page.keyboard.press("k");
  await becomes(async () => waiting.length > 0, true);
  await page.keyboard.press("Escape");
  for (const resume of waiting) resume();
  await page.waitForTimeout(400);
  assert.equal(await stage(page).count(), 0);
  // The board has its keys again.
  await page.keyboard.press("k");
  await stage(page).waitFor();
  await page.keyboard.press("Escape");
  await becomes(() => stage(page).count(), 0);
});

const width = async (target: Locator) => Math.round((await box(target)).width);

scene("the Stage is zoomed by wheel and keys, a lasso takes what is inside it, and what is painted stays where it is", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { url, token } = await boardWith("Closely", ["Photo"]);
  await page.setViewportSize({ width: 1440, height: 900 });
  await openBoard(page, url, token);
  await node(page, "Photo").click();
  await page.keyboard.press("b");
  const paper = page.locator("[data-paper]");
  await paper.waitFor();
  const whole = await width(paper);
  await page.getByRole("radiogroup", { name: "Brush" }).getByText("Lasso").click();
  const at = await box(paper);
  const share = (x: number, y: number) => ({ x: at.x + at.width * x, y: at.y + at.height * y });
  const way = [share(0.2, 0.2), share(0.6, 0.2), share(0.6, 0.7), share(0.2, 0.7)] as const;
  await page.mouse.move(way[0].x, way[0].y);
  await page.mouse.down();
  for (const { x, y } of way) await page.mouse.move(x, y, { steps: 4 });
  await page.mouse.up();
  const painted = (x: number, y: number) =>
    paper.evaluate((paper: HTMLCanvasElement, [x, y]) => {
      const copy = new OffscreenCanvas(paper.width, paper.height).getContext("2d") as OffscreenCanvasRenderingContext2D;
      copy.drawImage(paper, 0, 0);
      return (copy.getImageData(Math.floor(paper.width * (x ?? 0)), Math.floor(paper.height * (y ?? 0)), 1, 1).data[3] ?? 0) > 127;
    }, [x, y]);
  await becomes(async () => [await painted(0.4, 0.45), await painted(0.1, 0.1), await painted(0.8, 0.5)], [true, false, false]);
  await stage(page).getByText(/20 % may change/).waitFor();

  // The point under the wheel stays.
  const pinned = share(0.25, 0.25);
  await page.mouse.move(pinned.x, pinned.y);
  await page.mouse.wheel(0, -300);
  await becomes(async () => (await width(paper)) > whole * 1.8, true);
  const closer = await box(paper);
  assert(Math.abs((pinned.x - closer.x) / closer.width - 0.25) < 0.01, "the point below the pointer stays");
  // What is painted now is where the pointer is.
  await page.getByRole("radiogroup", { name: "Brush" }).getByText("Eraser").click();
  await page.mouse.click(closer.x + closer.width * 0.25, closer.y + closer.height * 0.25);
  await becomes(() => painted(0.25, 0.25), false);
  await shot(page, "zoomed");
  await isAccessible();
  await page.getByRole("group", { name: "Zoom" }).getByTitle(/^Show it whole/).click();
  await becomes(() => width(paper), whole);
  await page.locator("[data-first]").focus();
  await page.keyboard.press("+");
  await becomes(async () => (await width(paper)) > whole * 1.2, true);
  await page.keyboard.press("0");
  await becomes(() => width(paper), whole);
});

scene("on a phone two fingers zoom the Stage, the sheets reach from edge to edge, and what ends them is in sight", async ({ guest, expect }) => {
  expect(NOBODY);
  const { url, token } = await boardWith("Phone", ["Photo"]);
  const page = await guest(PHONE);
  await openBoard(page, url, token);
  const devtools = await page.context().newCDPSession(page);
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...points: { x: number; y: number }[]) => devtools.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(({ x, y }, id) => ({ x, y, id })) });
  await node(page, "Photo").tap();
  await bar(page).getByRole("button", { name: "Format" }).tap();
  const format = await box(page.getByRole("dialog", { name: "Format" }));
  assert.deepEqual([format.x, format.width, format.y + format.height], [0, 390, 844]);
  await shot(page, "phone-format");
  await page.keyboard.press("Escape");

  await page.keyboard.press("b");
  const paper = page.locator("[data-paper]");
  await paper.waitFor();
  const cancel = await box(stage(page).getByRole("button", { name: "Cancel" }));
  assert(cancel.y + cancel.height <= 844, "Cancel is in sight");
  await shot(page, "phone-mask");
  const whole = await width(paper);
  const { x, y } = await middle(paper);
  await touch("touchStart", { x: x - 40, y });
  await touch("touchStart", { x: x - 40, y }, { x: x + 40, y });
  for (const by of [60, 90, 120]) await touch("touchMove", { x: x - by, y }, { x: x + by, y });
  await touch("touchEnd");
  await becomes(async () => (await width(paper)) > whole * 1.5, true);
  assert.equal(await stage(page).getByText(/may change/).filter({ hasText: "%" }).count(), 0, "the fingers have painted nothing");
  await stage(page).getByRole("button", { name: "Cancel" }).tap();

  await page.keyboard.press("Enter");
  const close = await box(page.getByRole("dialog").getByRole("button", { name: "Close" }));
  assert(close.y < 60 && close.x + close.width > 370, "Close is in the corner");
  await page.getByRole("dialog").getByRole("img", { name: "Photo" }).waitFor();
  await shot(page, "phone-look");
});

scene("a small text shows all lines that have room, and a Recipe what it makes", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const content = "Tableware for autumn: one cup, one bowl, one carafe. Dark clay, brick and oat glazes. Warm side light, dark wood, nothing glossy.";
  const { url } = await makeBoard("Small", [text("Brief", 0, 0, { width: 480, height: 260, metadata: { content } }), text("Far", 2400, 1500)]);
  await page.setViewportSize({ width: 1440, height: 900 });
  await openBoard(page, url);
  await page.keyboard.press("0");
  await isStill(page);
  const words = node(page, "Brief").getByText("Tableware");
  // All of it is there, in letters of 11 pixels and in whole lines.
  await becomes(() => words.evaluate((element) => element.scrollHeight <= element.clientHeight + 1 && element.getBoundingClientRect().height > 4 * 11 * 1.42), true);
  await shot(page, "small-text");
  await page.locator('[data-panel="recipes"]').click();
  const recipes = page.getByRole("complementary", { name: "Recipes" });
  await recipes.getByRole("button", { name: /^Storyboard/ }).locator("img").first().waitFor({ state: "attached" });
  await becomes(() => recipes.locator("li img").evaluateAll((images) => images.some((image) => (image as HTMLImageElement).naturalWidth > 0)), true);
  await shot(page, "recipes");
  await isAccessible();
});

scene("a gateway that is killed in the middle of a batch starts nothing twice", async ({ page, expect, permit, afterwards }) => {
  expect(NOBODY);
  const { canvas, url, token } = await boardWith("Killed", Array.from({ length: 8 }, (_, at) => `Photo ${at + 1}`));
  const gateway = await ownGateway();
  afterwards(gateway.kill);
  permit(gateway.url);
  for (const part of ["/operations", "/changes", "/review", ""]) expect(`503 POST ${path(canvas, part)}`, `503 GET ${path(canvas, part)}`, `409 POST ${path(canvas, part)}`);
  expect(`503 GET ${ROOT}/events`, "503 GET /console/session", `503 POST ${ROOT}/actions/change-aspect-ratio/runs`);
  await openBoard(page, url.replace(BASE_URL, gateway.url), token);
  await node(page, "Photo 1").waitFor();
  await page.keyboard.press("Control+a");
  // The answers to the first starts are lost with the gateway: whether it has taken them, the page does not know.
  let starts = 0;
  await page.route("**/actions/change-aspect-ratio/runs", async (route) => {
    starts += 1;
    if (starts > 3) return route.continue();
    // The gateway can be killed while it answers.
    if (starts < 3) await route.fetch().catch(() => undefined);
    else await gateway.kill();
    await route.abort();
  });
  await bar(page).getByRole("button", { name: "Format" }).click();
  await page.getByRole("dialog", { name: "Format" }).getByRole("checkbox", { name: "1:1", exact: true }).check();
  await page.getByRole("dialog", { name: "Format" }).getByRole("button", { name: "Make 8" }).click();
  await becomes(async () => starts >= 3, true);
  await page.waitForTimeout(1500);
  await gateway.start();
  const made = ({ nodes }: { nodes: { title: string; asset?: string }[] }) => nodes.filter(({ title, asset }) => asset !== undefined && !/^Photo \d$/.test(title));
  const areAllMade = () => until(canvas, "all are made", (graph) => made(graph).length === 8, token);
  // The page waits before it tries again, and so does this case.
  const after = await areAllMade().catch(areAllMade);
  assert.equal(after.nodes.length, 16, "no target is there twice");
  const sources = after.connections.map(({ fromNodeId }) => after.nodes.find(({ id }) => id === fromNodeId)?.title);
  assert.deepEqual(sources.toSorted(), Array.from({ length: 8 }, (_, at) => `Photo ${at + 1}`), "each has one result");
  const { runs } = await send<{ runs: unknown[] }>("GET", `/runs?canvasId=${canvas.handle}&limit=100`, undefined, token);
  assert.equal(runs.length, 8, "each was started once");
}, 150);
