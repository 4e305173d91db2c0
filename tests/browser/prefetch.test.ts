/** What a page asks for before it knows who is signed in. */
import assert from "node:assert/strict";

import { node, openBoard, path, ROOT, text } from "./board.ts";
import { NOBODY, scene } from "./browser.ts";
import { admin, makeBoard, stranger } from "./service.ts";
import { isLive, signIn } from "./steps.ts";

scene("a canvas is read once, before the session, and nothing is kept for who signs in next", async ({ page, expect }) => {
  expect(NOBODY);
  const [ana, ben] = [await stranger(), await stranger()];
  const { canvas, url } = await makeBoard("Ahead", [text("Here", 0, 0)], ana.token);
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  const reads = () => asked.filter((one) => one === path(canvas, "")).length;
  await openBoard(page, url, ana.token);
  assert.equal(reads(), 1);
  asked.length = 0;
  await page.reload();
  await node(page, "Here").waitFor();
  await isLive(page);
  assert.equal(reads(), 1);
  assert(asked.indexOf(path(canvas, "")) < asked.indexOf("/console/session"), "it does not wait for the session");

  // What is under way when the session ends is refused.
  for (const part of ["", "/review"]) expect(`401 GET ${path(canvas, part)}`);
  for (const one of ["canvases", "auth/status", "runs", "events"]) expect(`401 GET ${ROOT}/${one}`);
  // Signed out, a page asks for nothing; and what another person may not see is not there.
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByLabel("Sign-in link or token").waitFor();
  asked.length = 0;
  for (const part of ["", "/review"]) expect(`404 GET ${path(canvas, part)}`);
  await signIn(page, ben.token, url);
  await page.getByRole("heading", { name: "There is nothing here for you" }).waitFor();
  assert(asked.indexOf(path(canvas, "")) > asked.indexOf("/console/session"), "nobody was signed in");

  // A session that has ended leads to the sign-in page, and the answer that it got is forgotten.
  await page.goto("/");
  await admin("session", "revoke", "--account", ben.uid);
  await page.goto(url);
  const { token } = await admin<{ token: string }>("token", "create", "--account", ana.uid, "--label", "again", "--scopes", "all");
  await page.getByLabel("Sign-in link or token").fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await node(page, "Here").waitFor();
  await isLive(page);
});

scene("a canvas that breaks off on its way is asked for again", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Broken off", [text("Here", 0, 0)]);
  await openBoard(page, url);
  await page.addInitScript(() => {
    const { blob } = Response.prototype;
    Response.prototype.blob = () => {
      Response.prototype.blob = blob;
      return Promise.reject(new TypeError("Failed to fetch"));
    };
  });
  let reads = 0;
  page.on("request", (request) => (reads += new URL(request.url()).pathname === path(canvas, "") ? 1 : 0));
  await page.reload();
  await node(page, "Here").waitFor();
  await isLive(page);
  assert.equal(reads, 2);
});
