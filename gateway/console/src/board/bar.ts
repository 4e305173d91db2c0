/**
 * What can be done with the selection: the one table behind the bar above it, the menu of a right click, the bar of touch screens, the
 * palette and the list of keys.
 */
import { fileUrl, type Part } from "../api.ts";
import { count } from "../format.ts";
import { nameOf } from "../sync/change.ts";
import { type Connection, isSection, type Node } from "../sync/graph.ts";
import { combinationOf, type Press } from "../ui/keys.ts";
import type { IconName } from "../ui/parts.tsx";
import { isNarrow } from "../ui/screen.ts";
import type { Box, Point, Size } from "../view.ts";
import { canCompare, canLook, compare, lookAt } from "./album.ts";
import { aligned, distributed, isLocked, sameSize } from "./arrange.ts";
import { attemptAt, imageBefore } from "./attempts.ts";
import type { Board } from "./board.ts";
import { PALETTE, YELLOW } from "./colors.ts";
import { CHOOSE_FILES, type Command, COMMANDS, isPossible } from "./commands.ts";
import { isEmptySlot, letterSize, runsAt } from "./gestures.ts";
import { filesIn, partOf, pathsOf, titleOf } from "./export-names.ts";
import { MOST_DRAWN } from "./limits.ts";
import { type Arrangement, arrangement, layOut, MOST_ARRANGED } from "./layout.ts";
import { draftOf } from "./making.ts";
import { FAVORITE, isPicture, LABELS, marksOf, rate, toggleMark } from "./marks.ts";
import { hasSlides } from "./slides.ts";
import { makeAgain, openPrompt, write } from "./prompting.ts";
import { touches } from "./spatial.ts";
import { madeOnStage, openStage, reopenStage, type Tool } from "./stage.ts";

export type Kind = "image" | "images" | "slot" | "text" | "section" | "video" | "mixed" | "link";

/** What is selected. */
interface Selected {
  kind: Kind;
  board: Board;
  nodes: Node[];
  link: Connection | undefined;
}

export interface Item {
  id: string;
  label: string;
  icon: IconName;
  /** Key combinations, as `combinationOf` writes them. The first is shown. */
  keys: readonly string[];
  /** Whether the bar has room for it. The others are behind its last button. */
  isPrimary: boolean;
  /** What it opens. Without, it runs. */
  items?: Item[];
  /** It opens a form at the bar. */
  isForm?: true;
  /** It is the first of a group. */
  isFirst?: true;
  /** Why it cannot be done now. */
  refused?: string;
  run: () => void;
}

interface Row {
  label: string;
  /** The label on what is selected, if it differs. */
  labelOf?: (selected: Selected) => string;
  icon: IconName;
  keys?: readonly string[];
  /** Whether it is also for those who may only read. */
  isReading?: true;
  /** The service does it, so it needs the connection. */
  isRemote?: true;
  /** With more nodes than this, it is refused. */
  most?: number;
  can?: (selected: Selected) => boolean;
  /** The rows that it opens. */
  rows?: string;
  isForm?: true;
  run?: (selected: Selected) => void;
}

const all = (nodes: Node[], is: (node: Node) => boolean) => nodes.length > 0 && nodes.every(is);
const isImage = ({ type, asset }: Node) => type === "image" && asset !== undefined;
const isText = (node: Node) => !isSection(node) && (node.type === "text" || node.type === "sticky");

export function kindOf(nodes: Node[], link: Connection | undefined): Kind | undefined {
  if (nodes.length === 0) return link ? "link" : undefined;
  if (all(nodes, isImage)) return nodes.length === 1 ? "image" : "images";
  if (all(nodes, isText)) return "text";
  const [node] = nodes.length === 1 ? nodes : [];
  if (!node) return "mixed";
  return isSection(node) ? "section" : node.type === "video" && node.asset !== undefined ? "video" : "slot";
}

const one = ({ nodes }: Selected): Node => nodes[0] as Node;
const isOne = ({ nodes }: Selected) => nodes.length === 1;
const areSeveral = ({ nodes }: Selected) => nodes.length > 1;
const hasMembers = ({ board, nodes }: Selected) => [...board.graph.nodes.values()].some(({ metadata }) => metadata.sectionId === nodes[0]?.id);
const isLockedNow = ({ nodes }: Selected) => nodes.every(isLocked);
const mayMakeImages = ({ board }: Selected) => board.scopes.includes("image:generate");
const attemptOf = ({ board, nodes }: Selected) => attemptAt(board, nodes, [...board.scopes]);
const draftAt = (selected: Selected) => (isOne(selected) ? draftOf(selected.board.graph, one(selected)) : undefined);

/** Opens Make with the selection. */
const make = (operation: "generate" | "edit" | "variations") => ({ board }: Selected) => {
  openPrompt(board, { mode: operation });
};

/** A row that opens the form of an Action: on each of the images, or on so many together. */
const action = (slug: string, label: string, icon: IconName, together = 1): Row => ({
  label,
  icon,
  can: ({ nodes }) => together === 1 || nodes.length === together,
  run: ({ board }) => board.set({ panel: "inspect", attempt: undefined, action: slug }),
});

/** A row that opens the Stage on one image, and on several what it did. */
const onStage = (tool: Tool, row: Row, keys: readonly string[] = []): Row => ({ ...row, keys, run: (selected) => (isOne(selected) ? openStage(selected.board, tool, one(selected)) : row.run?.(selected)) });

const align = (edge: Parameters<typeof aligned>[2], label: string, key: string): Row => ({
  label,
  icon: `align-${edge}`,
  keys: [`Alt+${key}`],
  run: ({ board }) => board.arrange(label, (graph, ids) => aligned(graph, ids, edge)),
});

const distribute = (axis: "x" | "y", label: string, key: string): Row => ({
  label,
  icon: `distribute-${axis}`,
  keys: [`Alt+Shift+${key}`],
  can: ({ nodes }) => nodes.length > 2,
  run: ({ board }) => board.arrange(label, (graph, ids) => distributed(graph, ids, axis)),
});

const lay = (how: Arrangement, label: string, keys: readonly string[] = []): Row => ({
  label,
  icon: how,
  keys,
  isRemote: true,
  most: MOST_ARRANGED,
  run: ({ board, nodes }) => void layOut(board, label, (graph, real) => arrangement(graph, nodes.flatMap(({ id }) => graph.nodes.get(id) ?? []), how, real)),
});

const LETTERS = [12, 15, 18, 22, 28, 36, 48, 64, 84, 112];

/** The next larger or smaller letters. */
const letters = (step: 1 | -1) => ({ board, nodes }: Selected) => {
  for (const node of nodes) {
    const now = letterSize(node);
    const next = step > 0 ? LETTERS.find((size) => size > now) : LETTERS.findLast((size) => size < now);
    if (next !== undefined) board.setFields(step > 0 ? "Larger letters" : "Smaller letters", [node], { "metadata.fontSize": next });
  }
};

const inLine = (value: "start" | "center" | "end", label: string): Row => ({
  label,
  icon: `text-${value}`,
  run: ({ board, nodes }) => board.setFields(label, nodes, { "metadata.textAlign": value }),
});

const stars = (rating: number, label: string): [string, Row] => [`star-${rating}`, { label, icon: "star", run: ({ board, nodes }) => rate(board, rating, nodes) }];
const MARKS: Record<string, Row> = {
  ...Object.fromEntries([5, 4, 3, 2, 1].map((rating) => stars(rating, rating === 1 ? "1 star" : `${rating} stars`))),
  ...Object.fromEntries([stars(0, "No stars")]),
  ...Object.fromEntries(LABELS.map((label): [string, Row] => [`label-${label}`, { label: `Label: ${label}`, icon: "color", run: ({ board, nodes }) => toggleMark(board, `label:${label}`, nodes) }])),
};
const areFavorites = ({ nodes }: Selected) => nodes.filter(isPicture).every((node) => marksOf(node).isFavorite);
const hasPictures = ({ nodes }: Selected) => nodes.some(isPicture);

const isColored = ({ type }: Node) => type === "sticky";

const ROWS: Record<string, Row> = {
  // Look and choose
  look: { label: "Look", icon: "look", keys: ["Enter"], isReading: true, can: ({ nodes }) => canLook(nodes), run: ({ board }) => lookAt(board) },
  compare: { label: "Compare", icon: "compare", isReading: true, can: ({ nodes }) => canCompare(nodes), run: ({ board }) => compare(board) },
  favorite: { label: "Favorite", labelOf: (selected) => (areFavorites(selected) ? "No favorite" : "Favorite"), icon: "heart", keys: ["F"], can: hasPictures, run: ({ board }) => toggleMark(board, FAVORITE) },
  mark: { label: "Mark", icon: "star", can: hasPictures, rows: Object.keys(MARKS).join(" ") },
  ...MARKS,
  // Make
  edit: { label: "Edit", labelOf: ({ nodes }) => (nodes.length > 1 ? "Edit each" : "Edit"), icon: "edit", can: mayMakeImages, run: make("edit") },
  variations: { label: "Variations", icon: "copy", can: mayMakeImages, run: make("variations") },
  // Elsewhere, the Prompt is open on it.
  cancel: { label: "Cancel", icon: "close", isRemote: true, can: ({ nodes }) => runsAt(nodes).length > 0, run: ({ board }) => board.set({ dialog: "cancel" }) },
  fill: { label: "Make", icon: "agent", can: (selected) => isNarrow() && mayMakeImages(selected), run: ({ board }) => openPrompt(board) },
  "make-from": { label: "Make from this", icon: "agent", can: mayMakeImages, run: make("generate") },
  "use-in-make": { label: "Use in Make", icon: "agent", can: mayMakeImages, run: make("generate") },
  again: { label: "Make again…", icon: "redo", can: (selected) => mayMakeImages(selected) && draftAt(selected) !== undefined, run: (selected) => makeAgain(selected.board, draftAt(selected) as NonNullable<ReturnType<typeof draftAt>>) },
  attempt: { label: "Try again…", icon: "redo", can: (selected) => attemptOf(selected) !== undefined, run: (selected) => attemptOf(selected)?.() },
  element: { label: "Make an Element…", icon: "plus", can: ({ board, nodes }) => ["element:read", "element:write"].every((scope) => board.scopes.includes(scope)) && all(nodes, isImage), run: ({ board }) => board.set({ dialog: "element" }) },
  // Actions
  crop: onStage("crop", action("crop", "Crop", "crop"), ["K"]),
  format: { label: "Format", icon: "ratio", isForm: true, run: ({ board }) => board.set({ menu: { kind: "format", at: atItem("format") } }) },
  actions: { label: "Actions", icon: "sliders", rows: "crop resize turn grade overlay join" },
  "add-text": onStage("text", action("add-text-to-image", "Text", "text"), ["Shift+T"]),
  mask: {
    label: "Mask",
    icon: "brush",
    keys: ["B"],
    can: (selected) => isOne(selected) && mayMakeImages(selected),
    run: (selected) => {
      write(selected.board, { mode: "edit" });
      openStage(selected.board, "mask", one(selected));
    },
  },
  rework: { label: "Edit what it was made with", labelOf: (selected) => `Edit the ${madeOnStage(one(selected))?.tool}`, icon: "edit", can: (selected) => madeOnStage(one(selected)) !== undefined, run: (selected) => reopenStage(selected.board, one(selected)) },
  before: {
    label: "Before",
    labelOf: ({ board }) => (board.getUi().before === undefined ? "Before" : "After"),
    icon: "clock",
    keys: ["Q"],
    isReading: true,
    can: (selected) => imageBefore(selected.board, one(selected)) !== undefined,
    run: (selected) => selected.board.set({ before: selected.board.getUi().before === undefined ? one(selected).id : undefined }),
  },
  resize: onStage("size", action("resize", "Resize", "resize")),
  turn: onStage("crop", action("rotate", "Turn", "turn")),
  grade: onStage("colors", action("color-grade", "Colors", "color")),
  overlay: { label: "Overlay", icon: "layers", can: ({ nodes }) => nodes.length <= 2, run: ({ board, nodes: [below, over] }) => below && openStage(board, "overlay", below, over) },
  join: action("side-by-side-composite", "Join side by side…", "row", 2),
  frame: action("video-frame", "Image of a moment…", "image"),
  // Arrange
  arrange: { label: "Arrange", icon: "align-left", can: areSeveral, rows: "left center right top middle bottom across down tidy row column grid same-height same-width" },
  left: align("left", "Align left edges", "A"),
  center: align("center", "Align centers", "H"),
  right: align("right", "Align right edges", "D"),
  top: align("top", "Align top edges", "W"),
  middle: align("middle", "Align middles", "V"),
  bottom: align("bottom", "Align bottom edges", "S"),
  across: distribute("x", "Equal gaps across", "H"),
  down: distribute("y", "Equal gaps down", "V"),
  tidy: { ...lay("tidy", "Tidy", ["Shift+A"]), can: (selected) => areSeveral(selected) || hasMembers(selected) },
  row: lay("row", "Arrange in a row"),
  column: lay("column", "Arrange in a column"),
  grid: lay("grid", "Arrange in a grid"),
  "same-height": { label: "Same height", icon: "same-height", run: ({ board }) => board.arrange("Same height", (graph, ids) => sameSize(graph, ids, "height")) },
  "same-width": { label: "Same width", icon: "same-width", run: ({ board }) => board.arrange("Same width", (graph, ids) => sameSize(graph, ids, "width")) },
  front: { label: "Bring to the front", icon: "front", keys: ["Shift+G"], run: ({ board }) => board.stack("front") },
  back: { label: "Send to the back", icon: "back-most", keys: ["Shift+B"], run: ({ board }) => board.stack("back") },
  lock: { label: "Lock", labelOf: (selected) => (isLockedNow(selected) ? "Unlock" : "Lock"), icon: "lock", keys: ["Shift+L"], run: (selected) => selected.board.lock(!isLockedNow(selected)) },
  // Texts and notes
  write: { label: "Edit the text", icon: "edit", keys: ["Enter"], can: isOne, run: (selected) => selected.board.edit(one(selected).id) },
  larger: { label: "Larger letters", icon: "larger", run: letters(1) },
  smaller: { label: "Smaller letters", icon: "smaller", run: letters(-1) },
  lines: { label: "Lines", icon: "text-start", rows: "lines-start lines-center lines-end" },
  "lines-start": inLine("start", "Lines at the start"),
  "lines-center": inLine("center", "Lines in the middle"),
  "lines-end": inLine("end", "Lines at the end"),
  color: { label: "Color", icon: "color", can: ({ nodes }) => all(nodes, isColored), rows: PALETTE.map(([name]) => name).join(" ") },
  ...Object.fromEntries(
    PALETTE.map(([name, color]): [string, Row] => [name, { label: name, icon: "color", run: ({ board, nodes }) => board.setFields("Color a note", nodes, { "metadata.color": color === YELLOW ? null : color }) }]),
  ),
  grow: {
    label: "Fit to its text",
    icon: "same-height",
    isRemote: true,
    most: MOST_ARRANGED,
    can: ({ nodes }) => all(nodes, ({ metadata }) => (metadata.content ?? "").trim() !== ""),
    run: ({ board, nodes }) => void layOut(board, "Fit to the text", (graph, real) => nodes.filter(({ id }) => graph.nodes.has(id)).map(({ id }) => ({ type: "node.fit", nodeId: real(id) }))),
  },
  // Sections
  fit: {
    label: "Fit to its members",
    icon: "fit",
    isRemote: true,
    can: hasMembers,
    run: (selected) => void layOut(selected.board, "Fit the Section", (_, real) => [{ type: "section.fit", nodeId: real(one(selected).id) }]),
  },
  members: { label: "Select the members", icon: "select", keys: ["M"], isReading: true, can: ({ nodes }) => nodes.some(isSection), run: ({ board, nodes }) => selectMembers(board, nodes) },
  // All
  upload: { label: "Upload into it", icon: "upload", can: ({ nodes }) => all(nodes, isEmptySlot), run: () => void dispatchEvent(new Event(CHOOSE_FILES)) },
  choose: { label: "Choose an image…", icon: "image", can: ({ board, nodes }) => board.scopes.includes("asset:read") && all(nodes, isEmptySlot), run: ({ board }) => board.set({ panel: "assets" }) },
  download: { label: "Download", icon: "download", isReading: true, can: (selected) => filesOf(selected).length > 0, run: (selected) => (isOne(selected) && one(selected).asset !== undefined ? download(one(selected)) : saveZip(selected)) },
  connect: { label: "Connect the two…", icon: "connection", keys: ["C"], can: ({ nodes }) => nodes.length === 2, run: ({ board, nodes }) => board.offer(nodes[0]?.id ?? "", nodes[1]?.id ?? "", { x: innerWidth / 2, y: innerHeight / 3 }) },
  "connect-to": { label: "Connect…", icon: "connection", can: isOne, run: (selected) => selected.board.set({ connecting: one(selected).id }) },
  rename: { label: "Rename", icon: "text", keys: ["F2", "Enter"], can: isOne, run: (selected) => selected.board.edit(one(selected).id, "title") },
  duplicate: { label: "Duplicate", icon: "copy", keys: ["Mod+D"], run: ({ board }) => board.duplicate() },
  show: { label: "Show the selection", icon: "fit", keys: ["2"], isReading: true, run: ({ board }) => board.surface?.show(board.getUi().selection, Infinity) },
  delete: { label: "Delete", icon: "trash", keys: ["Delete", "Backspace"], run: ({ board }) => board.delete() },
  // Hand-over: of the selection, or of the board
  export: { label: "Export", icon: "export", isReading: true, rows: "zip png copy-png paper" },
  zip: { label: "Save the originals as ZIP", icon: "download", isReading: true, isRemote: true, can: (selected) => filesOf(selected).length > 0, run: saveZip },
  png: { label: "Save as PNG, 2048 pixels", icon: "image", isReading: true, isRemote: true, most: MOST_DRAWN, run: (selected) => handOver(selected, ({ savePng }, part) => savePng(selected.board, part, titleOf(selected.board.graph, selected.nodes))) },
  "copy-png": { label: "Copy as PNG", icon: "copy", isReading: true, isRemote: true, most: MOST_DRAWN, run: (selected) => handOver(selected, ({ copyPng }, part) => copyPng(selected.board, part, selected.kind === "image" ? one(selected).asset : undefined)) },
  paper: { label: "Print or save as PDF", icon: "play", isReading: true, can: ({ board }) => hasSlides(board.graph), run: ({ board }) => board.set({ dialog: "present" }) },
  // Connections
  purpose: { label: "Change the purpose…", icon: "connection", run: ({ board, link }) => link && board.set({ menu: { kind: "purpose", connection: link.id, at: atItem() } }) },
  around: { label: "Turn it around", icon: "turn-around", can: ({ board, link }) => link !== undefined && board.canTurnAround(link.id), run: ({ board, link }) => link && board.turnAround(link.id) },
};

/** Commands that are there without a selection, too, as the bar has them. */
const SHARED: Record<string, { icon: IconName; label: string; run: (board: Board) => void }> = {
  section: { icon: "section", label: "Section", run: (board) => board.createSection() },
  inspect: { icon: "sliders", label: "Details", run: (board) => board.set({ panel: "inspect" }) },
  present: { icon: "play", label: "Present", run: (board) => board.set({ dialog: "present" }) },
  "select-variants": { icon: "select", label: "Select its variants", run: (board) => board.selectVariants() },
  recipes: { icon: "recipe", label: "Recipes", run: (board) => board.set({ panel: "recipes" }) },
};

const LAST = "| duplicate show front back lock inspect";
/** What a selection has, in the order of the bar, and behind its last button, where a line begins a group. */
const TABLE: Record<Kind, [bar: string, more: string]> = {
  image: ["edit variations format crop add-text favorite download delete", `look rework mask before select-variants mark again | resize turn grade overlay | section element export rename connect-to ${LAST}`],
  images: ["edit format add-text actions use-in-make compare arrange section download delete", `look variations favorite mark | connect element export ${LAST}`],
  slot: ["cancel attempt fill upload choose delete", `rename section export connect-to ${LAST}`],
  text: ["make-from smaller larger lines color grow arrange delete", `write rename section | connect connect-to export ${LAST}`],
  section: ["tidy fit present export color members delete", `rename recipes connect-to ${LAST}`],
  video: ["look frame favorite download delete", `mark | section export rename connect-to ${LAST}`],
  mixed: ["cancel arrange section use-in-make download delete", `favorite mark | connect members export ${LAST}`],
  link: ["purpose around delete", ""],
};
/** With more nodes than this, only these are there: the others have no use then. */
const MANY = 200;
const FOR_MANY = new Set(["cancel", "look", "favorite", "mark", "arrange", "section", "download", "export", "delete", "lock", "duplicate", "show"]);

const GROUP = "|";
const split = (ids: string) => ids.split(" ").filter((id) => id !== "" && id !== GROUP);

function itemOf(id: string, selected: Selected, isPrimary: boolean): Item[] {
  const { board, nodes } = selected;
  const shared = SHARED[id];
  if (shared) {
    const command = COMMANDS.find((one) => one.id === id) as Command;
    return isPossible(command, board) ? [{ id, label: shared.label, icon: shared.icon, keys: command.keys, isPrimary, run: () => shared.run(board) }] : [];
  }
  const { label, labelOf, icon, keys = [], isReading, isRemote, most, can, rows, isForm, run } = ROWS[id] as Row;
  if ((!board.canChange && !isReading) || (can && !can(selected))) return [];
  const items = rows === undefined ? undefined : split(rows).flatMap((one) => itemOf(one, selected, false));
  const isOffline = isRemote && board.engine.getSnapshot().state === "waiting";
  const refused = isOffline ? "Waits for the connection" : most !== undefined && nodes.length > most ? `At most ${most} at a time` : undefined;
  return [{ id, label: labelOf?.(selected) ?? label, icon, keys, isPrimary, ...(items && { items }), ...(isForm && { isForm }), ...(refused !== undefined && { refused }), run: () => run?.(selected) }];
}

function selectedOn(board: Board): Selected | undefined {
  const nodes = board.selected;
  const link = board.graph.connections.get(board.getUi().link ?? "");
  const kind = kindOf(nodes, link);
  return kind && { kind, board, nodes, link };
}

/** What can be done with the selection now. */
export function itemsOf(board: Board): Item[] {
  const selected = selectedOn(board);
  if (!selected) return [];
  const [bar, more] = TABLE[selected.kind];
  const itemsIn = (ids: string, isPrimary: boolean) =>
    split(ids).filter((id) => selected.nodes.length <= MANY || FOR_MANY.has(id)).flatMap((id) => itemOf(id, selected, isPrimary));
  const items = itemsIn(bar, true);
  for (const ids of more.split(GROUP)) {
    const [first, ...others] = itemsIn(ids, false);
    if (first) items.push({ ...first, isFirst: true }, ...others);
  }
  return items;
}

/** Items with Delete as the last one. */
export const deleteLast = (items: Item[]): Item[] => [...items.filter(({ id }) => id !== "delete"), ...items.filter(({ id }) => id === "delete")];

/** What can be taken out of the service: of the selection, or else of the whole board. */
export function exportItems(board: Board): Item[] {
  const selected = selectedOn(board);
  return itemOf("export", selected && selected.nodes.length > 0 ? selected : { kind: "mixed", board, nodes: [], link: undefined }, false)[0]?.items ?? [];
}

/** Items with those that they open, and without the openers. */
export const leavesOf = (items: Item[]): Item[] => items.flatMap((item) => item.items ?? item);

/** What the list of keys says of the selection. What opens others is one row, besides those of them that have keys. */
export function keyRows(canChange: boolean): { id: string; what: string; keys: readonly string[]; how?: string }[] {
  const ids = new Set(Object.values(TABLE).flatMap(([bar, more]) => split(`${bar} ${more}`)));
  const rowOf = (id: string) => {
    const { label, keys = [], isReading, rows } = ROWS[id] as Row;
    if (!canChange && !isReading) return [];
    return [{ id, what: label, keys, ...(keys.length === 0 && { how: "in the bar" }), rows }];
  };
  const top = [...ids].filter((id) => !(id in SHARED)).flatMap(rowOf);
  const below = (rows = "") => split(rows).flatMap(rowOf).filter(({ keys }) => keys.length > 0);
  const rows = top.flatMap((row) => [row].concat(below(row.rows)));
  return [...new Map(rows.map((row) => [row.id, row])).values()];
}

/** What a key press does now: with the selection, or else by itself. */
export function commandOf(press: Press, board: Board): { run: (board: Board) => void } | undefined {
  const combination = combinationOf(press);
  const item = leavesOf(itemsOf(board)).find(({ id, keys }) => !(id in SHARED) && keys.includes(combination));
  if (item) return { run: () => runItem(board, item) };
  return COMMANDS.find((command) => command.keys.includes(combination) && isPossible(command, board));
}

/** Does what an item is for, or says why not. */
export function runItem(board: Board, { refused, run, label }: Item): void {
  if (refused === undefined) run();
  else board.notify(`${label}: ${refused}.`);
}

/** What the bar is called. */
export function barName(board: Board): string {
  const { nodes, kind } = selectedOn(board) ?? { nodes: [], kind: undefined };
  const [node] = nodes;
  if (!node) return "What to do with the connection";
  if (nodes.length === 1) return `What to do with ${nameOf(node)}`;
  return `What to do with ${count(nodes.length, kind === "images" ? "image" : kind === "text" ? "text" : "thing")}`;
}

/** The point below the bar, or below an item of it. */
function atItem(id = ""): Point {
  const element = document.querySelector(`[data-item="${id}"]`) ?? document.querySelector("[data-bar]");
  const { left = innerWidth / 2, bottom = innerHeight / 3 } = element?.getBoundingClientRect() ?? {};
  return { x: left, y: bottom + GAP };
}

const filesOf = ({ board: { graph }, nodes }: Selected): Node[] => filesIn(graph, nodes);

/** Does what is fetched when it is first used. `part`: what the service draws of the selection. */
function handOver({ board, nodes }: Selected, run: (by: typeof import("./handover.ts"), part: Part) => Promise<void>): void {
  import("./handover.ts").then((by) => run(by, partOf(nodes, board.engine.real)), () => board.notify("The service cannot be reached. Try again."));
}

function saveZip(selected: Selected): void {
  const { board, nodes } = selected;
  const files = filesOf(selected);
  handOver(selected, (by) => by.saveZip(board, files, pathsOf(board.graph, files), titleOf(board.graph, nodes)));
}

function download({ asset, title, type }: Node): void {
  const link = document.createElement("a");
  link.href = fileUrl(asset ?? "");
  link.download = title || type;
  link.click();
}

function selectMembers(board: Board, nodes: Node[]): void {
  const sections = new Set(nodes.filter(isSection).map(({ id }) => id));
  board.select([...board.graph.nodes.values()].filter(({ metadata }) => sections.has(metadata.sectionId ?? "")).map(({ id }) => id));
}

// Place

/** Distance of the bar from the selection and from the edges of the board, in pixels. */
const GAP = 8;
/** What tools and buttons at the edges cover of the board. */
const COVERED = { left: 76, top: 64, bottom: 76 };

/** The part of the board that nothing covers. */
export const freePart = ({ width, height }: Size): Box => ({ x: COVERED.left, y: COVERED.top, width: Math.max(width - COVERED.left, 0), height: Math.max(height - COVERED.top - COVERED.bottom, 0) });

const clamp = (value: number, least: number, most: number) => Math.max(Math.min(value, most), least);

/**
 * Where the bar is: above the selection, below it, at a side of it, or, if that fills the free part of the board, at the top of it. It is not
 * over the Prompt, if there is one: below the selection is then below that.
 */
export function placeBar(box: Box, bar: Size, free: Box, prompt?: Box): Point {
  const [right, bottom] = [free.x + free.width - bar.width - GAP, free.y + free.height - bar.height - GAP];
  const x = clamp(box.x + box.width / 2 - bar.width / 2, free.x + GAP, right);
  const y = clamp(box.y + box.height / 2 - bar.height / 2, free.y + GAP, bottom);
  const [above, below] = [box.y - bar.height - GAP, box.y + box.height + GAP];
  const [before, after] = [box.x - bar.width - GAP, box.x + box.width + GAP];
  const top = free.y + GAP;
  const underPrompt = prompt ? prompt.y + prompt.height + GAP : Infinity;
  const last = { x, y: top };
  const places: [hasRoom: boolean, at: Point][] = [
    [above >= top, { x, y: Math.min(above, bottom) }],
    [below <= bottom, { x, y: Math.max(below, top) }],
    [underPrompt >= below && underPrompt <= bottom, { x, y: underPrompt }],
    [after <= right, { x: Math.max(after, free.x + GAP), y }],
    [before >= free.x + GAP, { x: Math.min(before, right), y }],
    [true, last],
    [true, { x, y: bottom }],
  ];
  return places.find(([hasRoom, at]) => hasRoom && !(prompt && touches({ ...at, ...bar }, prompt)))?.[1] ?? last;
}
