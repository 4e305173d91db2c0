/**
 * Frames of a board of 10000 nodes beside those of an empty page in the same browser, how long an agent's change takes to be seen, and the
 * time to open the board beside the time to fetch and parse the same bytes. Prints a table of ratios, and milliseconds for the change.
 * Fails if one misses its goal.
 */
import type { Page } from "playwright-core";

import { inView, openBoard, path, text } from "./board.ts";
import { launch } from "./chromium.ts";
import { apply, type Canvas, makeBoard, png, send } from "./service.ts";
import { isLive } from "./steps.ts";

const NODES = 10_000;
const COLUMNS = 100;
const ROUNDS = 3;
const DURATION = 2500;
/** The goals: frames over those of an empty page, and opening over fetching and parsing. */
const MOST_FRAMES = 2.5;
const MOST_OPENING = 3;
/** Changes of an agent, and how many milliseconds each may take from the answer to the frame that shows it. */
const CHANGES = 20;
const MOST_SEEN = 500;

interface Wheel {
  x?: number;
  y?: number;
  /** Zooms by this factor and back, in 60 frames each. */
  zoom?: number;
}

/** The 95th percentile of the times between frames, in milliseconds, while each frame moves the view. */
function frames(page: Page, { x = 0, y = 0, zoom }: Wheel): Promise<number> {
  return page.evaluate(
    async ({ x, y, zoom, duration }) => {
      const target = document.querySelector(".react-flow__pane");
      const times: number[] = [];
      const start = performance.now();
      for (let last = start; last - start < duration; ) {
        // With the control key, 500 pixels of a wheel are a factor of two.
        const way = times.length % 120 < 60 ? -1 : 1;
        const turn = zoom === undefined ? {} : { ctrlKey: true, deltaY: (way * 500 * Math.log2(zoom)) / 60 };
        target?.dispatchEvent(new WheelEvent("wheel", { deltaX: x, deltaY: y, clientX: 640, clientY: 420, bubbles: true, cancelable: true, ...turn }));
        await new Promise(requestAnimationFrame);
        const now = performance.now();
        times.push(now - last);
        last = now;
      }
      return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.95)] ?? 0;
    },
    { x, y, zoom, duration: DURATION },
  );
}

/** An agent renames a node again and again, until the returned function is called. */
function rename(canvas: Canvas, nodeId: string | undefined): () => Promise<void> {
  let isOver = false;
  const work = (async () => {
    for (let turn = 0; !isOver; turn += 1) {
      await apply(canvas, [{ type: "node.update", nodeId, patch: { title: `Renamed ${turn}` } }]);
      await new Promise((resume) => setTimeout(resume, 200));
    }
  })();
  return () => ((isOver = true), work);
}

/** How long after the answer to an agent's batch the page has painted it, in milliseconds. */
async function seenAfter(page: Page, canvas: Canvas, nodeId: string | undefined, title: string): Promise<number> {
  const painted = page.evaluate(
    (title) =>
      new Promise<number>((resolve) => {
        const look = () => {
          if (!document.querySelector(`.react-flow__node[aria-label*="${title}"]`)) return requestAnimationFrame(look);
          // The frame after this one is there when this one was painted.
          return requestAnimationFrame(() => resolve(Date.now()));
        };
        look();
      }),
    title,
  );
  await apply(canvas, [{ type: "node.update", nodeId, patch: { title } }]);
  const answered = Date.now();
  return Math.max((await painted) - answered, 0);
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const assets = await Promise.all(Array.from({ length: 24 }, (_, index) => send<{ asset: { handle: string } }>("POST", "/assets", png(240 + 10 * index, 180))));
const nodes = Array.from({ length: NODES }, (_, index) => {
  const node = text(`n${index}`, (index % COLUMNS) * 320, Math.floor(index / COLUMNS) * 260, { metadata: { content: `Note ${index}` } });
  const asset = assets[index % assets.length]?.asset.handle;
  return index % 2 === 0 && asset !== undefined ? { ...node, type: "image", height: 200, asset, metadata: {} } : node;
});
const { canvas, ids, url } = await makeBoard("Ten thousand", nodes);
const lines = Array.from({ length: NODES - 1 }, (_, index) => ({ type: "connection.create", fromNodeId: ids[`n${index}`], toNodeId: ids[`n${index + 1}`] }));
for (let at = 0; at < lines.length; at += 200) await apply(canvas, lines.slice(at, at + 200));

const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const empty = await context.newPage();
const page = await context.newPage();
await openBoard(page, url);

const cases: [string, string, Wheel, "change"?][] = [
  ["pan", "1", { x: 25, y: 18 }],
  ["pan, zoomed out", "0", { x: 3, y: 2 }],
  ["one change after the other", "1", {}, "change"],
  ["zoom through all levels", "0", { zoom: 256 }],
];
const rows: { what: string; figure: number; goal: number; note: string }[] = [];
for (const [what, key, wheel, change] of cases) {
  const ratios: number[] = [];
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await empty.bringToFront();
    const floor = await frames(empty, {});
    await page.bringToFront();
    await page.locator(".react-flow__pane").focus();
    await page.keyboard.press(key);
    await page.waitForTimeout(500);
    const stop = change && rename(canvas, ids["n0"]);
    const time = await frames(page, wheel);
    await stop?.();
    ratios.push(time / floor);
    times.push(time);
  }
  rows.push({ what, figure: median(ratios), goal: MOST_FRAMES, note: `p95 ${median(times).toFixed(0)} ms` });
}
await page.keyboard.press("1");
const { name } = await inView(page);
const shown = /n\d+/.exec(name)?.[0] ?? "";
const seen: number[] = [];
for (let turn = 0; turn < CHANGES; turn += 1) {
  seen.push(await seenAfter(page, canvas, ids[shown], `Seen ${turn}.`));
  await page.waitForTimeout(200);
}
const p95 = seen.toSorted((a, b) => a - b)[Math.ceil(CHANGES * 0.95) - 1] ?? Number.NaN;
rows.push({ what: "an agent's change is seen", figure: p95, goal: MOST_SEEN, note: `p95 in ms, median ${median(seen).toFixed(0)} ms` });

// From the navigation to the second frame with the board, beside the same bytes fetched and parsed by the same page.
await context.addInitScript(() => {
  new MutationObserver((_, observer) => {
    if (!document.querySelector(".react-flow__pane")) return;
    observer.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => Object.assign(globalThis, { opened: performance.now() })));
  }).observe(document, { childList: true, subtree: true });
});
const openings: { time: number; ratio: number }[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  await page.reload();
  // Nothing looks into the page while it is opening.
  await page.waitForTimeout(1500);
  await page.waitForFunction(() => "opened" in globalThis);
  await isLive(page);
  await page.waitForTimeout(1000);
  openings.push(
    await page.evaluate(async (address) => {
      const time = (globalThis as unknown as { opened: number }).opened;
      const start = performance.now();
      await (await fetch(address, { cache: "no-store" })).json();
      return { time, ratio: time / (performance.now() - start) };
    }, path(canvas, "")),
  );
}
const opening = median(openings.map(({ time }) => time));
rows.push({ what: "open", figure: median(openings.map(({ ratio }) => ratio)), goal: MOST_OPENING, note: `${opening.toFixed(0)} ms` });
await browser.close();

for (const { what, figure, goal, note } of rows) {
  console.log(`${what.padEnd(28)} ${figure.toFixed(2).padStart(6)} of ${goal}   ${note}${figure > goal ? "   MISSED" : ""}`);
}
if (rows.some(({ figure, goal }) => figure > goal)) process.exitCode = 1;
