/** Recipes: the gallery, runs from the screen and from the board, and Recipes that a person makes. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import type { Page } from "playwright-core";

import { ROOT } from "./board.ts";
import { NOBODY, scene } from "./browser.ts";
import { admin, type Canvas, makeBoard, png, read, send, stranger } from "./service.ts";
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
  await storyboard.getByText("Stand-in").waitFor();
  await storyboard.getByRole("list", { name: "Makes" }).getByText("Treatment").waitFor();
  await isAccessible();
  await page.getByText("Yours", { exact: true }).first().click();
  await page.getByLabel("Search Recipes").fill("CAPTION slogan");
  await storyboard.waitFor({ state: "detached" });
  await cards.filter({ hasText: "Slogan and caption" }).getByText("free", { exact: true }).waitFor();
  assert.equal(await cards.count(), 1);
  await page.getByLabel("Search Recipes").fill("nothing of this name");
  await heading2(page, "No Recipe matches");
  await page.getByRole("button", { name: "Show all Recipes" }).click();
  await storyboard.waitFor();
});

const heading2 = (page: Page, name: string) => page.getByRole("heading", { level: 2, name }).waitFor();

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
  assert.equal(await subject.getAttribute("aria-invalid"), "true");
  assert(await subject.evaluate((field) => field === document.activeElement), "the keyboard is in the field");
  await isAccessible();
  await page.keyboard.type("A cup of <b>coffee</b>");
  await page.getByLabel("Canvas for the results").selectOption(canvas.handle);
  await page.getByRole("button", { name: "Run · free" }).focus();
  await page.keyboard.press("Enter");
  const progress = page.getByRole("region", { name: "Run", exact: true });
  await progress.getByText("Done", { exact: true }).waitFor();
  await progress.getByText("<b>coffee</b>").first().waitFor();
  assert.equal(await progress.getByText("Stand-in").count(), 2);
  await isAccessible();
  await page.reload();
  await progress.getByText("Done", { exact: true }).waitFor();
  await progress.getByRole("link", { name: "Open the canvas" }).click();
  await heading(page, "Results");
  const { nodes } = await read(canvas, token);
  assert(nodes.some(({ title, metadata }) => title === "slogan" && metadata.content?.includes("coffee")));
});

scene("a Recipe with a picture takes one of the canvas or an upload, and makes a new canvas", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const token = await visitor();
  const { canvas } = await makeBoard("Source of pictures", [], token);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(96, 64), token);
  await signIn(page, token, "/recipes?recipe=material-close-up");
  await page.getByLabel("Canvas for the results").selectOption(canvas.handle);
  await page.getByRole("button", { name: /^Choose a picture for Product/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.locator("img").first().waitFor();
  await isAccessible();
  await dialog.getByLabel("Picture to upload").setInputFiles({ name: "cup.png", mimeType: "image/png", buffer: Buffer.from(png(64, 64)) });
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("group", { name: /Product/ }).getByText("cup.png").waitFor();
  await page.getByRole("textbox", { name: /Material/ }).fill("Glazed clay");
  await page.getByText("Model and spending cap").click();
  expect(`402 POST ${ROOT}/recipes/material-close-up/runs`);
  await page.getByLabel("Most credits to spend").fill("0");
  await run(page).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Most credits to spend").fill("");
  await page.getByLabel("Canvas for the results").selectOption({ label: "A new canvas" });
  await run(page).click();
  const progress = page.getByRole("region", { name: "Run", exact: true });
  await progress.getByText("Done", { exact: true }).waitFor({ timeout: 30_000 });
  await progress.locator("img").waitFor();
  await progress.getByRole("link", { name: "Open the canvas" }).click();
  await heading(page, "Material close-up");
});
