/** Recipes: the gallery, runs from the screen and from the board, and Recipes that a person makes. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import type { Page } from "playwright-core";

import { node, openBoard, path, ROOT, text, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, type Canvas, makeBoard, png, read, send, stranger, TOKEN } from "./service.ts";
import { heading, signIn } from "./steps.ts";

/** A new account with some credit, whose work the embedded models do. */
async function visitor(scopes?: string): Promise<string> {
  const { uid, token } = await stranger(scopes);
  await admin("credits", "grant", "--account", uid, "--amount", "100");
  return token;
}

/** A Recipe of this account that makes two texts, for no credit. */
async function makeWorkflow(canvas: Canvas, name: string, token: string): Promise<string> {
  const output = (key: string, inputKeys: string[], prompt: string) => ({ key, label: key, type: "text", inputKeys, prompt });
  const made = await send<{ workflow: { id: string } }>("POST", `/canvases/${canvas.handle}/workflows`, {
    name,
    description: "Two lines for a product.",
    idempotencyKey: randomUUID(),
    inputs: [
      { key: "subject", label: "Subject", description: "What it is about.", type: "text", useAsDefault: false },
      { key: "tone", label: "Tone", type: "text", value: "Calm", useAsDefault: true, writtenReference: true },
    ],
    outputs: [output("slogan", ["subject", "tone"], "Slogan for {{subject}} in a {{tone}} tone"), output("caption", ["slogan"], "Caption under {{slogan}}")],
  }, token);
  return made.workflow.id;
}

const heading2 = (page: Page, name: string) => page.getByRole("heading", { level: 2, name }).waitFor();
const run = (page: Page) => page.getByRole("button", { name: /^Run( ·|$)/ });

scene("the gallery finds Recipes, and shows what they make, from what, and for which price", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const token = await visitor();
  const { canvas } = await makeBoard("Workshop", [], token);
  await makeWorkflow(canvas, "Slogan and caption", token);
  await signIn(page, token);
  await page.getByRole("link", { name: "Recipes", exact: true }).click();
  await heading(page, "Recipes");
  const cards = page.getByRole("main").getByRole("listitem").filter({ has: page.getByRole("heading", { level: 2 }) });
  const storyboard = cards.filter({ has: page.getByRole("link", { name: "Storyboard of a brief" }) });
  await storyboard.getByText(/^\d+ credits$/).waitFor();
  await storyboard.getByText("Draft", { exact: true }).waitFor();
  await storyboard.getByRole("list", { name: "Makes" }).getByText("Treatment").waitFor();
  await isAccessible();
  await page.getByText("Yours", { exact: true }).first().click();
  await page.getByLabel("Search Recipes").fill("CAPTION slogan");
  await storyboard.waitFor({ state: "detached" });
  await cards.filter({ hasText: "Slogan and caption" }).getByText("no credits", { exact: true }).waitFor();
  await becomes(() => cards.count(), 1);
  await page.getByLabel("Search Recipes").fill("nothing of this name");
  await heading2(page, "No Recipe matches");
  await page.getByRole("button", { name: "Show all Recipes" }).click();
  await storyboard.waitFor();
});

scene("Recipes are filtered by category and by tags, which the address keeps", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  await signIn(page, await visitor(), "/recipes");
  const names = page.getByRole("main").getByRole("listitem").getByRole("heading", { level: 2 });
  await names.nth(6).waitFor();
  const tags = page.getByRole("group", { name: "Tags" });
  await page.getByLabel("Category").selectOption("Product Visualization");
  await becomes(() => names.count(), 3);
  await becomes(() => tags.getByRole("checkbox").first().evaluate((box) => box.parentElement?.textContent), "product", "the most frequent is the first");
  await becomes(() => tags.getByText("storyboard").count(), 0, "no tag leads to nothing");
  await tags.getByRole("checkbox", { name: "macro" }).press("Space");
  await becomes(() => names.allTextContents(), ["Material close-up"]);
  await page.getByRole("status").getByText("1 Recipe found").waitFor();
  await isAccessible();
  await page.reload();
  await becomes(() => names.allTextContents(), ["Material close-up"]);
  await tags.getByRole("checkbox", { name: "macro", checked: true }).press("Space");
  await becomes(() => names.count(), 3);
  await page.getByLabel("Category").selectOption("All categories");
  await page.getByRole("button", { name: /^All \d+ tags$/ }).click();
  await tags.getByRole("checkbox", { name: "storyboard" }).press("Space");
  await becomes(() => names.allTextContents(), ["Storyboard of a brief"]);
  await page.getByText("Yours", { exact: true }).click();
  await heading2(page, "No Recipe matches");
  await page.getByRole("button", { name: "Show all Recipes" }).click();
  await names.nth(6).waitFor();
});

scene("a Recipe is run from its page by keyboard, and a port without a value is said at its field", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const token = await visitor();
  const { canvas } = await makeBoard("Results", [], token);
  const id = await makeWorkflow(canvas, "Two lines", token);
  await signIn(page, token, `/recipes?recipe=${id}`);
  await heading(page, "Two lines");
  await page.getByLabel("Canvas for the results").selectOption({ label: "A new canvas" });
  await run(page).focus();
  await page.keyboard.press("Enter");
  const subject = page.getByRole("textbox", { name: "Subject" });
  await page.getByRole("group", { name: "Subject" }).getByText("Write a text here.").waitFor();
  await becomes(() => subject.getAttribute("aria-invalid"), "true");
  assert(await subject.evaluate((field) => field === document.activeElement), "the keyboard is in the field");
  await isAccessible();
  await page.keyboard.type("A cup of <b>coffee</b>");
  await page.getByLabel("Canvas for the results").selectOption(canvas.handle);
  await page.getByRole("button", { name: "Run · no credits" }).focus();
  await page.keyboard.press("Enter");
  const progress = page.getByRole("region", { name: "Run", exact: true });
  await progress.getByText("Done", { exact: true }).waitFor();
  await progress.getByText("<b>coffee</b>").first().waitFor();
  await becomes(() => progress.getByText("Draft", { exact: true }).count(), 2);
  await isAccessible();
  await page.reload();
  await progress.getByText("Done", { exact: true }).waitFor();
  await progress.getByRole("link", { name: "Open the canvas" }).click();
  await heading(page, "Results");
  const { nodes } = await read(canvas, token);
  assert(nodes.some(({ title, metadata }) => title === "slogan" && metadata.content?.includes("coffee")));
});

scene("a Recipe with an image takes one of the canvas or an upload, and makes a new canvas", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const token = await visitor();
  const { canvas } = await makeBoard("Source of images", [], token);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(96, 64), token);
  await signIn(page, token, "/recipes?recipe=material-close-up");
  await page.getByLabel("Canvas for the results").selectOption(canvas.handle);
  await page.getByRole("button", { name: /^Choose an image for Product/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.locator("img").first().waitFor();
  await isAccessible();
  await dialog.getByLabel("Image to upload").setInputFiles({ name: "cup.png", mimeType: "image/png", buffer: Buffer.from(png(64, 64)) });
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("group", { name: /Product/ }).getByText("cup.png").waitFor();
  await page.getByRole("textbox", { name: /Material/ }).fill("Glazed clay");
  await page.getByText("Model and spending cap").click();
  expect(`402 POST ${ROOT}/recipes/material-close-up/runs`);
  await page.getByLabel("Most credits to spend").fill("0");
  await run(page).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Most credits to spend").fill("");
  // With a model of one's own, the price is that of a dry run.
  await page.getByLabel("Model for the images").selectOption({ index: 1 });
  await page.getByRole("button", { name: "Run · 1 credit", exact: true }).waitFor();
  await page.getByLabel("Canvas for the results").selectOption({ label: "A new canvas" });
  // There is no canvas for a dry run yet, and the start has its bound all the same: also once the price of the other canvas is gone.
  await page.waitForTimeout(1000);
  const started = page.waitForRequest((request) => request.method() === "POST" && request.url().endsWith("/recipes/material-close-up/runs"));
  await page.getByRole("button", { name: "Run · 1 credit", exact: true }).click();
  assert.equal((await started).postDataJSON().maxCredits, 1);
  const progress = page.getByRole("region", { name: "Run", exact: true });
  await progress.getByText("Done", { exact: true }).waitFor({ timeout: 30_000 });
  await progress.locator("img").waitFor();
  await progress.getByRole("link", { name: "Open the canvas" }).click();
  await heading(page, "Material close-up");
});

scene("a Recipe is run on the board with the selected text, beside it, and its instance is run again", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const token = await visitor();
  const { canvas, url } = await makeBoard("Board with a Recipe", [text("Brief", 0, 0, { metadata: { content: "A harbor at dawn" } })], token);
  await makeWorkflow((await makeBoard("Elsewhere", [], token)).canvas, "Two lines", token);
  await openBoard(page, url, token);
  await node(page, "Brief").click();
  await page.keyboard.press("w");
  const panel = page.getByRole("complementary", { name: "Recipes" });
  await panel.getByRole("button", { name: /^Storyboard/ }).waitFor();
  await isAccessible();
  await panel.getByLabel("Search Recipes").fill("Two lines");
  await panel.getByRole("button", { name: /^Two lines/ }).click();
  await panel.getByRole("group", { name: "Subject" }).getByText("Brief", { exact: true }).waitFor();
  await becomes(() => panel.getByLabel("Where the results go").locator("option:checked").textContent(), "Beside “Brief”");
  await panel.getByRole("button", { name: "Take Brief out of Subject" }).press("Enter");
  await becomes(() => page.evaluate(() => document.activeElement?.tagName), "TEXTAREA", "the field has the keyboard");
  await panel.getByRole("button", { name: "Run · no credits" }).click();
  await panel.getByText("Write a text here.").waitFor();
  await panel.getByRole("button", { name: "Choose a text of the canvas for Subject" }).click();
  await page.getByRole("dialog", { name: "Text for Subject" }).getByRole("button", { name: /Brief$/ }).click();
  await isAccessible();
  const sent = page.waitForRequest((request) => request.method() === "POST" && /\/recipes\/[^/]+\/runs$/.test(request.url()) && request.postDataJSON().validateOnly !== true);
  await panel.getByRole("button", { name: "Run · no credits" }).click();
  assert.equal((await sent).postDataJSON().fit, true, "nodes get the ratios of their results");
  await panel.getByText("Done", { exact: true }).waitFor();
  const { nodes, connections } = await until(canvas, "the instance is there", (graph) => graph.nodes.length === 6, token);
  const brief = nodes.find(({ title }) => title === "Brief");
  assert(connections.some(({ fromNodeId }) => fromNodeId === brief?.id), "the text leads to the port");
  await isAccessible();
  await panel.getByRole("button", { name: "Show on the canvas" }).click();
  await page.locator(".react-flow__node.selected").nth(1).waitFor();
  await panel.getByRole("button", { name: "All Recipes" }).click();
  await panel.getByRole("button", { name: /^Run the selected Two lines/ }).click();
  await panel.getByRole("button", { name: "Run · no credits" }).click();
  await panel.getByText("Done", { exact: true }).waitFor();
  assert.equal((await read(canvas, token)).nodes.length, 6, "the same nodes are filled again");
});

scene("a Recipe is forked into a Section, and a run is canceled", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Forks", [text("Brief", 0, 0, { metadata: { content: "A harbor at dawn" } })]);
  await openBoard(page, url);
  await node(page, "Brief").click();
  await page.getByRole("button", { name: "Recipes", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Recipes" });
  await panel.getByRole("button", { name: /^Storyboard/ }).click();
  await panel.getByLabel("Where the results go").selectOption({ label: "In a new Section" });
  await panel.getByRole("button", { name: "Fork without running" }).click();
  const { nodes } = await until(canvas, "the instance is in a Section", (graph) => graph.nodes.length === 9);
  const section = nodes.find(({ metadata }) => metadata.section);
  assert.equal(section?.title, "Storyboard of a brief");
  assert.equal(nodes.filter(({ metadata }) => metadata.sectionId === section?.id).length, 7);
  await page.locator(".react-flow__node.selected").first().waitFor();
  await panel.getByText("What is left empty comes from this instance").waitFor();
  await panel.getByRole("button", { name: "All Recipes" }).click();
  await panel.getByRole("button", { name: /^Storyboard/ }).click();
  await panel.getByLabel("Where the results go").selectOption({ label: "Beside everything else" });
  await panel.getByRole("textbox", { name: /^Brief/ }).fill("A walk [[sim:hang]]");
  await panel.getByRole("button", { name: /^Run · / }).click();
  await panel.getByRole("button", { name: "Cancel the run" }).click();
  await panel.getByText("Canceled", { exact: true }).waitFor();
  await becomes(() => panel.getByText("canceled", { exact: true }).count(), 4, "no step is made any more");
  assert.equal(await panel.getByText("recipe_run_canceled").count(), 0, "a run that was canceled has not failed");
  await isAccessible();
  await panel.getByRole("button", { name: "Back to the form" }).click();
  await panel.getByRole("textbox", { name: /^Brief/ }).waitFor();
});

scene("a Recipe is made from a Section by keyboard, and run", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const token = await visitor();
  const member = { metadata: { sectionId: "Slogans" } };
  const { canvas, ids, url } = await makeBoard(
    "Own Recipe",
    [
      { title: "Slogans", type: "sticky", position: { x: 0, y: 0 }, width: 900, height: 400, metadata: { section: true } },
      text("Product", 60, 100, { metadata: { ...member.metadata, content: "A cup" } }),
      text("Slogan", 500, 100, member),
    ],
    token,
  );
  await apply(canvas, [{ type: "connection.create", fromNodeId: ids["Product"], toNodeId: ids["Slogan"], purpose: "flow" }], token);
  await openBoard(page, url, token);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("Slogans");
  await page.getByRole("option", { name: "Slogans Section" }).waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("w");
  const panel = page.getByRole("complementary", { name: "Recipes" });
  await panel.getByRole("button", { name: "Make a Recipe from the selection" }).press("Enter");
  await becomes(() => panel.getByLabel("Name of the Recipe").inputValue(), "Slogans");
  const [product, slogan] = [panel.getByRole("group", { name: "Product" }), panel.getByRole("group", { name: "Slogan" })];
  await becomes(() => product.getByLabel("Role").inputValue(), "input");
  await becomes(() => slogan.getByRole("checkbox", { name: /^Product/ }).isChecked(), true);
  await panel.getByRole("button", { name: "Make the Recipe" }).press("Enter");
  await slogan.getByText("Write how it is made.").waitFor();
  const prompt = slogan.getByLabel("How it is made");
  await page.waitForFunction(() => document.activeElement?.tagName === "TEXTAREA");
  await isAccessible();
  expect(`400 POST ${path(canvas, "/workflows")}`);
  await prompt.fill("Slogan for {{cup}}");
  await panel.getByRole("button", { name: "Make the Recipe" }).press("Enter");
  await slogan.locator("[aria-invalid=true]").waitFor();
  await prompt.fill("Slogan for {{product}}");
  await panel.getByRole("button", { name: "Make the Recipe" }).press("Enter");
  await panel.getByText("What is left empty comes from this instance").waitFor();
  await panel.getByRole("button", { name: "Run · no credits" }).press("Enter");
  await panel.getByText("Done", { exact: true }).waitFor();
  await panel.getByText(/cup/).first().waitFor();
});

scene("a step that fails says why, and what depends on it is not made", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Failing", []);
  const id = await makeWorkflow(canvas, "Refused", TOKEN);
  await signIn(page, TOKEN, `/recipes?recipe=${id}`);
  await page.getByRole("textbox", { name: "Subject" }).fill("A cup [[sim:content]]");
  await page.getByLabel("Canvas for the results").selectOption(canvas.handle);
  await run(page).click();
  const progress = page.getByRole("region", { name: "Run", exact: true });
  await progress.getByText("Failed", { exact: true }).waitFor({ timeout: 30_000 });
  const steps = progress.getByRole("listitem");
  await steps.filter({ hasText: "slogan" }).locator("code").waitFor();
  await steps.filter({ hasText: "caption" }).getByText("canceled", { exact: true }).waitFor();
  await isAccessible();

  await page.goto(`/runs?canvas=${encodeURIComponent(canvas.handle)}&state=failed`);
  await page.getByRole("button", { name: /^Refused/ }).click();
  await page.getByRole("link", { name: "New attempt…" }).click();
  await heading(page, "Refused");
  await page.goto(url);
  await page.getByRole("button", { name: "Queue", exact: true }).click();
  await page.getByRole("complementary", { name: "Queue" }).getByRole("button", { name: "Again" }).press("Enter");
  await page.getByRole("complementary", { name: "Recipes" }).getByRole("button", { name: /^Run the selected Refused/ }).waitFor();
});

scene("a session without the scopes sees Recipes, and why it may not run them", async ({ page, expect }) => {
  expect(NOBODY);
  await signIn(page, await visitor("canvas:read"), "/recipes?recipe=storyboard");
  await heading(page, "Storyboard of a brief");
  await page.getByText("it lacks canvas:write, asset:read, image:generate").waitFor();
  await becomes(() => run(page).isDisabled(), true);
  await becomes(() => page.getByRole("button", { name: "Fork without running" }).count(), 0);
  expect(`404 GET ${ROOT}/recipes/nothing`);
  await page.goto("/recipes?recipe=nothing");
  await heading2(page, "There is nothing here for you");
});

scene("a run that a session may not follow is said to have started", async ({ page, expect }) => {
  expect(NOBODY);
  const token = await visitor("canvas:read,canvas:write,asset:read,image:generate");
  const { canvas } = await makeBoard("Unfollowed", [], token);
  const id = await makeWorkflow(canvas, "Two lines", token);
  await signIn(page, token, `/recipes?recipe=${id}`);
  await page.getByRole("textbox", { name: "Subject" }).fill("A cup");
  await page.getByLabel("Canvas for the results").selectOption(canvas.handle);
  await run(page).click();
  await page.getByText("it lacks job:manage").waitFor();
});
