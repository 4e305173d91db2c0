/** Connections between nodes. */
import { BaseEdge, type Edge, type EdgeProps, getBezierPath } from "@xyflow/react";
import { memo, useCallback, useState, useSyncExternalStore } from "react";
import type { Connection } from "../sync/graph.ts";
import type { Point } from "../view.ts";
import { useBoard } from "./context.ts";
import styles from "./edges.module.css";
import { purposeOf } from "./gestures.ts";

/** `end`: where a line ends that stands for those to all variants of a run. */
export type BoardEdge = Edge<{ connection: Connection; isEndSelected: boolean; end: Point | undefined }>;

/** A line is quiet, and in full with its label while it or one of its ends is selected, has the keyboard or has the pointer on it. */
const ConnectionEdge = memo(({ source, target, sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, markerEnd, selected, data }: EdgeProps<BoardEdge>) => {
  const board = useBoard();
  const [hasPointer, setHasPointer] = useState(false);
  const isEndHovered = useSyncExternalStore(
    board.onHover,
    useCallback(() => [source, target].includes(board.getHovered() ?? ""), [board, source, target]),
  );
  const { x: endX, y: endY } = data?.end ?? { x: targetX, y: targetY };
  const [path, x, y] = getBezierPath({ sourceX, sourceY, targetX: endX, targetY: endY, sourcePosition, targetPosition });
  const { purpose = "flow", role } = data?.connection ?? {};
  const isLit = hasPointer || isEndHovered || selected || data?.isEndSelected;
  const label = purpose === "flow" ? undefined : purposeOf({ purpose, ...(role && { role }) });
  const width = (label?.length ?? 0) * 6.4 + 16;
  return (
    <g className={styles.edge} data-purpose={purpose} data-selected={selected || undefined} data-lit={isLit || undefined} onMouseEnter={() => setHasPointer(true)} onMouseLeave={() => setHasPointer(false)}>
      <path d={path} className={styles.halo} />
      <BaseEdge path={path} className={styles.path ?? ""} interactionWidth={24} {...(markerEnd && { markerEnd })} />
      {label !== undefined && (
        <g className={styles.label} transform={`translate(${x} ${y})`}>
          <g>
            <rect x={-width / 2} y={-10} width={width} height={20} rx={10} />
            <text textAnchor="middle" dy="0.35em">
              {label}
            </text>
          </g>
        </g>
      )}
    </g>
  );
});

export const edgeTypes = { connection: ConnectionEdge };
