/** The console in Chromium, against a real service. */
import assert from "node:assert/strict";

import type { Locator, Page } from "playwright-core";

import { ROOT } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, BASE_URL, makeCanvas, person, reader, runAction, send, signInLink, stranger, TOKEN } from "./service.ts";
import { field, heading, isLive, signIn } from "./steps.ts";

const path = (page: Page) => new URL(page.url()).pathname;

async function signOut(page: Page): Promise<void> {
  // A tab in the background draws rarely, and a click waits for a button that rests.
  await page.bringToFront();
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await field(page).waitFor();
}

scene("a link signs in once, after it has shown whom", async ({ page, open, expect, isAccessible }) => {
  expect(NOBODY);
  const link = await signInLink();
  await page.goto(link);
  await page.getByText(person.email).first().waitFor();
  assert.equal(page.url(), `${BASE_URL}/signin`, "the secret leaves the address");
  await isAccessible();
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Canvases");
  await isAccessible();

  const cookies = await page.context().cookies();
  assert.deepEqual(
    cookies.map(({ name, httpOnly, secure, sameSite }) => ({ name, httpOnly, secure, sameSite })),
    [{ name: "__Host-canvas", httpOnly: true, secure: true, sameSite: "Strict" }],
  );

  expect("401 POST /console/session");
  const other = await open();
  await other.goto(link);
  await heading(other, "This link no longer works");
});

scene("a link can be pasted", async ({ page, expect }) => {
  expect(NOBODY);
  await page.goto("/signin");
  await field(page).fill(await signInLink());
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Canvases");
});

scene("a token signs in, and leads back to the canvas that was asked for", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { url } = await makeCanvas("Asked for");
  await signIn(page, await reader(), url);
  await heading(page, "Asked for");
  assert.equal(page.url(), url);
  await page.getByRole("img", { name: "Drawing of Asked for, 2 things" }).waitFor();
  await isLive(page);
  await isAccessible();
  await page.getByRole("button", { name: "Account of" }).click();
  await page.getByText("Signed in with the token").waitFor();
  await isAccessible();
});

scene("a wrong token, a wrong link and something else are explained", async ({ page, expect, isAccessible }) => {
  expect(NOBODY, "401 POST /console/session");
  await page.goto("/signin");
  await field(page).fill("hello");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("neither a sign-in link nor a token").waitFor();
  await becomes(() => field(page).getAttribute("aria-invalid"), "true");
  await isAccessible();
  await field(page).fill(`${TOKEN.slice(0, -4)}AAAA`);
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText(/^Request/).waitFor();
  await isAccessible();
  await field(page).fill("01990000-0000-7000-8000-000000000001.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
  await page.keyboard.press("Enter");
  await heading(page, "This link no longer works");
  await page.getByRole("button", { name: "Sign in another way" }).click();
  await field(page).waitFor();
});

scene("the keyboard alone signs in, finds a canvas, zooms it and reads its outline", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas } = await makeCanvas("By keyboard");
  await page.goto("/");
  await field(page).waitFor();
  await page.keyboard.type(await reader());
  await page.keyboard.press("Enter");
  await heading(page, "Canvases");

  const tabTo = async (role: string, name: RegExp) => {
    for (let presses = 0; presses < 40; presses += 1) {
      await page.keyboard.press("Tab");
      const focused = page.locator(":focus");
      if ((await focused.count()) > 0 && (await focused.and(page.getByRole(role as "link", { name })).count()) > 0) return;
    }
    assert.fail(`the keyboard does not reach ${role} ${name}`);
  };
  await tabTo("searchbox", /Search/);
  await page.keyboard.type("By keyboard");
  await page.getByRole("link", { name: /By keyboard/ }).waitFor();
  await tabTo("link", /By keyboard/);
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/${canvas.id}`);
  await page.getByRole("img", { name: /Drawing of By keyboard/ }).waitFor();

  await tabTo("region", /^Canvas$/);
  const scale = page.getByRole("button", { name: /%$/ });
  const before = await scale.textContent();
  await page.keyboard.press("+");
  await becomes(async () => (await scale.textContent()) === before, false);
  await page.keyboard.press("0");
  await becomes(() => scale.textContent(), before);
  await tabTo("button", /^Outline$/);
  await page.keyboard.press("Enter");
  await page.getByText("A quiet harbor at dawn.").waitFor();
  await page.keyboard.press("Escape");
  await becomes(() => page.locator(":focus").textContent(), "Outline", "the focus returns");
});

scene("the result of an Action appears without a reload, in every tab over one stream", async ({ page, open, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, target, url } = await makeCanvas("Live");
  await signIn(page, await reader(), url);
  const other = await open();
  await other.goto(url);
  const tabs = [page, other];
  for (const tab of tabs) {
    await tab.getByRole("img").waitFor();
    await isLive(tab);
  }
  const drawings = await Promise.all(tabs.map((tab) => tab.getByRole("img").getAttribute("src")));
  await runAction(canvas, target);
  const { revision } = (await send<{ canvas: { revision: string } }>("GET", `/canvases/${canvas.id}`)).canvas;
  for (const [index, tab] of tabs.entries()) {
    await tab.locator(`[data-revision="${revision}"]`).waitFor();
    await tab.waitForFunction((before) => document.querySelector("main img")?.getAttribute("src") !== before, drawings[index]);
  }
  const browser = await page.context().browser()?.newBrowserCDPSession();
  const { targetInfos = [] } = (await browser?.send("Target.getTargets")) ?? {};
  assert.equal(targetInfos.filter(({ type }) => type === "shared_worker").length, 1, "both tabs share a worker");
  await isAccessible();
});

scene("without shared workers and after a lost connection, a canvas is followed all the same", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, target, url } = await makeCanvas("Interrupted");
  await page.addInitScript(() => Reflect.deleteProperty(globalThis, "SharedWorker"));
  await signIn(page, await reader(), url);
  await isLive(page);
  await page.context().setOffline(true);
  await page.getByRole("status").getByText("Offline").waitFor();
  await page.getByRole("img", { name: "Drawing of Interrupted" }).waitFor();
  await isAccessible();
  await runAction(canvas, target);
  await page.context().setOffline(false);
  await isLive(page);
  const { revision } = (await send<{ canvas: { revision: string } }>("GET", `/canvases/${canvas.id}`)).canvas;
  await page.locator(`[data-revision="${revision}"]`).waitFor();
});

scene("a canvas that is no longer shared is gone at once", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeCanvas("Shared for a while");
  const guest = await stranger();
  await admin("share", "--canvas", canvas.handle, "--with", guest.email, "--role", "viewer");
  await signIn(page, guest.token, "/?show=shared");
  await page.getByRole("link", { name: /Shared for a while.*Shared, viewer/ }).click();
  await isLive(page);
  assert.equal(page.url(), url);
  const handle = encodeURIComponent(canvas.handle);
  for (const read of ["", "/changes", "/review", "/render", "/outline"]) expect(`404 GET /console/api/canvas-agent/v1/canvases/${handle}${read}`);
  expect("404 GET /console/api/canvas-agent/v1/events");
  await admin("share", "--canvas", canvas.handle, "--with", guest.email, "--role", "none");
  await page.getByRole("heading", { name: "There is nothing here for you" }).waitFor();
  await isAccessible();
});

scene("a canvas of another account and an unknown page look the same", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeCanvas("Private");
  const guest = await stranger();
  const handle = encodeURIComponent(canvas.handle);
  for (const read of ["", "/review"]) expect(`404 GET /console/api/canvas-agent/v1/canvases/${handle}${read}`);
  await signIn(page, guest.token, url);
  const title = page.getByRole("heading", { name: "There is nothing here for you" });
  await title.waitFor();
  const text = await page.getByRole("main").textContent();
  await isAccessible();
  await page.goto("/settings/unknown");
  await title.waitFor();
  await becomes(() => page.getByRole("main").textContent(), text);
  expect("404 GET /nowhere");
  await page.goto("/nowhere");
  await title.waitFor();
  await becomes(() => page.getByRole("main").textContent(), text);
  await page.getByRole("link", { name: "All canvases" }).last().click();
  await page.getByRole("heading", { name: "No canvases yet" }).waitFor();
  await isAccessible();
});

scene("signing out ends the session in every tab", async ({ page, open, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeCanvas("Left");
  await signIn(page, await reader(), url);
  const other = await open();
  await other.goto(url);
  await isLive(other);
  const handle = encodeURIComponent(canvas.handle);
  expect("401 GET /console/api/canvas-agent/v1/events", "401 GET /console/api/canvas-agent/v1/canvases");
  for (const read of ["review", "render"]) expect(`401 GET /console/api/canvas-agent/v1/canvases/${handle}/${read}`);
  await signOut(page);
  assert.equal(path(page), "/signin");
  await field(other).waitFor();
  await page.goto("/");
  await field(page).waitFor();
});

scene("titles are text, and the list is searched and filtered", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const titles = ["<img src=x onerror=alert(1)>", "ملصقات الخريف", "Autumn drop"];
  const guest = await stranger();
  for (const title of titles) await send("POST", "/canvases", { title }, guest.token);
  await signIn(page, guest.token);
  for (const title of titles) await page.getByRole("heading", { level: 2, name: title, exact: true }).waitFor();
  await isAccessible();
  await page.getByLabel("Search by title").fill("AUTUMN");
  await page.getByRole("link", { name: /Autumn drop/ }).waitFor();
  await becomes(() => page.getByRole("main").getByRole("link").count(), 1);
  await page.reload();
  await page.getByRole("link", { name: /Autumn drop/ }).waitFor();
  await becomes(() => page.getByRole("main").getByRole("link").count(), 1, "the address keeps the search");
  await page.getByText("Shared", { exact: true }).click();
  await page.getByRole("heading", { name: "No canvas matches" }).waitFor();
  await page.getByRole("button", { name: "Show all canvases" }).click();
  await page.getByRole("link", { name: /Autumn drop/ }).waitFor();
  await becomes(() => page.getByRole("main").getByRole("link").count(), 3);
});

scene("the palette leads to screens, settings and canvases from every list, and the keys are listed", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  const { url } = await makeCanvas("Quiet harbor", token);
  await page.goto(await signInLink(uid));
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Canvases");
  const palette = page.getByRole("dialog", { name: "Find a screen or a canvas" });
  const option = (name: string) => palette.getByRole("option", { name, exact: true });
  // A dialog that was closed is hidden at once, and removed a moment later.
  const gone = () => becomes(() => page.locator("dialog").count(), 0);
  await page.keyboard.press("Control+k");
  await option("Quiet harbor canvas").waitFor();
  await isAccessible();
  await page.keyboard.type("queue");
  await becomes(() => palette.getByRole("option").count(), 1);
  await page.keyboard.press("Enter");
  await heading(page, "Queue");
  await gone();

  await page.goto("/recipes");
  await heading(page, "Recipes");
  await page.getByLabel("Search Recipes").fill("what?");
  await becomes(() => page.getByRole("dialog").count(), 0, "a question mark can be typed");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("webh");
  await option("Webhooks settings").click();
  await page.getByRole("heading", { level: 2, name: "Webhooks" }).waitFor();

  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await keys.getByText("Find a screen or a canvas").waitFor();
  await isAccessible();
  await page.keyboard.press("Control+k");
  await becomes(() => palette.count(), 0, "one dialog at a time");
  await page.keyboard.press("Escape");
  await gone();

  const find = page.getByRole("button", { name: "Find a screen or a canvas" });
  await find.press("?");
  await keys.getByRole("button", { name: "Close" }).click();
  await gone();
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), "Find a screen or a canvas", "the focus returns from a button");
  await find.press("Enter");
  await page.keyboard.type("nothing of this name");
  await palette.getByText("Nothing has this name.").waitFor();
  await page.keyboard.press("Escape");
  await gone();
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), "Find a screen or a canvas", "the focus returns");
  await page.keyboard.press("Enter");
  await page.keyboard.type("harbor");
  await option("Quiet harbor canvas").waitFor();
  // Enter confirms a word of an input method.
  await palette.getByRole("combobox").dispatchEvent("keydown", { key: "Enter", isComposing: true });
  await page.waitForTimeout(200);
  assert.equal(await palette.count(), 1);
  await page.keyboard.press("Enter");
  await page.waitForURL(url);
});

scene("a good link signs in after a wrong token, and after a connection that breaks off", async ({ page, expect }) => {
  expect(NOBODY, "401 POST /console/session");
  await page.goto("/signin");
  await field(page).fill(`${TOKEN.slice(0, -4)}AAAA`);
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  await field(page).fill(await signInLink());
  await page.keyboard.press("Enter");
  const proceed = page.getByRole("button", { name: "Continue" });
  await proceed.waitFor();
  await page.route("**/console/session", (route) => route.abort(), { times: 1 });
  await proceed.click();
  await page.getByRole("button", { name: "Try again" }).click();
  await heading(page, "Canvases");
});

scene("a list goes on after a refresh that failed", async ({ page, expect }) => {
  expect(NOBODY, `403 GET ${ROOT}/canvases`);
  const { token } = await stranger();
  await page.clock.install();
  for (let made = 0; made < 110; made += 1) await send("POST", "/canvases", { title: `Canvas ${made}` }, token);
  await signIn(page, token);
  const cards = page.getByRole("main").getByRole("link");
  await cards.last().scrollIntoViewIfNeeded();
  await becomes(async () => (await cards.count()) > 25, true);
  await page.evaluate(() => scrollTo(0, 0));
  assert((await cards.count()) < 110);
  let refused = 0;
  await page.route(/\/canvases\?/, (route) => {
    refused += 1;
    return route.fulfill({ status: 403, json: { error: { code: "forbidden", message: "no" } } });
  });
  // The list is stale ten seconds after its last page has arrived, and read again when the window is looked at.
  const look = async () => {
    await page.clock.fastForward(10_500);
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange", { bubbles: true })));
    return refused > 0;
  };
  await becomes(look, true);
  await page.waitForTimeout(500);
  await page.unroute(/\/canvases\?/);
  await becomes(async () => (await cards.last().scrollIntoViewIfNeeded(), cards.count()), 110);
});

/** The scripts that are fetched when something is first shown. */
const PARTS = /\/static\/(?!index|early)[^/]*\.js$/;

scene("a screen or dialog that cannot be loaded says so within the page, and another attempt shows it", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  await makeCanvas("Autumn", token);
  await page.route(PARTS, (route) => route.abort());
  await page.goto(await signInLink(uid));
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Canvases");
  const again = page.getByRole("button", { name: "Try again" });
  const failure = (within: Page | Locator) => within.getByRole("alert").getByText("A part of the console cannot be loaded.").waitFor();
  const dialog = page.getByRole("dialog", { name: "Delete", exact: true });
  await page.getByRole("button", { name: "Delete Autumn" }).press("Enter");
  await failure(dialog);
  await isAccessible();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), "Delete Autumn", "the page is as it was");

  await page.getByRole("link", { name: "Queue", exact: true }).click();
  await failure(page);
  await again.press("Enter");
  await failure(page);
  await becomes(() => page.evaluate(() => document.activeElement?.id), "content", "the page has the keyboard");
  await isAccessible();
  await page.goBack();
  await heading(page, "Canvases");
  await page.goForward();
  await failure(page);
  await page.unroute(PARTS);
  await again.click();
  await heading(page, "Queue");
  await page.goBack();
  await page.getByRole("button", { name: "Delete Autumn" }).press("Enter");
  await page.getByRole("dialog", { name: "Delete “Autumn”?" }).waitFor();
});

scene("screens that were not opened yet need no network", async ({ page, expect }) => {
  expect(NOBODY);
  const { token } = await stranger();
  // It is the last one that is fetched, some seconds after the sign-in.
  const fetched = page.waitForResponse((response) => /\/static\/runs-.*\.js$/.test(response.url()));
  await signIn(page, token);
  await heading(page, "Canvases");
  await fetched;
  await page.context().setOffline(true);
  for (const name of ["Recipes", "Elements", "Pictures", "Queue"]) {
    await page.getByRole("link", { name, exact: true }).click();
    await heading(page, name);
  }
  await page.context().setOffline(false);
});
