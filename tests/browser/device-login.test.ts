/** The command line on a computer without a browser: a person types its code, sees where it asks from, and decides. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { env } from "node:process";

import type { Page } from "playwright-core";

import { post, signInOnTheWay } from "./app.ts";
import { NOBODY, scene } from "./browser.ts";
import { BASE_URL, stranger } from "./service.ts";
import { signIn } from "./steps.ts";

const shot = (page: Page, name: string) => page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? ".", `device-${name}.png`), fullPage: true });

const ask = () => post("/oauth/device", new URLSearchParams({ client_id: "canvas-cli" }));

/** The answer to the command line, which asks with its code. */
async function poll(deviceCode = ""): Promise<Record<string, string>> {
  const form = new URLSearchParams({ grant_type: "urn:ietf:params:oauth:grant-type:device_code", client_id: "canvas-cli", device_code: deviceCode });
  const response = await fetch(`${BASE_URL}/oauth/token`, { method: "POST", body: form });
  return (await response.json()) as Record<string, string>;
}

scene("a person connects the command line by its code", async ({ page, expect, isAccessible }) => {
  expect(NOBODY, "400 POST /console/devices/preview", "422 POST /console/devices/preview");
  const { uid } = await stranger();
  const { user_code: userCode = "", device_code: deviceCode } = await ask();
  // A code in the address is not taken.
  await signInOnTheWay(page, uid, `/device?user_code=${userCode}`);
  await page.getByRole("heading", { name: "Connect the command line" }).waitFor();
  const code = page.getByLabel("Code", { exact: true });
  assert.equal(await code.inputValue(), "");
  await isAccessible();
  await shot(page, "code");

  // What is wrong is said.
  await code.fill("hello");
  await code.press("Enter");
  await page.getByText("The code must be the 8 letters that the program shows.").waitFor();
  await code.fill("BBBB-BBBB");
  await code.press("Enter");
  await page.getByText("The code belongs to no program that waits").waitFor();
  await isAccessible();
  await shot(page, "wrong");

  // It is typed as it is shown, or not quite.
  await code.fill(userCode.toLowerCase());
  await code.press("Enter");
  await page.getByRole("heading", { name: "Allow Canvas command line to use your canvases?" }).waitFor();
  await page.getByText("from the address").getByText("127.0.0.1").waitFor();
  await page.getByRole("group", { name: "What it may spend" }).waitFor();
  await isAccessible();
  await shot(page, "consent");
  await page.setViewportSize({ width: 360, height: 780 });
  await isAccessible();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wide, 0, "nothing is beyond the screen");
  await shot(page, "consent-phone");
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByRole("heading", { name: "Connected" }).waitFor();
  await isAccessible();
  const { access_token: token } = await poll(deviceCode);
  assert.match(token ?? "", /^cba_/);

  // It is among the apps.
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole("link", { name: "Settings" }).click();
  const row = page.getByRole("main").getByRole("listitem").filter({ hasText: "Canvas command line" });
  await row.getByText("Command line", { exact: true }).waitFor();
});

scene("a person denies the command line, and a session of a token may not decide", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  const { user_code: userCode = "", device_code: deviceCode } = await ask();
  await signInOnTheWay(page, uid, "/device");
  await page.getByLabel("Code", { exact: true }).fill(userCode);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("button", { name: "Deny" }).click();
  await page.getByRole("heading", { name: "Denied" }).waitFor();
  assert.equal((await poll(deviceCode))["error"], "access_denied");
  await page.context().clearCookies();
  await signIn(page, token);
  await page.goto("/device");
  await page.getByRole("heading", { name: "Only a person may allow an app" }).waitFor();
  await isAccessible();
});
