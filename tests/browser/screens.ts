/**
 * Takes screenshots of every screen of the console, in light and dark, into docs/images/console, and writes the page that shows all of
 * them: tests/browser/run --screens [NAME…]. With --review, they go to the page of review.ts instead.
 *
 * A screen is one line of SCREENS: its name, what the screenshot shows, and how a person gets there.
 */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

import type { Page } from "playwright-core";

import { node } from "./board.ts";
import { launch } from "./chromium.ts";
import { apply, BASE_URL, signInLink } from "./service.ts";
import { openReview } from "./review.ts";
import { field, isLive } from "./steps.ts";
import { openStudio } from "./studio.ts";
import { hasNoWords } from "./words.ts";

const ROOT = join(import.meta.dirname, "../..");
const IMAGES = join(ROOT, "docs/images/console");
const GALLERY = join(ROOT, "docs/guides/console-screens.md");
const GUIDE = "docs/guides/console.md";
const SIZE = { width: 1280, height: 800 };
const SCHEMES = ["light", "dark"] as const;
const MOST_BYTES = 110_000;

const browser = await launch();
const studio = await openStudio(browser);

// How a person gets there

const panel = (page: Page, name: string) => page.getByRole("complementary", { name, exact: true });
const row = (page: Page, text: string | RegExp) => page.getByRole("main").getByRole("listitem").filter({ hasText: text });
const at = (path: string, heading: string) => async (page: Page) => {
  await page.goto(path);
  await page.getByRole("heading", { name: heading }).first().waitFor();
};
const onBoard = async (page: Page) => {
  await page.goto(studio.url);
  await isLive(page);
  // The view of an earlier visit is kept, and need not show any node.
  await page.locator("[data-stage]").waitFor();
  for (let look = 0; look < 40 && !(await node(page, "Square").isVisible()); look += 1) {
    await page.keyboard.press("0");
    await page.waitForTimeout(250);
  }
  await node(page, "Square").waitFor();
  await page.keyboard.press("0");
};
/** Opens the board with these nodes selected and this panel beside it. */
const beside = (name: string, ...titles: string[]) => async (page: Page) => {
  await onBoard(page);
  for (const [index, title] of titles.entries()) await node(page, title).click({ modifiers: index > 0 ? ["Shift"] : [], position: { x: 20, y: 20 } });
  await page.locator(`[data-panel="${name}"]`).click();
  await page.keyboard.press("0");
};
/** Goes near the selected nodes. */
const near = async (page: Page, steps = 2) => {
  for (const key of ["2", ...Array<string>(steps).fill("-")]) await page.keyboard.press(key);
};
const run = (handle: string) => `/runs?run=${encodeURIComponent(handle)}`;

const SCREENS: [name: string, shows: string, go: (page: Page) => Promise<unknown>][] = [
  ["canvases", "The canvases of an account, and those that others share with it", at("/", "Canvases")],
  ["places", "The palette finds screens and canvases", async (page) => (await at("/", "Canvases")(page), await page.keyboard.press("Control+k"), page.getByRole("option", { name: /^Café Lumen/ }).waitFor())],
  ["share", "Who has access to a canvas", async (page) => (await at("/", "Canvases")(page), page.getByRole("button", { name: /^Share Café Lumen/ }).click())],
  ["delete-canvas", "Deleting a canvas asks for a word", async (page) => (await at("/", "Canvases")(page), page.getByRole("button", { name: /^Delete Kiln diary/ }).click())],
  ["board", "The board: a brief, a moodboard, formats of a photograph and a storyboard", onBoard],
  ["inspect", "What is known of the result of an Action", async (page) => (await beside("inspect", "Square")(page), near(page))],
  ["action", "The form of an Action, with about what it will make", async (page) => {
    await beside("inspect", "Espresso on dark wood")(page);
    await near(page);
    const inspect = panel(page, "Details");
    await inspect.getByLabel("Make a new image").selectOption({ label: "Change aspect ratio" });
    await inspect.locator("form").getByLabel("Ratio", { exact: true }).fill("4:5");
    await inspect.locator("figcaption", { hasText: "About" }).scrollIntoViewIfNeeded();
  }],
  ["look", "A picture large, with what is known of it", async (page) => {
    await onBoard(page);
    await node(page, "Square").click({ position: { x: 20, y: 20 } });
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("img", { name: "Square" }).waitFor();
    await page.keyboard.press("i");
  }],
  ["compare", "What an Action made, over what it was made from", async (page) => {
    await onBoard(page);
    await node(page, "Warm grade").click({ position: { x: 20, y: 20 } });
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("img", { name: "Warm grade" }).waitFor();
    await page.keyboard.press("q");
    await page.getByRole("dialog").getByRole("slider").waitFor();
  }],
  ["make", "Images from a prompt, with references and an Element", async (page) => {
    await beside("make", "Client brief", "Two cups at the window")(page);
    const make = panel(page, "Make");
    await make.getByLabel("Model", { exact: true }).selectOption((await make.getByLabel("Model", { exact: true }).locator("option", { hasText: "Sketch" }).first().getAttribute("value")) ?? "");
    await make.getByRole("button", { name: "Add an image…" }).click();
    await page.getByRole("dialog").getByText("Elements", { exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: /^Lumen cup/ }).click();
    await make.getByLabel("2", { exact: true }).check();
    await make.getByRole("button", { name: /^Make( \d)? · / }).scrollIntoViewIfNeeded();
  }],
  ["make-video", "A video from its first frame", async (page) => {
    await beside("make", "First coffee")(page);
    await near(page);
    await panel(page, "Make").getByLabel("What to make").selectOption("video");
  }],
  ["recipes-of-a-canvas", "A Recipe with the selected text in its port", async (page) => {
    await beside("recipes", "Client brief")(page);
    await panel(page, "Recipes").getByRole("button", { name: /^Storyboard/ }).click();
  }],
  ["assets-of-a-canvas", "Assets to put on the board", beside("assets")],
  ["runs-of-a-canvas", "What was started on a canvas", beside("runs")],
  ["outline", "The outline: the same canvas as a tree", beside("outline", "Story")],
  ["findings", "The review of a canvas", beside("findings")],
  ["palette", "The palette finds commands and nodes", async (page) => (await onBoard(page), await page.keyboard.press("Control+k"), page.keyboard.type("cup"))],
  ["keys", "All keys of the board", async (page) => (await onBoard(page), page.keyboard.press("?"))],
  ["conflict", "A text that two people have changed", conflict],
  ["viewer", "The board for those who may only read", async (page) => (await page.goto(studio.sharedUrl), page.getByRole("application", { name: "Board" }).waitFor())],
  ["runs", "Everything that the account has started", at("/runs", "Queue")],
  ["run", "What is known of a run", async (page) => (await at(run(studio.runs.recipe), "Queue")(page), page.getByRole("list", { name: "Outputs" }).locator("img").first().waitFor())],
  ["failed-run", "Why a run failed", async (page) => (await at(run(studio.runs.failed), "Queue")(page), page.getByText("The provider refused the request.").waitFor())],
  ["recipes", "The Recipes of the catalog and the account's own", at("/recipes", "Recipes")],
  ["recipe", "A Recipe with the run that was started last", at(`/recipes?recipe=storyboard&run=${encodeURIComponent(studio.runs.recipe)}`, "Storyboard of a brief")],
  ["own-recipe", "A Recipe that a person made", at(`/recipes?recipe=${studio.recipe}`, "Card and caption")],
  ["elements", "The Elements of an account", at("/elements", "Elements")],
  ["element", "An Element and its versions", at(`/elements?element=${studio.element}`, "Lumen cup")],
  ["new-element", "A new Element", async (page) => (await at("/elements", "Elements")(page), page.getByRole("button", { name: "New Element" }).click())],
  ["assets", "The images that an account has stored", at("/assets", "Pictures")],
  ["asset", "One of them", async (page) => (await page.goto(`/assets?asset=${encodeURIComponent(studio.asset)}`), page.getByRole("dialog").getByText("900 × 1200 pixels").waitFor())],
  ["tokens", "Tokens of agents and programs", at("/settings/tokens", "Tokens")],
  ["new-token", "A new token and its scopes", async (page) => {
    await at("/settings/tokens/new", "New token")(page);
    await page.getByLabel("Label", { exact: true }).fill("Campaign agent");
    await page.getByRole("checkbox", { name: "image:generate", exact: true }).check();
  }],
  ["connections", "Keys of providers", at("/settings/connections", "Connections")],
  ["sessions", "Browsers that are signed in", at("/settings/sessions", "Sessions")],
  ["name", "The name that others see", at("/settings/name", "Name")],
  ["sharing", "The members of every canvas", at("/settings/sharing", "Sharing")],
  ["webhooks", "Deliveries of webhooks", async (page) => (await at("/settings/webhooks", "Webhooks")(page), row(page, "Failed").getByText("Details").click())],
  ["credit", "The balance and the ledger", at("/settings/credit", "Credit")],
  ["storage", "What the account stores, and the most that it may store", async (page) => (await at("/settings/storage", "Storage")(page), page.getByText(/ used/).waitFor())],
  ["history", "What was done with the account", async (page) => (await at("/settings/history", "History")(page), row(page, "Signed in with a link").first().waitFor())],
  ["account", "The menu of the account", async (page) => (await at("/", "Canvases")(page), page.getByRole("button", { name: /^Account of/ }).click())],
  ["missing", "A page that does not exist, or is not shared", at("/settings/unknown", "There is nothing here for you")],
];

/** Another person rewrites a text while this page cannot save. */
async function conflict(page: Page): Promise<void> {
  await onBoard(page);
  await page.route("**/operations", (route) => route.abort());
  await node(page, "Palette").dblclick();
  await page.keyboard.press("Control+End");
  await page.keyboard.type(" A touch of moss in the garnish.");
  await page.keyboard.press("Escape");
  await page.getByRole("status").getByText("1 change waits").waitFor();
  const content = "Brick, rust and oat carry the set. Slate for bowls and plates. No pure white.";
  await apply(studio.canvas, [{ type: "node.update", nodeId: studio.ids["Palette"], patch: { metadata: { content } } }], studio.mateo.token);
  await page.unroute("**/operations");
  await page.getByRole("region", { name: "Conflict" }).waitFor();
}

// The screenshots

const isReview = process.argv[2] === "--review";
const only = process.argv.slice(isReview ? 3 : 2);
const review = isReview ? await openReview(browser, studio.ana.token, only.length === 0) : undefined;
const take = async (page: Page, name: string) => {
  if (only.length > 0 && !only.includes(name)) return;
  await rest(page);
  await (review ? review.take(page, name) : save(page, name));
};
mkdirSync(IMAGES, { recursive: true });
if (only.length === 0 && !isReview) for (const file of readdirSync(IMAGES)) rmSync(join(IMAGES, file));

const visit = async (userAgent?: string) => (await browser.newContext({ baseURL: BASE_URL, reducedMotion: "reduce", viewport: SIZE, ...(userAgent && { userAgent }) })).newPage();
const signIn = async (page: Page, account: string) => {
  await page.goto(await signInLink(account));
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { level: 1, name: "Canvases" }).waitFor();
};

const page = await visit();
await page.goto("/signin");
await field(page).waitFor();
await take(page, "sign-in");
await page.goto(await signInLink(studio.ana.uid));
await page.getByRole("button", { name: "Continue" }).waitFor();
await take(page, "link");
await signIn(page, studio.ana.uid);

// Others are here, too.
for (const agent of ["Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:143.0) Gecko/20100101 Firefox/143.0", "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1"]) {
  const other = await visit(agent);
  await signIn(other, studio.ana.uid);
  await other.context().close();
}
const mateo = await visit();
await signIn(mateo, studio.mateo.uid);
await mateo.goto(studio.url);
await isLive(mateo);
await studio.begin();

const faults: string[] = [];
page.on("response", (response) => {
  const { pathname } = new URL(response.url());
  // An image that is not ready yet is asked for again, and another revision is part of a conflict.
  if (response.status() >= 400 && response.status() !== 503 && response.status() !== 409) faults.push(`${response.status()} ${pathname}`);
});
for (const [name, , go] of SCREENS) {
  if (only.length > 0 && !only.includes(name)) continue;
  try {
    await go(page);
  } catch (error) {
    await page.screenshot({ path: join(ROOT, ".local/browser/failed-screen.png") });
    throw new Error(`${name}: the screen is not there; see .local/browser/failed-screen.png`, { cause: error });
  }
  await take(page, name);
  assert.deepEqual(faults, [], name);
  // Settings are also for those who write programs.
  if (!page.url().includes("/settings")) await hasNoWords(page, name);
  for (const title of ["There is nothing here for you", "Settings need a sign-in link", "This could not be shown"]) {
    assert(name === "missing" || !(await page.getByRole("heading", { name: title }).isVisible()), `${name}: ${title}`);
  }
}
const isSound = (await review?.finish()) ?? true;
await browser.close();
if (isReview) process.exit(isSound ? 0 : 1);

const figure = (name: string, shows: string) => `## ${name[0]?.toUpperCase()}${name.slice(1).replaceAll("-", " ")}

${shows}.

<picture>
  <source media="(prefers-color-scheme: dark)" srcset="../images/console/${name}-dark.jpg">
  <img alt="${shows}" src="../images/console/${name}-light.jpg">
</picture>
`;
const all: [string, string][] = [["sign-in", "Signing in by a link or a token"], ["link", "A link shows whom it signs in"], ...SCREENS.map(([name, shows]): [string, string] => [name, shows])];
writeFileSync(GALLERY, `# Screens of the console

Every screen of the [console](${basename(GUIDE)}), in the colors that your system asks for. \`tests/browser/run --screens\` takes the
screenshots and writes this page.

${all.map(([name, shows]) => figure(name, shows)).join("\n")}`);

/** Waits until images and drawings are there. */
async function rest(page: Page): Promise<void> {
  await page.waitForTimeout(1500);
  // Images below the window, and those of the other theme, are not loaded.
  await page.waitForFunction(() => [...document.images].every((image) => image.complete || !image.checkVisibility() || image.getBoundingClientRect().top > innerHeight));
  await page.waitForFunction(() => !document.querySelector("[data-state=waiting]"), undefined, { timeout: 8000 }).catch(() => {});
}

/** Saves what is seen, in light and in dark, as the sharpest JPEG that is small enough. */
async function save(page: Page, name: string): Promise<void> {
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    await page.waitForTimeout(400);
    for (let quality = 84; ; quality -= 6) {
      const screenshot = await page.screenshot({ type: "jpeg", quality });
      if (screenshot.length > MOST_BYTES && quality > 60) continue;
      writeFileSync(join(IMAGES, `${name}-${colorScheme}.jpg`), screenshot);
      break;
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
}
