/** Finds nodes by place: a grid of cells over the plane. */
import { isSection, type Node } from "../sync/graph.ts";
import type { Box, Point } from "../view.ts";

const CELL = 800;
/** A node that covers more cells than this is kept apart, and looked at in every search. */
const MOST_CELLS = 256;

export const boxOf = ({ position: { x, y }, width, height }: Node): Box => ({ x, y, width, height });
export const middleOf = ({ x, y, width, height }: Box): Point => ({ x: x + width / 2, y: y + height / 2 });

export const touches = (a: Box, b: Box): boolean =>
  a.x <= b.x + b.width && b.x <= a.x + a.width && a.y <= b.y + b.height && b.y <= a.y + a.height;

export const encloses = (outer: Box, inner: Box): boolean =>
  outer.x <= inner.x &&
  outer.y <= inner.y &&
  inner.x + inner.width <= outer.x + outer.width &&
  inner.y + inner.height <= outer.y + outer.height;

const holds = (box: Box, { x, y }: Point): boolean => x >= box.x && y >= box.y && x <= box.x + box.width && y <= box.y + box.height;

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

export class SpatialIndex {
  #cells = new Map<string, Node[]>();
  #large: Node[] = [];
  /** All nodes from the lowest to the topmost, and the place of each among them. */
  #all: Node[];
  #rank = new Map<Node, number>();

  constructor(nodes: Iterable<Node>) {
    this.#all = [...nodes].toSorted((a, b) => (a.metadata.zIndex ?? 0) - (b.metadata.zIndex ?? 0));
    for (const node of this.#all) {
      this.#rank.set(node, this.#rank.size);
      const cells = cellsOf(boxOf(node));
      if (cells === undefined) {
        this.#large.push(node);
        continue;
      }
      for (const cell of cells) {
        const there = this.#cells.get(cell);
        if (there) there.push(node);
        else this.#cells.set(cell, [node]);
      }
    }
  }

  /** The nodes that touch `box`, from the lowest to the topmost: by z-index, then in the order of creation. */
  in(box: Box): Node[] {
    const cells = cellsOf(box);
    if (cells === undefined) return this.#all.filter((node) => touches(boxOf(node), box));
    const found = new Set<Node>();
    for (const cell of cells) for (const node of this.#cells.get(cell) ?? []) if (touches(boxOf(node), box)) found.add(node);
    for (const node of this.#large) if (touches(boxOf(node), box)) found.add(node);
    return [...found].toSorted((a, b) => this.#place(a) - this.#place(b));
  }

  /** What a person sees at `point`: the topmost node, or else a Section. */
  at(point: Point): Node | undefined {
    const there = this.in({ ...point, width: 0, height: 0 }).filter((node) => holds(boxOf(node), point));
    return there.findLast((node) => !isSection(node)) ?? there.findLast(isSection);
  }

  /** The Section in which `point` is. */
  sectionAt(point: Point): Node | undefined {
    return this.in({ ...point, width: 0, height: 0 }).findLast((node) => isSection(node) && holds(boxOf(node), point));
  }

  #place(node: Node): number {
    return this.#rank.get(node) ?? 0;
  }
}

function cellsOf({ x, y, width, height }: Box): string[] | undefined {
  const [left, right] = [Math.floor(x / CELL), Math.floor((x + width) / CELL)];
  const [top, bottom] = [Math.floor(y / CELL), Math.floor((y + height) / CELL)];
  if ((right - left + 1) * (bottom - top + 1) > MOST_CELLS) return undefined;
  const cells: string[] = [];
  for (let column = left; column <= right; column += 1) for (let row = top; row <= bottom; row += 1) cells.push(`${column},${row}`);
  return cells;
}
