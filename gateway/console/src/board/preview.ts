/** About what an Action will do to an image, as geometry. The service's result is the truth: it rounds, resamples and sets text by itself. */
import type { Box, Point, Size } from "../view.ts";

type Params = Record<string, string | number>;

export interface Preview {
  /** The size of the result, in pixels. */
  size: Size;
  /** Where the whole image is in it. What reaches beyond the result is cut. */
  image: Box;
  /** Clockwise, in degrees, about the middle of the image, after the flip. */
  degrees?: number;
  flip?: { x: boolean; y: boolean };
  background?: string;
  /** The space around the image shows the image itself, blurred. */
  isBlurred?: boolean;
}

/** The part of free space that is before an image, across and down. */
export function shares(anchor: string): { x: number; y: number } {
  const share = (before: string, after: string) => (anchor.includes(before) ? 0 : anchor.includes(after) ? 1 : 0.5);
  return { x: share("left", "right"), y: share("top", "bottom") };
}

export const ANCHORS = ["top-left", "top", "top-right", "left", "center", "right", "bottom-left", "bottom", "bottom-right"];

const third = (part: number) => (part < 1 / 3 ? 0 : part > 2 / 3 ? 2 : 1);

/** The nearest of the nine places to a point, in parts of the whole. */
export function anchorNear({ x, y }: Point): string {
  return ANCHORS[third(y) * 3 + third(x)] as string;
}

/** Places an image of `inner` in a result of `size`. */
function placed(size: Size, inner: Size, anchor: unknown): Box {
  const { x, y } = shares(String(anchor ?? "center"));
  return { x: (size.width - inner.width) * x, y: (size.height - inner.height) * y, ...inner };
}

const scaled = ({ width, height }: Size, by: number): Size => ({ width: width * by, height: height * by });
const rounded = ({ width, height }: Size): Size => ({ width: Math.max(Math.round(width), 1), height: Math.max(Math.round(height), 1) });
const isSide = (value: unknown): value is number => typeof value === "number" && value >= 1;

type Action = (params: Params, source: Size) => Preview | undefined;

const PREVIEWS: Record<string, Action> = {
  crop,
  resize,
  "change-aspect-ratio": changeRatio,
  rotate,
  "add-text-to-image": (_, { width, height }) => ({ size: { width, height }, image: { x: 0, y: 0, width, height } }),
};

export const isPreviewed = (slug: string): boolean => slug in PREVIEWS;

/** The preview of an Action with these parameters on an image of this size, or nothing if a value is missing or not possible. */
export const previewOf = (slug: string, params: Params, { width, height }: Size): Preview | undefined => PREVIEWS[slug]?.(params, { width, height });

function crop({ width, height, x, y, anchor }: Params, source: Size): Preview | undefined {
  if (!isSide(width) || !isSide(height) || width > source.width || height > source.height) return undefined;
  const size = { width, height };
  const image = typeof x === "number" && typeof y === "number" ? { x: -x, y: -y, ...source } : placed(size, source, anchor);
  return { size, image };
}

function resize({ width, height, fit = "inside", anchor, enlarge, background }: Params, source: Size): Preview | undefined {
  const most = enlarge === "no" ? 1 : Infinity;
  const ratios = { x: isSide(width) ? width / source.width : undefined, y: isSide(height) ? height / source.height : undefined };
  const known = [ratios.x, ratios.y].filter((ratio) => ratio !== undefined);
  const [least, greatest] = [Math.min(...known), Math.max(...known)];
  if (known.length === 0) return undefined;
  if (known.length === 1 || fit === "inside" || fit === "outside") {
    const size = rounded(scaled(source, Math.min(fit === "outside" ? greatest : least, most)));
    return { size, image: { x: 0, y: 0, ...size } };
  }
  const box = { width: Number(width), height: Number(height) };
  if (fit === "contain") return { size: box, image: placed(box, scaled(source, Math.min(least, most)), anchor), background: String(background ?? "") };
  // Without enlarging, the box shrinks until the image covers it.
  const size = rounded(scaled(box, Math.min(1, most / greatest)));
  if (fit === "fill") return { size, image: { x: 0, y: 0, ...size } };
  return { size, image: placed(size, scaled(source, Math.min(greatest, most)), anchor) };
}

function changeRatio({ ratio, mode = "crop", anchor, background = "#ffffff" }: Params, source: Size): Preview | undefined {
  const [, across, down] = /^(\d+(?:\.\d{1,2})?):(\d+(?:\.\d{1,2})?)$/.exec(String(ratio ?? "")) ?? [];
  const wanted = Number(across) / Number(down);
  if (!Number.isFinite(wanted) || wanted <= 0) return undefined;
  const isWider = source.width / source.height > wanted;
  // A crop keeps the shorter side of the two, padding the longer one.
  const keepsHeight = isWider === (mode === "crop");
  const size = rounded(keepsHeight ? { width: source.height * wanted, height: source.height } : { width: source.width, height: source.width / wanted });
  return { size, image: placed(size, source, anchor), background: String(background), isBlurred: mode === "blur" };
}

function rotate({ degrees, expand, flip = "none", background = "" }: Params, source: Size): Preview | undefined {
  if (typeof degrees !== "number") return undefined;
  const [sin, cos] = [Math.abs(Math.sin((degrees * Math.PI) / 180)), Math.abs(Math.cos((degrees * Math.PI) / 180))];
  const turned = { width: source.width * cos + source.height * sin, height: source.width * sin + source.height * cos };
  const size = expand === "no" ? source : rounded(turned);
  const mirror = { x: flip === "horizontal" || flip === "both", y: flip === "vertical" || flip === "both" };
  return { size, image: placed(size, source, "center"), degrees, flip: mirror, background: String(background) };
}
