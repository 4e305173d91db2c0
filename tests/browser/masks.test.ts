/** Edits within a mask that is painted on the board. */
import assert from "node:assert/strict";

import { drag, node, openBoard, until } from "./board.ts";
import { NOBODY, scene } from "./browser.ts";
import { admin, apply, makeBoard, png, read, send, stranger } from "./service.ts";

scene("what is painted over a source is all that an edit changes", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "10");
  const { canvas, url } = await makeBoard("Masks", [], token);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(400, 300), token);
  const [photo] = (await read(canvas, token)).nodes;
  await apply(canvas, [{ type: "node.update", nodeId: photo?.id, patch: { title: "Photo" } }], token);
  await openBoard(page, url, token);
  await node(page, "Photo").click();
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Make" });
  await panel.getByLabel("What to make").selectOption("edit");
  await panel.getByLabel("Prompt").fill("a starry sky");
  const paper = panel.getByRole("img", { name: "The source: paint the part that may change" });
  await paper.scrollIntoViewIfNeeded();
  const at = async (x: number, y: number) => {
    const box = await panel.locator("canvas").boundingBox();
    assert.ok(box);
    return { x: box.x + box.width * x, y: box.y + box.height * y };
  };
  await panel.getByText("Rectangle", { exact: true }).click();
  await drag(page, await at(0.1, 0.1), await at(0.9, 0.4));
  await panel.getByText("Only what is painted changes.").waitFor();
  await panel.getByText("Eraser", { exact: true }).click();
  await drag(page, await at(0.1, 0.1), await at(0.2, 0.1));
  await panel.getByText("Brush", { exact: true }).click();
  await drag(page, await at(0.3, 0.3), await at(0.6, 0.35));
  await panel.getByLabel("Feather").fill("4");
  await isAccessible();

  const uploads: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "POST" && request.url().includes("/assets?")) uploads.push(request.url());
  });
  await panel.getByRole("button", { name: "Make · 1 credit" }).click();
  const made = await until(canvas, "the edit is made", ({ nodes }) => nodes.filter(({ asset }) => asset !== undefined).length === 2, token);
  assert.equal(made.nodes.length, 2, "no node shows the mask");
  assert.ok(uploads.length === 1 && uploads[0]?.includes("node=none"), String(uploads));
  const result = made.nodes.find(({ id }) => id !== photo?.id);
  assert.match((result?.metadata.provenance as { mask?: string } | undefined)?.mask ?? "", /^asset:/);
  const { runs } = await send<{ runs: { id: string }[] }>("GET", "/runs", undefined, token);
  const job = await send<{ images: { masked: boolean; width: number; height: number }[] }>("GET", `/jobs/${runs[0]?.id.replace("run:", "job:")}`, undefined, token);
  assert.deepEqual(job.images.map(({ masked, width, height }) => ({ masked, width, height })), [{ masked: true, width: 400, height: 300 }]);
});
