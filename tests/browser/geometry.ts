/**
 * Finds what a person cannot reach or read on a page, as it is laid out now. Nothing of it depends on words or on colors, so it is asked at
 * the end of every case, and of every screen that `run --review` shows.
 */
import assert from "node:assert/strict";

import type { Page } from "playwright-core";

/** What is permitted to break a rule, and why. */
const EXCEPT: readonly [rule: Rule, selector: string, reason: string][] = [
  ["text", ".react-flow__viewport *", "the board scales it"],
  ["text", ".react-flow__attribution *", "the name of the library is no text of this application"],
  ["target", ".react-flow__attribution *", "the same"],
  ["text", "svg *", "a drawing"],
  ["outside", "a[href='#content']", "it comes into view when it has the keyboard"],
];

type Rule = "outside" | "covered" | "text" | "target" | "cards" | "focus" | "direction";

/** The faults of a page, each with its rule. */
export const faultsOf = (page: Page): Promise<string[]> =>
  page.evaluate((except) => {
    const CONTROLS = "button, a[href], input, select, textarea, summary, [role=menuitem], [role=option], [role=treeitem], [role=slider]";
    /** What lies over the page for a moment, or is a sheet over it. */
    const OVERLAYS = "dialog, [popover], [role=menu], [role=listbox], aside, search";
    /** What may be scrolled sideways. */
    const SIDEWAYS = "nav, pre, [role=toolbar], [role=search] > div";
    const TOLERANCE = 1;
    const faults = new Set<string>();
    const modal = [...document.querySelectorAll("dialog:modal")].at(-1);
    const isExcepted = (rule: string, element: Element) => except.some(([of, selector]) => of === rule && element.matches(selector));
    const name = (element: Element) =>
      `${element.localName} “${(element.getAttribute("aria-label") ?? ((element as HTMLInputElement).labels?.[0]?.textContent || element.textContent || "")).trim().replaceAll(/\s+/g, " ").slice(0, 40)}”`;
    const report = (rule: string, element: Element, what: string) => isExcepted(rule, element) || faults.add(`${rule}: ${name(element)} ${what}`);
    const isInPlane = (element: Element) => element.closest(".react-flow__viewport") !== null;
    const isSeen = (element: Element) => {
      const { width, height } = element.getBoundingClientRect();
      return width > 1 && height > 1 && element.closest(".unseen") === null && element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    };
    /** A check box is hit through its label. */
    const targetOf = (control: Element): Element => (control.matches("[type=checkbox], [type=radio]") ? (control.closest("label") ?? control) : control);
    const clips = ({ overflowX }: CSSStyleDeclaration) => overflowX !== "visible";
    const scrolls = (element: Element) => element.scrollHeight > element.clientHeight + TOLERANCE && /auto|scroll/.test(getComputedStyle(element).overflowY);
    const scrollsSideways = (element: Element) => element.matches(SIDEWAYS) && element.scrollWidth > element.clientWidth + TOLERANCE && /auto|scroll/.test(getComputedStyle(element).overflowX);
    function ancestors(element: Element, end: Element): Element[] {
      const found: Element[] = [];
      for (let at: Element | null = element; at && at !== end; at = at.parentElement) found.push(at);
      return found;
    }
    const stays = (element: Element, frame: Element) => ancestors(element, frame).some((one) => /sticky|fixed/.test(getComputedStyle(one).position));
    const isRoot = (element: Element) => element === document.documentElement || element === document.body;
    /** The ancestors that cut off what is beyond them, up to the first one that scrolls to it. */
    const framesOf = (element: Element) => {
      const frames: Element[] = [];
      let { position } = getComputedStyle(element);
      for (let at = element.parentElement; at && !isRoot(at) && position !== "fixed" && !at.matches("dialog:modal, :popover-open"); at = at.parentElement) {
        const style = getComputedStyle(at);
        // What is positioned in an ancestor is not cut off by those between.
        if (clips(style) && (position !== "absolute" || style.position !== "static")) {
          frames.push(at);
          if (scrolls(at) || scrollsSideways(at)) break;
        }
        if (position !== "absolute" || style.position !== "static") position = style.position;
      }
      return frames;
    };
    const isScrolledPage = document.documentElement.scrollHeight > innerHeight + TOLERANCE;

    const controls = new Map<Element, Element>();
    for (const control of (modal ?? document).querySelectorAll(CONTROLS)) {
      const target = targetOf(control);
      if (!control.closest("[inert], [aria-hidden=true]") && isSeen(target)) controls.set(target, control);
    }
    const controlAt = (element: Element | null): Element | undefined => {
      for (let at = element; at; at = at.parentElement) if (controls.has(at)) return at;
      return undefined;
    };

    for (const target of controls.keys()) {
      if (isInPlane(target)) continue;
      const box = target.getBoundingClientRect();
      const frames = framesOf(target);
      let isInFrames = true;
      for (const frame of frames) {
        const { left, top } = frame.getBoundingClientRect();
        const [right, bottom] = [left + frame.clientLeft + frame.clientWidth, top + frame.clientTop + frame.clientHeight];
        const isBeside = box.left < left - TOLERANCE || box.right > right + TOLERANCE;
        const isBeyond = box.top < top - TOLERANCE || box.bottom > bottom + TOLERANCE;
        if ((isBeside && !frame.matches(SIDEWAYS)) || (isBeyond && !scrolls(frame))) report("outside", target, `reaches beyond ${name(frame).slice(0, 60)}`);
        isInFrames &&= box.left + box.width / 2 < right && box.left + box.width / 2 > left && box.top + box.height / 2 < bottom && box.top + box.height / 2 > top;
      }
      if (!frames.some((frame) => frame.matches(SIDEWAYS)) && (box.left < -TOLERANCE || box.right > innerWidth + TOLERANCE)) report("outside", target, "reaches beyond the window");
      const isHere = box.top + box.height / 2 > 0 && box.top + box.height / 2 < innerHeight;
      if (!isHere && !isScrolledPage && !frames.some(scrolls)) report("outside", target, "is beyond the window");

      // Links within a sentence have the height of its lines.
      const isInline = target.matches("a") && getComputedStyle(target).display === "inline";
      if (!isInline && Math.min(box.width, box.height) < 24 - TOLERANCE / 2) report("target", target, `is ${Math.round(box.width)} × ${Math.round(box.height)}`);

      if (!isHere || !isInFrames) continue;
      const hit = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      const other = controlAt(hit) ?? hit?.closest("[data-card]");
      if (!other || other === target || other.contains(target) || target.contains(other)) continue;
      const overlay = other.closest(OVERLAYS);
      if (overlay && !overlay.contains(target)) continue;
      // What scrolls goes under what stays.
      const moves = frames.some((frame) => (scrolls(frame) || scrollsSideways(frame)) && (!frame.contains(other) || stays(other, frame))) || (isScrolledPage && stays(other, document.body));
      if (!moves) report("covered", target, `is covered by ${name(other)}`);
    }

    if (document.documentElement.scrollWidth > innerWidth + TOLERANCE) faults.add(`outside: the page is ${document.documentElement.scrollWidth} wide in a window of ${innerWidth}`);

    const RTL = /^[^\p{L}]*[\p{Script=Arabic}\p{Script=Hebrew}]/u;
    const texts = document.createTreeWalker(modal ?? document.body, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      const parent = text.parentElement;
      if (!parent || !text.nodeValue?.trim() || !isSeen(parent)) continue;
      const { fontSize } = getComputedStyle(parent);
      if (Number.parseFloat(fontSize) < 11) report("text", parent, `is ${fontSize}`);
      if (!RTL.test(text.nodeValue)) continue;
      const clip = ancestors(parent, document.body).find((one) => getComputedStyle(one).textOverflow === "ellipsis" && clips(getComputedStyle(one)));
      if (clip && RTL.test(clip.textContent ?? "") && clip.scrollWidth > clip.clientWidth + TOLERANCE && getComputedStyle(clip).direction === "ltr") report("direction", clip, "is cut off at its beginning");
    }

    /** The box of what is seen of an element. */
    const seenOf = (element: Element) => {
      const box = element.getBoundingClientRect();
      const boxes = [box, ...framesOf(element).map((frame) => frame.getBoundingClientRect())];
      const [left, top] = [Math.max(...boxes.map((one) => one.left)), Math.max(...boxes.map((one) => one.top))];
      return { left, top, right: Math.min(...boxes.map((one) => one.right)), bottom: Math.min(...boxes.map((one) => one.bottom)) };
    };
    const cards = [...document.querySelectorAll("[data-card]"), ...document.querySelectorAll("[role=toolbar]")].filter(isSeen);
    for (const [index, card] of cards.entries()) {
      const a = seenOf(card);
      for (const other of cards.slice(index + 1)) {
        const b = seenOf(other);
        const isOver = a.left < b.right - TOLERANCE && b.left < a.right - TOLERANCE && a.top < b.bottom - TOLERANCE && b.top < a.bottom - TOLERANCE;
        if (isOver && !card.contains(other) && !other.contains(card)) report("cards", card, `lies over ${name(other)}`);
      }
    }

    const focused = document.activeElement;
    if (focused?.matches(CONTROLS) && isSeen(focused) && !isInPlane(focused)) {
      const { left, right, top, bottom } = focused.getBoundingClientRect();
      if (right < 1 || bottom < 1 || left > innerWidth - 1 || top > innerHeight - 1) report("focus", focused, "has the keyboard out of view");
    }
    return [...faults];
  }, EXCEPT.map(([rule, selector]) => [rule, selector] as const));

/** Asserts that the page has no fault. */
export async function isLaidOut(page: Page): Promise<void> {
  assert.deepEqual(await faultsOf(page), [], `${page.url()}: layout`);
}
