/** What is removed from a file before others see it: told when it is uploaded, and when its canvas is shared. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Page } from "playwright-core";

import { becomes, NOBODY, scene } from "./browser.ts";
import { makeBoard, png, send, signInLink, stranger } from "./service.ts";
import { heading, signIn } from "./steps.ts";

const PHOTO = readFileSync(join(import.meta.dirname, "../../deploy/local/demo-photo.jpg"));

/** The photograph with the place where it was taken: an EXIF segment that has a GPS directory alone. */
function placed(): Buffer {
  const tiff = Buffer.alloc(128);
  tiff.write("II*\0", "latin1");
  tiff.writeUInt32LE(8, 4);
  const directory = (at: number, entries: [tag: number, type: number, count: number, value: number | string][]) => {
    tiff.writeUInt16LE(entries.length, at);
    for (const [index, [tag, type, count, value]] of entries.entries()) {
      const entry = at + 2 + 12 * index;
      tiff.writeUInt16LE(tag, entry);
      tiff.writeUInt16LE(type, entry + 2);
      tiff.writeUInt32LE(count, entry + 4);
      if (typeof value === "string") tiff.write(value, entry + 8, "latin1");
      else tiff.writeUInt32LE(value, entry + 8);
    }
  };
  directory(8, [[0x8825, 4, 1, 26]]);
  directory(26, [[1, 2, 2, "N"], [2, 5, 3, 80], [3, 2, 2, "E"], [4, 5, 3, 104]]);
  // Degrees, minutes and seconds, each a numerator and a denominator.
  for (const [index, number] of [53, 1, 33, 1, 2, 1, 9, 1, 59, 1, 37, 1].entries()) tiff.writeUInt32LE(number, 80 + 4 * index);
  const head = Buffer.from([0xff, 0xe1, 0, 0]);
  const body = Buffer.concat([Buffer.from("Exif\0\0", "latin1"), tiff]);
  head.writeUInt16BE(body.length + 2, 2);
  return Buffer.concat([PHOTO.subarray(0, 2), head, body, PHOTO.subarray(2)]);
}

const file = { name: "harbor.jpg", mimeType: "image/jpeg", buffer: placed() };
const uploads = (page: Page) => page.getByRole("region", { name: "Uploads" });

async function signInAsPerson(page: Page, uid: string, to: string): Promise<void> {
  await page.goto(await signInLink(uid));
  await page.getByRole("button", { name: "Continue" }).click();
  await heading(page, "Canvases");
  await page.goto(to);
}

scene("the place of a photograph is removed, which is told at the upload and to who shares the canvas, however many images are newer", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { uid, token } = await stranger();
  const { canvas, url } = await makeBoard("Harbor", [], token);
  await signInAsPerson(page, uid, url);
  await page.getByRole("application", { name: "Board" }).waitFor();
  await page.getByLabel("Images to upload").setInputFiles(file);
  await uploads(page).getByText("1 image stored without private metadata: the place. The file as it was is kept for you alone.").waitFor({ timeout: 60_000 });
  await page.locator(".react-flow__node img").waitFor();
  await isAccessible();
  await uploads(page).getByRole("button", { name: "Dismiss what was removed" }).click();
  await uploads(page).waitFor({ state: "detached" });

  const share = async () => {
    await page.getByRole("button", { name: "Share", exact: true }).click();
    return page.getByRole("dialog", { name: /^Access to/ });
  };
  const words = "Members get the images of this canvas without private metadata: the place. You alone can download the files as they were.";
  const dialog = await share();
  await dialog.getByText(words).waitFor();
  await isAccessible();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });

  // A page has sixty.
  for (let at = 0; at < 60; at += 6) await Promise.all(Array.from({ length: 6 }, (_, index) => send("POST", `/assets?canvasId=${canvas.handle}`, png(8 + at + index, 8), token)));
  await page.reload();
  await page.getByRole("application", { name: "Board" }).waitFor();
  await share();
  await dialog.getByText(words).waitFor();
});

scene("a file without private metadata is stored without a word, and file inputs ask for JPEG and not for HEIC", async ({ page, expect }) => {
  expect(NOBODY);
  const { token } = await stranger();
  await signIn(page, token, "/assets");
  await heading(page, "Pictures");
  const input = page.getByLabel("Images to upload").first();
  const accepted = async () => ((await input.getAttribute("accept")) ?? "").split(",");
  assert.equal((await accepted())[0], "image/jpeg");
  assert.deepEqual((await accepted()).filter((type) => /hei[cf]/i.test(type)), []);
  await input.setInputFiles({ name: "pier.png", mimeType: "image/png", buffer: Buffer.from(png(64, 64)) });
  await page.getByRole("button", { name: /^Open pier/ }).waitFor();
  await becomes(() => uploads(page).count(), 0);
});
