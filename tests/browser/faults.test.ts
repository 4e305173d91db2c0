/** The board when something fails: the network, Redis, a tab, the right to the canvas. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

import { dragBy, middle, node, openBoard, path, ROOT, saved, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { ownGateway, ownRedis } from "./processes.ts";
import { admin, apply, BASE_URL, makeBoard, read, stranger } from "./service.ts";
import { isLive } from "./steps.ts";

scene("after twenty seconds without a network, everything is sent once", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Twenty seconds", [text("Here", 0, 0)]);
  // The network of a page is taken away, not that of a worker.
  await page.addInitScript(() => Reflect.deleteProperty(globalThis, "SharedWorker"));
  await openBoard(page, url);
  const before = await read(canvas);
  await page.context().setOffline(true);
  const badge = page.getByRole("status").filter({ hasText: "Offline" });
  await badge.getByText(/^since \d+:\d\d [AP]M$/).waitFor();
  await node(page, "Here").click();
  await page.keyboard.press("Control+d");
  await page.keyboard.press("Shift+ArrowDown");
  await page.getByRole("status").getByText("2 changes wait").waitFor();
  // Attempts to send follow each other with growing pauses in the meantime.
  await page.waitForTimeout(20_000);
  assert.equal((await read(canvas)).revision, before.revision);
  await page.context().setOffline(false);
  await isLive(page);
  await saved(page);
  const after = await read(canvas);
  assert.equal(after.batches.length, before.batches.length + 2, "each gesture is one batch");
  assert.equal(after.nodes.length, 2);
});

scene("two people and an agent go on while Redis is restarted", async ({ page, guest, expect, permit, afterwards }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Redis", [text("One", 0, 0), text("Two", 400, 0), text("Of the agent", 800, 0)]);
  const redis = await ownRedis();
  afterwards(redis.kill);
  const gateway = await ownGateway({ CANVAS_REDIS_URL: redis.url });
  afterwards(gateway.kill);
  permit(gateway.url);
  const friend = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  const other = await guest();
  // Without Redis there are no limits and no notices of changes, and a request may be told to come later.
  expect(`409 POST ${path(canvas, "/operations")}`, `503 POST ${path(canvas, "/operations")}`, `503 GET ${ROOT}/events`, `503 GET ${path(canvas, "/changes")}`, `503 GET ${path(canvas, "/review")}`);
  await openBoard(page, url.replace(BASE_URL, gateway.url));
  await openBoard(other, url.replace(BASE_URL, gateway.url), friend.token);
  let isOver = false;
  const agent = (async () => {
    for (let turn = 1; !isOver; turn += 1) await apply(canvas, [{ type: "node.move", nodeId: ids["Of the agent"], position: { x: 800, y: turn } }]);
    return true;
  })();
  const work = [page, other].map(async (one, index) => {
    for (let turn = 0; turn < 6; turn += 1) {
      await one.keyboard.press("Escape");
      await one.mouse.move(300 + turn * 30, 300 + index * 200);
      await one.keyboard.press("n");
      await one.keyboard.type(`person ${index} ${turn}`);
      await one.keyboard.press("Escape");
      if (index === 0 && turn === 2) await redis.kill();
      if (index === 0 && turn === 4) await redis.start();
    }
  });
  await Promise.all(work);
  isOver = true;
  await agent;
  for (const one of [page, other]) await saved(one);
  const graph = await until(canvas, "everything is there", ({ nodes }) => nodes.filter(({ metadata }) => metadata.content?.startsWith("person")).length === 12);
  assert.equal(new Set(graph.nodes.flatMap(({ metadata }) => metadata.content ?? [])).size, 12, "nothing twice");
  // What happens after the restart is seen by itself.
  await apply(canvas, [{ type: "node.create", node: { ...text("After the restart", 0, 900), type: "text" } }]);
  for (const one of [page, other]) await one.locator(`[data-revision="${(await read(canvas)).revision}"]`).waitFor({ timeout: 30_000 });
});

scene("eight tabs of one person share one stream, and all see a change", async ({ page, open, expect, permit, afterwards }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Eight tabs", [text("Watched", 0, 0)]);
  const gateway = await ownGateway();
  afterwards(gateway.kill);
  permit(gateway.url);
  const address = url.replace(BASE_URL, gateway.url);
  await openBoard(page, address);
  assert.equal(await gateway.requests("/events"), 1);
  const tabs = [page];
  while (tabs.length < 8) {
    const tab = await open();
    await tab.goto(address);
    await isLive(tab);
    tabs.push(tab);
  }
  assert.equal(await gateway.requests("/events"), 1);
  await apply(canvas, [{ type: "node.update", nodeId: ids["Watched"], patch: { title: "Seen by all" } }]);
  for (const tab of tabs) await node(tab, "Seen by all").waitFor();
});

scene("a tab that is closed during a drag changes nothing", async ({ page, open, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Closed in a drag", [text("Held", 0, 0)]);
  await openBoard(page, url);
  const before = await read(canvas);
  const from = await middle(node(page, "Held"));
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(from.x + 80, from.y + 80, { steps: 4 });
  const next = await open();
  await page.close();
  await next.goto(url);
  await isLive(next);
  await saved(next);
  assert.equal((await read(canvas)).revision, before.revision);
  await dragBy(next, node(next, "Held"), 40, 40);
  await until(canvas, "the next tab goes on", (graph) => (titled(graph, "Held")?.position.x ?? 0) > 0);
});

scene("a gesture of a tab that was closed before it was sent is sent by the next tab", async ({ page, open, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Closed unsent", [text("Copied", 0, 0)]);
  await openBoard(page, url);
  await page.route("**/operations", (route) => route.abort());
  await node(page, "Copied").click();
  await page.keyboard.press("Control+d");
  await page.getByRole("status").getByText("1 change waits").waitFor();
  const next = await open();
  await page.close();
  await next.goto(url);
  const after = await until(canvas, "the copy is saved", ({ nodes }) => nodes.length === 2);
  await saved(next);
  assert.equal(after.batches.length, 2);
});

scene("changes to a canvas that is gone are saved as a file for the command line", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Gone", [text("Kept", 0, 0)]);
  const friend = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  await openBoard(page, url, friend.token);
  await page.route("**/operations", (route) => route.abort());
  await node(page, "Kept").click();
  await page.keyboard.press("F2");
  await page.keyboard.type("Renamed too late");
  await page.keyboard.press("Enter");
  await page.getByRole("status").getByText("1 change waits").waitFor();
  for (const part of ["", "/review", "/changes", "/operations"]) for (const method of ["GET", "POST"]) expect(`404 ${method} ${path(canvas, part)}`);
  expect(`404 GET ${ROOT}/events`);
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "none");
  await page.unroute("**/operations");
  const kept = page.getByRole("region", { name: "Changes that were not saved" });
  await kept.getByText("1 change of yours was not saved here.").waitFor();
  await isAccessible();
  const [download] = await Promise.all([page.waitForEvent("download"), kept.getByRole("button", { name: "Save them as a file" }).click()]);
  const body = JSON.parse(await readFile(await download.path(), "utf8")) as { idempotencyKey: string; operations: object[] };
  assert.deepEqual(body.operations, [{ type: "node.update", nodeId: ids["Kept"], patch: { title: "Renamed too late" } }]);
  // The owner applies the file: it is a body of the contract.
  await apply(canvas, body.operations);
  assert.equal((await read(canvas)).nodes[0]?.title, "Renamed too late");
  await kept.getByRole("button", { name: "Discard" }).click();
  await kept.waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("heading", { name: "There is nothing here for you" }).waitFor();
  await becomes(() => kept.count(), 0);
});
