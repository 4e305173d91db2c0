/** What a person sees first after `deploy/local/up`: the sign-in by the link that it printed, and the canvas of its demo (tests/smoke). */
import assert from "node:assert/strict";
import { env } from "node:process";

import { NOBODY, scene } from "./browser.ts";
import { person } from "./service.ts";
import { heading, isLive } from "./steps.ts";

scene("smoke", async ({ page, expect }) => {
  expect(NOBODY);
  const link = env["CANVAS_SIGNIN_LINK"];
  assert(link, "CANVAS_SIGNIN_LINK is not set: tests/smoke sets it");
  await page.goto(link);
  await page.getByText(person.email).first().waitFor();
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Canvases");
  await page.getByRole("link", { name: "Demo" }).first().click();
  await heading(page, "Demo");
  await isLive(page);
  await page.getByText("Image Actions").first().waitFor();
  const shown = () => page.locator("img").evaluateAll((images) => images.filter((image) => (image as HTMLImageElement).naturalWidth > 0).length);
  for (let tries = 0; (await shown()) < 10 && tries < 100; tries++) await page.waitForTimeout(100);
  assert((await shown()) >= 10, `${await shown()} images of the demo's canvas are shown`);
});
