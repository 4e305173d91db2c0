/** What part of the plane is seen, and how it is moved. */
import { isNarrow } from "../ui/screen.ts";
import type { Box, Point, Size } from "../view.ts";
import type { Board, Surface } from "./board.ts";
import { between, onPlane, pannedTo, roomFor, type Viewport, viewFor } from "./places.ts";
import { boundsOf, boxOf, encloses, middleOf, touches } from "./spatial.ts";

export const LEAST_ZOOM = 0.005;
export const MOST_ZOOM = 8;
/** Below this scale, nodes are drawn and not rendered. */
const OVERVIEW_ZOOM = 0.25;
/** At this scale, texts are legible. */
const READING_ZOOM = 1;
/** Less of a node than this is not enough to write on it, in pixels. */
const LEAST_SEEN = 48;
/** The window is larger than the view by this many pixels, and moves in steps of this size. */
const MARGIN = 240;
/** What the tools and buttons at the edges cover of the board, in pixels: in a wide window, and in one that is as narrow as a phone. */
const COVERED = { left: 76, top: 64, right: 0, bottom: 76 };
const COVERED_NARROW = { left: 0, top: 0, right: 0, bottom: 56 };
/** What stays empty around what is shown as a whole, in pixels. */
const INSET = 24;
/** How long after a gesture the view does not move by itself, in milliseconds. */
const BUSY = 600;
/** How long the edge of a node flashes, in milliseconds. */
const FLASH = 400;
/** The length of the view's animation. */
const DURATION = 220;
/** How long a node that gets the keyboard may take to be rendered, in milliseconds. */
const PATIENCE = 1000;
/** How long after its last step the view is at rest, in milliseconds. */
const REST = 120;

/** What of the view decides on what is rendered. It changes seldom. */
export interface Window {
  box: Box;
  isFar: boolean;
  /** How many pixels of the screen a unit of the plane takes, rounded up to a power of two. */
  detail: number;
}

const outline = (percent: number) => ({ outline: `calc(3px * var(--unscale)) solid color-mix(in srgb, var(--accent) ${percent}%, transparent)`, outlineOffset: "calc(3px * var(--unscale))" });

/** The part of the plane in view and some of its surroundings, in coarse steps. */
export function windowOf({ x, y, zoom }: Viewport, { width, height }: Size, ratio = 1): Window {
  const step = MARGIN / 2 ** Math.round(Math.log2(zoom));
  const down = (value: number) => Math.floor(value / step) * step;
  const up = (value: number) => Math.ceil(value / step) * step;
  const [left, top] = [down((-x - MARGIN) / zoom), down((-y - MARGIN) / zoom)];
  const [right, bottom] = [up((width - x + MARGIN) / zoom), up((height - y + MARGIN) / zoom)];
  return {
    box: { x: left, y: top, width: right - left, height: bottom - top },
    isFar: zoom < OVERVIEW_ZOOM,
    detail: 2 ** Math.ceil(Math.log2(zoom * ratio)),
  };
}

const isSame = (a: Window, b: Window): boolean =>
  a.isFar === b.isFar &&
  a.detail === b.detail &&
  a.box.x === b.box.x &&
  a.box.y === b.box.y &&
  a.box.width === b.box.width &&
  a.box.height === b.box.height;

export class Camera implements Surface {
  readonly first: Viewport;
  #view: Viewport;
  #screen: Size;
  #window: Window;
  #key: string;
  #board: Board;
  #frame: HTMLElement;
  #apply: ((view: Viewport) => void) | undefined;
  #pointer: Point | undefined;
  #rest: ReturnType<typeof setTimeout> | undefined;
  #isZooming = false;
  #focusing = 0;
  /** The next frame on the way to another view. */
  #gliding: number | undefined;
  /** When a gesture has moved the view last. */
  #gestured = -Infinity;
  #isPressed = false;
  #listeners = new Set<() => void>();
  #prompt: Box | undefined;
  #promptListeners = new Set<() => void>();

  constructor(canvas: string, board: Board, frame: HTMLElement) {
    this.#board = board;
    this.#frame = frame;
    this.#key = `canvas.view ${canvas}`;
    this.#screen = { width: frame.clientWidth, height: frame.clientHeight };
    this.first = this.#fitting(this.#boxOf(board.getUi().selection)) ?? this.#kept() ?? this.#fitting(this.#boxOf()) ?? { x: this.#screen.width / 2, y: this.#screen.height / 2, zoom: 1 };
    this.#view = this.first;
    this.#window = windowOf(this.first, this.#screen, devicePixelRatio);
    this.#rescale();
    this.#show(this.first);
  }

  get view(): Viewport {
    return this.#view;
  }

  get screen(): Size {
    return this.#screen;
  }

  /** The part of the plane in view. */
  get seen(): Box {
    const { x, y, zoom } = this.#view;
    return { x: -x / zoom, y: -y / zoom, width: this.#screen.width / zoom, height: this.#screen.height / zoom };
  }

  /** Where the Prompt lies, in pixels of the board: the bar keeps off it. */
  get prompt(): Box | undefined {
    return this.#prompt;
  }

  readonly placePrompt = (box: Box | undefined): void => {
    this.#prompt = box;
    for (const listener of this.#promptListeners) listener();
  };

  /** Calls `listener` whenever the Prompt has come, gone, or moved. */
  readonly subscribeToPrompt = (listener: () => void): (() => void) => {
    this.#promptListeners.add(listener);
    return () => void this.#promptListeners.delete(listener);
  };

  readonly getWindow = (): Window => this.#window;

  /** Calls `listener` whenever the view has moved. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Takes commands for the view, with what applies them, until the returned function is called. */
  connect(apply: (view: Viewport) => void): () => void {
    this.#apply = apply;
    const detach = this.#board.attach(this);
    this.#board.scaled(this.#view.zoom);
    const observer = new ResizeObserver(() => {
      const selected = this.#boxOf(this.#board.getUi().selection);
      const seen = selected && encloses(this.free(), selected) ? selected : undefined;
      this.#screen = { width: this.#frame.clientWidth, height: this.#frame.clientHeight };
      this.#show(this.#view);
      // A panel that opens does not cover what it is about.
      const view = seen && pannedTo(this.#view, this.#uncovered(), seen);
      if (seen && view && !encloses(this.free(), seen)) this.#go(view);
    });
    observer.observe(this.#frame);
    const stop = new AbortController();
    const press = (isPressed: boolean) => () => (this.#isPressed = isPressed);
    addEventListener("pointerdown", press(true), { signal: stop.signal, capture: true });
    for (const end of ["pointerup", "pointercancel", "dragend"]) addEventListener(end, press(false), { signal: stop.signal, capture: true });
    return () => {
      stop.abort();
      clearTimeout(this.#rest);
      this.#stop();
      observer.disconnect();
      detach();
    };
  }

  /**
   * The view is now this one. Until it rests, the nodes that are rendered are one layer that is moved as a whole. While the scale changes,
   * they stay the same, so that what is only passed is never rendered. `isGesture`: a person has moved it, not a command.
   */
  moved(view: Viewport, isGesture: boolean): void {
    if (view.x === this.#view.x && view.y === this.#view.y && view.zoom === this.#view.zoom) return;
    if (isGesture) {
      this.#gestured = performance.now();
      this.#stop();
    }
    // A single step, such as a key, is no zooming yet.
    this.#isZooming ||= this.#rest !== undefined && view.zoom !== this.#view.zoom;
    this.#view = view;
    this.#board.scaled(view.zoom);
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => this.#rested(), REST);
    this.#frame.toggleAttribute("data-moving", true);
    this.#show(view);
  }

  /** Labels and handles have one size on the screen. While the scale changes, they are scaled along. */
  #rescale(): void {
    const unscale = String(1 / Math.max(this.#view.zoom, OVERVIEW_ZOOM));
    if (this.#frame.style.getPropertyValue("--unscale") !== unscale) this.#frame.style.setProperty("--unscale", unscale);
  }

  #rested(): void {
    this.#rest = undefined;
    this.#isZooming = false;
    this.#rescale();
    this.#frame.toggleAttribute("data-moving", false);
    this.#show(this.#view);
  }

  #show(view: Viewport): void {
    const next = windowOf(view, this.#screen, devicePixelRatio);
    if (!this.#isZooming && !isSame(next, this.#window)) this.#window = next;
    for (const listener of this.#listeners) listener();
  }

  /** Remembers the view for a reload of this tab. */
  keep(): void {
    if (this.#gliding === undefined) sessionStorage.setItem(this.#key, JSON.stringify(this.#view));
  }

  point(at: Point | undefined): void {
    this.#pointer = at;
  }

  pointer(): Point | undefined {
    return this.#pointer && this.toPlane(this.#pointer);
  }

  free(): Box {
    return onPlane(this.#uncovered(), this.#view);
  }

  /** The part of the board that no tool covers, in its pixels. */
  #uncovered(): Box {
    const { width, height } = this.#screen;
    const { left, top, right, bottom } = isNarrow() ? COVERED_NARROW : COVERED;
    return { x: left, y: top, width: Math.max(width - left - right, 1), height: Math.max(height - top - bottom, 1) };
  }

  sees(ids: string[]): boolean {
    return viewFor(this.#view, this.#uncovered(), this.#boxesOf(ids), []) === this.#view;
  }

  follow(ids: string[], sources: string[]): boolean {
    const view = viewFor(this.#view, this.#uncovered(), this.#boxesOf(ids), this.#boxesOf(sources));
    if (view === this.#view) return true;
    if (!view || this.#isPressed || this.#board.isWriting || performance.now() - this.#gestured < BUSY) return false;
    this.#go(view);
    return true;
  }

  makeRoom(box: Box, above: number, below: number): void {
    const view = roomFor(this.#view, this.#uncovered(), box, above, below);
    if (view && !this.#isPressed) this.#go(view);
  }

  flash(ids: string[]): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const id of ids) {
      const node = this.#frame.querySelector(`.react-flow__node[data-id="${CSS.escape(id)}"]`);
      node?.animate([outline(0), outline(100), outline(0)], FLASH);
    }
  }

  #boxesOf(ids: string[]): Box[] {
    const { nodes } = this.#board.graph;
    return ids.flatMap((id) => nodes.get(id) ?? []).map(boxOf);
  }

  toPlane({ x, y }: Point): Point {
    const { left, top } = this.#frame.getBoundingClientRect();
    return { x: (x - left - this.#view.x) / this.#view.zoom, y: (y - top - this.#view.y) / this.#view.zoom };
  }

  toScreen({ x, y }: Point): Point {
    const { left, top } = this.#frame.getBoundingClientRect();
    return { x: x * this.#view.zoom + this.#view.x + left, y: y * this.#view.zoom + this.#view.y + top };
  }

  /** A box of the plane in pixels of the board. */
  toBoard({ x, y, width, height }: Box): { left: number; top: number; width: number; height: number } {
    const { zoom } = this.#view;
    return { left: x * zoom + this.#view.x, top: y * zoom + this.#view.y, width: width * zoom, height: height * zoom };
  }

  show(ids?: Iterable<string>, most = 1): void {
    const box = this.#boxOf(ids);
    if (box) this.showBox(box, most);
  }

  showBox(box: Box, most = 1): void {
    const view = this.#fitting(box, most);
    if (view) this.#go(view);
  }

  showPixels(id: string, across: number): void {
    const box = this.#boxOf([id]);
    if (!box) return;
    const zoom = Math.min(Math.max(across / box.width / devicePixelRatio, LEAST_ZOOM), MOST_ZOOM);
    const [middle, target] = [middleOf(this.#uncovered()), middleOf(box)];
    this.#go({ x: middle.x - target.x * zoom, y: middle.y - target.y * zoom, zoom });
  }

  zoomBy(factor: number): void {
    this.zoomTo(this.#view.zoom * factor);
  }

  zoomTo(scale: number): void {
    const zoom = Math.min(Math.max(scale, LEAST_ZOOM), MOST_ZOOM);
    const [x, y] = [this.#screen.width / 2, this.#screen.height / 2];
    const grown = zoom / this.#view.zoom;
    this.#go({ x: x - (x - this.#view.x) * grown, y: y - (y - this.#view.y) * grown, zoom });
  }

  panBy(x: number, y: number): void {
    this.#go({ ...this.#view, x: this.#view.x + x, y: this.#view.y + y }, false);
  }

  center({ x, y }: Point): void {
    const { zoom } = this.#view;
    this.#go({ x: this.#screen.width / 2 - x * zoom, y: this.#screen.height / 2 - y * zoom, zoom }, false);
  }

  reveal(id: string): void {
    const box = this.#boxOf([id]);
    const { x, y, width: across, height: down } = this.seen;
    const inset = LEAST_SEEN / this.#view.zoom;
    const inside = { x: x + inset, y: y + inset, width: across - 2 * inset, height: down - 2 * inset };
    if (!box || (this.#view.zoom >= OVERVIEW_ZOOM && touches(box, inside))) return;
    const zoom = Math.max(this.#view.zoom, READING_ZOOM);
    // Of a node that is larger than the view, the corner where its text begins.
    const [width, height] = [Math.min(box.width, this.#screen.width / zoom), Math.min(box.height, this.#screen.height / zoom)];
    this.#go({ x: this.#screen.width / 2 - (box.x + width / 2) * zoom, y: this.#screen.height / 2 - (box.y + height / 2) * zoom, zoom });
  }

  focus(id?: string): void {
    let before: Element | null | undefined;
    const end = performance.now() + PATIENCE;
    const attempt = () => {
      before ??= document.activeElement;
      // A text that is edited now keeps the keyboard, and so does what a person has gone to since.
      if (this.#board.getUi().editing || (document.activeElement !== before && document.activeElement !== document.body)) return;
      const node = id === undefined ? null : this.#frame.querySelector<HTMLElement>(`.react-flow__node[data-id="${CSS.escape(id)}"]`);
      if (!node && id !== undefined && performance.now() < end) this.#focusing = requestAnimationFrame(attempt);
      else (node ?? this.#frame.querySelector<HTMLElement>(".react-flow"))?.focus({ preventScroll: true });
    };
    cancelAnimationFrame(this.#focusing);
    this.#focusing = requestAnimationFrame(attempt);
  }

  focused(): string | undefined {
    return document.activeElement?.closest(".react-flow__node")?.getAttribute("data-id") ?? undefined;
  }

  #go(view: Viewport, isAnimated = true): void {
    this.#stop();
    if (isAnimated && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.#glide(view);
    else this.#apply?.(view);
  }

  /** Moves the view to another one, until a person moves it. */
  #glide(to: Viewport): void {
    const [from, began] = [this.#view, performance.now()];
    const step = (now: number) => {
      const left = 1 - Math.min(Math.max((now - began) / DURATION, 0), 1);
      this.#gliding = left > 0 ? requestAnimationFrame(step) : undefined;
      this.#apply?.(left > 0 ? between(from, to, 1 - left ** 3) : to);
    };
    this.#gliding = requestAnimationFrame(step);
  }

  #stop(): void {
    if (this.#gliding !== undefined) cancelAnimationFrame(this.#gliding);
    this.#gliding = undefined;
  }

  #boxOf(ids?: Iterable<string>): Box | undefined {
    const { nodes } = this.#board.graph;
    return boundsOf(ids ? [...ids].flatMap((id) => nodes.get(id) ?? []) : nodes.values());
  }

  /** The view with the whole of `box` in the middle of what no tool covers. */
  #fitting(box: Box | undefined, most = 1): Viewport | undefined {
    if (!box) return undefined;
    const free = this.#uncovered();
    const room = (side: keyof Size) => Math.max(free[side] - 2 * INSET, 1) / box[side];
    const zoom = Math.max(Math.min(room("width"), room("height"), most, MOST_ZOOM), LEAST_ZOOM);
    const [middle, target] = [middleOf(free), middleOf(box)];
    return { x: middle.x - target.x * zoom, y: middle.y - target.y * zoom, zoom };
  }

  #kept(): Viewport | undefined {
    const kept = sessionStorage.getItem(this.#key);
    return kept === null ? undefined : (JSON.parse(kept) as Viewport);
  }
}
