/** What the console says of work that nobody is there to do. The service's own words are held by tests/spec/status.rs: here it has workers. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

import { node, openBoard, ROOT } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { type Canvas, makeBoard, makeCanvas, runAction, TOKEN } from "./service.ts";
import { heading, signIn } from "./steps.ts";

type State = "ok" | "slow" | "silent";

const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString();
const banner = (page: Page) => page.locator("header + [role=status]");

/** Answers the page that the queues are in this state, until `states` is changed. Counts how often it asks. */
async function queues(page: Page, states: Partial<Record<string, State>>): Promise<{ asked: number }> {
  const count = { asked: 0 };
  await page.route(`**${ROOT}/status`, (route) => {
    count.asked += 1;
    const queues = ["image", "import", "generation", "recipe", "video", "webhook"].map((queue) => {
      const state = states[queue] ?? "ok";
      return { queue, state, workers: state === "silent" ? 0 : 1, lastSeenAt: ago(state === "silent" ? 40 : 1), oldestWaitingSeconds: state === "ok" ? 0 : 120 };
    });
    return route.fulfill({ json: { queues } });
  });
  return count;
}

/** Shows the runs of the canvas as ones that wait. */
async function waiting(page: Page, canvas: Canvas, waitingFor: object): Promise<void> {
  await page.route(
    (url) => url.pathname === `${ROOT}/runs` && url.searchParams.get("canvasId") === canvas.handle,
    async (route) => {
      const response = await route.fetch();
      const { runs, page } = (await response.json()) as { runs: object[]; page: object };
      await route.fulfill({ response, json: { runs: runs.map((run) => ({ ...run, status: "queued", waitingFor, outputs: { total: 1, done: 0, failed: 0 } })), page } });
    },
  );
}

scene("the list of runs says for what work waits, and a banner that its queue has no worker, until it has one", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, target } = await makeCanvas("Waits");
  await runAction(canvas, target);
  const states: Partial<Record<string, State>> = { image: "silent", video: "silent" };
  const status = await queues(page, states);
  await waiting(page, canvas, { what: "worker", since: ago(30), lastSeenAt: ago(40) });
  await signIn(page, TOKEN, `/runs?canvas=${encodeURIComponent(canvas.handle)}`);
  await heading(page, "Queue");
  await page.getByText(/^Waiting for a worker: none seen for 4\d s/).waitFor();
  await banner(page).getByText(/No worker has asked for the queue image for 4\d s\. Work waits until one is started\./).waitFor();
  assert.equal(await banner(page).getByText("video").count(), 0, "no work of that queue is shown");
  await isAccessible();
  await page.setViewportSize({ width: 390, height: 844 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, "nothing is cut off on a phone");
  await isAccessible();
  await page.setViewportSize({ width: 1280, height: 800 });

  assert(status.asked <= 3, `the state is read sparingly: ${status.asked} times`);
  states["image"] = "slow";
  await banner(page).getByText("Work in the queue image has waited for 2 min. It goes on, and takes longer than usual.").waitFor({ timeout: 20_000 });
  await isAccessible();
  states["image"] = "ok";
  await page.reload();
  await page.getByText(/^Waiting for a worker/).waitFor();
  await becomes(() => banner(page).innerText(), "");
});

scene("every cause of a wait has its words in the list of a board's runs", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, target } = await makeCanvas("Causes");
  await runAction(canvas, target);
  const waits = { what: "slot", since: ago(30) };
  await waiting(page, canvas, waits);
  await openBoard(page, `/c/${canvas.ownerUid}/${canvas.id}`);
  await page.keyboard.press("r");
  const runs = page.getByRole("complementary", { name: "Queue" });
  for (const [what, words, more] of [
    ["slot", /^Waiting for its turn/, {}],
    ["retry", /^Next attempt at \d\d:\d\d:\d\d/, { retryAt: ago(-60) }],
    ["provider", /^With the provider/, {}],
    ["input", /^Waiting for another result/, {}],
    ["worker", /^Waiting for a worker: none seen for \d+ s/, { lastSeenAt: ago(40) }],
  ] as const) {
    Object.assign(waits, { what }, more);
    await runs.getByText(words).waitFor();
  }
});

scene("the forms that start work say before that no worker is there, and work at a node that it waits", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const job = { operation: "generate", run: "run:0198c5a0-0000-7000-8000-000000000001", status: "queued" };
  const { url } = await makeBoard("Silent", [{ type: "image", title: "Kite", position: { x: 0, y: 0 } }]);
  await queues(page, { generation: "silent", video: "silent" });
  // The service alone writes the work of a node.
  await page.route(
    (url) => /\/canvases\/[^/]+$/.test(url.pathname),
    async (route) => {
      const response = await route.fetch();
      const { canvas } = (await response.json()) as { canvas: { nodes: { metadata: object }[] } };
      await route.fulfill({ response, json: { canvas: { ...canvas, nodes: canvas.nodes.map((one) => ({ ...one, metadata: { ...one.metadata, job } })) } } });
    },
  );
  await openBoard(page, url);
  await node(page, "Kite").getByText(/^Waiting for a worker: none seen for 4\d s/).waitFor();
  await banner(page).getByText(/No worker has asked for the queue generation for 4\d s/).waitFor();
  await isAccessible();
  await page.getByRole("button", { name: "Make", exact: true }).click();
  const make = page.getByRole("complementary", { name: "Make" });
  await make.getByText(/No worker has asked for the queue generation for 4\d s\. What you start waits until one is started\./).waitFor();
  await make.getByLabel("What to make").selectOption("video");
  await make.getByText(/No worker has asked for the queue video/).waitFor();
  await isAccessible();
  await page.setViewportSize({ width: 390, height: 844 });
  await isAccessible();
});
