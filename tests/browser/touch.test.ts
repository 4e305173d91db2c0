/** Phones and tablets: what a finger and a pen do, and what a narrow window shows. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { env } from "node:process";

import type { Locator, Page } from "playwright-core";

import { box, middle, node, openBoard, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { apply, makeBoard, type Node, png, read, send } from "./service.ts";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };
const TABLET = { viewport: { width: 1024, height: 768 }, hasTouch: true, isMobile: true };
/** Above all that is on the boards of these cases. */
const NOTHING = { x: 195, y: 84 };

type At = { x: number; y: number };

const bar = (page: Page) => page.getByRole("toolbar", { name: /^What to do with/ });
const item = (page: Page, name: string) => bar(page).getByRole("button", { name, exact: true });
const row = (page: Page) => page.getByRole("toolbar", { name: "Tools" });
const sheet = (page: Page) => page.getByRole("menu").or(page.getByRole("dialog"));
const entry = (page: Page, name: string) => sheet(page).getByRole("menuitem", { name, exact: true });
const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", `touch-${name}.png`) });

/** The fingers of a person at this page. */
async function fingersAt(page: Page) {
  const devtools = await page.context().newCDPSession(page);
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...touchPoints: At[]) => devtools.send("Input.dispatchTouchEvent", { type, touchPoints: touchPoints.map(({ x, y }, id) => ({ x, y, id })) });
  const along = (from: At, to: At, step: number) => ({ x: from.x + ((to.x - from.x) * step) / 6, y: from.y + ((to.y - from.y) * step) / 6 });
  const move = async (...ways: [from: At, to: At][]) => {
    // One finger is always down before the other.
    for (const count of ways.keys()) await touch("touchStart", ...ways.slice(0, count + 1).map(([from]) => from));
    for (let step = 1; step <= 6; step += 1) {
      await touch("touchMove", ...ways.map(([from, to]) => along(from, to, step)));
      await page.waitForTimeout(20);
    }
    await touch("touchEnd");
  };
  const tap = async (at: At) => {
    await touch("touchStart", at);
    await touch("touchEnd");
  };
  const hold = async (at: At) => {
    await touch("touchStart", at);
    await page.waitForTimeout(600);
    await touch("touchEnd");
  };
  const tapOn = async (target: Locator) => {
    await bringIn(target);
    await tap(await middle(target));
  };
  const pen = async (...[from, to]: [At, At]) => {
    const send = (type: "mousePressed" | "mouseMoved" | "mouseReleased", { x, y }: At) => devtools.send("Input.dispatchMouseEvent", { type, x, y, button: "left", buttons: type === "mouseReleased" ? 0 : 1, clickCount: 1, pointerType: "pen" });
    await send("mousePressed", from);
    for (let step = 1; step <= 6; step += 1) await send("mouseMoved", along(from, to, step));
    await send("mouseReleased", to);
  };
  return { tap, hold, move, tapOn, pen };
}

/** A node of each kind that needs no model, and a connection. */
async function studio(name: string) {
  const { asset } = await send<{ asset: { handle: string } }>("POST", "/assets", png(320, 240));
  const image = (title: string, x: number): Partial<Node> & { title: string } => ({ type: "image", title, position: { x, y: 0 }, width: 320, height: 268, asset: asset.handle });
  const board = await makeBoard(name, [
    image("Hero", 0),
    image("Cup", 400),
    { type: "image", title: "Slot", position: { x: 0, y: 320 }, width: 320, height: 268 },
    text("Brief", 400, 320, { width: 320, height: 268, metadata: { content: "Warm light." } }),
    { type: "sticky", title: "Frame", position: { x: 0, y: 640 }, width: 720, height: 320, metadata: { section: true } },
    text("Inside", 40, 720, { metadata: { sectionId: "Frame", content: "A member." } }),
  ]);
  await apply(board.canvas, [{ type: "connection.create", fromNodeId: board.ids["Hero"], toNodeId: board.ids["Cup"], purpose: "flow" }]);
  return board;
}

const selected = (page: Page) => page.locator(".react-flow__node.selected").count();
const isStill = (page: Page) => becomes(() => page.locator("[data-moving]").count(), 0);

async function openPhone(page: Page, url: string): Promise<void> {
  await openBoard(page, url);
  await node(page, "Brief").waitFor();
  await isStill(page);
}

/** Scrolls a row or list to a control. */
const bringIn = (control: Locator) => control.evaluate((element) => element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" }));

/** Whether a control is as large as a finger, and is what a finger hits there. */
async function isReached(control: Locator): Promise<void> {
  await bringIn(control);
  const { width, height } = await box(control);
  const name = (await control.getAttribute("aria-label")) ?? (await control.textContent()) ?? "";
  assert(width >= 44 && height >= 44, `${name} is ${width} × ${height}`);
  const isHit = await control.evaluate((element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    return element.contains(document.elementFromPoint(left + width / 2, top + height / 2));
  });
  assert(isHit, `${name} is hit`);
}

const KINDS: [titles: string[], among: string[]][] = [
  [["Hero"], ["Edit", "Variations", "Format", "Crop", "Text", "Download", "Rename", "Connect…", "Duplicate", "Lock", "Delete"]],
  [["Hero", "Cup"], ["Edit each", "Format", "Actions", "Use in Make", "Arrange", "Section", "Duplicate", "Delete"]],
  [["Slot"], ["Make", "Upload into it", "Rename", "Connect…", "Delete"]],
  [["Brief"], ["Make from this", "Smaller letters", "Larger letters", "Lines", "Edit the text", "Connect…", "Delete"]],
  [["Frame"], ["Tidy", "Fit to its members", "Color", "Select the members", "Delete"]],
  [["Hero", "Brief"], ["Arrange", "Section", "Use in Make", "Delete"]],
];

scene("all that can be done with a selection is reached by touch alone", async ({ guest, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await studio("By touch");
  const page = await guest(PHONE);
  await openPhone(page, url);
  const { tap, hold, tapOn } = await fingersAt(page);
  const at = (title: string) => (title === "Frame" ? middle(page.getByText(title, { exact: true }).last()) : middle(node(page, title)));

  for (const [titles, among] of KINDS) {
    await tap(NOTHING);
    await becomes(() => selected(page), 0);
    for (const [index, title] of titles.entries()) await (index === 0 && titles.length > 1 ? hold(await at(title)) : tap(await at(title)));
    await becomes(() => selected(page), titles.length, titles.join());
    const buttons = bar(page).getByRole("button");
    const labels = await buttons.evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
    assert.deepEqual(among.filter((name) => !labels.includes(name)), [], titles.join());
    for (const button of await buttons.all()) {
      await isReached(button);
      if ((await button.getAttribute("aria-haspopup")) === null) continue;
      await tap(await middle(button));
      await sheet(page).waitFor();
      for (const one of await sheet(page).getByRole("menuitem").or(sheet(page).locator("label")).all()) await isReached(one);
      await tap(NOTHING);
      await sheet(page).waitFor({ state: "detached" });
      assert.equal(await selected(page), titles.length, "a tap beside a sheet only closes it");
    }
    await shot(page, titles.join("-"));
    if (titles.length > 1) await tapOn(page.getByRole("button", { name: "Done" }));
  }

  await tap(NOTHING);
  const [hero, cup] = [await box(node(page, "Hero")), await box(node(page, "Cup"))];
  await tap({ x: (hero.x + hero.width + cup.x) / 2, y: hero.y + (hero.height * 120) / 268 });
  await item(page, "Change the purpose…").waitFor();
  for (const button of await bar(page).getByRole("button").all()) await isReached(button);
  await tapOn(item(page, "Delete"));
  await until(canvas, "the connection is deleted", ({ connections }) => connections.length === 0);

  // A second tap says what is connected, and a sheet asks for what.
  await tap(await at("Hero"));
  await tapOn(item(page, "Connect…"));
  await page.getByText("Choose what to connect").waitFor();
  await tap(await at("Slot"));
  await sheet(page).waitFor();
  await shot(page, "purpose");
  const { y, height } = await box(sheet(page));
  assert.equal(Math.round(y + height), PHONE.viewport.height, "a sheet at the bottom edge");
  await tapOn(page.getByRole("menuitem").nth(1));
  await until(canvas, "it is connected", ({ connections }) => connections.some(({ fromNodeId, toNodeId }) => fromNodeId === ids["Hero"] && toNodeId === ids["Slot"]));

  // A second tap on a text writes, and on a place opens the sheet that fills it.
  await tap(NOTHING);
  await tap(await at("Brief"));
  await page.waitForTimeout(400);
  await tap(await at("Brief"));
  await page.locator("textarea:focus").waitFor();
  await page.keyboard.type(" At noon.");
  await tap(NOTHING);
  await until(canvas, "it is written", (graph) => /noon/.test(titled(graph, "Brief")?.metadata.content ?? ""));
  await tap(NOTHING);
  await becomes(() => selected(page), 0);
  await tap(await at("Slot"));
  await page.waitForTimeout(400);
  await tap(await at("Slot"));
  const make = page.getByRole("complementary", { name: "Make" });
  await make.locator("textarea:focus").waitFor();
  await shot(page, "make");
  const place = await box(make);
  assert.deepEqual([place.x, place.y, place.width, place.height], [0, 0, 390, 844], "it is a sheet over all");
  await tapOn(make.getByRole("button", { name: /^Close/ }));
  await make.waitFor({ state: "detached" });

  // Two taps delete.
  await tap(NOTHING);
  await tap(await at("Cup"));
  await tapOn(item(page, "Delete"));
  await until(canvas, "it is deleted", (graph) => titled(graph, "Cup") === undefined);
}, 180);

scene("a finger that rests on a node selects several, and taps, drags and pens do the rest", async ({ guest, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Held", [text("One", 0, 0), text("Two", 320, 0), text("Three", 0, 220), text("Four", 320, 220)]);
  const page = await guest(PHONE);
  await openBoard(page, url);
  await node(page, "Four").waitFor();
  await isStill(page);
  const { tap, hold, move, tapOn, pen } = await fingersAt(page);
  const at = (title: string) => middle(node(page, title));
  const view = () => box(node(page, "One"));
  const { revision } = await read(canvas);

  // What is not selected is moved with the view.
  const before = await view();
  const one = await at("One");
  await move([one, { x: one.x + 4, y: one.y + 60 }]);
  await isStill(page);
  const after = await view();
  assert(Math.abs(after.y - before.y - 60) < 16 && Math.abs(after.width - before.width) < 1, JSON.stringify([before, after]));
  assert.equal(await selected(page), 0);

  await hold(await at("One"));
  await page.getByText("1 selected").waitFor();
  assert.equal(await sheet(page).count(), 0, "no menu opens");
  await tap(await at("Two"));
  await tap(await at("Three"));
  await page.getByText("3 selected").waitFor();
  await shot(page, "several");
  await tap(await at("Two"));
  await page.getByText("2 selected").waitFor();
  await tap(NOTHING);
  await page.getByText("2 selected").waitFor();
  // On the plane, one finger draws a rectangle, and two move the view.
  const four = await box(node(page, "Four"));
  await move([{ x: four.x + four.width + 8, y: four.y + four.height + 30 }, { x: four.x + four.width / 2, y: four.y + four.height / 2 }]);
  await page.getByText("3 selected").waitFor();
  const [left, right] = [{ x: 100, y: 620 }, { x: 280, y: 620 }];
  const { width } = await view();
  await move([left, { x: 60, y: 620 }], [right, { x: 330, y: 620 }]);
  await becomes(async () => (await view()).width > width * 1.1, true, "two fingers zoom");
  await page.getByText("3 selected").waitFor();
  await isStill(page);
  await tapOn(page.getByRole("button", { name: "Done" }));
  await page.getByText("3 selected").waitFor({ state: "detached" });
  assert.equal(await selected(page), 3, "what was selected stays so");
  assert.equal((await read(canvas)).revision, revision, "nothing has moved");

  // A tap selects one again, and a drag of what is selected moves it.
  await tap(await at("One"));
  await becomes(() => selected(page), 1);
  const from = await at("One");
  await move([from, { x: from.x + 50, y: from.y - 70 }]);
  await until(canvas, "it is moved", (graph) => (titled(graph, "One")?.position.y ?? 0) < -50);
  await shot(page, "moved");
  await tap(NOTHING);

  // A pen is a mouse: on the plane it draws a rectangle, and it moves what it is on.
  const three = await box(node(page, "Three"));
  await pen({ x: three.x + three.width + 12, y: three.y + three.height + 12 }, { x: three.x + three.width - 30, y: three.y + 20 });
  await becomes(() => page.locator(".react-flow__node.selected").getAttribute("aria-label").then((label) => label?.includes("Three")), true);
});

scene("a phone shows the board, a header of one row and one row of tools", async ({ guest, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await studio("Small");
  const page = await guest(PHONE);
  await openPhone(page, url);
  const { tapOn } = await fingersAt(page);
  const share = await page.evaluate(() => {
    let board = 0;
    for (let x = 5; x < innerWidth; x += 10) for (let y = 5; y < innerHeight; y += 10) if (document.elementFromPoint(x, y)?.closest(".react-flow")) board += 1;
    return board / (Math.ceil((innerWidth - 5) / 10) * Math.ceil((innerHeight - 5) / 10));
  });
  assert(share >= 0.75, `${Math.round(share * 100)} % of the screen is the board`);
  await becomes(() => row(page).getByRole("button").allTextContents(), ["Add", "Make", "Pictures", "Queue", "More"]);
  for (const button of await row(page).getByRole("button").all()) await isReached(button);
  for (const gone of ["Zoom in", "Redo", "Share"]) assert.equal(await page.getByRole("button", { name: gone, exact: true }).filter({ visible: true }).count(), 0, gone);
  for (const scheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await shot(page, `phone-${scheme}`);
  }
  await tapOn(row(page).getByRole("button", { name: "More" }));
  await shot(page, "more");
  await tapOn(entry(page, "Share"));
  await page.getByRole("dialog", { name: /^Access to/ }).waitFor();
  await shot(page, "share");
  const dialog = await box(page.getByRole("dialog"));
  assert.equal(Math.round(dialog.y + dialog.height), 844);
  await tapOn(page.getByRole("dialog").getByRole("button", { name: "Close" }));
  await tapOn(row(page).getByRole("button", { name: "Add" }));
  await tapOn(entry(page, "Add a note"));
  await page.locator("textarea:focus").waitFor();
  await until(canvas, "a note is there", ({ nodes }) => nodes.length === 7);
  for (let step = 0; step < 2; step += 1) await page.keyboard.press("Escape");
  await becomes(() => bar(page).count(), 0);

  // The keyboard covers a part of the window: a sheet ends above it.
  await tapOn(row(page).getByRole("button", { name: "Make" }));
  const make = page.getByRole("complementary", { name: "Make" });
  await make.waitFor();
  await page.evaluate(() => {
    Object.defineProperty(visualViewport, "height", { value: 500, configurable: true });
    visualViewport?.dispatchEvent(new Event("resize"));
  });
  await becomes(async () => Math.round((await box(make)).height), 500);
  await shot(page, "keyboard");
  await make.getByLabel("What to make").first().or(make.locator("textarea")).first().waitFor();
});

scene("what is started in the sheet of a phone is seen being made", async ({ guest, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Made on a phone", []);
  const page = await guest(PHONE);
  await openBoard(page, url);
  const { tapOn } = await fingersAt(page);
  await page.getByText("Add or make something below.").waitFor();
  await shot(page, "empty");
  await tapOn(row(page).getByRole("button", { name: "Make" }));
  const make = page.getByRole("complementary", { name: "Make" });
  await make.locator("textarea").first().fill("A quiet harbor");
  await tapOn(make.getByRole("button", { name: /^Make( \d)? · / }));
  await make.waitFor({ state: "detached" });
  await becomes(() => page.locator(".react-flow__node").count(), 1);
  await until(canvas, "it is made", ({ nodes }) => nodes.some(({ asset }) => asset !== undefined));
});

scene("a tablet has the tools of a wide window, and the bar of the selection at its bottom edge", async ({ guest, expect }) => {
  expect(NOBODY);
  const { url } = await studio("Tablet");
  const page = await guest(TABLET);
  await openPhone(page, url);
  const { tap, hold } = await fingersAt(page);
  await row(page).waitFor();
  await tap(await middle(node(page, "Hero")));
  await bar(page).waitFor();
  const { x, y, width, height } = await box(bar(page));
  assert.deepEqual([Math.round(x), Math.round(width), Math.round(y + height)], [0, 1024, 768]);
  const corners = page.locator(".react-flow__node.selected .react-flow__resize-control.handle");
  const size = await corners.first().evaluate((corner) => {
    const { left, top, width } = corner.getBoundingClientRect();
    const isCorner = (x: number, y: number) => document.elementFromPoint(x, y)?.closest(".handle") === corner;
    const [middleX, middleY] = [left + width / 2, top + width / 2];
    return [isCorner(middleX - 20, middleY), isCorner(middleX, middleY - 20)];
  });
  assert.deepEqual(size, [true, true], "a corner is 44 pixels wide for a finger");
  await shot(page, "tablet");
  await hold(await middle(node(page, "Cup")));
  await page.getByText("2 selected").waitFor();
  await shot(page, "tablet-several");
});
