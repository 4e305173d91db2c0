/** Lines things up and stacks them: pure functions from a graph to changes of it. Rows, columns and grids are the service's: `layout.ts`. */
import { type Change, update } from "../sync/change.ts";
import { type Graph, isSection, type Node } from "../sync/graph.ts";
import type { Box, Point } from "../view.ts";
import { moved, resized } from "./gestures.ts";
import { around, boxOf, touches } from "./spatial.ts";

export type Edge = "left" | "right" | "top" | "bottom" | "center" | "middle";
export type Axis = "x" | "y";

export const SIDES = { x: "width", y: "height" } as const;
/** Height of the title below an image. */
const CAPTION = 28;

export const isLocked = ({ metadata }: Node): boolean => metadata.locked === true;

/** The nodes that are arranged. A Section takes its members along, so a member is none of its own. */
export function unitsOf(graph: Graph, ids: Iterable<string>): Node[] {
  const nodes = [...ids].flatMap((id) => graph.nodes.get(id) ?? []);
  const sections = new Set(nodes.filter(isSection).map(({ id }) => id));
  return nodes.filter(({ metadata }) => !sections.has(metadata.sectionId ?? ""));
}

/** Where a node begins that has to be at `begin`: there in whole units, or where it is if that is as near. */
const beginOf = (node: Node, axis: Axis, begin: number): number => (Math.abs(begin - node.position[axis]) <= 0.5 ? node.position[axis] : Math.round(begin));

/** Moves nodes along an axis to where they begin. */
const movedTo = (graph: Graph, axis: Axis, places: (readonly [Node, number])[]): Change[] =>
  places.flatMap(([node, begin]) => {
    const by = beginOf(node, axis, begin) - node.position[axis];
    return isLocked(node) || by === 0 ? [] : moved(graph, [node.id], axis === "x" ? { x: by, y: 0 } : { x: 0, y: by });
  });

const EDGES: Record<Edge, [axis: Axis, share: number]> = { left: ["x", 0], center: ["x", 0.5], right: ["x", 1], top: ["y", 0], middle: ["y", 0.5], bottom: ["y", 1] };

/** Lines up an edge or the middle of nodes with that of the whole, or of those among them that are locked. */
export function aligned(graph: Graph, ids: Iterable<string>, edge: Edge): Change[] {
  const units = unitsOf(graph, ids);
  const [axis, share] = EDGES[edge];
  const locked = units.filter(isLocked);
  const whole = around((locked.length > 0 ? locked : units).map(boxOf));
  if (!whole || units.length < 2) return [];
  const side = SIDES[axis];
  let line = whole[axis] + share * whole[side];
  if (share === 0.5 && locked.length === 0) {
    // The middle of the largest, which then is the whole. Half a unit beside it, the others would move again.
    const largest = units.reduce((one, other) => (other[side] > one[side] ? other : one));
    line = beginOf(largest, axis, line - largest[side] / 2) + largest[side] / 2;
  }
  return movedTo(graph, axis, units.map((node) => [node, line - share * node[side]]));
}

/** Makes the gaps between nodes equal, or where they have no room beside each other the distances of their middles. The outer two stay. */
export function distributed(graph: Graph, ids: Iterable<string>, axis: Axis): Change[] {
  const side = SIDES[axis];
  const middle = (node: Node) => node.position[axis] + node[side] / 2;
  const units = unitsOf(graph, ids).toSorted((a, b) => middle(a) - middle(b) || a.position[axis] - b.position[axis]);
  const [first, last] = [units[0], units.at(-1)];
  if (!first || !last || units.length < 3) return [];
  const sum = units.reduce((total, node) => total + node[side], 0);
  const gap = (last.position[axis] + last[side] - first.position[axis] - sum) / (units.length - 1);
  const step = (middle(last) - middle(first)) / (units.length - 1);
  let end = first.position[axis];
  const places = units.map((node, at) => {
    const begin = gap >= 0 ? end : middle(first) + at * step - node[side] / 2;
    end = begin + node[side] + gap;
    return [node, begin] as const;
  });
  return movedTo(graph, axis, places.slice(1, -1));
}

/** Gives nodes one height or width: that of a locked one, or else of the first. Images and videos keep their ratio. */
export function sameSize(graph: Graph, ids: Iterable<string>, side: "width" | "height"): Change[] {
  const nodes = readingRows(unitsOf(graph, ids)).flat();
  const wanted = (nodes.find(isLocked) ?? nodes[0])?.[side];
  if (wanted === undefined) return [];
  return nodes.flatMap((node) => {
    if (isLocked(node) || node[side] === wanted) return [];
    const box = { ...boxOf(node), [side]: wanted };
    if (node.asset !== undefined) {
      const ratio = node.width / Math.max(node.height - CAPTION, 1);
      if (side === "width") box.height = wanted / ratio + CAPTION;
      else box.width = Math.max(wanted - CAPTION, 1) * ratio;
    }
    return resized(node, box);
  });
}

const level = ({ metadata }: Node) => metadata.zIndex ?? 0;

/** Puts nodes above or below all others, in the order that they have. */
export function stacked(graph: Graph, ids: Iterable<string>, end: "front" | "back"): Change[] {
  const chosen = new Set(ids);
  const all = [...graph.nodes.values()].map(level);
  const nodes = [...graph.nodes.values()].filter(({ id }) => chosen.has(id)).toSorted((a, b) => level(a) - level(b));
  const bottom = end === "front" ? all.reduce((most, one) => Math.max(most, one), 0) + 1 : all.reduce((least, one) => Math.min(least, one), 0) - nodes.length;
  return nodes.map((node, at) => update("node", node, { "metadata.zIndex": bottom + at }));
}

/** Nodes in rows as they are read: a node is in the row of the first one whose middle is below its top. The service reads them so, too. */
export function readingRows(nodes: Node[]): Node[][] {
  const rest = nodes.toSorted((a, b) => a.position.y - b.position.y);
  const rows: Node[][] = [];
  while (rest[0]) {
    const middle = rest[0].position.y + rest[0].height / 2;
    const next = rest.findIndex(({ position }, at) => at > 0 && position.y >= middle);
    rows.push(rest.splice(0, next < 0 ? rest.length : next).toSorted((a, b) => a.position.x - b.position.x));
  }
  return rows;
}

// Snapping

/** A line to which something snaps: where it is, and from where to where it is drawn. */
export interface Guide {
  axis: Axis;
  at: number;
  from: number;
  to: number;
  /** Of a gap that equals another one. */
  gap?: number;
}

/** What can be snapped to on an axis, in order. */
type Line = Pick<Guide, "at" | "from" | "to">;
export interface Lines {
  x: Line[];
  y: Line[];
  boxes: Box[];
}

/** Distance of a Section's members from its edge. */
const INNER = 40;
const MOST_NODES = 300;

/** The edges and middles of nodes, and where the members of Sections begin. */
export function linesOf(nodes: Node[]): Lines {
  const some = nodes.slice(0, MOST_NODES);
  const along = (axis: Axis): Line[] => {
    const other = axis === "x" ? "y" : "x";
    const lines = some.flatMap((node) => {
      const [begin, length] = [node.position[axis], node[SIDES[axis]]];
      const [from, to] = [node.position[other], node.position[other] + node[SIDES[other]]];
      const inner = isSection(node) ? [begin + INNER, begin + length - INNER] : [];
      return [begin, begin + length / 2, begin + length, ...inner].map((at) => ({ at, from, to }));
    });
    return lines.toSorted((a, b) => a.at - b.at);
  };
  return { x: along("x"), y: along("y"), boxes: some.filter((node) => !isSection(node)).map(boxOf) };
}

/** The line that is nearest to `at`. */
function nearest(lines: Line[], at: number): Line | undefined {
  let [low, high] = [0, lines.length];
  while (low < high) {
    const half = (low + high) >> 1;
    if ((lines[half] as Line).at < at) low = half + 1;
    else high = half;
  }
  const [before, after] = [lines[low - 1], lines[low]];
  return !before || (after && after.at - at < at - before.at) ? after : before;
}

/** Where a box would begin so that the gap to a neighbor equals another gap of the row or column. */
function equalGaps(boxes: Box[], box: Box, axis: Axis): { begin: number; gap: number }[] {
  const [other, side] = [axis === "x" ? "y" : "x", SIDES[axis]] as const;
  const across = SIDES[other];
  const row = boxes.filter((one) => one[other] < box[other] + box[across] && box[other] < one[other] + one[across]);
  const middle = box[axis] + box[side] / 2;
  const before = row.filter((one) => one[axis] + one[side] / 2 < middle).toSorted((a, b) => b[axis] + b[side] - a[axis] - a[side]);
  const after = row.filter((one) => one[axis] + one[side] / 2 >= middle).toSorted((a, b) => a[axis] - b[axis]);
  const found: { begin: number; gap: number }[] = [];
  const add = (begin: number, gap: number) => gap > 0 && found.push({ begin, gap });
  const [left, farLeft, right, farRight] = [before[0], before[1], after[0], after[1]];
  if (left && farLeft) {
    const gap = left[axis] - farLeft[axis] - farLeft[side];
    add(left[axis] + left[side] + gap, gap);
  }
  if (right && farRight) {
    const gap = farRight[axis] - right[axis] - right[side];
    add(right[axis] - gap - box[side], gap);
  }
  if (left && right) {
    const gap = (right[axis] - left[axis] - left[side] - box[side]) / 2;
    add(left[axis] + left[side] + gap, gap);
  }
  return found;
}

/** Which parts of a box snap on an axis: shares of its side. All of one that is moved, the edge of one that is resized. */
export type Parts = Record<Axis, number[]>;
export const WHOLE: Parts = { x: [0, 0.5, 1], y: [0, 0.5, 1] };

/**
 * How far a box is moved so that it lies on the nearest lines, and these lines. `reach`: the greatest distance of a line, in units. A line
 * of `before` is kept up to 5/3 of that, so that a hand that trembles does not leave it.
 */
export function snapped(box: Box, lines: Lines, reach: number, parts: Parts = WHOLE, before: Guide[] = []): { by: { x: number; y: number }; guides: Guide[] } {
  const by = { x: 0, y: 0 };
  const guides: Guide[] = [];
  for (const axis of ["x", "y"] as const) {
    const [other, side] = [axis === "x" ? "y" : "x", SIDES[axis]] as const;
    const span = { from: box[other], to: box[other] + box[SIDES[other]] };
    const kept = before.find((guide) => guide.axis === axis);
    let best: { by: number; guide: Guide } | undefined;
    const offer = (distance: number, guide: Guide) => {
      const isKept = kept?.at === guide.at && kept.gap === guide.gap;
      const limit = isKept ? (reach * 5) / 3 : reach;
      if (Math.abs(distance) <= limit && (!best || Math.abs(distance) < Math.abs(best.by))) best = { by: distance, guide };
    };
    for (const share of parts[axis]) {
      const at = box[axis] + share * box[side];
      const line = nearest(lines[axis], at);
      if (line) offer(line.at - at, { axis, at: line.at, from: Math.min(line.from, span.from), to: Math.max(line.to, span.to) });
    }
    if (parts[axis].length === WHOLE[axis].length) {
      for (const { begin, gap } of equalGaps(lines.boxes, box, axis)) offer(begin - box[axis], { axis, at: begin, ...span, gap: Math.round(gap) });
    }
    if (!best) continue;
    by[axis] = best.by;
    guides.push(best.guide);
  }
  return { by, guides };
}

// Drags

/** What the pointer holds: its box, and the lines of everything else that is in view. */
export interface Grip {
  box: Box;
  lines: Lines;
}

/** What keys and settings say of a drag: whether it keeps to an axis, makes a copy, and snaps to nothing. */
export interface Held {
  isStraight: boolean;
  isCopy: boolean;
  isFree: boolean;
}
export const HELD: Held = { isStraight: false, isCopy: false, isFree: false };

/** How near a line is that something snaps to, and how much further than the other an axis is to take over, in pixels. */
const REACH = 6;
const SWITCH = 8;

const NOWHERE: Box = { x: 0, y: 0, width: 0, height: 0 };

export function gripOf(graph: Graph, ids: ReadonlySet<string>, seen = NOWHERE): Grip {
  const held = [...ids].flatMap((id) => graph.nodes.get(id) ?? []);
  const others = [...graph.nodes.values()].filter((node) => !ids.has(node.id) && touches(boxOf(node), seen));
  return { box: around(held.map(boxOf)) ?? NOWHERE, lines: linesOf(others) };
}

interface Dragged {
  by: Point;
  guides?: Guide[];
  isCopy?: boolean;
}

/** Where a drag is, of which the pointer is so far from where it began. `before`: where it was. */
export function dragged({ box, lines }: Grip, pointer: Point, { isStraight, isCopy, isFree }: Held, scale: number, before: Dragged): Dragged {
  const by = { ...pointer };
  if (isStraight) {
    const isAlongX = before.by.x !== 0 && before.by.y === 0;
    const isAlongY = before.by.y !== 0 && before.by.x === 0;
    const ahead = (Math.abs(pointer.x) - Math.abs(pointer.y)) * scale + (isAlongX ? SWITCH : isAlongY ? -SWITCH : 0);
    by[ahead >= 0 ? "y" : "x"] = 0;
  }
  if (isFree) return { by, guides: [], isCopy };
  // Along an axis, nothing snaps across it.
  const parts = { x: isStraight && by.x === 0 ? [] : WHOLE.x, y: isStraight && by.y === 0 ? [] : WHOLE.y };
  const snap = snapped({ ...box, x: box.x + by.x, y: box.y + by.y }, lines, REACH / scale, parts, before.guides);
  return { by: { x: by.x + snap.by.x, y: by.y + snap.by.y }, guides: snap.guides, isCopy };
}

/** The box of a resize, whose moving edges snap. Of one that keeps its ratio, the width does. */
export function resizedTo({ box: was, lines }: Grip, box: Box, { isFree }: Held, scale: number, before: Guide[] = [], keepsRatio = false): { box: Box; guides: Guide[] } {
  const [isLeft, isTop] = [box.x !== was.x, box.y !== was.y];
  if (isFree || box.width === 0) return { box, guides: [] };
  const parts = { x: box.width === was.width ? [] : [isLeft ? 0 : 1], y: keepsRatio || box.height === was.height ? [] : [isTop ? 0 : 1] };
  const { by, guides } = snapped(box, lines, REACH / scale, parts, before);
  const width = box.width + (isLeft ? -by.x : by.x);
  const height = keepsRatio ? (box.height * width) / box.width : box.height + (isTop ? -by.y : by.y);
  return { box: { x: isLeft ? box.x + by.x : box.x, y: isTop ? box.y + box.height - height : box.y, width, height }, guides };
}
