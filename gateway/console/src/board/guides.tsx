/** What is seen of a drag or a resize: the lines that something lies on, the gaps that are equal, and where a copy comes from. */
import { useEffect } from "react";
import type { Graph } from "../sync/graph.ts";
import type { Board, Ui } from "./board.ts";
import type { Camera } from "./camera.ts";
import styles from "./guides.module.css";
import { isSnapping } from "./snap.ts";
import { boxOf } from "./spatial.ts";

interface Props {
  board: Board;
  camera: Camera;
  graph: Graph;
  ui: Ui;
}

export function Guides({ board, camera, graph, ui }: Props) {
  const { drag, resize } = ui;
  const isUnderWay = drag !== undefined || resize !== undefined;
  useEffect(() => {
    if (!isUnderWay) return;
    const stop = new AbortController();
    const hold = ({ shiftKey, altKey, ctrlKey, metaKey }: KeyboardEvent | PointerEvent) => {
      board.hold({ isStraight: shiftKey, isCopy: altKey, isFree: ctrlKey || metaKey || !isSnapping() });
    };
    for (const type of ["pointermove", "keydown", "keyup"] as const) addEventListener(type, hold, { signal: stop.signal, capture: true });
    return () => stop.abort();
  }, [board, isUnderWay]);
  const { guides = [] } = drag ?? resize ?? {};
  const ghosts = drag?.isCopy ? [...drag.from.keys()].flatMap((id) => graph.nodes.get(id) ?? []) : [];
  return (
    <>
      {ghosts.map((node) => (
        <div key={node.id} data-ghost className={styles.ghost} style={camera.toBoard(boxOf(node))} />
      ))}
      {guides.map(({ axis, at, from, to, gap }) => {
        const length = to - from;
        const { left, top, width, height } = camera.toBoard(axis === "x" ? { x: at, y: from, width: 0, height: length } : { x: from, y: at, width: length, height: 0 });
        return (
          <div key={axis} data-guide={axis} className={styles.guide} style={{ left, top, width: Math.max(width, 1), height: Math.max(height, 1) }}>
            {gap !== undefined && <span className={styles.gap}>{gap}</span>}
          </div>
        );
      })}
    </>
  );
}
