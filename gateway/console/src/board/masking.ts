/** The geometry of masks. */
import type { Box, Point, Size } from "../view.ts";

/** The longest side of a painted mask. The service scales it to its source. */
const MOST_SIDE = 2048;

/** The size in which a mask of an image is painted: that of the image, or a smaller one of its shape. */
export function maskSize({ width, height }: Size): Size {
  const scale = Math.min(MOST_SIDE / Math.max(width, height), 1);
  const side = (length: number) => Math.max(Math.round(length * scale), 1);
  return { width: side(width), height: side(height) };
}

const within = (value: number, most: number) => Math.min(Math.max(value, 0), most);

/** The rectangle between two points, as far as it is within an image of this size. */
export function boxOf([from, to]: [Point, Point], { width, height }: Size): Box {
  const [x, y] = [within(Math.min(from.x, to.x), width), within(Math.min(from.y, to.y), height)];
  return { x, y, width: within(Math.max(from.x, to.x), width) - x, height: within(Math.max(from.y, to.y), height) - y };
}
