/**
 * Takes pictures of every screen of the console, in light and dark, into docs/images: tests/browser/run --screens
 *
 * A screen is one line of SCREENS: its name, and how a person gets there.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import type { Page } from "playwright-core";

import { node } from "./board.ts";
import { launch } from "./chromium.ts";
import { admin, apply, BASE_URL, type Canvas, makeBoard, read, send, signInLink } from "./service.ts";
import { isLive, signIn } from "./steps.ts";

const ROOT = join(import.meta.dirname, "../..");
const IMAGES = join(ROOT, "docs/images/console");
const MOST_BYTES = 120_000;

const panel = (page: Page, name: string) => page.getByRole("complementary", { name });
const open = (name: string, title: string) => async (page: Page) => {
  await page.goto(board);
  await isLive(page);
  await node(page, title).click();
  await page.locator(`[data-panel="${name}"]`).click();
  await page.keyboard.press("0");
};
const at = (path: string) => (page: Page) => page.goto(path);

const SCREENS: [name: string, go: (page: Page) => Promise<unknown>][] = [
  ["canvases", at("/")],
  ["board", (page) => page.goto(board)],
  ["inspect", open("inspect", "Espresso, square")],
  ["action", async (page) => (await open("inspect", "Photo")(page), await panel(page, "Inspect").getByLabel("Make a new picture").selectOption({ label: "Change aspect ratio" }), panel(page, "Inspect").locator("form").getByLabel("Ratio", { exact: true }).fill("4:5"))],
  ["make", open("make", "Text of the brief")],
  ["outline", open("outline", "Photo")],
  ["findings", open("findings", "Photo")],
  ["runs-of-a-canvas", open("runs", "Photo")],
  ["palette", async (page) => (await open("inspect", "Photo")(page), page.keyboard.press("Control+k"))],
  ["runs", at("/runs")],
  ["recipes", at("/recipes")],
  ["elements", at("/elements")],
  ["assets", at("/assets")],
  ["settings", at("/settings")],
];

// What the screens show

const uid = `ana-${crypto.randomUUID()}`;
await admin("account", "create", "--email", `ana.${uid.slice(-6)}@example.com`, "--uid", uid, "--credits", "500");
const { token } = await admin<{ token: string }>("token", "create", "--account", uid, "--label", "Ana", "--scopes", "all");

const place = (x: number, y: number, width: number, height: number) => ({ position: { x, y }, width, height });
const section = (title: string, x: number, width: number) => ({ type: "sticky", title, ...place(x, 0, width, 760), metadata: { section: true } });
const frame = (title: string, x: number, y: number, width: number, height: number, sectionId: string) => ({ type: "image", title, ...place(x, y, width, height), metadata: { sectionId } });
const note = (title: string, y: number, content: string, color: string) => ({ type: "sticky", title, ...place(2500, y, 240, 200), metadata: { content, color } });

const photo = new Uint8Array(readFileSync(join(ROOT, "deploy/local/demo-photo.jpg")));
for (const [title, content] of [["Packaging, small boxes", "Kraft board, one color"], ["Spring campaign", "What worked, what to repeat"], ["Moodboard, ceramics", "Glazes between brick and rust"]] as const) {
  const { canvas } = await makeBoard(title, [{ title: "Idea", ...place(600, 0, 320, 320), type: "sticky", metadata: { content } }], token);
  await send("POST", `/assets?canvasId=${canvas.handle}`, photo, token);
}

const { canvas, ids, url: board } = await makeBoard("Autumn menu", [
  section("Brief", 0, 560),
  section("Formats", 640, 840),
  section("Storyboard", 1560, 900),
  { title: "Text of the brief", ...place(40, 520, 480, 200), metadata: { content: "Autumn menu: one espresso, red cup on dark wood, warm light. Square, story and a warm grade, and four frames for the film.", sectionId: "Brief" } },
  frame("Espresso, square", 680, 80, 340, 368, "Formats"),
  frame("Espresso, story", 1060, 80, 380, 661, "Formats"),
  frame("Espresso, warm", 680, 488, 340, 255, "Formats"),
  ...["Beans", "First drops", "The cup", "To the table"].map((title, index) => frame(title, 1600 + (index % 2) * 420, 80 + Math.floor(index / 2) * 330, 400, 290, "Storyboard")),
], token);
const { asset } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${canvas.handle}`, photo, token);
const picture = asset.node.replace("node:", "");
const notes = [note("Mood", 80, "Less cropping in the story, please.", "#bfdcff"), note("Review", 320, "Square is approved. Thank you!", "#c7e9d4")];
await apply(canvas, [
  { type: "node.move", nodeId: picture, position: { x: 40, y: 80 } },
  { type: "node.update", nodeId: picture, patch: { title: "Photo", width: 480, metadata: { sectionId: ids["Brief"] } } },
  ...notes.map((one) => ({ type: "node.create", node: one })),
  ...["Espresso, square", "Espresso, story", "Espresso, warm"].map((title) => ({ type: "connection.create", fromNodeId: picture, toNodeId: ids[title] })),
], token);

async function start(path: string, body: object): Promise<void> {
  const { revision } = await read(canvas, token);
  const { run } = await send<{ run: string }>("POST", path, { canvasId: canvas.handle, baseRevision: revision, idempotencyKey: crypto.randomUUID(), ...body }, token);
  for (let status = ""; status !== "succeeded"; ) ({ status } = await send<{ status: string }>("GET", `/runs/${run}`, undefined, token));
}
const act = (action: string, target: string, params: object) => start(`/actions/${action}/runs`, { inputs: [asset.node], targetNodeId: ids[target], params });
await act("change-aspect-ratio", "Espresso, square", { ratio: "1:1" });
await act("change-aspect-ratio", "Espresso, story", { ratio: "3:5" });
await act("color-grade", "Espresso, warm", { preset: "warm", contrast: 10 });
const { models } = await send<{ models: { handle: string; name: string }[] }>("GET", "/models?limit=100", undefined, token);
const frames = ["Beans", "First drops", "The cup", "To the table"].map((title) => ids[title]);
await start("/images/generate", { model: models.find(({ name }) => name === "Sketch")?.handle, prompt: "Espresso in a red cup, warm morning light", targetNodeIds: frames });
// The pictures

mkdirSync(IMAGES, { recursive: true });
const browser = await launch();
for (const colorScheme of ["light", "dark"] as const) {
  const context = await browser.newContext({ baseURL: BASE_URL, colorScheme, reducedMotion: "reduce", viewport: { width: 1360, height: 850 } });
  const page = await context.newPage();
  await page.goto(await signInLink(uid));
  await page.getByRole("button", { name: "Continue" }).waitFor();
  await save(page, "sign-in", colorScheme);
  await signIn(page, token);
  for (const [name, go] of SCREENS) {
    await go(page);
    // Pictures and drawings come in by and by.
    await page.waitForTimeout(3000);
    if (await page.getByRole("heading", { name: "There is nothing here for you" }).isVisible()) console.log(`   ${name}: there is no such screen`);
    else await save(page, name, colorScheme);
  }
  await context.close();
}
await browser.close();

/** Saves what is seen as the sharpest JPEG that is small enough. */
async function save(page: Page, name: string, colorScheme: string): Promise<void> {
  for (let quality = 88; ; quality -= 8) {
    const picture = await page.screenshot({ type: "jpeg", quality });
    if (picture.length > MOST_BYTES && quality > 40) continue;
    writeFileSync(join(IMAGES, `${name}-${colorScheme}.jpg`), picture);
    return;
  }
}
