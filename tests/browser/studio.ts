/** A studio for ceramics with its canvases, images, Elements, runs and members: what the screenshots of the console show. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Browser } from "playwright-core";

import { draw, IMAGES } from "./art.ts";
import { admin, apply, BASE_URL, type Canvas, connect, makeBoard, type Node, person, read, send, SHOP_URL, succeeded } from "./service.ts";

export interface Person {
  uid: string;
  email: string;
  token: string;
}

async function account(name: string, credits = 0): Promise<Person> {
  const [uid, email] = [`${name}-${randomUUID().slice(0, 8)}`, `${name}@norte.example`];
  await admin("account", "create", "--email", email, "--uid", uid, "--credits", String(credits));
  const { token } = await admin<{ token: string }>("token", "create", "--account", uid, "--label", "Studio laptop", "--scopes", "all");
  return { uid, email, token };
}

// Nodes

type Part = Partial<Node> & { title: string };
type Box = [x: number, y: number, width: number, height: number];

const at = ([x, y, width, height]: Box) => ({ position: { x, y }, width, height });
const inside = (sectionId: string | undefined) => (sectionId === undefined ? {} : { sectionId });
const section = (title: string, box: Box): Part => ({ type: "sticky", title, ...at(box), metadata: { section: true } });
const slot = (title: string, box: Box, home?: string): Part => ({ type: "image", title, ...at(box), metadata: inside(home) });
const text = (title: string, content: string, box: Box, home?: string): Part => ({ title, ...at(box), metadata: { content, ...inside(home) } });
const note = (title: string, content: string, color: string, box: Box, home?: string): Part => ({ type: "sticky", title, ...at(box), metadata: { content, ...{ color }, ...inside(home) } });
const [BLUE, GREEN, ORANGE, VIOLET] = ["#bfdcff", "#c7e9d4", "#ffc9a3", "#d9c8ff"] as const;

/** Puts all nodes of a canvas into rows. */
async function tidy(canvas: Canvas, token: string): Promise<void> {
  const { nodes } = await read(canvas, token);
  await apply(canvas, nodes.map(({ id }, index) => ({ type: "node.move", nodeId: id, position: { x: (index % 5) * 400, y: Math.floor(index / 5) * 420 } })), token);
}

// Assets

interface Asset {
  id: string;
  handle: string;
}

async function upload(name: string, body: Uint8Array<ArrayBuffer>, token: string): Promise<Asset> {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "image/jpeg", "X-Service-File-Name": encodeURIComponent(name), "Idempotency-Key": randomUUID() };
  const response = await fetch(`${BASE_URL}/api/canvas-agent/v1/assets`, { method: "POST", headers, body });
  assert(response.ok, await response.clone().text());
  return ((await response.json()) as { asset: Asset }).asset;
}

// Work

async function start(canvas: Canvas, path: string, body: object, token: string): Promise<string> {
  const { revision } = await read(canvas, token);
  const { run } = await send<{ run: string }>("POST", path, { canvasId: canvas.handle, baseRevision: revision, idempotencyKey: randomUUID(), ...body }, token);
  return run;
}

const finish = async (canvas: Canvas, path: string, body: object, token: string): Promise<string> => {
  const run = await start(canvas, path, body, token);
  await succeeded(run, token);
  return run;
};

/** Waits until a run or a job has ended so. */
async function ended(path: string, as: string, token: string): Promise<void> {
  for (let status = ""; status !== as; ) ({ status } = await send<{ status: string }>("GET", path, undefined, token));
}

const hook = (path: string) => ({ webhook: { url: `${SHOP_URL}${path}`, secret: "0123456789abcdef0123456789abcdef" } });

/** Connects an account to the simulated provider of the service's first account: a prompt tells it to fail, or not to answer. */
async function connectSimulator(account: string): Promise<void> {
  const { connections } = await admin<{ connections: { baseUrl: string }[] }>("connection", "list", "--account", person.uid);
  await connect(account, "openai", "Studio", connections[0]?.baseUrl ?? "");
}

export interface Studio {
  ana: Person;
  mateo: Person;
  /** The canvas that most screenshots show, its address, and its nodes by their titles. */
  canvas: Canvas;
  url: string;
  ids: Record<string, string>;
  /** The address of a canvas that somebody else has shared for reading. */
  sharedUrl: string;
  element: string;
  recipe: string;
  /** A run that succeeded, one that failed, and one of a Recipe. */
  runs: { succeeded: string; failed: string; recipe: string };
  asset: string;
  /** Starts work that does not end. */
  begin: () => Promise<void>;
}

export async function openStudio(browser: Browser): Promise<Studio> {
  const ana = await account("ana", 320);
  const [mateo, ines, jonas] = [await account("mateo"), await account("ines"), await account("jonas", 20)];
  const { token } = ana;
  for (const [label, scopes, days] of [["Shot list agent", "canvas:read,canvas:write,asset:read,element:read,image:generate,job:manage", "90"], ["Weekly report", "canvas:read", "30"], ["Print shop", "canvas:read,asset:read", "7"]] as const) {
    await admin("token", "create", "--account", ana.uid, "--label", label, "--scopes", scopes, "--expires-days", days);
  }

  const files = await draw(browser, IMAGES);
  const assets: Record<string, Asset> = {};
  for (const [name, file] of Object.entries(files)) assets[name] = await upload(`${name}.jpg`, file, token);
  assets["Espresso on dark wood"] = await upload("Espresso on dark wood.jpg", new Uint8Array(readFileSync(join(import.meta.dirname, "../../deploy/local/demo-photo.jpg"))), token);
  const image = (name: string, box: Box, home?: string, title = name): Part => ({ ...slot(title, box, home), asset: assets[name]?.handle ?? "" });

  // Other canvases, the oldest first

  await makeBoard("Kiln diary", [
    image("Glaze tests, kiln 14", [0, 0, 480, 388]),
    text("Kiln 14", "Cone 6, slow cooling from 1,040 °C. Brick and rust as hoped; oat runs below 2 mm.", [540, 0, 340, 200]),
    note("Next firing", "Thinner oat, and one shelf with cups only.", ORANGE, [540, 240, 240, 160]),
  ], token);
  await makeBoard("Spring market, posters", [
    image("Vase with an olive branch", [0, 0, 360, 508]),
    image("Bowls, oat and slate", [420, 0, 360, 388]),
    note("Printer", "A2, uncoated, 40 copies by 12 March.", GREEN, [840, 0, 240, 180]),
    text("Line", "From earth, for every morning.", [840, 220, 300, 120]),
  ], token);
  const desk = await makeBoard("Copy desk", [text("Product", "A cup of dark clay with a brick glaze, 220 ml, dishwasher safe.", [0, 0, 320, 160])], token);
  const output = (key: string, label: string, inputKeys: string[], prompt: string) => ({ key, label, type: "text", inputKeys, prompt });
  const { workflow } = await send<{ workflow: { id: string } }>("POST", `/canvases/${desk.canvas.handle}/workflows`, {
    name: "Card and caption",
    description: "A line for the card in the shop, and a caption for the post about it.",
    idempotencyKey: randomUUID(),
    inputs: [
      { key: "product", label: "Product", description: "What it is, and what it is made of.", type: "text", useAsDefault: false },
      { key: "tone", label: "Tone", type: "text", value: "Calm and plain", useAsDefault: true, writtenReference: true },
    ],
    outputs: [output("card", "Card", ["product", "tone"], "A line for the card of {{product}}, {{tone}}"), output("caption", "Caption", ["card"], "A caption for {{card}}")],
  }, token);
  const story = await finish(desk.canvas, "/recipes/storyboard/runs", { inputs: { brief: "Thirty seconds for the autumn tableware: clay, fire, and the first coffee of the day." } }, token);
  await tidy(desk.canvas, token);

  await connectSimulator(ana.uid);
  const { models } = await send<{ models: { handle: string; name: string; provider: string; capabilities: string[] }[] }>("GET", "/models?limit=100", undefined, token);
  const sketch = models.find(({ name }) => name === "Sketch")?.handle;
  const simulated = models.find(({ provider, capabilities }) => provider === "openai" && capabilities.includes("image.generate"))?.handle;

  const lookbook = await makeBoard("Winter lookbook", [
    section("Spreads", [0, 0, 1080, 460]),
    image("Carafe and cup", [40, 80, 440, 358], "Spreads"),
    slot("Cover", [520, 80, 240, 340], "Spreads"),
    slot("Back", [800, 80, 240, 340], "Spreads"),
  ], token);
  const failed = await start(lookbook.canvas, "/images/generate", { model: simulated, prompt: "Carafe in falling snow [[sim:content]]", targetNodeIds: [lookbook.ids["Cover"]] }, token);
  await ended(`/runs/${failed}`, "failed", token);
  await finish(lookbook.canvas, "/images/generate", { model: sketch, prompt: "A carafe on a window sill, snow outside, ink drawing", size: "1024x1536", targetNodeIds: [lookbook.ids["Back"]] }, token);

  const agent = await send<{ canvas: Canvas }>("POST", "/canvases", { canvasType: "agent", title: "Shot lists" }, token);
  await apply(agent.canvas, [
    { type: "node.create", node: { type: "text", title: "Shots for Thursday", ...at([0, 0, 360, 240]), metadata: { content: "1. Cup from above, no props\n2. Pour, side light\n3. Two cups, window\n4. Stack of bowls on slate" } } },
    { type: "node.create", node: { type: "sticky", title: "Open", ...at([400, 0, 220, 160]), metadata: { content: "Which linen: oat or rust?", color: VIOLET } } },
  ], token);

  const menu = await makeBoard("Menu photography", [
    section("Selection", [0, 0, 1060, 460]),
    text("Notes", "Warm side light, no hands, the cup always to the right. We need two formats of each.", [520, 80, 300, 180], "Selection"),
    note("From Jonas", "Love the dark ones. Can we try a lighter table?", BLUE, [520, 290, 240, 150], "Selection"),
  ], jonas.token);
  // Stored in the canvas, an image is there for its members, too.
  const { asset: carafe } = await send<{ asset: { node: string } }>("POST", `/assets?canvasId=${menu.canvas.handle}`, files["Carafe and cup"] as Uint8Array<ArrayBuffer>, jonas.token);
  await apply(menu.canvas, [
    { type: "node.move", nodeId: carafe.node, position: { x: 40, y: 80 } },
    { type: "node.update", nodeId: carafe.node, patch: { title: "Carafe", width: 440, height: 358, metadata: { sectionId: menu.ids["Selection"] } } },
  ], jonas.token);
  await admin("share", "--canvas", menu.canvas.handle, "--with", ana.email, "--role", "viewer");

  // The canvas of most screenshots

  const frames = ["Clay", "Fire", "Glaze", "First coffee"];
  const { canvas, ids, url } = await makeBoard("Café Lumen, autumn tableware", [
    section("Brief", [0, 0, 560, 1000]),
    image("Espresso on dark wood", [40, 80, 480, 348], "Brief"),
    text("Client brief", "Tableware for Café Lumen, for autumn: one cup, one bowl, one carafe. Dark clay, brick and oat glazes. Warm side light, dark wood, nothing glossy.", [40, 468, 480, 190], "Brief"),
    note("Feedback", "The first format is approved. The tall one may be darker.", GREEN, [40, 698, 225, 180], "Brief"),
    note("To do", "Formats by Tuesday, then the video.", BLUE, [295, 698, 225, 180], "Brief"),
    section("Moodboard", [640, 0, 1100, 1000]),
    image("Two cups at the window", [680, 80, 320, 268], "Moodboard"),
    image("Bowls, oat and slate", [680, 388, 320, 348], "Moodboard"),
    note("Light", "Late afternoon, from the left. Keep the shadows.", "#ffe48a", [680, 776, 320, 150], "Moodboard"),
    image("Vase with an olive branch", [1040, 80, 320, 455], "Moodboard"),
    image("Carafe and cup", [1040, 575, 320, 268], "Moodboard"),
    image("Glaze tests, kiln 14", [1400, 80, 300, 253], "Moodboard"),
    image("Table for two", [1400, 373, 300, 221], "Moodboard"),
    text("Palette", "Brick, rust and oat carry the set. Slate only for bowls. No pure white.", [1400, 634, 300, 160], "Moodboard"),
    section("Formats", [1820, 0, 800, 1000]),
    slot("Square", [1860, 80, 330, 358], "Formats"),
    slot("Warm grade", [1860, 478, 330, 248], "Formats"),
    slot("Story", [2230, 80, 350, 611], "Formats"),
    slot("Menu card", [2230, 731, 350, 262], "Formats"),
    section("Storyboard", [0, 1080, 2620, 410]),
    ...frames.map((title, index) => slot(title, [40 + index * 430, 1160, 390, 288], "Storyboard")),
    slot("Closing shot", [1760, 1160, 390, 288], "Storyboard"),
    { ...slot("Video, first cut", [2190, 1160, 390, 247], "Storyboard"), type: "video" },
  ], token);
  const link = (from: string, to: string, rest: object = {}) => ({ type: "connection.create", fromNodeId: ids[from], toNodeId: ids[to], ...rest });
  await apply(canvas, [
    ...["Square", "Warm grade", "Story", "Menu card"].map((title) => link("Espresso on dark wood", title)),
    ...["Clay", "First coffee"].map((title) => link("Client brief", title, { purpose: "flow" })),
    link("First coffee", "Video, first cut", { purpose: "first-frame" }),
  ], token);
  const photo = assets["Espresso on dark wood"]?.handle;
  const act = (action: string, target: string, params: object, rest: object = {}) => finish(canvas, `/actions/${action}/runs`, { inputs: [photo], targetNodeId: ids[target], params, ...rest }, token);
  const square = await act("change-aspect-ratio", "Square", { ratio: "1:1" }, hook("/hook"));
  await act("change-aspect-ratio", "Story", { ratio: "3:5" }, hook("/missing"));
  await act("color-grade", "Warm grade", { preset: "warm", contrast: 10 }, hook("/hook"));
  await act("add-text-to-image", "Menu card", { text: "Autumn at Lumen" });
  await finish(canvas, "/images/generate", { model: sketch, prompt: "Hands shape a cup of dark clay; warm side light, storyboard frame", size: "1536x1024", targetNodeIds: frames.map((title) => ids[title]) }, token);
  const { id: video } = await send<{ id: string }>("POST", "/videos/generate", { model: "animatic", prompt: "Steam rises from the first coffee", idempotencyKey: randomUUID(), durationSeconds: 1, resolution: "480p", canvasId: canvas.handle, firstFrame: `node:${ids["First coffee"]}` }, token);
  await ended(`/jobs/${video}`, "succeeded", token);
  await apply(canvas, [{ type: "node.update", nodeId: ids["Video, first cut"], patch: { metadata: { custom: { console: { video: { job: video, by: ana.uid } } } } } }], token);
  await admin("share", "--canvas", canvas.handle, "--with", mateo.email, "--role", "editor");
  await admin("share", "--canvas", canvas.handle, "--with", ines.email, "--role", "viewer");
  await admin("share", "--canvas", lookbook.canvas.handle, "--with", ines.email, "--role", "editor");

  // Elements

  const sources = (...names: string[]) => names.map((name) => assets[name]?.id);
  const collection = async (name: string) => (await send<{ collection: { id: string } }>("POST", "/element-collections", { name }, token)).collection.id;
  const [lumen, house] = [await collection("Café Lumen"), await collection("House style")];
  const element = async (name: string, type: string, sourceAssetIds: (string | undefined)[], guidelines: string, collectionIds: string[]) =>
    (await send<{ element: { id: string } }>("POST", "/elements", { name, type, sourceAssetIds, guidelines, collectionIds }, token)).element.id;
  await element("Mara, barista", "character", [], "Thirty, short dark hair, rust linen apron over a black shirt. Calm hands, never looks into the camera.", [lumen]);
  await element("Bowls, oat and slate", "product/object", sources("Bowls, oat and slate"), "Two sizes that stack. Slate outside only.", [lumen, house]);
  await element("Rust table", "environment", sources("Table for two"), "Dark wood, wall between brick and sand. At most five things on the table.", [house]);
  await element("Quiet product shot", "style", sources("Vase with an olive branch", "Carafe and cup"), "One subject, plain wall, no text.", [house]);
  await element("Kiln glazes", "material/texture", sources("Glaze tests, kiln 14"), "Matte, slightly broken at the edges.", [house]);
  await element("Afternoon window", "lighting", sources("Two cups at the window", "Table for two"), "Low sun from the left through a divided window. Warm, with long soft shadows.", [house]);
  const cup = await element("Lumen cup", "product/object", sources("Two cups at the window"), "220 ml, straight wall, round handle.", [lumen]);
  const content = { name: "Lumen cup", type: "product/object", sourceAssetIds: sources("Two cups at the window", "Carafe and cup", "Espresso on dark wood"), guidelines: "220 ml, straight wall, round handle. Dark clay; the brick glaze ends in a wave above the foot. Never shiny." };
  await send("PATCH", `/elements/${cup}`, { operation: "update", element: content }, token);

  const hang = (of: { canvas: Canvas; ids: Record<string, string> }, title: string) => start(of.canvas, "/images/generate", { model: simulated, prompt: `${title} [[sim:hang]]`, targetNodeIds: [of.ids[title]] }, token);
  return {
    ana,
    mateo,
    canvas,
    url,
    ids,
    sharedUrl: menu.url,
    element: cup,
    recipe: workflow.id,
    runs: { succeeded: square, failed, recipe: story },
    asset: assets["Vase with an olive branch"]?.handle ?? "",
    begin: async () => void (await hang({ canvas, ids }, "Closing shot")),
  };
}
