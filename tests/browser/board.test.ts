/** The board: what a person changes, and what becomes of it. */
import assert from "node:assert/strict";

import { box, drag, dragBy, inView, middle, node, openBoard, path, plane, saved, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { apply, type Graph, makeBoard, person, png, read, runAction, send, stranger } from "./service.ts";
import { isLive, signIn } from "./steps.ts";

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
  for (const tool of ["Add a note", "Add a place for an image", "Add a place for a video"]) {
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
  await page.getByRole("button", { name: /^Blank/ }).click();
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
  await page.getByRole("link", { name: /Spring.*1 thing/ }).waitFor();
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
  const [one, two] = [await box(node(page, "One")), await box(node(page, "Two"))];
  await drag(page, { x: one.x - 20, y: one.y - 20 }, { x: two.x + two.width / 2, y: two.y + two.height + 20 });
  await becomes(() => page.locator(".react-flow__node.selected").count(), 2);
  await page.keyboard.press("Control+d");
  const copied = await until(canvas, "two are copied", ({ nodes, connections }) => nodes.length === 5 && connections.length === 2);
  assert.deepEqual(copied.connections.map(({ purpose }) => purpose), ["reference", "reference"]);
  await node(page, "Far").click({ position: { x: 20, y: 20 } });
  const before = titled(copied, "Far");
  await dragBy(page, page.locator(".react-flow__resize-control.bottom.right.handle"), 60, 45);
  const resized = await until(canvas, "it is larger", (graph) => (titled(graph, "Far")?.width ?? 0) > (before?.width ?? 0));
  assert((titled(resized, "Far")?.height ?? 0) > 120);
  assert.deepEqual(titled(resized, "Far")?.position, before?.position);
});

scene("Escape takes back a drag and a resize, whatever the pointer does then", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Taken back", [text("One", 0, 0)]);
  await openBoard(page, url);
  await node(page, "One").click();
  const before = await box(node(page, "One"));
  const { revision } = await read(canvas);
  for (const grip of [node(page, "One"), page.locator(".react-flow__resize-control.bottom.right.handle")]) {
    const { x, y } = await middle(grip);
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x + 80, y + 60, { steps: 5 });
    await becomes(async () => JSON.stringify(await node(page, "One").boundingBox()) === JSON.stringify(before), false);
    await page.keyboard.press("Escape");
    await becomes(() => node(page, "One").boundingBox(), before);
    await page.mouse.move(x + 120, y + 90, { steps: 5 });
    await page.mouse.up();
    await becomes(() => page.locator(".react-flow__node.selected").count(), 1);
    assert.deepEqual(await box(node(page, "One")), before);
  }
  await saved(page);
  assert.equal((await read(canvas)).revision, revision);
  await dragBy(page, node(page, "One"), 60, 40);
  await until(canvas, "the next drag moves it", (graph) => (titled(graph, "One")?.position.x ?? 0) > 0);
});

scene("a selection is copied by the clipboard, and has a menu", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Clipboard", [text("Note", 0, 0, { metadata: { content: "words" } })]);
  await openBoard(page, url);
  await node(page, "Note").click();
  await page.keyboard.press("Control+c");
  await page.mouse.move(900, 600);
  await page.keyboard.press("Control+v");
  const pasted = await until(canvas, "the copy", ({ nodes }) => nodes.length === 2);
  assert(pasted.nodes.every(({ metadata }) => metadata.content === "words"));
  await node(page, "Note").click({ button: "right" });
  await page.getByRole("menu", { name: "Selection" }).waitFor();
  await isAccessible();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await until(canvas, "it is deleted", ({ nodes }) => nodes.length === 1);
  await node(page, "Note").click();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Duplicate" }).press("Enter");
  await until(canvas, "the duplicate", ({ nodes }) => nodes.length === 2);
});

scene("findings are shown, and room is made", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Check", [text("Below", 0, 0), text("Above", 60, 40)]);
  await openBoard(page, url);
  await page.getByRole("button", { name: "Check 1" }).click();
  const panel = page.getByRole("complementary", { name: "Check" });
  await panel.getByRole("button", { name: "Show" }).click();
  await becomes(() => page.locator(".react-flow__node.selected").count(), 2);
  await isAccessible();
  await panel.getByRole("button", { name: "Make room" }).click();
  await until(canvas, "there is room", ({ nodes: [a, b] }) => a !== undefined && b !== undefined && (Math.abs(a.position.x - b.position.x) >= 240 || Math.abs(a.position.y - b.position.y) >= 120));
  await page.getByRole("button", { name: "Check", exact: true }).waitFor();
});

scene("nodes are connected for every purpose that is possible", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Connections", [
    { title: "Photo", type: "image", position: { x: 0, y: 0 }, width: 240, height: 240 },
    { title: "Video", type: "video", position: { x: 600, y: 0 }, width: 320, height: 240 },
  ]);
  await openBoard(page, url);
  const purposes = ["Comes from", "Guides it: same style", "Belongs together", "Begins with", "Ends with"];
  for (const [index, purpose] of purposes.entries()) {
    await node(page, "Photo").hover({ position: { x: 40, y: 40 } });
    await drag(page, await middle(node(page, "Photo").locator(".react-flow__handle.source")), await middle(node(page, "Video")));
    await page.getByRole("menu", { name: "Connect as" }).waitFor();
    if (index === 0) {
      await becomes(() => page.getByRole("menuitem").allTextContents(), ["Comes from", "Guides it", "Guides it: same person or product", "Guides it: same build", "Guides it: same material", "Guides it: same fit", "Guides it: same style", "Belongs together", "Begins with", "Ends with"]);
      await isAccessible();
    }
    await page.getByRole("menuitem", { name: purpose, exact: true }).click();
    await until(canvas, purpose, ({ connections }) => connections.length === index + 1);
  }
  const { connections } = await read(canvas);
  assert.deepEqual(connections.map(({ purpose, role }) => (role ? `${purpose} ${role}` : purpose)), ["flow", "reference style", "list", "first-frame", "last-frame"]);
  assert(connections.every(({ fromNodeId, toNodeId }) => fromNodeId === ids["Photo"] && toNodeId === ids["Video"]));
  const { x, y } = await middle(node(page, "Video"));
  await drag(page, await middle(node(page, "Video").locator(".react-flow__handle.source")), { x, y: y + 260 });
  await page.getByRole("menuitem", { name: "Note", exact: true }).click();
  const added = await until(canvas, "a connected note", ({ nodes, connections }) => nodes.length === 3 && connections.length === 6);
  assert.equal(added.connections.at(-1)?.fromNodeId, ids["Video"]);
});

scene("one undo brings back forty nodes with images, provenance and connections, and leaves what others did since", async ({ page, expect }) => {
  expect(NOBODY);
  const titles = Array.from({ length: 36 }, (_, index) => `n${index}`);
  const { canvas, ids, url } = await makeBoard("Deleted", [...titles.map((title, index) => text(title, (index % 6) * 300, 400 + Math.floor(index / 6) * 160)), text("Stays", 0, 1500)]);
  const uploads = await Promise.all(
    [1, 2, 3].map((index) => send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(64 + index, 48))),
  );
  const images = uploads.map(({ asset }) => asset.node);
  await apply(canvas, [
    ...images.map((nodeId, index) => ({ type: "node.move", nodeId, position: { x: index * 400, y: 0 } })),
    { type: "node.create", clientId: "made", node: { type: "image", title: "Made", position: { x: 1200, y: 0 } } },
    { type: "connection.create", fromNodeId: images[0], toNodeId: "made" },
    ...titles.slice(1).map((title, index) => ({ type: "connection.create", fromNodeId: ids[`n${index}`], toNodeId: ids[title] })),
  ]);
  const target = titled(await read(canvas), "Made")?.id ?? "";
  await runAction({ ...canvas, revision: (await read(canvas)).revision }, target);
  const before = await read(canvas);
  await openBoard(page, url);
  await page.locator("img").nth(3).waitFor();
  await page.keyboard.press("Control+a");
  await node(page, "Stays").click({ modifiers: ["Shift"] });
  await becomes(() => page.getByRole("status").getByText("40 things selected").count(), 1);
  await page.keyboard.press("Delete");
  const gone = await until(canvas, "they are deleted", ({ nodes }) => nodes.length === 1);
  assert.equal(gone.connections.length, 0);
  await apply(canvas, [{ type: "node.update", nodeId: ids["Stays"], patch: { title: "Stays, changed", metadata: { content: "by another" } } }]);
  await node(page, "Stays, changed").waitFor();
  expect(`409 POST ${path(canvas, "/operations")}`);
  await page.keyboard.press("Control+z");
  const after = await until(canvas, "they are back", ({ nodes }) => nodes.length === 41);
  const known = ({ nodes, connections }: Graph) => [nodes.filter(({ id }) => id !== ids["Stays"]), connections].map((all) => all.toSorted((a, b) => (a.id < b.id ? -1 : 1)));
  assert.deepEqual(known(after), known(before));
  assert.equal(titled(after, "Made")?.metadata.provenance !== undefined, true);
  assert.equal(titled(after, "Stays, changed")?.metadata.content, "by another");
  assert.equal(after.batches.length - gone.batches.length, 2, "one batch of another, one of the undo");
  await page.locator("img").nth(3).waitFor();
});

scene("a deletion is told, and undone there", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Told", [text("One", 0, 0), text("Two", 400, 0)]);
  await apply(canvas, [{ type: "connection.create", fromNodeId: ids["One"], toNodeId: ids["Two"] }]);
  await openBoard(page, url);
  await node(page, "One").click();
  await page.keyboard.press("Delete");
  const notices = page.getByRole("status").filter({ hasText: "is deleted." });
  await notices.getByText("“One” is deleted.").waitFor();
  await isAccessible();
  await node(page, "Two").click();
  await page.keyboard.press("Shift+ArrowDown");
  await until(canvas, "another change", (graph) => titled(graph, "Two")?.position.y === 10 && graph.nodes.length === 1);
  await notices.getByRole("button", { name: "Undo" }).press("Enter");
  const after = await until(canvas, "it is back", ({ nodes, connections }) => nodes.length === 2 && connections.length === 1);
  assert.equal(titled(after, "One")?.id, ids["One"]);
  assert.equal(titled(after, "Two")?.position.y, 10, "what was done since stays");
  await becomes(() => notices.count(), 0);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await page.getByText("2 things are deleted.").waitFor();
  await until(canvas, "both are deleted", ({ nodes }) => nodes.length === 0);
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

scene("images are uploaded by drop, paste and picker", async ({ page, expect, isAccessible }) => {
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
  await page.getByLabel("Images to upload").setInputFiles(files);
  const after = await until(canvas, "eight picked files", ({ nodes }) => nodes.length === 10);
  await page.locator("[aria-label=Uploads]").waitFor({ state: "detached" });
  assert(after.nodes.every(({ asset }) => asset !== undefined));
  await page.keyboard.press("0");
  await page.locator("img").nth(9).waitFor();
  await isAccessible();
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await until(canvas, "an upload is undone", ({ nodes }) => nodes.length === 9);
});

scene("an image that is dropped on an empty slot takes its place", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const slot = { title: "Hero", type: "image", position: { x: 100, y: 100 }, width: 300, height: 200, metadata: { sectionId: "Frame" } };
  const frame = { type: "sticky", title: "Frame", position: { x: 0, y: 0 }, width: 700, height: 420, metadata: { section: true } };
  const video = { title: "Video", type: "video", position: { x: 800, y: 0 }, width: 320, height: 240 };
  const { canvas, ids, url } = await makeBoard("Slots", [frame, slot, video, text("Brief", 0, 600)]);
  await apply(canvas, [
    { type: "connection.create", fromNodeId: ids["Hero"], toNodeId: ids["Video"], purpose: "first-frame" },
    { type: "connection.create", fromNodeId: ids["Brief"], toNodeId: ids["Hero"], purpose: "reference" },
  ]);
  // The upload changes the canvas before the image gets its place.
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url);
  const { x, y } = await middle(node(page, "Hero"));
  const over = (kind: "dragenter" | "drop") =>
    page.evaluate(
      ({ kind, x, y, bytes }) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([new Uint8Array(bytes)], "harbor.png", { type: "image/png" }));
        document.elementFromPoint(x, y)?.dispatchEvent(new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true, clientX: x, clientY: y }));
      },
      { kind, x, y, bytes: [...png(120, 80)] },
    );
  await over("dragenter");
  await page.getByText("Drop to fill it").waitFor();
  await isAccessible();
  const before = await read(canvas);
  await over("drop");
  const after = await until(canvas, "the slot is filled", (graph) => titled(graph, "Hero")?.asset !== undefined);
  const { position, width, height, metadata } = titled(after, "Hero") ?? assert.fail();
  assert.deepEqual({ position, width, height, sectionId: metadata.sectionId }, { position: { x: 100, y: 100 }, width: 300, height: 200, sectionId: ids["Frame"] });
  const ends = ({ connections }: Graph, hero: string | undefined) =>
    connections.map(({ fromNodeId, toNodeId, purpose }) => [fromNodeId === hero, toNodeId === hero, purpose]).toSorted();
  assert.deepEqual(ends(after, titled(after, "Hero")?.id), ends(before, ids["Hero"]));
  assert.equal(after.nodes.length, 4);
  assert.equal(after.batches.length, before.batches.length + 1);
  await page.locator("img").waitFor();
  await page.keyboard.press("Control+z");
  const undone = await until(canvas, "the slot is back", (graph) => graph.nodes.some(({ id, asset }) => id === ids["Hero"] && asset === undefined));
  assert.deepEqual([undone.nodes.length, ends(undone, ids["Hero"])], [4, ends(before, ids["Hero"])]);
  // The keyboard has no place to drop an image: the selected slot takes it.
  await node(page, "Hero").click();
  await page.getByLabel("Images to upload").setInputFiles({ name: "picked.png", mimeType: "image/png", buffer: Buffer.from(png(90, 60)) });
  await until(canvas, "the slot is filled again", (graph) => graph.nodes.length === 4 && titled(graph, "Hero")?.asset !== undefined);
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
  await page.getByRole("menu", { name: "Connect as" }).waitFor();
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

scene("what is written on a board far away is text, and no command", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Far away", [text("Near", 0, 0), text("Far", 30_000, 0)]);
  await openBoard(page, url);
  await becomes(() => page.locator(".react-flow__node").count(), 0);
  await page.mouse.move(640, 200);
  await page.keyboard.press("t");
  await page.keyboard.type("Autumn");
  await page.getByLabel("Text of Text").waitFor();
  assert((await box(page.getByLabel("Text of Text"))).width > 250, "it is legible");
  await page.keyboard.press("Escape");
  await until(canvas, "the text", ({ nodes }) => nodes.some(({ metadata }) => metadata.content === "Autumn"));
  await becomes(() => page.getByRole("complementary").count(), 0, "no letter opened a panel");

  await page.keyboard.press("0");
  await becomes(() => page.locator(".react-flow__node").count(), 0);
  await page.keyboard.press("o");
  await page.getByRole("tree").focus();
  for (const [key, was, title] of [["Home", "Near", "Harbor"], ["ArrowDown", "Far", "Autumn"]] as const) {
    await page.keyboard.press(key);
    await page.keyboard.press("F2");
    await page.keyboard.type(title);
    await page.getByLabel("Title", { exact: true }).waitFor();
    await page.keyboard.press("Enter");
    await until(canvas, `${was} is renamed`, (graph) => titled(graph, title) !== undefined && titled(graph, was) === undefined);
    await becomes(() => page.getByRole("tree").evaluate((tree) => tree === document.activeElement), true, "the outline has the keyboard again");
  }
});

scene("nodes are dragged on a board that is far away", async ({ page, expect }) => {
  expect(NOBODY);
  const frame = { type: "sticky", title: "Frame", position: { x: 0, y: 0 }, width: 4000, height: 3000, metadata: { section: true } };
  const inside = text("Inside", 200, 1000, { width: 1500, height: 1500, metadata: { sectionId: "Frame" } });
  const { canvas, ids, url } = await makeBoard("Drawn", [frame, inside, text("Outside", 8000, 0, { width: 2000, height: 3000 })]);
  await openBoard(page, url);
  await becomes(() => page.locator(".react-flow__node").count(), 0);
  const before = await read(canvas);
  const at = await plane(page);
  const by = (graph: Graph, title: string) => {
    const [now, then] = [titled(graph, title)?.position, titled(before, title)?.position];
    return [Math.round((now?.x ?? 0) - (then?.x ?? 0)), Math.round((now?.y ?? 0) - (then?.y ?? 0))];
  };
  await drag(page, at(9000, 1500), at(2800, 1500));
  const joined = await until(canvas, "the node has joined", (graph) => titled(graph, "Outside")?.metadata.sectionId === ids["Frame"]);
  assert.equal(joined.batches.length, before.batches.length + 1);
  assert.deepEqual([by(joined, "Frame"), by(joined, "Inside")], [[0, 0], [0, 0]]);
  // The inside of a Section is the plane, until the Section is selected.
  await drag(page, at(100, 2900), at(1900, 500));
  await saved(page);
  assert.equal((await read(canvas)).batches.length, joined.batches.length);
  await page.mouse.click(at(100, 2900).x, at(100, 2900).y);
  await drag(page, at(100, 2900), at(2100, 2900));
  const moved = await until(canvas, "the Section has moved", (graph) => (by(graph, "Frame")[0] ?? 0) > 0);
  assert.deepEqual(by(moved, "Inside"), by(moved, "Frame"));
  assert(Math.abs(by(moved, "Frame")[1] ?? 0) < 100, "only the second drag has moved it");
  await page.keyboard.press("Control+z");
  await page.keyboard.press("Control+z");
  await until(canvas, "all are back", (graph) => ["Frame", "Inside", "Outside"].every((title) => by(graph, title).every((part) => part === 0)));
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
  await becomes(() => page.locator(".react-flow__node").count(), 0, "from far away, nothing is rendered");
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
  await until(canvas, "one of them is moved", (graph) => titled(graph, title)?.position.y === before - 10);
  assert.equal(person.uid, canvas.ownerUid);
});

scene("images that were asked for without a network are shown when it is back", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Tunnel", []);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(96, 96));
  await page.clock.install();
  await page.route("**/content?w=*", (route) => route.abort());
  await openBoard(page, url);
  let refused = 0;
  page.on("requestfailed", () => (refused += 1));
  for (const end = Date.now() + 12_000; refused < 10 && Date.now() < end; await new Promise((resume) => setTimeout(resume, 100))) await page.clock.fastForward(16_000);
  assert(refused >= 10, "it is asked for again and again");
  await page.unroute("**/content?w=*");
  await page.clock.fastForward(16_000);
  await page.locator(".react-flow__node img").waitFor();
});
