/** The review of a canvas, and images before and after an Action. */
import assert from "node:assert/strict";

import type { Route } from "playwright-core";

import { node, openBoard, path, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { apply, makeBoard, png, read, reader, send } from "./service.ts";
import { signIn } from "./steps.ts";

scene("the review says whether the work is done, and room is made where a dry run finds it", async ({ page, guest, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Reviewed", [text("Below", 0, 0), text("Above", 60, 40), text("Beside", 320, 0)]);
  await openBoard(page, url);
  await page.getByRole("button", { name: "Check 1" }).click();
  const panel = page.getByRole("complementary", { name: "Check" });
  const review = panel.getByRole("region", { name: "Summary" });
  await review.getByText("Please look at 1 thing.").waitFor();
  await panel.getByText("Two things cover each other.").waitFor();
  await isAccessible();
  const viewer = await guest();
  await signIn(viewer, await reader(), url);
  await viewer.getByRole("button", { name: "Check 1" }).click();
  await viewer.getByText("Please look at 1 thing.").waitFor();
  await becomes(() => viewer.getByRole("button", { name: "Make room" }).count(), 0);
  await panel.getByRole("button", { name: "Make room" }).click();
  await page.getByRole("button", { name: "Check", exact: true }).waitFor();
  await review.getByText("Everything is in order.").waitFor();
  const { nodes } = await read(canvas);
  assert.deepEqual([titled({ nodes } as never, "Below")?.position, titled({ nodes } as never, "Beside")?.position], [{ x: 0, y: 0 }, { x: 320, y: 0 }], "only one node is moved");
  await page.getByRole("button", { name: "Undo", exact: true }).click();
  await page.getByRole("button", { name: "Check 1" }).waitFor();
});

scene("an owner's board waits for no review, and says what could not be read", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Unreviewed", [text("Shown", 0, 0)]);
  const fail = (status: number) => (route: Route) => route.fulfill({ status, headers: { "Retry-After": "60" }, contentType: "application/problem+json", body: "{}" });
  for (const [part, status] of [["", 503], ["/review", 403]] as const) {
    expect(`${status} GET ${path(canvas, part)}`);
    await page.route(`**${path(canvas, part)}`, fail(status));
  }
  await signIn(page, undefined, url);
  const failure = page.getByRole("alert").filter({ hasText: "This canvas cannot be opened" });
  await failure.waitFor();
  await isAccessible();
  await page.unroute(`**${path(canvas, "")}`);
  await failure.getByRole("button", { name: "Try again" }).click();
  await node(page, "Shown").waitFor();
  assert.equal(await page.title(), "Unreviewed · Canvas Service");
  await page.getByRole("button", { name: "Check", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Check" });
  await panel.getByText("The check cannot be loaded").waitFor();
  await isAccessible();
  await page.unroute(`**${path(canvas, "/review")}`);
  await panel.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("button", { name: "Check", exact: true }).waitFor();
  await panel.getByText("Everything is in order.").waitFor();
});

scene("outputs that a person should compare with the product are listed", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Product", []);
  const { asset } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(96, 96));
  const { models } = await send<{ models: { handle: string; name: string }[] }>("GET", "/models?limit=100");
  const { revision } = await read(canvas);
  await send("POST", "/images/generate", {
    canvasId: canvas.id,
    baseRevision: revision,
    idempotencyKey: crypto.randomUUID(),
    model: models.find(({ name }) => name === "Sketch")?.handle,
    prompt: "The mug on a pier",
    references: [{ handle: asset.node, role: "identity" }],
    place: { title: "Hero" },
  });
  await until(canvas, "the image is made", ({ nodes }) => nodes.filter((one) => one.asset !== undefined).length === 2);
  await openBoard(page, url);
  await page.locator('[data-panel="findings"]').click();
  const panel = page.getByRole("complementary", { name: "Check" });
  await panel.getByRole("heading", { name: "The product in the results" }).waitFor();
  await panel.getByText("Compare these with the product.").waitFor();
  await isAccessible();
  await panel.locator("li", { hasText: "Hero" }).getByRole("button", { name: "Show" }).first().click();
  await page.locator('.react-flow__node.selected[aria-label*="Hero"]').waitFor();
});

scene("about what an Action will make is shown, and then its result over its source", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Before and after", []);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(400, 200));
  const [source] = (await read(canvas)).nodes;
  assert(source);
  await apply(canvas, [{ type: "node.update", nodeId: source.id, patch: { title: "Photo" } }]);
  await openBoard(page, url);
  await page.locator("img").first().waitFor();
  await node(page, "Photo").click();
  await page.keyboard.press("p");
  const panel = page.getByRole("complementary", { name: "Details" });
  const about = panel.locator("figcaption", { hasText: "About" });
  const forms: [string, Record<string, string>, string][] = [
    ["Resize", { Width: "100" }, "100 × 50"],
    ["Change aspect ratio", { Ratio: "1:1" }, "200 × 200"],
    ["Rotate", { Degrees: "90" }, "200 × 400"],
    ["Add text to image", { Text: "Autumn" }, "400 × 200"],
    ["Crop", { Width: "120", Height: "80" }, "120 × 80"],
  ];
  for (const [action, entries, size] of forms) {
    await panel.getByLabel("Make a new image").selectOption({ label: action });
    for (const [label, value] of Object.entries(entries)) await panel.locator("form").getByLabel(label, { exact: true }).fill(value);
    await about.getByText(`About ${size} pixels`).waitFor();
    if (action === "Add text to image") await panel.locator("figure").getByText("Autumn").waitFor();
  }
  assert.equal(await page.evaluate(() => document.documentElement.scrollHeight), 800, "a long panel does not make the page higher");
  await isAccessible();
  await panel.locator("form").getByLabel("Width", { exact: true }).fill("9999");
  await about.waitFor({ state: "detached" });
  await panel.locator("form").getByLabel("Width", { exact: true }).fill("120");
  await panel.getByRole("button", { name: "Apply" }).click();
  await panel.getByText("Made by an Action").waitFor();
  // What it made is over its source in Look.
  await page.getByRole("application", { name: "Board" }).press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("q");
  const slider = page.getByRole("dialog", { name: /^Compare Photo/ }).getByRole("slider");
  await slider.focus();
  await page.keyboard.press("End");
  await becomes(() => slider.getAttribute("aria-valuetext"), "100 percent");
  await isAccessible();
});
