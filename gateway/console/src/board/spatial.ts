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

export class SpatialIndex {
  /** All nodes from the lowest to the topmost. */
  #all: Node[];
  /** Made when something smaller than the whole is first asked for: the first frame of a large canvas shows all of it. */
  #grid: Grid | undefined;

  constructor(nodes: Iterable<Node>) {
    this.#all = [...nodes].toSorted((a, b) => (a.metadata.zIndex ?? 0) - (b.metadata.zIndex ?? 0));
  }

  /** The nodes that touch `box`, from the lowest to the topmost: by z-index, then in the order of creation. */
  in(box: Box): Node[] {
    const cells = cellsOf(box);
    if (cells === undefined) {
      const [right, bottom] = [box.x + box.width, box.y + box.height];
      return this.#all.filter(({ position: { x, y }, width, height }) => x <= right && box.x <= x + width && y <= bottom && box.y <= y + height);
    }
    const { byCell, large, rank } = (this.#grid ??= gridOf(this.#all));
    const found = new Set<Node>();
    for (const cell of cells) for (const node of byCell.get(cell) ?? []) if (touches(boxOf(node), box)) found.add(node);
    for (const node of large) if (touches(boxOf(node), box)) found.add(node);
    return [...found].toSorted((a, b) => (rank.get(a) ?? 0) - (rank.get(b) ?? 0));
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
}

interface Grid {
  byCell: Map<string, Node[]>;
  /** Nodes that cover too many cells. */
  large: Node[];
  /** The place of each node among all. */
  rank: Map<Node, number>;
}

function gridOf(all: Node[]): Grid {
  const grid: Grid = { byCell: new Map(), large: [], rank: new Map() };
  for (const node of all) {
    grid.rank.set(node, grid.rank.size);
    const cells = cellsOf(boxOf(node));
    if (cells === undefined) grid.large.push(node);
    for (const cell of cells ?? []) {
      const there = grid.byCell.get(cell);
      if (there) there.push(node);
      else grid.byCell.set(cell, [node]);
    }
  }
  return grid;
}

function cellsOf({ x, y, width, height }: Box): string[] | undefined {
  const [left, right] = [Math.floor(x / CELL), Math.floor((x + width) / CELL)];
  const [top, bottom] = [Math.floor(y / CELL), Math.floor((y + height) / CELL)];
  if ((right - left + 1) * (bottom - top + 1) > MOST_CELLS) return undefined;
  const cells: string[] = [];
  for (let column = left; column <= right; column += 1) for (let row = top; row <= bottom; row += 1) cells.push(`${column},${row}`);
  return cells;
}
