/** The board: what a person changes, and what becomes of it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:net";

import type { Locator, Page } from "playwright-core";

import { NOBODY, scene } from "./browser.ts";
import { admin, apply, type Canvas, GATEWAY, type Graph, makeBoard, type Node, person, png, processEnvironment, read, reader, send, stranger, TOKEN } from "./service.ts";
import { isLive, signIn } from "./steps.ts";

const ROOT = "/console/api/canvas-agent/v1";
const path = (canvas: Canvas, of: string) => `${ROOT}/canvases/${encodeURIComponent(canvas.handle)}${of}`;
const node = (page: Page, title: string) => page.locator(`.react-flow__node[aria-label*="${title}"]`).first();
const saved = (page: Page) => page.locator('[data-save="saved"]').waitFor();
const titled = (graph: Graph, title: string) => graph.nodes.find((node) => node.title === title);

/** Waits until the canvas at the service satisfies `holds`. */
async function until(canvas: Canvas, what: string, holds: (graph: Graph & { batches: string[] }) => boolean): Promise<Graph & { batches: string[] }> {
  let graph = await read(canvas);
  for (const start = Date.now(); !holds(graph); graph = await read(canvas)) {
    assert(Date.now() - start < 15_000, `${what}: ${JSON.stringify(graph.nodes.map(({ title, position }) => [title, position.x, position.y])).slice(0, 2000)}`);
    await new Promise((resume) => setTimeout(resume, 50));
  }
  return graph;
}

async function middle(target: Locator): Promise<{ x: number; y: number }> {
  const box = await target.boundingBox();
  assert(box, "it is on the screen");
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}

/** The middle and the name of a node in the middle part of the board. */
async function inView(page: Page): Promise<{ x: number; y: number; name: string }> {
  const found = await page.evaluate(() => {
    for (const node of document.querySelectorAll(".react-flow__node")) {
      const { left, top, width, height } = node.getBoundingClientRect();
      if (left > 300 && left < 800 && top > 250 && top < 600) return { x: left + width / 2, y: top + height / 2, name: node.getAttribute("aria-label") ?? "" };
    }
    return undefined;
  });
  assert(found, "a node is in view");
  return found;
}

async function drag(page: Page, from: { x: number; y: number }, to: { x: number; y: number }): Promise<void> {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move((from.x + to.x) / 2, (from.y + to.y) / 2, { steps: 5 });
  await page.mouse.move(to.x, to.y, { steps: 5 });
  await page.mouse.up();
}

async function dragBy(page: Page, target: Locator, x: number, y: number): Promise<void> {
  const from = await middle(target);
  await drag(page, from, { x: from.x + x, y: from.y + y });
}

/** Signs in and opens the board. */
async function openBoard(page: Page, url: string, token = TOKEN): Promise<void> {
  await signIn(page, token, url);
  await page.getByRole("application", { name: "Board" }).waitFor();
  await isLive(page);
}

const text = (title: string, x: number, y: number, rest: Partial<Node> = {}) => ({ title, position: { x, y }, width: 240, height: 120, ...rest });

scene("nodes are made, written and named by keyboard and by tools", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("From nothing", []);
  await openBoard(page, url);
  await page.getByRole("heading", { name: "This canvas is empty" }).waitFor();
  await isAccessible();
  await page.mouse.move(500, 400);
  await page.keyboard.press("t");
  await page.keyboard.type("A <b>quiet</b> harbor");
  await page.keyboard.press("Escape");
  await page.keyboard.press("F2");
  await page.keyboard.type("Brief");
  await page.keyboard.press("Enter");
  await page.mouse.move(900, 300);
  for (const tool of ["Add a note", "Add an image slot", "Add a video slot"]) {
    await page.getByRole("button", { name: tool }).click();
    await page.keyboard.press("Escape");
  }
  const made = await until(canvas, "all are made", ({ nodes }) => nodes.length === 4);
  assert.deepEqual(made.nodes.map(({ type }) => type).toSorted(), ["image", "sticky", "text", "video"]);
  assert.equal(titled(made, "Brief")?.metadata.content, "A <b>quiet</b> harbor");
  await page.keyboard.press("Control+a");
  await page.keyboard.press("s");
  await page.keyboard.type("All of it");
  await page.keyboard.press("Enter");
  const framed = await until(canvas, "all are in a Section", (graph) => titled(graph, "All of it") !== undefined);
  const section = titled(framed, "All of it");
  assert.equal(framed.nodes.filter(({ metadata }) => metadata.sectionId === section?.id).length, 4);
  await saved(page);
  await isAccessible();
});

scene("a canvas is made, named and found", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const owner = await stranger();
  await signIn(page, owner.token);
  await page.getByRole("heading", { name: "No canvases yet" }).waitFor();
  await isAccessible();
  await page.getByRole("button", { name: "New canvas" }).click();
  await page.getByRole("application", { name: "Board" }).waitFor();
  await page.getByRole("button", { name: "Untitled" }).click();
  await page.getByLabel("Title of the canvas").fill("Spring");
  await page.keyboard.press("Enter");
  await page.mouse.move(600, 400);
  await page.keyboard.press("n");
  await page.keyboard.type("First");
  await page.keyboard.press("Escape");
  await saved(page);
  await page.getByRole("link", { name: "Canvas Service" }).click();
  await page.getByRole("link", { name: /Spring.*1 node/ }).waitFor();
  await page.getByRole("button", { name: "New canvas" }).waitFor();
});

scene("a drag of 200 nodes is one batch, and one undo", async ({ page, expect }) => {
  expect(NOBODY);
  const grid = Array.from({ length: 200 }, (_, index) => text(`n${index}`, (index % 20) * 280, Math.floor(index / 20) * 160));
  const { canvas, url } = await makeBoard("Two hundred", grid);
  await openBoard(page, url);
  await page.keyboard.press("1");
  await page.keyboard.press("Control+a");
  const before = await read(canvas);
  const { x, y } = await inView(page);
  await drag(page, { x, y }, { x: x + 90, y: y + 60 });
  const after = await until(canvas, "all have moved", ({ revision }) => revision !== before.revision);
  assert.equal(after.batches.length, before.batches.length + 1);
  const moves = new Set(after.nodes.map(({ position }, index) => `${position.x - (before.nodes[index]?.position.x ?? 0)},${position.y - (before.nodes[index]?.position.y ?? 0)}`));
  assert.equal(moves.size, 1, "all moved by the same");
  await page.keyboard.press("Control+z");
  const undone = await until(canvas, "all are back", ({ revision }) => revision !== after.revision);
  assert.equal(undone.batches.length, after.batches.length + 1);
  assert.deepEqual(undone.nodes.map(({ position }) => position), before.nodes.map(({ position }) => position));
});

scene("a Section carries its members, and a node joins and leaves it", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const frame = { type: "sticky", title: "Frame", position: { x: 0, y: 0 }, width: 700, height: 420, metadata: { section: true } };
  const { canvas, ids, url } = await makeBoard("Sections", [frame, text("Inside", 60, 120), text("Outside", 800, 120)]);
  await apply(canvas, [{ type: "node.update", nodeId: ids["Inside"], patch: { metadata: { sectionId: ids["Frame"] } } }]);
  await openBoard(page, url);
  await isAccessible();
  const before = await read(canvas);
  await dragBy(page, page.getByText("Frame", { exact: true }).last(), 60, 40);
  const moved = await until(canvas, "the Section has moved", ({ revision }) => revision !== before.revision);
  const by = (title: string) => (titled(moved, title)?.position.x ?? 0) - (titled(before, title)?.position.x ?? 0);
  assert(by("Frame") > 0);
  assert.equal(by("Inside"), by("Frame"));
  assert.equal(by("Outside"), 0);
  await dragBy(page, node(page, "Outside"), -350, 60);
  await until(canvas, "the node has joined", (graph) => titled(graph, "Outside")?.metadata.sectionId === ids["Frame"]);
  await dragBy(page, node(page, "Outside"), 350, 0);
  await until(canvas, "the node has left", (graph) => titled(graph, "Outside")?.metadata.sectionId === undefined);
});

scene("a rectangle selects, corners resize, copies keep their connections", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Gestures", [text("One", 0, 0), text("Two", 400, 0), text("Far", 0, 700)]);
  await apply(canvas, [{ type: "connection.create", fromNodeId: ids["One"], toNodeId: ids["Two"], purpose: "reference" }]);
  await openBoard(page, url);
  const [one, two] = [await node(page, "One").boundingBox(), await node(page, "Two").boundingBox()];
  assert(one && two);
  await drag(page, { x: one.x - 20, y: one.y - 20 }, { x: two.x + two.width / 2, y: two.y + two.height + 20 });
  assert.equal(await page.locator(".react-flow__node.selected").count(), 2);
  await page.keyboard.press("Control+d");
  const copied = await until(canvas, "two are copied", ({ nodes, connections }) => nodes.length === 5 && connections.length === 2);
  assert.deepEqual(copied.connections.map(({ purpose }) => purpose), ["reference", "reference"]);
  await node(page, "Far").click({ position: { x: 20, y: 20 } });
  const before = titled(copied, "Far");
  await dragBy(page, page.locator(".react-flow__resize-control.bottom.right.handle"), 60, 45);
  const resized = await until(canvas, "it is larger", (graph) => (titled(graph, "Far")?.width ?? 0) > (before?.width ?? 0));
  assert(titled(resized, "Far")?.height ?? 0 > 120);
  assert.deepEqual(titled(resized, "Far")?.position, before?.position);
});

scene("nodes are connected for every purpose that is possible", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Connections", [
    { title: "Photo", type: "image", position: { x: 0, y: 0 }, width: 240, height: 240 },
    { title: "Film", type: "video", position: { x: 600, y: 0 }, width: 320, height: 240 },
  ]);
  await openBoard(page, url);
  const purposes = ["Flow", "Reference: Style", "List", "First frame", "Last frame"];
  for (const [index, purpose] of purposes.entries()) {
    await node(page, "Photo").hover({ position: { x: 40, y: 40 } });
    await drag(page, await middle(node(page, "Photo").locator(".react-flow__handle.source")), await middle(node(page, "Film")));
    await page.getByRole("menu", { name: "Connect for" }).waitFor();
    if (index === 0) {
      assert.deepEqual(await page.getByRole("menuitem").allTextContents(), ["Flow", "Reference", "Reference: Identity", "Reference: Construction", "Reference: Texture", "Reference: Fit", "Reference: Style", "List", "First frame", "Last frame"]);
      await isAccessible();
    }
    await page.getByRole("menuitem", { name: purpose, exact: true }).click();
    await until(canvas, purpose, ({ connections }) => connections.length === index + 1);
  }
  const { connections } = await read(canvas);
  assert.deepEqual(connections.map(({ purpose, role }) => (role ? `${purpose} ${role}` : purpose)), ["flow", "reference style", "list", "first-frame", "last-frame"]);
  assert(connections.every(({ fromNodeId, toNodeId }) => fromNodeId === ids["Photo"] && toNodeId === ids["Film"]));
  const { x, y } = await middle(node(page, "Film"));
  await drag(page, await middle(node(page, "Film").locator(".react-flow__handle.source")), { x, y: y + 260 });
  await page.getByRole("menuitem", { name: "Note", exact: true }).click();
  const added = await until(canvas, "a connected note", ({ nodes, connections }) => nodes.length === 3 && connections.length === 6);
  assert.equal(added.connections.at(-1)?.fromNodeId, ids["Film"]);
});

scene("an undo of a deletion brings back pictures, provenance and connections", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Deleted", []);
  const uploads = await Promise.all(
    [1, 2, 3].map((index) => send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(64 + index, 48))),
  );
  const ids = uploads.map(({ asset }) => asset.node);
  await apply(canvas, [{ type: "connection.create", fromNodeId: ids[0], toNodeId: ids[1] }]);
  const before = await read(canvas);
  await openBoard(page, url);
  await page.locator("img").nth(2).waitFor();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await until(canvas, "all are deleted", ({ nodes }) => nodes.length === 0);
  await page.keyboard.press("Control+z");
  const after = await until(canvas, "all are back", ({ nodes, connections }) => nodes.length === 3 && connections.length === 1);
  const byId = ({ nodes }: Graph) => nodes.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  assert.deepEqual(byId(after), byId(before));
  assert.deepEqual(after.connections, before.connections);
  await page.locator("img").nth(2).waitFor();
});

scene("fifty steps are undone and made again", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Fifty steps", [text("Walker", 0, 0)]);
  await openBoard(page, url);
  await node(page, "Walker").click();
  for (let step = 1; step <= 25; step += 1) {
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Control+d");
  }
  const after = await until(canvas, "all steps are saved", ({ nodes }) => nodes.length === 26);
  await saved(page);
  const undo = page.getByRole("button", { name: "Undo", exact: true });
  while (await undo.isEnabled()) await undo.click();
  const undone = await until(canvas, "all steps are undone", ({ nodes }) => nodes.length === 1 && nodes[0]?.position.x === 0);
  assert.deepEqual(titled(undone, "Walker")?.position, { x: 0, y: 0 });
  const redo = page.getByRole("button", { name: "Redo", exact: true });
  while (await redo.isEnabled()) await redo.click();
  const redone = await until(canvas, "all steps are made again", ({ nodes }) => nodes.length === 26);
  const places = ({ nodes }: Graph) => nodes.map(({ id, position }) => `${id} ${position.x} ${position.y}`).toSorted();
  await saved(page);
  assert.equal(places(await read(canvas)).join("\n"), places(after).join("\n"));
  assert(redone.nodes.length === 26);
});

scene("pictures are uploaded by drop, paste and picker", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Uploads", []);
  // Uploads change the canvas while others are placed.
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url);
  const send = (kind: "drop" | "paste", names: string[]) =>
    page.evaluate(
      ({ kind, names, bytes }) => {
        const transfer = new DataTransfer();
        for (const name of names) transfer.items.add(new File([new Uint8Array(bytes)], name, { type: name.endsWith(".png") ? "image/png" : "text/plain" }));
        const target = document.querySelector(".react-flow__pane");
        if (kind === "drop") target?.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true, clientX: 600, clientY: 400 }));
        else target?.dispatchEvent(new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true }));
      },
      { kind, names, bytes: [...png(120, 80)] },
    );
  await send("drop", ["harbor.png", "notes.txt"]);
  await page.getByText("notes.txt: only PNG").waitFor();
  await until(canvas, "the dropped file", (graph) => titled(graph, "harbor.png") !== undefined);
  await send("paste", ["pasted.png"]);
  await until(canvas, "the pasted file", (graph) => titled(graph, "pasted.png") !== undefined);
  const files = Array.from({ length: 8 }, (_, index) => ({ name: `picked ${index}.png`, mimeType: "image/png", buffer: Buffer.from(png(60 + index, 60)) }));
  await page.getByLabel("Pictures to upload").setInputFiles(files);
  const after = await until(canvas, "eight picked files", ({ nodes }) => nodes.length === 10);
  await page.locator("[aria-label=Uploads]").waitFor({ state: "detached" });
  assert(after.nodes.every(({ asset }) => asset !== undefined));
  await page.keyboard.press("0");
  await page.locator("img").nth(9).waitFor();
  await isAccessible();
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await until(canvas, "an upload is undone", ({ nodes }) => nodes.length === 9);
});

scene("every Action is run from its form, and a refusal is explained", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Actions", []);
  for (const size of [96, 80]) await send("POST", `/assets?canvasId=${canvas.handle}`, png(size, 64));
  const { nodes } = await read(canvas);
  await apply(canvas, nodes.map(({ id }, index) => ({ type: "node.update", nodeId: id, patch: { title: index === 0 ? "Photo" : "Logo" } })));
  await openBoard(page, url);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await page.keyboard.press("p");
  const forms: [string, Record<string, string>][] = [
    ["Resize", { Width: "48" }],
    ["Crop", { Width: "32", Height: "32" }],
    ["Change aspect ratio", { Ratio: "1:1" }],
    ["Side by side", {}],
    ["Add text to image", { Text: "Autumn" }],
    ["Overlay image", {}],
    ["Color grade", { Exposure: "1" }],
    ["Rotate", { Degrees: "90" }],
  ];
  const panel = page.getByRole("complementary", { name: "Inspect" });
  const run = panel.getByRole("button", { name: "Run into a new node" });
  const select = async () => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type("Photo");
    await page.getByRole("option", { name: "Photo image", exact: true }).click();
  };
  for (const [index, [action, entries]] of forms.entries()) {
    await select();
    await panel.getByLabel("Make a new picture").selectOption({ label: action });
    for (const [label, value] of Object.entries(entries)) await panel.locator("form").getByLabel(label, { exact: true }).fill(value);
    if (index === 1) await isAccessible();
    await run.click();
    const made = await until(canvas, `${action} has a result`, (graph) => graph.nodes.filter(({ asset }) => asset !== undefined).length === 3 + index);
    assert.equal(made.nodes.filter(({ metadata }) => metadata.provenance !== undefined).length, 3 + index);
    await page.getByText("Made by an Action").waitFor();
  }
  expect(`400 POST ${ROOT}/actions/change-aspect-ratio/runs`);
  await select();
  await panel.getByLabel("Make a new picture").selectOption({ label: "Change aspect ratio" });
  await panel.locator("form").getByLabel("Ratio", { exact: true }).fill("wide");
  await run.click();
  await panel.getByRole("alert").waitFor();
  assert.equal(await panel.locator("[aria-invalid=true]").count(), 1);
  await until(canvas, "the refused start leaves nothing", (graph) => graph.nodes.length === 10);
});

scene("pictures are made from a prompt and references, for the price that is shown", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Made", [text("Brief", 0, 0, { metadata: { content: "A quiet harbor at dawn" } })]);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(96, 96));
  await openBoard(page, url);
  await page.locator("img").first().waitFor();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("g");
  const panel = page.getByRole("complementary", { name: "Make" });
  await panel.getByLabel("Prompt, from “Brief”").waitFor();
  const models = panel.getByRole("combobox").first();
  await models.selectOption((await models.locator("option", { hasText: "Sketch" }).getAttribute("value")) ?? "");
  await panel.locator("fieldset", { hasText: "1 reference" }).getByRole("combobox").selectOption("style");
  await panel.getByText("2", { exact: true }).click();
  await isAccessible();
  await panel.getByRole("button", { name: /^Make · / }).click();
  const after = await until(canvas, "two pictures are made", ({ nodes }) => nodes.filter(({ asset }) => asset !== undefined).length === 3);
  assert.equal(after.nodes.length, 4);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Runs", exact: true }).click();
  const runs = page.getByRole("complementary", { name: "Runs" });
  await runs.getByText("succeeded · 2 of 2").waitFor();
  await isAccessible();
  await runs.getByRole("button", { name: "Show" }).click();
  assert.equal(await page.locator(".react-flow__node.selected").count(), 2);
  assert.deepEqual(
    after.connections.map(({ purpose, role }) => role ?? purpose).toSorted(),
    ["flow", "flow", "style", "style"],
  );
});

scene("changes that were not sent survive a reload", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Reloaded", [text("Kept", 0, 0)]);
  await openBoard(page, url);
  await page.route("**/operations", (route) => route.abort());
  await node(page, "Kept").click();
  await page.keyboard.press("Control+d");
  await page.keyboard.press("F2");
  await page.keyboard.type("Renamed copy");
  await page.keyboard.press("Enter");
  await page.getByRole("status").getByText("2 changes wait").waitFor();
  await page.reload();
  await node(page, "Renamed copy").waitFor();
  assert.equal((await read(canvas)).nodes.length, 1);
  await page.unroute("**/operations");
  await page.getByRole("button", { name: "Try now" }).click();
  const after = await until(canvas, "the changes are saved", (graph) => titled(graph, "Renamed copy") !== undefined);
  assert.equal(after.nodes.length, 2);
  await saved(page);
});

scene("what is changed without a network is saved when it is back", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Offline", [text("Here", 0, 0)]);
  // The network of a page is taken away, not that of a worker.
  await page.addInitScript(() => Reflect.deleteProperty(globalThis, "SharedWorker"));
  await openBoard(page, url);
  await page.context().setOffline(true);
  await page.getByRole("status").getByText("Offline").waitFor();
  await node(page, "Here").click();
  await page.keyboard.press("Control+d");
  await page.getByRole("status").getByText("1 change waits").waitFor();
  await isAccessible();
  await apply(canvas, [{ type: "node.create", node: { ...text("Of an agent", 600, 0), type: "text" } }]);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await page.context().setOffline(false);
  const after = await until(canvas, "the change is saved", ({ nodes }) => nodes.length === 3);
  await node(page, "Of an agent").waitFor();
  await saved(page);
  assert.equal(after.nodes.filter(({ title }) => title === "Here").length, 2);
});

scene("a text that two people changed is a person's choice", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Conflict", [text("Brief", 0, 0, { metadata: { content: "one" } })]);
  await openBoard(page, url);
  await page.route("**/operations", (route) => route.abort());
  await node(page, "Brief").dblclick();
  await page.keyboard.type("mine");
  await page.keyboard.press("Escape");
  await page.getByRole("status").getByText("1 change waits").waitFor();
  await apply(canvas, [{ type: "node.update", nodeId: ids["Brief"], patch: { metadata: { content: "theirs" } } }]);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await page.unroute("**/operations");
  const card = page.getByRole("region", { name: "Conflict" });
  await card.getByText("theirs", { exact: true }).waitFor();
  await isAccessible();
  await card.getByRole("button", { name: "Keep both" }).click();
  const after = await until(canvas, "both are kept", ({ nodes }) => nodes.length === 2);
  assert.deepEqual(after.nodes.map(({ metadata }) => metadata.content).toSorted(), ["mine", "theirs"]);
  await card.waitFor({ state: "detached" });
});

scene("two people and an agent change one canvas, and all see the same", async ({ page, guest, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Together", Array.from({ length: 12 }, (_, index) => text(`n${index}`, (index % 4) * 300, Math.floor(index / 4) * 180)));
  expect(`409 POST ${path(canvas, "/operations")}`);
  const other = await guest();
  const friend = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  await openBoard(page, url);
  await openBoard(other, url, friend.token);
  let isOver = false;
  const agent = (async () => {
    for (let turn = 0; !isOver; turn += 1) {
      const nodeId = ids[`n${turn % 12}`];
      await apply(canvas, [
        { type: "node.move", nodeId, position: { x: (turn % 4) * 300 + turn, y: 700 + turn } },
        { type: "node.create", node: { type: "sticky", title: `agent ${turn}`, position: { x: 1400, y: turn * 20 }, width: 100, height: 100 } },
      ]);
    }
    return true;
  })();
  const people = [page, other].map(async (one, index) => {
    for (let turn = 0; turn < 12; turn += 1) {
      await one.keyboard.press("Escape");
      await one.mouse.move(300 + turn * 20, 300 + index * 200);
      await one.keyboard.press("n");
      await one.keyboard.type(`person ${index} ${turn}`);
      await one.keyboard.press("Escape");
      await one.keyboard.press("Shift+ArrowDown");
      if (turn % 4 === 3) await one.keyboard.press("Control+z");
    }
  });
  await Promise.all(people);
  isOver = true;
  await agent;
  for (const one of [page, other]) await saved(one);
  const graph = await until(canvas, "everything is there", ({ nodes }) => nodes.filter(({ metadata }) => metadata.content?.startsWith("person")).length === 24);
  const texts = graph.nodes.flatMap(({ metadata }) => metadata.content ?? []);
  assert.equal(new Set(texts).size, texts.length, "nothing twice");
  const expected = graph.nodes.map(({ id }) => id).toSorted();
  for (const one of [page, other]) {
    await one.locator(`[data-revision="${(await read(canvas)).revision}"]`).waitFor();
    await one.keyboard.press("o");
    await one.getByRole("tree").waitFor();
    await one.getByRole("tree").evaluate((tree) => ((tree as HTMLElement).style.height = "9000px"));
    await one.waitForFunction((count) => document.querySelectorAll("[role=treeitem]").length === count, expected.length);
  }
});

scene("a gateway that is killed during a drag loses nothing", async ({ page, expect, permit }) => {
  expect(NOBODY);
  const { canvas, ids } = await makeBoard("Killed", [text("Dragged", 0, 0), text("Still", 400, 0)]);
  const gateway = await ownGateway();
  permit(gateway.url);
  try {
    await signIn(page, TOKEN, `${gateway.url}/c/${canvas.ownerUid}/${canvas.id}`);
    await isLive(page);
    const from = await middle(node(page, "Dragged"));
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    await page.mouse.move(from.x + 30, from.y + 60, { steps: 4 });
    await gateway.kill();
    await page.mouse.move(from.x + 60, from.y + 120, { steps: 4 });
    await page.mouse.up();
    await page.getByRole("status").getByText("1 change waits").waitFor();
    await gateway.start();
    const after = await until(canvas, "the drag is saved", (graph) => (titled(graph, "Dragged")?.position.y ?? 0) > 0);
    assert.equal(after.batches.length, 2);
    assert.equal(titled(after, "Still")?.id, ids["Still"]);
    await saved(page);
  } finally {
    await gateway.kill();
  }
});

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0));
    });
  });

/** A gateway of a case's own, on the service's stores. */
async function ownGateway(): Promise<{ url: string; start: () => Promise<void>; kill: () => Promise<void> }> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  let child: ReturnType<typeof spawn> | undefined;
  const kill = async () => {
    const ended = child && child.exitCode === null && child.signalCode === null ? new Promise((resolve) => child?.once("exit", resolve)) : undefined;
    child?.kill("SIGKILL");
    await ended;
  };
  const start = async () => {
    child = spawn(GATEWAY, ["serve"], { env: { ...processEnvironment(), CANVAS_LISTEN: `127.0.0.1:${port}`, CANVAS_ADMIN_LISTEN: `127.0.0.1:${adminPort}`, CANVAS_PUBLIC_URL: url }, stdio: "ignore" });
    for (const begin = Date.now(); ; ) {
      if ((await fetch(`http://127.0.0.1:${adminPort}/readyz`).catch(() => undefined))?.ok) return;
      assert(Date.now() - begin < 20_000, "the gateway is ready");
      await new Promise((resume) => setTimeout(resume, 100));
    }
  };
  await start().catch(async (error: unknown) => {
    await kill();
    throw error;
  });
  return { url, start, kill };
}

scene("what an agent does is told, shown and undone", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Agent", [text("One", 0, 0), text("Two", 400, 0)]);
  const agent = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", agent.email, "--role", "editor");
  await openBoard(page, url);
  await apply(canvas, ["One", "Two"].map((title, index) => ({ type: "node.move", nodeId: ids[title], position: { x: index * 400, y: 900 } })), agent.token);
  await page.getByText("browser test").waitFor();
  await isAccessible();
  await page.getByRole("button", { name: "Show", exact: true }).click();
  assert.equal(await page.locator(".react-flow__node.selected").count(), 2);
  await page.getByRole("button", { name: "Undo", exact: true }).last().click();
  const after = await until(canvas, "the move is undone", ({ nodes }) => nodes.every(({ position }) => position.y === 0));
  assert.equal(after.nodes.length, 2);
});

scene("everything is done by keyboard, with the outline and the palette", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Keys", [text("First", 0, 0), text("Second", 400, 0), text("Third", 800, 0)]);
  await openBoard(page, url);
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await isAccessible();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("first");
  await isAccessible();
  await page.keyboard.press("Enter");
  await page.locator('.react-flow__node.selected[aria-label*="First"]').waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("second");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("menu", { name: "Connect for" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  const connected = await until(canvas, "they are connected", ({ connections }) => connections.length === 1);
  assert.deepEqual([connected.connections[0]?.fromNodeId, connected.connections[0]?.toNodeId, connected.connections[0]?.purpose], [ids["First"], ids["Second"], "reference"]);
  await page.keyboard.press("Escape");
  await page.keyboard.press("o");
  await page.getByRole("tree", { name: "Outline of the canvas" }).focus();
  await isAccessible();
  await page.keyboard.press("End");
  await page.keyboard.press("F2");
  await page.keyboard.type("Third, renamed");
  await page.keyboard.press("Enter");
  await until(canvas, "it is renamed", (graph) => titled(graph, "Third, renamed") !== undefined);
  await page.getByRole("tree").focus();
  await page.keyboard.press("Delete");
  await until(canvas, "it is deleted", ({ nodes }) => nodes.length === 2);
  await page.keyboard.press("Control+z");
  await until(canvas, "it is back", ({ nodes }) => nodes.length === 3);
});

scene("a viewer and a token that may only read see the canvas and no tools", async ({ page, guest, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Looked at", [text("Only", 0, 0)]);
  const viewer = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", viewer.email, "--role", "viewer");
  for (const [one, token] of [[page, viewer.token], [await guest(), await reader()]] as const) {
    await signIn(one, token, url);
    await one.getByRole("img", { name: /Drawing of Looked at/ }).waitFor();
    assert.equal(await one.getByRole("toolbar").count(), 0);
  }
});

scene("a role that is withdrawn during work ends it, and says so", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Withdrawn", [text("Shared", 0, 0)]);
  const friend = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  await openBoard(page, url, friend.token);
  expect(`403 POST ${path(canvas, "/operations")}`);
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "viewer");
  await node(page, "Shared").click();
  await page.keyboard.press("Control+d");
  await page.getByRole("alert").getByText("You can no longer change this canvas. 1 change of yours was not saved.").waitFor();
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  await page.getByRole("button", { name: "Try again" }).click();
  await until(canvas, "the change is saved", ({ nodes }) => nodes.length === 2);
});

scene("of ten thousand nodes, only those in view are rendered", async ({ page, expect }) => {
  expect(NOBODY);
  const grid = Array.from({ length: 10_000 }, (_, index) => text(`n${index}`, (index % 100) * 280, Math.floor(index / 100) * 160));
  const { canvas, url } = await makeBoard("Ten thousand", grid);
  await signIn(page);
  const start = Date.now();
  await page.goto(url);
  await page.getByRole("application", { name: "Board" }).waitFor();
  console.log(`10000 nodes are interactive after ${Date.now() - start} ms`);
  await isLive(page);
  assert.equal(await page.locator(".react-flow__node").count(), 0, "from far away, nothing is rendered");
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Escape");
  await page.keyboard.press("1");
  await page.locator(".react-flow__node").first().waitFor();
  assert((await page.locator(".react-flow__node").count()) < 200);
  const { x, y, name } = await inView(page);
  await page.mouse.click(x, y);
  await page.keyboard.press("Shift+ArrowUp");
  const title = /n\d+/.exec(name)?.[0] ?? "";
  const before = grid.find((node) => node.title === title)?.position.y ?? 0;
  await until(canvas, "one of them is moved", (graph) => titled(graph, title)?.position.y === before - 64);
  assert.equal(person.uid, canvas.ownerUid);
});
