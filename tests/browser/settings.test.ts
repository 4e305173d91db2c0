/** What a person sets up: tokens, connections, sessions, members, webhooks and credit. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import type { Locator, Page } from "playwright-core";

import { ALL_SCOPES, SCOPES } from "../../gateway/console/src/screens/settings/scopes.ts";
import { ROOT } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, BASE_URL, makeCanvas, runAction, send, SHOP_URL, signInLink, stranger, succeeded } from "./service.ts";
import { field, heading, isLive, signIn } from "./steps.ts";

/** Signs in by a link, and opens a page. */
async function signInByLink(page: Page, account: string, to = "/"): Promise<void> {
  await page.goto(await signInLink(account));
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Canvases");
  if (to !== "/") await page.goto(to);
}

/** A request of the page, as the console sends it. */
const ask = (page: Page, method: string, path: string, body?: object) =>
  page.evaluate(
    async ([method, path, body]) => {
      const headers = { "X-Canvas-Console": "1", ...(body !== undefined && { "Content-Type": "application/json" }) };
      const response = await fetch(path, { method, headers, ...(body !== undefined && { body }) });
      return { status: response.status };
    },
    [method, path, body && JSON.stringify(body)] as const,
  );

/** The status that the API gives a token. */
const statusOf = async (token: string) => (await fetch(`${BASE_URL}/api/canvas-agent/v1/canvases`, { headers: { Authorization: `Bearer ${token}` } })).status;

const row = (page: Page, text: string | RegExp): Locator => page.getByRole("main").getByRole("listitem").filter({ hasText: text });
const dialog = (page: Page): Locator => page.getByRole("dialog");

scene("a token is shown once, works, and is refused once it is revoked", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  await signInByLink(page, uid, "/settings/tokens");
  await page.getByText("1 of 20 active").waitFor();
  await isAccessible();
  await page.getByRole("link", { name: "New token" }).click();

  // What a scope needs is ticked with it, and says why.
  await page.getByRole("button", { name: "Read only" }).click();
  const box = (scope: string) => page.getByRole("checkbox", { name: scope, exact: true });
  await box("image:generate").check();
  await becomes(() => box("canvas:write").isChecked(), true);
  await becomes(() => box("canvas:write").isDisabled(), true);
  await row(page, "canvas:write").getByText("Needed by image:generate.").waitFor();
  await box("image:generate").uncheck();
  await becomes(() => box("canvas:write").isChecked(), false);
  await isAccessible();

  expect("400 POST /console/tokens");
  const [label, days] = [page.getByLabel("Label", { exact: true }), page.getByLabel("Expires after, in days")];
  for (const wrong of ["91", "0", "soon", "1.5"]) {
    await days.fill(wrong);
    const answered = page.waitForResponse((response) => response.request().method() === "POST");
    await page.getByRole("button", { name: "Create token" }).click();
    assert.equal((await answered).status(), 400, `${wrong} days`);
  }
  await page.getByText(/^The number of days must be /).waitFor();
  await page.getByText(/^The label must /).waitFor();
  assert.deepEqual([await label.getAttribute("aria-invalid"), await days.getAttribute("aria-invalid")], ["true", "true"]);
  await label.fill("<b>Campaign</b>");
  await days.fill("7");
  await page.getByRole("button", { name: "Create token" }).click();

  await page.getByRole("heading", { name: "Token <b>Campaign</b>" }).waitFor();
  const secret = (await page.getByRole("region", { name: "Text of token", exact: true }).textContent()) ?? "";
  assert.match(secret, /^cba_[0-9a-f-]{36}\.[\w-]{43}$/);
  const mcp = JSON.parse((await page.getByRole("region", { name: "Text of server by url" }).textContent()) ?? "") as unknown;
  assert.deepEqual(mcp, { mcpServers: { canvas: { type: "http", url: `${BASE_URL}/mcp`, headers: { Authorization: `Bearer ${secret}` } } } });
  await page.getByText(`export CANVAS_BASE_URL=${BASE_URL}`).waitFor();
  await page.getByText("canvas login --token-stdin").waitFor();
  await isAccessible();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy token", exact: true }).click();
  await page.getByRole("status").getByText("Token copied").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
  assert.equal(await statusOf(secret), 200);

  await page.getByRole("link", { name: "Done" }).click();
  await page.getByText("2 of 20 active").waitFor();
  await row(page, "<b>Campaign</b>").getByText("expires in 7 days").waitFor();
  const secretPart = secret.split(".")[1] ?? "";
  assert(!(await page.content()).includes(secretPart), "the list does not have the secret");
  await page.goBack();
  await page.getByRole("button", { name: "Create token" }).waitFor();
  assert(!(await page.content()).includes(secretPart), "going back does not bring the secret back");

  await page.goto("/settings/tokens");
  await page.getByRole("button", { name: "Revoke <b>Campaign</b>" }).click();
  await isAccessible();
  await becomes(() => page.locator(":focus").textContent(), "Keep");
  await dialog(page).getByRole("button", { name: "Revoke" }).click();
  await page.getByText("1 of 20 active").waitFor();
  assert.equal(await statusOf(secret), 401);
  assert.equal(await statusOf(token), 200);
  await page.getByText("1 token expired or revoked").click();
  await row(page, "revoked just now").waitFor();
  await isAccessible();
});

scene("the scopes that the form adds are those that the service asks for, and the 21st token is refused", async ({ page, expect }) => {
  expect(NOBODY, "400 POST /console/tokens", "409 POST /console/tokens");
  const { uid } = await stranger();
  await signInByLink(page, uid);
  for (const scope of ALL_SCOPES) {
    const { needs } = SCOPES[scope];
    const create = async (others: readonly string[]) => (await ask(page, "POST", "/console/tokens", { label: scope, scopes: [...others, scope] })).status;
    assert.equal(await create(needs), 201, `${scope} needs no more`);
    for (const needed of needs) assert.equal(await create(needs.filter((one) => one !== needed)), 400, `${scope} needs ${needed}`);
  }
  for (let made = ALL_SCOPES.length + 1; made < 20; made += 1) await ask(page, "POST", "/console/tokens", { label: `Token ${made}`, scopes: ["job:manage"] });
  await page.goto("/settings/tokens");
  await page.getByText("20 of 20 active").waitFor();
  await page.getByRole("link", { name: "New token" }).click();
  await page.getByLabel("Label", { exact: true }).fill("One too many");
  await page.getByRole("button", { name: "Create token" }).click();
  await page.getByRole("alert").waitFor();
  await becomes(() => page.getByLabel("Label", { exact: true }).inputValue(), "One too many");
});

scene("the keyboard alone makes a token and revokes it", async ({ page, expect }) => {
  expect(NOBODY);
  const { uid } = await stranger();
  await signInByLink(page, uid, "/settings");
  await page.getByText("1 of 20 active").waitFor();
  assert.equal(new URL(page.url()).pathname, "/settings/tokens");
  const tabTo = async (role: "link" | "button" | "checkbox", name: string) => {
    const target = page.getByRole(role, { name, exact: true });
    for (let presses = 0; presses < 60; presses += 1) {
      await page.keyboard.press("Tab");
      if ((await page.locator(":focus").and(target).count()) > 0) return;
    }
    assert.fail(`the keyboard does not reach ${name}`);
  };
  await tabTo("link", "New token");
  await page.keyboard.press("Enter");
  await page.getByLabel("Label", { exact: true }).and(page.locator(":focus")).waitFor();
  await page.keyboard.type("By keyboard");
  await tabTo("button", "Read only");
  await page.keyboard.press("Space");
  await tabTo("checkbox", "job:manage");
  await page.keyboard.press("Space");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Token By keyboard" }).and(page.locator(":focus")).waitFor();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await tabTo("button", "Copy token");
  await page.keyboard.press("Enter");
  await tabTo("link", "Done");
  await page.keyboard.press("Enter");
  await row(page, "By keyboard").getByText("job:manage").waitFor();
  await tabTo("button", "Revoke By keyboard");
  await page.keyboard.press("Enter");
  await dialog(page).waitFor();
  await page.keyboard.press("Escape");
  // A closed dialog has no role before it is gone.
  await page.locator("dialog").waitFor({ state: "detached" });
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), "Revoke By keyboard", "the focus returns");
  await page.keyboard.press("Enter");
  await becomes(() => page.locator(":focus").textContent(), "Keep");
  await page.keyboard.press("Enter");
  await page.locator("dialog").waitFor({ state: "detached" });
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), "Revoke By keyboard", "the focus returns from a button of the dialog");
  await page.keyboard.press("Enter");
  await tabTo("button", "Revoke");
  await page.keyboard.press("Enter");
  await page.getByText("1 of 20 active").waitFor();
  await becomes(() => page.evaluate(() => document.activeElement?.id), "content", "what opened the dialog is gone");
});

scene("a connection is added, its key replaced and deleted, and no key is shown", async ({ page, expect, isAccessible }) => {
  expect(NOBODY, "400 POST /console/connections");
  const { uid } = await stranger();
  await signInByLink(page, uid, "/settings/connections");
  await page.getByRole("heading", { name: "No connections yet" }).waitFor();
  await isAccessible();
  await page.getByRole("button", { name: "Add a connection" }).click();
  const form = dialog(page);
  await form.getByRole("button", { name: "Add connection" }).click();
  await form.getByText(/^The name must /).waitFor();
  await form.getByText(/^The key must /).waitFor();
  await isAccessible();
  await form.getByLabel("Provider").selectOption({ label: "OpenAI" });
  await form.getByLabel("Name").fill("Studio");
  await form.getByLabel("API key").fill("sk-0123456789-wxyz");
  await form.getByRole("button", { name: "Add connection" }).click();
  const saved = row(page, "Studio");
  await saved.getByText("wxyz").waitFor();
  await saved.getByText("GPT", { exact: false }).first().waitFor();
  assert(!(await page.content()).includes("0123456789"), "the key is not shown");
  await isAccessible();

  await page.getByRole("button", { name: "Replace key of Studio" }).click();
  await form.getByLabel("API key").fill("sk-9876543210-abcd");
  await page.keyboard.press("Enter");
  await saved.getByText("abcd").waitFor();
  await page.getByRole("button", { name: "Delete Studio" }).click();
  await dialog(page).getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "No connections yet" }).waitFor();
});

scene("a session that is ended elsewhere leads to the sign-in page and back", async ({ page, guest, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid } = await stranger();
  await signInByLink(page, uid, "/settings/sessions");
  const other = await guest();
  await signInByLink(other, uid, "/settings/sessions");
  await other.getByText("This session").waitFor();
  await page.reload();
  const rows = page.getByRole("list", { name: "Sessions" }).getByRole("listitem");
  await rows.nth(1).waitFor();
  assert.match((await rows.first().textContent()) ?? "", /Chrome on Linux.*This session/);
  await isAccessible();
  await rows.nth(1).getByRole("button", { name: /^End the session/ }).click();
  await rows.nth(1).waitFor({ state: "detached" });
  await becomes(() => page.evaluate(() => document.activeElement?.id), "content", "the button has gone with its row");

  for (const list of ["tokens", "sessions", "connections"]) expect(`401 GET /console/${list}`);
  expect("401 GET /console/api/canvas-agent/v1/auth/status", "401 GET /console/api/canvas-agent/v1/models");
  await other.getByRole("link", { name: "Connections" }).click();
  await field(other).waitFor();
  await field(other).fill(await signInLink(uid));
  await other.keyboard.press("Enter");
  await other.getByRole("button", { name: "Continue" }).click();
  await other.getByRole("heading", { name: "No connections yet" }).waitFor();

  await page.getByRole("button", { name: "Sign out everywhere…" }).click();
  await isAccessible();
  await dialog(page).getByRole("button", { name: "Sign out everywhere" }).click();
  await field(page).waitFor();
  await other.getByRole("link", { name: "Tokens" }).click();
  await field(other).waitFor();
});

scene("a canvas is shared by email from its header, and the role is changed and withdrawn", async ({ page, guest, expect, isAccessible }) => {
  expect(NOBODY);
  const [owner, friend] = [await stranger(), await stranger()];
  const { canvas, url } = await makeCanvas("Shared board", owner.token);
  await signInByLink(page, owner.uid, url);
  await isLive(page);
  await page.getByRole("button", { name: "Share", exact: true }).click();
  const [email, share] = [dialog(page).getByLabel("Share with"), dialog(page).getByRole("button", { name: "Share", exact: true })];
  await dialog(page).getByText("Owner", { exact: true }).waitFor();
  await isAccessible();

  const path = (of: string) => `/console/canvases/${canvas.ownerUid}/${canvas.id}/members/${encodeURIComponent(of)}`;
  expect(`400 PUT ${path("no body@example.com")}`, `422 PUT ${path("nobody@example.com")}`, `422 PUT ${path(owner.email)}`);
  for (const [wrong, what] of [
    ["", "The email must be an email address."],
    ["..", "The email must be an email address."],
    ["no body@example.com", "The email must be an email address."],
    ["nobody@example.com", "The email is not that of an account."],
    [owner.email, "The email is that of the canvas's owner."],
  ] as const) {
    await email.fill(wrong);
    await share.click();
    await dialog(page).getByText(what).waitFor();
    await becomes(() => email.getAttribute("aria-invalid"), "true");
    await email.fill("x");
    await dialog(page).getByText(what).waitFor({ state: "detached" });
  }
  await email.fill(friend.email.toUpperCase());
  await page.keyboard.press("Enter");
  const role = dialog(page).getByLabel(`Role of ${friend.email}`);
  await role.waitFor();
  await becomes(() => email.inputValue(), "");
  await isAccessible();

  // The member sees whose canvas it is, and has what the role gives.
  const other = await guest();
  await signInByLink(other, friend.uid, url);
  await other.getByRole("application", { name: "Board" }).waitFor();
  await becomes(() => other.getByRole("button", { name: "Make", exact: true }).count(), 0);
  await isLive(other);
  await other.getByRole("button", { name: "Share", exact: true }).click();
  await dialog(other).getByText(owner.uid).waitFor();
  await dialog(other).getByText("You are a viewer").waitFor();
  await role.focus();
  await Promise.all([page.waitForResponse((response) => response.request().method() === "PUT" && response.ok()), role.selectOption("editor")]);
  await becomes(() => role.isEnabled(), true);
  await becomes(() => page.locator(":focus").getAttribute("aria-label"), `Role of ${friend.email}`, "the role has the keyboard");
  await other.reload();
  await other.getByRole("button", { name: "Make", exact: true }).waitFor();
  await isLive(other);

  const handle = encodeURIComponent(canvas.handle);
  for (const read of ["", "/review", "/changes"]) expect(`404 GET /console/api/canvas-agent/v1/canvases/${handle}${read}`);
  expect("404 GET /console/api/canvas-agent/v1/events");
  await dialog(page).getByRole("button", { name: `Remove ${friend.email}` }).press("Enter");
  await role.waitFor({ state: "detached" });
  await becomes(() => email.evaluate((field) => field === document.activeElement), true, "the field has the keyboard");
  await other.getByRole("heading", { name: "There is nothing here for you" }).waitFor();

  // Changes that were refused count, too.
  expect(`429 PUT ${path("nobody@example.com")}`, `429 PUT ${path(friend.email)}`);
  await email.fill(friend.email);
  // Every three seconds one more is permitted, so it takes more of them on a slow machine.
  while ((await ask(page, "PUT", path("nobody@example.com"), { role: "viewer" })).status !== 429);
  await email.focus();
  await page.keyboard.press("Enter");
  await dialog(page).getByText(/^Members can be changed 20 times a minute. Try again in \d+ seconds.$/).waitFor();

  await page.goto("/settings/sharing");
  await row(page, "Shared board").getByText("Only you").waitFor();
  await isAccessible();
});

scene("deliveries are listed, filtered, explained and sent again", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  for (const hook of ["/hook", "/missing"]) {
    const { canvas, target } = await makeCanvas(`Announced to ${hook}`, token);
    await runAction(canvas, target, { webhook: { url: `${SHOP_URL}${hook}`, secret: "0123456789abcdef0123456789abcdef" } }, token);
  }
  await signInByLink(page, uid, "/settings/webhooks");
  await row(page, "Delivered").waitFor();
  const failed = row(page, "Failed");
  await failed.getByText("The receiver refused it").first().waitFor();
  await failed.getByText("1 of 4 attempts").waitFor();
  await failed.getByText("Details").click();
  await failed.getByText("status 404").waitFor();
  await failed.getByRole("link", { name: "canvas" }).waitFor();
  await isAccessible();
  await page.getByText("How a receiver verifies signatures").click();
  await page.getByText("openssl dgst").waitFor();

  await page.getByRole("combobox", { name: "Show" }).selectOption("delivered");
  await failed.waitFor({ state: "detached" });
  const answered = page.waitForResponse((response) => response.url().endsWith("/replay"));
  await row(page, "Delivered").getByRole("button", { name: /^Send again/ }).click();
  assert.equal((await answered).status(), 202);
  await page.getByRole("combobox", { name: "Show" }).selectOption("");
  await row(page, "Delivered").waitFor();
  await failed.waitFor();
});

scene("the ledger shows a charge, and the balance follows the work", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  await signInByLink(page, uid, "/settings/credit");
  await page.getByRole("heading", { name: "No credit has moved yet" }).waitFor();
  await isAccessible();
  await admin("credits", "grant", "--account", uid, "--amount", "1250");
  await page.reload();
  await page.getByRole("row", { name: /Granted.*\+1,250/ }).waitFor();

  const { canvas, target, url } = await makeCanvas("Charged", token);
  await page.goto(url);
  await isLive(page);
  const balance = page.getByTitle("Credit that is left");
  await balance.getByText("1,250").waitFor();
  const start = { model: "sketch", prompt: "A quiet harbor", canvasId: canvas.id, baseRevision: canvas.revision, targetNodeId: target, idempotencyKey: randomUUID() };
  const { run } = await send<{ run: string }>("POST", "/images/generate", start, token);
  await succeeded(run, token);
  await balance.getByText("1,249").waitFor();
  await balance.click();
  await page.getByRole("row", { name: /A quiet harbor on a canvas −1/ }).waitFor();
  await isAccessible();
  await page.getByRole("row", { name: /A quiet harbor/ }).getByRole("link", { name: "canvas" }).click();
  await page.waitForURL(url);
});

scene("the storage says what is used of how much", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  await makeCanvas("Stored", token);
  await signInByLink(page, uid, "/settings/storage");
  await page.getByText("65.5 kB of 21.5 GB used").waitFor();
  await isAccessible();
  await admin("account", "quota", "--account", uid, "--bytes", "none");
  await page.reload();
  await page.getByText("65.5 kB used, without a limit").waitFor();
});

scene("a canvas is deleted from the list once its owner has typed so", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  const { canvas } = await makeCanvas("Draft", token);
  await makeCanvas("Kept", token);
  await signInByLink(page, uid);
  await page.getByRole("button", { name: "Delete Draft" }).click();
  const confirm = dialog(page).getByRole("button", { name: "Delete for good" });
  await dialog(page).getByText("2 things").waitFor();
  await isAccessible();
  await becomes(() => confirm.isDisabled(), true);
  await page.keyboard.type("delet");
  await becomes(() => confirm.isDisabled(), true);
  await page.keyboard.press("Enter");
  await page.waitForTimeout(1000); // longer than a deletion takes
  await send("GET", `/canvases/${canvas.handle}`, undefined, token);
  await dialog(page).waitFor();
  await page.keyboard.type("e");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: /Draft/ }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: /Kept/ }).waitFor();
  const gone = await fetch(`${BASE_URL}/api/canvas-agent/v1/canvases/${canvas.handle}`, { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(gone.status, 404);
});

scene("a session of a token is told why it has no settings", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  const { url } = await makeCanvas("Narrow", token);
  await signIn(page, token, "/settings/connections");
  await page.getByRole("heading", { name: "Settings need a sign-in link" }).waitFor();
  await page.getByText("canvas-gateway admin session link --account").waitFor();
  await isAccessible();
  await page.goto(url);
  await isLive(page);
  await page.getByRole("button", { name: "Share", exact: true }).click();
  await dialog(page).getByText("a token must not give access").waitFor();
  await isAccessible();
  await page.goto("/settings/connections");
  // What is under way when the session ends is refused.
  expect(`401 GET ${ROOT}/auth/status`);
  await page.getByRole("button", { name: "Sign out and use a link" }).click();
  await field(page).fill(await signInLink(uid));
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "No connections yet" }).waitFor();
});

scene("settings fit a narrow window", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid } = await stranger();
  await page.setViewportSize({ width: 380, height: 760 });
  await signInByLink(page, uid);
  await ask(page, "POST", "/console/connections", { provider: "openai", name: "A name that goes on for quite a while", apiKey: "sk-0123456789" });
  for (const tab of ["tokens", "tokens/new", "connections", "sessions", "sharing", "webhooks", "credit"]) {
    await page.goto(`/settings/${tab}`);
    await page.getByRole("heading", { level: 2 }).first().waitFor();
    await page.locator("main [role=status]").waitFor({ state: "detached" });
    const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert(content <= window, `${tab} is ${content} pixels wide`);
    await isAccessible();
  }
});

scene("without a network a deletion is refused, and nothing is deleted later", async ({ page, expect }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  const { canvas } = await makeCanvas("Kept", token);
  await signInByLink(page, uid);
  await page.getByRole("button", { name: "Delete Kept" }).click();
  await dialog(page).waitFor();
  await page.context().setOffline(true);
  await page.keyboard.type("delete");
  await page.keyboard.press("Enter");
  await dialog(page).getByRole("alert").waitFor();
  await dialog(page).getByRole("button", { name: "Keep" }).click();
  await page.context().setOffline(false);
  await page.waitForTimeout(1000);
  await send("GET", `/canvases/${canvas.handle}`, undefined, token);
});
