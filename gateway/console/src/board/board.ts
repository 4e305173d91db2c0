/** What a person does on the board: the selection, what is edited, and the gestures. It knows no React. */
import type { Engine } from "../sync/engine.ts";
import { type Change, nameOf, retitle, update } from "../sync/change.ts";
import { type Fields, type Graph, graphOf, isSection, type Node, same } from "../sync/graph.ts";
import { Notifier } from "../sync/notifier.ts";
import { canvasOf } from "../address.ts";
import { dragged, type Grip, gripOf, type Guide, HELD, type Held, isLocked, resizedTo, stacked } from "./arrange.ts";
import { nodeSizeOf, type Placed } from "../assets.ts";
import { count as counted, firstOf, number } from "../format.ts";
import type { Box, Point, Size } from "../view.ts";
import { canLook, lookAt, type Looked } from "./album.ts";
import type { Ending } from "./endings.ts";
import { type Filter, matchingIn } from "./filter.ts";
import {
  carried,
  type Choice,
  choices,
  connectionOf,
  type Copied,
  type Drag,
  dragOf,
  duplicated,
  filled,
  isEmptySlot,
  type Kind,
  moved,
  newNode,
  pasted,
  removed,
  resized,
  sectioned,
  sizeOf,
} from "./gestures.ts";
import { MOST_TEXT, MOST_TITLE } from "./limits.ts";
import type { ActionAttempt } from "./making.ts";
import { placeFor, type Where } from "./places.ts";
import { closePrompt, isPlace, openPrompt, type Settings, shownSubject, type Subject, type Written } from "./prompting.ts";
import { boundsOf, middleOf, SpatialIndex } from "./spatial.ts";
import type { Stage } from "./stage.ts";
import { variantOf } from "./variants.ts";

/** What a person can do about a notice. */
export interface Remedy {
  label: string;
  run: () => void;
}

/** The surface on which the board is drawn. */
export interface Surface {
  /** The point of the plane under the pointer, if that is on the board. */
  pointer(): Point | undefined;
  /** The part of the plane in view. */
  readonly seen: Box;
  /** The part of the plane in view that no tool covers. */
  free(): Box;
  /** The point of the plane at a point of the window. */
  toPlane(point: Point): Point;
  /** The point of the window at a point of the plane. */
  toScreen(point: Point): Point;
  /** Shows these nodes, or all, at most at this scale. */
  show(ids?: Iterable<string>, most?: number): void;
  /** Shows this part of the plane. */
  showBox(box: Box): void;
  /** Whether enough of these nodes is seen. */
  sees(ids: string[]): boolean;
  /** Makes the edges of nodes flash once. */
  flash(ids: string[]): void;
  /** Shows a node whose picture has so many pixels across at one of them to a pixel of the screen. */
  showPixels(id: string, across: number): void;
  zoomBy(factor: number): void;
  zoomTo(scale: number): void;
  panBy(x: number, y: number): void;
  /** Moves the view so that this point of the plane is in its middle. */
  center(point: Point): void;
  /** Moves the view as little as shows enough of new nodes, with what they come from. False if that is much, or a person is busy. */
  follow(ids: string[], sources: string[]): boolean;
  /** Moves the view so that a box of the plane is seen, with so many pixels above and below it, unless it would have to change much. */
  makeRoom(box: Box, above: number, below: number): void;
  /** Moves the view, unless what is written on this node can be read where it is. */
  reveal(id: string): void;
  /** Gives the keyboard to a node, or to the board. */
  focus(id?: string): void;
  /** The node that has the keyboard. */
  focused(): string | undefined;
}

export type Menu =
  /** What two nodes are connected for. */
  | { kind: "connect"; from: string; to: string; at: Point }
  /** A connection was dropped where nothing is: a node that is made there. */
  | { kind: "create"; from: string; isReverse: boolean; point: Point; at: Point }
  /** What can be done with the selection: all of it, what the bar has no room for, or what an item of it opens. */
  | { kind: "selection"; at: Point; of?: string }
  /** What can be taken out of the service: of the selection, or of the board. */
  | { kind: "export"; at: Point }
  /** The form that makes formats of the selected images. */
  | { kind: "format"; at: Point }
  /** The purpose of a connection that exists. */
  | { kind: "purpose"; connection: string; at: Point }
  /** What the row at the bottom of a narrow window opens. */
  | { kind: "phone"; of: "add" | "more"; at: Point };

export interface Ui {
  selection: ReadonlySet<string>;
  /** Whether keys or taps put the selection together: Tab leaves it alone, and a tap adds to it or takes away. */
  isCollecting: boolean;
  /** Whether a finger was the last that pressed on the board. */
  isTouch: boolean;
  /** The node that the next one which is pressed is connected with. */
  connecting: string | undefined;
  /** The connection that is selected. */
  link: string | undefined;
  editing: { id: string; field: "content" | "title" } | undefined;
  tool: "select" | "hand";
  /** Whether Space is held, so that a drag moves the view. */
  isPanning: boolean;
  menu: Menu | undefined;
  dialog: "palette" | "keys" | "present" | "share" | "cancel" | "element" | undefined;
  /** The export that is under way. */
  handover: { text: string; done: number; of: number; cancel: () => void } | undefined;
  drag: (Drag & { guides?: Guide[]; isCopy?: boolean }) | undefined;
  resize: { id: string; box: Box; guides?: Guide[] } | undefined;
  /** Whether connections are left out. */
  areLinesHidden: boolean;
  /** What is looked at, large. */
  look: Looked | undefined;
  /** What is to be seen clearly. Empty while its fields are open and nothing is chosen. */
  filter: Filter | undefined;
  panel: "inspect" | "make" | "recipes" | "assets" | "runs" | "outline" | "findings" | undefined;
  /** The Prompt that was opened or written in. */
  prompt: Subject | undefined;
  /** What was written in Prompts, by what each is about, the latest last. */
  written: Readonly<Record<string, Written>>;
  /** What was chosen in Prompts, for all of them. */
  settings: Settings;
  /** The Action that the panel Inspect begins with: another attempt at one, or the slug of one. */
  attempt: ActionAttempt | undefined;
  action: string | undefined;
  /** The picture that is worked on where it is. */
  stage: Stage | undefined;
  /** The node that shows what its image was made from. */
  before: string | undefined;
}

/** The key of the storage under which this browser keeps that connections are hidden. */
const HIDDEN_LINES = "canvas.lines-hidden";

const NOTHING: ReadonlySet<string> = new Set();
/** Where nodes are put that nobody sees. */
const UNSEEN: Box = { x: -640, y: -400, width: 1280, height: 800 };
const NO_GRAPH = graphOf({ title: "", nodes: [], connections: [] });
/** How long after the last arrow key the move is made, in milliseconds. */
const NUDGE_REST = 400;

/** How long after the pointer has left a node that is still shown, in milliseconds. */
const LEAVING = 250;
/** How much further arrow keys move the view than the selection. */
const VIEW_STEP = 64;

/** The texts of a node that people write. */
const WRITTEN = {
  title: { name: "title", label: "Rename" },
  content: { name: "metadata.content", label: "Edit a text" },
  altText: { name: "metadata.altText", label: "Describe a picture" },
} as const;

const count = (number: number, noun: string) => (number === 1 ? noun : `${number} ${noun}s`);

export class Board {
  readonly engine: Engine;
  /** Whether the person may change the canvas. */
  readonly canChange: boolean;
  #surface: Surface | undefined;
  #ui: Ui = {
    selection: NOTHING,
    isCollecting: false,
    isTouch: false,
    connecting: undefined,
    link: undefined,
    editing: undefined,
    tool: "select",
    isPanning: false,
    menu: undefined,
    dialog: undefined,
    handover: undefined,
    drag: undefined,
    resize: undefined,
    areLinesHidden: globalThis.localStorage?.getItem(HIDDEN_LINES) === "true",
    look: undefined,
    filter: undefined,
    panel: undefined,
    prompt: undefined,
    written: {},
    settings: {},
    attempt: undefined,
    action: undefined,
    stage: undefined,
    before: undefined,
  };
  #listeners = new Set<() => void>();
  #notices = new Notifier<[text: string, ...remedies: Remedy[]]>();
  #said = new Notifier<[text: string]>();
  #scale = 1;
  #scaleListeners = new Set<() => void>();
  #hovered: string | undefined;
  #hoverListeners = new Set<() => void>();
  #leaving: ReturnType<typeof setTimeout> | undefined;
  #nudge: ReturnType<typeof setTimeout> | undefined;
  /** What the pointer drags, and how far it is from where it began. */
  #grip: (Grip & { pointer: Point }) | undefined;
  #held: Held = HELD;
  /** The handle of the canvas. */
  readonly canvas: string;
  /** What the session may do. */
  readonly scopes: readonly string[];

  constructor(engine: Engine, canChange = true, canvas = "", scopes: readonly string[] = []) {
    this.engine = engine;
    this.canChange = canChange;
    this.canvas = canvas;
    this.scopes = scopes;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Calls the listener with each sentence that a person should read, and what can be done then. */
  readonly onNotice = this.#notices.listen;

  notify(text: string, ...remedies: Remedy[]): void {
    this.#notices.notify(text, ...remedies);
  }

  /** Calls the listener with each sentence that is read out and not shown: what it says is seen. */
  readonly onSaid = this.#said.listen;

  /** Says how work has ended: to be seen if its nodes are not, or if it failed. `reasonOf` reads why. */
  announce({ nodes, failed, text }: Ending, reasonOf: (node: Node) => Promise<string | undefined>): void {
    const ids = nodes.map(({ id }) => id);
    if (failed) void reasonOf(failed).then((reason) => this.notify(reason === undefined ? text : `${text} ${reason}`, this.showing(ids)));
    else if (this.surface?.sees(ids)) this.#said.notify(text);
    else this.notify(text, this.showing(ids), ...(canLook(nodes) ? [{ label: "Look", run: () => lookAt(this, ids) }] : []));
  }

  /** Says that a text which was pasted was too long. */
  notifyCut(field: "content" | "title"): void {
    const holder = field === "title" ? `A title holds ${number(MOST_TITLE)}` : `A text holds ${number(MOST_TEXT)}`;
    this.notify(`${holder} characters. The rest of the text is left out.`);
  }

  readonly getUi = (): Ui => this.#ui;

  set(change: Partial<Ui>): void {
    this.#ui = { ...this.#ui, ...change };
    for (const listener of this.#listeners) listener();
  }

  get surface(): Surface | undefined {
    return this.#surface;
  }

  /** The scale in hundredths. It is no part of `getUi`: it changes in each frame of a zoom, and few show it. */
  readonly getPercent = (): number => Math.round(this.#scale * 100);

  readonly onScale = (listener: () => void): (() => void) => {
    this.#scaleListeners.add(listener);
    return () => void this.#scaleListeners.delete(listener);
  };

  /** The surface shows the plane at this scale. */
  scaled(scale: number): void {
    this.#scale = scale;
    for (const listener of this.#scaleListeners) listener();
  }

  /** The node under the pointer. It is no part of `getUi`: it changes with every movement, and few show it. */
  readonly getHovered = (): string | undefined => this.#hovered;

  readonly onHover = (listener: () => void): (() => void) => {
    this.#hoverListeners.add(listener);
    return () => void this.#hoverListeners.delete(listener);
  };

  /** The pointer is on this node, or on none: what is shown for a node stays until the pointer can have reached it. */
  hover(id: string | undefined): void {
    clearTimeout(this.#leaving);
    const set = () => {
      this.#hovered = id;
      for (const listener of this.#hoverListeners) listener();
    };
    if (id === undefined) this.#leaving = setTimeout(set, LEAVING);
    else if (id !== this.#hovered) set();
  }

  /** Draws the board on `surface` until the returned function is called. */
  attach(surface: Surface): () => void {
    this.#surface = surface;
    return () => {
      if (this.#surface === surface) this.#surface = undefined;
    };
  }

  /** Space is held, or no more. */
  pan(isPanning: boolean): void {
    if (isPanning !== this.#ui.isPanning) this.set({ isPanning });
  }

  /** Whether a text field has the keyboard, or is about to: single keys are letters then. */
  get isWriting(): boolean {
    const { editing, prompt, stage } = this.#ui;
    return stage !== undefined || (editing !== undefined && this.graph.nodes.has(editing.id)) || prompt?.opened !== undefined;
  }

  get graph(): Graph {
    return this.engine.getSnapshot().graph ?? NO_GRAPH;
  }

  /** The selected nodes that exist. */
  get selected(): Node[] {
    return [...this.#ui.selection].flatMap((id) => this.graph.nodes.get(id) ?? []);
  }

  newId = (): string => crypto.randomUUID();

  // Selection

  select(ids: Iterable<string>, how: "set" | "toggle" | "add" = "set"): void {
    const next = new Set(how === "set" ? [] : this.#ui.selection);
    for (const id of ids) {
      if (how === "toggle" && next.has(id)) next.delete(id);
      else next.add(id);
    }
    this.settle();
    const isCollecting = how !== "set" && this.#ui.isCollecting && next.size > 0;
    this.set({ selection: next, isCollecting, link: undefined, before: undefined });
  }

  /** Takes nodes out of the selection that were deleted, by whomever, and ends the work on the picture of one. */
  prune(): void {
    const { stage } = this.#ui;
    if (stage && !this.graph.nodes.has(stage.id)) {
      this.set({ stage: undefined });
      this.notify("The image that you worked on is deleted.");
    }
    const ids = this.selected.map(({ id }) => id);
    if (ids.length < this.#ui.selection.size) this.set({ selection: new Set(ids), isCollecting: this.#ui.isCollecting && ids.length > 0 });
  }

  /** Adds the node that has the keyboard to the selection, or takes it away. The first time, the one that Tab has selected stays. */
  toggleFocused(): void {
    const id = this.surface?.focused();
    if (id === undefined) return;
    if (this.keepsSelection || !this.#ui.selection.has(id)) this.select([id], "toggle");
    this.set({ isCollecting: this.#ui.selection.size > 0 });
  }

  /** A finger rests on a node: from now on, taps put the selection together. */
  collect(id: string): void {
    this.select([id], "add");
    this.set({ isCollecting: true });
  }

  /** A node was pressed: it is selected, it joins or leaves the selection, or it is connected. A second tap on a text or a place writes there. */
  pick(id: string, at: Point, isAdding: boolean): void {
    const { connecting, isTouch, isCollecting, selection } = this.#ui;
    const node = this.graph.nodes.get(id);
    if (connecting !== undefined) {
      this.set({ connecting: undefined });
      this.offer(connecting, id, at);
    } else if (isAdding || (isTouch && isCollecting)) this.select([id], "toggle");
    else if (isTouch && node && selection.size === 1 && selection.has(id) && (isPlace(node) || (node.asset === undefined && !isSection(node)))) this.edit(id);
    else this.select([id]);
  }

  /** Whether a node that is reached with Tab is not selected: more would be lost than one selected node. */
  get keepsSelection(): boolean {
    return this.#ui.isCollecting || this.#ui.selection.size > 1;
  }

  /** Selects all variants of the run that has made the selected node. */
  selectVariants(id = this.selected[0]?.id): void {
    const variant = variantOf(this.graph, id);
    if (variant) this.select(variant.ids);
  }

  /** Leaves all connections out, or shows them again, also after a reload. */
  toggleLines(): void {
    const areLinesHidden = !this.#ui.areLinesHidden;
    localStorage.setItem(HIDDEN_LINES, String(areLinesHidden));
    this.set({ areLinesHidden });
    const { size } = this.graph.connections;
    if (size > 0) this.notify(areLinesHidden ? `${counted(size, "connection")} hidden. Shift C shows them again.` : `${counted(size, "connection")} shown.`);
  }

  /** What matches the filter; undefined without one. */
  get matching(): ReadonlySet<string> | undefined {
    return matchingIn(this.graph, this.#ui.filter);
  }

  selectAll(): void {
    const { matching } = this;
    this.select(matching ? [...this.graph.nodes.values()].filter((node) => matching.has(node.id) && !isSection(node)).map(({ id }) => id) : this.graph.nodes.keys());
  }

  selectLink(id: string): void {
    this.set({ selection: NOTHING, isCollecting: false, link: id });
  }

  /** Ends what is under way, step by step: a drag, which then has changed nothing, a menu, the editing of a text, the selection. */
  escape(): void {
    if (this.isDragging || this.#ui.resize) {
      this.#grip = undefined;
      return this.set({ drag: undefined, resize: undefined });
    }
    this.settle();
    if (this.#ui.menu) this.set({ menu: undefined });
    else if (this.#ui.connecting !== undefined) this.set({ connecting: undefined });
    else if (this.#ui.editing) this.stopEditing();
    else if (this.#ui.prompt && shownSubject(this.graph, this.#ui) === this.#ui.prompt) closePrompt(this);
    else this.set({ selection: NOTHING, isCollecting: false, link: undefined, tool: "select" });
  }

  // Changes

  /** Where new nodes go: beside their sources or at a point, in the part of the plane that a person sees. */
  where(at?: Point, sources: Node[] = []): Where {
    return { sources, at, free: this.surface?.free() ?? UNSEEN };
  }

  /** A free position for a new node, whose middle would be at the point. */
  #spot(size: Size, at?: Point): Point {
    return placeFor(this.graph, size, this.where(at));
  }

  /** Moves the view to new nodes if they are not seen, or says that they are elsewhere. */
  bring(ids: string[], sources: string[] = []): void {
    if (!this.surface || this.surface.follow(ids, sources)) return;
    this.notify(`${counted(ids.length, "new thing")} ${ids.length === 1 ? "is" : "are"} outside of the view.`, this.showing(ids));
  }

  /** Selects nodes and moves the view to them. */
  showing = (ids: string[]): Remedy => ({
    label: "Show",
    run: () => {
      const present = ids.filter((id) => this.graph.nodes.has(id));
      this.select(present);
      if (present.length > 0) this.surface?.show(present);
    },
  });

  create(kind: Kind, point?: Point, rest: Partial<Node> = {}): string {
    this.settle();
    const id = this.newId();
    const node = newNode(this.graph, kind, id, { x: 0, y: 0 }, { position: this.#spot(sizeOf(kind), point), ...rest });
    this.engine.perform(`Add ${kind === "section" ? "a Section" : node.title.toLowerCase()}`, [{ do: "create", node }]);
    this.select([id]);
    // Before a text field has the keyboard: the view does not move while somebody writes.
    this.surface?.follow([id], []);
    this.edit(id, kind === "section" ? "title" : undefined);
    return id;
  }

  /** The empty slot that an image fills: the one at `point`, or without a point the one that is selected alone. */
  slotFor(point?: Point): Node | undefined {
    const [selected, ...others] = this.selected;
    const node = point ? new SpatialIndex(this.graph.nodes.values()).at(point) : others.length === 0 ? selected : undefined;
    return node && isEmptySlot(node) ? node : undefined;
  }

  /** Shows an asset in an empty slot, or in a new node, whose middle is at `point` or where there is room. */
  place(asset: Placed, point?: Point): void {
    this.settle();
    const id = this.newId();
    const slot = this.slotFor(point);
    const title = firstOf(asset.name, MOST_TITLE);
    const size = nodeSizeOf(asset, title);
    const node = newNode(this.graph, "image", id, { x: 0, y: 0 }, { title, asset: asset.handle, position: this.#spot(size, point), ...size });
    this.engine.perform(`Add ${title}`, slot ? filled(this.graph, slot, node, this.newId) : [{ do: "create", node }]);
    this.select([id]);
    this.bring([id]);
  }

  /** A Section around the selection, or an empty one. */
  createSection(): void {
    this.settle();
    const id = this.newId();
    const nodes = this.selected.filter((node) => !isSection(node));
    this.engine.perform(
      nodes.length > 0 ? `Put ${count(nodes.length, "thing")} into a Section` : "Add a Section",
      sectioned(this.graph, nodes.map((node) => node.id), id, nodes.length > 0 ? { x: 0, y: 0 } : this.#spot(sizeOf("section"))),
    );
    this.select([id]);
    this.edit(id, "title");
  }

  duplicate(ids: Iterable<string> = this.#ui.selection, point?: Point): void {
    this.settle();
    const { changes, copies } = duplicated(this.graph, ids, this.newId, this.where(point));
    if (copies.size === 0) return;
    this.engine.perform(`Duplicate ${count(copies.size, "thing")}`, changes);
    this.select(copies.values());
    this.bring([...copies.values()]);
  }

  /** Pastes copied nodes on this canvas of the `account`. Those that are deleted, or of another canvas, are made again. */
  paste(copied: Copied, canvas: string, account: string): void {
    const point = this.surface?.pointer();
    const ids = copied.nodes.map(({ id }) => this.engine.local(id));
    const isHere = copied.canvas === canvas;
    if (isHere && ids.every((id) => this.graph.nodes.has(id))) return this.duplicate(ids, point);
    this.settle();
    // The service shows on a canvas what is stored there, and to its owner everything that is the owner's.
    const isOwner = canvasOf(canvas).ownerUid === account;
    const nodes = copied.nodes.filter(({ asset }) => asset === undefined || isHere || (isOwner && asset.startsWith(`asset:${account}:`)));
    const lost = copied.nodes.length - nodes.length;
    if (lost > 0) this.notify(`${counted(lost, "image")} left out: images of another canvas can be pasted if both canvases are yours.`);
    if (nodes.length === 0) return;
    const { changes, copies } = pasted(this.graph, { ...copied, nodes }, this.newId, this.where(point));
    this.engine.perform(`Paste ${count(nodes.length, "thing")}`, changes);
    this.select(copies.values());
    this.bring([...copies.values()]);
  }

  /** Deletes what is copied with the selection: Sections with their members. */
  cut(): void {
    this.delete([...carried(this.graph, this.#ui.selection)].flatMap((id) => this.graph.nodes.get(id) ?? []));
  }

  /** Deletes the selected connection, or these nodes. */
  delete(nodes = this.selected): void {
    this.settle();
    const { link } = this.#ui;
    const connection = link === undefined ? undefined : this.graph.connections.get(link);
    if (connection) {
      this.#deleted("The connection is deleted.", this.engine.perform("Delete a connection", [{ do: "disconnect", connection }]));
      this.set({ link: undefined });
      return;
    }
    const [first, ...others] = nodes;
    if (!first) return;
    const locked = nodes.filter(isLocked);
    if (locked.length > 0) return this.notify(`${locked.length === 1 && locked[0] ? nameOf(locked[0]) : `${locked.length} things`} cannot be deleted while locked.`, { label: "Unlock", run: () => this.lock(false, locked) });
    const step = this.engine.perform(`Delete ${count(nodes.length, "thing")}`, removed(this.graph, nodes.map(({ id }) => id)));
    this.#deleted(others.length === 0 ? `${nameOf(first)} is deleted.` : `${nodes.length} things are deleted.`, step);
    this.select([]);
  }

  #deleted(text: string, step: string | undefined): void {
    if (step !== undefined) this.notify(text, { label: "Undo", run: () => this.undo(step) });
  }

  move(ids: Iterable<string>, by: Point, from?: Drag["from"]): void {
    const changes = moved(this.graph, ids, by, from);
    this.engine.perform(`Move ${count(changes.length, "thing")}`, changes);
  }

  /** Locks nodes, or unlocks them. It keeps people of the console from moving them; the service does not enforce it. */
  lock(isLocked: boolean, nodes = this.selected): void {
    this.setFields(isLocked ? `Lock ${count(nodes.length, "thing")}` : `Unlock ${count(nodes.length, "thing")}`, nodes, { "metadata.locked": isLocked || null });
  }

  /** Puts the selection above or below everything else. */
  stack(end: "front" | "back"): void {
    this.settle();
    this.engine.perform(end === "front" ? "Bring to the front" : "Send to the back", stacked(this.graph, this.#ui.selection, end));
  }

  /** Does changes of the selection as one step. */
  arrange(label: string, changesOf: (graph: Graph, ids: ReadonlySet<string>) => Change[]): void {
    this.settle();
    this.engine.perform(label, changesOf(this.graph, this.#ui.selection));
  }

  // Drags

  /** The pointer begins to drag the selection with this node. What is locked stays. */
  beginDrag(id: string): void {
    this.settle();
    // The Prompt stays: a node can be dropped on it.
    if (!this.#ui.selection.has(id) && !shownSubject(this.graph, this.#ui)) this.select([id]);
    const ids = this.#ui.selection.has(id) ? this.#ui.selection : [id];
    const free = [...ids].filter((one) => !isLocked(this.graph.nodes.get(one) as Node));
    if (free.length === 0) return;
    const drag = dragOf(this.graph, free);
    this.#grip = { ...gripOf(this.graph, new Set(drag.from.keys()), this.surface?.seen), pointer: { x: 0, y: 0 } };
    this.#held = HELD;
    this.set({ drag });
  }

  /** The pointer is this far from where it began. */
  dragTo(pointer: Point): void {
    const { drag } = this.#ui;
    if (!drag || !this.isDragging) return;
    if (!this.#grip) return this.set({ drag: { ...drag, by: pointer } });
    this.#grip.pointer = pointer;
    this.set({ drag: { ...drag, ...dragged(this.#grip, pointer, this.#held, this.#scale, drag) } });
  }

  /** Keys are held during a drag. */
  hold(held: Held): void {
    if (same(held, this.#held)) return;
    this.#held = held;
    if (this.#grip) this.dragTo(this.#grip.pointer);
  }

  /** The pointer resizes a node to `box`. `fit` makes the box of a node that keeps a ratio, by its width. */
  resizeTo(id: string, box: Box, fit?: (box: Box) => Box): void {
    const node = this.graph.nodes.get(id);
    if (!node || !this.#ui.resize) return;
    if (!this.#grip) {
      this.#grip = { ...gripOf(this.graph, new Set([id]), this.surface?.seen), pointer: { x: 0, y: 0 } };
      this.#held = HELD;
    }
    const { box: next, guides } = resizedTo(this.#grip, box, this.#held, this.#scale, this.#ui.resize.guides, fit !== undefined);
    this.set({ resize: { id, box: fit ? fit(next) : next, guides } });
  }

  /** Whether the pointer moves nodes. */
  get isDragging(): boolean {
    return this.#ui.drag !== undefined && this.#nudge === undefined;
  }

  /** Moves the selection in small steps. Steps that follow each other are one gesture. */
  nudge(by: Point): void {
    if (this.isDragging) return;
    const { drag, selection } = this.#ui;
    const free = this.selected.filter((node) => !isLocked(node)).map(({ id }) => id);
    if (selection.size === 0 || !this.canChange) {
      this.surface?.panBy(-by.x * VIEW_STEP, -by.y * VIEW_STEP);
      return;
    }
    if (free.length === 0) return;
    clearTimeout(this.#nudge);
    const { from, by: before } = drag ?? dragOf(this.graph, free);
    this.set({ drag: { from, by: { x: before.x + by.x, y: before.y + by.y } } });
    this.#nudge = setTimeout(() => this.settle(), NUDGE_REST);
  }

  /** Makes the move that arrow keys began. */
  settle(): void {
    if (this.#nudge === undefined) return;
    clearTimeout(this.#nudge);
    this.#nudge = undefined;
    this.drop();
  }

  /** Makes the move or the resize that is under way: the page may be about to end. */
  endGesture(): void {
    const { resize } = this.#ui;
    this.settle();
    this.drop();
    if (resize) this.resize(resize.id, resize.box);
  }

  /** Ends a drag where it is. */
  drop(): void {
    const { drag } = this.#ui;
    if (!drag) return;
    this.#grip = undefined;
    this.set({ drag: undefined });
    if (drag.by.x === 0 && drag.by.y === 0) return;
    const box = boundsOf([...drag.from.keys()].flatMap((id) => this.graph.nodes.get(id) ?? []));
    if (!drag.isCopy || !box) return this.move(drag.from.keys(), drag.by, drag.from);
    const middle = middleOf(box);
    this.duplicate(drag.from.keys(), { x: middle.x + drag.by.x, y: middle.y + drag.by.y });
  }

  resize(id: string, box: Box): void {
    const node = this.graph.nodes.get(id);
    if (node) this.engine.perform("Resize", [resized(node, box)]);
    this.#grip = undefined;
    this.set({ resize: undefined });
  }

  /** Ends a resize where it is. */
  endResize(): void {
    const { resize } = this.#ui;
    if (resize) this.resize(resize.id, resize.box);
  }

  setFields(label: string, nodes: Node[], fields: Fields): void {
    this.engine.perform(label, nodes.map((node) => update("node", node, fields)));
  }

  /** Renames the canvas. `was` is the title that the new one was typed on. */
  rename(title: string, was: string): void {
    this.settle();
    if (title !== was) this.engine.perform("Rename the canvas", [retitle(was, title)]);
  }

  /** Undoes the last step, or this one. */
  undo(step?: string): void {
    this.settle();
    this.engine.undo(step);
  }

  redo(): void {
    this.settle();
    this.engine.redo();
  }

  // Panels

  togglePanel(panel: NonNullable<Ui["panel"]>): void {
    if (panel === this.#ui.panel) this.closePanel();
    else this.set({ panel });
  }

  /** Closes the panel. If the keyboard was in it, the button of the panel has it then. */
  closePanel(): void {
    const { panel, prompt } = this.#ui;
    const isInside = document.activeElement === document.body || document.activeElement?.closest("aside");
    this.set({ panel: undefined, prompt: panel === "make" ? undefined : prompt, attempt: undefined, action: undefined });
    if (isInside) (document.querySelector<HTMLElement>(`[data-panel="${panel}"]`) ?? document.querySelector<HTMLElement>('[data-panel="more"]'))?.focus();
  }

  // Texts

  edit(id: string, field?: "content" | "title"): void {
    const node = this.graph.nodes.get(id);
    if (!node || !this.canChange) return;
    const hasText = !isSection(node) && (node.type === "text" || node.type === "sticky");
    this.settle();
    this.surface?.reveal(id);
    if (field === undefined && isPlace(node)) return openPrompt(this);
    this.set({ editing: { id, field: field ?? (hasText ? "content" : "title") } });
  }

  /** Writes what was typed. `was` is the text that it was typed on, `session` the time since editing began, `height` that of the node with this text. */
  write(id: string, field: keyof typeof WRITTEN, text: string, was: string, session: string, height?: number): void {
    const { name, label } = WRITTEN[field];
    const value = (one: string) => (field === "title" ? one : one || null);
    const before = this.graph.nodes.get(id)?.height;
    const grown = height !== undefined && height !== before ? { set: { height }, was: { height: before } } : undefined;
    if (text === was && !grown) return;
    this.engine.perform(label, [{ do: "update", on: "node", id, set: { [name]: value(text), ...grown?.set }, was: { [name]: value(was), ...grown?.was } }], { merge: session });
  }

  /** `isKept`: the keyboard goes to the node whose text was edited. */
  stopEditing(isKept = true): void {
    const { editing } = this.#ui;
    if (!editing) return;
    this.set({ editing: undefined });
    if (isKept) this.surface?.focus(editing.id);
  }

  // Connections

  /** Asks what two nodes shall be connected for. */
  offer(from: string, to: string, at: Point): void {
    if (from !== to && this.offered(from, to).length > 0) this.set({ menu: { kind: "connect", from, to, at } });
  }

  /** Turns a connection around, if it can lead the other way. */
  turnAround(id: string): void {
    const connection = this.graph.connections.get(id);
    if (!connection || !this.canTurnAround(id)) return;
    const { fromNodeId, toNodeId, purpose, role } = connection;
    const turned = connectionOf(this.newId(), toNodeId, fromNodeId, purpose, role);
    this.engine.perform("Turn a connection around", [{ do: "disconnect", connection }, { do: "connect", connection: turned }]);
    this.selectLink(turned.id);
  }

  canTurnAround(id: string): boolean {
    const connection = this.graph.connections.get(id);
    return connection !== undefined && this.offered(connection.toNodeId, connection.fromNodeId, id).some(({ purpose, role }) => purpose === connection.purpose && role === connection.role);
  }

  offered(from: string, to: string, except?: string): Choice[] {
    const [source, target] = [this.graph.nodes.get(from), this.graph.nodes.get(to)];
    return source && target && this.canChange ? choices(this.graph, source, target, except) : [];
  }

  connect(from: string, to: string, { purpose, role }: Choice): void {
    this.settle();
    const id = this.newId();
    this.engine.perform("Connect two things", [{ do: "connect", connection: connectionOf(id, from, to, purpose, role) }]);
    this.set({ menu: undefined });
    this.selectLink(id);
  }

  /** Makes a node where a connection was dropped, and connects it. */
  createConnected(menu: Menu & { kind: "create" }, kind: Kind): void {
    const id = this.newId();
    const node = newNode(this.graph, kind, id, { x: 0, y: 0 }, { position: this.#spot(sizeOf(kind), menu.point) });
    const [from, to] = menu.isReverse ? [id, menu.from] : [menu.from, id];
    this.engine.perform(`Add ${node.title.toLowerCase()}`, [
      { do: "create", node },
      { do: "connect", connection: connectionOf(this.newId(), from, to, "flow") },
    ]);
    this.set({ menu: undefined });
    this.select([id]);
  }

  changePurpose(connection: string, { purpose, role }: Choice): void {
    const present = this.graph.connections.get(connection);
    if (present) this.engine.perform("Change a connection", [update("connection", present, { purpose, role: role ?? null })]);
    this.set({ menu: undefined });
  }
}
