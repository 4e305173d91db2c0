/** What tiles say of their images. */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { env } from "node:process";

import { becomes, NOBODY, scene } from "./browser.ts";
import { admin, makeBoard, png, read, send, stranger, succeeded } from "./service.ts";
import { heading, signIn } from "./steps.ts";

scene("a tile names the model that made its image", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const ana = await stranger();
  await admin("credits", "grant", "--account", ana.uid, "--amount", "10");
  const { canvas, ids } = await makeBoard("Tiles", [{ type: "image", title: "Steam", position: { x: 0, y: 0 } }], ana.token);
  const { revision } = await read(canvas, ana.token);
  const start = { model: "sketch", prompt: "Steam over a cup", canvasId: canvas.id, baseRevision: revision, targetNodeIds: Object.values(ids), idempotencyKey: randomUUID() };
  const { run } = await send<{ run: string }>("POST", "/images/generate", start, ana.token);
  await succeeded(run, ana.token);
  await send("POST", `/assets?canvasId=${canvas.handle}&node=none`, png(120, 80), ana.token);
  await signIn(page, ana.token);
  await page.goto("/assets");
  await heading(page, "Pictures");
  const tile = (title: string | RegExp) => page.getByRole("gridcell").filter({ hasText: title });
  await becomes(() => page.getByRole("gridcell").count(), 2);
  await becomes(() => tile("Sketch").count(), 1, "the other one was uploaded");
  await tile("Steam").getByText(/· Sketch ·/).waitFor();
  await page.screenshot({ path: join(env["CANVAS_SCREENSHOTS"] ?? "/tmp", "tiles.png") });
  await isAccessible();
});
