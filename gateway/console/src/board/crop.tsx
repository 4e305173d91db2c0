/** Crop and Turn on the Stage: a rectangle with handles over the picture, and the same as fields. */
import { type KeyboardEvent, type PointerEvent, type RefObject, useState } from "react";
import { Icon, Button } from "../ui/parts.tsx";
import type { Box, Point, Size } from "../view.ts";
import { useIsTouch } from "../ui/screen.ts";
import type { Board } from "./board.ts";
import { type Grab, grab } from "./grab.ts";
import { middleOf } from "./spatial.ts";
import { type Crop, cropOf, cropped, drawnCrop, entered, type Handle, MOST_DEGREES, movedCrop, ratioIn, resetCrop, resizedCrop, snappedBy, snappedMove, type Stage, uprightSize, withDegrees, withMirror, withQuarter, withRatio, withSidesSwapped } from "./stage.ts";
import styles from "./stage.module.css";

/** How far a pointer snaps, where it turns the picture outside of a corner, and how far it goes before it draws, in pixels of the screen. */
const SNAP = 6;
const TURNING = 36;
const DRAWING = 4;
const HANDLES: Handle[] = [-1, 0, 1].flatMap((y) => [-1, 0, 1].flatMap((x) => (x === 0 && y === 0 ? [] : { x, y } as Handle)));
const RATIOS = ["1:1", "4:5", "3:4", "2:3", "9:16", "16:9", "1.91:1"];

interface Props {
  board: Board;
  stage: Stage;
  /** The picture, in pixels, and how many pixels of the screen one of them takes. */
  size: Size;
  scale: number;
  url: string | undefined;
  grabRef: RefObject<Grab | undefined>;
}

type Kind = { move: true } | { turn: true } | { draw: true } | { handle: Handle };

/** The picture, turned and mirrored, about the middle of the upright one. */
function Turned({ url, size, stage, degrees, scale }: { url: string | undefined; size: Size; stage: Stage; degrees: number; scale: number }) {
  const { quarters, isMirrored } = stage.turn;
  const transform = `translate(-50%, -50%) rotate(${degrees}deg) rotate(${quarters * 90}deg) scaleX(${isMirrored ? -1 : 1})`;
  return <img className={styles.image} src={url} alt="" aria-hidden="true" draggable={false} style={{ width: size.width * scale, height: size.height * scale, transform }} />;
}

const grid = (parts: number) => Array.from({ length: parts - 1 }, (_, at) => `M${at + 1} 0v${parts}M0 ${at + 1}h${parts}`).join("");

export function CropPicture({ board, stage, size, scale, url, grabRef }: Props) {
  const upright = uprightSize(size, stage.turn);
  const { box, degrees } = cropOf(stage.entries, upright);
  /** How many parts a side of the grid has: none at rest. */
  const [parts, setParts] = useState(0);

  function begin(event: PointerEvent<HTMLDivElement>) {
    if (event.button !== 0 || !event.isPrimary) return;
    const frame = (event.currentTarget.firstElementChild as HTMLElement).getBoundingClientRect();
    const at = ({ clientX, clientY }: { clientX: number; clientY: number }): Point => ({ x: (clientX - frame.left) / scale, y: (clientY - frame.top) / scale });
    const from = at(event);
    const named = (event.target as HTMLElement).dataset["handle"];
    const kind = kindAt(from, named, box, upright, TURNING / scale);
    if (!kind) return;
    const start: Crop = { box, degrees };
    setParts("turn" in kind ? 9 : 3);
    grab(
      event,
      grabRef,
      (next, gesture) => {
        const now = board.getUi().stage;
        const changed = now && after(now, kind, start, from, at(next), upright, next, scale, gesture);
        if (changed) board.set({ stage: changed });
      },
      () => setParts(0),
    );
  }

  const at = (value: number) => value * scale;
  return (
    <div className={styles.plane} onPointerDown={begin}>
      <div className={styles.view} style={{ width: at(upright.width), height: at(upright.height) }}>
        <Turned url={url} size={size} stage={stage} degrees={degrees} scale={scale} />
        <div className={styles.rectangle} role="group" data-after tabIndex={0} data-first data-rectangle aria-label={nameOf(stage, upright)} style={{ left: at(box.x), top: at(box.y), width: at(box.width), height: at(box.height) }}>
          {parts > 0 && (
            <svg viewBox={`0 0 ${parts} ${parts}`} preserveAspectRatio="none" aria-hidden="true">
              <path d={grid(parts)} vectorEffect="non-scaling-stroke" />
            </svg>
          )}
          {HANDLES.map(({ x, y }) => (
            <span key={`${x} ${y}`} className={styles.handle} data-handle={`${x} ${y}`} style={{ left: `${50 + 50 * x}%`, top: `${50 + 50 * y}%` }} />
          ))}
        </div>
      </div>
    </div>
  );
}

/** "Crop 1600 by 1067 at 400, 120". */
export function nameOf({ entries }: Stage, upright: Size): string {
  const { x, y, width, height } = pixelsOf(entries, upright);
  const degrees = Number(entries["degrees"] || 0);
  return `Crop ${width} by ${height} at ${x}, ${y}${degrees === 0 ? "" : `, turned by ${degrees} degrees`}`;
}

/** The rectangle as the fields have it, in whole pixels. */
function pixelsOf(entries: Stage["entries"], upright: Size): Box {
  const number = (name: string, otherwise: number) => (entries[name] ? Number(entries[name]) : Math.round(otherwise));
  const { box } = cropOf({ ...entries, degrees: "" }, upright);
  return { x: number("x", box.x), y: number("y", box.y), width: number("width", box.width), height: number("height", box.height) };
}

/** What a press does: on a handle, in the rectangle, just outside of a corner, or beside the rectangle on the picture. */
function kindAt({ x, y }: Point, named: string | undefined, box: Box, upright: Size, turning: number): Kind | undefined {
  if (named !== undefined) {
    const [across = 0, down = 0] = named.split(" ").map(Number);
    return { handle: { x: across, y: down } as Handle };
  }
  const [right, bottom] = [box.x + box.width, box.y + box.height];
  if (x > box.x && x < right && y > box.y && y < bottom) return { move: true };
  const corner = Math.hypot(Math.min(Math.abs(x - box.x), Math.abs(x - right)), Math.min(Math.abs(y - box.y), Math.abs(y - bottom)));
  const isBeyondBoth = (x < box.x || x > right) && (y < box.y || y > bottom);
  if (isBeyondBoth && corner < turning) return { turn: true };
  return x >= 0 && y >= 0 && x <= upright.width && y <= upright.height ? { draw: true } : undefined;
}

function after(stage: Stage, kind: Kind, start: Crop, from: Point, to: Point, upright: Size, { shiftKey, altKey, ctrlKey }: { shiftKey: boolean; altKey: boolean; ctrlKey: boolean }, scale: number, gesture: string): Stage | undefined {
  const by = { x: to.x - from.x, y: to.y - from.y };
  const within = ctrlKey ? 0 : SNAP / scale;
  const ratio = ratioIn(stage.ratio);
  if ("turn" in kind) {
    const middle = middleOf(start.box);
    const angle = (point: Point) => (Math.atan2(point.y - middle.y, point.x - middle.x) * 180) / Math.PI;
    const turned = ((angle(to) - angle(from) + 540) % 360) - 180;
    return withDegrees(stage, start.degrees + turned, upright, gesture);
  }
  if ("move" in kind) return cropped(stage, movedCrop(start, snappedMove(start, by, upright, within), upright), upright, gesture);
  if ("draw" in kind) {
    const isDrawn = Math.hypot(by.x, by.y) * scale > DRAWING;
    return isDrawn ? cropped(stage, drawnCrop(from, to, start.degrees, upright, ratio ?? (shiftKey ? 1 : undefined)), upright, gesture) : undefined;
  }
  const kept = ratio ?? (shiftKey ? start.box.width / start.box.height : undefined);
  return cropped(stage, resizedCrop(start, kind.handle, snappedBy(start, kind.handle, by, upright, within), upright, { ratio: kept, isFromMiddle: altKey }), upright, gesture);
}

/** What an arrow key does to the rectangle: it moves it, with Alt its right and lower edges. */
export function arrowed(stage: Stage, by: Point, isResize: boolean, size: Size): Stage {
  const upright = uprightSize(size, stage.turn);
  const crop = cropOf(stage.entries, upright);
  const next = isResize ? resizedCrop(crop, { x: by.x === 0 ? 0 : 1, y: by.y === 0 ? 0 : 1 }, by, upright, { ratio: ratioIn(stage.ratio) }) : movedCrop(crop, by, upright);
  return cropped(stage, next, upright, isResize ? "arrows resize" : "arrows move");
}

const FIELDS = [
  ["x", "Left"],
  ["y", "Top"],
  ["width", "Width"],
  ["height", "Height"],
] as const;

export function CropTools({ board, stage, size }: Pick<Props, "board" | "stage" | "size">) {
  const upright = uprightSize(size, stage.turn);
  const pixels = pixelsOf(stage.entries, upright);
  const degrees = Number(stage.entries["degrees"] || 0);
  const original = `${upright.width}:${upright.height}`;
  const isTouch = useIsTouch();
  const ratios = [["", "Free"], [original, "Original"], ...RATIOS.map((ratio) => [ratio, ratio])];
  const set = (next: Stage) => board.set({ stage: next });
  const isOther = stage.ratio !== "" && stage.ratio !== original && !RATIOS.includes(stage.ratio);
  // The rectangle as a whole, so that a field that is changed leaves the others as they are.
  const enter = (name: string, value: string) => {
    const whole = Object.fromEntries(FIELDS.map(([id]) => [id, String(pixels[id])]));
    set(entered({ ...stage, entries: { ...stage.entries, ...whole, anchor: "" } }, name, value));
  };
  function type(event: KeyboardEvent<HTMLInputElement>, name: "x" | "y" | "width" | "height") {
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (step === undefined || !event.shiftKey) return;
    event.preventDefault();
    enter(name, String(pixels[name] + 10 * step));
  }
  return (
    <>
      <div className={styles.ratios}>
        {isTouch ? (
          <select aria-label="Ratio" value={stage.ratio} onChange={({ target }) => set(withRatio(stage, target.value, upright))}>
            {[...ratios, ...(isOther ? [[stage.ratio, stage.ratio]] : [])].map(([ratio, label]) => (
              <option key={label} value={ratio}>
                {label}
              </option>
            ))}
          </select>
        ) : (
          <div role="radiogroup" aria-label="Ratio" className={styles.ratios}>
            {ratios.map(([ratio = "", label]) => (
              <label key={label} className={styles.chip}>
                <input type="radio" name="stage-ratio" checked={stage.ratio === ratio} onChange={() => set(withRatio(stage, ratio, upright))} />
                <span>{label}</span>
              </label>
            ))}
          </div>
        )}
        <input className={styles.other} aria-label="Another ratio" placeholder="W:H" defaultValue={isOther ? stage.ratio : ""} onChange={({ target }) => ratioIn(target.value) !== undefined && set(withRatio(stage, target.value.trim(), upright))} />
        <button type="button" className={styles.tool} aria-label="Exchange width and height" title="Exchange width and height (X)" onClick={() => set(withSidesSwapped(stage, upright))}>
          <Icon name="turn-around" />
        </button>
      </div>
      <fieldset className={styles.fields}>
        <legend className="unseen">Rectangle, in pixels</legend>
        {FIELDS.map(([name, label]) => (
          <label key={name} className={styles.number}>
            <span>{label}</span>
            <input type="number" step={1} value={stage.entries[name] ?? String(pixels[name])} onChange={({ target }) => enter(name, target.value)} onKeyDown={(event) => type(event, name)} />
          </label>
        ))}
      </fieldset>
      <div className={styles.turns} role="group" aria-label="Turn">
        <button type="button" className={styles.tool} aria-label="Turn left" title="Turn left by 90°" onClick={() => set(withQuarter(stage, -1, upright))}>
          <Icon name="turn" />
        </button>
        <button type="button" className={`${styles.tool} ${styles.right}`} aria-label="Turn right" title="Turn right by 90°" onClick={() => set(withQuarter(stage, 1, upright))}>
          <Icon name="turn" />
        </button>
        <button type="button" className={styles.tool} aria-label="Mirror" title="Mirror from left to right" aria-pressed={stage.turn.isMirrored} onClick={() => set(withMirror(stage, upright))}>
          <Icon name="mirror" />
        </button>
        <label className={styles.slider}>
          <span className="unseen">Straighten, in degrees</span>
          <input
            type="range"
            min={-MOST_DEGREES}
            max={MOST_DEGREES}
            step={0.1}
            value={degrees}
            aria-valuetext={`${degrees} degrees`}
            title="Straighten. A double-click makes it level."
            onChange={({ target }) => set(withDegrees(stage, Number(target.value), upright, "degrees"))}
            onDoubleClick={() => set(withDegrees(stage, 0, upright, "degrees"))}
            onKeyDown={(event) => {
              const step = { PageUp: 5, PageDown: -5 }[event.key];
              if (step === undefined) return;
              event.preventDefault();
              set(withDegrees(stage, degrees + step, upright, "degrees"));
            }}
          />
          <output>{degrees.toFixed(1)}°</output>
        </label>
        {stage.past.length > 0 && (
          <Button look="quiet" onClick={() => set(resetCrop(stage))}>
            Reset
          </Button>
        )}
      </div>
    </>
  );
}
