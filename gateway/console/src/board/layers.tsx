/** What is drawn on canvas elements: the board from far away, and the small picture of the whole. */
import { type PointerEvent, useCallback, useEffect, useEffectEvent, useRef, useState } from "react";
import type { Graph } from "../sync/graph.ts";
import type { Camera } from "./camera.ts";
import { drawOverview, lookOf, MinimapPicture, MINIMAP, prepared, type Scene } from "./overview.ts";
import type { SpatialIndex } from "./spatial.ts";
import styles from "./surface.module.css";

/** Calls `draw` before the next frame: after every render, whenever the view moves, and when the colors change. */
function useDrawing(camera: Camera, draw: () => void): () => void {
  const request = useRef(0);
  const latest = useEffectEvent(draw);
  const [run] = useState(() => ({ now: () => {} }));
  const redraw = useCallback(() => {
    cancelAnimationFrame(request.current);
    request.current = requestAnimationFrame(() => run.now());
  }, [run]);
  useEffect(() => {
    Object.assign(run, { now: () => latest() });
    redraw();
  });
  useEffect(() => {
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", redraw);
    const theme = new MutationObserver(redraw);
    theme.observe(document.documentElement, { attributeFilter: ["style"] });
    const stop = camera.subscribe(redraw);
    return () => {
      scheme.removeEventListener("change", redraw);
      theme.disconnect();
      stop();
      cancelAnimationFrame(request.current);
    };
  }, [camera, redraw]);
  return redraw;
}

export function Overview({ camera, scene }: { camera: Camera; scene: Scene }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [again] = useState(() => ({ draw: () => {} }));
  const redraw = useDrawing(camera, () => {
    const element = canvas.current;
    const context = element && prepared(element, camera.screen);
    if (context) drawOverview(context, scene, camera.view, camera.seen, lookOf(element), () => again.draw());
  });
  useEffect(() => void Object.assign(again, { draw: redraw }), [again, redraw]);
  return <canvas ref={canvas} className={styles.overview} aria-hidden="true" />;
}

export function Minimap({ camera, graph, index }: { camera: Camera; graph: Graph; index: SpatialIndex }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [picture] = useState(() => new MinimapPicture());
  useDrawing(camera, () => {
    const element = canvas.current;
    const context = element && prepared(element, MINIMAP);
    if (!context) return;
    picture.draw(context, graph, index, camera.seen, lookOf(element));
    element.toggleAttribute("data-whole", picture.isWhole(camera.seen));
  });

  function goTo(event: PointerEvent<HTMLCanvasElement>) {
    if (event.buttons !== 1) return;
    const { left, top } = event.currentTarget.getBoundingClientRect();
    camera.center(picture.toPlane({ x: event.clientX - left, y: event.clientY - top }));
    camera.keep();
  }

  return (
    <canvas
      ref={canvas}
      className={styles.minimap}
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        goTo(event);
      }}
      onPointerMove={goTo}
    />
  );
}
