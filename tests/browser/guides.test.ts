/** The guides as pages, and the way to them from the console: help, about, errors. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { env } from "node:process";

import type { Page } from "playwright-core";

import { openBoard, text } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { makeBoard, stranger } from "./service.ts";
import { signIn } from "./steps.ts";

const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? "/tmp", `guides-${name}.png`) });
const search = (page: Page) => page.getByRole("searchbox", { name: "Search the guides" });

scene("a guide is read in every size and color, and leads on", async ({ page, isAccessible }) => {
  await page.goto("/docs/guides/");
  assert.equal(new URL(page.url()).pathname, "/docs/guides");
  await page.getByRole("heading", { level: 1, name: "Documentation" }).waitFor();
  await page.goto("/docs/guides/console");
  const pages = page.getByRole("navigation", { name: "Guides" });
  const contents = page.getByRole("navigation", { name: "On this page" });
  await becomes(() => pages.locator("[aria-current=page]").innerText(), "Console");
  for (const [name, width, height] of [["wide", 1440, 900], ["tablet", 1180, 760], ["phone", 390, 844]] as const) {
    await page.setViewportSize({ width, height });
    for (const scheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await shot(page, `${name}-${scheme}`);
    }
    await isAccessible();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} is not wider than the window`);
  }
  // On a phone, both lists are closed until they are wanted.
  await becomes(() => pages.getByRole("link", { name: "Webhooks" }).first().isVisible(), false);
  await pages.getByText("All guides").click();
  await shot(page, "phone-pages");
  await isAccessible();
  await pages.getByRole("link", { name: "Webhooks" }).first().click();
  await page.getByRole("heading", { level: 1, name: "Webhooks" }).waitFor();
  await contents.getByText("On this page").click();
  await contents.getByRole("link").first().click();
  assert.ok(new URL(page.url()).hash.length > 1);
  await page.setViewportSize({ width: 1440, height: 900 });
  await becomes(() => contents.getByRole("link").first().isVisible(), true, "both are open where there is room");
  await shot(page, "webhooks");
  await page.goto("/docs/guides/reference/limits");
  await shot(page, "tables");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto("/docs/guides/tutorial");
  await shot(page, "code");
  await page.locator("[rel=next]").click();
  await page.getByRole("heading", { level: 1, name: "Concepts" }).waitFor();
});

scene("the guides are searched in the browser", async ({ page, isAccessible }) => {
  const asked: string[] = [];
  page.on("request", (request) => void asked.push(request.url()));
  await page.goto("/docs/guides");
  await page.keyboard.press("/");
  await page.keyboard.type("rotate keys");
  const found = page.getByRole("search").getByRole("link");
  await found.first().waitFor();
  await becomes(() => page.getByRole("status").innerText().then((text) => /\d/.test(text)), true);
  await shot(page, "search");
  await isAccessible();
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 390, height: 844 });
  await shot(page, "search-phone");
  await isAccessible();
  await page.setViewportSize({ width: 1280, height: 800 });
  assert.deepEqual(asked.filter((url) => url.includes("rotate")), [], "what is searched for is not sent");
  assert.equal(asked.filter((url) => url.endsWith("/docs/guides.json")).length, 1);
  await page.keyboard.press("ArrowDown");
  await becomes(() => page.evaluate(() => document.activeElement?.closest("search li") !== null), true);
  await page.keyboard.press("ArrowUp");
  assert.ok(await search(page).evaluate((input) => input === document.activeElement));
  await search(page).fill("zzzz qqqq");
  await becomes(() => page.getByRole("status").innerText(), "Nothing found.");
  await page.keyboard.press("Escape");
  await becomes(() => page.getByRole("status").isVisible(), false);
  await search(page).fill("payment_required");
  await becomes(() => found.first().innerText().then((text) => text.startsWith("payment_required")), true, "a heading of this name is the first");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/docs/guides/reference/errors#payment_required");
});

scene("code is copied, and the colors are those of the console", async ({ page }) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto("/docs/guides/tutorial");
  const frame = page.locator(".code").first();
  await frame.hover();
  await frame.getByRole("button", { name: "Copy" }).click();
  await frame.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await frame.locator("code").textContent());
  await page.emulateMedia({ colorScheme: "light" });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.evaluate(() => localStorage.setItem("canvas.theme", "dark"));
  await page.reload();
  assert.notEqual(await ground(), light);
});

scene("help leads to the guide, to what is new and to what this is", async ({ page, open, expect, isAccessible }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Help", [text("One", 0, 0)]);
  await openBoard(page, url);
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  const help = keys.getByRole("navigation", { name: "Help" });
  await shot(page, "help");
  for (const [name, heading] of [["Guide", "Console"], ["What is new", "Changelog"]] as const) {
    const address = await help.getByRole("link", { name }).getAttribute("href");
    const guide = await open();
    await guide.goto(address ?? "");
    await guide.getByRole("heading", { level: 1, name: heading }).waitFor();
    await guide.close();
  }
  await help.getByRole("button", { name: "About" }).click();
  const about = page.getByRole("dialog", { name: "About" });
  await about.getByText(/^Version \d+\.\d+\.\d+$/).waitFor();
  await shot(page, "about");
  await isAccessible();
  const licenses = await page.request.get((await about.getByRole("link", { name: "Licenses of the parts" }).getAttribute("href")) ?? "");
  assert.match(await licenses.text(), /^## react - /m);
  await page.emulateMedia({ colorScheme: "dark" });
  await page.setViewportSize({ width: 390, height: 844 });
  await shot(page, "about-phone");
  await page.keyboard.press("Escape");
  await keys.waitFor();
  await shot(page, "help-phone");
  await isAccessible();
  await page.keyboard.press("Escape");
  await becomes(() => keys.count(), 0, "Escape closes one after the other");
});

scene("a failure that is shown leads to what it means", async ({ page, expect }) => {
  expect(NOBODY, "500 GET /console/api/canvas-agent/v1/runs");
  const ana = await stranger();
  await signIn(page, ana.token);
  await page.route("**/console/api/canvas-agent/v1/runs?*", (route) => route.fulfill({ status: 500, json: { error: { code: "internal_error", message: "failed" } } }));
  await page.goto("/runs");
  await page.getByText("Details for support").click();
  await page.getByRole("link", { name: "About this error" }).waitFor();
  await shot(page, "error");
  await page.goto((await page.getByRole("link", { name: "About this error" }).getAttribute("href")) ?? "");
  await becomes(() => page.evaluate(() => document.querySelector(":target")?.textContent?.startsWith("internal_error")), true);
});

scene("the contract begins with what all calls share", async ({ page }) => {
  await page.goto("/docs");
  await page.getByRole("heading", { name: "Idempotency" }).first().waitFor();
  await shot(page, "contract");
  // The viewer is another project's.
  await page.goto("about:blank");
});
