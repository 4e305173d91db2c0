/** A frame around the variants of one run, while one of them is selected or has the pointer on it. */
import { ViewportPortal } from "@xyflow/react";
import { memo, useSyncExternalStore } from "react";
import type { Graph } from "../sync/graph.ts";
import type { Board } from "./board.ts";
import styles from "./bracket.module.css";
import { boundsOf } from "./spatial.ts";
import { variantOf } from "./variants.ts";

/** The distance of the frame from the nodes. */
const MARGIN = 8;

export const Bracket = memo(function Bracket({ board, graph, selection }: { board: Board; graph: Graph; selection: ReadonlySet<string> }) {
  const hovered = useSyncExternalStore(board.onHover, board.getHovered);
  const [selected] = selection.size === 1 ? selection : [];
  const variant = variantOf(graph, hovered) ?? variantOf(graph, selected);
  const box = variant && boundsOf(variant.ids.flatMap((id) => graph.nodes.get(id) ?? []));
  if (!variant || !box) return null;
  const style = { transform: `translate(${box.x - MARGIN}px, ${box.y - MARGIN}px)`, width: box.width + 2 * MARGIN, height: box.height + 2 * MARGIN };
  return (
    <ViewportPortal>
      <div className={styles.bracket} style={style}>
        <button type="button" tabIndex={-1} className="nodrag nopan" title="Select them all: Shift M" onMouseEnter={() => board.hover(variant.ids[0])} onMouseLeave={() => board.hover(undefined)} onClick={() => board.selectVariants(variant.ids[0])}>
          {variant.ids.length} variants
        </button>
      </div>
    </ViewportPortal>
  );
});
