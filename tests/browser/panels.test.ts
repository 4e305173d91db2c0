/** What is made on the board: Actions and generated images; and the panels in which that is done. */
import assert from "node:assert/strict";

import type { Locator } from "playwright-core";

import { box, node, openBoard, path, ROOT, saved, text, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { apply, type Graph, makeBoard, makeCanvas, png, read, runAction, send } from "./service.ts";

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
  const panel = page.getByRole("complementary", { name: "Details" });
  const run = panel.getByRole("button", { name: "Apply" });
  const select = async () => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type("Photo");
    await page.getByRole("option", { name: "Photo image", exact: true }).click();
  };
  for (const [index, [action, entries]] of forms.entries()) {
    await select();
    await panel.getByLabel("Make a new image").selectOption({ label: action });
    for (const [label, value] of Object.entries(entries)) await panel.locator("form").getByLabel(label, { exact: true }).fill(value);
    if (index === 1) await isAccessible();
    await run.click();
    const made = await until(canvas, `${action} has a result`, (graph) => graph.nodes.filter(({ asset }) => asset !== undefined).length === 3 + index);
    assert.equal(made.nodes.filter(({ metadata }) => metadata.provenance !== undefined).length, 3 + index);
    await page.getByText("Made by an Action").waitFor();
  }
  expect(`400 POST ${ROOT}/actions/change-aspect-ratio/runs`);
  await select();
  await panel.getByLabel("Make a new image").selectOption({ label: "Change aspect ratio" });
  await panel.locator("form").getByLabel("Ratio", { exact: true }).fill("wide");
  await run.press("Enter");
  await panel.getByRole("alert").waitFor();
  await becomes(() => page.locator(":focus").textContent(), "Apply", "the button has the keyboard");
  await becomes(() => panel.locator("[aria-invalid=true]").count(), 1);
  await until(canvas, "the refused start leaves nothing", (graph) => graph.nodes.length === 10);
});

scene("of more images than an Action takes, a person chooses the one that all others get", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Several", []);
  for (const [index, title] of ["One", "Two", "Three"].entries()) {
    const { asset } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(90 + index, 64));
    await apply(canvas, [{ type: "node.update", nodeId: asset.node, patch: { title } }]);
  }
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url);
  await node(page, "Three").waitFor();
  await node(page, "Two").click();
  await page.keyboard.press("p");
  const panel = page.getByRole("complementary", { name: "Details" });
  await panel.getByLabel("Make a new image").selectOption({ label: "Resize" });
  await panel.locator("form").getByLabel("Width", { exact: true }).fill("48");
  const isSelected = Promise.withResolvers<void>();
  await page.route("**/actions/resize/runs", (route) => isSelected.promise.then(() => route.continue()), { times: 1 });
  const answered = page.waitForResponse("**/actions/resize/runs");
  await panel.getByRole("button", { name: "Apply" }).click();
  const after = await until(canvas, "the place of the result", (graph) => graph.nodes.length === 4);
  const result = after.nodes.find(({ title }) => !["One", "Two", "Three"].includes(title));
  assert.deepEqual(after.connections.map(({ fromNodeId, toNodeId }) => [titleOf(after, fromNodeId), toNodeId]), [["Two", result?.id]]);
  await page.keyboard.press("Control+a");
  isSelected.resolve();
  await answered;
  await saved(page);
  await becomes(() => page.locator(".react-flow__node.selected").count(), 4, "what is selected before the answer stays selected");

  await until(canvas, "the result", ({ nodes }) => nodes.every(({ asset }) => asset !== undefined));
  await panel.getByLabel("Make a new image").selectOption({ label: "Overlay image" });
  const second = panel.locator("form").getByRole("button", { name: "Choose one…" });
  await panel.getByRole("button", { name: "Overlay 4 images" }).click();
  await becomes(() => second.evaluate((button) => button === document.activeElement), true, "nothing runs on one of them in silence");
  await second.click();
  await page.getByRole("dialog").getByRole("button", { name: "Two", exact: true }).click();
  await panel.getByText("1 of 3", { exact: true }).waitFor();
  await isAccessible();
  await panel.getByRole("button", { name: "Overlay 3 images" }).click();
  await page.getByText("3 images are ready, with their overlay.").waitFor({ timeout: 60_000 });
  const { connections } = await until(canvas, "three results from two images each", (graph) => graph.connections.length === 7);
  assert.equal(connections.filter(({ fromNodeId }) => titleOf(after, fromNodeId) === "Two").length, 4);
}, 120);

const titleOf = ({ nodes }: Graph, id: string) => nodes.find((node) => node.id === id)?.title;

interface Parameter {
  id: string;
  title: string;
  description?: string;
  type: "number" | "select" | "text" | "color";
  required: boolean;
  integer?: boolean;
  min?: number;
  max?: number;
  step?: number;
  maxLength?: number;
  options?: { value: string | number; label: string }[];
  default?: string | number;
}

/** What the control of a parameter has to be. */
function expectedControl({ id, description, type, required, integer, min, max, step, maxLength, options, ...rest }: Parameter) {
  const isGrid = id === "anchor" && options?.length === 9;
  const bound = (value: number | undefined) => value?.toString() ?? null;
  return {
    kind: isGrid ? "radio" : type === "select" ? "select-one" : type === "number" ? "number" : (maxLength ?? 0) > 100 ? "textarea" : "text",
    value: rest.default?.toString() ?? "",
    isRequired: required && !isGrid,
    hint: description ?? null,
    ...(type === "number" && { min: bound(min), max: bound(max), step: integer ? bound(step ?? 1) : "any" }),
    ...((type === "text" || type === "color") && { maxLength: bound(maxLength) }),
    options: options?.map(({ value, label }) => [String(value), label]) ?? [],
  };
}

/** What the control with this label is. */
const control = (form: Locator, { title, type }: Parameter) =>
  form.evaluate(
    (form, { title, type }) => {
      const named = [...form.querySelectorAll("label > span:first-child, legend")].filter(({ textContent }) => textContent === title);
      const label = named[0] as HTMLElement | undefined;
      if (!label || named.length > 1) return named.length;
      const find = (selector: string) => label.parentElement?.querySelector<HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement>(selector);
      const field = find("input:checked") ?? find("select, textarea, input");
      if (!field) return undefined;
      const radios = [...(label.parentElement?.querySelectorAll<HTMLInputElement>("input[type=radio]") ?? [])];
      const listed = field instanceof HTMLSelectElement ? [...field.options] : [...((field as HTMLInputElement).list?.options ?? [])];
      return {
        kind: field.type,
        value: field.value,
        isRequired: field.required,
        hint: field.getAttribute("title") ?? label.getAttribute("title"),
        ...(type === "number" && { min: field.getAttribute("min"), max: field.getAttribute("max"), step: field.getAttribute("step") }),
        ...((type === "text" || type === "color") && { maxLength: field.getAttribute("maxlength") }),
        options: radios.length > 0 ? radios.map((radio) => [radio.value, radio.getAttribute("aria-label")]) : listed.map(({ value, label }) => [value, label]),
      };
    },
    { title, type },
  );

scene("the form of every Action is that of its schema", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Forms", []);
  const { asset } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(96, 64));
  await apply(canvas, [{ type: "node.update", nodeId: asset.node, patch: { title: "Photo" } }]);
  const { actions } = await send<{ actions: { title: string; summary: string; inputs: object[]; parameters: Parameter[] }[] }>("GET", "/actions");
  assert.equal(actions.length, 8);
  await openBoard(page, url);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("p");
  const panel = page.getByRole("complementary", { name: "Details" });
  const form = panel.locator("form");
  for (const { title, summary, inputs, parameters } of actions) {
    await panel.getByLabel("Make a new image").selectOption({ label: title });
    await form.getByText(summary).waitFor();
    for (const parameter of parameters) assert.deepEqual(await control(form, parameter), expectedControl(parameter), `${title}: ${parameter.title}`);
    assert.equal(await form.locator("select, textarea, input:not([type=radio]), fieldset, button[aria-labelledby]").count(), parameters.length + inputs.length - 1, `${title}: no other controls`);
  }
  await isAccessible();
});

scene("images are made from a prompt and references, for the price that is shown", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Made", [text("Brief", 0, 0, { metadata: { content: "A quiet harbor at dawn" } })]);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(96, 96));
  await openBoard(page, url);
  await page.locator("img").first().waitFor();
  await page.keyboard.press("Control+a");
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Make" });
  await panel.getByText("from Brief").waitFor();
  await becomes(() => panel.getByLabel("Prompt").getAttribute("placeholder"), "A quiet harbor at dawn");
  const models = panel.getByLabel("Model", { exact: true });
  await models.selectOption((await models.locator("option", { hasText: "Sketch" }).getAttribute("value")) ?? "");
  await panel.getByRole("group", { name: "Made from 1 image" }).locator("[data-chip]").click();
  await panel.getByLabel(/is for$/).selectOption({ label: "same style" });
  await panel.getByLabel("2", { exact: true }).check();
  await isAccessible();
  await panel.getByRole("button", { name: /^Make( \d)? · / }).click();
  const after = await until(canvas, "two images are made", ({ nodes }) => nodes.filter(({ asset }) => asset !== undefined).length === 3);
  assert.equal(after.nodes.length, 4);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Queue", exact: true }).click();
  const runs = page.getByRole("complementary", { name: "Queue" });
  await runs.getByText("Succeeded").waitFor();
  await isAccessible();
  await runs.getByRole("button", { name: "Show" }).click();
  await becomes(() => page.locator(".react-flow__node.selected").count(), 2);
  assert.deepEqual(
    after.connections.map(({ purpose, role }) => role ?? purpose).toSorted(),
    ["flow", "flow", "style", "style"],
  );
});

scene("what images were made from stays for the next ones; references are added and removed, and the price has a cap", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Once more", [text("Brief", 0, 0, { metadata: { content: "A quiet harbor at dawn" } })]);
  const photos: string[] = [];
  for (const [index, title] of ["Photo", "Fabric"].entries()) {
    const { asset } = await send<{ asset: { handle: string; node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(96 + index, 96));
    await apply(canvas, [{ type: "node.update", nodeId: asset.node, patch: { title } }]);
    photos.push(asset.handle);
  }
  await openBoard(page, url);
  await node(page, "Brief").click();
  await node(page, "Photo").click({ modifiers: ["Shift"] });
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const make = page.getByRole("complementary", { name: "Make" });
  const models = make.getByLabel("Model", { exact: true });
  await models.selectOption((await models.locator("option", { hasText: "Sketch" }).getAttribute("value")) ?? "");
  const start = make.getByRole("button", { name: /^Make( \d)? · / });
  await start.click();
  const made = async (count: number) => (await until(canvas, `${count} images`, ({ nodes }) => nodes.filter(({ asset }) => asset !== undefined).length === count)).nodes;
  await made(3);
  // The new node is selected now, and the form is as it was.
  await make.getByText("from Brief").waitFor();
  await make.getByRole("group", { name: "Made from 1 image" }).getByText("Photo").waitFor();
  await make.getByRole("button", { name: "Add the selection" }).waitFor();

  await make.getByRole("button", { name: "Add an image…" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: "Image to make it from" });
  await dialog.getByRole("gridcell").nth(2).waitFor();
  await isAccessible();
  await dialog.getByRole("button", { name: /^Fabric/ }).click();
  const two = make.getByRole("group", { name: "Made from 2 images" });
  await two.locator("[data-chip]").nth(1).click();
  await two.getByLabel(/is for$/).selectOption({ label: "same material" });
  await make.getByRole("button", { name: "Remove Photo" }).press("Enter");
  await make.getByRole("group", { name: "Made from 1 image" }).waitFor();

  expect(`402 POST ${ROOT}/images/generate`);
  await make.getByLabel("Spend at most").fill("0");
  await start.click();
  await make.getByRole("alert").getByRole("button", { name: "Make for 1 credit" }).waitFor();
  await isAccessible();
  await until(canvas, "the refused start leaves nothing", ({ nodes }) => nodes.length === 4);
  await make.getByLabel("Spend at most").fill("7");
  await start.click();
  const again = (await made(4)).map(({ metadata }) => metadata.provenance as { references?: { handle: string; role?: string }[] } | undefined);
  assert.deepEqual(again.at(-1)?.references?.map(({ handle, role }) => [handle, role]), [[photos[1], "texture"]]);

  await make.getByRole("button", { name: "Use the selection" }).click();
  await make.getByRole("group", { name: "Made from 1 image" }).waitFor();
  await becomes(() => make.getByLabel("Prompt", { exact: true }).inputValue(), "");
});

scene("an image is made again with what it was made with, and says how it was made", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Again", []);
  const { asset } = await send<{ asset: { handle: string; node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(96, 96));
  await apply(canvas, [{ type: "node.update", nodeId: asset.node, patch: { title: "Photo" } }]);
  const { revision } = await read(canvas);
  const start = { canvasId: canvas.handle, baseRevision: revision, idempotencyKey: crypto.randomUUID(), model: "sketch", prompt: "A quiet harbor", references: [{ handle: asset.node, role: "style" }], size: "1536x1024", count: 2, place: { title: "Harbor" } };
  await send("POST", "/images/generate", start);
  await until(canvas, "two images are made", ({ nodes }) => nodes.filter(({ asset }) => asset !== undefined).length === 3);
  await openBoard(page, url);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("Harbor");
  await page.getByRole("option", { name: /^Harbor.* image$/ }).first().click();
  await page.getByRole("button", { name: "Details", exact: true }).click();
  const inspect = page.getByRole("complementary", { name: "Details" });
  const made = inspect.getByRole("region", { name: "How it was made" });
  await made.getByText(/^Generated by sketch/).waitFor();
  await made.getByText("1536x1024").waitFor();
  await made.getByText("Made by a draft model.").waitFor();
  await made.getByRole("button", { name: "From Photo" }).waitFor();
  await made.getByText("for style").waitFor();
  await isAccessible();
  await made.getByRole("button", { name: "Make again" }).press("Enter");
  const make = page.getByRole("complementary", { name: "Make" });
  await make.getByText(/^Again, like/).waitFor();
  await becomes(() => make.getByLabel("Prompt").inputValue(), "A quiet harbor");
  await make.getByLabel("Model", { exact: true }).waitFor();
  const chosen = await make.locator("select").evaluateAll((all) => all.map((one) => (one as HTMLSelectElement).selectedOptions[0]?.textContent));
  assert(chosen.some((one) => one?.startsWith("Sketch")), chosen.join(", "));
  assert(chosen.includes("1536x1024"), chosen.join(", "));
  await make.getByRole("group", { name: "Made from 1 image" }).getByText("same style").waitFor();
  await becomes(() => make.getByLabel("2", { exact: true }).isChecked(), true);
  await isAccessible();
  await make.getByRole("button", { name: "Make 2 · 2 credits" }).press("Enter");
  const after = await until(canvas, "two more images are made", ({ nodes }) => nodes.filter(({ asset }) => asset !== undefined).length === 5);
  const again = after.nodes.map(({ metadata }) => metadata.provenance as { prompt?: string; size?: string; references?: object[] } | undefined).filter((provenance) => provenance?.prompt !== undefined);
  assert.equal(again.length, 4);
  assert(again.every((provenance) => provenance?.size === "1536x1024" && provenance.references?.length === 1));
  await make.getByRole("button", { name: "Start afresh" }).click();
  await make.getByText(/^Again, like/).waitFor({ state: "detached" });
});

scene("the parameters of an Action are told by their names", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, target, url } = await makeCanvas("Parameters");
  await runAction(canvas, target);
  await openBoard(page, url);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("Result");
  await page.getByRole("option", { name: /^Result/ }).click();
  await page.keyboard.press("p");
  const made = page.getByRole("region", { name: "How it was made" });
  await made.getByText(/^Made by an Action: Resize/).waitFor();
  await made.getByText("Width").waitFor();
  await made.getByText("64", { exact: true }).waitFor();
  await becomes(() => made.getByRole("button", { name: "Make again" }).count(), 0);
});

scene("in a window of 1024 pixels, no button is behind a panel, and the keyboard stays where it was", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  await page.setViewportSize({ width: 1024, height: 700 });
  const { canvas, ids, url } = await makeBoard("Narrow", [text("One", 0, 0), text("Two", 400, 0)]);
  await apply(canvas, [{ type: "connection.create", fromNodeId: ids["One"], toNodeId: ids["Two"] }]);
  await openBoard(page, url);
  const buttons = page.locator("[data-panel]");
  for (let at = 0; at < (await buttons.count()); at += 1) {
    await buttons.nth(at).click();
    const side = await box(page.getByRole("complementary"));
    for (const one of await buttons.all()) {
      const { x, width } = await box(one);
      assert(x + width <= side.x, `${await one.textContent()} is in front of the panel`);
    }
  }
  await isAccessible();

  await node(page, "One").click();
  await page.locator('[data-panel="inspect"]').click();
  const inspect = page.getByRole("complementary", { name: "Details" });
  await inspect.getByLabel("Title").fill("Something else");
  await page.keyboard.press("Escape");
  await becomes(() => inspect.getByLabel("Title").inputValue(), "One");
  await page.keyboard.press("Escape");
  await inspect.waitFor({ state: "detached" });

  await page.locator('[data-panel="outline"]').click();
  const tree = page.getByRole("tree");
  await tree.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("menu", { name: "Change the purpose" }).waitFor();
  await page.keyboard.press("Escape");
  await becomes(() => tree.evaluate((element) => element === document.activeElement), true);
});

scene("arrow keys scroll the panel that has the keyboard, and move no node", async ({ page, expect }) => {
  expect(NOBODY);
  await page.setViewportSize({ width: 1280, height: 400 });
  const { canvas, url } = await makeBoard("Scrolled", [text("One", 0, 0)]);
  await openBoard(page, url);
  const { revision } = await read(canvas);
  await node(page, "One").click();
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Make" });
  await panel.getByRole("button", { name: /^Make( \d)? · / }).waitFor();
  for (let step = 0; step < 3; step += 1) await page.keyboard.press("ArrowDown");
  await becomes(() => panel.evaluate((panel) => panel.scrollTop > 0), true);
  await page.waitForTimeout(1000);
  assert.equal((await read(canvas)).revision, revision);
});

scene("the second image of an Action is the one that its form names", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Overlays", []);
  for (const size of [96, 80, 64]) await send("POST", `/assets?canvasId=${canvas.handle}`, png(size, 64));
  const titles = ["Photo", "Logo", "Frame"];
  await apply(canvas, (await read(canvas)).nodes.map(({ id }, at) => ({ type: "node.update", nodeId: id, patch: { title: titles[at] } })));
  await openBoard(page, url);
  await node(page, "Photo").click();
  await page.keyboard.press("p");
  const panel = page.getByRole("complementary", { name: "Details" });
  await panel.waitFor();
  // The panel takes room from the board, and a browser that scrolls to an image beyond its edge may be late for the click.
  await page.keyboard.press("0");
  await panel.getByLabel("Make a new image").selectOption({ label: "Overlay image" });
  const second = panel.locator("form [aria-labelledby]").first();
  await second.click();
  await page.getByRole("dialog").getByRole("button", { name: "Frame", exact: true }).click();
  await second.getByText("Frame").waitFor();
  await node(page, "Frame").click();
  await second.getByText("Photo").waitFor();
  await panel.getByRole("button", { name: "Apply" }).click();
  await until(canvas, "both lead to the result", ({ connections }) => connections.length === 2);
});

scene("what was entered to make an image stays when the models cannot be read again", async ({ page, expect }) => {
  expect(NOBODY, `400 GET ${ROOT}/models`);
  const { url } = await makeBoard("Entered", []);
  await openBoard(page, url);
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const make = page.getByRole("complementary", { name: "Make" });
  const prompt = make.getByLabel("Prompt");
  await prompt.fill("A quiet harbor");
  await make.getByLabel("Spend at most").fill("7");
  await page.route("**/models?*", (route) => route.fulfill({ status: 400, json: { error: { code: "invalid_request", message: "Not now." } } }));
  /** Comes back to the page more than a minute later. */
  const comeBack = async (status: number) => {
    const answered = page.waitForResponse((response) => response.url().includes("/models?"));
    await page.clock.setFixedTime((await page.evaluate(() => Date.now())) + 61_000);
    await page.evaluate(() => dispatchEvent(new Event("visibilitychange")));
    assert.equal((await answered).status(), status);
    await page.waitForTimeout(200);
  };
  await comeBack(400);
  await page.unroute("**/models?*");
  await comeBack(200);
  assert.deepEqual([await prompt.inputValue(), await make.getByLabel("Spend at most").inputValue()], ["A quiet harbor", "7"]);
});

scene("what was entered in Make stays, whatever is selected or opened, until the selection is asked for", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const video = { title: "Video", type: "video", position: { x: 400, y: 0 }, width: 320, height: 240 };
  const { url } = await makeBoard("Entered here", [text("Brief", 0, 0, { metadata: { content: "Fog" } }), video]);
  await openBoard(page, url);
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const make = page.getByRole("complementary", { name: "Make" });
  const prompt = make.getByLabel(/^Prompt/);
  await prompt.waitFor();
  // The panel takes room from the board.
  await page.keyboard.press("0");
  await prompt.fill("A quiet harbor");
  await make.getByLabel("Spend at most").fill("7");
  const entered = async () => [await prompt.inputValue(), await make.getByLabel("Spend at most").inputValue()];
  await node(page, "Video").click();
  await becomes(entered, ["A quiet harbor", "7"]);
  await make.getByLabel("What to make").selectOption("video");
  await make.getByText("As a new video.").waitFor();
  await make.getByLabel("What to make").selectOption("generate");
  await becomes(entered, ["A quiet harbor", "7"]);
  await page.locator('[data-panel="inspect"]').click();
  await page.getByRole("complementary", { name: "Details" }).waitFor();
  await page.locator('[data-panel="make"]').click();
  await becomes(entered, ["A quiet harbor", "7"]);
  await make.getByText("This stays, whatever is selected.").waitFor();
  await isAccessible();

  await node(page, "Brief").click();
  await make.getByRole("button", { name: "Use the selection" }).click();
  await becomes(entered, ["", "7"]);
  await becomes(() => prompt.getAttribute("placeholder"), "Fog");
  await node(page, "Video").click();
  await make.getByText("Into Video.").waitFor();
  await becomes(entered, ["", "7"]);
});

scene("a text that does not fit its node is read as a whole in the inspector", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const content = `${"A quiet harbor. ".repeat(300)}The end.`;
  const { url } = await makeBoard("Long", [text("Brief", 0, 0, { metadata: { content } })]);
  await openBoard(page, url);
  await node(page, "Brief").click();
  await page.keyboard.press("p");
  const whole = page.getByRole("complementary", { name: "Details" }).getByText("The end.");
  await whole.scrollIntoViewIfNeeded();
  assert.equal(await whole.textContent(), content);
  await isAccessible();
});
