/** The mask of an edit on the Stage: what is painted over the image may change. A pen paints as wide as it presses. */
import { type KeyboardEvent, type PointerEvent, type RefObject, useLayoutEffect, useRef, useState } from "react";
import { Button } from "../ui/parts.tsx";
import type { Point, Size } from "../view.ts";
import type { Board } from "./board.ts";
import { type Grab, grab } from "./grab.ts";
import { drawMark, drawMarks, type Mark, maskSize, type Spot, within } from "./masking.ts";
import { type Brush, brushWidth, marked, MOST_WIDTH, type Stage, stepped, withBrush } from "./stage.ts";
import styles from "./stage.module.css";

interface Props {
  board: Board;
  stage: Stage;
  size: Size;
  scale: number;
  url: string | undefined;
  grabRef: RefObject<Grab | undefined>;
}

const BRUSHES: [Brush["kind"], string][] = [
  ["brush", "Brush"],
  ["eraser", "Eraser"],
  ["rectangle", "Rectangle"],
  ["lasso", "Lasso"],
];
/** Those whose marks are drawn as a whole. */
const isArea = (kind: Brush["kind"]) => kind === "rectangle" || kind === "lasso";
const ARROWS: Record<string, Point> = { ArrowLeft: { x: -1, y: 0 }, ArrowRight: { x: 1, y: 0 }, ArrowUp: { x: 0, y: -1 }, ArrowDown: { x: 0, y: 1 } };

export function MaskPicture({ board, stage, size, scale, url, grabRef }: Props) {
  const { marks, brush } = stage;
  const paper = useRef<HTMLCanvasElement>(null);
  /** Where the brush is, in pixels of the image, while the pointer or the keyboard is on it. */
  const [at, setAt] = useState<Point>();
  /** The stroke that the Space key paints. */
  const held = useRef<string>(undefined);
  /** Whether a pen was used: fingers and the palm do not paint then. */
  const hasPen = useRef(false);
  const width = brushWidth(brush, size);
  const context = () => paper.current?.getContext("2d") as CanvasRenderingContext2D;
  const redraw = (all: readonly Mark[]) => drawMarks(context(), all, size);
  useLayoutEffect(() => drawMarks(paper.current?.getContext("2d") as CanvasRenderingContext2D, marks, size), [marks, size]);

  function spotOf({ clientX, clientY, pointerType, pressure }: { clientX: number; clientY: number; pointerType: string; pressure: number }): Spot {
    const { left, top } = (paper.current as HTMLCanvasElement).getBoundingClientRect();
    return { x: (clientX - left) / scale, y: (clientY - top) / scale, ...(pointerType === "pen" && { pressure }) };
  }

  function begin(event: PointerEvent<HTMLDivElement>) {
    if (event.pointerType === "pen") hasPen.current = true;
    // A second finger ends what the first one paints.
    if (!event.isPrimary) return grabRef.current?.drop();
    if (event.button !== 0 || (event.pointerType === "touch" && hasPen.current)) return;
    const spots = [spotOf(event)];
    const mark: Mark = { kind: brush.kind, width, spots };
    // What is painted is drawn at once, and is a step when the pointer is released.
    drawMark(context(), mark, size);
    grab(
      event,
      grabRef,
      (next) => {
        const drawn = spots.length;
        // A fast pointer has been at more points than it tells of.
        spots.push(...(next.getCoalescedEvents?.() ?? []).map(spotOf), spotOf(next));
        if (isArea(brush.kind)) redraw([...marks, mark]);
        else drawMark(context(), mark, size, drawn);
      },
      (isReleased) => {
        const now = board.getUi().stage;
        if (isReleased && now) board.set({ stage: marked(now, mark) });
        else if (paper.current) redraw(marks);
      },
    );
    event.currentTarget.focus({ preventScroll: true });
  }

  function type(event: KeyboardEvent) {
    const by = ARROWS[event.key];
    if (event.ctrlKey || event.metaKey || (!by && event.key !== " ")) return;
    event.preventDefault();
    const from = at ?? { x: size.width / 2, y: size.height / 2 };
    const step = event.shiftKey ? width : width / 4;
    const to = by ? { x: within(from.x + by.x * step, size.width), y: within(from.y + by.y * step, size.height) } : from;
    setAt(to);
    if (!by && event.repeat) return;
    if (!by) held.current = crypto.randomUUID();
    if (held.current !== undefined) paint(to, held.current);
  }

  function paint(to: Spot, gesture: string) {
    const goesOn = stage.gesture === gesture ? (marks.at(-1)?.spots ?? []) : [];
    board.set({ stage: marked(stage, { kind: brush.kind, width, spots: [...goesOn, to] }, gesture) });
  }

  const { width: across, height: down } = maskSize(size);
  return (
    <div className={styles.plane} onPointerDown={begin} onPointerMove={(event) => setAt(spotOf(event))} onPointerLeave={() => setAt(undefined)} onWheel={({ altKey, deltaY }) => altKey && board.set({ stage: withBrush(stage, { width: brush.width - Math.sign(deltaY) }) })}>
      <div
        className={`${styles.view} ${styles.page} ${styles.mask}`}
        style={{ width: size.width * scale, height: size.height * scale }}
        role="application"
        aria-label="What may change: arrow keys move the brush, Space paints"
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the brush is moved by keys
        tabIndex={0}
        data-first
        onKeyDown={type}
        onKeyUp={({ key }) => key === " " && (held.current = undefined)}
        onBlur={() => (held.current = undefined)}
      >
        <img className={styles.flat} src={url} alt="" aria-hidden="true" draggable={false} />
        <canvas ref={paper} className={styles.flat} width={across} height={down} aria-hidden="true" data-paper data-after />
        {at && !isArea(brush.kind) && <span className={styles.ring} style={{ left: at.x * scale, top: at.y * scale, width: width * scale, height: width * scale }} />}
        {at && isArea(brush.kind) && <span className={styles.cross} style={{ left: at.x * scale, top: at.y * scale }} />}
      </div>
    </div>
  );
}

export function MaskTools({ board, stage, size }: Pick<Props, "board" | "stage" | "size">) {
  const { brush, marks } = stage;
  const set = (next: Stage) => board.set({ stage: next });
  return (
    <div className={styles.paint}>
      <div role="radiogroup" aria-label="Brush" className={styles.ratios}>
        {BRUSHES.map(([kind, label]) => (
          <label key={kind} className={styles.chip} title={isArea(kind) ? label : `${label} (X changes between brush and eraser)`}>
            <input type="radio" name="stage-brush" checked={brush.kind === kind} onChange={() => set(withBrush(stage, { kind }))} />
            <span>{label}</span>
          </label>
        ))}
      </div>
      <label className={styles.slider}>
        <span>Width</span>
        <input type="range" min={1} max={MOST_WIDTH} value={brush.width} title="Comma and period, or Alt and the wheel" aria-valuetext={`${Math.round(brushWidth(brush, size))} pixels`} onChange={({ target }) => set(withBrush(stage, { width: Number(target.value) }))} />
      </label>
      <div className={styles.ratios}>
        <Button onClick={() => set(marked(stage, { kind: "invert", width: 0, spots: [] }))}>Invert</Button>
        <Button disabled={marks.length === 0} onClick={() => set(stepped(stage, { marks: [] }))}>
          Clear
        </Button>
      </div>
    </div>
  );
}
