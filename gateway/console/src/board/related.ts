/** The parameters of an Action for each of several images. What was entered is meant for the first. */
import type { Action } from "../api.ts";
import type { Size } from "../view.ts";
import { type Entries, paramsOf } from "./forms.ts";
import { allParams, shapeOfAction } from "./shapes.ts";

type Params = Record<string, string | number>;

/** The parameters that count pixels of the image, by the side that they are measured along. */
const RELATIVE: Record<string, Record<"width" | "height", readonly string[]>> = {
  crop: { width: ["width", "x"], height: ["height", "y"] },
  "add-text-to-image": { width: ["offsetX"], height: ["offsetY"] },
  "overlay-image": { width: ["offsetX"], height: ["offsetY"] },
};

/** The most that the service makes. */
const MOST_SIDE = 16_384;
const MOST_PIXELS = 100_000_000;

/** Whether the sizes of the images have to be known in pixels. */
export const needsPixels = (slug: string): boolean => slug in RELATIVE;

export interface Related {
  params: Params;
  /** About the result in pixels, if that is known. */
  shape: Size | undefined;
  /** The values are not those that were entered, but in the same relation to this image. */
  isRelated: boolean;
  /** Nothing can be made of this image with these values. */
  isImpossible: boolean;
}

/** The values in the same relation to an image of another size. A rectangle stays inside of the image. */
function related(slug: string, params: Params, from: Size, to: Size): Params {
  const next = { ...params };
  for (const side of ["width", "height"] as const) {
    const [length, start] = RELATIVE[slug]?.[side] ?? [];
    for (const name of [length, start]) {
      const value = name === undefined ? undefined : params[name];
      if (name !== undefined && typeof value === "number") next[name] = Math.round((value * to[side]) / from[side]);
    }
    if (slug !== "crop" || length === undefined || start === undefined) continue;
    next[length] = Math.min(Math.max(Number(next[length]), 1), to[side]);
    if (typeof next[start] === "number") next[start] = Math.min(next[start], to[side] - Number(next[length]));
  }
  return next;
}

/** Whether a rectangle is inside of an image. Of a turned one, the service says so. */
function isInside({ width, height, x = 0, y = 0 }: Params, size: Size): boolean {
  return Number(x) + Number(width) <= size.width && Number(y) + Number(height) <= size.height;
}

const isMade = ({ width, height }: Size): boolean => width >= 1 && height >= 1 && Math.max(width, height) <= MOST_SIDE && width * height <= MOST_PIXELS;
const areSame = (a: Size, b: Size): boolean => a.width === b.width && a.height === b.height;

/**
 * The parameters for images of these sizes; the size of one that cannot be read is undefined. What fits all images is the same for all,
 * and what does not is in relation to each. An offset is in relation always.
 */
export function relatedParams(action: Action, entries: Entries, sizes: (Size | undefined)[], others: Size[] = []): Related[] {
  const { slug } = action;
  const params = paramsOf(action, entries);
  const first = sizes.find((size) => size !== undefined);
  const isComplete = action.parameters.every(({ id, required }) => !required || params[id] !== undefined);
  const fits = (size: Size) => slug !== "crop" || isInside(params, size);
  const fitsAll = slug === "crop" && sizes.every((size) => !size || fits(size));
  return sizes.map((size): Related => {
    if (size && !isComplete) return { params, shape: undefined, isRelated: false, isImpossible: false };
    if (!size || !first || !fits(first)) return { params, shape: undefined, isRelated: false, isImpossible: true };
    const isSame = fitsAll || areSame(size, first) || !needsPixels(slug);
    const own = isSame ? params : related(slug, params, first, size);
    const shape = shapeOfAction(slug, { ...allParams(action, entries), ...own }, [size, ...others]);
    const isRelated = Object.keys(own).some((name) => own[name] !== params[name]);
    return { params: own, shape, isRelated, isImpossible: needsPixels(slug) && shape !== undefined && !isMade(shape) };
  });
}
