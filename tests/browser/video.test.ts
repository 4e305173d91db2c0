/** Videos on the board: made with a model, played, canceled, and what is said of those that failed. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

import { description, middle, node, openBoard, ROOT, saved, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, BASE_URL, makeBoard, png, read, send, stranger, TOKEN } from "./service.ts";

const panel = (page: Page, name: string) => page.getByRole("complementary", { name });

async function chooseModel(page: Page, name: string): Promise<void> {
  const models = panel(page, "Make").getByLabel("Model", { exact: true });
  await models.selectOption((await models.locator("option", { hasText: name }).first().getAttribute("value")) ?? "");
}

/** The job that fills a node. */
const jobOf = (node: object | undefined): string | undefined => (node as { metadata: { job?: { id?: string } } } | undefined)?.metadata.job?.id;

scene("a video is made between two frames for the price on the button, and played", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Video", [text("Script", 0, 500, { metadata: { content: "Fog lifts over the harbor" } })]);
  for (const size of [96, 120]) await send("POST", `/assets?canvasId=${canvas.handle}`, png(size, 54));
  const { nodes } = await read(canvas);
  const images = nodes.filter(({ asset }) => asset !== undefined);
  await apply(canvas, images.map(({ id }, index) => ({ type: "node.update", nodeId: id, patch: { title: index === 0 ? "Dawn" : "Noon" } })));
  await openBoard(page, url);
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__node img").length === 2);
  const ranges: string[] = [];
  page.on("response", (response) => {
    if (response.url().endsWith("/content")) ranges.push(`${response.status()} ${response.request().headers()["range"]?.slice(0, 8)}`);
  });

  await page.keyboard.press("Control+a");
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const make = panel(page, "Make");
  await make.getByLabel("What to make").selectOption("video");
  await chooseModel(page, "Animatic");
  await make.getByText("from Script").waitFor();
  const chips = make.locator("[data-chip]");
  await becomes(() => chips.locator("em").allTextContents(), ["begins with", "ends with"]);
  await chips.first().click();
  const use = make.getByLabel(/is for$/);
  await use.selectOption({ label: "ends with" });
  await make.getByText("A video has one last frame.").waitFor();
  await becomes(() => make.getByRole("button", { name: "Make · 1 credit" }).isDisabled(), true);
  await use.selectOption({ label: "begins with" });
  await make.getByLabel("Seconds").selectOption("1");
  await make.getByLabel("Resolution").selectOption("480p");
  await isAccessible();
  await make.getByRole("button", { name: "Make · 1 credit" }).click();

  const after = await until(canvas, "a video node has the job", (graph) => graph.nodes.some((node) => jobOf(node) !== undefined));
  const video = after.nodes.find((node) => jobOf(node) !== undefined);
  assert.equal(video?.title, "Fog lifts over the harbor");
  const links = after.connections.filter(({ toNodeId }) => toNodeId === video.id).map(({ purpose }) => purpose);
  assert.deepEqual(links.toSorted(), ["first-frame", "flow", "last-frame"]);

  const play = page.getByRole("button", { name: "Play Fog lifts over the harbor" });
  await play.waitFor();
  await page.locator(".react-flow__node-video img").waitFor();
  await saved(page);
  await isAccessible();
  await play.focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => (document.querySelector<HTMLVideoElement>(".react-flow__node video")?.currentTime ?? 0) > 0);
  assert(ranges.length > 0 && ranges.every((one) => one === "206 bytes=0-" || one.startsWith("206 ")), ranges.join(", "));

  await page.keyboard.press("Escape");
  await page.locator(".react-flow__node video").waitFor({ state: "detached" });
  assert(await play.evaluate((button) => button === document.activeElement), "the keyboard is back at the button");
  await page.getByRole("button", { name: "Details", exact: true }).click();
  const inspect = panel(page, "Details");
  await inspect.getByText("1 s", { exact: true }).waitFor();
  const download = page.waitForEvent("download");
  await inspect.getByRole("link", { name: "Download" }).click();
  assert.match((await download).suggestedFilename(), /\.mp4$/);
  await isAccessible();
  await inspect.getByRole("link", { name: "Its run" }).click();
  await page.getByRole("heading", { level: 1, name: "Queue" }).waitFor();
  await page.getByRole("button", { name: /^Fog lifts/, expanded: true }).waitFor();
});

scene("a video is made into the slot that is selected, by keyboard alone, and canceled", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Slot", []);
  await openBoard(page, url);
  await page.getByRole("application", { name: "Board" }).focus();
  await page.keyboard.press("v");
  const prompt = page.getByRole("form", { name: /^Make for/ });
  const models = prompt.getByLabel("Model", { exact: true });
  await models.selectOption((await models.locator("option", { hasText: "Animatic" }).first().getAttribute("value")) ?? "");
  await prompt.getByLabel("Seconds").selectOption("30");
  await prompt.getByLabel("Prompt").focus();
  await page.keyboard.type("Waves at night");
  await page.waitForTimeout(300);
  await page.keyboard.press("Enter");
  await until(canvas, "the slot has the job", (graph) => jobOf(titled(graph, "Waves at night")) !== undefined);
  await node(page, "Waves").getByRole("progressbar").waitFor();
  await becomes(() => prompt.getByLabel("Prompt").evaluate((field) => field === document.activeElement), true, "the keyboard stays in the Prompt");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Details", exact: true }).press("Enter");
  const inspect = panel(page, "Details");
  await inspect.getByRole("button", { name: "Cancel" }).press("Enter");
  await isAccessible();
  await page.getByRole("dialog", { name: "Cancel video?" }).getByRole("button", { name: "Cancel it" }).press("Enter");
  await inspect.getByText("Animatic: canceled").waitFor();
  await node(page, "Waves").getByText("Canceled").waitFor();
  await page.getByRole("status").getByText("“Waves at night” is canceled.").waitFor();
  const { nodes } = await read(canvas);
  assert.equal(nodes.length, 1);
});

scene("a video that fails says why, and a refused start leaves nothing", async ({ page, expect, isAccessible }) => {
  const { canvas, url } = await makeBoard("Failed video", []);
  const damaged = png(96, 54).fill(0, 60, 200);
  const { asset } = await send<{ asset: { handle: string; node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, damaged);
  expect(NOBODY, `422 GET ${ROOT}/assets/${encodeURIComponent(asset.handle)}/content`);
  await openBoard(page, url);
  await page.getByText("This image cannot be shown").waitFor();
  await page.keyboard.press("Control+a");
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const make = panel(page, "Make");
  await make.getByLabel("What to make").selectOption("video");
  await make.getByLabel("Prompt").fill("a boat");
  await make.getByRole("button", { name: "Make · 1 credit" }).click();
  const video = node(page, "a boat");
  await video.getByText("An image that the work needs is gone or cannot be read.").waitFor();
  assert.equal(await description(video), "An image that the work needs is gone or cannot be read.");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Details", exact: true }).click();
  await panel(page, "Details").getByText("Upload it again, or choose another one. The same start would fail in the same way.").waitFor();
  await panel(page, "Details").getByText("action_input_invalid").waitFor();
  await isAccessible();
  await panel(page, "Details").getByRole("button", { name: "New attempt…" }).press("Enter");
  await becomes(() => make.getByLabel("Prompt").inputValue(), "a boat");
  await page.keyboard.press("Escape");

  const { uid, token } = await stranger();
  assert(uid !== canvas.ownerUid);
  const poor = await send<{ canvas: { handle: string; id: string; ownerUid: string } }>("POST", "/canvases", { title: "Poor" }, token);
  // A page that loads no images, whose requests would be refused after the sign-out.
  await page.goto("/settings");
  await page.getByRole("heading", { name: "Settings need a sign-in link" }).waitFor();
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByLabel("Sign-in link or token").waitFor();
  await openBoard(page, `${BASE_URL}/c/${poor.canvas.ownerUid}/${poor.canvas.id}`, token);
  await page.getByRole("button", { name: "Make", exact: true }).click();
  await make.getByLabel("What to make").selectOption("video");
  await make.getByLabel("Prompt").fill("a boat");
  await make.getByText("Needs 1 credit, you have 0.").waitFor();
  await becomes(() => make.getByRole("button", { name: "Make · 1 credit" }).isDisabled(), true);
});

scene("a video of a job is played by who made it, others are told so, and it is kept for all", async ({ page, guest, expect }) => {
  const { canvas, url } = await makeBoard("Shared video", []);
  const job = await send<{ id: string }>("POST", "/videos/generate", { model: "animatic", prompt: "a kite", idempotencyKey: crypto.randomUUID(), durationSeconds: 1, resolution: "480p" });
  const custom = { console: { video: { job: job.id, by: canvas.ownerUid } } };
  await apply(canvas, [{ type: "node.create", clientId: "video", node: { type: "video", title: "Kite", metadata: { custom } } }]);
  const friend = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", friend.uid, "--role", "editor");
  expect(NOBODY, `404 GET ${ROOT}/jobs/${encodeURIComponent(job.id)}`);
  await openBoard(page, url, TOKEN);
  await page.getByRole("button", { name: "Play Kite" }).waitFor();
  const other = await guest();
  await openBoard(other, url, friend.token);
  const asked: string[] = [];
  other.on("request", (request) => request.url().includes("/jobs/") && asked.push(request.url()));
  await node(other, "Kite").getByText("Only who made this video can play it").waitFor();
  // The video moves with its node, and a drag on it is a drag of the node.
  await page.keyboard.press("1");
  const from = await middle(node(page, "Kite"));
  await page.mouse.move(from.x + 90, from.y + 60);
  await page.mouse.down();
  await page.mouse.move(from.x + 150, from.y + 90, { steps: 4 });
  await page.mouse.up();
  await until(canvas, "the node is moved", (graph) => (titled(graph, "Kite")?.position.x ?? 0) !== 0);
  await other.waitForTimeout(11_000);
  assert.equal(asked.length, 0, "what cannot be read is not asked for again");

  await page.getByRole("button", { name: "Details", exact: true }).click();
  await node(page, "Kite").click();
  await panel(page, "Details").getByRole("button", { name: "Keep on the canvas" }).click();
  await until(canvas, "the node has the asset", (graph) => titled(graph, "Kite")?.asset !== undefined);
  await other.getByRole("button", { name: "Play Kite" }).click();
  await other.waitForFunction(() => (document.querySelector<HTMLVideoElement>(".react-flow__node video")?.currentTime ?? 0) > 0);
});

scene("a video that plays leaves the keyboard to what is clicked then", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Playing", [text("Beside", 700, 0)]);
  const job = await send<{ id: string }>("POST", "/videos/generate", { model: "animatic", prompt: "a kite", idempotencyKey: crypto.randomUUID(), durationSeconds: 1, resolution: "480p" });
  const custom = { console: { video: { job: job.id, by: canvas.ownerUid } } };
  await apply(canvas, [{ type: "node.create", clientId: "video", node: { type: "video", title: "Kite", position: { x: 0, y: 0 }, metadata: { custom } } }]);
  await openBoard(page, url);
  await page.getByRole("button", { name: "Play Kite" }).click();
  await becomes(() => page.evaluate(() => document.activeElement?.tagName), "VIDEO");
  await node(page, "Beside").click();
  await page.keyboard.press("Delete");
  await until(canvas, "the node is deleted", (graph) => titled(graph, "Beside") === undefined);
});

scene("a session without video:generate makes images alone, and one without job:manage sees no video", async ({ page, expect }) => {
  expect(NOBODY);
  const { uid, token } = await stranger("canvas:read,canvas:write,asset:read,image:generate");
  const { canvas } = await send<{ canvas: { handle: string; id: string; ownerUid: string; revision: string } }>("POST", "/canvases", { title: "Narrow" }, token);
  const custom = { console: { video: { job: "job:0198c5b0-3c1d-7a42-b0fe-91c2d3e4f506", by: uid } } };
  await apply(canvas, [{ type: "node.create", clientId: "video", node: { type: "video", title: "Hidden", metadata: { custom } } }], token);
  await openBoard(page, `${BASE_URL}/c/${canvas.ownerUid}/${canvas.id}`, token);
  await node(page, "Hidden").getByText("This session may not see videos").waitFor();
  await page.getByRole("button", { name: "Make", exact: true }).click();
  await panel(page, "Make").getByLabel("Prompt").waitFor();
  await becomes(() => panel(page, "Make").getByText("Video", { exact: true }).count(), 0);
});

scene("a video whose start is answered after the board was left is on its canvas", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Left", []);
  await openBoard(page, url);
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const make = panel(page, "Make");
  await make.getByLabel("What to make").selectOption("video");
  await chooseModel(page, "Animatic");
  await make.getByLabel("Prompt").fill("a kite");
  await make.getByLabel("Seconds").selectOption("1");
  const isLeft = Promise.withResolvers<void>();
  await page.route("**/videos/generate", async (route) => {
    await isLeft.promise;
    await route.continue();
  });
  const started = page.waitForRequest("**/videos/generate");
  await make.getByRole("button", { name: /^Make( \d)? · / }).click();
  await started;
  await page.getByRole("link", { name: "Canvas Service" }).click();
  await page.getByRole("heading", { level: 1, name: "Canvases" }).waitFor();
  // What a board leaves behind ends a moment later.
  await page.waitForTimeout(500);
  isLeft.resolve();
  await until(canvas, "a video node has the job", ({ nodes }) => nodes.some((node) => jobOf(node) !== undefined));
});
