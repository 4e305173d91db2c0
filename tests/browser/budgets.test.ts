/** Spending limits: a person gives them to a token, sees what is spent, and changes them. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { env } from "node:process";

import type { Page } from "playwright-core";

import { NOBODY, scene } from "./browser.ts";
import { admin, BASE_URL, signInLink, stranger } from "./service.ts";
import { heading } from "./steps.ts";

const API = `${BASE_URL}/api/canvas-agent/v1`;

const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", `budgets-${name}.png`) });

/** Starts a video of the embedded runtime, for one credit. Returns the status. */
async function startVideo(token: string): Promise<number> {
  const body = JSON.stringify({ model: "animatic", prompt: "A kite over the sea", idempotencyKey: randomUUID() });
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  return (await fetch(`${API}/videos/generate`, { method: "POST", headers, body })).status;
}

async function signInByLink(page: Page, account: string, to: string): Promise<void> {
  await page.goto(await signInLink(account));
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Canvases");
  await page.goto(to);
}

scene("a token gets limits, says what is spent of them, and its limits are changed", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "10");
  await signInByLink(page, uid, "/settings/tokens/new");
  await page.getByText("Without a limit, all the credit of the account.").waitFor();
  await page.getByLabel("Label", { exact: true }).fill("Campaign");

  // Two limits, one after the other, each of something else.
  const limit = (number: number) => page.getByRole("group", { name: `Limit ${number}` });
  const most = (number: number) => page.getByLabel(`Limit ${number}: at most`);
  await page.getByRole("button", { name: "Add a limit" }).click();
  await page.getByRole("button", { name: "Add a limit" }).click();
  await limit(2).waitFor();
  assert.equal(await page.getByLabel("Limit 1: of what").inputValue(), "credits");
  assert.equal(await page.getByLabel("Limit 2: of what").inputValue(), "outputs");
  await isAccessible();

  // What is wrong is said at its line, and an empty number is no limit of 0.
  expect("400 POST /console/tokens");
  await most(2).fill("some");
  await page.getByRole("button", { name: "Create token" }).click();
  await limit(1).getByText("Limit 1 must be a whole number, 0 or more.").waitFor();
  await limit(2).getByRole("alert").waitFor();
  await shot(page, "new");
  await most(1).fill("2");
  await page.getByLabel("Limit 1: how long").selectOption("total");
  await most(2).fill("50");
  await page.getByRole("button", { name: "Create token" }).click();
  const secret = (await page.getByRole("region", { name: "Text of token", exact: true }).textContent()) ?? "";
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("group", { name: "Token", exact: true }).getByRole("button").click();
  await page.getByRole("link", { name: "Done" }).click();

  // The list says what is spent and what is left.
  const spent = page.getByRole("list", { name: "Spent by Campaign" }).getByRole("listitem");
  await spent.filter({ hasText: "0 of 2 credits in total" }).filter({ hasText: "2 left" }).waitFor();
  await spent.filter({ hasText: "0 of 50 results today" }).filter({ hasText: "50 left, starts again in" }).waitFor();
  assert.deepEqual([await startVideo(secret), await startVideo(secret), await startVideo(secret)], [202, 202, 402]);
  await page.reload();
  await spent.filter({ hasText: "2 of 2 credits in total" }).filter({ hasText: "nothing left" }).waitFor();
  await spent.filter({ hasText: "2 of 50 results today" }).waitFor();
  await isAccessible();
  await shot(page, "list");

  // They are changed, and hold for the next start.
  await page.getByRole("button", { name: "Limits of Campaign" }).click();
  const dialog = page.getByRole("dialog", { name: "Limits of “Campaign”" });
  await dialog.waitFor();
  await isAccessible();
  await shot(page, "change");
  assert.equal(await most(1).inputValue(), "2");
  await most(1).fill("3");
  await dialog.getByRole("button", { name: "Remove limit 2" }).click();
  await dialog.getByRole("button", { name: "Save limits" }).click();
  await dialog.waitFor({ state: "detached" });
  await spent.filter({ hasText: "2 of 3 credits in total" }).filter({ hasText: "1 left" }).waitFor();
  assert.equal(await spent.count(), 1);
  assert.deepEqual([await startVideo(secret), await startVideo(secret)], [202, 402]);

  // On a phone.
  await page.setViewportSize({ width: 360, height: 780 });
  await page.getByRole("button", { name: "Limits of Campaign" }).click();
  await most(1).waitFor();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wide, 0, "nothing is beyond the screen");
  await shot(page, "phone");
});

scene("the limits of an account stand beside its credit", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid } = await stranger();
  await admin("account", "budget", "--account", uid, "--budget", "credits:month:40");
  await signInByLink(page, uid, "/settings/credit");
  await page.getByRole("list", { name: "Limits of the account" }).getByText("0 of 40 credits this month").waitFor();
  await isAccessible();
  await shot(page, "credit");
});
