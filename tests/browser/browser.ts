/**
 * A browser for each case. These are failures in every case: an error on the console, an exception, a report of the content security
 * policy, a request that leaves the origin, a response of status 400 or more that the case does not expect, and a fault of the layout
 * (geometry.ts) or a serious violation that axe finds on a page at the end of the case, or whenever the case asks.
 */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { env } from "node:process";
import { after, test } from "node:test";
import { isDeepStrictEqual } from "node:util";

import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";

import { launch } from "./chromium.ts";
import { isLaidOut } from "./geometry.ts";
import { BASE_URL } from "./service.ts";

const SCREENSHOTS = env["CANVAS_SCREENSHOTS"] ?? join(import.meta.dirname, "../../.local/browser/screenshots");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const ORIGIN = new URL(BASE_URL).origin;

/** Started by the first case: with --test-name-pattern a file may have none, and Node then runs `before` without `after`. */
let started: Promise<Browser> | undefined;
const browser = (): Promise<Browser> => {
  mkdirSync(SCREENSHOTS, { recursive: true });
  started ??= launch();
  return started;
};
after(async () => (await started)?.close());

/** What a case works with. */
export interface Scene {
  page: Page;
  /** Another tab of the same browser. */
  open: () => Promise<Page>;
  /** Expects a response, such as "401 GET /console/session", which may also not come. */
  expect: (...responses: string[]) => void;
  /** Permits another origin: that of a service which the case itself starts. */
  permit: (origin: string) => void;
  /** Does something when the case has ended, however it ended. */
  afterwards: (task: () => Promise<void>) => void;
  /** Another person at another browser, or on another device. */
  guest: (device?: BrowserContextOptions) => Promise<Page>;
  /** Asserts that the layout has no fault, that every image has an alternative text, and that axe finds nothing serious now, in light and in dark. At the end of the case that is done for every open page. */
  isAccessible: () => Promise<void>;
}

/** Nobody is signed in when a page asks who is. */
export const NOBODY = "401 GET /console/session";

export function scene(name: string, run: (scene: Scene) => Promise<void>, seconds = 90): void {
  test(name, { timeout: seconds * 1000 }, async () => {
    const watch = new Watch();
    const contexts: BrowserContext[] = [];
    const tasks: (() => Promise<void>)[] = [];
    const visit = async (device: BrowserContextOptions = {}): Promise<Page> => {
      const context = await (await browser()).newContext({ baseURL: BASE_URL, reducedMotion: "reduce", viewport: { width: 1280, height: 800 }, ...device });
      contexts.push(context);
      await watch.attach(context);
      return context.newPage();
    };
    const page = await visit();
    try {
      await run({
        page,
        open: () => page.context().newPage(),
        guest: visit,
        afterwards: (task) => tasks.push(task),
        expect: (...responses) => responses.forEach((response) => watch.expected.add(response)),
        permit: (origin) => watch.origins.add(origin),
        isAccessible: () => isSound(page),
      });
      for (const one of contexts.flatMap((context) => context.pages())) if (one.url() !== "about:blank") await isSound(one);
      assert.deepEqual(watch.faults, []);
    } catch (error) {
      if (watch.faults.length > 0) console.error(watch.faults.join("\n"));
      throw error;
    } finally {
      if (!page.isClosed()) await page.screenshot({ path: join(SCREENSHOTS, `${name.replaceAll(/\W+/g, "-")}.png`) });
      for (const context of contexts) await context.close();
      for (const task of tasks) await task();
    }
  });
}

/** Reads until the answer is as expected, for at most 10 s: a page shows a change some frames after the event that causes it. */
export async function becomes<T>(read: () => Promise<T>, expected: T, message?: string): Promise<void> {
  const end = Date.now() + 10_000;
  let found = await read();
  while (!isDeepStrictEqual(found, expected) && Date.now() < end) {
    await new Promise((resume) => setTimeout(resume, 50));
    found = await read();
  }
  assert.deepEqual(found, expected, message);
}

/** Collects what is a failure in every case. */
class Watch {
  readonly faults: string[] = [];
  readonly expected = new Set<string>();
  readonly origins = new Set([ORIGIN]);
  #isLeaving = false;

  async attach(context: BrowserContext): Promise<void> {
    context.setDefaultTimeout(15_000);
    context.on("request", (request) => {
      const { protocol, origin, pathname } = new URL(request.url());
      // From a sign-out to the next sign-in.
      if (pathname.startsWith("/console/session") && request.method() !== "GET") this.#isLeaving = request.method() === "DELETE";
      if (protocol !== "blob:" && !this.origins.has(origin)) this.faults.push(`a request left the origin: ${request.url()}`);
    });
    context.on("response", (response) => {
      // An image that is not ready yet is asked for again.
      if (response.status() === 503 && /\/(render|content)\?/.test(response.url())) return;
      const method = response.request().method();
      // What the page shows may be asked for in the moment of a sign-out.
      if (this.#isLeaving && response.status() === 401 && method === "GET") return;
      const what = `${response.status()} ${method} ${new URL(response.url()).pathname}`;
      if (response.status() >= 400 && !this.expected.has(what)) this.faults.push(`an unexpected response: ${what}`);
    });
    context.on("console", (message) => {
      // The browser reports each response of status 400 or more, which is checked above, and each request that was not answered.
      const isReport = /^Failed to load resource: (the server responded|net::ERR_)/.test(message.text());
      if (["error", "warning"].includes(message.type()) && !isReport) this.faults.push(`console: ${message.text()}`);
    });
    context.on("weberror", (error) => this.faults.push(`exception: ${String(error.error())}`));
    await context.exposeBinding("reportViolation", (_, directive: string) => void this.faults.push(`content security policy: ${directive}`));
    await context.addInitScript(() => {
      const { reportViolation } = globalThis as unknown as { reportViolation: (directive: string) => void };
      addEventListener("securitypolicyviolation", (event) => reportViolation(`${event.violatedDirective} ${event.blockedURI}`));
    });
  }
}

async function isSound(page: Page): Promise<void> {
  await isLaidOut(page);
  await isAccessible(page);
}

async function isAccessible(page: Page): Promise<void> {
  const undescribed = page.locator('img:not([alt]), img[alt=""]:not([aria-hidden="true"])');
  assert.deepEqual(await undescribed.evaluateAll((images) => images.map(({ outerHTML }) => outerHTML)), [], `${page.url()}: images without alternative text`);
  await page.evaluate(AXE);
  for (const colorScheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme });
    // Of the rules, those about colors alone depend on the scheme.
    const runOnly = colorScheme === "light" ? undefined : { type: "rule", values: ["color-contrast", "link-in-text-block"] };
    const found = await page.evaluate(async (options) => {
      const { axe } = globalThis as unknown as { axe: { run: (options: object) => Promise<{ violations: Violation[] }> } };
      return (await axe.run(options)).violations;
    }, { resultTypes: ["violations"], ...(runOnly && { runOnly }) });
    const serious = found.filter(({ impact }) => impact === "serious" || impact === "critical");
    assert.deepEqual(serious.map(describe), [], `${page.url()} in ${colorScheme}`);
  }
}

interface Violation {
  id: string;
  impact: string | null;
  help: string;
  nodes: { html: string; failureSummary?: string }[];
}

const describe = ({ id, help, nodes }: Violation) => `${id}: ${help}: ${nodes.map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary ?? ""}`).join(" | ")}`;
