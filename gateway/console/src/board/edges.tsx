/** Connections between nodes. */
import { BaseEdge, type Edge, type EdgeProps, getBezierPath } from "@xyflow/react";
import { memo } from "react";
import type { Connection } from "../sync/graph.ts";
import styles from "./edges.module.css";
import { purposeOf } from "./gestures.ts";

export type BoardEdge = Edge<{ connection: Connection }>;

const ConnectionEdge = memo(({ sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition, markerEnd, selected, data }: EdgeProps<BoardEdge>) => {
  const [path, x, y] = getBezierPath({ sourceX, sourceY, targetX, targetY, sourcePosition, targetPosition });
  const { purpose = "flow", role } = data?.connection ?? {};
  const label = purpose === "flow" ? undefined : purposeOf({ purpose, ...(role && { role }) });
  const width = (label?.length ?? 0) * 6.4 + 16;
  return (
    <g className={styles.edge} data-purpose={purpose} data-selected={selected || undefined}>
      <BaseEdge path={path} className={styles.path ?? ""} interactionWidth={24} {...(markerEnd && { markerEnd })} />
      {label !== undefined && (
        <g className={styles.label} transform={`translate(${x} ${y})`}>
          <rect x={-width / 2} y={-10} width={width} height={20} rx={10} />
          <text textAnchor="middle" dy="0.35em">
            {label}
          </text>
        </g>
      )}
    </g>
  );
});

export const edgeTypes = { connection: ConnectionEdge };
