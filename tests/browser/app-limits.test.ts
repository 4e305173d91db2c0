/** Spending limits of apps: a person gives them with the access, sees what is spent, and changes them. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { env } from "node:process";

import type { Page } from "playwright-core";

import { listening, signInOnTheWay } from "./app.ts";
import { NOBODY, scene } from "./browser.ts";
import { admin, BASE_URL, stranger } from "./service.ts";

const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", `app-limits-${name}.png`), fullPage: true });

/** Starts a video of the embedded runtime, for one credit. Returns the status. */
async function startVideo(token: string): Promise<number> {
  const body = JSON.stringify({ model: "animatic", prompt: "A kite over the sea", idempotencyKey: randomUUID() });
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  return (await fetch(`${BASE_URL}/api/canvas-agent/v1/videos/generate`, { method: "POST", headers, body })).status;
}

scene("an app gets limits with its access, and a person changes them", async ({ page, expect, permit, afterwards, isAccessible }) => {
  expect(NOBODY, "400 POST /console/authorizations");
  const { uid } = await stranger();
  await admin("credits", "grant", "--account", uid, "--amount", "10");
  const app = await listening("Moodboard maker");
  afterwards(app.close);
  permit(app.origin);
  await signInOnTheWay(page, uid, app.ask({ scope: "canvas:read asset:read video:generate" }));
  const most = (number: number) => page.getByLabel(`Limit ${number}: at most`);
  const limits = page.getByRole("group", { name: "What it may spend" });

  // It asks for videos, so it has limits from the beginning.
  await limits.waitFor();
  assert.deepEqual([await most(1).inputValue(), await most(2).inputValue()], ["100", "100"]);
  assert.deepEqual([await page.getByLabel("Limit 1: of what").inputValue(), await page.getByLabel("Limit 1: how long").inputValue()], ["credits", "month"]);
  assert.deepEqual([await page.getByLabel("Limit 2: of what").inputValue(), await page.getByLabel("Limit 2: how long").inputValue()], ["outputs", "day"]);
  await isAccessible();
  await shot(page, "consent");

  // An app that cannot spend has none.
  const video = page.getByRole("checkbox", { name: /video:generate/ });
  await video.uncheck();
  await limits.waitFor({ state: "detached" });
  await video.check();

  // What is wrong is said at its line.
  await most(1).fill("two");
  await page.getByRole("button", { name: "Allow" }).click();
  await limits.getByText("Limit 1 must be a whole number, 0 or more.").waitFor();
  await page.setViewportSize({ width: 360, height: 780 });
  await most(1).focus();
  await isAccessible();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wide, 0, "nothing is beyond the screen");
  await shot(page, "consent-phone");
  await most(1).fill("2");
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByRole("heading", { name: "Back in the app" }).waitFor();
  const { access_token: token = "" } = await app.exchange(app.answers[0]?.searchParams.get("code") ?? "");
  assert.deepEqual([await startVideo(token), await startVideo(token), await startVideo(token)], [202, 202, 402]);

  // The list says what is spent, and the limits are changed there.
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto("/settings/apps");
  const spent = page.getByRole("list", { name: "Spent by Moodboard maker" }).getByRole("listitem");
  await spent.filter({ hasText: "2 of 2 credits this month" }).filter({ hasText: "nothing left" }).waitFor();
  await spent.filter({ hasText: "2 of 100 results today" }).waitFor();
  await isAccessible();
  await shot(page, "list");
  await page.getByRole("button", { name: "Limits of Moodboard maker" }).click();
  const dialog = page.getByRole("dialog", { name: "Limits of “Moodboard maker”" });
  await dialog.waitFor();
  await isAccessible();
  await most(1).fill("3");
  await dialog.getByRole("button", { name: "Save limits" }).click();
  await dialog.waitFor({ state: "detached" });
  await spent.filter({ hasText: "2 of 3 credits this month" }).filter({ hasText: "1 left" }).waitFor();
  assert.deepEqual([await startVideo(token), await startVideo(token)], [202, 402]);
});
