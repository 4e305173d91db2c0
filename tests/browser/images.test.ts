/** Images that the service does not give, and what is said of images to those who cannot see them. */
import assert from "node:assert/strict";
import { node, openBoard, ROOT, saved, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { apply, makeBoard, png, send, TOKEN } from "./service.ts";
import { field, isLive } from "./steps.ts";

scene("an image that was refused is asked for again after a while, and at once after the next sign-in", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Refused image", []);
  const { asset } = await send<{ asset: { handle: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(96, 96));
  expect(`404 GET ${ROOT}/assets/${encodeURIComponent(asset.handle)}/content`);
  const refuse = () => page.route("**/content?w=*", (route) => route.fulfill({ status: 404, json: { error: { code: "not_found", message: "There is no such asset." } } }));
  const [refused, shown] = [page.getByText("This image cannot be shown"), page.locator(".react-flow__node img")];
  await page.clock.install();
  await refuse();
  await openBoard(page, url);
  await refused.waitFor();
  await page.unroute("**/content?w=*");
  await page.clock.fastForward(31_000);
  await shown.waitFor();

  await refuse();
  await page.reload();
  await refused.waitFor();
  await page.unroute("**/content?w=*");
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await field(page).fill(TOKEN);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("link", { name: "Refused image" }).first().click();
  await isLive(page);
  await shown.waitFor({ timeout: 10_000 });
});

scene("an image is described by its text, by its title, or as decorative", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Described", []);
  const { asset } = await send<{ asset: { handle: string } }>("POST", "/assets", png(96, 96));
  const image = (title: string, x: number, metadata: object) => ({
    type: "node.create",
    node: { type: "image", title, asset: asset.handle, position: { x, y: 0 }, width: 200, height: 200, metadata },
  });
  await apply(canvas, [image("A title", 0, {}), image("photo.png", 300, { altText: "Boots in snow" }), image("Line", 600, { altText: "" })]);
  await openBoard(page, url);
  const shown = page.locator(".react-flow__node img");
  const texts = () => shown.evaluateAll((images) => images.map((image) => (image as HTMLImageElement).alt));
  await becomes(texts, ["A title", "Boots in snow", ""]);
  await becomes(() => page.locator('.react-flow__node img[aria-hidden="true"]').count(), 1);
  await isAccessible();

  await node(page, "A title").click();
  await page.keyboard.press("p");
  const description = page.getByLabel("Description, for those who cannot see it");
  assert.equal(await description.getAttribute("placeholder"), "A title");
  await description.fill("A red square");
  await description.blur();
  await saved(page);
  const alt = (title: string) => (graph: { nodes: { title: string; metadata: object }[] }) => graph.nodes.find((one) => one.title === title)?.metadata as { altText?: string };
  await until(canvas, "the description is saved", (graph) => alt("A title")(graph).altText === "A red square");
  const decorative = page.getByLabel("It is decorative: it says nothing");
  await decorative.check();
  await until(canvas, "it is decorative", (graph) => alt("A title")(graph).altText === "");
  assert.ok(await description.isDisabled());
  await decorative.uncheck();
  await until(canvas, "it has no description", (graph) => alt("A title")(graph).altText === undefined);
  await becomes(texts, ["A title", "Boots in snow", ""]);
});
