/** Where new nodes appear, how the view follows them, and what is said when work has ended. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

import { box, dragBy, middle, node, openBoard, path, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, type Graph, makeBoard, type Node, png, read, send, stranger } from "./service.ts";

const panel = (page: Page, name: string) => page.getByRole("complementary", { name });
const isSection = ({ metadata }: Node) => metadata.section === true;

/** Pairs of nodes that are closer than 24 units to each other. */
function near({ nodes }: Graph): string[] {
  const all = nodes.filter((node) => !isSection(node));
  const overlaps = (a: Node, b: Node) =>
    a.position.x < b.position.x + b.width + 24 && b.position.x < a.position.x + a.width + 24 && a.position.y < b.position.y + b.height + 24 && b.position.y < a.position.y + a.height + 24;
  return all.flatMap((a, index) => all.slice(index + 1).flatMap((b) => (overlaps(a, b) ? `${a.title} and ${b.title}` : [])));
}

/** The part of a node that is seen where nothing covers it. */
async function seen(page: Page, id: string): Promise<number> {
  const board = await box(page.getByRole("application", { name: "Board" }));
  const target = page.locator(`.react-flow__node[data-id="${id}"]`);
  if ((await target.count()) === 0) return 0;
  const { x, y, width, height } = await box(target);
  const across = Math.min(x + width, board.x + board.width) - Math.max(x, board.x + 76);
  const down = Math.min(y + height, board.y + board.height - 76) - Math.max(y, board.y + 64);
  return (Math.max(across, 0) * Math.max(down, 0)) / (width * height);
}

/** A board with a photo of 400 × 200 pixels. */
async function photo(title: string, token?: string) {
  const { canvas, url } = await makeBoard(title, [], token);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(400, 200), token);
  const [source] = (await read(canvas, token)).nodes;
  assert(source);
  await apply(canvas, [{ type: "node.update", nodeId: source.id, patch: { title: "Photo" } }], token);
  return { canvas, url, source: source.id };
}

async function changeRatio(page: Page, ratio: string): Promise<void> {
  const inspect = panel(page, "Details");
  await inspect.getByLabel("Make a new image").selectOption({ label: "Change aspect ratio" });
  await inspect.locator("form").getByLabel("Ratio", { exact: true }).fill(ratio);
  await inspect.getByRole("button", { name: "Apply" }).click();
}

async function pick(page: Page, title: string): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.keyboard.type(title);
  await page.getByRole("option", { name: new RegExp(`^${title} `) }).first().click();
}

scene("results of Actions have their shape, cover nothing, and are seen", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await photo("Shapes");
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url);
  await node(page, "Photo").click();
  await page.keyboard.press("p");
  const known = new Set((await read(canvas)).nodes.map(({ id }) => id));
  const views: [string, () => Promise<void>][] = [
    ["as it was opened", async () => {}],
    ["at 38 %", async () => { for (let step = 0; step < 4; step += 1) await page.keyboard.press("-"); }],
    ["at full size", () => page.keyboard.press("1")],
    ["close", async () => { await page.keyboard.press("2"); }],
  ];
  const shapes: [string, number, number][] = [["4:5", 4, 5], ["9:16", 9, 16], ["16:9", 16, 9], ["1:1", 1, 1]];
  for (const [index, [view, go]] of views.entries()) {
    await pick(page, "Photo");
    await page.getByRole("application", { name: "Board" }).focus();
    await go();
    await page.waitForTimeout(700);
    const [ratio, across, down] = shapes[index] ?? assert.fail();
    await changeRatio(page, ratio);
    const made = await until(canvas, `${view}: the result is there`, ({ nodes }) => nodes.filter(({ asset }) => asset !== undefined).length === known.size + 1);
    const target = made.nodes.find(({ id }) => !known.has(id)) ?? assert.fail();
    known.add(target.id);
    assert(Math.abs(target.width * down - (target.height - 28) * across) <= 1.5 * Math.max(across, down), `${view}: ${ratio} is ${target.width} × ${target.height}`);
    assert.deepEqual(near(made), [], view);
    const id = await page.locator(".react-flow__node.selected").getAttribute("data-id");
    const share = await seen(page, id ?? "");
    assert(share >= 0.6 || (await page.getByRole("button", { name: "Show", exact: true }).count()) > 0, `${view}: ${share} is seen`);
  }
  await isAccessible();
});

scene("a result of another ratio corrects its node", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "10");
  const { canvas, url } = await makeBoard("Corrected", [{ title: "Wide place", type: "image", position: { x: 0, y: 0 }, width: 600, height: 228 }], token);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url, token);
  await node(page, "Wide place").click();
  const prompt = page.getByRole("form", { name: /^Make/ });
  const models = prompt.getByLabel("Model", { exact: true });
  await models.selectOption((await models.locator("option", { hasText: "Sketch" }).first().getAttribute("value")) ?? "");
  await prompt.getByLabel("Prompt", { exact: true }).fill("A quiet harbor");
  await prompt.getByRole("button", { name: "Make · 1 credit" }).click();
  const [place] = (await until(canvas, "the image is there", ({ nodes }) => nodes[0]?.asset !== undefined, token)).nodes;
  assert(place && place.width < 600, "within its box");
  const shown = page.locator(".react-flow__node img");
  const [across, down] = await shown.evaluate((image: HTMLImageElement) => image.decode().then(() => [image.naturalWidth, image.naturalHeight] as const));
  assert(Math.abs((place.width * down) / across - (place.height - 28)) <= 1, `${across} × ${down} in ${place.width} × ${place.height}`);
  await becomes(async () => {
    const { width, height } = await box(shown);
    return Math.abs(width * down - height * across) <= 2 * across;
  }, true, "no bars beside it");
  await isAccessible();
  await page.getByRole("button", { name: "Details", exact: true }).click();
  const sent = page.waitForRequest((request) => request.url().endsWith("/actions/change-aspect-ratio/runs"));
  await changeRatio(page, "3:1");
  assert.equal((await sent).postDataJSON().fit, true);
  await until(canvas, "the result is there", ({ nodes }) => nodes.filter(({ asset }) => asset !== undefined).length === 2, token);
}, 120);

scene("four variants are a row, are said once, and are selected together", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "10");
  const { canvas, url } = await makeBoard("Variants", [text("Brief", 0, 0)], token);
  await openBoard(page, url, token);
  await page.keyboard.press("1");
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const make = panel(page, "Make");
  const models = make.getByLabel("Model", { exact: true });
  await models.selectOption((await models.locator("option", { hasText: "Sketch" }).first().getAttribute("value")) ?? "");
  await make.getByLabel("Prompt", { exact: true }).fill("Steam over a cup");
  await make.getByRole("radio", { name: "4", exact: true }).check();
  await make.getByRole("button", { name: "Make 4 · 4 credits" }).click();
  await page.getByText("4 images are ready: “Steam over a cup”.").waitFor({ state: "attached" });
  const graph = await until(canvas, "four images", ({ nodes }) => nodes.filter(({ asset }) => asset !== undefined).length === 4, token);
  const images = graph.nodes.filter(({ asset }) => asset !== undefined);
  assert.equal(new Set(images.map(({ position }) => position.y)).size, 1, "level tops");
  assert.deepEqual(near(graph), []);
  await becomes(() => page.locator(".react-flow__node.selected").count(), 4);
  await page.getByRole("button", { name: "Make", exact: true }).click();
  await page.keyboard.press("0");
  await page.locator(".react-flow__node", { hasText: "Steam over a cup · 2" }).click();
  await becomes(() => page.locator(".react-flow__node.selected").count(), 1);
  await page.getByRole("button", { name: "4 variants" }).waitFor();
  await isAccessible();
  await page.keyboard.press("Shift+M");
  await becomes(() => page.locator(".react-flow__node.selected").count(), 4);
  await page.locator(".react-flow__node", { hasText: "Steam over a cup · 3" }).hover();
  await page.getByRole("button", { name: "4 variants" }).click();
  await becomes(() => page.locator(".react-flow__node.selected").count(), 4);
  const brief = titled(graph, "Brief")?.id;
  await apply(canvas, images.map(({ id }) => ({ type: "connection.create", fromNodeId: brief, toNodeId: id, purpose: "flow" })), token);
  await becomes(() => page.locator(".react-flow__edge").count(), 4);
  await page.keyboard.press("Escape");
  await becomes(() => page.locator(".react-flow__edge").count(), 1, "one line to all of them");
}, 120);

scene("a result to which the view would have to move far is offered in a notice", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url, source } = await photo("Far");
  expect(`409 POST ${path(canvas, "/operations")}`);
  await apply(canvas, [{ type: "node.update", nodeId: source, patch: { width: 4000, height: 2028 } }]);
  await openBoard(page, url);
  await node(page, "Photo").click();
  await page.keyboard.press("p");
  await page.keyboard.press("1");
  const zoom = page.getByRole("group", { name: "Zoom" }).getByRole("button", { name: /100 %/ });
  await zoom.waitFor();
  await changeRatio(page, "1:1");
  await page.getByText("1 new thing is outside of the view.").waitFor();
  await zoom.waitFor();
  const made = await until(canvas, "the result is there", ({ nodes }) => nodes.filter(({ asset }) => asset !== undefined).length === 2);
  await page.getByText("is ready.").waitFor();
  await page.getByRole("button", { name: "Show", exact: true }).last().click();
  const id = await page.locator(".react-flow__node.selected").getAttribute("data-id");
  await becomes(async () => (await seen(page, id ?? "")) > 0.99, true);
  assert.deepEqual(near(made), []);
});

scene("a panel that opens does not cover the selection", async ({ page, expect }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Panel", [text("Left", 0, 0), text("Right", 900, 0)]);
  await openBoard(page, url);
  await page.keyboard.press("1");
  await node(page, "Right").click();
  const before = await box(node(page, "Right"));
  await page.keyboard.press("p");
  await panel(page, "Details").waitFor();
  const board = await box(page.getByRole("application", { name: "Board" }));
  await becomes(async () => {
    const { x, width } = await box(node(page, "Right"));
    return x + width <= board.x + board.width;
  }, true);
  const after = await box(node(page, "Right"));
  assert(after.x < before.x);
  assert.equal(after.width, before.width, "at the same scale");
});

scene("what is added, pasted, duplicated and dropped covers nothing", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Nothing covered", [text("One", 0, 0), text("Two", 264, 0)]);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url);
  await page.keyboard.press("1");
  await node(page, "One").click();
  await page.keyboard.press("Control+d");
  await page.keyboard.press("Control+d");
  const over = await middle(node(page, "Two"));
  await page.mouse.move(over.x, over.y);
  for (const key of ["t", "n", "i", "v"]) {
    await page.keyboard.press(key);
    await page.keyboard.press("Escape");
  }
  await node(page, "Two").click();
  await page.keyboard.press("Control+c");
  for (let times = 0; times < 3; times += 1) await page.keyboard.press("Control+v");
  await until(canvas, "all are there", ({ nodes }) => nodes.length === 11);
  assert.deepEqual(near(await read(canvas)), []);
  await page.keyboard.press("Escape");
  await page.keyboard.press("0");
  const files = Array.from({ length: 12 }, (_, index) => ({ name: `p${index}.png`, mimeType: "image/png", buffer: Buffer.from(png(60 + 10 * (index % 3), 40 + 10 * (index % 2))) }));
  await page.getByLabel("Images to upload").setInputFiles(files);
  await becomes(() => page.getByRole("progressbar").count(), 0);
  const rowsOf = ({ nodes }: Graph) => [...Map.groupBy(nodes.filter(({ title }) => /^p\d+\.png$/.test(title)), ({ position }) => position.y).values()];
  // The service puts them on nothing, too, until they are moved to their places.
  const gapsOf = (row: Graph["nodes"]) => {
    const sorted = row.toSorted((a, b) => a.position.x - b.position.x);
    return sorted.slice(1).map((next, index) => next.position.x - (sorted[index]?.position.x ?? 0) - (sorted[index]?.width ?? 0));
  };
  const after = await until(canvas, "twelve more, in rows with level tops, equally far from each other", (graph) => JSON.stringify(rowsOf(graph).map(gapsOf)) === JSON.stringify(Array(3).fill([24, 24, 24])));
  assert.deepEqual(near(after), []);
}, 120);

scene("titles, handles and small texts have one size at every scale", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const frame = { type: "sticky", title: "Frame", position: { x: -100, y: -160 }, width: 1200, height: 800, metadata: { section: true } };
  const words = { metadata: { content: "A quiet harbor, before the boats go out.\nAnd more than that." } };
  const { canvas, url } = await makeBoard("Labels", [frame, { ...text("Words", 500, 0), ...words } as never, { type: "sticky", title: "Note", position: { x: 800, y: 0 }, width: 200, height: 200, ...words } as never]);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(400, 200));
  const image = (await read(canvas)).nodes.find(({ asset }) => asset !== undefined);
  assert(image);
  await apply(canvas, [{ type: "node.update", nodeId: image.id, patch: { title: "Photo" } }, { type: "node.move", nodeId: image.id, position: { x: 0, y: 0 } }]);
  await openBoard(page, url);
  await page.locator(".react-flow__node img").waitFor();
  const sizes = () =>
    page.evaluate(() => {
      const scale = new DOMMatrix(getComputedStyle(document.querySelector(".react-flow__viewport") as Element).transform).a;
      const found: [string, number][] = [];
      for (const element of document.querySelectorAll<HTMLElement>(".react-flow__node *")) {
        const own = [...element.childNodes].filter((child) => child.nodeName === "#text" && child.textContent?.trim());
        const { width, height } = element.getBoundingClientRect();
        if (own.length > 0 && width > 4 && height > 4) found.push([element.textContent ?? "", Number.parseFloat(getComputedStyle(element).fontSize) * scale]);
      }
      return { scale, found };
    });
  await page.getByRole("application", { name: "Board" }).focus();
  await page.keyboard.press("1");
  for (const steps of [0, 3, 5]) {
    for (let step = 0; step < steps; step += 1) await page.keyboard.press("-");
    await page.waitForTimeout(400);
    const { scale, found } = await sizes();
    if (scale < 0.25) break;
    assert(found.length >= 4, JSON.stringify({ scale, found }));
    for (const [words, size] of found) assert(size >= 10.9, `“${words}” has ${size} px at ${scale}`);
    const title = found.find(([words]) => words.startsWith("Photo"));
    assert(Math.abs((title?.[1] ?? 0) - 12) < 0.2, `the title has ${title?.[1]} px at ${scale}`);
    await isAccessible();
    await page.keyboard.press("1");
  }
  await node(page, "Photo").click();
  await node(page, "Photo").hover();
  await node(page, "Photo").getByText("400 × 200 · 2:1 · PNG").waitFor();
  await page.keyboard.press("2");
  await page.waitForTimeout(400);
  const corner = await box(page.locator(".react-flow__resize-control.bottom.right.handle"));
  assert(Math.abs(corner.width - 10) < 0.5, `a corner has ${corner.width} px`);
  assert((await sizes()).scale > 1.5, "the selection is shown above full size");
  await page.keyboard.press("3");
  await page.waitForTimeout(400);
  assert(Math.abs((await sizes()).scale - 400 / image.width) < 0.01, "one pixel of the picture is one of the screen");
});

scene("a picture is resized by its width, and shown whole", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await photo("Whole");
  await openBoard(page, url);
  await page.locator(".react-flow__node img").waitFor();
  await node(page, "Photo").click();
  await page.keyboard.press("1");
  for (const [corner, x, y] of [["bottom.right", 90, 45], ["top.left", -60, -30], ["top.right", -40, 20]] as const) {
    const before = titled(await read(canvas), "Photo") ?? assert.fail();
    await page.waitForTimeout(200);
    await dragBy(page, page.locator(`.react-flow__resize-control.${corner}.handle`), x, y);
    const after = titled(await until(canvas, `${corner} has moved`, (graph) => titled(graph, "Photo")?.width !== before.width), "Photo") ?? assert.fail();
    assert.equal(after.height, Math.round(after.width / 2) + 28);
    const bottom = (node: Node) => node.position.y + node.height;
    if (corner.startsWith("top")) assert(Math.abs(bottom(after) - bottom(before)) <= 1, "the side that is not moved stays");
    else assert.deepEqual(after.position, before.position);
  }
  await page.keyboard.press("p");
  await panel(page, "Details").getByLabel("Height").fill("228");
  await page.keyboard.press("Enter");
  await until(canvas, "the width follows", (graph) => titled(graph, "Photo")?.width === 400 && titled(graph, "Photo")?.height === 228);
});

scene("connections are quiet until something asks for them, and can be hidden", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Lines", [text("A", 0, 0), text("B", 500, 0), text("C", 500, 300)]);
  await apply(canvas, [
    { type: "connection.create", fromNodeId: ids["A"], toNodeId: ids["B"], purpose: "reference" },
    { type: "connection.create", fromNodeId: ids["A"], toNodeId: ids["C"], purpose: "list" },
  ]);
  await openBoard(page, url);
  const lines = page.locator(".react-flow__edge");
  await becomes(() => lines.count(), 2);
  const label = (words: string) => page.locator(".react-flow__edge").getByText(words, { exact: true });
  await page.mouse.move(640, 700);
  await becomes(() => label("guides it").isVisible(), false);
  await node(page, "Text B").hover();
  await label("guides it").waitFor();
  assert.equal(await label("belongs together").isVisible(), false);
  await page.mouse.move(640, 700);
  await becomes(() => label("guides it").isVisible(), false);
  await node(page, "Text A").click();
  await label("guides it").waitFor();
  await label("belongs together").waitFor();
  await isAccessible();
  await page.keyboard.press("Shift+C");
  await becomes(() => lines.count(), 0);
  await page.getByText("2 connections hidden. Shift C shows them again.").waitFor();
  await page.reload();
  await node(page, "Text B").waitFor();
  await becomes(() => lines.count(), 0);
  await page.getByRole("application", { name: "Board" }).focus();
  await page.keyboard.press("Shift+C");
  await becomes(() => lines.count(), 2);
});
