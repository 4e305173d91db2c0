/** The screen of everything that an account has started. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import type { Page } from "playwright-core";

import { description, node, openBoard, ROOT, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { ownGateway } from "./processes.ts";
import { admin, apply, connect, makeBoard, makeCanvas, png, read, runAction, send, stranger, TOKEN } from "./service.ts";
import { heading, signIn } from "./steps.ts";

const row = (page: Page, name: string) => page.getByRole("main").getByRole("listitem").filter({ has: page.getByRole("button", { name: new RegExp(`^${name}`, "i") }) });

/** The first model of the account's connection, whose provider is a simulator that a prompt commands. */
async function simulated(): Promise<string> {
  const { models } = await send<{ models: { handle: string; provider: string; type: string; capabilities: string[] }[] }>("GET", "/models?limit=100");
  const model = models.find(({ provider, capabilities }) => provider === "openai" && capabilities.includes("image.generate"));
  assert(model, "the account has a connection");
  return model.handle;
}

async function generate(canvas: { id: string; revision: string }, target: string, prompt: string, model: string, token = TOKEN): Promise<string> {
  const body = { canvasId: canvas.id, baseRevision: canvas.revision, idempotencyKey: randomUUID(), targetNodeIds: [target], prompt, model };
  return (await send<{ run: string }>("POST", "/images/generate", body, token)).run;
}

scene("runs are listed with their canvas, filtered in the address, and opened at their nodes", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, target } = await makeCanvas("Runs of a harbor");
  await runAction(canvas, target);
  await signIn(page, TOKEN, `/runs?canvas=${encodeURIComponent(canvas.handle)}`);
  await heading(page, "Queue");
  const action = row(page, "Resize");
  await action.getByText("Succeeded").waitFor();
  await action.getByText(/^in \d/).waitFor();
  await action.getByText("no credits").waitFor();
  await isAccessible();

  await page.getByLabel("State").selectOption("Failed");
  await page.getByRole("heading", { name: "No run matches" }).waitFor();
  assert.match(page.url(), /state=failed/);
  await page.getByLabel("State").selectOption("All states");
  await page.getByLabel("Kind").selectOption("Actions");
  await action.getByText("Succeeded").waitFor();

  await action.getByRole("button", { name: /^Resize/ }).click();
  const timeline = page.getByRole("list", { name: "Timeline" });
  await timeline.getByText("Accepted").waitFor();
  await timeline.getByText("Succeeded").waitFor();
  await page.getByText("resize 1.0.0").waitFor();
  await page.getByRole("list", { name: "Outputs" }).locator("img").waitFor();
  await page.getByRole("button", { name: "Copy the name for programs" }).click();
  assert.match(page.url(), /run=run/, "an open run is in the address");
  await isAccessible();
  await action.getByRole("link", { name: "Show in Runs of a harbor" }).click();
  await page.locator('.react-flow__node.selected[aria-label*="Result"]').waitFor();
});

scene("a run appears by itself, and a refusal of the provider is explained", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, target } = await makeCanvas("Refused");
  const model = await simulated();
  await signIn(page, TOKEN, `/runs?canvas=${encodeURIComponent(canvas.handle)}`);
  await page.getByRole("heading", { name: "No run matches" }).waitFor();
  // It is shown for some seconds, so it is waited for from the beginning.
  const told = page.getByRole("status").getByText("Images: failed").waitFor();
  await generate(canvas, target, "a boat [[sim:content]]", model);
  const run = row(page, "a boat");
  await run.getByText("Failed").waitFor();
  await told;
  await run.getByRole("button", { name: /^a boat/i }).press("Enter");
  await run.getByText("The provider refused the request.").waitFor();
  await run.getByText("The same start would fail in the same way.").waitFor();
  await run.getByText("provider_rejected").waitFor();
  await isAccessible();
});

scene("work that failed is started again in the same nodes, with what it was started with", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Attempts", []);
  await openBoard(page, url);
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const make = page.getByRole("complementary", { name: "Make" });
  const models = make.getByLabel("Model", { exact: true });
  await models.selectOption((await models.locator("option", { hasText: "mine" }).first().getAttribute("value")) ?? "");
  const chosen = await models.inputValue();
  await make.getByLabel("Prompt").fill("A boat [[sim:content]]");
  await make.getByLabel("2", { exact: true }).check();
  await make.getByRole("button", { name: /^Make( \d)? · / }).click();
  const job = ({ metadata }: object & { metadata: object }) => (metadata as { job?: { status: string } }).job?.status;
  const { nodes } = await until(canvas, "both have failed", (graph) => graph.nodes.filter((node) => job(node) === "failed").length === 2);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Queue", exact: true }).click();
  await page.getByRole("complementary", { name: "Queue" }).getByRole("button", { name: "Again" }).press("Enter");
  await make.getByText("Another attempt at “A boat").waitFor();
  await page.getByRole("button", { name: "Details", exact: true }).click();
  await page.keyboard.press("Escape");
  await node(page, "A boat").click();
  await page.keyboard.press("p");
  const inspect = page.getByRole("complementary", { name: "Details" });
  await inspect.getByText("The provider refused the request.").waitFor();
  await inspect.getByRole("button", { name: "New attempt…" }).waitFor();
  await becomes(() => inspect.getByRole("button", { name: "Make again" }).count(), 0);
  await isAccessible();

  // As the credit ledger names it.
  const failed = (nodes[0]?.metadata as { job: { run: string } }).job.run;
  await page.goto(`/runs?run=${encodeURIComponent(failed.replace("run:", "job:"))}`);
  await page.getByRole("link", { name: "New attempt…" }).first().click();
  await make.getByText("Another attempt at “A boat").waitFor();

  await page.goto(`/runs?canvas=${encodeURIComponent(canvas.handle)}`);
  await row(page, "a boat").getByRole("button", { name: /^a boat/i }).click();
  await page.getByRole("link", { name: "New attempt…" }).click();
  await make.getByText("Another attempt at “A boat").waitFor();
  await becomes(() => make.getByLabel("Prompt").inputValue(), "A boat [[sim:content]]");
  await becomes(() => models.inputValue(), chosen);
  await becomes(() => make.getByLabel("2", { exact: true }).isChecked(), true);
  await isAccessible();
  await make.getByLabel("Prompt").fill("A boat in the fog");
  await make.getByRole("button", { name: /^Make( \d)? · / }).click();
  const after = await until(canvas, "both are made", (graph) => graph.nodes.every(({ asset }) => asset !== undefined));
  assert.deepEqual(after.nodes.map(({ id }) => id), nodes.map(({ id }) => id), "no node is added");
});

scene("an Action that was canceled is started again in its node, with what was entered", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Action again", []);
  const { asset } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(960, 640));
  await apply(canvas, [{ type: "node.update", nodeId: asset.node, patch: { title: "Photo" } }]);
  await openBoard(page, url);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("p");
  const inspect = page.getByRole("complementary", { name: "Details" });
  const action = inspect.getByLabel("Make a new image");
  await action.selectOption({ label: "Rotate" });
  await inspect.locator("form").getByLabel("Degrees", { exact: true }).fill("37");
  await page.route("**/actions/rotate/runs", async (route) => {
    // It is canceled before it can begin.
    const response = await route.fetch();
    const { run } = (await response.json()) as { run: string };
    await send("DELETE", `/runs/${run}`);
    await route.fulfill({ response });
  });
  await inspect.getByRole("button", { name: "Apply" }).click();
  await inspect.getByText("Action: canceled").waitFor();
  await page.unroute("**/actions/rotate/runs");
  const { nodes } = await read(canvas);
  await isAccessible();
  await inspect.getByRole("button", { name: "New attempt…" }).press("Enter");
  await inspect.getByText(/^Another attempt at “Photo, rotate”/).waitFor();
  await becomes(() => action.inputValue(), "rotate");
  const degrees = inspect.locator("form").getByLabel("Degrees", { exact: true });
  await becomes(() => degrees.inputValue(), "37");
  await isAccessible();
  await degrees.fill("90");
  await inspect.getByRole("button", { name: "Run again" }).press("Enter");
  const after = await until(canvas, "it is made", (graph) => graph.nodes.every(({ asset }) => asset !== undefined));
  assert.deepEqual(after.nodes.map(({ id }) => id), nodes.map(({ id }) => id), "no node is added");
  assert.equal(after.connections.length, 1);
  await inspect.getByText("Made by an Action").waitFor();
});

scene("a canvas says in the list that work is under way on it", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas } = await makeCanvas("At work");
  const start = { canvasId: canvas.id, baseRevision: canvas.revision, idempotencyKey: randomUUID(), prompt: "a boat [[sim:hang]]", model: await simulated(), place: { title: "Never" } };
  await signIn(page, TOKEN, "/?q=At+work");
  const card = page.getByRole("link", { name: /^At work/ }).first();
  await card.waitFor();
  await becomes(() => card.getByText("under way").count(), 0);
  const { run } = await send<{ run: string }>("POST", "/images/generate", start);
  await card.getByText("1 run under way").waitFor();
  await isAccessible();
  await send("DELETE", `/runs/${run}`);
  await becomes(() => card.getByText("under way").count(), 0);
});

scene("a run is canceled with its empty nodes, after a question", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas } = await makeCanvas("Canceled");
  const model = await simulated();
  const start = { canvasId: canvas.id, baseRevision: canvas.revision, idempotencyKey: randomUUID(), prompt: "a boat [[sim:hang]]", model, place: { title: "Never" }, count: 2 };
  const { run: handle } = await send<{ run: string }>("POST", "/images/generate", start);
  await signIn(page, TOKEN, `/runs?canvas=${encodeURIComponent(canvas.handle)}`);
  const run = row(page, "a boat");
  await run.getByRole("progressbar", { name: "Progress of a boat [[sim:hang]]" }).waitFor();
  await run.getByRole("button", { name: "Cancel" }).press("Enter");
  const question = page.getByRole("dialog", { name: "Cancel generate?" });
  await question.getByLabel("Also delete the empty places that were made for it").waitFor();
  await isAccessible();
  await question.getByRole("button", { name: "Keep" }).press("Enter");
  await question.waitFor({ state: "detached" });
  await run.getByRole("button", { name: "Cancel" }).press("Enter");
  await question.getByRole("button", { name: "Cancel it" }).press("Enter");
  await run.getByText("Canceled").waitFor();
  for (let status = ""; status !== "canceled"; ) ({ status } = await send<{ status: string }>("GET", `/runs/${handle}`));
  const { canvas: graph } = await send<{ canvas: { nodes: { title: string }[] } }>("GET", `/canvases/${canvas.handle}`);
  assert(!graph.nodes.some(({ title }) => title.startsWith("Never")), "its empty nodes are deleted");
});

scene("what is made at several selected places is canceled from the bar, after one question", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Cancel several", []);
  const model = await simulated();
  const start = async (title: string) => {
    const { revision } = await read(canvas);
    return (await send<{ run: string }>("POST", "/images/generate", { canvasId: canvas.handle, baseRevision: revision, idempotencyKey: randomUUID(), prompt: "a boat [[sim:hang]]", model, place: { title } })).run;
  };
  const runs = [await start("First"), await start("Second")];
  await openBoard(page, url);
  await page.keyboard.press("0");
  await node(page, "First").click();
  const bar = page.getByRole("toolbar", { name: /^What to do with/ });
  await bar.getByRole("button", { name: "Cancel", exact: true }).waitFor();
  await page.keyboard.press("Control+a");
  await bar.getByRole("button", { name: "Cancel", exact: true }).click();
  const question = page.getByRole("dialog", { name: "Cancel 2 runs?" });
  await isAccessible();
  await question.getByRole("button", { name: "Cancel them" }).click();
  await until(canvas, "their places are deleted", ({ nodes }) => nodes.length === 0);
  for (const run of runs) for (let status = ""; status !== "canceled"; ) ({ status } = await send<{ status: string }>("GET", `/runs/${run}`));
});

scene("videos are played in the list of runs", async ({ page, expect }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "10");
  await signIn(page, token, "/runs?kind=video");
  await page.getByRole("heading", { name: "No run matches" }).waitFor();
  await send("POST", "/videos/generate", { model: "animatic", prompt: "a kite", idempotencyKey: randomUUID(), durationSeconds: 1, resolution: "480p" }, token);
  const video = row(page, "a kite");
  await video.getByText("Succeeded").waitFor();
  await video.getByText("draft", { exact: true }).waitFor();
  await video.getByText("1 credit").waitFor();
  await video.getByRole("button", { name: /^a kite/ }).click();
  const player = video.locator("video");
  await player.waitFor();
  await page.waitForFunction(() => (document.querySelector("video")?.readyState ?? 0) >= 1);
  assert.equal(await player.evaluate((player: HTMLVideoElement) => Math.round(player.duration)), 1);
  await video.getByText("Animatic").first().waitFor();
});

scene("an account without runs is told what appears here, and a session without job:manage why not", async ({ page, expect, isAccessible }) => {
  expect(NOBODY, `404 GET ${ROOT}/runs/${encodeURIComponent("run:0198c5b4-90a2-7d6f-a1b3-0c4e5f607182")}`);
  const { token } = await stranger();
  await signIn(page, token, "/runs");
  await page.getByRole("heading", { name: "Nothing was started yet" }).waitFor();
  await isAccessible();
  await page.goto("/runs?run=run:0198c5b4-90a2-7d6f-a1b3-0c4e5f607182");
  await page.getByText("This run has no record any more.").waitFor();
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  const { token: narrow } = await stranger("canvas:read");
  await signIn(page, narrow, "/runs");
  await page.getByRole("heading", { name: "This session may not see the queue" }).waitFor();
});

scene("the steps of a Recipe are shown with their texts and images", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas } = await makeCanvas("Recipe run");
  const start = { canvasId: canvas.id, baseRevision: canvas.revision, idempotencyKey: randomUUID(), inputs: { brief: "A quiet harbor at dawn" } };
  const { run } = await send<{ run: string }>("POST", "/recipes/storyboard/runs", start);
  await signIn(page, TOKEN, `/runs?canvas=${encodeURIComponent(canvas.handle)}&run=${encodeURIComponent(run)}`);
  const item = row(page, "Storyboard");
  const outputs = item.getByRole("list", { name: "Outputs" });
  await outputs.getByRole("link", { name: "Treatment" }).waitFor();
  await outputs.locator("blockquote").first().waitFor();
  await item.getByText("storyboard 1").waitFor();
  await isAccessible();
});

/** A provider that makes the first image and withholds the others. */
async function halfProvider(afterwards: (task: () => Promise<void>) => void): Promise<string> {
  let made = 0;
  const image = Buffer.from(png(320, 240)).toString("base64");
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const isFirst = request.method === "POST" && (made += 1) === 1;
      const body = request.method === "POST" ? { image, finish_reason: isFirst ? "SUCCESS" : "CONTENT_FILTERED", seed: 1 } : { credits: 10 };
      response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  afterwards(async () => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

scene("of images that fail in part, the board shows those that were made, and says why the others are missing", async ({ page, expect, isAccessible, afterwards }) => {
  expect(NOBODY);
  const ana = await stranger();
  await admin("credits", "grant", "--account", ana.uid, "--amount", "100");
  await connect(ana.uid, "stability", "Half", await halfProvider(afterwards));
  const { canvas, url } = await makeBoard("In part", [], ana.token);
  await openBoard(page, url, ana.token);
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const make = page.getByRole("complementary", { name: "Make" });
  const models = make.getByLabel("Model", { exact: true });
  await models.selectOption((await models.locator("option", { hasText: "Half" }).first().getAttribute("value")) ?? "");
  await make.getByLabel("Prompt").fill("Two boats");
  await make.getByLabel("2", { exact: true }).check();
  await make.getByRole("button", { name: /^Make( \d)? · / }).click();
  const { nodes } = await until(canvas, "it has ended", (graph) => graph.nodes.length === 2 && graph.nodes.every(({ metadata }) => (metadata as { job?: { status: string } }).job?.status === "failed" || metadata.provenance !== undefined), ana.token);
  assert.equal(nodes.filter(({ asset }) => asset !== undefined).length, 1);
  const [kept, failed] = [page.locator(".react-flow__node").filter({ has: page.locator("img") }), node(page, "Image Two boats, failed")];
  await failed.getByText("The provider refused the request.").waitFor();
  assert.equal(await description(failed), "The provider refused the request.");
  await becomes(() => kept.count(), 1);
  await becomes(() => kept.getAttribute("aria-label"), "Image Two boats, selected", "what was made has not failed");
  await isAccessible();
  await page.getByRole("button", { name: "Queue", exact: true }).click();
  const runs = page.getByRole("complementary", { name: "Queue" });
  await runs.getByText("Failed, 1 of 2").waitFor();
  await runs.getByRole("button", { name: /^Two boats/ }).press("Enter");
  await runs.getByText(/1 of 2 outputs failed/).waitFor();
  await isAccessible();
  await runs.getByRole("button", { name: "Again" }).press("Enter");
  await make.getByText("Another attempt at “Two boats”").waitFor();
  await becomes(() => make.getByLabel("1", { exact: true }).isChecked(), true, "only what is missing is made");
});

scene("a run whose record has expired has not failed", async ({ page, expect, permit, afterwards }) => {
  expect(NOBODY);
  const gateway = await ownGateway({ CANVAS_RETENTION_FINALIZED_SECONDS: "1" });
  afterwards(gateway.kill);
  permit(gateway.url);
  const { canvas, target } = await makeCanvas("Expired");
  const { asset } = await send<{ asset: { handle: string } }>("POST", "/assets", png(96, 64));
  const start = { canvasId: canvas.id, baseRevision: canvas.revision, idempotencyKey: randomUUID(), targetNodeId: target, inputs: [asset.handle], params: { width: 64 } };
  await send("POST", "/actions/resize/runs", start);
  await until(canvas, "it is made", ({ nodes }) => nodes.some((node) => node.asset !== undefined));
  await signIn(page, TOKEN, `${gateway.url}/runs?canvas=${encodeURIComponent(canvas.handle)}`);
  // The first read begins the time that the record is kept.
  await row(page, "Resize").getByRole("button", { name: /^Resize/ }).click();
  await page.getByText("resize 1.0.0").waitFor();
  await page.waitForTimeout(1500);
  await page.reload();
  await page.getByText("The record of this run has expired.").waitFor();
  await page.getByRole("list", { name: "Timeline" }).getByText("Succeeded").waitFor();
  await becomes(() => page.getByText("would fail in the same way").count(), 0);
  await becomes(() => page.getByRole("link", { name: "New attempt…" }).count(), 0);
});
