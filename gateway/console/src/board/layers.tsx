/** What is drawn on canvas elements: the board from far away, and the small image of the whole. */
import { memo, type PointerEvent, useCallback, useEffect, useEffectEvent, useLayoutEffect, useRef, useState } from "react";
import type { Graph } from "../sync/graph.ts";
import { onTheme } from "../ui/hooks.ts";
import { Icon } from "../ui/parts.tsx";
import type { Camera } from "./camera.ts";
import { drawnIn, drawOverview, lookOf, MinimapImage, MINIMAP, prepared, type Scene } from "./overview.ts";
import type { SpatialIndex } from "./spatial.ts";
import styles from "./surface.module.css";

/** Calls `draw` before the next frame: after every render, whenever the view moves, when the colors change, and when it asks for it. */
function useDrawing(camera: Camera, draw: (redraw: () => void) => void): void {
  const request = useRef(0);
  const latest = useEffectEvent(draw);
  const [run] = useState(() => ({ now: () => {} }));
  const redraw = useCallback(() => {
    cancelAnimationFrame(request.current);
    request.current = requestAnimationFrame(() => run.now());
  }, [run]);
  useEffect(() => {
    Object.assign(run, { now: () => latest(redraw) });
    redraw();
  });
  useEffect(() => {
    const stopTheme = onTheme(redraw);
    const stop = camera.subscribe(redraw);
    return () => {
      stopTheme();
      stop();
      cancelAnimationFrame(request.current);
    };
  }, [camera, redraw]);
}

/** The distance of the dots, in pixels at full size. */
const DOTS = 24;

/** Dots that move with the plane. They are one layer, which is painted again only when the scale changes. */
export function Dots({ camera }: { camera: Camera }) {
  const dots = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const place = () => {
      const { x, y, zoom } = camera.view;
      // A distance that is never too small to see.
      const step = DOTS * zoom * 2 ** Math.max(0, Math.ceil(-Math.log2(zoom * 1.5)));
      const { style } = dots.current as HTMLDivElement;
      style.inset = `${-step}px`;
      style.backgroundSize = `${step}px ${step}px`;
      style.transform = `translate(${x % step}px, ${y % step}px)`;
    };
    place();
    return camera.subscribe(place);
  }, [camera]);
  return <div ref={dots} className={styles.dots} />;
}

export const Overview = memo(function Overview({ camera, scene }: { camera: Camera; scene: Scene }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const isEmpty = useRef(true);
  const isFirst = useRef(true);
  useDrawing(camera, (redraw) => {
    const element = canvas.current;
    const nodes = drawnIn(scene, camera.seen);
    // An empty canvas that stays so is not composited again.
    if (!element || (nodes.length === 0 && isEmpty.current)) return;
    isEmpty.current = nodes.length === 0;
    const context = prepared(element, camera.screen);
    // The lines and images of a board come a frame after its nodes.
    if (context) drawOverview(context, scene, nodes, camera.view, camera.seen, lookOf(element), isFirst.current, redraw);
    if (isFirst.current) redraw();
    isFirst.current = false;
  });
  return <canvas ref={canvas} className={styles.overview} aria-hidden="true" />;
});

/** How long the small map may be behind the board, in milliseconds. */
const MAP_REST = 100;

export const Minimap = memo(function Minimap({ camera, graph, index }: { camera: Camera; graph: Graph; index: SpatialIndex }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [image] = useState(() => new MinimapImage());
  const [isOpen, setIsOpen] = useState(false);
  const painting = useRef<ReturnType<typeof setTimeout>>(undefined);
  useDrawing(camera, (redraw) => {
    const element = canvas.current;
    const context = element && prepared(element, MINIMAP);
    if (!context) return;
    const look = lookOf(element);
    // The frames that show a board or a change of it do not wait for the map of the whole.
    if (!image.isOf(index, look)) {
      painting.current ??= setTimeout(() => {
        painting.current = undefined;
        image.paint(graph, index, look);
        redraw();
      }, MAP_REST);
    }
    image.draw(context, camera.seen, look);
    element.toggleAttribute("data-whole", image.isWhole(camera.seen));
  });

  useEffect(
    () => () => {
      clearTimeout(painting.current);
      painting.current = undefined;
    },
    [],
  );

  function goTo(event: PointerEvent<HTMLCanvasElement>) {
    if (event.buttons !== 1) return;
    const { left, top } = event.currentTarget.getBoundingClientRect();
    camera.center(image.toPlane({ x: event.clientX - left, y: event.clientY - top }));
    camera.keep();
  }

  return (
    <>
      {/* On a small board. It is for the pointer, as the map is. */}
      <button type="button" className={styles.mapButton} aria-hidden="true" tabIndex={-1} title="Map of the canvas" onClick={() => setIsOpen(!isOpen)}>
        <Icon name="section" size={18} />
      </button>
      <canvas
        ref={canvas}
        className={styles.minimap}
        data-open={isOpen || undefined}
        aria-hidden="true"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          goTo(event);
        }}
        onPointerMove={goTo}
      />
    </>
  );
});
