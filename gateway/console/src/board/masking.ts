/** Masks of edits: what is painted over an image, how it is drawn, and how it is stored. */
import { CONTRACT, send } from "../api.ts";
import type { Asset } from "../assets.ts";
import { retryUntilAnswered } from "../retry.ts";
import type { Box, Point, Size } from "../view.ts";

/** The longest side of a mask that is sent. The service scales it to its source. */
const MOST_SIDE = 2048;
/** The longest side of a drawing that is enough to say how much is painted. */
const SAMPLE = 128;
/** The color of what may change. */
const PAINT = "#ff2d78";

/** A point of a stroke, in pixels of the image. Where a pen presses less, the stroke is narrower. */
export interface Spot extends Point {
  pressure?: number;
}

export interface Mark {
  kind: "brush" | "eraser" | "rectangle" | "lasso" | "invert";
  /** The width of a stroke, in pixels of the image. */
  width: number;
  /** What a stroke goes through, two corners of a rectangle, or what is around the inside of a lasso. */
  spots: readonly Spot[];
}

/** The size in which a mask of an image is drawn: that of the image, or a smaller one of its shape. */
export function maskSize({ width, height }: Size, most = MOST_SIDE): Size {
  const scale = Math.min(most / Math.max(width, height), 1);
  const side = (length: number) => Math.max(Math.round(length * scale), 1);
  return { width: side(width), height: side(height) };
}

export const within = (value: number, most: number) => Math.min(Math.max(value, 0), most);

/** The rectangle between two points, as far as it is within an image of this size. */
export function boxBetween([from, to]: readonly [Point, Point], { width, height }: Size): Box {
  const [x, y] = [within(Math.min(from.x, to.x), width), within(Math.min(from.y, to.y), height)];
  return { x, y, width: within(Math.max(from.x, to.x), width) - x, height: within(Math.max(from.y, to.y), height) - y };
}

type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

const COMPOSITES = { brush: "source-over", rectangle: "source-over", lasso: "source-over", eraser: "destination-out", invert: "xor" } as const;

/** Draws a mark over those before it, in the pixels of the image; of a stroke that is drawn in part, what comes after so many of its spots. */
export function drawMark(context: Context, { kind, width, spots }: Mark, size: Size, drawn = 0): void {
  context.globalCompositeOperation = COMPOSITES[kind];
  context.fillStyle = context.strokeStyle = PAINT;
  context.lineCap = "round";
  const [first, last] = [spots[0], spots.at(-1)];
  if (kind === "invert") context.fillRect(0, 0, size.width, size.height);
  if (!first || !last || kind === "invert") return;
  if (kind === "rectangle") {
    const box = boxBetween([first, last], size);
    return context.fillRect(box.x, box.y, box.width, box.height);
  }
  if (kind === "lasso") {
    context.beginPath();
    for (const { x, y } of spots) context.lineTo(x, y);
    return context.fill();
  }
  for (let at = drawn; at < spots.length; at += 1) {
    const [{ x, y, pressure = 1 }, before] = [spots[at] as Spot, spots[at - 1]];
    context.beginPath();
    if (before) {
      context.moveTo(before.x, before.y);
      context.lineTo(x, y);
      context.lineWidth = width * pressure;
      context.stroke();
    } else {
      context.arc(x, y, (width * pressure) / 2, 0, 2 * Math.PI);
      context.fill();
    }
  }
}

/** Draws marks, and nothing else, on all of a canvas. */
export function drawMarks(context: Context, marks: readonly Mark[], size: Size): void {
  const { width, height } = context.canvas;
  context.resetTransform();
  context.clearRect(0, 0, width, height);
  context.scale(width / size.width, height / size.height);
  for (const mark of marks) drawMark(context, mark, size);
}

function drawing(marks: readonly Mark[], size: Size, most: number): OffscreenCanvasRenderingContext2D {
  const { width, height } = maskSize(size, most);
  const context = new OffscreenCanvas(width, height).getContext("2d") as OffscreenCanvasRenderingContext2D;
  drawMarks(context, marks, size);
  return context;
}

/** About how much of an image is painted, from 0 to 1. It is 0 only if nothing is. */
export function shareOf(marks: readonly Mark[], size: Size): number {
  if (marks.length === 0) return 0;
  const context = drawing(marks, size, SAMPLE);
  const { data } = context.getImageData(0, 0, context.canvas.width, context.canvas.height);
  let sum = 0;
  for (let at = 3; at < data.length; at += 4) sum += data[at] ?? 0;
  return (4 * sum) / (255 * data.length);
}

/** Stores what is painted as a mask in the canvas, where no node shows it, and returns its handle: white changes, black is kept. */
export async function saveMask(canvas: string, marks: readonly Mark[], size: Size): Promise<string> {
  const context = drawing(marks, size, MOST_SIDE);
  context.resetTransform();
  for (const [composite, color] of [["source-in", "#fff"], ["destination-over", "#000"]] as const) {
    context.globalCompositeOperation = composite;
    context.fillStyle = color;
    context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  }
  const body = await context.canvas.convertToBlob({ type: "image/png" });
  const query = new URLSearchParams({ canvasId: canvas, node: "none" });
  const headers = { "Content-Type": body.type, "Idempotency-Key": crypto.randomUUID(), "X-Service-File-Name": "mask.png" };
  const response = await retryUntilAnswered(() => send(new Request(`${CONTRACT}/assets?${query}`, { method: "POST", headers, body })));
  const { asset } = (await response.json()) as { asset: Asset };
  return asset.handle;
}
