/** What several cases do. */
import type { Page } from "playwright-core";

import { TOKEN } from "./service.ts";

export const heading = (page: Page, name: string) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
export const field = (page: Page) => page.getByLabel("Sign-in link or token");

export async function signIn(page: Page, token = TOKEN, to = "/"): Promise<void> {
  await page.goto(to);
  await field(page).fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("button", { name: /^Account of/ }).waitFor();
}

/** Waits until the canvas page says that it follows the canvas. */
export const isLive = (page: Page) => page.getByRole("status").getByText("Live", { exact: true }).waitFor();
