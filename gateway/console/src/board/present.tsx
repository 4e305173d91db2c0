/** The board as a presentation: a Section at a time, with all of the window, and on paper. */
import { ReactFlow, ReactFlowProvider } from "@xyflow/react";
import { type CSSProperties, type KeyboardEvent, type MouseEvent, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { createPortal } from "react-dom";
import { Problem } from "../errors.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Button, Icon } from "../ui/parts.tsx";
import type { Size } from "../view.ts";
import { Board } from "./board.ts";
import { BoardContext, DetailContext } from "./context.ts";
import { Elements } from "./elements.ts";
import { nodeTypes } from "./nodes.tsx";
import { drawingOf } from "./handover.ts";
import styles from "./present.module.css";
import { firstSlide, type Slide, slidesOf } from "./slides.ts";
import { boundsOf } from "./spatial.ts";

/** The part of a slide's height and width that is left free at each side. */
const MARGIN = 0.05;
/** How long after the pointer or a key the controls are seen, in milliseconds. */
const SEEN = 2500;

export function Present({ board, close }: { board: Board; close: () => void }) {
  // The nodes are those of the board, for somebody who may only read.
  const reader = useMemo(() => new Board(board.engine, false, board.canvas, board.scopes), [board]);
  const { graph } = useSyncExternalStore(board.engine.subscribe, board.engine.getSnapshot);
  const slides = useMemo(() => (graph ? slidesOf(graph) : []), [graph]);
  const [shown, show] = useState(() => slides[firstSlide(slides, board.getUi().selection)]?.id);
  /** Where the slide was, if it is deleted meanwhile. */
  const last = useRef(0);
  const found = slides.findIndex(({ id }) => id === shown);
  const at = found >= 0 ? found : Math.min(last.current, slides.length - 1);
  const slide = slides[at];
  const stage = useRef<HTMLDivElement>(null);
  const [isIdle, setIsIdle] = useState(false);
  const [isPrinting, setIsPrinting] = useState(false);
  const [digits, setDigits] = useState("");
  const idle = useRef<ReturnType<typeof setTimeout>>(undefined);

  const wake = () => {
    clearTimeout(idle.current);
    setIsIdle(false);
    idle.current = setTimeout(() => setIsIdle(true), SEEN);
  };
  useEffect(() => {
    wake();
    return () => clearTimeout(idle.current);
  }, []);
  useEffect(() => void (last.current = at), [at]);
  // When the last slide is deleted, there is nothing to show.
  useEffect(() => {
    if (!slide) close();
  }, [slide, close]);
  useFullScreen(stage, close);

  const go = (to: number) => show(slides[Math.min(Math.max(to, 0), slides.length - 1)]?.id);

  function type(event: KeyboardEvent) {
    wake();
    const { key, target } = event;
    const isControl = (target as Element).closest("button, video") !== null;
    if (event.ctrlKey || event.metaKey || event.altKey || (isControl && (key === " " || key === "Enter"))) return;
    if (/^\d$/.test(key)) return setDigits(digits + key);
    const steps: Record<string, number> = { ArrowRight: at + 1, PageDown: at + 1, " ": at + 1, ArrowLeft: at - 1, PageUp: at - 1, Home: 0, End: slides.length - 1, Enter: Number(digits) - 1 };
    const next = steps[key];
    setDigits("");
    if (next === undefined || (key === "Enter" && digits === "")) return;
    event.preventDefault();
    go(next);
  }

  /** A click beside the controls leads on; at the left side, back. */
  function click({ target, clientX }: MouseEvent) {
    if (!(target as Element).closest("button, video")) go(clientX < innerWidth / 3 ? at - 1 : at + 1);
  }

  if (!slide) return null;
  const place = `${at + 1} / ${slides.length}`;
  return (
    <Dialog label="Presentation" className={styles.dialog} close={close}>
      {/* oxlint-disable-next-line jsx-a11y/no-static-element-interactions, jsx-a11y/click-events-have-key-events -- the keys are those of the dialog, and the controls do the same */}
      <div ref={stage} className={styles.stage} data-idle={isIdle || undefined} onKeyDown={type} onClick={click} onPointerMove={wake}>
        <BoardContext value={reader}>
          <ReactFlowProvider key={slide.id}>
            <Nodes slide={slide} board={reader} />
          </ReactFlowProvider>
        </BoardContext>
        <p role="status" className="unseen">
          Slide {at + 1} of {slides.length}: {slide.title || "Untitled"}
        </p>
        <div className={styles.controls} role="group" aria-label="Slides">
          <Button look="quiet" aria-label="Slide before" aria-disabled={at === 0} onClick={() => go(at - 1)}>
            <Icon name="back" />
          </Button>
          <span className={styles.place}>{digits === "" ? place : `→ ${digits}`}</span>
          <Button data-first look="quiet" aria-label="Next slide" aria-disabled={at === slides.length - 1} onClick={() => go(at + 1)}>
            <Icon name="next" />
          </Button>
          <Button look="quiet" onClick={() => setIsPrinting(true)}>
            Print or save as PDF
          </Button>
          <Button look="quiet" aria-label="End the presentation" onClick={close}>
            <Icon name="close" />
          </Button>
        </div>
        {isPrinting && <Pages slides={slides} board={board} done={() => setIsPrinting(false)} />}
      </div>
    </Dialog>
  );
}

/** All of the screen, where the browser permits it. Who leaves that leaves the presentation. */
function useFullScreen(stage: { current: HTMLElement | null }, close: () => void): void {
  useEffect(() => {
    const element = stage.current;
    let isFull = false;
    const changed = () => {
      if (document.fullscreenElement === element) isFull = true;
      else if (isFull && !element?.querySelector("[data-printing]")) close();
    };
    document.addEventListener("fullscreenchange", changed);
    element?.requestFullscreen().catch(() => {});
    return () => {
      document.removeEventListener("fullscreenchange", changed);
      if (document.fullscreenElement === element) void document.exitFullscreen().catch(() => {});
    };
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- once
  }, []);
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

/** A page for each slide, as the service draws it. They are printed as soon as all are there. */
function Pages({ slides, board, done }: { slides: Slide[]; board: Board; done: () => void }) {
  const [all] = useState(slides);
  const [pages, setPages] = useState<string[]>([]);
  const [problem, setProblem] = useState<string>();
  const isReady = pages.length === all.length;

  useEffect(() => {
    const stop = new AbortController();
    const made: string[] = [];
    void (async () => {
      try {
        for (const { nodes } of all) {
          // A Section is drawn with what is in it.
          made.push(URL.createObjectURL(await drawingOf(board, nodes.slice(0, 1), stop.signal)));
          if (!stop.signal.aborted) setPages([...made]);
        }
      } catch (error) {
        if (!stop.signal.aborted) setProblem(error instanceof Problem ? error.message : "A page could not be drawn.");
      }
    })();
    return () => {
      stop.abort();
      made.forEach((url) => URL.revokeObjectURL(url));
    };
  }, [all, board]);

  const sheets = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isReady) return;
    let isLeft = false;
    const images = [...(sheets.current?.querySelectorAll("img") ?? [])];
    addEventListener("afterprint", done, { once: true });
    void Promise.allSettled(images.map((image) => image.decode())).then(() => !isLeft && print());
    return () => {
      isLeft = true;
      removeEventListener("afterprint", done);
    };
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- once
  }, [isReady]);

  return (
    <div className={styles.printing} role="status" data-printing>
      {problem !== undefined ? `${problem} ` : `Drawing the pages: ${pages.length} of ${all.length}`}
      <Button onClick={done}>{isReady ? "Done" : "Cancel"}</Button>
      {createPortal(
        <div ref={sheets} className={styles.pages} aria-hidden="true">
          {isReady && pages.map((url, at) => <img key={url} src={url} alt={all[at]?.title || "Page"} />)}
        </div>,
        document.body,
      )}
    </div>
  );
}
