/** Words of the contract, which no person should have to read. */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

/** Thirty of them, and everything with an underscore. */
export const WORDS = [
  "operation", "operations", "stand-in", "stand-ins", "finding", "findings", "node", "nodes", "handle", "handles", "revision", "finalizing",
  "queued", "managed", "provenance", "metadata", "idempotency", "payload", "endpoint", "json", "job", "jobs", "slot", "slots", "capability",
  "actor", "graph", "undefined", "null", "nan",
] as const;

/** Those that are seen on a page, with where. What people have written, and code that is to be copied, is not looked at. */
export const wordsOn = (page: Page): Promise<string[]> =>
  page.evaluate((words) => {
    const WRITTEN = "code, pre, textarea, bdi, [dir=auto], [role=treeitem], .unseen, option[value]";
    const pattern = new RegExp(`(?<![\\w:/#.-])(${words.join("|")})(?![\\w:/-])|[a-z]+_[a-z]+`, "gi");
    const found = new Set<string>();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      const parent = text.parentElement;
      if (!parent || parent.closest(WRITTEN) || !parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      for (const [word] of (text.nodeValue ?? "").matchAll(pattern)) found.add(`${word}: ${text.nodeValue?.trim().slice(0, 80)}`);
    }
    return [...found];
  }, WORDS);

export async function hasNoWords(page: Page, screen: string): Promise<void> {
  assert.deepEqual(await wordsOn(page), [], `words of the contract on ${screen}`);
}
