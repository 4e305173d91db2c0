/** The board for people who use no mouse, or do not see it. */
import assert from "node:assert/strict";

import type { Locator, Page } from "playwright-core";

import { box, description, inView, node, openBoard, ROOT, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, makeBoard, makeCanvas, type Node, read, runAction, send, stranger } from "./service.ts";

const selected = (page: Page) => page.locator(".react-flow__node.selected").evaluateAll((nodes) => nodes.map((node) => /\w+, /.exec(`${node.getAttribute("aria-label")}, `)?.[0].slice(0, -2)).toSorted());
const focused = (page: Page) => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));

scene("several nodes are selected by keyboard, on the board and in the outline", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Several", ["One", "Two", "Three", "Four"].map((title, index) => text(title, index * 300, 0)));
  await apply(canvas, [{ type: "connection.create", fromNodeId: ids["One"], toNodeId: ids["Four"], purpose: "list" }]);
  await openBoard(page, url);
  await node(page, "One").waitFor();
  await page.getByRole("application", { name: "Board" }).focus();
  const reach = async (name: string) => {
    for (let step = 0; step < 10 && !(await focused(page))?.startsWith(name); step += 1) await page.keyboard.press("Tab");
    assert.match((await focused(page)) ?? "", new RegExp(`^${name}`));
  };
  await reach("Text One");
  await becomes(() => selected(page), ["One"]);
  await reach("Text Two");
  await becomes(() => selected(page), ["Two"], "Tab takes the selection along");
  await page.keyboard.press("Control+ ");
  await page.getByText("1 thing selected. Tab keeps the selection").waitFor();
  await reach("Text Three");
  await becomes(() => selected(page), ["Two"]);
  await reach("Text Four");
  await page.keyboard.press("Control+ ");
  await becomes(() => selected(page), ["Four", "Two"]);
  assert.match((await focused(page)) ?? "", /, selected$/);
  await page.keyboard.press("Shift+Tab");
  await becomes(() => selected(page), ["Four", "Two"], "Tab drops no selection of several");
  await isAccessible();
  await reach("Text Four");
  await page.keyboard.press("Control+ ");
  await becomes(() => selected(page), ["Two"]);
  await page.keyboard.press("Escape");
  await becomes(() => selected(page), []);

  await page.keyboard.press("o");
  const tree = page.getByRole("tree");
  const rows = () => tree.getByRole("treeitem", { selected: true }).evaluateAll((rows) => rows.map((row) => row.textContent));
  await tree.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+ArrowDown");
  await page.keyboard.press("Shift+ArrowDown");
  await becomes(rows, ["One", "Two"], "a connection between them is passed over");
  await page.keyboard.press("Shift+ArrowUp");
  await becomes(rows, ["One"]);
  await page.keyboard.press("Control+End");
  await page.keyboard.press("Control+ ");
  await becomes(rows, ["One", "Four"]);
  await tree.getByText("Two").click({ modifiers: ["Control"] });
  await becomes(rows, ["One", "Two", "Four"]);
  await tree.getByText("Four", { exact: true }).click({ modifiers: ["Shift"] });
  await becomes(rows, ["Two", "Three", "Four"]);
  await isAccessible();
  await page.keyboard.press("Delete");
  await until(canvas, "three are deleted", ({ nodes }) => nodes.length === 1);
});

scene("nodes that are gone are no longer selected", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Fewer", [text("One", 0, 0), text("Two", 400, 0)]);
  await openBoard(page, url);
  await node(page, "One").click();
  await node(page, "Two").click({ modifiers: ["Shift"] });
  const said = page.getByRole("status").getByText(/things? selected/);
  await becomes(() => said.textContent(), "2 things selected");
  await apply(canvas, [{ type: "node.delete", nodeId: ids["Two"] }]);
  await becomes(() => said.textContent(), "1 thing selected");
  await page.locator(".react-flow__resize-control.handle").first().waitFor();
  await page.keyboard.press("n");
  await page.getByLabel("Text of Note").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+z");
  await until(canvas, "the note is undone", ({ nodes }) => nodes.length === 1);
  await becomes(() => said.count(), 0);
});

scene("a connection is reached with Tab, told, changed and deleted", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const image = (title: string, x: number) => ({ title, type: "image", position: { x, y: 0 }, width: 240, height: 240 });
  const { canvas, ids, url } = await makeBoard("Lines", [image("Sketch", 0), image("Hero", 600)]);
  await apply(canvas, [{ type: "connection.create", fromNodeId: ids["Sketch"], toNodeId: ids["Hero"], purpose: "reference", role: "style" }]);
  await openBoard(page, url);
  const line = (use: string) => page.getByRole("button", { name: `Connection from Sketch to Hero${use}` });
  await line(", guides it: same style").focus();
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Tab");
  assert.equal(await focused(page), "Connection from Sketch to Hero, guides it: same style");
  await page.keyboard.press("Enter");
  await page.getByRole("menu", { name: "Change the purpose" }).waitFor();
  await isAccessible();
  await page.getByRole("menuitem", { name: "Comes from" }).press("Enter");
  await until(canvas, "the purpose is changed", ({ connections }) => connections[0]?.purpose === "flow");
  await becomes(() => focused(page), "Connection from Sketch to Hero", "the line has the keyboard again");
  await page.keyboard.press("Delete");
  const after = await until(canvas, "the connection is deleted", ({ connections }) => connections.length === 0);
  assert(titled(after, "Sketch") && titled(after, "Hero"));
});

scene("what happens on the canvas is told in regions that were there before", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, target, url } = await makeCanvas("Told");
  const agent = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", agent.email, "--role", "editor");
  await openBoard(page, url);
  const regions = await page.getByRole("status").count();
  await runAction(canvas, target);
  await page.getByRole("status").getByText("“Result” is ready.").waitFor();
  await isAccessible();
  await apply(canvas, [{ type: "node.move", nodeId: target, position: { x: 400, y: 300 } }], agent.token);
  await page.getByRole("status").getByText("browser test").waitFor();
  assert.equal(await page.getByRole("status").count(), regions);
  await page.getByRole("button", { name: "Hide this message" }).press("Enter");
  await becomes(() => focused(page), "Board");
});

scene("the keyboard stays on its node out of view, and on the board when there is no node", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Kept", [text("Here", 0, 0), ...Array.from({ length: 60 }, (_, index) => text(`row ${index}`, 0, 400 + index * 300))]);
  await openBoard(page, url);
  await page.getByRole("button", { name: "Outline" }).click();
  await page.keyboard.press("1");
  await page.getByRole("treeitem", { name: "Text Here" }).dblclick();
  await node(page, "Here").focus();
  const { x, y } = await inView(page);
  await page.mouse.move(x, y);
  for (let step = 0; step < 8; step += 1) await page.mouse.wheel(0, 3000);
  await node(page, "row 39").waitFor();
  await becomes(async () => (await focused(page))?.startsWith("Text Here"), true, "its node is out of view");
  await page.keyboard.press("ArrowDown");
  await until(canvas, "it is moved", (graph) => titled(graph, "Here")?.position.y === 1);
  await page.keyboard.press("0");
  await becomes(() => page.locator(".react-flow__node").count(), 0);
  await becomes(() => focused(page), "Board", "from far away");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("row 20");
  await page.keyboard.press("Enter");
  await becomes(async () => (await focused(page))?.startsWith("Text row 20"), true, "the palette gives the keyboard to a node");
  await page.keyboard.press("Delete");
  await until(canvas, "it is deleted", (graph) => titled(graph, "row 20") === undefined);
  await becomes(() => focused(page), "Board", "the node is deleted");
  await page.getByRole("tree").focus();
  await page.keyboard.press("End");
  await page.keyboard.press("Delete");
  await until(canvas, "the last is deleted", (graph) => titled(graph, "row 59") === undefined);
  await becomes(() => focused(page), "Outline of the canvas");
});

scene("an image that failed says why, in its node and to a screen reader", async ({ page, guest, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, target, url } = await makeCanvas("Refused");
  const { models } = await send<{ models: { handle: string; provider: string; capabilities: string[] }[] }>("GET", "/models?limit=100");
  const model = models.find(({ provider, capabilities }) => provider === "openai" && capabilities.includes("image.generate"))?.handle;
  await apply(canvas, [{ type: "node.create", node: { type: "video", title: "Later", position: { x: 400, y: 500 } } }]);
  await openBoard(page, url);
  const { revision } = await read(canvas);
  const start = { canvasId: canvas.id, baseRevision: revision, idempotencyKey: crypto.randomUUID(), targetNodeIds: [target], prompt: "a boat [[sim:content]]", model };
  const { run } = await send<{ run: string }>("POST", "/images/generate", start);
  const failed = node(page, "Image Result, failed");
  await failed.getByText("The provider refused the request.").waitFor();
  assert.equal(await description(failed), "The provider refused the request.");
  await node(page, "Video Later, empty").waitFor();
  await page.getByRole("status").getByText("“Result” failed.").waitFor();
  await isAccessible();

  // A run is told only to who started it.
  const friend = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  const other = await guest();
  let asked = 0;
  other.on("request", (request) => (asked += Number(/\/runs\//.test(request.url()))));
  expect(`404 GET ${ROOT}/runs/${encodeURIComponent(run)}`);
  await openBoard(other, url, friend.token);
  await node(other, "Image Result, failed").getByText("Failed").waitFor();
  for (const key of ["1", "-", "-", "-", "-", "-", "-", "-", "0"]) await other.keyboard.press(key);
  await node(other, "Image Result, failed").getByText("Failed").waitFor();
  assert.equal(asked, 1);
});

scene("what is done with a control leaves the keyboard beside it", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Untitled", [text("One", 0, 0), text("Two", 400, 0)]);
  await openBoard(page, url);
  const words = () => page.locator(":focus").textContent();
  await page.getByRole("button", { name: "Untitled" }).press("Enter");
  await page.keyboard.type("Autumn");
  await page.keyboard.press("Escape");
  await becomes(words, "Untitled");
  await page.keyboard.press("Enter");
  await page.keyboard.type("Spring");
  await page.keyboard.press("Enter");
  await becomes(words, "Spring");
  await until(canvas, "it has a name", ({ title }) => title === "Spring");

  await node(page, "Two").focus();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menu", { name: "Selection" }).waitFor();
  await page.keyboard.press("Escape");
  await becomes(async () => (await focused(page))?.startsWith("Text Two"), true, "the menu gives the keyboard back");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("Duplicate");
  await page.keyboard.press("Enter");
  await until(canvas, "it is duplicated", ({ nodes }) => nodes.length === 3);
  await becomes(async () => (await focused(page))?.startsWith("Text Two"), true, "the palette gives the keyboard back");
  assert.match((await focused(page)) ?? "", /(?<!, selected)$/, "the copy is selected");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("One");
  await page.getByRole("option", { name: "One text", exact: true }).click();
  await becomes(async () => (await focused(page))?.startsWith("Text One"), true, "the palette gives the keyboard to what it has found");
  await becomes(() => selected(page), ["One"]);
});

scene("the outline says where a row is, and keeps its place", async ({ page, expect }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Rows", Array.from({ length: 60 }, (_, index) => text(`n${index + 1}`, 0, index * 200)));
  await openBoard(page, url);
  await page.keyboard.press("o");
  const tree = page.getByRole("tree");
  const row = (of: string) => tree.evaluate((tree, of) => document.getElementById(tree.getAttribute("aria-activedescendant") ?? "")?.getAttribute(of)?.split(",")[0], of);
  await tree.focus();
  await page.keyboard.press("End");
  await becomes(() => row("aria-posinset"), "60");
  assert.equal(await row("aria-setsize"), "60");
  await page.keyboard.press("ArrowLeft");
  await becomes(() => row("aria-selected"), "true");
  assert.equal(await row("aria-label"), "Text n60");
  for (let step = 0; step < 20; step += 1) await page.keyboard.press("ArrowUp");
  await becomes(() => row("aria-label"), "Text n40");
  await page.keyboard.press("Delete");
  await becomes(() => row("aria-label"), "Text n41");
  assert.equal(await row("aria-setsize"), "59");
});

scene("what is chosen and what has the keyboard is seen in the colors of the system", async ({ page, expect }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Contrast", [text("One", 0, 0)]);
  await openBoard(page, url);
  await page.emulateMedia({ forcedColors: "active" });
  const outline = (of: Locator) => of.evaluate((element) => getComputedStyle(element).outlineStyle);
  await node(page, "One").click();
  await page.keyboard.press("Shift+F10");
  await becomes(() => outline(page.locator("[role=menuitem]:focus")), "solid");
  await page.keyboard.press("Escape");
  await becomes(() => outline(node(page, "One").locator("[data-selected]")), "solid");
  await page.keyboard.press("Control+k");
  await becomes(() => outline(page.getByRole("option", { selected: true })), "solid");
  await becomes(() => outline(page.getByRole("combobox")), "solid");
  await page.keyboard.press("Escape");
  await page.keyboard.press("o");
  const row = page.getByRole("treeitem", { name: "Text One", selected: true });
  await becomes(() => row.evaluate((row) => getComputedStyle(row).forcedColorAdjust), "none");
  await page.emulateMedia({ forcedColors: "none" });
});

scene("keys over a dialog and on a summary change nothing on the board", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Behind", [text("Stays", 0, 0, { metadata: { content: "A harbor" } })]);
  await openBoard(page, url);
  await node(page, "Stays").click();
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await keys.getByText("Move the view", { exact: true }).click();
  for (const key of ["Delete", "n", "Escape"]) await page.keyboard.press(key);
  await keys.waitFor({ state: "detached" });
  await page.keyboard.press("w");
  const panel = page.getByRole("complementary", { name: "Recipes" });
  await panel.getByRole("button", { name: /^Storyboard/ }).click();
  await panel.getByText("Model and spending cap").press("Enter");
  await panel.getByLabel("Most credits to spend").waitFor();
  assert.deepEqual((await read(canvas)).nodes.map(({ title }) => title), ["Stays"]);
});

scene("a menu that is opened by keyboard is in the window", async ({ page, expect }) => {
  expect(NOBODY);
  const frame = { type: "sticky", title: "Wide", position: { x: 0, y: 0 }, width: 3000, height: 2000, metadata: { section: true } };
  const { canvas, ids, url } = await makeBoard("Menus", [frame, text("One", 100, 200), text("Two", 600, 200)]);
  await apply(canvas, [{ type: "connection.create", fromNodeId: ids["One"], toNodeId: ids["Two"] }]);
  await openBoard(page, url);
  await page.keyboard.press("o");
  const tree = page.getByRole("tree");
  await tree.getByText("Wide", { exact: true }).click();
  await page.keyboard.press("o");
  await page.keyboard.press("1");
  await page.keyboard.press("Shift+F10");
  assert((await box(page.getByRole("menu"))).x >= 0, "of a Section that begins out of view");
  await page.keyboard.press("Escape");
  await page.setViewportSize({ width: 380, height: 760 });
  await page.keyboard.press("o");
  await tree.press("Home");
  while (!(await tree.locator("[data-current]").textContent())?.startsWith("→")) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  assert((await box(page.getByRole("menu"))).x >= 0, "in a narrow window");
});

scene("a small window hides no tool, and a long title stays in its place for viewers", async ({ page, guest, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("x".repeat(160), [text("Brief", 0, 0)]);
  await openBoard(page, url);
  await page.setViewportSize({ width: 380, height: 760 });
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("menuitem", { name: "Upload images" }).click();
  await chooser;
  const viewer = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", viewer.email, "--role", "viewer");
  const other = await guest();
  await openBoard(other, url, viewer.token);
  const room = async () => {
    const title = await box(other.locator("h1 bdi"));
    const live = await box(other.getByRole("status").getByText("Live", { exact: true }));
    return title.x + title.width <= live.x;
  };
  // The header changes once more when it knows the role.
  await becomes(room, true, "the title ends before what follows it");
});

scene("texts are legible in every color that an agent gives them", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const colored = (type: string, y: number, colors: string[]) =>
    colors.map((color, index) => text(`${type} ${index}`, index * 300, y, { type, metadata: { content: "Words", color } as Node["metadata"] }));
  const { url } = await makeBoard("Colors", [...colored("text", 0, ["#111827", "#ffffff", "#3b82f6", "#6b7280"]), ...colored("sticky", 200, ["#1e3a8a", "#2563eb", "#808080", "#d9534f"])]);
  await openBoard(page, url);
  await node(page, "sticky 3").waitFor();
  await isAccessible();
});

scene("what is opened from a menu has the keyboard, and a panel that is closed by its key gives it back", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Opened", [text("One", 0, 0), text("Two", 400, 0)]);
  await openBoard(page, url);
  const choose = async (name: string) => {
    await page.keyboard.press("Control+a");
    await page.keyboard.press("Shift+F10");
    await page.getByRole("menuitem", { name }).press("Enter");
    // The board takes the keyboard in a later frame, if it does.
    await page.waitForTimeout(300);
  };
  await node(page, "One").focus();
  await choose("Connect the two…");
  await page.getByRole("menu", { name: "Connect as" }).locator(":focus").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Escape");
  await becomes(async () => (await focused(page))?.startsWith("Text One"), true, "the second menu gives the keyboard back");
  await choose("Details");
  await page.getByRole("heading", { name: "Details" }).and(page.locator(":focus")).waitFor();
  await page.keyboard.press("p");
  await page.getByRole("button", { name: "Details", exact: true }).and(page.locator(":focus")).waitFor();
  await page.keyboard.press("p");
  await node(page, "Two").focus();
  await page.keyboard.press("p");
  await page.getByRole("complementary").waitFor({ state: "detached" });
  assert.match((await focused(page)) ?? "", /^Text Two/, "the keyboard was not in the panel");
  assert.deepEqual((await read(canvas)).nodes.map(({ position }) => position.y), [0, 0]);
});

scene("the line with what others did stays while the keyboard is on it, and undoes what it says", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Held", [text("One", 0, 0), text("Two", 400, 0)]);
  const agent = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", agent.email, "--role", "editor");
  await openBoard(page, url);
  const move = (title: string) => apply(canvas, [{ type: "node.move", nodeId: ids[title], position: { x: 0, y: 300 } }], agent.token);
  const isBack = (title: string) => until(canvas, `${title} is back`, (graph) => titled(graph, title)?.position.y === 0);
  const undo = page.getByRole("status").getByRole("button", { name: "Undo" });
  await move("One");
  await undo.focus();
  await move("Two");
  await page.locator(`[data-revision="${(await read(canvas)).revision}"]`).waitFor();
  await page.waitForTimeout(700);
  await undo.and(page.locator(":focus")).press("Enter");
  const { nodes } = await isBack("One");
  assert.equal(nodes.find(({ title }) => title === "Two")?.position.y, 300, "the newer change stays");
  await becomes(() => focused(page), "Board");
  await undo.press("Enter");
  await isBack("Two");
  await becomes(() => focused(page), "Board");
});
