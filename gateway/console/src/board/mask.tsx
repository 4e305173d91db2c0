/** Paints the mask of an edit over its source: what is painted may change. */
import { useQuery } from "@tanstack/react-query";
import { type PointerEvent, useEffect, useRef, useState } from "react";
import { api, CONTRACT, send } from "../api.ts";
import type { Asset } from "../assets.ts";
import { retryUntilAnswered } from "../retry.ts";
import { Button } from "../ui/parts.tsx";
import type { Point } from "../view.ts";
import { useImage } from "./images.ts";
import styles from "./mask.module.css";
import { boxOf, maskSize } from "./masking.ts";

export const FEATHER = 8;
const MOST_FEATHER = 64;
/** The color of what may change, while it is painted. */
const PAINT = "#ff2d78";

const TOOLS = [
  ["brush", "Brush"],
  ["rectangle", "Rectangle"],
  ["eraser", "Eraser"],
] as const;
type Tool = (typeof TOOLS)[number][0];

/** What was painted, for the start. */
export interface Painting {
  /** The image that it was painted over. */
  asset: string;
  canvas: HTMLCanvasElement;
}

interface Props {
  asset: string;
  /** What was painted, and how to say so. */
  painting: Painting | undefined;
  setPainting: (painting: Painting | undefined) => void;
  feather: number;
  setFeather: (feather: number) => void;
  /** Whether there is a mask of an earlier attempt, which applies when nothing is painted. */
  hasEarlier: boolean;
}

const percent = (part: number, whole: number) => `${(part / whole) * 100}%`;

export function MaskField({ asset, painting, setPainting, feather, setFeather, hasEarlier }: Props) {
  const { data } = useQuery({ queryKey: ["asset", asset], queryFn: ({ signal }) => api.asset(asset, signal), staleTime: Infinity });
  const { url } = useImage(asset, 680);
  const [paper, setPaper] = useState<HTMLCanvasElement | null>(null);
  const [tool, setTool] = useState<Tool>("brush");
  const [width, setWidth] = useState(8);
  const isPainted = painting !== undefined;
  const [drag, setDrag] = useState<[Point, Point]>();
  const last = useRef<Point>(undefined);
  const size = data && maskSize(data);

  // The form was left and is open again: its paper is new.
  useEffect(() => {
    if (!paper || !painting || painting.canvas === paper) return;
    paper.getContext("2d")?.drawImage(painting.canvas, 0, 0);
    setPainting({ asset, canvas: paper });
  }, [asset, paper, painting, setPainting]);

  if (!size) return null;

  const at = ({ clientX, clientY }: { clientX: number; clientY: number }): Point => {
    const box = (paper as HTMLCanvasElement).getBoundingClientRect();
    return { x: ((clientX - box.left) / box.width) * size.width, y: ((clientY - box.top) / box.height) * size.height };
  };

  function note(element: HTMLCanvasElement) {
    if (!isPainted) setPainting({ asset, canvas: element });
  }

  function stroke(points: Point[]) {
    const context = paper?.getContext("2d");
    if (!context || !last.current) return;
    context.globalCompositeOperation = tool === "eraser" ? "destination-out" : "source-over";
    context.strokeStyle = PAINT;
    context.lineCap = context.lineJoin = "round";
    context.lineWidth = (width / 100) * Math.max(context.canvas.width, context.canvas.height);
    context.beginPath();
    context.moveTo(last.current.x, last.current.y);
    for (const { x, y } of points) context.lineTo(x, y);
    context.stroke();
    last.current = points.at(-1) ?? last.current;
    if (tool === "brush") note(context.canvas);
  }

  function begin(event: PointerEvent<HTMLCanvasElement>) {
    if (event.button !== 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    const point = at(event);
    last.current = point;
    if (tool === "rectangle") setDrag([point, point]);
    else stroke([point]);
  }

  function move(event: PointerEvent<HTMLCanvasElement>) {
    if (!last.current) return;
    if (tool === "rectangle") setDrag([last.current, at(event)]);
    // A fast pointer has been at more points than it tells of.
    else stroke((event.nativeEvent.getCoalescedEvents?.() ?? [event]).map(at));
  }

  function end() {
    const context = paper?.getContext("2d");
    if (drag && context && size) {
      const { x, y, width, height } = boxOf(drag, size);
      context.globalCompositeOperation = "source-over";
      context.fillStyle = PAINT;
      context.fillRect(x, y, width, height);
      if (width > 0 && height > 0) note(context.canvas);
    }
    last.current = undefined;
    setDrag(undefined);
  }

  function clear() {
    const context = paper?.getContext("2d");
    context?.clearRect(0, 0, size?.width ?? 0, size?.height ?? 0);
    setPainting(undefined);
  }

  const box = drag && boxOf(drag, size);
  return (
    <fieldset className={styles.mask}>
      <legend>What may change</legend>
      <div className={styles.tools}>
        {TOOLS.map(([name, label]) => (
          <label key={name}>
            <input type="radio" name="mask-tool" checked={tool === name} onChange={() => setTool(name)} />
            <span>{label}</span>
          </label>
        ))}
        <Button onClick={clear} disabled={!isPainted}>
          Clear
        </Button>
      </div>
      <div className={styles.stage}>
        <div className={styles.paper} style={{ aspectRatio: `${size.width} / ${size.height}`, width: `min(100%, ${(320 * size.width) / size.height}px)` }}>
          {url !== undefined && <img src={url} alt="" aria-hidden="true" draggable={false} />}
          <canvas
            ref={setPaper}
            width={size.width}
            height={size.height}
            role="img"
            aria-label={isPainted ? "The source, with a painted part that may change" : "The source: paint the part that may change"}
            onPointerDown={begin}
            onPointerMove={move}
            onPointerUp={end}
            onPointerCancel={end}
          />
          {box && (
            <span
              className={styles.box}
              style={{ left: percent(box.x, size.width), top: percent(box.y, size.height), width: percent(box.width, size.width), height: percent(box.height, size.height) }}
            />
          )}
        </div>
      </div>
      <label className={styles.slider}>
        <span>Width of the brush</span>
        <input type="range" min={1} max={30} value={width} aria-valuetext={`${width} percent of the longer side`} onChange={({ target }) => setWidth(Number(target.value))} />
      </label>
      <label className={styles.slider}>
        <span>Feather</span>
        <input type="range" min={0} max={MOST_FEATHER} value={feather} aria-valuetext={`${feather} pixels`} onChange={({ target }) => setFeather(Number(target.value))} />
      </label>
      <p className={styles.hint}>{isPainted ? "Only what is painted changes. Everything else stays as it is." : hasEarlier ? "Nothing is painted: the mask of before applies." : "Nothing is painted: the whole image may change."}</p>
    </fieldset>
  );
}

/** The mask as a file: white where something was painted, black elsewhere. */
async function maskFile({ canvas }: Painting): Promise<File> {
  const mask = document.createElement("canvas");
  [mask.width, mask.height] = [canvas.width, canvas.height];
  const context = mask.getContext("2d") as CanvasRenderingContext2D;
  context.drawImage(canvas, 0, 0);
  context.globalCompositeOperation = "source-in";
  context.fillStyle = "#fff";
  context.fillRect(0, 0, mask.width, mask.height);
  context.globalCompositeOperation = "destination-over";
  context.fillStyle = "#000";
  context.fillRect(0, 0, mask.width, mask.height);
  const blob = await new Promise<Blob | null>((resolve) => mask.toBlob(resolve, "image/png"));
  if (!blob) throw new Error("The mask cannot be written.");
  return new File([blob], "mask.png", { type: "image/png" });
}

/** Stores a mask in the canvas, where no node shows it, and returns its handle. */
export async function saveMask(canvas: string, painting: Painting): Promise<string> {
  const file = await maskFile(painting);
  const query = new URLSearchParams({ canvasId: canvas, node: "none" });
  const headers = { "Content-Type": file.type, "Idempotency-Key": crypto.randomUUID(), "X-Service-File-Name": file.name };
  const response = await retryUntilAnswered(() => send(new Request(`${CONTRACT}/assets?${query}`, { method: "POST", headers, body: file })));
  const { asset } = (await response.json()) as { asset: Asset };
  return asset.handle;
}
