/** Elements: made, changed, used and archived, and their collections. */
import assert from "node:assert/strict";

import { box, drag, node, openBoard, text, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, makeBoard, png, send, stranger } from "./service.ts";
import { heading, signIn } from "./steps.ts";

interface Element {
  id: string;
  versionHandle: string;
  version: number;
  lifecycle: string;
  guidelines?: string;
  sourceAssetIds: string[];
  collectionIds: string[];
}

const newest = async (token: string): Promise<Element | undefined> => (await send<{ elements: Element[] }>("GET", "/elements", undefined, token)).elements[0];
const make = (name: string, token: string) => send<{ element: Element }>("POST", "/elements", { name, type: "style", sourceAssetIds: [], guidelines: `Guidelines of ${name}` }, token);

scene("an Element is made from an upload and an image of a canvas, gets a second version, and is archived and restored", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { token } = await stranger();
  const { canvas } = await makeBoard("Shelf", [], token);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(96, 64), token);
  await signIn(page, token);
  await page.getByRole("link", { name: "Elements", exact: true }).click();
  await heading(page, "Elements");
  await page.getByText("No Elements yet").waitFor();
  await isAccessible();
  await page.getByRole("button", { name: "New Element" }).first().click();
  const form = page.getByRole("dialog", { name: "New Element" });
  await form.getByRole("button", { name: "Create the Element" }).click();
  await form.getByText("Give it a name.").waitFor();
  await form.getByText("Add an image, or write guidelines.").waitFor();
  await form.getByLabel("Name").fill("Mug <i>blue</i>");
  await form.getByLabel("Type").selectOption("product/object");
  await form.getByRole("button", { name: "Choose source images" }).click();
  const picker = page.getByRole("dialog", { name: "Source images" });
  await picker.getByLabel("Image to upload").setInputFiles({ name: "mug.png", mimeType: "image/png", buffer: Buffer.from(png(64, 64)) });
  await picker.getByText("1 of 8 chosen").waitFor();
  await picker.getByLabel("Canvas", { exact: true }).selectOption(canvas.handle);
  await picker.getByRole("button", { name: /^mug.png/ }).waitFor({ state: "detached" });
  await picker.getByRole("gridcell").getByRole("button").first().click();
  await picker.getByText("2 of 8 chosen").waitFor();
  await picker.locator("img").first().waitFor();
  await isAccessible();
  await picker.getByRole("button", { name: "Done" }).click();
  await isAccessible();
  await form.getByRole("button", { name: "Create the Element" }).click();
  await heading(page, "Mug <i>blue</i>");
  await page.getByText("Sources available").waitFor();
  await isAccessible();
  assert.equal((await newest(token))?.sourceAssetIds.length, 2);

  await page.getByRole("button", { name: "Edit" }).click();
  const edit = page.getByRole("dialog");
  await edit.getByLabel("Guidelines").fill("Always matte.");
  await edit.getByRole("button", { name: "Remove source image 1" }).press("Enter");
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), "Choose source images");
  await edit.getByRole("button", { name: "Save as version 2" }).click();
  await page.getByText("Version 2", { exact: true }).waitFor();
  const versions = page.getByRole("region", { name: "Versions" });
  await versions.getByText("v2", { exact: true }).waitFor();
  await versions.getByText("v1", { exact: true }).waitFor();
  await versions.getByRole("button", { name: "Use again: version 1" }).click();
  await versions.getByText("v3", { exact: true }).waitFor();
  const third = await newest(token);
  assert.deepEqual([third?.version, third?.guidelines, third?.sourceAssetIds.length], [3, undefined, 2]);

  await page.getByRole("button", { name: "Archive", exact: true }).click();
  await page.getByRole("button", { name: "Keep" }).click();
  await isAccessible();
  await page.getByRole("button", { name: "Archive", exact: true }).click();
  await page.getByRole("button", { name: "Archive the Element" }).waitFor();
  await isAccessible();
  await page.getByRole("button", { name: "Archive the Element" }).click();
  await page.getByText("Archived", { exact: true }).waitFor();
  assert.equal(await newest(token), undefined, "it is not among the active ones");
  await page.getByRole("link", { name: "All Elements" }).click();
  await page.getByText("Archived", { exact: true }).click();
  await page.getByRole("link", { name: /^Mug/ }).click();
  await page.getByRole("button", { name: "Restore" }).click();
  await page.getByText("Version 4", { exact: true }).waitFor();
  await becomes(() => page.locator(":focus").textContent(), "Edit", "the keyboard is at the button that took its place");
});

scene("Elements are found by search and by collection, which are made, renamed and deleted by keyboard", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { token } = await stranger();
  const { element } = await make("Autumn light", token);
  await make("Winter light", token);
  await signIn(page, token, "/elements");
  await page.getByRole("heading", { name: "Autumn light" }).waitFor();
  await page.getByLabel("Search Elements").fill("guidelines of WINTER");
  await page.getByRole("heading", { name: "Autumn light" }).waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "Winter light" }).waitFor();
  await page.getByLabel("Search Elements").fill("");
  await page.getByRole("button", { name: "Collections" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: "Collections" });
  await dialog.getByLabel("Name of a new collection").fill("Seasons");
  await page.keyboard.press("Enter");
  await dialog.getByRole("button", { name: "Rename Seasons" }).press("Enter");
  await page.keyboard.type(" of 2026");
  await page.keyboard.press("Enter");
  await dialog.getByText("Seasons of 2026").waitFor();
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), "Rename Seasons of 2026");
  await isAccessible();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: /^Autumn light/ }).press("Enter");
  await page.getByRole("checkbox", { name: "Seasons of 2026" }).press("Space");
  await page.waitForFunction(() => document.querySelector("input[type=checkbox]:checked:enabled:not([aria-disabled])"));
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), "Seasons of 2026", "the checkbox has the keyboard");
  await page.getByRole("link", { name: "All Elements" }).press("Enter");
  await page.getByLabel("Collection", { exact: true }).selectOption({ label: "Seasons of 2026" });
  await page.getByRole("heading", { name: "Winter light" }).waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "Autumn light" }).waitFor();
  await page.getByRole("button", { name: "Collections" }).press("Enter");
  await dialog.getByRole("button", { name: /^Delete Seasons/ }).press("Enter");
  await page.getByRole("button", { name: "Delete the collection" }).press("Enter");
  await dialog.getByText("Collections group Elements").waitFor();
  const { element: after } = await send<{ element: Element }>("GET", `/elements/${element.id}`, undefined, token);
  assert.deepEqual(after.collectionIds, []);
});

scene("Make uses an Element in the version that was chosen", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "100");
  const { element } = await make("Soft light", token);
  const { canvas, url } = await makeBoard("With Elements", [text("Brief", 0, 0, { metadata: { content: "A quiet harbor" } })], token);
  await openBoard(page, url, token);
  await node(page, "Brief").click();
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Make" });
  const chosen = panel.getByRole("group", { name: /^Made from/ });
  const add = async () => {
    await chosen.getByRole("button", { name: "Add an image…" }).click();
    const dialog = page.getByRole("dialog", { name: "Image to make it from" });
    await dialog.getByText("Elements", { exact: true }).click();
    await dialog.getByRole("button", { name: "Soft light Style · v1" }).click();
    await dialog.waitFor({ state: "detached" });
  };
  await add();
  await chosen.getByRole("button", { name: "Leave out Soft light" }).press("Enter");
  await becomes(() => chosen.evaluate((group) => group === document.activeElement), true, "the keyboard stays with what it is made from");
  await add();
  await isAccessible();
  await panel.getByRole("button", { name: /^Make · / }).click();
  type Made = { metadata: { provenance?: { elements: string[] } } };
  const { nodes } = await until(canvas, "an image is made", (graph) => graph.nodes.some(({ asset }) => asset !== undefined), token);
  const made = nodes.find(({ asset }) => asset !== undefined) as unknown as Made;
  assert.deepEqual(made.metadata.provenance?.elements, [element.versionHandle]);
});

scene("an image on the board becomes an Element", async ({ page, expect }) => {
  expect(NOBODY);
  const { token } = await stranger();
  const { canvas, url } = await makeBoard("Images", [], token);
  const { asset } = await send<{ asset: { id: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(96, 64), token);
  await openBoard(page, url, token);
  await page.locator("img").first().waitFor();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Shift+F10");
  await page.getByRole("menuitem", { name: "Make an Element…" }).click();
  const form = page.getByRole("dialog", { name: "New Element" });
  await form.getByLabel("Name").fill("Gradient");
  await form.getByRole("button", { name: "Create the Element" }).click();
  await page.getByText("Gradient is an Element now.").waitFor();
  assert.deepEqual((await newest(token))?.sourceAssetIds, [asset.id]);
});

scene("a session without the scopes is told what it may not see or change", async ({ page, guest, expect }) => {
  expect(NOBODY);
  const { token } = await stranger("canvas:read,element:read");
  await signIn(page, token, "/elements");
  await page.getByText("No Elements yet").waitFor();
  await becomes(() => page.getByRole("button", { name: "New Element" }).count(), 0);
  const other = await guest();
  await signIn(other, (await stranger("canvas:read")).token, "/elements");
  await other.getByText("This session may not see Elements").waitFor();
});

scene("Escape closes the picker, and not the form that it is in", async ({ page, expect }) => {
  expect(NOBODY);
  await signIn(page, (await stranger()).token, "/elements");
  await page.getByRole("button", { name: "New Element" }).first().click();
  const form = page.getByRole("dialog", { name: "New Element" });
  await form.getByLabel("Name").fill("Kept");
  await form.getByRole("button", { name: "Choose source images" }).click();
  await page.getByRole("dialog", { name: "Source images" }).waitFor();
  await page.keyboard.press("Escape");
  await becomes(() => page.locator("dialog").count(), 1);
  await becomes(() => form.getByLabel("Name").inputValue(), "Kept");
});

scene("marking text beyond the edge of a dialog leaves it open, and a click beside it closes it", async ({ page, expect }) => {
  expect(NOBODY);
  const { token } = await stranger();
  await signIn(page, token, "/elements");
  await page.getByRole("button", { name: "New Element" }).first().click();
  const form = page.getByRole("dialog", { name: "New Element" });
  await form.getByLabel("Name").fill("Lighthouse");
  const { x, y, height } = await box(form.getByLabel("Name"));
  const outside = (await box(form)).x - 40;
  await drag(page, { x: x + 60, y: y + height / 2 }, { x: outside, y: y + height / 2 });
  assert.match((await page.evaluate(() => getSelection()?.toString())) ?? "", /^Li/, "the text is marked");
  await becomes(() => form.getByLabel("Name").inputValue(), "Lighthouse");
  await page.mouse.click(outside, y);
  await form.waitFor({ state: "detached" });
});
