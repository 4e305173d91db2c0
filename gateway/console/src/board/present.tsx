/** The board as a presentation: a Section at a time, with all of the window, and on paper. */
import { type ComponentType, type KeyboardEvent, type MouseEvent, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { createPortal } from "react-dom";
import { Problem } from "../errors.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Button, Icon } from "../ui/parts.tsx";
import type { Graph, Node } from "../sync/graph.ts";
import type { Part } from "../api.ts";
import type { Board } from "./board.ts";
import styles from "./present.module.css";
import type { Slide } from "./slides.ts";

/** How long after the pointer or a key the controls are seen, in milliseconds. */
const SEEN = 2500;

/** What the page of the board has, so that this part brings none of it again. */
interface Props {
  board: Board;
  slidesOf: (graph: Graph) => Slide[];
  partOf: (nodes: Node[], real: (id: string) => string) => Part;
  SlideView: ComponentType<{ slide: Slide; board: Board }>;
  close: () => void;
}

/** The slide of what is selected, or the first. */
const firstOf = (slides: Slide[], selection: ReadonlySet<string>): Slide | undefined => slides.find(({ nodes }) => nodes.some(({ id }) => selection.has(id))) ?? slides[0];

export function Present({ board, slidesOf, partOf, SlideView, close }: Props) {
  const { graph } = useSyncExternalStore(board.engine.subscribe, board.engine.getSnapshot);
  const slides = useMemo(() => (graph ? slidesOf(graph) : []), [graph, slidesOf]);
  const [shown, show] = useState(() => firstOf(slides, board.getUi().selection)?.id);
  /** Where the slide was, if it is deleted meanwhile. */
  const [last, setLast] = useState(0);
  const found = slides.findIndex(({ id }) => id === shown);
  if (found >= 0 && found !== last) setLast(found);
  const at = found >= 0 ? found : Math.min(last, slides.length - 1);
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
    idle.current = setTimeout(() => setIsIdle(true), SEEN);
    return () => clearTimeout(idle.current);
  }, []);
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
      <div ref={stage} tabIndex={-1} data-first className={styles.stage} data-idle={isIdle || undefined} onKeyDown={type} onClick={click} onPointerMove={wake}>
        <SlideView key={slide.id} slide={slide} board={board} />
        <p role="status" className="unseen">
          Slide {at + 1} of {slides.length}: {slide.title || "Untitled"}
        </p>
        <div className={styles.controls} role="group" aria-label="Slides">
          <Button look="quiet" aria-label="Slide before" aria-disabled={at === 0} onClick={() => go(at - 1)}>
            <Icon name="back" />
          </Button>
          <span className={styles.place}>{digits === "" ? place : `→ ${digits}`}</span>
          <Button look="quiet" aria-label="Next slide" aria-disabled={at === slides.length - 1} onClick={() => go(at + 1)}>
            <Icon name="next" />
          </Button>
          <Button look="quiet" onClick={() => setIsPrinting(true)}>
            Print or save as PDF
          </Button>
          <Button look="quiet" aria-label="End the presentation" onClick={close}>
            <Icon name="close" />
          </Button>
        </div>
        {isPrinting && <Pages slides={slides} board={board} partOf={partOf} done={() => setIsPrinting(false)} />}
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

/** A page for each slide, as the service draws it. They are printed as soon as all are there. */
function Pages({ slides, board, partOf, done }: Pick<Props, "board" | "partOf"> & { slides: Slide[]; done: () => void }) {
  const [all] = useState(slides);
  const [pages, setPages] = useState<string[]>([]);
  const [problem, setProblem] = useState<string>();
  const isReady = pages.length === all.length;

  useEffect(() => {
    const stop = new AbortController();
    const made: string[] = [];
    void (async () => {
      try {
        const { drawingOf } = await import("./handover.ts");
        for (const { nodes } of all) {
          // A Section is drawn with what is in it.
          made.push(URL.createObjectURL(await drawingOf(board, partOf(nodes.slice(0, 1), board.engine.real), stop.signal)));
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
  }, [all, board, partOf]);

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
