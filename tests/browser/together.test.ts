/** The board with others, without a network, and with a service that fails. */
import assert from "node:assert/strict";

import type { Page, Route } from "playwright-core";

import { box, dragBy, middle, node, openBoard, path, plane, ROOT, saved, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { ownGateway } from "./processes.ts";
import { admin, apply, makeBoard, png, read, reader, send, stranger, TOKEN } from "./service.ts";
import { field, isLive, signIn } from "./steps.ts";

for (const isSecond of [false, true]) {
  scene(`changes that were not sent survive a reload${isSecond ? ", also after a sign-out" : ""}`, async ({ page, expect }) => {
    expect(NOBODY);
    const { canvas, url } = await makeBoard("Reloaded", [text("Kept", 0, 0)]);
    await openBoard(page, url);
    if (isSecond) {
      await page.getByRole("button", { name: /^Account of/ }).click();
      await page.getByRole("button", { name: "Sign out" }).click();
      await field(page).fill(TOKEN);
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      await page.getByRole("link", { name: "Reloaded" }).first().click();
      await isLive(page);
    }
    await page.route("**/operations", (route) => route.abort());
    await node(page, "Kept").click();
    await page.keyboard.press("Control+d");
    await page.keyboard.press("F2");
    await page.keyboard.type("Renamed copy");
    await page.keyboard.press("Enter");
    await page.getByRole("status").getByText("2 changes wait").waitFor();
    await page.reload();
    await node(page, "Renamed copy").waitFor();
    assert.equal((await read(canvas)).nodes.length, 1);
    await page.unroute("**/operations");
    // The page tries again by itself as well, and may be faster.
    await page.getByRole("button", { name: "Try now" }).click({ timeout: 5000 }).catch(() => saved(page));
    const after = await until(canvas, "the changes are saved", (graph) => titled(graph, "Renamed copy") !== undefined);
    assert.equal(after.nodes.length, 2);
    await saved(page);
  });
}

scene("what is dropped before the board is shown is told on it", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Dropped", [text("First", 0, 0), text("Second", 400, 0)]);
  const friend = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  await openBoard(page, url, friend.token);
  await page.route("**/operations", (route) => route.abort());
  for (const title of ["First", "Second"]) {
    await node(page, title).click();
    await page.keyboard.press("F2");
    await page.keyboard.type(`${title}, renamed`);
    await page.keyboard.press("Enter");
  }
  await page.getByRole("status").getByText("2 changes wait").waitFor();
  await page.goto("about:blank");
  await apply(canvas, [{ type: "node.delete", nodeId: ids["Second"] }]);
  await page.unroute("**/operations");
  // The review tells that the person may change the canvas, so the board is shown after it.
  const isRead = Promise.withResolvers<void>();
  await page.route("**/review", async (route) => {
    await isRead.promise;
    await route.continue();
  });
  expect(`409 POST ${path(canvas, "/operations")}`);
  const reading = page.waitForResponse((response) => new URL(response.url()).pathname === path(canvas, ""));
  await page.goto(url);
  await (await reading).finished();
  await page.waitForTimeout(500);
  isRead.resolve();
  await page.getByText("A change was dropped: what it changed was deleted.").waitFor();
  await until(canvas, "the other change is saved", (graph) => titled(graph, "First, renamed") !== undefined);
  await saved(page);
});

scene("what is changed without a network is saved when it is back", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Offline", [text("Here", 0, 0)]);
  // The network of a page is taken away, not that of a worker.
  await page.addInitScript(() => Reflect.deleteProperty(globalThis, "SharedWorker"));
  await openBoard(page, url);
  await page.context().setOffline(true);
  await page.getByRole("status").getByText("Offline").waitFor();
  await node(page, "Here").click();
  await page.keyboard.press("Control+d");
  await page.getByRole("status").getByText("1 change waits").waitFor();
  await isAccessible();
  await apply(canvas, [{ type: "node.create", node: { ...text("Of an agent", 600, 0), type: "text" } }]);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await page.context().setOffline(false);
  const after = await until(canvas, "the change is saved", ({ nodes }) => nodes.length === 3);
  await node(page, "Of an agent").waitFor();
  await saved(page);
  assert.equal(after.nodes.filter(({ title }) => title === "Here").length, 2);
});

scene("a text that two people changed is a person's choice", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Conflict", [text("Brief", 0, 0, { metadata: { content: "one" } })]);
  await openBoard(page, url);
  await page.route("**/operations", (route) => route.abort());
  await node(page, "Brief").dblclick();
  await page.keyboard.type("mine");
  await page.keyboard.press("Escape");
  await page.getByRole("status").getByText("1 change waits").waitFor();
  await apply(canvas, [{ type: "node.update", nodeId: ids["Brief"], patch: { metadata: { content: "theirs" } } }]);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await page.unroute("**/operations");
  const card = page.getByRole("region", { name: "Conflict" });
  await card.getByText("theirs", { exact: true }).waitFor();
  await apply(canvas, [{ type: "node.update", nodeId: ids["Brief"], patch: { metadata: { content: "theirs, later" } } }]);
  await card.getByText("theirs, later", { exact: true }).waitFor();
  await isAccessible();
  await card.getByRole("button", { name: "Keep both" }).press("Enter");
  await until(canvas, "both are kept", ({ nodes }) => nodes.length === 1 && nodes[0]?.metadata.content === "theirs, later\n\nmine");
  await card.waitFor({ state: "detached" });
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), "Board", "the board has the keyboard");
});

scene("a title that somebody else changed while it was typed is a person's choice, and one that was only looked at is not sent", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Named", [text("Brief", 0, 0)]);
  await openBoard(page, url);
  const card = page.getByRole("region", { name: "Conflict" });
  await node(page, "Brief").click();
  await page.keyboard.press("p");
  const ofNode = page.getByRole("complementary", { name: "Details" }).getByLabel("Title", { exact: true });
  await ofNode.fill("Mine");
  await apply(canvas, [{ type: "node.update", nodeId: ids["Brief"], patch: { title: "Brief of an agent" } }]);
  await node(page, "Brief of an agent").waitFor();
  await ofNode.press("Enter");
  await card.getByText("Brief of an agent", { exact: true }).waitFor();
  await card.getByRole("button", { name: "Keep theirs" }).press("Enter");
  await card.waitFor({ state: "detached" });

  const ofCanvas = page.getByLabel("Title of the canvas");
  const button = (title: string) => page.getByRole("button", { name: title, exact: true });
  const rename = async (title: string) => {
    await apply(canvas, [{ type: "canvas.update", title }]);
    await becomes(() => page.title(), `${title} · Canvas Service`);
  };
  await button("Named").click();
  await rename("Renamed by an agent");
  await ofCanvas.press("Enter");
  await button("Renamed by an agent").click();
  await ofCanvas.fill("Mine");
  await rename("Renamed again");
  await ofCanvas.press("Enter");
  await card.getByText("Renamed again", { exact: true }).waitFor();
  assert.equal((await read(canvas)).title, "Renamed again");
  await card.getByRole("button", { name: "Keep mine" }).press("Enter");
  await until(canvas, "the title is kept", ({ title, nodes }) => title === "Mine" && nodes[0]?.title === "Brief of an agent");
});

scene("a gateway that is killed during a drag loses nothing", async ({ page, expect, permit, afterwards }) => {
  expect(NOBODY);
  const { canvas, ids } = await makeBoard("Killed", [text("Dragged", 0, 0), text("Still", 400, 0)]);
  const gateway = await ownGateway();
  afterwards(gateway.kill);
  permit(gateway.url);
  await signIn(page, TOKEN, `${gateway.url}/c/${canvas.ownerUid}/${canvas.id}`);
  await isLive(page);
  const from = await middle(node(page, "Dragged"));
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(from.x + 30, from.y + 60, { steps: 4 });
  await gateway.kill();
  await page.mouse.move(from.x + 60, from.y + 120, { steps: 4 });
  await page.mouse.up();
  await page.getByRole("status").getByText("1 change waits").waitFor();
  await gateway.start();
  const after = await until(canvas, "the drag is saved", (graph) => (titled(graph, "Dragged")?.position.y ?? 0) > 0);
  assert.equal(after.batches.length, 2);
  assert.equal(titled(after, "Still")?.id, ids["Still"]);
  await saved(page);
});

scene("what an agent does is told, shown and undone", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Agent", [text("One", 0, 0), text("Two", 400, 0)]);
  const agent = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", agent.email, "--role", "editor");
  await openBoard(page, url);
  await apply(canvas, ["One", "Two"].map((title, index) => ({ type: "node.move", nodeId: ids[title], position: { x: index * 400, y: 900 } })), agent.token);
  await page.getByRole("status").getByText("browser test, an agent, moved ‘One’ and 1 more").waitFor();
  await isAccessible();
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await page.locator(".react-flow__node.selected").nth(1).waitFor();
  await page.getByRole("button", { name: "Undo", exact: true }).last().click();
  const after = await until(canvas, "the move is undone", ({ nodes }) => nodes.every(({ position }) => position.y === 0));
  assert.equal(after.nodes.length, 2);
});

scene("a viewer has the board with everything that reads, and nothing that changes it", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Looked at", [text("Only", 0, 0, { metadata: { content: "Words to copy" } }), text("Other", 0, 300)]);
  await send("POST", `/assets?canvasId=${canvas.handle}`, png(96, 96));
  const { nodes } = await read(canvas);
  const photo = nodes.find(({ asset }) => asset !== undefined)?.id;
  await apply(canvas, [
    { type: "node.update", nodeId: photo, patch: { title: "Photo" } },
    { type: "node.move", nodeId: photo, position: { x: 400, y: 0 } },
    { type: "connection.create", fromNodeId: ids["Only"], toNodeId: photo },
  ]);
  const viewer = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", viewer.email, "--role", "viewer");
  const before = await read(canvas);
  await openBoard(page, url, viewer.token);
  await page.getByRole("heading", { level: 1, name: "Looked at" }).waitFor();
  await becomes(() => page.getByRole("toolbar", { name: "Tools" }).getByRole("button").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label"))), ["Select", "Hand tool: drag the view"]);
  for (const name of ["Undo", "Make", "Recipes", "Pictures", "Queue", "Looked at"]) await becomes(() => page.getByRole("button", { name, exact: true }).count(), 0, name);

  const only = node(page, "Only");
  await dragBy(page, only, 80, 160);
  await only.dblclick();
  const [from, to] = await Promise.all([box(only), box(node(page, "Photo"))]);
  const line = await box(page.locator(".react-flow__edge-path"));
  assert(line.x >= from.x + from.width - 8 && line.x + line.width <= to.x + 8, "the connection runs from the one to the other");
  await page.keyboard.press("p");
  const inspect = page.getByRole("complementary", { name: "Details" });
  await inspect.getByText("Words to copy").waitFor();
  await becomes(() => inspect.locator("input, select, textarea").count(), 0);
  for (const key of ["Enter", "F2", "Control+d", "ArrowRight", "t", "n", "s", "Delete", "Control+z"]) await page.keyboard.press(key);
  await becomes(() => page.locator(".react-flow__node input, .react-flow__node textarea, .react-flow__resize-control").count(), 0);
  await page.evaluate(() => addEventListener("copy", (event) => Object.assign(globalThis, { copied: event.clipboardData?.getData("text/plain") })));
  await only.click();
  await page.keyboard.press("Control+c");
  await becomes(() => page.evaluate(() => (globalThis as { copied?: string }).copied), "Words to copy");
  await page.keyboard.press("Control+v");
  await only.click({ button: "right" });
  await becomes(() => page.getByRole("menuitem").allTextContents(), ["Export▸", "Show the selection2", "DetailsP"]);
  await isAccessible();
  await page.keyboard.press("Escape");

  await plane(page);
  await node(page, "Photo").click();
  const download = page.waitForEvent("download");
  // By keyboard: the image above it may still be loading, and then moves it.
  await inspect.getByRole("link", { name: "Download" }).press("Enter");
  assert.match((await download).suggestedFilename(), /^Photo/);
  await page.keyboard.press("o");
  const tree = page.getByRole("tree");
  await tree.press("Home");
  await tree.press("Enter");
  await tree.press("Delete");
  await page.getByRole("treeitem", { name: /^Connection to / }).waitFor();
  await isAccessible();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("add");
  await becomes(() => page.getByRole("option").allTextContents().then((all) => all.filter((one) => /^Add (a|an) /.test(one))), []);
  await page.keyboard.press("Escape");
  assert.deepEqual(await read(canvas), before, "nothing has changed");

  await apply(canvas, [{ type: "node.update", nodeId: ids["Other"], patch: { title: "Followed" } }]);
  await node(page, "Followed").waitFor();
});

scene("a token that may read no images sees the drawing and no tools", async ({ page, expect }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Drawn", [text("Only", 0, 0)]);
  await signIn(page, await reader(), url);
  await page.getByRole("img", { name: /Drawing of Drawn/ }).waitFor();
  await becomes(() => page.getByRole("toolbar").count(), 0);
});

scene("an edit that meets the end of the session survives signing in again", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const friend = await stranger();
  const { canvas, ids, url } = await makeBoard("Signed out", [text("Draft", 0, 0), text("Other", 400, 0)], friend.token);
  await openBoard(page, url, friend.token);
  await node(page, "Draft").dblclick();
  await page.keyboard.type("half a sen");
  await until(canvas, "the first words are saved", (graph) => titled(graph, "Draft")?.metadata.content === "half a sen", friend.token);
  await admin("session", "revoke", "--account", friend.uid);
  for (const part of ["", "/operations", "/changes", "/review"]) for (const method of ["GET", "POST"]) expect(`401 ${method} ${path(canvas, part)}`);
  for (const part of ["/events", "/auth/status", "/models", "/runs"]) expect(`401 GET ${ROOT}${part}`);
  await page.keyboard.type("tence");
  await page.getByLabel("Sign-in link or token").waitFor();
  await isAccessible();
  // Tokens end with the session, too.
  const { token } = await admin<{ token: string }>("token", "create", "--account", friend.uid, "--label", "again", "--scopes", "all");
  assert.equal(titled(await read(canvas, token), "Draft")?.metadata.content, "half a sen");
  await apply(canvas, [{ type: "node.update", nodeId: ids["Other"], patch: { title: "Meanwhile" } }], token);
  await page.getByLabel("Sign-in link or token").fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL(url);
  expect(`409 POST ${path(canvas, "/operations")}`);
  const after = await until(canvas, "the rest is saved", (graph) => titled(graph, "Draft")?.metadata.content === "half a sentence", token);
  assert.equal(titled(after, "Meanwhile")?.id, ids["Other"]);
  await node(page, "half a sentence").waitFor();
  await node(page, "Meanwhile").waitFor();
  await saved(page);
});

scene("signing out asks before it deletes changes, and nothing is sent for who signs in next", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Left too early", [text("Only", 0, 0)]);
  const friend = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  await openBoard(page, url);
  const before = await read(canvas);
  const held: Route[] = [];
  await page.route("**/operations", (route) => void held.push(route));
  await node(page, "Only").click();
  await page.keyboard.press("Control+d");
  await becomes(async () => held.length, 1);
  const ask = async () => {
    await page.getByRole("button", { name: /^Account of/ }).click();
    await page.getByRole("button", { name: "Sign out", exact: true }).click();
  };
  await ask();
  const dialog = page.getByRole("dialog", { name: "Sign out?" });
  await dialog.getByText("1 change is not saved and will be deleted.").waitFor();
  await isAccessible();
  await dialog.getByRole("button", { name: "Keep" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("application", { name: "Board" }).waitFor();
  await becomes(() => page.evaluate(() => document.activeElement !== document.body), true, "the keyboard is on the page");
  await ask();
  await dialog.getByRole("button", { name: "Sign out anyway" }).click();
  await field(page).fill(friend.token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("link", { name: "Left too early" }).first().waitFor();
  await held[0]?.abort();
  await page.unroute("**/operations");
  // Longer than the first pause before another attempt.
  await page.waitForTimeout(1500);
  assert.equal((await read(canvas)).revision, before.revision);
});

scene("what waits in a tab is not sent for who signs in in another one", async ({ page, open, expect }) => {
  expect(NOBODY);
  const [ana, ben] = [await stranger(), await stranger()];
  const { canvas, url } = await makeBoard("Two tabs", [text("Only", 0, 0)], ana.token);
  await admin("share", "--canvas", canvas.handle, "--with", ben.email, "--role", "editor");
  await openBoard(page, url, ana.token);
  const before = await read(canvas, ana.token);
  let isBack = false;
  await page.route("**/console/**", (route) => (isBack && route.request().url().endsWith("/operations") ? route.continue() : route.abort()));
  await node(page, "Only").click();
  await page.keyboard.press("Control+d");
  await page.getByRole("status").getByText("1 change waits").waitFor();

  expect(`401 POST ${path(canvas, "/operations")}`);
  const other = await open();
  await other.goto("/");
  await other.getByRole("button", { name: `Account of ${ana.email.split("@")[0]}` }).click();
  await other.getByRole("button", { name: "Sign out", exact: true }).click();
  await other.getByRole("dialog", { name: "Sign out?" }).getByRole("button", { name: "Sign out anyway" }).click();
  await signIn(other, ben.token);

  const answered = page.waitForResponse((response) => response.url().endsWith("/operations"));
  isBack = true;
  // The page tries again by itself as well, and may be faster.
  await page.getByRole("button", { name: "Try now" }).click({ timeout: 5000 }).catch(() => answered);
  assert.equal((await answered).status(), 401);
  await page.unroute("**/console/**");
  await page.getByRole("button", { name: `Account of ${ben.email.split("@")[0]}` }).waitFor();
  await isLive(page);
  await becomes(() => page.locator(".react-flow__node").count(), 1);
  assert.equal((await read(canvas, ana.token)).revision, before.revision);
});

/** Leaves the events about roles out of the page's stream, so that it learns of its role from an answer. The stream of a worker cannot be changed. */
const withoutRoles = (page: Page) =>
  page.addInitScript(() => {
    Reflect.deleteProperty(globalThis, "SharedWorker");
    const open = globalThis.fetch;
    globalThis.fetch = async (input, init) => {
      const response = await open(input, init);
      if (!response.body || !new URL(response.url).pathname.endsWith("/events")) return response;
      let rest = "";
      const kept = new TransformStream<string, string>({
        transform: (text, out) => {
          const blocks = (rest + text).split("\n\n");
          rest = blocks.pop() ?? "";
          for (const block of blocks) if (!block.startsWith("event: role")) out.enqueue(`${block}\n\n`);
        },
      });
      const body = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(kept).pipeThrough(new TextEncoderStream());
      return new Response(body, response);
    };
  });

scene("a role that is withdrawn during work ends it, and says so", async ({ page, expect }) => {
  expect(NOBODY);
  await withoutRoles(page);
  const { canvas, url } = await makeBoard("Withdrawn", [text("Shared", 0, 0)]);
  const friend = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  await openBoard(page, url, friend.token);
  expect(`403 POST ${path(canvas, "/operations")}`);
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "viewer");
  await node(page, "Shared").click();
  await page.keyboard.press("Control+d");
  await page.getByRole("alert").getByText("You can no longer change this canvas. 1 change of yours was not saved.").waitFor();
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  await page.getByRole("button", { name: "Try again" }).click();
  await until(canvas, "the change is saved", ({ nodes }) => nodes.length === 2);
});

scene("a change that waits when an event withdraws the role is kept, and saved when the role is back", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Withdrawn by an event", [text("Shared", 0, 0)]);
  const friend = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  await openBoard(page, url, friend.token);
  await page.route("**/operations", (route) => route.abort());
  await node(page, "Shared").click();
  await page.keyboard.press("Control+d");
  await page.getByRole("status").getByText("1 change waits").waitFor();
  // It is not made before the role is withdrawn.
  await page.keyboard.press("ArrowDown");
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "viewer");
  await page.getByRole("alert").getByText("You can no longer change this canvas. 2 changes of yours were not saved.").waitFor();
  await becomes(() => page.getByRole("toolbar", { name: "Tools" }).getByRole("button").count(), 2, "tools that change nothing");
  assert.equal(await page.getByText("You can only read this canvas now.").count(), 0, "it is said once");
  await isAccessible();
  await page.unroute("**/operations");
  await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
  await page.getByText("You can change this canvas now.").waitFor();
  await until(canvas, "both changes are saved", ({ nodes }) => nodes.length === 2);
  await saved(page);
});

// A text that is written is one change until it is sent.
const WRITING: { what: string; write: (page: Page) => Promise<void>; expected: readonly [string, string]; kept: string }[] = [
  { what: "a text", write: (page) => page.keyboard.type("tence"), expected: ["Withdrawn early", "half a sentence"], kept: "1 change of yours was" },
  {
    what: "a title",
    write: async (page) => {
      await page.getByRole("button", { name: "Withdrawn early", exact: true }).click();
      await page.getByLabel("Title of the canvas").fill("Renamed");
    },
    expected: ["Renamed", "half a sen"],
    kept: "2 changes of yours were",
  },
];

for (const { what, write, expected, kept } of WRITING) {
  scene(`${what} that is being written when the role is withdrawn is kept, and the board goes on as that of a viewer`, async ({ page, expect, isAccessible }) => {
    expect(NOBODY);
    await withoutRoles(page);
    const { canvas, ids, url } = await makeBoard("Withdrawn early", [text("Draft", 0, 0), text("Other", 400, 0)]);
    const friend = await stranger();
    await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
    await openBoard(page, url, friend.token);
    expect(`403 POST ${path(canvas, "/operations")}`);
    await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "viewer");
    // It is written between the request and the answer.
    const answer = (route: Route) => write(page).then(() => route.continue());
    await page.route("**/operations", answer, { times: 1 });
    await node(page, "Draft").dblclick();
    await page.keyboard.type("half a sen");
    await page.getByRole("alert").getByText(`You can no longer change this canvas. ${kept} not saved.`).waitFor();
    await becomes(() => page.getByRole("toolbar", { name: "Tools" }).getByRole("button").count(), 2, "tools that change nothing");
    await becomes(() => page.locator(".react-flow__node textarea, h1 input").count(), 0);
    const [title, content] = expected;
    await page.getByRole("heading", { level: 1, name: title }).waitFor();
    await page.locator(".react-flow__node").getByText(content, { exact: true }).waitFor();
    await apply(canvas, [{ type: "node.update", nodeId: ids["Other"], patch: { title: "Followed" } }]);
    await node(page, "Followed").waitFor();
    await isAccessible();
    await admin("share", "--canvas", canvas.handle, "--with", friend.email, "--role", "editor");
    await page.getByRole("button", { name: "Try again" }).click();
    const after = await until(canvas, "both changes are saved", (graph) => graph.title === title && titled(graph, "Draft")?.metadata.content === content);
    assert.equal(titled(after, "Followed")?.id, ids["Other"]);
    await saved(page);
  });
}

scene("a role that changes is seen at once, and the board goes on with it", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Roles", [text("Shared", 0, 0)]);
  // The event stream of a page can be replaced, that of a worker cannot.
  await page.addInitScript(() => Reflect.deleteProperty(globalThis, "SharedWorker"));
  const { revision } = await read(canvas);
  let accessRole = "editor";
  const event = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify({ canvas: canvas.handle, ...data })}\n\n`;
  await page.route("**/events?*", (route) => route.fulfill({ contentType: "text/event-stream", body: event("canvas", { revision }) + event("role", { accessRole }) }));
  await signIn(page, TOKEN, url);
  const tools = page.getByRole("toolbar", { name: "Tools" }).getByRole("button");
  await becomes(() => tools.count(), 8);
  await page.getByText("editor · 1 thing").waitFor();
  accessRole = "viewer";
  await page.getByText("You can only read this canvas now.").waitFor();
  await becomes(() => tools.count(), 2);
  await node(page, "Shared").click();
  await page.keyboard.press("Delete");
  await node(page, "Shared").waitFor();
  await isAccessible();
  accessRole = "editor";
  await page.getByText("You can change this canvas now.").waitFor();
  await becomes(() => tools.count(), 8);
});

scene("a drag goes on, and is saved, when somebody deletes a node of it", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, ids, url } = await makeBoard("Pulled", [text("First", 0, 0), text("Held", 300, 0), text("Last", 600, 0)]);
  expect(`409 POST ${path(canvas, "/operations")}`);
  await openBoard(page, url);
  for (const [gone, least] of [["First", 75], ["Held", 95]] as const) {
    await page.keyboard.press("Control+a");
    const { x, y } = await middle(node(page, "Held"));
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x, y + 30, { steps: 4 });
    await apply(canvas, [{ type: "node.delete", nodeId: ids[gone] }]);
    await node(page, gone).waitFor({ state: "detached" });
    await page.mouse.move(x, y + 90, { steps: 6 });
    await page.mouse.up();
    await until(canvas, `moved without ${gone}`, (graph) => (titled(graph, "Last")?.position.y ?? 0) >= least);
  }
});
