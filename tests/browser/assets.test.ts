/** The assets of an account: on their screen, and in the panel beside the board. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

import { node, openBoard, ROOT, saved, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, apply, BASE_URL, makeBoard, png, read, send, signInLink, stranger } from "./service.ts";
import { field, heading, signIn } from "./steps.ts";

interface Asset {
  id: string;
  handle: string;
  ownerUid: string;
}

const upload = async (token: string, name: string, bytes = png(96, 64), query = ""): Promise<Asset> => {
  const response = await fetch(`${BASE_URL}/api/canvas-agent/v1/assets${query}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "image/png", "X-Service-File-Name": encodeURIComponent(name) },
    body: bytes,
  });
  assert.equal(response.status, 201, await response.clone().text());
  return ((await response.json()) as { asset: Asset }).asset;
};

const tile = (page: Page, name: string) => page.getByRole("button", { name: new RegExp(`^(Open|Put on the board:) ${name}`) });
const preview = (page: Page, name: string) => page.getByRole("dialog", { name, exact: true });

async function signInAsPerson(page: Page, uid: string): Promise<void> {
  await page.goto(await signInLink(uid));
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Canvases");
}

scene("assets are shown as images, found by name and by canvas, and opened large", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { token } = await stranger();
  await upload(token, "harbor.png", png(640, 480));
  await upload(token, '<b id="x">כּ.png');
  const { canvas } = await send<{ canvas: { id: string; handle: string } }>("POST", "/canvases", { title: "Moodboard" }, token);
  await upload(token, "boat.png", png(40, 80), `?canvasId=${canvas.id}`);
  await signIn(page, token, "/assets");
  await heading(page, "Pictures");
  await tile(page, "harbor.png").waitFor();
  await page.getByText("· 640 × 480").waitFor();
  await page.waitForFunction(() => document.querySelectorAll("main [role=gridcell] img").length === 3);
  await becomes(() => page.locator("#x").count(), 0, "a name is text");
  await isAccessible();

  await page.getByLabel("Search by title, name or prompt").fill("BOAT");
  await tile(page, "harbor.png").waitFor({ state: "detached" });
  await tile(page, "boat.png").waitFor();
  await page.getByLabel("Search by title, name or prompt").fill("");
  await page.getByLabel("Canvas", { exact: true }).selectOption("Moodboard");
  await tile(page, "harbor.png").waitFor({ state: "detached" });
  assert.match(page.url(), /canvas=/, "the filter is in the address");
  await page.getByLabel("Canvas", { exact: true }).selectOption("");

  await tile(page, "harbor.png").click();
  const dialog = preview(page, "harbor.png");
  await dialog.getByRole("img", { name: "Picture without description" }).waitFor();
  await dialog.getByText("640 × 480 pixels").waitFor();
  await dialog.getByText("You are signed in with a token").waitFor();
  await isAccessible();
  const download = page.waitForEvent("download");
  await dialog.getByRole("button", { name: "Download" }).click();
  assert.equal((await download).suggestedFilename(), "harbor.png");
  // The newest is first.
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("dialog", { name: /כּ/ }).waitFor();
  await page.keyboard.press("ArrowRight");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
});

scene("assets are uploaded with progress, and a file that is no image is refused", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { token } = await stranger();
  await signIn(page, token, "/assets");
  await page.getByRole("heading", { name: "No pictures yet" }).waitFor();
  await isAccessible();
  let release = () => {};
  const held = new Promise<void>((resume) => (release = resume));
  await page.route("**/assets", async (route) => {
    if (route.request().method() === "POST") await held;
    await route.continue();
  });
  const [image, text] = [
    { name: "pier.png", mimeType: "image/png", buffer: Buffer.from(png(64, 64)) },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") },
  ];
  await page.getByLabel("Images to upload").first().setInputFiles([image, text]);
  await page.getByRole("progressbar", { name: "Upload of pier.png" }).waitFor();
  await page.getByText("notes.txt: only PNG, JPEG, WebP, GIF and AVIF images and MP4 videos can be uploaded.").waitFor();
  release();
  await tile(page, "pier.png").waitFor();
  await page.getByRole("progressbar").waitFor({ state: "detached" });
});

scene("an asset is deleted after a question, and one that a node shows after a second one", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  const free = await upload(token, "free.png");
  const { canvas } = await send<{ canvas: { id: string; handle: string } }>("POST", "/canvases", { title: "Shows it" }, token);
  const shown = await upload(token, "shown.png", png(50, 50), `?canvasId=${canvas.id}`);
  await signInAsPerson(page, uid);
  await page.getByRole("link", { name: "Pictures" }).click();
  await tile(page, "free.png").click();
  await preview(page, "free.png").getByRole("button", { name: "Delete…" }).click();
  const question = page.getByRole("dialog", { name: "Delete this picture?" });
  await question.getByRole("button", { name: "Keep it" }).click();
  await question.waitFor({ state: "detached" });
  await preview(page, "free.png").getByRole("button", { name: "Delete…" }).click();
  await question.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("free.png was deleted.").waitFor();
  await preview(page, "free.png").waitFor({ state: "detached" });

  expect(`409 DELETE /console/assets/${uid}/${shown.id}`);
  // The next one has its place.
  await preview(page, "shown.png").getByRole("button", { name: "Delete…" }).click();
  await question.getByRole("button", { name: "Delete", exact: true }).click();
  const second = page.getByRole("dialog", { name: "Delete it although it is shown?" });
  await second.getByText("Nothing was deleted yet").waitFor();
  await second.getByRole("button", { name: "Find where it is shown" }).click();
  await second.getByRole("link", { name: "Shows it" }).waitFor();
  await isAccessible();
  await second.getByRole("button", { name: "Delete anyway" }).click();
  await page.getByText("shown.png was deleted.").waitFor();
  await page.getByRole("heading", { name: "No pictures yet" }).waitFor();
  for (const { handle } of [free, shown]) {
    const response = await fetch(`${BASE_URL}/api/canvas-agent/v1/assets/${handle}`, { headers: { Authorization: `Bearer ${token}` } });
    assert.equal(response.status, 404);
  }
  // An address of a deleted asset says so.
  expect(`404 GET /console/api/canvas-agent/v1/assets/${encodeURIComponent(free.handle)}`);
  await page.goto(`/assets?asset=${encodeURIComponent(free.handle)}`);
  await page.getByText("This picture was deleted, or belongs to somebody else.").waitFor();
});

scene("where an asset is shown leads to its nodes", async ({ page, expect }) => {
  expect(NOBODY);
  const { token } = await stranger();
  const { canvas } = await send<{ canvas: { id: string; handle: string } }>("POST", "/canvases", { title: "Far away" }, token);
  await upload(token, "here.png", png(50, 50), `?canvasId=${canvas.id}`);
  await signIn(page, token, "/assets");
  await tile(page, "here.png").click();
  await page.getByRole("button", { name: "Find where it is shown" }).click();
  await page.getByText("Shown on 1 canvas:").waitFor();
  await page.getByRole("link", { name: "Far away" }).click();
  await page.locator('.react-flow__node.selected[aria-label*="here.png"]').waitFor();
  await page.waitForURL((url) => url.search === "");
});

scene("an asset is put on the board by click, by keyboard and by dragging", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Takes assets", []);
  for (const name of ["lamp.png", "mug.png", "rug.png"]) await send("POST", `/assets?canvasId=${canvas.handle}`, png(name.length * 20, 90));
  const { nodes } = await read(canvas);
  await apply(canvas, nodes.map(({ id }) => ({ type: "node.delete", nodeId: id })));
  await openBoard(page, url);
  await page.keyboard.press("a");
  const panel = page.getByRole("complementary", { name: "Pictures" });
  await panel.getByText("This board", { exact: true }).click();
  const tiles = panel.getByRole("button", { name: /^Put on the board:/ });
  await tiles.nth(2).waitFor();
  await isAccessible();
  await tiles.nth(0).click();
  await until(canvas, "a click puts the asset on the board", (graph) => graph.nodes.length === 1 && graph.nodes[0]?.asset !== undefined);
  await tiles.nth(0).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await until(canvas, "Enter puts the asset on the board", (graph) => graph.nodes.length === 2);
  await tiles.nth(2).dragTo(page.getByRole("application", { name: "Board" }), { targetPosition: { x: 320, y: 520 } });
  const after = await until(canvas, "a drag puts the asset on the board", (graph) => graph.nodes.length === 3);
  assert.equal(new Set(after.nodes.map(({ asset }) => asset)).size, 3);
  assert(titled(after, "upload.png"), "a node has the name of its file");
  await page.waitForFunction(() => document.querySelectorAll(".react-flow__node img").length === 3);
  await page.keyboard.press("Control+z");
  await until(canvas, "an undo takes it away", (graph) => graph.nodes.length === 2);
  await saved(page);
  await node(page, "upload.png").waitFor();
});

scene("an editor puts the images of a shared canvas on it, and not those of others", async ({ page, expect }) => {
  expect(NOBODY);
  const [owner, editor] = [await stranger(), await stranger()];
  const { canvas } = await send<{ canvas: { id: string; handle: string; ownerUid: string } }>("POST", "/canvases", { title: "Shared" }, owner.token);
  await upload(owner.token, "ours.png", png(64, 64), `?canvasId=${canvas.id}`);
  await upload(owner.token, "private.png");
  await admin("share", "--canvas", canvas.handle, "--with", editor.uid, "--role", "editor");
  await openBoard(page, `${BASE_URL}/c/${canvas.ownerUid}/${canvas.id}`, editor.token);
  await page.getByRole("button", { name: "Pictures", exact: true }).click();
  const panel = page.getByRole("complementary", { name: "Pictures" });
  await panel.getByRole("button", { name: /ours.png/ }).click();
  await page.locator('.react-flow__node[aria-label*="ours.png"]').nth(1).waitFor();
  await saved(page);
  await becomes(() => panel.getByRole("button", { name: /private.png/ }).count(), 0);
});

scene("a session without asset:read or uploads is told so", async ({ page, expect }) => {
  expect(NOBODY);
  const { token: narrow } = await stranger("canvas:read,canvas:write");
  await signIn(page, narrow, "/assets");
  await page.getByRole("heading", { name: "This session may not see pictures" }).waitFor();
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await field(page).waitFor();
  const { token } = await stranger("canvas:read,asset:read");
  await signIn(page, token, "/assets");
  await page.getByText("Uploading needs the scope image:generate or video:generate").waitFor();
  await becomes(() => page.getByRole("button", { name: "Upload" }).count(), 0);
  const { token: writer } = await stranger("canvas:read,canvas:write");
  const { canvas } = await send<{ canvas: { id: string; ownerUid: string } }>("POST", "/canvases", { title: "No assets" }, writer);
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await field(page).waitFor();
  await openBoard(page, `${BASE_URL}/c/${canvas.ownerUid}/${canvas.id}`, writer);
  await page.keyboard.press("a");
  await page.getByText("This session may not see pictures").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.getByText("This session cannot make images or videos: its token does not allow it.").waitFor();
});

scene("a session with asset:read alone sees the assets outside of canvases", async ({ page, expect }) => {
  expect(NOBODY, `403 GET ${ROOT}/canvases`);
  const { uid, token } = await stranger();
  await upload(token, "mine.png");
  const made = await admin<{ token: string }>("token", "create", "--account", uid, "--label", "images", "--scopes", "asset:read");
  await signIn(page, made.token, "/assets");
  await tile(page, "mine.png").waitFor();
});
