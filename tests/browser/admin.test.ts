/** What administrators manage in the console. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Page } from "playwright-core";

import { NOBODY, scene } from "./browser.ts";
import { admin, makeCanvas, runAction, signInLink, stranger } from "./service.ts";
import { heading } from "./steps.ts";

/** Signs a new administrator in by a link, and opens the accounts. */
async function administer(page: Page): Promise<{ uid: string; email: string; token: string }> {
  const account = await stranger();
  await admin("account", "role", "--account", account.uid, "--role", "admin");
  await page.goto(await signInLink(account.uid));
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("link", { name: "Administration" }).click();
  await heading(page, "Administration");
  return account;
}

scene("an account is invited, given credit and disabled", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  await administer(page);
  await isAccessible();
  const email = `ida.${randomUUID()}@example.com`;
  await page.getByRole("button", { name: "New account…" }).click();
  const dialog = page.getByRole("dialog", { name: "New account" });
  await dialog.getByLabel("Email").fill("ida");
  expect("400 POST /console/admin/accounts");
  await dialog.getByRole("button", { name: "Create account" }).click();
  await dialog.getByRole("alert").getByText("must be an email address").waitFor();
  await isAccessible();
  await dialog.getByLabel("Email").fill(email);
  await dialog.getByLabel("Name").fill("Ida");
  await dialog.getByLabel("Credits").fill("5");
  await dialog.getByRole("button", { name: "Create account" }).click();
  const link = page.getByRole("dialog", { name: "The account is there" });
  await link.getByRole("region", { name: "Text of link" }).getByText("/signin#").waitFor();
  await isAccessible();
  await link.getByRole("button", { name: "Done" }).click();

  await page.getByRole("searchbox", { name: "Find" }).fill(email.slice(0, 12).toUpperCase());
  await page.getByRole("list", { name: "Accounts" }).getByRole("link", { name: email }).click();
  await page.getByRole("heading", { level: 2, name: email }).waitFor();
  await isAccessible();
  const credit = page.getByRole("form", { name: "Credit" });
  await credit.getByLabel("Add credits").fill("7");
  await credit.getByLabel("Note").fill("a gift");
  await credit.getByRole("button", { name: "Add" }).click();
  await credit.getByRole("status").getByText("The account has 12 credits").waitFor({ state: "attached" });
  const storage = page.getByRole("form", { name: "Storage" });
  await storage.getByLabel("Storage quota").fill("2");
  await storage.getByRole("button", { name: "Set" }).click();
  await storage.getByRole("status").getByText("The quota is set").waitFor({ state: "attached" });

  await page.getByRole("button", { name: "Disable…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
  await page.getByText("Member, disabled.").waitFor();
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByRole("button", { name: "Disable…" }).waitFor();
  await page.getByRole("link", { name: "What was done with it" }).click();
  const entries = page.getByRole("list", { name: "Entries" });
  for (const event of ["account.enabled", "account.disabled", "account.quota", "account.credit", "account.created"]) await entries.getByText(event).first().waitFor();
  await entries.getByText("Details").first().click();
  await isAccessible();
});

scene("one's own account keeps its role, and the pages are an administrator's alone", async ({ page, expect }) => {
  expect(NOBODY);
  const { uid, email } = await administer(page);
  await page.goto(`/admin/accounts/${uid}`);
  await page.getByRole("heading", { level: 2, name: email }).waitFor();
  assert(await page.getByRole("button", { name: "Take the role of administrator" }).isDisabled());
  assert(await page.getByRole("button", { name: "Disable…" }).isDisabled());
  await admin("account", "role", "--account", uid, "--role", "member");
  expect("403 GET /console/admin/accounts");
  await page.getByRole("link", { name: "Accounts" }).click();
  await page.getByRole("heading", { name: "Sign in again to administer" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "There is nothing here" }).waitFor();
});

scene("work, deliveries, the catalog, health and the audit have a page each", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { token } = await administer(page);
  const { canvas, target } = await makeCanvas("Work of all", token);
  await runAction(canvas, target, {}, token);
  for (const [tab, title] of [
    ["Work", "Work"],
    ["Deliveries", "Deliveries"],
    ["Recipes", "Recipes"],
    ["Health", "Health"],
    ["Audit", "Audit"],
  ] as const) {
    await page.getByRole("navigation", { name: "Administration" }).getByRole("link", { name: tab }).click();
    await page.getByRole("heading", { level: 2, name: title, exact: true }).waitFor();
    await page.getByText(/^Loading/).waitFor({ state: "detached" });
    await isAccessible();
  }
  await page.getByLabel("Event").selectOption("Sign-ins");
  await page.getByRole("list", { name: "Entries" }).getByText("signin.ok").first().waitFor();
  assert.match(page.url(), /event=signin/, "the filter is in the address");
  await page.getByRole("navigation", { name: "Administration" }).getByRole("link", { name: "Work" }).click();
  await page.getByRole("list", { name: "Work" }).getByText("succeeded").first().waitFor();
  await page.getByRole("navigation", { name: "Administration" }).getByRole("link", { name: "Recipes" }).click();
  expect("400 POST /console/admin/recipes");
  await page.getByLabel("Recipe file").setInputFiles({ name: "recipe.json", mimeType: "application/json", buffer: Buffer.from('{"name": ""}') });
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Recipe file").setInputFiles({ name: "recipe.json", mimeType: "application/json", buffer: Buffer.from("{") });
  await page.getByText("recipe.json is not JSON.").waitFor();
  await page.setViewportSize({ width: 390, height: 800 });
  await isAccessible();
});
