/** Text on the Stage: it is where it will be, in the fonts of the service. A drag moves it, a corner makes it larger, a side makes it narrower. */
import { type PointerEvent, type RefObject, useLayoutEffect, useMemo, useRef } from "react";
import type { Action } from "../api.ts";
import type { Point, Size } from "../view.ts";
import type { Board } from "./board.ts";
import { TextBox } from "./comparison.tsx";
import { type Grab, grab } from "./grab.ts";
import { entryOf } from "./forms.ts";
import { useImage } from "./images.ts";
import { ParameterField } from "./parameter-field.tsx";
import { usePixels } from "./pixels.ts";
import { allParams } from "./shapes.ts";
import { entered, type Stage, stepped, withBoxAt } from "./stage.ts";
import { mainColors } from "./swatches.ts";
import styles from "./stage.module.css";

const SNAP = 6;
/** The least and the most that the service takes: letters in percent of the height of the picture, lines in percent of its width. */
const LETTERS = { least: 0.5, most: 50 };
const LINES = { least: 10, most: 100 };

interface Props {
  board: Board;
  stage: Stage;
  action: Action;
  size: Size;
  scale: number;
  url: string | undefined;
  grabRef: RefObject<Grab | undefined>;
}

const within = (value: number, { least, most }: { least: number; most: number }) => Math.round(Math.min(Math.max(value, least), most) * 10) / 10;

/** Where the box of the text is, in pixels of the picture. */
export function boxOfText(scale: number): { at: Point; box: Size } | undefined {
  const element = document.querySelector<HTMLElement>("[data-stage-text]");
  const frame = element?.parentElement?.getBoundingClientRect();
  if (!element || !frame) return undefined;
  const { left, top, width, height } = element.getBoundingClientRect();
  return { at: { x: (left - frame.left) / scale, y: (top - frame.top) / scale }, box: { width: width / scale, height: height / scale } };
}

export function TextPicture({ board, stage, action, size, scale, url, grabRef }: Props) {
  const params = allParams(action, stage.entries);

  function begin(event: PointerEvent<HTMLDivElement>) {
    const start = boxOfText(scale);
    if (!start) return;
    const named = (event.target as HTMLElement).dataset["handle"];
    const first = { size: Number(params.size), maxWidth: Number(params.maxWidth) };
    const frame = event.currentTarget.getBoundingClientRect();
    const middle = { x: frame.left + frame.width / 2, y: frame.top + frame.height / 2 };
    grab(event, grabRef, (next, gesture) => {
      const now = board.getUi().stage;
      if (now) board.set({ stage: changed(now, next, gesture) });
    });
    function changed(now: Stage, next: globalThis.PointerEvent, gesture: string): Stage {
      if (!start) return now;
      if (named === "corner") {
        const grown = Math.hypot(next.clientX - middle.x, next.clientY - middle.y) / Math.max(Math.hypot(event.clientX - middle.x, event.clientY - middle.y), 1);
        return stepped(now, { entries: { ...now.entries, size: String(within(first.size * grown, LETTERS)) } }, gesture);
      }
      if (named === "side") {
        // Lines are as wide as the box that the pointer makes, to both sides of its middle.
        const width = Math.abs(next.clientX - middle.x) * 2;
        return stepped(now, { entries: { ...now.entries, maxWidth: String(within((100 * width) / scale / size.width, LINES)) } }, gesture);
      }
      const to = { x: start.at.x + (next.clientX - event.clientX) / scale, y: start.at.y + (next.clientY - event.clientY) / scale };
      return withBoxAt(now, to, start.box, size, next.ctrlKey ? 0 : SNAP / scale, gesture);
    }
  }

  return (
    <div className={styles.plane}>
      <div className={`${styles.view} ${styles.page}`} style={{ width: size.width * scale, height: size.height * scale }}>
        <img className={styles.flat} src={url} alt="" aria-hidden="true" draggable={false} />
        <TextBox params={params} height={size.height} className={styles.text} data-stage-text data-after onPointerDown={begin} onDoubleClick={({ currentTarget }) => currentTarget.closest("section")?.querySelector("textarea")?.focus()}>
          <span className={styles.handle} data-handle="corner" />
          <span className={styles.handle} data-handle="side" />
        </TextBox>
      </div>
    </div>
  );
}

/** Moves the text by so many pixels of the picture. */
export function nudgedText(stage: Stage, by: Point, size: Size, scale: number): Stage {
  const start = boxOfText(scale);
  return start ? withBoxAt(stage, { x: Math.round(start.at.x) + by.x, y: Math.round(start.at.y) + by.y }, start.box, size, 0, "arrows") : stage;
}

/** How many colors of the image are offered, and the side of an image that is enough to find them. */
const SWATCHES = 6;
const FEW = 64;

/** What is beside the text; all the others are in the panel. */
const SHOWN = ["size", "maxWidth", "font", "weight", "align"];

export function TextTools({ board, stage, action, size }: Pick<Props, "board" | "stage" | "action" | "size">) {
  const field = useRef<HTMLTextAreaElement>(null);
  const value = (id: string) => {
    const parameter = action.parameters.find((one) => one.id === id);
    return stage.entries[id] ?? (parameter ? entryOf(parameter) : "");
  };
  const set = (id: string) => (entry: string) => board.set({ stage: entered(stage, id, entry) });
  const parameters = SHOWN.flatMap((id) => action.parameters.find((one) => one.id === id) ?? []);
  // A color with an alpha has no field of the browser.
  const color = /^#[0-9a-f]{6}$/i.test(value("color")) ? value("color") : "#ffffff";
  const { url } = useImage(stage.asset, FEW);
  const pixels = usePixels(url, size, FEW);
  const swatches = useMemo(() => [...new Set(["#ffffff", "#000000", ...(pixels ? mainColors(pixels.data, SWATCHES) : [])])], [pixels]);
  useLayoutEffect(() => field.current?.select(), []);
  return (
    <>
      <textarea ref={field} data-first className={styles.writing} aria-label="Text" placeholder="Write a text" rows={2} maxLength={500} dir="auto" value={value("text")} onChange={({ target }) => set("text")(target.value)} />
      <div className={styles.fields}>
        {parameters.map((parameter) => (
          <ParameterField key={parameter.id} parameter={parameter} value={value(parameter.id)} problem={undefined} set={set(parameter.id)} />
        ))}
        <label className={styles.number}>
          <span>Color</span>
          <input type="color" value={color} onChange={({ target }) => set("color")(target.value)} />
        </label>
        <div className={styles.swatches} role="group" aria-label="Colors of the image">
          {swatches.map((one) => (
            <button key={one} type="button" aria-label={`Color ${one}`} title={one} aria-pressed={value("color") === one} style={{ background: one }} onClick={() => set("color")(one)} />
          ))}
        </div>
      </div>
    </>
  );
}
