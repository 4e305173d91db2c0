/** What the cases of the board do. */
import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";

import type { Locator, Page } from "playwright-core";

import { type Canvas, type Graph, type Node, read, TOKEN } from "./service.ts";
import { isLive, signIn } from "./steps.ts";

export const ROOT = "/console/api/canvas-agent/v1";
export const path = (canvas: Canvas, of: string) => `${ROOT}/canvases/${encodeURIComponent(canvas.handle)}${of}`;
export const node = (page: Page, title: string) => page.locator(`.react-flow__node[aria-label*="${title}"]`).first();
/** What a screen reader adds to the name of a node. */
export const description = (node: Locator) => node.evaluate((node) => document.getElementById(node.getAttribute("aria-describedby") ?? "")?.textContent);
export const saved = (page: Page) => page.locator('[data-save="saved"]').waitFor();
export const titled = (graph: Graph, title: string) => graph.nodes.find((node) => node.title === title);

/** Waits until the canvas at the service satisfies `holds`. */
export async function until(canvas: Canvas, what: string, holds: (graph: Graph & { batches: string[] }) => boolean, token = TOKEN): Promise<Graph & { batches: string[] }> {
  let graph = await read(canvas, token);
  for (const start = Date.now(); !holds(graph); graph = await read(canvas, token)) {
    assert(Date.now() - start < 15_000, `${what}: ${JSON.stringify(graph.nodes.map(({ title, position }) => [title, position.x, position.y])).slice(0, 2000)}`);
    await new Promise((resume) => setTimeout(resume, 50));
  }
  return graph;
}

/** Reads until it is there and the same twice: a board that is opened or zoomed moves for some frames. */
async function atRest<T>(look: () => Promise<T | null>): Promise<T> {
  let found = await look();
  for (let before: T | null = null; !found || !isDeepStrictEqual(found, before); found = await look()) {
    before = found;
    await new Promise((resume) => setTimeout(resume, 50));
  }
  return found;
}

export const box = (target: Locator) => atRest(() => target.boundingBox());

export async function middle(target: Locator): Promise<{ x: number; y: number }> {
  const { x, y, width, height } = await box(target);
  return { x: x + width / 2, y: y + height / 2 };
}

/** The middle and the name of a node in the middle part of the board. */
export const inView = (page: Page): Promise<{ x: number; y: number; name: string }> =>
  atRest(() =>
    page.evaluate(() => {
      for (const node of document.querySelectorAll(".react-flow__node")) {
        const { left, top, width, height } = node.getBoundingClientRect();
        if (left > 300 && left < 800 && top > 250 && top < 600) return { x: left + width / 2, y: top + height / 2, name: node.getAttribute("aria-label") ?? "" };
      }
      return null;
    }),
  );

/** Shows the whole canvas. The result tells where a point of the plane is on the screen. */
export async function plane(page: Page): Promise<(x: number, y: number) => { x: number; y: number }> {
  await page.keyboard.press("-");
  await page.keyboard.press("0");
  // A view on its way is kept, too.
  await page.evaluate(() => new Promise((resume) => requestAnimationFrame(() => requestAnimationFrame(resume))));
  await page.locator("[data-moving]").waitFor({ state: "detached" });
  const board = await box(page.getByRole("application", { name: "Board" }));
  const kept = await atRest(() => page.evaluate(() => Object.entries(sessionStorage).find(([key]) => key.startsWith("canvas.view"))?.[1] as string | undefined ?? null));
  const view = JSON.parse(kept) as { x: number; y: number; zoom: number };
  return (x, y) => ({ x: board.x + view.x + x * view.zoom, y: board.y + view.y + y * view.zoom });
}

export async function drag(page: Page, from: { x: number; y: number }, to: { x: number; y: number }): Promise<void> {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move((from.x + to.x) / 2, (from.y + to.y) / 2, { steps: 5 });
  await page.mouse.move(to.x, to.y, { steps: 5 });
  await page.mouse.up();
}

export async function dragBy(page: Page, target: Locator, x: number, y: number): Promise<void> {
  const from = await middle(target);
  await drag(page, from, { x: from.x + x, y: from.y + y });
}

/** Signs in and opens the board. */
export async function openBoard(page: Page, url: string, token = TOKEN): Promise<void> {
  await signIn(page, token, url);
  await page.getByRole("application", { name: "Board" }).waitFor();
  await isLive(page);
}

export const text = (title: string, x: number, y: number, rest: Partial<Node> = {}) => ({ title, position: { x, y }, width: 240, height: 120, ...rest });
