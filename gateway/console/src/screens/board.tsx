import { type KeyboardEvent, type PointerEvent, useEffect, useEffectEvent, useRef, useState } from "react";
import type { Drawing } from "../api.ts";
import { percent } from "../format.ts";
import { Button, Icon } from "../ui/parts.tsx";
import { type Box, fit, pan, type Point, type Size, type View, zoom } from "../view.ts";
import styles from "./board.module.css";

const STEP = 64;
const ZOOM_STEP = 1.25;
/** A wheel's pixels that double the scale. */
const WHEEL_DOUBLES = 300;

/** How long after the last zoom the image is drawn at its new size, in milliseconds. Until then the drawn one is stretched. */
const REST = 150;

/** A drawing that pans and zooms by mouse, trackpad, touch and keyboard. */
export function Board({ drawing, label }: { drawing: Drawing; label: string }) {
  const shown = useDecoded(drawing);
  const box = shown?.box ?? drawing.box;
  const frame = useRef<HTMLDivElement>(null);
  const [screen, setScreen] = useState<Size>();
  /** Where a person moved the image. Until then the whole canvas is shown, also while it grows or the window changes. */
  const [moved, setMoved] = useState<View>();
  const pointers = useRef(new Map<number, Point>());
  const view = moved ?? (screen && fit(box, screen));
  const drawn = useSettled(view?.scale);

  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setScreen({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  function show(next: (view: View, screen: Size) => View) {
    if (!screen) return;
    // Several moves can happen between two frames.
    setMoved((moved) => pan(next(moved ?? fit(box, screen), screen), { x: 0, y: 0 }, box, screen));
  }

  const panBy = (x: number, y: number) => show((view, screen) => pan(view, { x, y }, box, screen));
  const zoomBy = (factor: number, point?: Point) => show((view, screen) => zoom(view, point ?? middle(screen), factor));
  const showFullSize = () => show((view, screen) => zoom(view, middle(screen), 1 / view.scale));
  const showAll = () => setMoved(undefined);

  const wheel = useEffectEvent((event: WheelEvent) => {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.ctrlKey || event.metaKey) {
      // A pinch on a trackpad is a wheel with the control key, in small steps.
      const speed = Math.abs(event.deltaY) < 20 && event.ctrlKey ? 4 : 1;
      zoomBy(2 ** ((-event.deltaY * unit * speed) / WHEEL_DOUBLES), pointOf(event, frame.current));
    } else {
      const [x, y] = event.shiftKey && event.deltaX === 0 ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
      panBy(-x * unit, -y * unit);
    }
  });
  useEffect(() => {
    const element = frame.current;
    // React's own listener is passive: it cannot keep the page from zooming.
    const listener = (event: WheelEvent) => wheel(event);
    element?.addEventListener("wheel", listener, { passive: false });
    return () => element?.removeEventListener("wheel", listener);
  }, []);

  function press(event: PointerEvent<HTMLDivElement>) {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    pointers.current.set(event.pointerId, pointOf(event, frame.current));
  }

  function drag(event: PointerEvent<HTMLDivElement>) {
    const before = pointers.current.get(event.pointerId);
    if (!before) return;
    const now = pointOf(event, frame.current);
    const other = [...pointers.current].find(([id]) => id !== event.pointerId)?.[1];
    pointers.current.set(event.pointerId, now);
    if (other) {
      // Two fingers: each move changes the distance to the other one.
      const distance = (point: Point) => Math.max(Math.hypot(point.x - other.x, point.y - other.y), 1);
      zoomBy(distance(now) / distance(before), other);
    } else {
      panBy(now.x - before.x, now.y - before.y);
    }
  }

  const release = (event: PointerEvent) => pointers.current.delete(event.pointerId);

  function type(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = event.shiftKey ? STEP * 4 : STEP;
    const keys: Record<string, () => void> = {
      ArrowLeft: () => panBy(by, 0),
      ArrowRight: () => panBy(-by, 0),
      ArrowUp: () => panBy(0, by),
      ArrowDown: () => panBy(0, -by),
      "+": () => zoomBy(ZOOM_STEP),
      "=": () => zoomBy(ZOOM_STEP),
      "-": () => zoomBy(1 / ZOOM_STEP),
      "0": showAll,
      "1": showFullSize,
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  return (
    <div className={styles.board}>
      <div
        ref={frame}
        className={styles.frame}
        tabIndex={0}
        role="region"
        aria-label="Canvas"
        aria-describedby="board-keys"
        onKeyDown={type}
        onPointerDown={press}
        onPointerMove={drag}
        onPointerUp={release}
        onPointerCancel={release}
        onDoubleClick={(event) => zoomBy(event.shiftKey ? 0.5 : 2, pointOf(event, frame.current))}
      >
        {shown && view && drawn !== undefined && (
          <img
            src={shown.url}
            alt={label}
            draggable={false}
            className={styles.sheet}
            style={{
              width: box.width * drawn,
              height: box.height * drawn,
              transform: `translate(${Math.round(view.x + box.x * view.scale)}px, ${Math.round(view.y + box.y * view.scale)}px) scale(${view.scale / drawn})`,
            }}
          />
        )}
      </div>
      <p id="board-keys" className="unseen">
        Arrow keys move, plus and minus zoom, 0 shows the whole canvas, 1 shows it at full size. The outline has the same as text.
      </p>
      <div className={styles.zoom} role="group" aria-label="Zoom">
        <Button look="quiet" aria-label="Zoom out" title="Zoom out (−)" onClick={() => zoomBy(1 / ZOOM_STEP)}>
          <Icon name="minus" />
        </Button>
        <Button look="quiet" className={styles.scale} title="Full size (1)" onClick={showFullSize}>
          {percent(view?.scale ?? 1)}
        </Button>
        <Button look="quiet" aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoomBy(ZOOM_STEP)}>
          <Icon name="plus" />
        </Button>
        <Button look="quiet" aria-label="Show the whole canvas" title="Whole canvas (0)" onClick={showAll}>
          <Icon name="fit" />
        </Button>
      </div>
    </div>
  );
}

const middle = ({ width, height }: Size): Point => ({ x: width / 2, y: height / 2 });

function pointOf(event: { clientX: number; clientY: number }, frame: Element | null): Point {
  const { left = 0, top = 0 } = frame?.getBoundingClientRect() ?? {};
  return { x: event.clientX - left, y: event.clientY - top };
}

/** The scale at which the image is drawn: the last one that stayed for a moment, or that is too far from the one before. */
function useSettled(scale: number | undefined): number | undefined {
  const [settled, setSettled] = useState<number>();
  const isFar = scale !== undefined && (settled === undefined || scale > settled * 2 || scale < settled / 2);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(scale), isFar ? 0 : REST);
    return () => clearTimeout(timer);
  }, [scale, isFar]);
  return settled;
}

/** The newest drawing that the browser has decoded. Until then the previous one stays, so that nothing flickers. */
function useDecoded(drawing: Drawing): { url: string; box: Box } | undefined {
  const [shown, setShown] = useState<{ url: string; box: Box }>();
  useEffect(() => {
    const url = URL.createObjectURL(drawing.image);
    const image = new Image();
    image.src = url;
    let isCurrent = true;
    const swap = () => isCurrent && setShown({ url, box: drawing.box });
    image.decode().then(swap, swap);
    return () => {
      isCurrent = false;
      // It is shown until its successor is decoded.
      setTimeout(() => URL.revokeObjectURL(url), 30_000);
    };
  }, [drawing]);
  return shown;
}
