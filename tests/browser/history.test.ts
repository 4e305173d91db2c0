/** What was done with a person's own account. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { env } from "node:process";
import { test } from "node:test";

import { sentenceOf } from "../../gateway/console/src/screens/settings/events.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, signInLink, stranger } from "./service.ts";
import { heading } from "./steps.ts";

test("every event of the audit has words", () => {
  const source = readFileSync(join(import.meta.dirname, "../../shared/db/src/audit/event.rs"), "utf8");
  const events = [...source.matchAll(/= "([a-z]+\.[a-z_]+)"/g)].map(([, name = ""]) => name);
  assert(events.length > 40);
  for (const event of events) assert.notEqual(sentenceOf({ event, details: {} }), event, event);
});

scene("a person reads what was done with the account, by event and page by page", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid } = await stranger();
  await page.goto(await signInLink(uid));
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Canvases");
  await admin("credits", "grant", "--account", uid, "--amount", "3");
  await page.goto("/settings/history");
  const entries = page.getByRole("list", { name: "Entries" });
  const entry = (text: string) => entries.getByRole("listitem").filter({ hasText: text });
  await entry("3 credits added").getByText("by whoever runs the service").waitFor();
  const own = entry("Signed in with a link");
  await own.getByText("by you").waitFor();
  await own.getByText("Details").click();
  await own.getByText("signin.ok").waitFor();
  for (const [name, width, height] of [["wide", 1440, 900], ["phone", 390, 844]] as const) {
    await page.setViewportSize({ width, height });
    await page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? "/tmp", `history-${name}.png`) });
    await isAccessible();
  }

  await page.getByRole("combobox", { name: "Show" }).selectOption({ label: "Sign-ins" });
  await page.waitForURL(/event=signin/);
  await becomes(() => entry("3 credits added").count(), 0);
  await page.getByRole("combobox", { name: "Outcome" }).selectOption({ label: "Refused" });
  await page.getByText("No entries").waitFor();
  await page.goto("/settings/history?event=nothing.");
  await entry("3 credits added").waitFor();

  // The next page.
  const rename = async (displayName: string) => {
    const response = await fetch("/console/account", { method: "PATCH", headers: { "X-Canvas-Console": "1", "Content-Type": "application/json" }, body: JSON.stringify({ displayName }) });
    return response.status;
  };
  for (let change = 0; change < 52; change += 1) assert.equal(await page.evaluate(rename, `Name ${change}`), 200);
  await page.reload();
  await becomes(() => entries.getByRole("listitem").count(), 50);
  await page.getByRole("button", { name: "Show more" }).click();
  await entry("Signed in with a link").waitFor();
});
