/** What a person does on the board: the selection, what is edited, and the gestures. It knows no React. */
import type { Engine } from "../sync/engine.ts";
import { nameOf, retitle, update } from "../sync/change.ts";
import { type Fields, type Graph, graphOf, isSection, type Node } from "../sync/graph.ts";
import { Notifier } from "../sync/notifier.ts";
import { canvasOf } from "../address.ts";
import { nodeSizeOf, type Placed } from "../assets.ts";
import { count as counted, firstOf, number } from "../format.ts";
import type { Box, Point } from "../view.ts";
import {
  carried,
  type Choice,
  choices,
  connectionOf,
  type Copied,
  duplicated,
  filled,
  freeSpot,
  isEmptySlot,
  type Kind,
  moved,
  newNode,
  pasted,
  purposeOf,
  removed,
  resized,
  sectioned,
  sizeOf,
} from "./gestures.ts";
import { MOST_TEXT, MOST_TITLE } from "./limits.ts";
import type { ActionAttempt } from "./making.ts";
import { closePrompt, isPlace, openPrompt, type Settings, shownSubject, type Subject, type Written } from "./prompting.ts";
import { SpatialIndex } from "./spatial.ts";

/** What a person can do about a notice. */
export interface Remedy {
  label: string;
  run: () => void;
}

/** The surface on which the board is drawn. */
export interface Surface {
  /** The point of the plane under the pointer, if that is on the board. */
  pointer(): Point | undefined;
  middle(): Point;
  /** The point of the plane at a point of the window. */
  toPlane(point: Point): Point;
  /** The point of the window at a point of the plane. */
  toScreen(point: Point): Point;
  /** Shows these nodes, or all. */
  show(ids?: Iterable<string>): void;
  zoomBy(factor: number): void;
  zoomTo(scale: number): void;
  panBy(x: number, y: number): void;
  /** Moves the view so that this point of the plane is in its middle. */
  center(point: Point): void;
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
  /** What can be done with the selection. */
  | { kind: "selection"; at: Point }
  /** The purpose of a connection that exists. */
  | { kind: "purpose"; connection: string; at: Point };

export interface Ui {
  selection: ReadonlySet<string>;
  /** Whether keys put the selection together, so that Tab leaves it alone. */
  isCollecting: boolean;
  /** The connection that is selected. */
  link: string | undefined;
  editing: { id: string; field: "content" | "title" } | undefined;
  tool: "select" | "hand";
  /** Whether Space is held, so that a drag moves the view. */
  isPanning: boolean;
  menu: Menu | undefined;
  dialog: "palette" | "keys" | undefined;
  /** Nodes that are being moved, and how far. */
  drag: { ids: ReadonlySet<string>; by: Point } | undefined;
  resize: { id: string; box: Box } | undefined;
  panel: "inspect" | "make" | "recipes" | "assets" | "runs" | "outline" | "findings" | undefined;
  /** The Prompt that was opened or written in. */
  prompt: Subject | undefined;
  /** What was written in Prompts, by what each is about, the latest last. */
  written: Readonly<Record<string, Written>>;
  /** What was chosen in Prompts, for all of them. */
  settings: Settings;
  /** The Action that the panel Inspect begins with. */
  attempt: ActionAttempt | undefined;
}

const NOTHING: ReadonlySet<string> = new Set();
const NO_GRAPH = graphOf({ title: "", nodes: [], connections: [] });
/** How long after the last arrow key the move is made, in milliseconds. */
const NUDGE_REST = 400;

/** The texts of a node that people write. */
const WRITTEN = {
  title: { name: "title", label: "Rename a node" },
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
    link: undefined,
    editing: undefined,
    tool: "select",
    isPanning: false,
    menu: undefined,
    dialog: undefined,
    drag: undefined,
    resize: undefined,
    panel: undefined,
    prompt: undefined,
    written: {},
    settings: {},
    attempt: undefined,
  };
  #listeners = new Set<() => void>();
  #notices = new Notifier<[text: string, remedy: Remedy | undefined]>();
  #scale = 1;
  #scaleListeners = new Set<() => void>();
  #nudge: ReturnType<typeof setTimeout> | undefined;

  constructor(engine: Engine, canChange = true) {
    this.engine = engine;
    this.canChange = canChange;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Calls the listener with each sentence that a person should read, and what can be done then. */
  readonly onNotice = this.#notices.listen;

  notify(text: string, remedy?: Remedy): void {
    this.#notices.notify(text, remedy);
  }

  /** Says that a text which was pasted was too long. */
  notifyCut(field: "content" | "title"): void {
    const holder = field === "title" ? `A title holds ${number(MOST_TITLE)}` : `A node holds ${number(MOST_TEXT)}`;
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
    const { editing, prompt } = this.#ui;
    return (editing !== undefined && this.graph.nodes.has(editing.id)) || prompt?.opened !== undefined;
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
    this.set({ selection: next, isCollecting, link: undefined });
  }

  /** Takes nodes out of the selection that were deleted, by whomever. */
  prune(): void {
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

  /** Whether a node that is reached with Tab is not selected: more would be lost than one selected node. */
  get keepsSelection(): boolean {
    return this.#ui.isCollecting || this.#ui.selection.size > 1;
  }

  selectAll(): void {
    this.select(this.graph.nodes.keys());
  }

  selectLink(id: string): void {
    this.set({ selection: NOTHING, isCollecting: false, link: id });
  }

  /** Ends what is under way, step by step: a drag, which then has changed nothing, a menu, the editing of a text, the selection. */
  escape(): void {
    if (this.isDragging || this.#ui.resize) return this.set({ drag: undefined, resize: undefined });
    this.settle();
    if (this.#ui.menu) this.set({ menu: undefined });
    else if (this.#ui.editing) this.stopEditing();
    else if (this.#ui.prompt && shownSubject(this.graph, this.#ui) === this.#ui.prompt) closePrompt(this);
    else this.set({ selection: NOTHING, isCollecting: false, link: undefined, tool: "select" });
  }

  // Changes

  create(kind: Kind, point?: Point, rest: Partial<Node> = {}): string {
    this.settle();
    const id = this.newId();
    const at = point ?? freeSpot(this.graph, sizeOf(kind), this.surface?.middle() ?? { x: 0, y: 0 });
    const node = newNode(this.graph, kind, id, at, rest);
    this.engine.perform(`Add ${kind === "section" ? "a Section" : node.title.toLowerCase()}`, [{ do: "create", node }]);
    this.select([id]);
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
    const at = point ?? freeSpot(this.graph, size, this.surface?.middle() ?? { x: 0, y: 0 });
    const node = newNode(this.graph, "image", id, at, { title, asset: asset.handle, ...size });
    this.engine.perform(`Add ${title}`, slot ? filled(this.graph, slot, node, this.newId) : [{ do: "create", node }]);
    this.select([id]);
  }

  /** A Section around the selection, or an empty one. */
  createSection(): void {
    this.settle();
    const id = this.newId();
    const nodes = this.selected.filter((node) => !isSection(node));
    const at = freeSpot(this.graph, sizeOf("section"), this.surface?.middle() ?? { x: 0, y: 0 });
    this.engine.perform(nodes.length > 0 ? `Put ${count(nodes.length, "node")} into a Section` : "Add a Section", sectioned(this.graph, nodes.map((node) => node.id), id, at));
    this.select([id]);
    this.edit(id, "title");
  }

  duplicate(ids: Iterable<string> = this.#ui.selection, point?: Point): void {
    this.settle();
    const { changes, copies } = duplicated(this.graph, ids, this.newId, point);
    if (copies.size === 0) return;
    this.engine.perform(`Duplicate ${count(copies.size, "node")}`, changes);
    this.select(copies.values());
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
    const { changes, copies } = pasted(this.graph, { ...copied, nodes }, this.newId, point ?? this.surface?.middle() ?? { x: 0, y: 0 });
    this.engine.perform(`Paste ${count(nodes.length, "node")}`, changes);
    this.select(copies.values());
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
    const step = this.engine.perform(`Delete ${count(nodes.length, "node")}`, removed(this.graph, nodes.map(({ id }) => id)));
    this.#deleted(others.length === 0 ? `${nameOf(first)} is deleted.` : `${nodes.length} nodes are deleted.`, step);
    this.select([]);
  }

  #deleted(text: string, step: string | undefined): void {
    if (step !== undefined) this.notify(text, { label: "Undo", run: () => this.undo(step) });
  }

  move(ids: Iterable<string>, by: Point): void {
    const changes = moved(this.graph, ids, by);
    this.engine.perform(`Move ${count(changes.length, "node")}`, changes);
  }

  /** Whether the pointer moves nodes. */
  get isDragging(): boolean {
    return this.#ui.drag !== undefined && this.#nudge === undefined;
  }

  /** Moves the selection in small steps. Steps that follow each other are one gesture. */
  nudge(by: Point): void {
    if (this.isDragging) return;
    const { drag, selection } = this.#ui;
    if (selection.size === 0 || !this.canChange) {
      this.surface?.panBy(-by.x * 8, -by.y * 8);
      return;
    }
    clearTimeout(this.#nudge);
    this.set({ drag: { ids: drag?.ids ?? selection, by: { x: (drag?.by.x ?? 0) + by.x, y: (drag?.by.y ?? 0) + by.y } } });
    this.#nudge = setTimeout(() => this.settle(), NUDGE_REST);
  }

  /** Makes the move that arrow keys began. */
  settle(): void {
    if (this.#nudge === undefined) return;
    clearTimeout(this.#nudge);
    this.#nudge = undefined;
    this.drop();
  }

  /** Ends a drag where it is. */
  drop(): void {
    const { drag } = this.#ui;
    if (!drag) return;
    if (drag.by.x !== 0 || drag.by.y !== 0) this.move(drag.ids, drag.by);
    this.set({ drag: undefined });
  }

  resize(id: string, box: Box): void {
    const node = this.graph.nodes.get(id);
    if (node) this.engine.perform("Resize a node", [resized(node, box)]);
    this.set({ resize: undefined });
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
    this.set({ panel: undefined, prompt: panel === "make" ? undefined : prompt, attempt: undefined });
    if (isInside) document.querySelector<HTMLElement>(`[data-panel="${panel}"]`)?.focus();
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

  /** Writes what was typed. `was` is the text that it was typed on, `session` the time since editing began. */
  write(id: string, field: keyof typeof WRITTEN, text: string, was: string, session: string): void {
    const { name, label } = WRITTEN[field];
    const value = (one: string) => (field === "title" ? one : one || null);
    if (text === was) return;
    this.engine.perform(label, [{ do: "update", on: "node", id, set: { [name]: value(text) }, was: { [name]: value(was) } }], { merge: session });
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

  offered(from: string, to: string, except?: string): Choice[] {
    const [source, target] = [this.graph.nodes.get(from), this.graph.nodes.get(to)];
    return source && target && this.canChange ? choices(this.graph, source, target, except) : [];
  }

  connect(from: string, to: string, { purpose, role }: Choice): void {
    this.settle();
    const id = this.newId();
    this.engine.perform(`Connect for ${purposeOf({ purpose, ...(role && { role }) })}`, [{ do: "connect", connection: connectionOf(id, from, to, purpose, role) }]);
    this.set({ menu: undefined });
    this.selectLink(id);
  }

  /** Makes a node where a connection was dropped, and connects it. */
  createConnected(menu: Menu & { kind: "create" }, kind: Kind): void {
    const id = this.newId();
    const node = newNode(this.graph, kind, id, menu.point);
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
