/** Geometry of an image that pans and zooms. A view maps the canvas's plane to the screen: screen = plane × scale + (x, y). */
export interface View {
  x: number;
  y: number;
  scale: number;
}

export interface Size {
  width: number;
  height: number;
}

export type Box = Size & { x: number; y: number };
export type Point = { x: number; y: number };

export const LEAST_SCALE = 0.01;
export const MOST_SCALE = 8;
/** The part of the image, in pixels, that panning leaves in view. */
const KEPT = 64;

const clamp = (value: number, least: number, most: number) => Math.min(Math.max(value, least), most);

/** The room that the buttons above and below the image take. */
const MARGIN: Size = { width: 24, height: 68 };

/** The whole of `box`, centered, at most at the scale `most`. */
export function fit(box: Box, screen: Size, margin = MARGIN, most = 1): View {
  const room = (side: keyof Size) => Math.max(screen[side] - 2 * margin[side], 1);
  const scale = clamp(Math.min(room("width") / box.width, room("height") / box.height, most), LEAST_SCALE, MOST_SCALE);
  return {
    x: screen.width / 2 - (box.x + box.width / 2) * scale,
    y: screen.height / 2 - (box.y + box.height / 2) * scale,
    scale,
  };
}

/** Zooms so that `point` of the screen stays where it is. */
export function zoom(view: View, point: Point, factor: number): View {
  const scale = clamp(view.scale * factor, LEAST_SCALE, MOST_SCALE);
  const grown = scale / view.scale;
  return { x: point.x - (point.x - view.x) * grown, y: point.y - (point.y - view.y) * grown, scale };
}

/** Moves the view, and keeps a part of `box` on the screen. */
export function pan(view: View, by: Point, box: Box, screen: Size): View {
  const along = (offset: number, from: number, length: number, side: number) =>
    clamp(offset, KEPT - (from + length) * view.scale, side - KEPT - from * view.scale);
  return {
    x: along(view.x + by.x, box.x, box.width, screen.width),
    y: along(view.y + by.y, box.y, box.height, screen.height),
    scale: view.scale,
  };
}
