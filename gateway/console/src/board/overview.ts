/** The board from far away, drawn on a canvas: React renders no node then, however many are in view. */
import { type Graph, isSection, type Node } from "../sync/graph.ts";
import type { Box, Point, Size } from "../view.ts";
import { bitmaps } from "./bitmaps.ts";
import type { Drag } from "./gestures.ts";
import { allLinks } from "./links.ts";
import { heightOf, lineAt } from "./shapes.ts";
import { boundsOf, encloses, middleOf, type SpatialIndex } from "./spatial.ts";

/** Below this scale, images are plain boxes. */
const IMAGE_SCALE = 0.05;

export interface Look {
  image: string;
  filled: string;
  video: string;
  text: string;
  note: string;
  section: string;
  frame: string;
  ground: string;
  line: string;
  accent: string;
}

/** The colors of the present theme. They are registered properties, so their values are resolved. */
export function lookOf(element: Element): Look {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(`--overview-${name}`);
  return {
    image: color("image"),
    filled: color("filled"),
    video: color("video"),
    text: color("text"),
    note: color("note"),
    section: color("section"),
    frame: color("frame"),
    ground: color("ground"),
    line: color("line"),
    accent: color("accent"),
  };
}

export function fillOf(node: Node, look: Look): string {
  if (isSection(node)) return look.section;
  if (node.type === "sticky") return node.metadata.color ?? look.note;
  if (node.asset !== undefined) return look.filled;
  return look[node.type as "image" | "video" | "text"];
}

/** The screen of a canvas element, cleared, with a view of the plane. */
export function prepared(canvas: HTMLCanvasElement, screen: Size): CanvasRenderingContext2D | null {
  const context = canvas.getContext("2d");
  const ratio = devicePixelRatio;
  const [width, height] = [Math.round(screen.width * ratio), Math.round(screen.height * ratio)];
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  context?.setTransform(1, 0, 0, 1, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}

export interface Scene {
  graph: Graph;
  /** Nodes that are rendered, and not drawn. */
  rendered: ReadonlySet<string>;
  index: SpatialIndex;
  selection: ReadonlySet<string>;
  drag: Drag | undefined;
  areLinesHidden: boolean;
  /** What matches the filter. The rest is drawn faintly. */
  matching?: ReadonlySet<string> | undefined;
}

/** How much is seen of what does not match the filter. */
const FAINT = 0.15;

/** The nodes in view that are drawn. */
export const drawnIn = ({ index, rendered }: Scene, seen: Box): Node[] => index.in(seen).filter(({ id }) => !rendered.has(id));

/** Draws `nodes` and, unless only a sketch is wanted, their images and the lines of what is not rendered. `changed` is called when an image has arrived. */
export function drawOverview(
  context: CanvasRenderingContext2D,
  { graph, rendered, selection, drag, areLinesHidden, matching }: Scene,
  nodes: Node[],
  view: { x: number; y: number; zoom: number },
  seen: Box,
  look: Look,
  isSketch: boolean,
  changed: () => void,
): void {
  if (nodes.length === 0) return;
  bitmaps.begin();
  const ratio = devicePixelRatio;
  const { zoom } = view;
  context.setTransform(zoom * ratio, 0, 0, zoom * ratio, view.x * ratio, view.y * ratio);
  // This runs for thousands of nodes in each frame, and makes no objects for them.
  const xOf = (node: Node) => (drag?.from.get(node.id) ?? node.position).x + (drag?.from.has(node.id) ? drag.by.x : 0);
  const yOf = (node: Node) => (drag?.from.get(node.id) ?? node.position).y + (drag?.from.has(node.id) ? drag.by.y : 0);
  const sections = nodes.filter(isSection);
  context.lineWidth = 1.5 / zoom;
  context.fillStyle = look.section;
  context.strokeStyle = look.frame;
  for (const node of sections) {
    context.fillRect(xOf(node), yOf(node), node.width, node.height);
    context.strokeRect(xOf(node), yOf(node), node.width, node.height);
  }
  context.strokeStyle = look.line;
  context.lineWidth = 1 / zoom;
  context.beginPath();
  const [right, bottom] = [seen.x + seen.width, seen.y + seen.height];
  for (const { from, to } of isSketch || areLinesHidden ? [] : allLinks(graph)) {
    if (rendered.has(from.id) && rendered.has(to.id)) continue;
    if (matching && !(matching.has(from.id) && matching.has(to.id))) continue;
    const startX = xOf(from) + from.width;
    const startY = yOf(from) + lineAt(from);
    const endX = xOf(to);
    const endY = yOf(to) + lineAt(to);
    const isSeen = Math.min(startX, endX) <= right && Math.max(startX, endX) >= seen.x && Math.min(startY, endY) <= bottom && Math.max(startY, endY) >= seen.y;
    if (!isSeen) continue;
    context.moveTo(startX, startY);
    context.lineTo(endX, endY);
  }
  context.stroke();
  for (const node of nodes) {
    if (isSection(node)) continue;
    const { width } = node;
    const [x, y, height] = [xOf(node), yOf(node), heightOf(node)];
    const image = !isSketch && zoom >= IMAGE_SCALE && node.asset !== undefined ? bitmaps.of(node.asset) : undefined;
    context.globalAlpha = (matching?.has(node.id) ?? true) ? 1 : FAINT;
    context.fillStyle = fillOf(node, look);
    context.fillRect(x, y, width, height);
    if (image) {
      const scale = Math.min(width / image.width, height / image.height);
      const [w, h] = [image.width * scale, image.height * scale];
      context.drawImage(image, x + (width - w) / 2, y + (height - h) / 2, w, h);
    }
  }
  context.globalAlpha = 1;
  context.strokeStyle = look.accent;
  context.lineWidth = 2 / zoom;
  if (selection.size > 0) for (const node of nodes) if (selection.has(node.id)) context.strokeRect(xOf(node), yOf(node), node.width, node.height);
  // The titles of Sections stay legible from far away. They lie on the upper edge, where they cover the least of what is in the Section.
  const size = 13 / zoom;
  context.font = `600 ${size}px system-ui, sans-serif`;
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 4 / zoom;
  context.fillStyle = look.frame;
  context.strokeStyle = look.ground;
  for (const node of sections) {
    if (node.width * zoom < 60 || node.title === "") continue;
    context.strokeText(node.title, xOf(node) + size, yOf(node), node.width - 2 * size);
    context.fillText(node.title, xOf(node) + size, yOf(node), node.width - 2 * size);
  }
  bitmaps.end(changed);
}

export const MINIMAP: Size = { width: 184, height: 120 };
const INSET = 8;

/** The whole canvas in the size of the small map. It is painted once for each graph, and the frame of the view is drawn above it. */
export class MinimapImage {
  #painted: { index: SpatialIndex; image: OffscreenCanvas; colors: string; ratio: number } | undefined;
  #scale = 1;
  #middle: Point = { x: 0, y: 0 };
  #all: Box = { x: 0, y: 0, width: 1, height: 1 };

  isOf(index: SpatialIndex, look: Look): boolean {
    return this.#painted?.index === index && this.#painted.colors === look.text && this.#painted.ratio === devicePixelRatio;
  }

  draw(context: CanvasRenderingContext2D, seen: Box, look: Look): void {
    if (!this.#painted) return;
    const ratio = devicePixelRatio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.drawImage(this.#painted.image, 0, 0, MINIMAP.width, MINIMAP.height);
    const { x, y } = this.#toMap(seen);
    const [width, height] = [seen.width * this.#scale, seen.height * this.#scale];
    context.fillStyle = look.accent;
    context.globalAlpha = 0.1;
    context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
    context.strokeStyle = look.accent;
    context.lineWidth = 1.5;
    context.strokeRect(x, y, width, height);
  }

  /** Whether `seen` holds the whole canvas, or nothing is painted yet: then the map says nothing. */
  isWhole(seen: Box): boolean {
    return !this.#painted || encloses(seen, this.#all);
  }

  /** The point of the plane at a point of the map. */
  toPlane({ x, y }: Point): Point {
    return { x: (x - MINIMAP.width / 2) / this.#scale + this.#middle.x, y: (y - MINIMAP.height / 2) / this.#scale + this.#middle.y };
  }

  #toMap({ x, y }: Point): Point {
    return { x: (x - this.#middle.x) * this.#scale + MINIMAP.width / 2, y: (y - this.#middle.y) * this.#scale + MINIMAP.height / 2 };
  }

  paint(graph: Graph, index: SpatialIndex, look: Look): void {
    const all = boundsOf(graph.nodes.values()) ?? { x: 0, y: 0, width: 1, height: 1 };
    this.#all = all;
    this.#middle = middleOf(all);
    this.#scale = Math.min((MINIMAP.width - 2 * INSET) / all.width, (MINIMAP.height - 2 * INSET) / all.height, 0.1);
    const ratio = devicePixelRatio;
    const image = new OffscreenCanvas(MINIMAP.width * ratio, MINIMAP.height * ratio);
    const paint = image.getContext("2d");
    if (!paint) return;
    paint.scale(ratio, ratio);
    for (const isFrame of [true, false]) {
      for (const node of graph.nodes.values()) {
        if (isSection(node) !== isFrame) continue;
        const [x, y] = [(node.position.x - this.#middle.x) * this.#scale, (node.position.y - this.#middle.y) * this.#scale];
        paint.fillStyle = node.type === "text" ? look.line : fillOf(node, look);
        paint.fillRect(x + MINIMAP.width / 2, y + MINIMAP.height / 2, Math.max(node.width * this.#scale, 1.5), Math.max(node.height * this.#scale, 1.5));
      }
    }
    this.#painted = { index, image, colors: look.text, ratio };
  }
}
