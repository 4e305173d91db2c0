/** Addresses of pages, and what a person pastes to sign in. */
import type { Credential } from "./api.ts";

export const canvasPath = (canvas: { ownerUid: string; id: string }): string => `/c/${canvas.ownerUid}/${canvas.id}`;

/** The page of a canvas that shows these nodes, or those that these runs filled. */
export const showPath = (canvas: { ownerUid: string; id: string }, handles: string[]): string =>
  `${canvasPath(canvas)}?show=${handles.slice(0, 50).map(encodeURIComponent).join(",")}`;

/** The page of a canvas on which another attempt at a run can be started. */
export const attemptPath = (canvas: { ownerUid: string; id: string }, run: string): string => `${showPath(canvas, [run])}&again`;

export const isAttempt = (search: string): boolean => new URLSearchParams(search).has("again");

/** What names a canvas in its handle. */
export function canvasOf(handle: string): { ownerUid: string; id: string } {
  const [, ownerUid = "", id = ""] = handle.split(":");
  return { ownerUid, id };
}

/** The handles in the address of a canvas page. */
export const shownIn = (search: string): string[] => new URLSearchParams(search).get("show")?.split(",") ?? [];

/** The sign-in page that leads back to `path`. */
export const signInPath = (path: string): string => (path === "/" ? "/signin" : `/signin?next=${encodeURIComponent(path)}`);

/** Where to go after signing in: the path in `next` if it is one of this origin, else the start page. */
export function returnPath(search: string, origin: string): string {
  const next = new URLSearchParams(search).get("next");
  if (!next?.startsWith("/") || !URL.canParse(next, origin)) return "/";
  const url = new URL(next, origin);
  return url.origin === origin && !/^\/signin(\/|$)/.test(url.pathname) ? url.pathname + url.search : "/";
}

const LINK = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** The one-time link in the fragment of a sign-in address. */
export function linkOf(fragment: string): string | undefined {
  const link = fragment.replace(/^#/, "");
  return LINK.test(link) ? link : undefined;
}

/** Reads what a person pasted: a token, a sign-in link, or the part of it after `#`. */
export function credentialOf(text: string): Credential | undefined {
  const pasted = text.trim();
  if (/^cba_\S+$/.test(pasted)) return { token: pasted };
  const link = linkOf(pasted.slice(pasted.indexOf("#") + 1));
  return link === undefined ? undefined : { link };
}
