/** A program that asks a person for access, and the person on the way to its page. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import type { Page } from "playwright-core";

import { BASE_URL, signInLink } from "./service.ts";

const VERIFIER = "a-verifier-of-forty-three-characters-0123456";
const CHALLENGE = createHash("sha256").update(VERIFIER).digest("base64url");

export async function post(path: string, body: URLSearchParams | string): Promise<Record<string, string>> {
  const type = typeof body === "string" ? "application/json" : "application/x-www-form-urlencoded";
  const response = await fetch(`${BASE_URL}${path}`, { method: "POST", headers: { "Content-Type": type }, body: body.toString() });
  assert(response.ok, await response.clone().text());
  return (await response.json()) as Record<string, string>;
}

/** An app on this computer: its client id, and the answers that it gets. */
export async function listening(name: string) {
  const answers: URL[] = [];
  const server = createServer((request, response) => {
    if (request.url?.startsWith("/callback")) answers.push(new URL(request.url, redirect));
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.end('<!doctype html><html lang="en"><title>App</title><link rel="icon" href="data:,"><main><h1>Back in the app</h1></main></html>');
  });
  await new Promise<void>((listens) => server.listen(0, "127.0.0.1", listens));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const redirect = `${origin}/callback`;
  const { client_id: clientId = "" } = await post("/oauth/register", JSON.stringify({ client_name: name, redirect_uris: [redirect] }));
  const ask = (changes: Record<string, string> = {}) =>
    `/oauth/authorize?${new URLSearchParams({ client_id: clientId, redirect_uri: redirect, response_type: "code", state: "s", code_challenge: CHALLENGE, code_challenge_method: "S256", ...changes })}`;
  const exchange = (code: string) =>
    post("/oauth/token", new URLSearchParams({ grant_type: "authorization_code", client_id: clientId, code, redirect_uri: redirect, code_verifier: VERIFIER }));
  return { origin, answers, ask, exchange, close: async () => void server.close() };
}

/** Signs in by a link on the way to a page. */
export async function signInOnTheWay(page: Page, account: string, to: string): Promise<void> {
  await page.goto(to);
  await page.waitForURL(/\/signin/);
  const fragment = new URL(await signInLink(account)).hash;
  await page.evaluate((fragment) => void (location.hash = fragment), fragment);
  await page.getByRole("button", { name: "Continue" }).click();
}
