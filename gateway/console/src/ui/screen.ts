/** What kind of screen the page is on. */
import { useSyncExternalStore } from "react";

/** As narrow as a phone. The style sheets have the same bound. */
const NARROW = "(width < 760px)";
const TOUCH = `${NARROW}, (pointer: coarse)`;

function mediaOf(query: string) {
  // Unit tests have no window.
  const is = () => globalThis.matchMedia?.(query).matches ?? false;
  const listen = (listener: () => void) => {
    const media = matchMedia(query);
    media.addEventListener("change", listener);
    return () => media.removeEventListener("change", listener);
  };
  return { is, use: () => useSyncExternalStore(listen, is) };
}

export const { is: isNarrow, use: useIsNarrow } = mediaOf(NARROW);
/** Whether controls are made for fingers. */
export const { use: useIsTouch } = mediaOf(TOUCH);

/** Keeps the height of what the keyboard of a touch screen covers as `--keyboard`: sheets end above it. */
export function followKeyboard(): void {
  const { visualViewport: seen } = globalThis;
  if (!seen) return;
  const follow = () => {
    // A page that is zoomed in shows a part of itself, and no keyboard.
    const covered = seen.scale > 1.01 ? 0 : Math.max(Math.round(innerHeight - seen.height - seen.offsetTop), 0);
    document.documentElement.style.setProperty("--keyboard", `${covered}px`);
  };
  for (const type of ["resize", "scroll"]) seen.addEventListener(type, follow);
}
