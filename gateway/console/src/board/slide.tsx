/** A slide of a presentation: nodes of the board, live, for somebody who only looks at them. */
import { ReactFlow, ReactFlowProvider } from "@xyflow/react";
import { type CSSProperties, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Size } from "../view.ts";
import { Board } from "./board.ts";
import { BoardContext, DetailContext } from "./context.ts";
import { Elements } from "./elements.ts";
import { nodeTypes } from "./nodes.tsx";
import styles from "./slide.module.css";
import type { Slide } from "./slides.ts";
import { boundsOf } from "./spatial.ts";

/** The part of a slide's height and width that is left free at each side. */
const MARGIN = 0.05;

export function SlideView({ slide, board }: { slide: Slide; board: Board }) {
  // Nothing is changed from here.
  const reader = useMemo(() => new Board(board.engine, false, board.canvas, board.scopes), [board]);
  return (
    <BoardContext value={reader}>
      <ReactFlowProvider>
        <Nodes slide={slide} board={reader} />
      </ReactFlowProvider>
    </BoardContext>
  );
}

/** The nodes of a slide, as large as there is room. */
function Nodes({ slide, board }: { slide: Slide; board: Board }) {
  const frame = useRef<HTMLDivElement>(null);
  const [{ width, height }, setSize] = useState<Size>({ width: innerWidth, height: innerHeight });
  useLayoutEffect(() => {
    const element = frame.current as HTMLElement;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const [elements] = useState(() => new Elements(false));
  const nodes = useMemo(() => {
    const own = new Set(slide.nodes.map(({ id }) => id));
    return elements.nodes(board.graph, slide.nodes, board.getUi(), undefined).filter(({ id }) => own.has(id));
  }, [elements, slide, board]);
  const box = boundsOf(slide.nodes) ?? { x: 0, y: 0, width: 1, height: 1 };
  const zoom = Math.min((width * (1 - 2 * MARGIN)) / Math.max(box.width, 1), (height * (1 - 2 * MARGIN)) / Math.max(box.height, 1));
  const viewport = { x: (width - box.width * zoom) / 2 - box.x * zoom, y: (height - box.height * zoom) / 2 - box.y * zoom, zoom };
  return (
    <div ref={frame} className={styles.slide} style={{ "--unscale": 1 / zoom } as CSSProperties}>
      <DetailContext value={zoom * devicePixelRatio}>
        <ReactFlow
          nodes={nodes}
          nodeTypes={nodeTypes}
          viewport={viewport}
          minZoom={0}
          maxZoom={100}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          elementsSelectable={false}
          panOnDrag={false}
          panOnScroll={false}
          zoomOnScroll={false}
          zoomOnPinch={false}
          zoomOnDoubleClick={false}
          disableKeyboardA11y
          proOptions={{ hideAttribution: true }}
        />
      </DetailContext>
    </div>
  );
}
