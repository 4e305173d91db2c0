/** Finds nodes by place. */
import { isSection, type Node } from "../sync/graph.ts";
import type { Box, Point } from "../view.ts";

export const boxOf = ({ position: { x, y }, width, height }: Node): Box => ({ x, y, width, height });
export const middleOf = ({ x, y, width, height }: Box): Point => ({ x: x + width / 2, y: y + height / 2 });

export const touches = (a: Box, b: Box): boolean =>
  a.x <= b.x + b.width && b.x <= a.x + a.width && a.y <= b.y + b.height && b.y <= a.y + a.height;

export const encloses = (outer: Box, inner: Box): boolean =>
  outer.x <= inner.x &&
  outer.y <= inner.y &&
  inner.x + inner.width <= outer.x + outer.width &&
  inner.y + inner.height <= outer.y + outer.height;

/** The smallest box around all of them. */
export function around(boxes: Iterable<Box>): Box | undefined {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { x, y, width, height } of boxes) {
    left = Math.min(left, x);
    top = Math.min(top, y);
    right = Math.max(right, x + width);
    bottom = Math.max(bottom, y + height);
  }
  return left > right ? undefined : { x: left, y: top, width: right - left, height: bottom - top };
}

/** The smallest box around nodes. It makes no objects for them: it is on the way to the first frame. */
export function boundsOf(nodes: Iterable<Node>): Box | undefined {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { position: { x, y }, width, height } of nodes) {
    if (x < left) left = x;
    if (y < top) top = y;
    if (x + width > right) right = x + width;
    if (y + height > bottom) bottom = y + height;
  }
  return left > right ? undefined : { x: left, y: top, width: right - left, height: bottom - top };
}

/**
 * The nodes of a graph by place. Each search looks at all of them: of 20000, the most that a canvas has, that takes a tenth of a
 * millisecond, while an index would take some ten to make again with every change.
 */
export class SpatialIndex {
  /** From the lowest to the topmost. */
  #all: Node[];

  constructor(nodes: Iterable<Node>) {
    this.#all = [...nodes].toSorted((a, b) => (a.metadata.zIndex ?? 0) - (b.metadata.zIndex ?? 0));
  }

  /** The nodes that touch `box`, from the lowest to the topmost: by z-index, then in the order of creation. */
  in(box: Box): Node[] {
    const [right, bottom] = [box.x + box.width, box.y + box.height];
    return this.#all.filter(({ position: { x, y }, width, height }) => x <= right && box.x <= x + width && y <= bottom && box.y <= y + height);
  }

  /** What a person sees at `point`: the topmost node, or else a Section. */
  at(point: Point): Node | undefined {
    const there = this.in({ ...point, width: 0, height: 0 });
    return there.findLast((node) => !isSection(node)) ?? there.findLast(isSection);
  }

  /** The Section in which `point` is. */
  sectionAt(point: Point): Node | undefined {
    return this.in({ ...point, width: 0, height: 0 }).findLast(isSection);
  }
}
