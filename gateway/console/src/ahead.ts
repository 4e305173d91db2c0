/**
 * Begins to read the canvas of the address before it is known who is signed in, and before the application has started. It is only done
 * in a browser in which somebody was signed in at last; that is a hint, and no credential.
 */
import { transportOf } from "./api.ts";
import type { Canvas } from "./sync/types.ts";

const HINT = "canvas.signed-in";

let ahead: { canvas: string; answer: Promise<Canvas> } | undefined;

export function remember(isSignedIn: boolean): void {
  if (isSignedIn) localStorage.setItem(HINT, "yes");
  else localStorage.removeItem(HINT);
}

/** Forgets the answer: it was for who was signed in before. */
export function forget(): void {
  ahead = undefined;
}

export function readAhead(path: string): void {
  const [, owner, id] = /^\/c\/([\w-]+)\/([\w-]+)$/.exec(path) ?? [];
  if (owner === undefined || id === undefined || localStorage.getItem(HINT) === null) return;
  const canvas = `canvas:${owner}:${id}`;
  ahead = { canvas, answer: transportOf(canvas).read() };
  ahead.answer.catch(forget);
  void import("./board/editor.tsx");
}

/** The answer that was asked for, once. */
export function takeAhead(canvas: string): Promise<Canvas> | undefined {
  const answer = ahead?.canvas === canvas ? ahead.answer : undefined;
  forget();
  return answer;
}
