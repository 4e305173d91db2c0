/** A drag on the Stage. */
import type { PointerEvent, RefObject } from "react";

/** The drag that is under way. */
export interface Grab {
  gesture: string;
  /** Ends it before the pointer is released. */
  drop: () => void;
}

/**
 * Follows the pointer that was pressed until it is released, or Escape drops the drag. Not for a second finger.
 * `end`: called once, with whether the pointer was released.
 */
export function grab(event: PointerEvent, grabRef: RefObject<Grab | undefined>, move: (next: globalThis.PointerEvent, gesture: string) => void, end: (isReleased: boolean) => void = () => {}): void {
  if (event.button !== 0 || !event.isPrimary) return;
  event.preventDefault();
  event.currentTarget.setPointerCapture(event.pointerId);
  const stop = new AbortController();
  const ended = (isReleased: boolean) => {
    stop.abort();
    grabRef.current = undefined;
    end(isReleased);
  };
  const gesture = crypto.randomUUID();
  grabRef.current = { gesture, drop: () => ended(false) };
  const isOwn = ({ pointerId }: globalThis.PointerEvent) => pointerId === event.pointerId;
  addEventListener("pointermove", (next) => isOwn(next) && move(next, gesture), { signal: stop.signal });
  addEventListener("pointerup", (next) => isOwn(next) && ended(true), { signal: stop.signal });
  addEventListener("pointercancel", (next) => isOwn(next) && ended(false), { signal: stop.signal });
}
