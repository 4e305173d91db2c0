/** A finger that rests on something. */

/** How long it rests, in milliseconds, and how far it may move meanwhile, in pixels. */
const LONG = 450;
const STILL = 8;

/** Calls `held` unless the finger that was put down moves or is lifted before, or another one is put down. */
export function onHold({ clientX, clientY }: { clientX: number; clientY: number }, held: () => void): void {
  const stop = new AbortController();
  const timer = setTimeout(() => {
    stop.abort();
    held();
  }, LONG);
  const end = () => {
    clearTimeout(timer);
    stop.abort();
  };
  const move = (event: PointerEvent) => Math.hypot(event.clientX - clientX, event.clientY - clientY) > STILL && end();
  addEventListener("pointermove", move, { signal: stop.signal, capture: true });
  for (const type of ["pointerup", "pointercancel", "pointerdown"]) addEventListener(type, end, { signal: stop.signal, capture: true });
}
