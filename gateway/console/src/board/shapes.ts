/** The shape of what is made, before it is made. */
import type { Action } from "../api.ts";
import { CAPTION, nodeSizeAt, nodeSizeOf } from "../assets.ts";
import type { Node } from "../sync/graph.ts";
import type { Box, Size } from "../view.ts";
import { paramsOf, type Entries } from "./forms.ts";
import { sizeOf } from "./gestures.ts";
import { previewOf } from "./preview.ts";

/** The longer side of a result is that of what it is made from, within these. */
const LEAST_SIDE = 240;
const MOST_SIDE = 640;
/** The least width that the service accepts. */
const LEAST_WIDTH = 24;

type Params = Record<string, string | number>;

/** The parameters as they would be sent, with the defaults. */
export function allParams(action: Action, entries: Entries): Params {
  const defaults = action.parameters.flatMap(({ id, default: value }) => (typeof value === "string" || typeof value === "number" ? [[id, value] as const] : []));
  return { ...Object.fromEntries(defaults), ...paramsOf(action, entries) };
}

/** The height of the title strip of a node that shows a picture: the service leaves it out of nodes that are too small for it. */
export const captionOf = ({ width, height, title }: Pick<Node, "width" | "height" | "title">): number => (title.trim() !== "" && height >= 3 * CAPTION && width >= 2 * CAPTION ? CAPTION : 0);

/** The height of what a node shows, without the title below a picture. */
export const heightOf = (node: Pick<Node, "type" | "width" | "height" | "title">): number => (node.type === "image" || node.type === "video" ? node.height - captionOf(node) : node.height);

/** How far below the top of a node its connections begin and end. */
export const lineAt = (node: Pick<Node, "type" | "width" | "height" | "title">): number => heightOf(node) / 2;

/** The part of a node that its picture takes. */
export const pictureOf = (node: Pick<Node, "width" | "height" | "title">): Size => ({ width: node.width, height: node.height - captionOf(node) });

/** The size in pixels of what an Action makes of these pictures, or about its shape; undefined if that is not known. */
export function shapeOfAction(slug: string, params: Params, inputs: Size[]): Size | undefined {
  const [first, second] = inputs;
  if (!first) return undefined;
  if (slug !== "side-by-side-composite") return slug === "color-grade" || slug === "overlay-image" || slug === "video-frame" ? first : previewOf(slug, params, first)?.size;
  if (!second) return undefined;
  const isRow = params["direction"] !== "vertical";
  const [along, across] = isRow ? (["width", "height"] as const) : (["height", "width"] as const);
  const least = Math.min(first[across], second[across]);
  const length = (size: Size) => (params["scale"] === "none" ? size[along] : (size[along] * least) / size[across]);
  const sides = { [along]: length(first) + length(second) + Number(params["gap"] ?? 0), [across]: params["scale"] === "none" ? Math.max(first[across], second[across]) : least };
  return sides as unknown as Size;
}

/** The shape of an image that a model makes: of the size that was chosen, or else of the picture that it changes. */
export function shapeOfImage(size: string, changed: Node | undefined): Size | undefined {
  const [, width, height] = /^(\d+)x(\d+)$/i.exec(size) ?? [];
  if (width !== undefined && height !== undefined) return { width: Number(width), height: Number(height) };
  return changed && pictureOf(changed);
}

/** The size of a node for a result of this shape. Of an unknown one it is the default size, which the service fits to the picture. */
export function sizeOfResult(shape: Size | undefined, source: Node | undefined, title: string): Size {
  if (!shape || shape.width < 1 || shape.height < 1) return sizeOf("image");
  const { width, height } = source?.type === "image" ? pictureOf(source) : sizeOf("image");
  return nodeSizeOf(shape, title, Math.min(Math.max(width, height, LEAST_SIDE), MOST_SIDE));
}

/**
 * The box of a node that shows a picture and is resized to `box`: as wide as that, and as high as shows the picture whole. A side that the
 * pointer does not move stays.
 */
export function resizedPicture(node: Node, box: Box, pixels: Size = pictureOf(node)): Box {
  const width = Math.max(Math.round(box.width), LEAST_WIDTH);
  const { height } = nodeSizeAt(width, pixels, node.title);
  return { x: box.x, y: Math.round(box.y) === node.position.y ? box.y : box.y + box.height - height, width, height };
}

/** "3:2", or "1.91:1" where the sides have no small ratio. */
export function ratioOf({ width, height }: Size): string {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));
  const by = divisor(width, height);
  if (Math.max(width, height) / by <= 21) return `${width / by}:${height / by}`;
  return width >= height ? `${Number((width / height).toFixed(2))}:1` : `1:${Number((height / width).toFixed(2))}`;
}
