/** People sign in with an OpenID provider: a real one, on another site than the service. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

import { NOBODY, type Scene, scene } from "./browser.ts";
import { freePort, ownGateway, ownProvider } from "./processes.ts";
import { admin, signInLink, stranger } from "./service.ts";
import { heading } from "./steps.ts";

type Provider = Awaited<ReturnType<typeof ownProvider>>;

/** A gateway of the case's own with a provider. */
async function site({ afterwards, permit, expect }: Scene, settings: Record<string, string>): Promise<{ url: string; provider: Provider }> {
  expect(NOBODY);
  const port = await freePort();
  const gateway = await ownGateway({ CANVAS_OIDC_ISSUER: `http://localhost:${port}`, CANVAS_OIDC_CLIENT_ID: "canvas", CANVAS_OIDC_NAME: "Acme", CANVAS_FAILED_AUTH_PER_MINUTE: "0", ...settings });
  afterwards(gateway.kill);
  const provider = await ownProvider(port, gateway.url);
  afterwards(provider.kill);
  for (const origin of [gateway.url, provider.url]) permit(origin);
  return { url: gateway.url, provider };
}

/** Chooses a person on the provider's own page. */
const signInThere = (page: Page, email: string) => page.getByRole("button", { name: `${email}@example.com` }).click();

const button = (page: Page) => page.getByRole("link", { name: "Continue with Acme" });

scene("a person signs in with a provider, goes on where it began, and signs in again without a word", async (scene) => {
  const { page, isAccessible } = scene;
  const { url, provider } = await site(scene, { CANVAS_OIDC_ADMIT: "anyone" });
  const name = `ana${Date.now()}`;
  await provider.says(name, { name: "Ana", email: `${name}@example.com`, email_verified: true });
  await page.goto(`${url}/settings/sessions`);
  await heading(page, "Sign in");
  await button(page).waitFor();
  assert.equal(await page.getByLabel("Sign-in link or token").isVisible(), false, "folded");
  await isAccessible();
  await page.screenshot({ path: ".local/browser/screenshots/signin-provider.png" });
  await page.keyboard.press("Tab");
  await button(page).press("Enter");
  await signInThere(page, name);
  await page.getByText("This session").waitFor();
  assert.equal(new URL(page.url()).pathname, "/settings/sessions");
  await page.getByRole("button", { name: "Sign out of this session" }).click();
  // The provider still knows the person.
  await button(page).click();
  await heading(page, "Canvases");
});

scene("a sign-in that is refused says why, and the link is one step away", async (scene) => {
  const { page, isAccessible } = scene;
  const { url } = await site(scene, { CANVAS_OIDC_ADMIT: "anyone" });
  await page.goto(`${url}/signin`);
  await button(page).click();
  await heading(page, "Who are you?");
  await isAccessible();
  await page.screenshot({ path: ".local/browser/screenshots/signin-local-provider.png" });
  await signInThere(page, "eve");
  await page.getByRole("alert").getByText("has not verified your email address").waitFor();
  await isAccessible();
  await page.screenshot({ path: ".local/browser/screenshots/signin-problem.png" });
  await page.goto(`${url}/signin?problem=<script>`);
  await page.getByRole("alert").getByText("The provider did not sign you in.").waitFor();
  await page.getByText("Use a sign-in link or a token").click();
  await page.getByLabel("Sign-in link or token").fill((await signInLink()).split("#")[1] ?? "");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Canvases");
});

scene("a person links an identity, signs in with it, and unlinks it", async (scene) => {
  const { page, isAccessible } = scene;
  const { url, provider } = await site(scene, { CANVAS_OIDC_LINK: "off" });
  const { uid } = await stranger();
  const name = `bo${Date.now()}`;
  await provider.says(name, { email: `${name}@example.com`, email_verified: true });
  const link = (await signInLink(uid)).split("#")[1];
  await page.goto(`${url}/signin#${link}`);
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Canvases");
  await page.goto(`${url}/settings/signin`);
  await page.getByText("No identity is linked").waitFor();
  await isAccessible();
  await page.getByRole("button", { name: "Link Acme" }).click();
  await signInThere(page, name);
  const row = page.getByRole("list", { name: "Identities" }).getByRole("listitem");
  await row.getByText(`${name}@example.com`).waitFor();
  assert.equal(new URL(page.url()).pathname, "/settings/signin");
  await isAccessible();
  await page.screenshot({ path: ".local/browser/screenshots/signin-identities.png" });
  const other = await scene.guest({ viewport: { width: 390, height: 844 } });
  await other.goto(`${url}/signin`);
  await button(other).click();
  await signInThere(other, name);
  await heading(other, "Canvases");
  await row.getByRole("button", { name: /^Unlink Acme/ }).click();
  await page.getByRole("dialog").getByText("You need a sign-in link afterwards").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Unlink" }).click();
  await page.getByText("No identity is linked").waitFor();
  const identities = await admin<{ identities: object[] }>("identity", "list", "--account", uid);
  assert.deepEqual(identities.identities, []);
});

scene("signing out at the provider ends the session here", async (scene) => {
  const { page, open, expect } = scene;
  const { url, provider } = await site(scene, { CANVAS_OIDC_ADMIT: "anyone" });
  const name = `cy${Date.now()}`;
  await provider.says(name, { email: `${name}@example.com`, email_verified: true });
  await page.goto(`${url}/signin`);
  await button(page).click();
  await signInThere(page, name);
  await heading(page, "Canvases");
  expect("401 GET /console/api/canvas-agent/v1/events");
  const there = await open();
  await there.goto(`${provider.url}/session/end`);
  await heading(there, "Sign out of the local provider?");
  await there.getByRole("button", { name: "Sign out" }).click();
  await heading(there, "You are signed out");
  await there.close();
  await page.goto(`${url}/settings/sessions`);
  await heading(page, "Sign in");
});
