/** Where new nodes go: on nothing, and if possible where a person looks. Pure, as is the rule by which the view follows them. */
import { type Graph, isSection, type Node } from "../sync/graph.ts";
import type { Box, Point, Size } from "../view.ts";
import { around, boxOf, encloses, middleOf } from "./spatial.ts";

/** The least distance of a new node from all others. */
export const GAP = 24;
/** More new nodes than this are a grid, not a row. */
const MOST_IN_ROW = 4;
/** How many rows above and below a place are searched for another, and their distance. */
const ROWS = 40;
const STEP = 40;

export interface Where {
  /** The nodes that the new ones are made from: these are placed beside them, in the same Section if there is room. */
  sources?: Node[];
  /** Where their middle is wanted. That place is taken if it is free. Without one, it is in the middle of what is seen. */
  at?: Point | undefined;
  /** The part of the plane that nothing covers on the screen. */
  free: Box;
}

/** Whether two boxes are closer than new nodes are to others. */
const isNear = (a: Box, b: Box): boolean => a.x < b.x + b.width + GAP && b.x < a.x + a.width + GAP && a.y < b.y + b.height + GAP && b.y < a.y + a.height + GAP;

const within = (value: number, least: number, most: number) => Math.min(Math.max(value, least), most);

/** The part of `box` that is in `free`, from 0 to 1. */
export function shareIn(box: Box, free: Box): number {
  const width = Math.min(box.x + box.width, free.x + free.width) - Math.max(box.x, free.x);
  const height = Math.min(box.y + box.height, free.y + free.height) - Math.max(box.y, free.y);
  return width <= 0 || height <= 0 ? 0 : (width * height) / (box.width * box.height);
}

/** Boxes of these sizes in a row, or more in a grid: with level tops, equally far from each other, around the origin to the right and below. */
export function arranged(sizes: Size[], columns = sizes.length <= MOST_IN_ROW ? sizes.length : Math.ceil(Math.sqrt(sizes.length))): Box[] {
  const boxes: Box[] = [];
  let [x, y, height] = [0, 0, 0];
  for (const [index, size] of sizes.entries()) {
    if (index > 0 && index % columns === 0) [x, y, height] = [0, y + height + GAP, 0];
    boxes.push({ x, y, ...size });
    x += size.width + GAP;
    height = Math.max(height, size.height);
  }
  return boxes;
}

/** Free places for `size` around `at`, the nearest first: in rows, the first to the right of it and the first to the left. */
function nearby({ x, y }: Point, { width, height }: Size, taken: Box[]): Point[] {
  const size = { width, height };
  const [least, greatest] = [y - ROWS * STEP - GAP, y + ROWS * STEP + size.height + GAP];
  const near = taken.filter((box) => box.y < greatest && box.y + box.height > least).toSorted((a, b) => a.x - b.x);
  const places: Point[] = [];
  for (let row = 0; row <= 2 * ROWS; row += 1) {
    const top = y + Math.ceil(row / 2) * (row % 2 === 1 ? STEP : -STEP);
    const inRow = near.filter((box) => box.y < top + size.height + GAP && top < box.y + box.height + GAP);
    let right = x;
    for (const box of inRow) if (isNear(box, { x: right, y: top, ...size })) right = Math.ceil(box.x + box.width + GAP);
    let left = x;
    for (const box of inRow.toSorted((a, b) => b.x + b.width - a.x - a.width)) if (isNear(box, { x: left, y: top, ...size })) left = Math.floor(box.x - GAP - size.width);
    places.push({ x: right, y: top }, ...(left === right ? [] : [{ x: left, y: top }]));
  }
  return places.toSorted((a, b) => Math.hypot(a.x - x, a.y - y) - Math.hypot(b.x - x, b.y - y));
}

/** Free places for a node that is on the board already. For a Section, other Sections are in the way, and their members are not. */
export function placesAround(graph: Graph, node: Node): Point[] {
  const others = [...graph.nodes.values()].filter((other) => other.id !== node.id && isSection(other) === isSection(node));
  return nearby(node.position, node, others.map(boxOf));
}

/**
 * The position of new nodes that keep their places among each other, as a box of this size. It covers no node and no frame of a Section:
 * what is made from a member of a Section, or at a point in one, is inside of that Section, or outside of all.
 */
export function placeFor(graph: Graph, { width, height }: Size, { sources = [], at, free }: Where): Point {
  const size = { width, height };
  const nodes = [...graph.nodes.values()];
  const source = around(sources.map(boxOf));
  const middle = at ?? middleOf(free);
  const home = source ? homeOf(graph, sources) : nodes.findLast((node) => isSection(node) && encloses(boxOf(node), { ...middle, width: 0, height: 0 }));
  const wanted = { x: Math.round(middle.x - width / 2), y: Math.round(middle.y - height / 2) };
  const find = (origin: Box | undefined, inside: Box | undefined): Point | undefined => {
    // A Section around the one that is searched is no obstacle.
    const taken = nodes.map(boxOf).filter((box, index) => !inside || !isSection(nodes[index] as Node) || !encloses(box, inside));
    const beside = origin && { x: Math.round(origin.x + origin.width + GAP), y: Math.round(origin.y) };
    const below = origin && { x: Math.round(origin.x), y: Math.round(origin.y + origin.height + GAP) };
    // In a Section, as far in it as is necessary.
    const corner = inside ? { x: Math.round(within(wanted.x, inside.x, inside.x + inside.width - width)), y: Math.round(within(wanted.y, inside.y, inside.y + inside.height - height)) } : wanted;
    const isFree = (point: Point) => !taken.some((box) => isNear(box, { ...point, ...size }));
    if (at && isFree(wanted) && (!inside || encloses(inside, { ...wanted, ...size }))) return wanted;
    const candidates = [...(beside && below ? [...[beside, below].filter(isFree), ...nearby(beside, size, taken)] : []), ...nearby(corner, size, taken)];
    const possible = inside ? candidates.filter((point) => encloses(inside, { ...point, ...size })) : candidates;
    let [best, most] = [possible[0], -1];
    for (const point of possible) {
      const share = shareIn({ ...point, ...size }, free);
      if (share > most) [best, most] = [point, share];
      if (share === 1) break;
    }
    return best;
  };
  const section = home && boxOf(home);
  // Outside of a Section, the first row is beside it and level with the source.
  const outside = section && source ? { ...section, y: source.y, height: section.y + section.height - source.y } : source;
  return (section && find(source, section)) ?? find(outside, undefined) ?? wanted;
}

/** The Section of all these nodes. */
function homeOf(graph: Graph, nodes: Node[]): Node | undefined {
  const [id, ...others] = new Set(nodes.map(({ metadata }) => metadata.sectionId));
  return id === undefined || others.length > 0 ? undefined : graph.nodes.get(id);
}

/** The positions of new nodes of these sizes, in a row or a grid, or in rows of so many. */
export function placesFor(graph: Graph, sizes: Size[], where: Where, columns?: number): Point[] {
  const boxes = arranged(sizes, columns);
  const all = around(boxes);
  if (!all) return [];
  const { x, y } = placeFor(graph, all, where);
  return boxes.map((box) => ({ x: x + box.x, y: y + box.y }));
}

// The view

/** Of new nodes, this part is enough to be seen. */
const ENOUGH = 0.6;
/** The view is not zoomed out to less than this, nor to less than this part of what it was. */
const LEAST_ZOOM = 0.25;
const LEAST_CHANGE = 0.5;
/** The same for what was asked to be shown beside something. */
const LEAST_ROOM = 0.35;
/** What a view that moves leaves at its edges, in pixels. */
const MARGIN = 16;

/** As React Flow writes it: screen = plane × zoom + (x, y). */
export interface Viewport {
  x: number;
  y: number;
  zoom: number;
}

/** A view on the way between two: the point that is at one place of the screen in both stays there. `part`: how much of the way, from 0 to 1. */
export function between(from: Viewport, to: Viewport, part: number): Viewport {
  const zoom = from.zoom * (to.zoom / from.zoom) ** part;
  const way = to.zoom === from.zoom ? part : (zoom - from.zoom) / (to.zoom - from.zoom);
  return { x: from.x + (to.x - from.x) * way, y: from.y + (to.y - from.y) * way, zoom };
}

/** A box of pixels of the screen on the plane. */
export const onPlane = ({ x, y, width, height }: Box, view: Viewport): Box => ({
  x: (x - view.x) / view.zoom,
  y: (y - view.y) / view.zoom,
  width: width / view.zoom,
  height: height / view.zoom,
});

const area = ({ width, height }: Size): number => width * height;

/** How far a line is moved by the least, so that it is inside of another one that is at least as long. */
const into = (from: number, length: number, start: number, room: number): number => (from < start ? start - from : from + length > start + room ? start + room - from - length : 0);

/** The view that is moved by the least, so that `box` is in `free`, a box of the screen; undefined if it is too large. */
export function pannedTo(view: Viewport, free: Box, box: Box): Viewport | undefined {
  const { zoom } = view;
  const [width, height] = [(box.width + (2 * MARGIN) / zoom) * zoom, (box.height + (2 * MARGIN) / zoom) * zoom];
  if (width > free.width || height > free.height) return undefined;
  const [left, top] = [box.x * zoom + view.x - MARGIN, box.y * zoom + view.y - MARGIN];
  return { x: view.x + into(left, width, free.x, free.width), y: view.y + into(top, height, free.y, free.height), zoom };
}

/**
 * The view that shows enough of new nodes, in `free` of the screen: the same, or one that is moved by the least or zoomed out a little, if
 * it can show what they are made from, too. Undefined if a view would have to change more than that.
 */
export function viewFor(view: Viewport, free: Box, targets: Box[], sources: Box[]): Viewport | undefined {
  const all = around([...targets, ...sources]);
  if (!all) return view;
  const seen = onPlane(free, view);
  const shown = targets.reduce((sum, box) => sum + shareIn(box, seen) * area(box), 0);
  if (shown >= ENOUGH * targets.reduce((sum, box) => sum + area(box), 0)) return view;
  const panned = pannedTo(view, free, all);
  if (panned) return panned;
  const room = { width: free.width - 2 * MARGIN, height: free.height - 2 * MARGIN };
  const zoom = Math.min(room.width / all.width, room.height / all.height, view.zoom);
  if (room.width <= 0 || room.height <= 0 || zoom < Math.max(LEAST_ZOOM, view.zoom * LEAST_CHANGE)) return undefined;
  const { x, y } = middleOf(free);
  const middle = middleOf(all);
  return { x: x - middle.x * zoom, y: y - middle.y * zoom, zoom };
}

/**
 * The view in which `box` is in `free`, a box of the screen, with so many pixels above and below it: moved by the least, and zoomed out as
 * far as that needs. Undefined if that is too far.
 */
export function roomFor({ x, y, zoom: before }: Viewport, free: Box, box: Box, above: number, below: number): Viewport | undefined {
  const room = { width: free.width - 2 * MARGIN, height: free.height - 2 * MARGIN - above - below };
  // A little less, for what is lost by rounding.
  const zoom = Math.min((room.width - 1) / box.width, (room.height - 1) / box.height, before);
  if (zoom < before * LEAST_ROOM) return undefined;
  const middle = middleOf(box);
  const zoomed = { x: x + middle.x * (before - zoom), y: y + middle.y * (before - zoom), zoom };
  return pannedTo(zoomed, free, { ...box, y: box.y - above / zoom, height: box.height + (above + below) / zoom });
}
