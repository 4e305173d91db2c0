/** The board when something fails: the network, Redis, a tab, the right to the canvas. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { env } from "node:process";

import type { Page } from "playwright-core";

import { dragBy, middle, node, openBoard, path, ROOT, saved, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { ownGateway, ownRedis } from "./processes.ts";
import { admin, apply, BASE_URL, type Canvas, type Graph, makeBoard, read, stranger, TOKEN } from "./service.ts";
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

scene("a canvas that is gone in one tab leaves the others live, and is followed anew when the role is back", async ({ page, open, expect }) => {
  expect(NOBODY);
  const [lost, other] = [await makeBoard("Lost", [text("Here", 0, 0)]), await makeBoard("Elsewhere", [text("Watched", 0, 0)])];
  const friend = await stranger();
  const share = ({ handle }: Canvas, role: string) => admin("share", "--canvas", handle, "--with", friend.email, "--role", role);
  const rename = ({ canvas, ids }: typeof lost, node: string, title: string) => apply(canvas, [{ type: "node.update", nodeId: ids[node], patch: { title } }]);
  await share(lost.canvas, "editor");
  await share(other.canvas, "editor");
  await openBoard(page, lost.url, friend.token);
  const tab = await open();
  await tab.goto(other.url);
  await isLive(tab);

  // The role is back before the page learns that the canvas was gone.
  const isBack = Promise.withResolvers<void>();
  await page.route("**/review", (route) => isBack.promise.then(() => route.continue()));
  const asked = page.waitForRequest("**/review");
  await share(lost.canvas, "none");
  await asked;
  await share(lost.canvas, "editor");
  isBack.resolve();
  await rename(lost, "Here", "Back");
  await node(page, "Back").waitFor();

  for (const part of ["", "/review", "/changes"]) expect(`404 GET ${path(lost.canvas, part)}`);
  await share(lost.canvas, "none");
  await page.getByRole("heading", { name: "There is nothing here for you" }).waitFor();
  // Another tab that follows something opens the stream again.
  const third = await open();
  await third.goto("/");
  await third.getByRole("link", { name: "Elsewhere" }).first().waitFor();
  await rename(other, "Watched", "Seen");
  await node(tab, "Seen").waitFor();
  await isLive(tab);

  await share(lost.canvas, "editor");
  await third.goto(lost.url);
  await isLive(third);
  await rename(lost, "Here", "Back again");
  await node(third, "Back again").waitFor();
});

for (const [what, grip] of [["drag", ".react-flow__node"], ["resize", ".react-flow__resize-control.bottom.right.handle"]] as const) {
  for (const end of ["closed", "reloaded"] as const) {
    scene(`a ${what} is kept as far as it was when its tab is ${end}`, async ({ page, open, expect }) => {
      expect(NOBODY);
      const { canvas, url } = await makeBoard("Ended in a gesture", [text("Held", 0, 0)]);
      await openBoard(page, url);
      await node(page, "Held").click();
      const from = await middle(page.locator(grip));
      await page.mouse.move(from.x, from.y);
      await page.mouse.down();
      await page.mouse.move(from.x + 80, from.y + 80, { steps: 4 });
      const isKept = ({ nodes: [held] }: Graph) => (what === "drag" ? (held?.position.x ?? 0) > 40 : (held?.width ?? 0) > 280);
      const next = end === "closed" ? await open() : page;
      if (end === "closed") {
        await page.close();
        await next.goto(url);
      } else {
        await page.reload();
      }
      await until(canvas, "the gesture is saved", isKept);
      await isLive(next);
      await saved(next);
      assert.equal((await read(canvas)).batches.length, 2, "it is one batch");
    });
  }
}

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
  await page.getByRole("button", { name: "Use another account" }).click();
  const question = page.getByRole("dialog", { name: "Sign out?" });
  await question.getByText("1 change is not saved and will be deleted.").waitFor();
  await question.getByRole("button", { name: "Keep" }).click();
  await kept.getByRole("button", { name: "Discard" }).click();
  await kept.waitFor({ state: "detached" });
  await page.reload();
  await page.getByRole("heading", { name: "There is nothing here for you" }).waitFor();
  await becomes(() => kept.count(), 0);
});

scene("changes of more than 200 operations are files that can each be applied, and texts in conflict one to read", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const grid = Array.from({ length: 230 }, (_, index) => text(`n${index}`, (index % 20) * 280, Math.floor(index / 20) * 160));
  const { canvas, ids, url } = await makeBoard("Gone with many", [text("Brief", 0, -300), ...grid]);
  const friend = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url, friend.token);
  let release = () => {};
  const held = new Promise<void>((resume) => (release = resume));
  await page.route("**/operations", async (route) => {
    await held;
    await route.continue();
  });
  await page.keyboard.press("Control+k");
  await page.keyboard.type("Brief");
  await page.getByRole("option", { name: "Brief text", exact: true }).click();
  await page.keyboard.press("F2");
  // Not letter by letter: the view still moves to the node, and the field may be made again meanwhile.
  await page.getByLabel("Title", { exact: true }).fill("My brief");
  await page.keyboard.press("Enter");
  await apply(canvas, [{ type: "node.update", nodeId: ids["Brief"], patch: { title: "Their brief" } }]);
  release();
  await page.getByRole("region", { name: "Conflict" }).waitFor();
  await page.unroute("**/operations");
  await page.route("**/operations", (route) => route.abort());
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Shift+ArrowDown");
  await page.getByRole("status").getByText("1 change waits").waitFor();
  for (const part of ["", "/review", "/changes", "/operations"]) for (const method of ["GET", "POST"]) expect(`404 ${method} ${path(canvas, part)}`);
  expect(`404 GET ${ROOT}/events`);
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "none");
  await page.unroute("**/operations");
  const kept = page.getByRole("region", { name: "Changes that were not saved" });
  await kept.getByText("2 changes of yours were not saved here.").waitFor();
  await isAccessible();
  const saved = async (name: string) => {
    const [download] = await Promise.all([page.waitForEvent("download"), kept.getByRole("button", { name }).click()]);
    return readFile(await download.path(), "utf8");
  };
  for (const name of ["Save file 1 of 2", "Save file 2 of 2"]) {
    const { operations } = JSON.parse(await saved(name)) as { operations: object[] };
    assert(operations.length <= 200);
    await apply(canvas, operations);
  }
  const moved = await read(canvas);
  assert(grid.every(({ title, position }) => titled(moved, title)?.position.y === position.y + 10));
  assert.match(await saved("Save the texts in conflict"), /Yours:\nMy brief\n\nTheirs:\nTheir brief\n/);
  await kept.getByRole("button", { name: "Discard" }).click();
  await kept.waitFor({ state: "detached" });
});

/** For how long two people and an agent write, in seconds. The gateway is killed and Redis restarted every 10 seconds. */
const DURATION = Number(env["CANVAS_TOGETHER_SECONDS"] ?? 30);
const pause = (milliseconds: number) => new Promise((resume) => setTimeout(resume, milliseconds));

/** What a page has of a canvas, with the ids of the service, in the order of ids. React keeps the properties of components at their elements. */
const graphIn = (page: Page): Promise<{ nodes: object[]; connections: object[] }> =>
  page.locator("[data-tool]").evaluate((element) => {
    interface Fiber {
      return: Fiber | null;
      memoizedProps: { graph?: Kept; board?: { engine: { real: (id: string) => string } } } | null;
    }
    type Item = Record<string, unknown> & { id: string; metadata?: { sectionId?: string } };
    interface Kept {
      nodes: Map<string, Item>;
      connections: Map<string, Item>;
    }
    const key = Object.keys(element).find((name) => name.startsWith("__reactFiber$")) ?? "";
    let fiber = (element as unknown as Record<string, Fiber | null>)[key] ?? null;
    while (fiber && !(fiber.memoizedProps?.graph && fiber.memoizedProps.board)) fiber = fiber.return;
    const { graph, board } = fiber?.memoizedProps ?? {};
    if (!graph || !board) throw new Error("the page has no graph");
    const real = (value: unknown) => board.engine.real(String(value));
    const byId = (items: Item[]) => items.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const nodes = [...graph.nodes.values()].map((node) => {
      const home = node.metadata?.sectionId;
      return { ...node, id: real(node.id), metadata: { ...node.metadata, ...(home !== undefined && { sectionId: real(home) }) } };
    });
    const connections = [...graph.connections.values()].map((one) => ({ ...one, id: real(one.id), fromNodeId: real(one["fromNodeId"]), toNodeId: real(one["toNodeId"]) }));
    return { nodes: byId(nodes), connections: byId(connections) };
  });

scene("two people and an agent change one canvas under a killed gateway and a restarted Redis, and all have the same in the end", async ({ page, guest, expect, permit, afterwards }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Together", Array.from({ length: 12 }, (_, index) => text(`n${index}`, (index % 4) * 300, Math.floor(index / 4) * 180)));
  // Without Redis, a request may be told to come later.
  for (const status of [409, 503]) expect(`${status} POST ${path(canvas, "/operations")}`);
  for (const part of ["/changes", "/review", ""]) expect(`503 GET ${path(canvas, part)}`);
  expect(`503 GET ${ROOT}/events`, `503 GET ${ROOT}/auth/status`, "503 GET /console/session");
  const other = await guest();
  // Sessions of their own: an account has ten, and the other cases open some meanwhile.
  const [first, second] = [await stranger(), await stranger()];
  for (const { email } of [first, second]) await admin("share", "--canvas", canvas.handle, "--with", email, "--role", "editor");
  const redis = await ownRedis();
  afterwards(redis.kill);
  const [fragile, steady] = [await ownGateway({ CANVAS_REDIS_URL: redis.url }), await ownGateway({ CANVAS_REDIS_URL: redis.url })];
  for (const gateway of [fragile, steady]) {
    afterwards(gateway.kill);
    permit(gateway.url);
  }
  await openBoard(page, url.replace(BASE_URL, fragile.url), first.token);
  await openBoard(other, url.replace(BASE_URL, steady.url), second.token);
  const end = Date.now() + DURATION * 1000;
  let isOver = false;
  let turns = 0;
  let notes = 0;
  const agent = (async () => {
    for (; !isOver; turns += 1) {
      const operations = [
        { type: "node.move", nodeId: ids[`n${turns % 12}`], position: { x: (turns % 4) * 300 + turns, y: 700 + turns } },
        { type: "node.create", clientId: "new", node: { type: "sticky", title: `agent ${turns}`, position: { x: 1400, y: turns * 20 }, width: 100, height: 100 } },
        { type: "connection.create", fromNodeId: ids[`n${turns % 12}`], toNodeId: "new" },
      ];
      await apply(canvas, operations, TOKEN, steady.url);
      await pause(100);
    }
    return true;
  })();
  const people = [page, other].map(async (one, index) => {
    for (let turn = 0; turn < 12 || Date.now() < end; turn += 1) {
      notes += 1;
      await one.keyboard.press("Escape");
      await one.mouse.move(300 + (turn % 12) * 20, 300 + index * 200);
      await one.keyboard.press("n");
      await one.keyboard.type(`person ${index} ${turn}`);
      await one.keyboard.press("Escape");
      await one.keyboard.press("Shift+ArrowDown");
      if (turn % 4 === 3) await one.keyboard.press("Control+z");
    }
  });
  const faults = (async () => {
    await until(canvas, "the agent is at work", ({ nodes }) => nodes.length > 20);
    do {
      await fragile.kill();
      await fragile.start();
      await pause(2000);
      await redis.kill();
      await pause(2000);
      await redis.start();
      await pause(Math.min(6000, Math.max(end - Date.now(), 0)));
    } while (Date.now() < end);
  })();
  await Promise.all([...people, faults]);
  isOver = true;
  await agent;
  // What a person writes faster than it can be sent waits its turn.
  for (const one of [page, other]) await one.locator('[data-save="saved"]').waitFor({ timeout: 15_000 + 2000 * DURATION });
  const graph = await until(canvas, "everything is there", ({ nodes }) => nodes.filter(({ metadata }) => metadata.content?.startsWith("person")).length === notes);
  const texts = graph.nodes.flatMap(({ metadata }) => metadata.content ?? []);
  assert.equal(new Set(texts).size, texts.length, "nothing twice");
  const titles = graph.nodes.flatMap(({ title }) => (title.startsWith("agent ") ? title : []));
  assert.deepEqual(titles, Array.from({ length: turns }, (_, turn) => `agent ${turn}`), "everything of the agent, once");
  assert.equal(graph.connections.length, turns);
  const byId = <T extends { id: string }>(items: T[]) => items.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  for (const one of [page, other]) {
    await one.locator(`[data-revision="${(await read(canvas)).revision}"]`).waitFor({ timeout: 60_000 });
    assert.deepEqual(await graphIn(one), { nodes: byId(graph.nodes), connections: byId(graph.connections as { id: string }[]) });
  }
}, 150 + 3 * DURATION);
