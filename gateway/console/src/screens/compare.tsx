/** Two to eight pictures beside or over each other, at the same place and scale. */
import { useQueries } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { assetQuery } from "../board/images.ts";
import { Dialog } from "../ui/dialog.tsx";
import { combinationOf } from "../ui/keys.ts";
import styles from "./look.module.css";
import { type Deed, Tool, useKeys, useViewing } from "./look.tsx";
import type { Picture } from "./picture.ts";
import { Sheet } from "./sheet.tsx";

type Mode = "slider" | "side" | "onion" | "grid";
const MODES: Record<Mode, string> = { slider: "Slider", side: "Side by side", onion: "Onion skin", grid: "Grid" };
/** How many percent an arrow key moves the line between two pictures, or changes how much is seen of the upper one. */
const STEP = 2;

/** The ways to compare so many pictures. */
const modesOf = (count: number): Mode[] => (count === 2 ? ["slider", "side", "onion"] : ["grid", "side"]);

interface Props {
  pictures: Picture[];
  /** The one that marks are for. */
  framed: string;
  frame: (id: string) => void;
  /** Puts the pictures into this order, or leaves some out. */
  set: (ids: string[]) => void;
  deeds: Deed[];
  marks?: ReactNode;
  said?: string | undefined;
  look: (id: string) => void;
  close: () => void;
  /** What is said meanwhile. */
  children?: ReactNode;
}

export function Compare({ pictures, framed, frame, set, deeds, marks, said, look, close, children }: Props) {
  const modes = modesOf(pictures.length);
  const [chosen, choose] = useState<Mode>();
  const mode = chosen && modes.includes(chosen) ? chosen : (modes[0] as Mode);
  const [isFilling, setIsFilling] = useState(false);
  const [part, setPart] = useState(50);
  const [element, setElement] = useState<HTMLElement | null>(null);
  const known = useQueries({ queries: pictures.map(({ asset }) => assetQuery(asset)) }).map(({ data }) => data);
  // All lie in the plane of the one with the most pixels.
  const plane = known.reduce((most, one) => (one && one.width * one.height > most.width * most.height ? one : most), { width: 1, height: 1 });
  const { view, isMoved, showPixels, keys: zoomKeys, frame: shown, scale } = useViewing(plane, mode);
  const isStacked = mode === "slider" || mode === "onion";
  const at = Math.max(pictures.findIndex(({ id }) => id === framed), 0);
  const ids = pictures.map(({ id }) => id);
  const move = (by: 1 | -1) => (isStacked ? setPart(Math.min(Math.max(part + by * STEP, 0), 100)) : frame(ids[(at + by + ids.length) % ids.length] ?? ""));
  const leaveOut = () => {
    const rest = ids.filter((id) => id !== ids[at]);
    frame(rest[Math.min(at, rest.length - 1)] ?? "");
    set(rest);
  };

  const keys: Record<string, () => void> = {
    ...zoomKeys,
    M: () => choose(modes[(modes.indexOf(mode) + 1) % modes.length]),
    X: () => set([...ids.slice(1), ...ids.slice(0, 1)]),
    A: () => setIsFilling(!isFilling),
    Delete: leaveOut,
    Backspace: leaveOut,
    ArrowLeft: () => move(-1),
    ArrowRight: () => move(1),
    Enter: () => look(ids[at] ?? ""),
    " ": close,
  };
  useKeys(element, (event) => {
    const combination = combinationOf(event);
    return keys[combination] ?? deeds.find((deed) => deed.keys.includes(combination))?.run;
  });

  const sheet = (index: number, rest: { clip?: string; opacity?: number } = {}) => (
    <Sheet picture={pictures[index] as Picture} known={known[index]} plane={known[index] && plane.width > 1 ? plane : undefined} view={view} isFilling={isFilling} {...rest} />
  );
  const caption = ({ id, title }: Picture, side?: number) => (
    <button key={id} type="button" className={styles.caption} data-side={side} dir="auto" aria-pressed={id === ids[at]} onMouseDown={(event) => event.preventDefault()} onClick={() => frame(id)}>
      {title || "Untitled"}
    </button>
  );
  const columns = mode === "side" ? pictures.length : Math.ceil(Math.sqrt(pictures.length));
  const names = pictures.map(({ title }) => title || "Untitled");

  return (
    <Dialog label={`Compare ${names.join(", ")}`} className={styles.dialog} close={close}>
      <header className={styles.head}>
        <fieldset className={styles.modes}>
          <legend className="unseen">How to compare (M)</legend>
          {modes.map((one) => (
            <label key={one}>
              <input type="radio" name="mode" checked={one === mode} onChange={() => choose(one)} />
              {MODES[one]}
            </label>
          ))}
        </fieldset>
        <div className={styles.names}>
          <h2 dir="auto">{names[at]}</h2>
          <p>{said}</p>
        </div>
        {marks}
        <div className={styles.tools}>
          <Tool label="Swap" icon="turn-around" keys={["X"]} run={() => keys["X"]?.()} />
          <Tool label="Fill the frame" icon="fit" keys={["A"]} isPressed={isFilling} run={() => setIsFilling(!isFilling)} />
          {pictures.length > 2 && <Tool label="Leave it out" icon="minus" keys={["Delete"]} run={leaveOut} />}
          <Tool label="Look at it alone" icon="look" keys={["Enter"]} run={() => look(ids[at] ?? "")} />
          <Tool label={`${scale}: ${isMoved ? "show them whole" : "pixel by pixel"}`} keys={["Z"]} run={showPixels}>
            {scale}
          </Tool>
          <Tool label="Close" icon="close" keys={["Escape"]} run={close} />
        </div>
      </header>
      <p role="status" className="unseen">
        {[names[at], said].filter(Boolean).join(", ")}
      </p>
      <div ref={setElement} className={styles.body}>
        {children && <div className={styles.notices}>{children}</div>}
        <div
          className={styles.panes}
          data-stacked={isStacked || undefined}
          aria-label="Pictures"
          aria-describedby="compare-keys"
          style={{ gridTemplateColumns: isStacked ? "minmax(0, 1fr)" : `repeat(${columns}, minmax(0, 1fr))` }}
          {...shown}
        >
          {isStacked ? (
            <div className={styles.pane} data-pane>
              {sheet(0, mode === "slider" ? { clip: `inset(0 ${100 - part}% 0 0)` } : {})}
              {sheet(1, mode === "slider" ? { clip: `inset(0 0 0 ${part}%)` } : { opacity: part / 100 })}
              {pictures.map((picture, index) => caption(picture, index))}
              {mode === "slider" && <span className={styles.line} style={{ left: `${part}%` }} />}
              <input
                type="range"
                className={mode === "slider" ? styles.slider : styles.opacity}
                min={0}
                max={100}
                value={part}
                aria-label={mode === "slider" ? `How much is seen of ${names[0]}` : `How much is seen of ${names[1]}`}
                aria-valuetext={`${part} percent`}
                onChange={({ target }) => setPart(Number(target.value))}
              />
            </div>
          ) : (
            pictures.map((picture, index) => (
              <div key={picture.id} className={styles.pane} data-pane data-framed={index === at || undefined}>
                {sheet(index)}
                {caption(picture)}
              </div>
            ))
          )}
        </div>
      </div>
      <p id="compare-keys" className="unseen">
        M compares in another way, X swaps, A fills the frames, arrow left and right move the line or choose a picture, Delete leaves that out, Enter shows it alone, Escape closes.
      </p>
    </Dialog>
  );
}
