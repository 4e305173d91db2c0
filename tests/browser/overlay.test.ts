/** An image laid over another one on the Stage, sizes and formats that are changed there, and the frames of formats. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { env } from "node:process";

import type { Page } from "playwright-core";

import { box, drag, middle, node, openBoard, path, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { apply, type Canvas, type Graph, makeBoard, type Node, png, read, send, stranger } from "./service.ts";

const stage = (page: Page) => page.locator("[data-on-stage]");
const applyButton = (page: Page) => stage(page).getByRole("button", { name: "Apply", exact: true });
const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", `overlay-${name}.png`) });

interface Made {
  actionId: string;
  params: Record<string, unknown>;
  references: { handle: string }[];
}
const madeBy = (node: Node | undefined) => node?.metadata.provenance as unknown as Made;
const pictures = ({ nodes }: Graph) => nodes.filter(({ asset }) => asset !== undefined);

/** A board with a photo of 400 × 300 pixels and a logo of 100 × 50. */
async function studio(title: string) {
  const { token } = await stranger();
  const { canvas, url } = await makeBoard(title, [], token);
  const add = async (name: string, width: number, height: number, x: number) => {
    const { asset } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(width, height), token);
    await apply(canvas, [{ type: "node.update", nodeId: asset.node, patch: { title: name } }, { type: "node.move", nodeId: asset.node, position: { x, y: 0 } }], token);
    return asset.node.replace("node:", "");
  };
  return { canvas, url, token, photo: await add("Photo", 400, 300, 0), logo: await add("Logo", 100, 50, 500) };
}

async function newest(canvas: Canvas, count: number, token: string): Promise<Node> {
  const graph = await until(canvas, `there are ${count} pictures`, (graph) => pictures(graph).length === count && graph.nodes.length === count, token);
  return graph.nodes.at(-1) as Node;
}

scene("an image is laid over another one, moved, made larger, and changed later", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token, photo, logo } = await studio("Overlay");
  expect(`409 POST ${path(canvas, "/operations")}`);
  await page.setViewportSize({ width: 1440, height: 900 });
  await openBoard(page, url, token);
  await page.keyboard.press("0");
  await node(page, "Photo").click();
  await node(page, "Logo").click({ modifiers: ["Shift"] });
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Actions" }).click();
  await page.getByRole("menuitem", { name: "Overlay" }).click();
  const overlay = stage(page).locator("[data-overlay]");
  const frame = await box(stage(page).locator("img").first());
  const before = await box(overlay);
  assert(Math.abs(before.width - frame.width / 4) < 2 && Math.abs(before.x + before.width - frame.x - frame.width) < 2, "a quarter, at the right");
  const from = await middle(overlay);
  await drag(page, from, { x: frame.x + before.width / 2 + 4, y: frame.y + before.height / 2 + 3 });
  const snapped = await box(overlay);
  assert(Math.abs(snapped.x - frame.x) < 1.5 && Math.abs(snapped.y - frame.y) < 1.5, "it snaps to the corner");
  const corner = await middle(stage(page).locator('[data-handle="1 1"]'));
  const center = await middle(overlay);
  await drag(page, corner, { x: center.x + (corner.x - center.x) * 1.6, y: center.y + (corner.y - center.y) * 1.6 });
  await becomes(async () => (await box(overlay)).width > before.width * 1.5, true);
  await stage(page).getByRole("slider", { name: "Opacity" }).fill("60");
  await stage(page).getByLabel("Blend").selectOption("multiply");
  await page.keyboard.press("Escape");
  await becomes(() => stage(page).count(), 0);
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Actions" }).click();
  await page.getByRole("menuitem", { name: "Overlay" }).click();
  await becomes(() => stage(page).getByRole("slider", { name: "Opacity" }).inputValue(), "60");
  await shot(page, "light");
  await isAccessible();
  await applyButton(page).click();
  const first = await newest(canvas, 3, token);
  const made = madeBy(first);
  assert.equal(made.actionId, "action:overlay-image");
  assert.deepEqual([made.params["anchor"], made.params["opacity"], made.params["blend"]], ["top-left", 60, "multiply"]);
  assert(Number(made.params["scale"]) > 38 && Number(made.params["scale"]) < 42, String(made.params["scale"]));
  const { connections } = await read(canvas, token);
  assert.deepEqual(connections.filter(({ toNodeId }) => toNodeId === first.id).map(({ fromNodeId }) => fromNodeId).toSorted(), [photo, logo].toSorted());

  await apply(canvas, [{ type: "node.update", nodeId: first.id, patch: { title: "Ad" } }], token);
  await page.keyboard.press("0");
  await node(page, "Ad").click();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Edit the overlay" }).click();
  await becomes(() => stage(page).getByRole("slider", { name: "Opacity" }).inputValue(), "60");
  await stage(page).getByText("Logo", { exact: true }).waitFor();
  await stage(page).getByRole("slider", { name: "Rotate" }).fill("30");
  await page.emulateMedia({ colorScheme: "dark" });
  await shot(page, "dark");
  await isAccessible();
  await applyButton(page).click();
  const graph = await until(canvas, "the new one has taken the place", (graph) => graph.nodes.length === 3 && titled(graph, "Ad")?.id !== first.id && titled(graph, "Ad")?.asset !== undefined, token);
  assert.equal(madeBy(titled(graph, "Ad")).params["rotate"], 30);
});

scene("what is laid over one image is chosen from all pictures", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await studio("Overlay of one");
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url, token);
  await page.keyboard.press("0");
  await node(page, "Photo").click();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Overlay" }).click();
  const dialog = page.getByRole("dialog", { name: "Image to lay over it" });
  await dialog.getByRole("button", { name: /Logo/ }).click();
  await dialog.waitFor({ state: "detached" });
  await stage(page).locator("[data-overlay]").waitFor();
  await isAccessible();
  await applyButton(page).click();
  const { references } = madeBy(await newest(canvas, 3, token));
  assert.equal(references.length, 2);
});

scene("frames show what formats keep, and the format and the size of what was made are changed on the Stage", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url, token } = await studio("Formats");
  expect(`409 POST ${path(canvas, "/operations")}`);
  await page.setViewportSize({ width: 1440, height: 900 });
  await openBoard(page, url, token);
  await page.keyboard.press("0");
  await node(page, "Photo").click();
  const bar = page.getByRole("toolbar", { name: /^What to do with/ });
  await bar.getByRole("button", { name: "Format", exact: true }).click();
  const form = page.getByRole("dialog", { name: "Format" });
  await form.getByRole("checkbox", { name: "1:1", exact: true }).check();
  await form.getByRole("checkbox", { name: "16:9", exact: true }).check();
  const frame = (ratio: string) => form.locator(`[data-frame="${ratio}"]`);
  const image = await box(form.locator("img"));
  const square = await box(frame("1:1"));
  assert(Math.abs(square.x - image.x - (image.width - square.width) / 2) < 1.5 && Math.abs(square.height - image.height) < 1.5, "in the middle");
  // A drag chooses one of the nine places, and so do the arrow keys.
  await drag(page, { x: image.x + image.width / 2, y: image.y + image.height / 2 }, { x: image.x + image.width - 8, y: image.y + 8 });
  await becomes(async () => Math.round((await box(frame("1:1"))).x + square.width - image.x - image.width), 0);
  assert(await form.getByRole("radio", { name: "top right" }).isChecked());
  await form.getByRole("radio", { name: "top right" }).focus();
  await page.keyboard.press("ArrowLeft");
  assert(await form.getByRole("radio", { name: "top", exact: true }).isChecked());
  await form.getByRole("radio", { name: "top right" }).check();
  await shot(page, "frames");
  await isAccessible();
  await form.getByRole("radio", { name: "Color" }).check();
  await becomes(async () => (await box(frame("16:9"))).width > image.width / 2, true);
  await shot(page, "frames-pad");
  await form.getByRole("radio", { name: "Crop" }).check();
  await form.getByRole("button", { name: "Make 2" }).click();
  const graph = await until(canvas, "two formats", (graph) => pictures(graph).length === 4, token);
  const made = pictures(graph).filter((node) => madeBy(node)?.actionId === "action:change-aspect-ratio");
  assert.deepEqual(made.map((node) => madeBy(node).params["anchor"]), ["top-right", "top-right"]);

  const [first] = made as [Node];
  await apply(canvas, [{ type: "node.update", nodeId: first.id, patch: { title: "Post" } }], token);
  await page.keyboard.press("Escape");
  await page.keyboard.press("0");
  await node(page, "Post").click();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Edit the format" }).click();
  await becomes(() => stage(page).getByLabel("Ratio", { exact: true }).inputValue(), String(madeBy(first).params["ratio"]));
  await stage(page).getByLabel("Ratio", { exact: true }).fill("4:5");
  await stage(page).getByText("240 × 300 px").waitFor();
  const result = await box(stage(page).locator("[data-result]"));
  await drag(page, { x: result.x + result.width / 2, y: result.y + result.height / 2 }, { x: result.x + 10, y: result.y + result.height / 2 });
  assert(await stage(page).getByRole("radio", { name: "Left", exact: true }).isChecked());
  await shot(page, "format");
  await isAccessible();
  const before = stage(page).getByRole("button", { name: "Before" });
  const wide = async () => ((place) => place.width > place.height)(await box(stage(page).locator("[data-result]")));
  await before.click();
  await becomes(wide, true);
  await before.click();
  await becomes(wide, false);
  await applyButton(page).click();
  const changed = await until(canvas, "the format has changed", (graph) => titled(graph, "Post")?.id !== first.id && titled(graph, "Post")?.asset !== undefined, token);
  assert.deepEqual([madeBy(titled(changed, "Post")).params["ratio"], madeBy(titled(changed, "Post")).params["anchor"]], ["4:5", "left"]);

  // A size, first made on the Stage.
  await page.keyboard.press("Escape");
  await page.keyboard.press("0");
  await node(page, "Photo").click();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Resize" }).click();
  await stage(page).getByLabel("Width", { exact: true }).fill("200");
  await stage(page).getByText("200 × 150 px").waitFor();
  await shot(page, "size");
  await isAccessible();
  await stage(page).getByLabel("Width", { exact: true }).press("Enter");
  const resized = await until(canvas, "it is resized", (graph) => pictures(graph).some((node) => madeBy(node)?.actionId === "action:resize"), token);
  const small = pictures(resized).find((node) => madeBy(node)?.actionId === "action:resize") as Node;
  await apply(canvas, [{ type: "node.update", nodeId: small.id, patch: { title: "Small" } }], token);
  await page.keyboard.press("Escape");
  await page.keyboard.press("0");
  await node(page, "Small").click();
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Edit the size" }).click();
  await becomes(() => stage(page).getByLabel("Width", { exact: true }).inputValue(), "200");
  await stage(page).getByLabel("Width", { exact: true }).fill("100");
  await applyButton(page).click();
  await until(canvas, "it is smaller", (graph) => titled(graph, "Small")?.id !== small.id && madeBy(titled(graph, "Small"))?.params["width"] === 100, token);
});
