/** Apps: a person allows one on the page of its request, narrows what it may do, denies it, and ends it. */
import assert from "node:assert/strict";

import { listening, signInOnTheWay } from "./app.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, BASE_URL, stranger } from "./service.ts";
import { signIn } from "./steps.ts";

const statusOf = async (token: string) => (await fetch(`${BASE_URL}/api/canvas-agent/v1/auth/status`, { headers: { Authorization: `Bearer ${token}` } })).status;

scene("a person allows an app, narrows it, and ends it", async ({ page, expect, permit, afterwards, isAccessible }) => {
  expect(NOBODY);
  const { uid } = await stranger();
  const app = await listening("Moodboard maker");
  afterwards(app.close);
  permit(app.origin);
  await signInOnTheWay(page, uid, app.ask({ scope: "canvas:read canvas:write asset:read image:generate" }));
  await page.getByRole("heading", { name: "Allow Moodboard maker to use your canvases?" }).waitFor();
  await page.getByText("an app on this computer", { exact: true }).waitFor();
  await page.getByText(`${app.origin}/callback`).waitFor();
  await isAccessible();
  const box = (name: RegExp) => page.getByRole("checkbox", { name });
  assert.equal(await box(/canvas:write/).isDisabled(), true, "images need it");
  await box(/image:generate/).uncheck();
  await box(/canvas:write/).uncheck();
  await page.getByLabel("Access ends").selectOption("7");
  await page.setViewportSize({ width: 390, height: 844 });
  await isAccessible();
  await page.keyboard.press("Tab");
  await page.getByRole("button", { name: "Allow" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Back in the app" }).waitFor();
  const [answer] = app.answers;
  assert.deepEqual([answer?.searchParams.get("state"), answer?.searchParams.get("iss")], ["s", BASE_URL]);
  const { access_token: token = "", scope } = await app.exchange(answer?.searchParams.get("code") ?? "");
  assert.equal(scope, "canvas:read asset:read");
  assert.equal(await statusOf(token), 200);

  await page.setViewportSize({ width: 1280, height: 800 });
  await page.goto("/settings/apps");
  const row = page.getByRole("main").getByRole("listitem").filter({ hasText: "Moodboard maker" });
  await row.getByText("ends in 7 days").waitFor();
  await row.getByText("Unverified name").waitFor();
  await isAccessible();
  await row.getByRole("button", { name: "End access of Moodboard maker" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "End access" }).click();
  await page.getByRole("heading", { name: "No apps" }).waitFor();
  await becomes(() => statusOf(token), 401);
  await page.getByText(`${BASE_URL}/mcp`).waitFor();
  await isAccessible();
});

scene("a person denies an app", async ({ page, expect, permit, afterwards }) => {
  expect(NOBODY);
  const { uid } = await stranger();
  const app = await listening("Stranger");
  afterwards(app.close);
  permit(app.origin);
  await signInOnTheWay(page, uid, app.ask());
  await page.getByRole("button", { name: "Deny" }).click();
  await page.getByRole("heading", { name: "Back in the app" }).waitFor();
  assert.equal(app.answers[0]?.searchParams.get("error"), "access_denied");
  const { apps } = await admin<{ apps: object[] }>("app", "list", "--account", uid);
  assert.deepEqual(apps, []);
});

scene("a request that is not valid sends nobody to a foreign address", async ({ page, expect, permit, afterwards, isAccessible }) => {
  expect(NOBODY, "400 POST /console/authorizations/preview");
  const { uid } = await stranger();
  const app = await listening("<b>Bold</b>");
  afterwards(app.close);
  permit(app.origin);
  await signInOnTheWay(page, uid, app.ask({ redirect_uri: "https://evil.example/callback" }));
  await page.getByRole("heading", { name: "This request is not valid" }).waitFor();
  await isAccessible();
  // What the client did wrong is told to the client.
  await page.goto(app.ask({ scope: "canvas:admin" }));
  await page.getByRole("heading", { name: "This request is not valid" }).waitFor();
  assert.equal(app.answers.length, 0, "not without a click");
  await isAccessible();
  await page.getByRole("link", { name: /^Tell 127/ }).click();
  await page.getByRole("heading", { name: "Back in the app" }).waitFor();
  assert.equal(app.answers[0]?.searchParams.get("error"), "invalid_scope");
  // A name is text.
  await page.goto(app.ask());
  await page.getByRole("heading", { name: "Allow <b>Bold</b> to use your canvases?" }).waitFor();
});

scene("a session of a token allows nothing", async ({ page, expect, afterwards, isAccessible }) => {
  expect(NOBODY);
  const app = await listening("App");
  afterwards(app.close);
  const { token } = await stranger();
  await signIn(page, token);
  await page.goto(app.ask());
  await page.getByRole("heading", { name: "Only a person may allow an app" }).waitFor();
  await isAccessible();
});
