/** Panning and zooming of what lies in a frame, by mouse, trackpad and touch. */
import { type PointerEvent, useEffect, useEffectEvent, useRef, useState } from "react";
import { type Box, fit, pan, type Point, type Size, type View, zoom } from "../view.ts";

/** A wheel's pixels that double the scale. */
const WHEEL_DOUBLES = 300;
export const ZOOM_STEP = 1.25;

interface Options {
  /** Whether a wheel zooms without the control key. */
  isWheelZoom?: boolean;
  /** The room around what is shown as a whole. */
  margin?: Size;
  /** The largest scale at which all of it is shown. */
  most?: number;
  /** One finger, and the first button of a mouse, are for what lies in the frame: two fingers zoom, and the middle button pans. */
  isTool?: boolean;
  /** While this stays the same, so does the part that is shown. */
  of?: unknown;
}

const middle = ({ width, height }: Size): Point => ({ x: width / 2, y: height / 2 });

/** A frame with several parts of one size, each `data-pane`, shows the same part of the plane in all of them. */
export function usePanZoom(box: Box, { isWheelZoom = false, margin, most, isTool = false, of }: Options = {}) {
  const [frame, setFrame] = useState<HTMLElement | null>(null);
  const [screen, setScreen] = useState<Size>();
  /** Where a person moved the view. Until then everything is shown, also while it grows or the window changes. */
  const [moved, setMoved] = useState<{ view: View; of: unknown }>();
  const pointers = useRef(new Map<number, Point>());
  const isMoved = moved !== undefined && moved.of === of;
  const view = isMoved ? moved.view : screen && fit(box, screen, margin, most);

  useEffect(() => {
    if (!frame) return;
    const pane = () => frame.querySelector<HTMLElement>("[data-pane]") ?? frame;
    const measure = () => {
      const { clientWidth: width, clientHeight: height } = pane();
      setScreen((before) => (before?.width === width && before.height === height ? before : { width, height }));
    };
    const observer = new ResizeObserver(measure);
    observer.observe(frame);
    // Parts come and go.
    const parts = new MutationObserver(measure);
    parts.observe(frame, { childList: true, subtree: true });
    return () => {
      observer.disconnect();
      parts.disconnect();
    };
  }, [frame]);

  function show(next: (view: View, screen: Size) => View) {
    if (!screen) return;
    // Several moves can happen between two frames.
    setMoved((moved) => ({ view: pan(next(moved && moved.of === of ? moved.view : fit(box, screen, margin, most), screen), { x: 0, y: 0 }, box, screen), of }));
  }

  const panBy = (x: number, y: number) => show((view, screen) => pan(view, { x, y }, box, screen));
  /** `point` of the frame stays where it is, and in the other parts the same place. */
  const zoomBy = (factor: number, point?: Point) =>
    show((view, screen) => zoom(view, point ? { x: point.x % Math.max(screen.width, 1), y: point.y % Math.max(screen.height, 1) } : middle(screen), factor));
  const zoomTo = (scale: number) => show((view, screen) => zoom(view, middle(screen), scale / view.scale));
  const showAll = () => setMoved(undefined);

  const pointOf = (event: { clientX: number; clientY: number }): Point => {
    const { left = 0, top = 0 } = frame?.getBoundingClientRect() ?? {};
    return { x: event.clientX - left, y: event.clientY - top };
  };

  const wheel = useEffectEvent((event: WheelEvent) => {
    event.preventDefault();
    // Then it is for a tool.
    if (event.altKey) return;
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.ctrlKey || event.metaKey || isWheelZoom) {
      // A pinch on a trackpad is a wheel with the control key, in small steps.
      const speed = Math.abs(event.deltaY) < 20 && event.ctrlKey ? 4 : 1;
      zoomBy(2 ** ((-event.deltaY * unit * speed) / WHEEL_DOUBLES), pointOf(event));
    } else {
      const [x, y] = event.shiftKey && event.deltaX === 0 ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
      panBy(-x * unit, -y * unit);
    }
  });
  useEffect(() => {
    // React's own listener is passive: it cannot keep the page from zooming.
    const listener = (event: WheelEvent) => wheel(event);
    frame?.addEventListener("wheel", listener, { passive: false });
    return () => frame?.removeEventListener("wheel", listener);
  }, [frame]);

  function press(event: PointerEvent<HTMLElement>) {
    const isOwn = isTool ? event.pointerType === "touch" || event.button === 1 : event.button === 0;
    if (!isOwn || (event.target as HTMLElement).closest("button, input, video")) return;
    // A tool has captured a finger.
    if (event.button === 1 || !isTool) event.currentTarget.setPointerCapture(event.pointerId);
    pointers.current.set(event.pointerId, pointOf(event));
  }

  function drag(event: PointerEvent<HTMLElement>) {
    const before = pointers.current.get(event.pointerId);
    if (!before) return;
    const now = pointOf(event);
    const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
    pointers.current.set(event.pointerId, now);
    if (other) {
      // Two fingers: each move changes the distance to the other one.
      const distance = (point: Point) => Math.max(Math.hypot(point.x - other.x, point.y - other.y), 1);
      zoomBy(distance(now) / distance(before), other);
    } else if (!isTool || event.pointerType !== "touch") {
      panBy(now.x - before.x, now.y - before.y);
    }
  }

  const release = (event: PointerEvent) => void pointers.current.delete(event.pointerId);
  const handlers = { onPointerDown: press, onPointerMove: drag, onPointerUp: release, onPointerCancel: release };
  return { setFrame, screen, view, isMoved, panBy, zoomBy, zoomTo, showAll, pointOf, handlers };
}
