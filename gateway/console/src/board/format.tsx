/** The form that brings the selected images into formats: it lies at the bar of the selection. */
import { type FormEvent, type PointerEvent, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { count } from "../format.ts";
import { Button } from "../ui/parts.tsx";
import { isNarrow } from "../ui/screen.ts";
import type { Node } from "../sync/graph.ts";
import type { Box, Point } from "../view.ts";
import { MOST_RESULTS, startBatch, TOO_MANY } from "./batch.ts";
import styles from "./batch.module.css";
import type { Board } from "./board.ts";
import { useAsset, useImage } from "./images.ts";
import { ANCHORS, anchorNear, previewOf } from "./preview.ts";
import { planAction } from "./runs.ts";
import { pictureOf, shapeOfAction } from "./shapes.ts";
import { around } from "./spatial.ts";

const ACTION = { slug: "change-aspect-ratio", title: "Change aspect ratio" };
const RATIOS = ["1:1", "4:5", "3:4", "2:3", "9:16", "3:2", "16:9", "1.91:1"];
const FILLS = [
  ["crop", "Crop"],
  ["pad", "Color"],
  ["blur", "Blurred"],
] as const;
const WHITE = "#ffffff";
/** Two numbers from 1 to 100, each with at most two decimals. */
const OWN = "\\s*(100|[1-9]\\d?(\\.\\d{1,2})?):(100|[1-9]\\d?(\\.\\d{1,2})?)\\s*";
const LIST = new Intl.ListFormat("en");
/** Between the form and the edges of the window, in pixels. */
const EDGE = 8;

/** How large the image is in the form, with the frames around it, in pixels. */
const ROOM = { width: 284, height: 190 };

interface FramesProps {
  node: Node;
  ratios: string[];
  mode: string;
  anchor: string;
  set: (anchor: string) => void;
}

/** The first image with a frame for each format. Of the nine places, one says what stays, or where the image is: a drag chooses it, too. */
function Frames({ node, ratios, mode, anchor, set }: FramesProps) {
  const name = useId();
  const { data } = useAsset(node.asset ?? "");
  const { url } = useImage(node.asset, ROOM.width * devicePixelRatio);
  const { width, height } = data ?? pictureOf(node);
  const frames = ratios.flatMap((ratio) => {
    const { size, image } = previewOf(ACTION.slug, { ratio, mode, anchor }, { width, height }) ?? {};
    return size && image ? [{ ratio, x: -image.x, y: -image.y, ...size }] : [];
  });
  const all = around([{ x: 0, y: 0, width, height }, ...frames]) as Box;
  const scale = Math.min(ROOM.width / all.width, ROOM.height / all.height);
  const at = (box: Box) => ({ left: (box.x - all.x) * scale, top: (box.y - all.y) * scale, width: box.width * scale, height: box.height * scale });
  const follow = ({ currentTarget, clientX, clientY, buttons }: PointerEvent) => {
    const { left, top, width, height } = currentTarget.getBoundingClientRect();
    if (buttons === 1) set(anchorNear({ x: (clientX - left) / width, y: (clientY - top) / height }));
  };
  return (
    <fieldset className={styles.frames}>
      <legend>{mode === "crop" ? "What stays" : "Where the image is"}</legend>
      <div style={{ width: all.width * scale, height: all.height * scale }} onPointerMove={follow}>
        <img src={url} alt="" aria-hidden="true" draggable={false} style={at({ x: 0, y: 0, width, height })} />
        {frames.map((frame) => (
          <span key={frame.ratio} className={styles.frame} data-frame={frame.ratio} style={at(frame)}>
            {frame.ratio}
          </span>
        ))}
        <div className={styles.anchors}>
          {ANCHORS.map((one) => (
            <input key={one} type="radio" name={name} aria-label={one.replace("-", " ")} title={one.replace("-", " ")} checked={anchor === one} onChange={() => set(one)} />
          ))}
        </div>
      </div>
    </fieldset>
  );
}

function shapeOf(ratio: string) {
  const [across = 1, down = 1] = ratio.split(":").map(Number);
  const scale = 18 / Math.max(across, down);
  return { width: across * scale, height: down * scale };
}

export function FormatForm({ board, canvas, at }: { board: Board; canvas: string; at: Point }) {
  const element = useRef<HTMLDivElement>(null);
  const name = useId();
  const [ticked, tick] = useState<readonly string[]>([]);
  const [own, setOwn] = useState("");
  const [fill, setFill] = useState<string>("crop");
  const [color, setColor] = useState(WHITE);
  const [anchor, setAnchor] = useState("center");
  const images = board.selected.filter(({ asset, type }) => asset !== undefined && type === "image");
  const other = new RegExp(`^${OWN}$`).test(own) ? own.trim() : undefined;
  const ratios = [...new Set([...RATIOS.filter((ratio) => ticked.includes(ratio)), ...(other === undefined ? [] : [other])])];
  const results = ratios.length * images.length;
  const [shown] = images;

  useLayoutEffect(() => {
    const form = element.current as HTMLDivElement;
    form.showPopover();
    // There, it is a sheet at the bottom edge.
    if (isNarrow()) return;
    form.style.left = `${Math.max(Math.min(at.x, innerWidth - form.offsetWidth - EDGE), EDGE)}px`;
    form.style.top = `${Math.max(Math.min(at.y, innerHeight - form.offsetHeight - EDGE), EDGE)}px`;
  }, [at]);
  useEffect(() => element.current?.querySelector("input")?.focus(), []);

  function start(event: FormEvent) {
    event.preventDefault();
    if (results === 0) return;
    const plans = images.flatMap((node) =>
      ratios.map((ratio) => {
        const params = { ratio, ...(fill !== "crop" && { mode: fill }), ...(anchor !== "center" && { anchor }), ...(fill === "pad" && color !== WHITE && { background: color }) };
        return planAction(board, canvas, ACTION, [node], params, shapeOfAction(ACTION.slug, params, [pictureOf(node)]));
      }),
    );
    if (startBatch(board, `${ratios.length === 1 ? "Format" : "Formats"} ${LIST.format(ratios)}`, plans) === undefined) return;
    board.set({ menu: undefined });
    board.surface?.focus();
  }

  return (
    <div ref={element} popover="auto" role="dialog" aria-label="Format" className={styles.format} onToggle={({ newState }) => newState === "closed" && board.getUi().menu?.kind === "format" && board.set({ menu: undefined })}>
      <form onSubmit={start}>
        <fieldset className={styles.ratios}>
          <legend>{images.length === 1 ? "Formats" : `Formats of ${count(images.length, "image")}`}</legend>
          {RATIOS.map((ratio) => (
            <label key={ratio}>
              <input type="checkbox" checked={ticked.includes(ratio)} onChange={({ target }) => tick(target.checked ? [...ticked, ratio] : ticked.filter((one) => one !== ratio))} />
              <span className={styles.shape} aria-hidden="true">
                <span style={shapeOf(ratio)} />
              </span>
              <span>{ratio}</span>
            </label>
          ))}
          <input type="text" className={styles.own} aria-label="Another ratio" placeholder="W:H" pattern={OWN} title="Width to height, such as 5:7" value={own} onChange={({ target }) => setOwn(target.value)} />
        </fieldset>
        <fieldset className={styles.fills}>
          <legend>Fill by</legend>
          {FILLS.map(([value, label]) => (
            <label key={value}>
              <input type="radio" name={name} checked={fill === value} onChange={() => setFill(value)} />
              <span>{label}</span>
            </label>
          ))}
          {fill === "pad" && <input type="color" aria-label="Color" value={color} onChange={({ target }) => setColor(target.value)} />}
        </fieldset>
        {shown && <Frames key={shown.id} node={shown} ratios={ratios} mode={fill} anchor={anchor} set={setAnchor} />}
        {results > MOST_RESULTS && <p className={styles.bad}>{TOO_MANY}.</p>}
        <div className={styles.end}>
          <Button look="quiet" onClick={() => board.set({ menu: undefined, panel: "inspect", attempt: undefined, action: ACTION.slug })}>
            All settings…
          </Button>
          <Button look="primary" type="submit" disabled={results === 0 || results > MOST_RESULTS}>
            {results === 0 ? "Make" : `Make ${results}`}
          </Button>
        </div>
      </form>
    </div>
  );
}
