/**
 * What a Prompt is about, what was written in it, and what it would start: one description for the Prompt on the board and for the panel
 * Make. It knows no React.
 */
import type { ImageOperation, Model } from "../api.ts";
import type { Element } from "../elements/calls.ts";
import { firstOf } from "../format.ts";
import { sessionEnd } from "../session-end.ts";
import type { Graph, Node, Purpose, Role } from "../sync/graph.ts";
import { isNarrow } from "../ui/screen.ts";
import type { Box, Size } from "../view.ts";
import { isOver } from "../work.ts";
import type { Board, Ui } from "./board.ts";
import { isEmptySlot, statusAt } from "./gestures.ts";
import { type Draft, draftOf, type FrameUse, frameProblem, isFailed, modelOf, MOST_PROMPT, MOST_REFERENCES, optionsOf, promptNode, type Reference, referencesTo, ROLES, takesMask, videoCapability, withRole } from "./making.ts";
import { type Mention, promptWith } from "./mention.ts";
import { videoOf } from "./videos.ts";

export type Mode = ImageOperation | "video";
/** What an image is for: it guides the result, or a frame of a video, or nothing. */
export type Use = "guide" | "none" | "first" | "last" | Role;

/** What was chosen for all that is made. What is absent or not offered is the model's default. */
export interface Settings {
  imageModel?: string;
  videoModel?: string;
  size?: string;
  quality?: string;
  count?: number;
  /** The feather of a mask, in pixels, and whether what it keeps may change a little. */
  feather?: number;
  isLoose?: boolean;
  seconds?: string;
  ratio?: string;
  resolution?: string;
  audio?: string;
  /** The spending cap; empty for the price. */
  cap?: string;
}

/** An image among those of a Prompt. */
export interface Chip {
  /** Handle of the asset. */
  asset: string;
  title: string;
  /** The id of the node that shows it. */
  of?: string | undefined;
  use?: Use | undefined;
}

/** What was written in one Prompt. What is absent is that of the draft, or of what the Prompt is about. */
export interface Written {
  prompt?: string;
  mode?: Mode;
  /** Once they were changed, or used. */
  chips?: Chip[];
  elements?: Element[];
  /** Whether each selected image is changed by itself, and not all together. */
  isEach?: boolean;
  /** The text that it is about is left out. */
  isWithoutText?: boolean;
  /** Titles that the text mentions, of what was taken out since. */
  removed?: string[];
  /** Of a Prompt with a draft. Its settings are not those of the others. */
  settings?: Settings;
}

/** What a Prompt is about: nodes, or nothing, and what it begins with in place of them. */
export interface Subject {
  ids: readonly string[];
  draft?: Draft | undefined;
  /** It is shown while this is selected. */
  selection: ReadonlySet<string>;
  /** Whether it was written in the panel, which shows it then whatever is selected. */
  isKept?: boolean;
  /** When it was opened, for the keyboard; absent if the keyboard stays where it is. */
  opened?: number | undefined;
}

export const keyOf = ({ ids, draft }: Subject): string => (draft ? `again ${draft.of} ${ids.join(" ")}` : ids.toSorted().join(" "));

const isSame = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean => a === b || (a.size === b.size && [...a].every((id) => b.has(id)));

/** Whether a node is a place for an image or a video that has none. */
export const isPlace = (node: Node): boolean => node.asset === undefined && (node.type === "image" || (node.type === "video" && videoOf(node)?.by === undefined));

const selected = ({ selection }: Ui): Subject => ({ ids: [...selection], selection });

/** What the panel Make is about. */
export const panelSubject = (ui: Ui): Subject => (ui.prompt && (ui.prompt.isKept || ui.prompt.draft || isSame(ui.prompt.selection, ui.selection)) ? ui.prompt : selected(ui));

/** What the Prompt on the board is about, if there is one: it was opened, a place is selected, or the board is empty. */
export function shownSubject(graph: Graph, ui: Ui): Subject | undefined {
  const { prompt, selection, panel, editing, menu, drag, resize } = ui;
  // It waits for what else can be dropped on it, and goes while what it is about is moved.
  if (panel === "make" || editing || menu || resize || (drag && [...drag.from.keys()].some((id) => selection.has(id)))) return undefined;
  if (prompt && isSame(prompt.selection, selection)) return prompt;
  const [id, ...others] = selection;
  const node = id !== undefined && others.length === 0 ? graph.nodes.get(id) : undefined;
  return (node && isPlace(node)) || (graph.nodes.size === 0 && selection.size === 0) ? selected(ui) : undefined;
}

/** What the Prompt that is shown is about, or would be. */
export const currentSubject = (board: Board): Subject => {
  const ui = board.getUi();
  return ui.panel === "make" ? panelSubject(ui) : (shownSubject(board.graph, ui) ?? selected(ui));
};

/** Opens the Prompt on what is selected, and gives it the keyboard. In a narrow window it is the panel, which is a sheet there. */
export function openPrompt(board: Board, change: Written = {}): void {
  const ui = board.getUi();
  const shown = ui.panel === "make" ? panelSubject(ui) : shownSubject(board.graph, ui);
  board.set({ prompt: { ...(shown ?? selected(ui)), opened: performance.now() }, menu: undefined, ...(isNarrow() && { panel: "make" }) });
  if (Object.keys(change).length > 0) write(board, change);
}

/** Closes the Prompt. What was written stays. */
export const closePrompt = (board: Board): void => board.set({ prompt: undefined });

/** Selects what receives the results of a Prompt. If the Prompt is still shown, it goes on there. */
export function selectResults(board: Board, ids: string[]): void {
  const { prompt, selection } = board.getUi();
  board.select(ids);
  if (prompt && isSame(prompt.selection, selection)) board.set({ prompt: { ...prompt, selection: board.getUi().selection } });
}

/** Prompts whose text is kept. */
const MOST_KEPT = 20;

/** Keeps what was written in the Prompt that is shown. */
export function write(board: Board, change: Written): void {
  const ui = board.getUi();
  const subject = currentSubject(board);
  const key = keyOf(subject);
  const { [key]: before, ...others } = ui.written;
  const kept = Object.entries(others).slice(1 - MOST_KEPT);
  const isKept = subject.isKept === true || ui.panel === "make";
  board.set({ prompt: { ...subject, isKept }, written: { ...Object.fromEntries(kept), [key]: { ...before, ...change } } });
}

/** Keeps a setting. */
export function choose(board: Board, change: Settings): void {
  const { settings, written } = board.getUi();
  const subject = currentSubject(board);
  if (subject.draft) write(board, { settings: { ...written[keyOf(subject)]?.settings, ...change } });
  else board.set({ settings: { ...settings, ...change } });
}

/** Lets the panel follow the selection again. The settings stay. */
export function followSelection(board: Board): void {
  const { [keyOf(currentSubject(board))]: _, ...written } = board.getUi().written;
  board.set({ prompt: undefined, written });
}

/** Opens the panel with what an image was made with, or was to be made with. */
export function makeAgain(board: Board, draft: Draft): void {
  const { selection, written } = board.getUi();
  const prompt: Subject = { ids: draft.into, draft, selection };
  const { [keyOf(prompt)]: _, ...others } = written;
  board.set({ panel: "make", prompt, written: others });
}

// What was written, in the storage of the tab

const STORED = "canvas.prompts ";
sessionEnd.add(() => {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(STORED)) sessionStorage.removeItem(key);
});

/** Keeps what was written while the tab is open. The ids of nodes are those of the service then. */
export function store(canvas: string, written: Ui["written"], real: (id: string) => string): void {
  const entries = Object.entries(written).filter(([key]) => !key.startsWith("again "));
  sessionStorage.setItem(STORED + canvas, JSON.stringify(Object.fromEntries(entries.map(([key, text]) => [key.split(" ").map(real).join(" "), text]))));
}

export const stored = (canvas: string): Record<string, Written> => JSON.parse(sessionStorage.getItem(STORED + canvas) ?? "{}") as Record<string, Written>;

// The form

export const MODES: [Mode, string][] = [
  ["generate", "New"],
  ["edit", "Edit"],
  ["variations", "Variations"],
  ["video", "Video"],
];

const chipOf = ({ asset, title, role, node }: Reference): Chip => ({ asset, title, use: role, of: node?.id });
/** One more than can be made at a time: that they are too many is said. */
const MOST_CHIPS = 101;
const LINKS: Partial<Record<Purpose, Use>> = { reference: "guide", "first-frame": "first", "last-frame": "last" };
const isRole = (use: Use | undefined): use is Role => ROLES.some((role) => role === use);

/** The images that are connected to a place, and those that are selected. */
function ownChips(graph: Graph, nodes: Node[], target: Node | undefined): Chip[] {
  const linked = [...graph.connections.values()].flatMap(({ fromNodeId, toNodeId, purpose, role }) => {
    const node = toNodeId === target?.id && LINKS[purpose] !== undefined ? graph.nodes.get(fromNodeId) : undefined;
    return referencesTo(node ? [node] : []).map(({ asset, title }): Chip => ({ asset, title, of: fromNodeId, use: role ?? LINKS[purpose] }));
  });
  const known = new Set(linked.map(({ asset }) => asset));
  return [...linked, ...referencesTo(nodes, MOST_CHIPS).map(chipOf).filter(({ asset }) => !known.has(asset))].slice(0, MOST_CHIPS);
}

/** The first image begins a video and the second ends it, where the model can do so and nobody has decided otherwise. */
function videoUses(model: Model | undefined, chips: Chip[]): Use[] {
  const can = (capability: string) => model?.capabilities.some((one) => one === capability) ?? false;
  const isDecided = chips.some(({ use }) => use !== undefined);
  return chips.map(({ use }, index) => {
    if (isDecided) return use ?? "none";
    if (index === 0 && can("video.generate.fromImage")) return "first";
    if (index === 1 && chips.length === 2 && can("video.generate.fromFrames")) return "last";
    return can("video.generate.fromReferences") && !can("video.generate.fromImage") ? "guide" : "none";
  });
}

export interface Form {
  mode: Mode;
  /** Those that are possible. */
  modes: Mode[];
  /** Absent while models are loaded, and if none can be used. */
  model: Model | undefined;
  /** Those that make the same kind. */
  models: Model[];
  /** What was typed. */
  typed: string;
  /** The text that is sent if nothing was typed. */
  text: Node | undefined;
  /** What is sent. */
  prompt: string;
  chips: (Chip & { use: Use; node: Node | undefined })[];
  /** The same as far as somebody has decided on them. */
  entries: Chip[];
  /** How many of them the model takes. */
  most: number;
  /** The selected images, of which each can be changed by itself; the other chips guide all of them. Empty if that is no choice. */
  each: readonly string[];
  /** Whether each is. */
  isEach: boolean;
  /** How many images are made. */
  total: number;
  elements: Element[];
  /** Versions of Elements that the draft has. */
  earlier: string[];
  settings: Settings;
  options: (name: string) => string[];
  hasAudio: boolean;
  /** The image whose mask is painted, and the mask of an earlier attempt at it. */
  masked: string | undefined;
  earlierMask: string | undefined;
  /** Places that are filled before new ones are made. */
  into: Node[];
  /** What new ones are beside, if not an image. */
  beside: Node | undefined;
  draft: Draft | undefined;
  /** The draft's model is not offered now. */
  isModelGone: boolean;
  price: number;
  /** Why it cannot be started. */
  problem: string | undefined;
}

const can = (model: Model, mode: Mode): boolean => (mode === "video" ? model.type === "video" : model.capabilities.some((one) => one === `image.${mode}`));

/** What a Prompt would start. `models` are all that this session can use. */
export function formOf(graph: Graph, subject: Subject, { settings: all, written: texts }: Pick<Ui, "settings" | "written">, models: Model[], kinds: { image: boolean; video: boolean }): Form {
  const nodes = subject.ids.flatMap((id) => graph.nodes.get(id) ?? []);
  const written = texts[keyOf(subject)] ?? {};
  const video = nodes.find(({ type }) => type === "video");
  const slots = nodes.filter(isEmptySlot);
  const place = video ?? (slots.length === 1 ? slots[0] : undefined);
  const draft = subject.draft ?? (place && isFailed(place) ? draftOf(graph, place) : undefined);
  const made = place?.metadata;
  const ofPlace = { ...(made?.durationSeconds !== undefined && { seconds: String(made.durationSeconds) }), ...(made?.aspectRatio !== undefined && { ratio: made.aspectRatio }) };
  const ofDraft = draft && { size: draft.size, quality: draft.quality, count: draft.count };
  const settings: Settings = { ...ofPlace, ...all, ...ofDraft, ...written.settings };

  const entries = written.chips ?? draft?.references.map(chipOf) ?? ownChips(graph, nodes, place);
  const usable = models.filter(({ type }) => kinds[type === "video" ? "video" : "image"]);
  const isPossible = (mode: Mode) => (mode === "generate" || mode === "video" || entries.length > 0) && usable.some((one) => can(one, mode));
  const modes = MODES.map(([mode]) => mode).filter(isPossible);
  const wanted = written.mode ?? draft?.operation ?? (video ? "video" : "generate");
  const mode = modes.includes(wanted) ? wanted : (modes[0] ?? wanted);
  const isVideo = mode === "video";
  const offered = usable.filter(({ type }) => (type === "video") === isVideo);
  const known = draft ? modelOf(offered, draft) : isVideo ? offered.find(({ modelId }) => modelId === made?.model) : undefined;
  const chosenId = draft ? written.settings?.[isVideo ? "videoModel" : "imageModel"] : all[isVideo ? "videoModel" : "imageModel"];
  const chosen = offered.find(({ id }) => id === chosenId) ?? known;
  const model = chosen && can(chosen, mode) ? chosen : offered.find((one) => can(one, mode));

  const uses = isVideo ? videoUses(model, entries) : entries.map(({ use }) => (isRole(use) ? use : "guide"));
  const chips = entries.map((chip, index) => {
    const node = chip.of === undefined ? undefined : graph.nodes.get(chip.of);
    // What is left of a node that was deleted is its image.
    const isShown = node?.asset === chip.asset;
    return { ...chip, title: isShown ? node.title || chip.title : chip.title, use: uses[index] ?? "guide", node: isShown ? node : undefined };
  });
  const flowing = [...graph.connections.values()].flatMap(({ fromNodeId, toNodeId, purpose }) => (place && toNodeId === place.id && purpose === "flow" ? (graph.nodes.get(fromNodeId) ?? []) : []));
  const text = draft || written.isWithoutText ? undefined : promptNode([...nodes, ...flowing]);
  const typed = written.prompt ?? draft?.prompt ?? (text ? "" : (made?.prompt ?? ""));
  const elements = written.elements ?? [];
  const own = isVideo || place || draft ? [] : chips.filter(({ of, use }) => use === "guide" && subject.ids.includes(of ?? "")).map(({ asset }) => asset);
  const each = own.length > 1 ? own : [];
  const isEach = each.length > 0 && (written.isEach ?? mode !== "generate");
  // Of a start for each, its own image is the first one.
  const sent = isEach ? chips.filter(({ asset }) => !each.includes(asset)) : chips;
  const mentions: Mention[] = [...sent.map(({ title }, index) => ({ title, as: `image ${index + (isEach ? 2 : 1)}` })), ...elements.map(({ name }) => ({ title: name, as: name }))];
  const prompt = typed.trim() === "" && text ? firstOf(text.metadata.content ?? "", MOST_PROMPT) : promptWith(typed.trim(), mentions);

  const frames = chips.flatMap(({ use }): FrameUse[] => (use === "none" ? [] : [use === "first" || use === "last" ? use : "reference"]));
  const capability = isVideo ? videoCapability(frames) : `image.${mode}`;
  const most = model?.parameters.find((one) => one.name === "references" && one.capabilities.some((name) => name === capability))?.max ?? MOST_REFERENCES;
  const masked = mode === "edit" && !isEach && model && takesMask(model) ? chips[0]?.asset : undefined;
  const isMaking = place !== undefined && !isOver(statusAt(place) ?? "succeeded");
  const count = isVideo ? 1 : (settings.count ?? 1);
  const total = count * (isEach ? each.length : 1);
  const ready = draft ? draft.into.flatMap((id) => graph.nodes.get(id) ?? []).filter(isEmptySlot) : place && !isMaking ? [place] : [];
  return {
    mode,
    modes,
    model,
    models: offered,
    typed,
    text,
    prompt,
    chips,
    entries,
    most: most + Math.max(each.length - 1, 0) * Number(isEach),
    each,
    isEach,
    total,
    elements,
    earlier: draft?.elements ?? [],
    settings: { ...settings, count },
    options: (name) => (model ? optionsOf(model, name, capability) : []),
    hasAudio: model?.parameters.some(({ name, capabilities }) => name === "generateAudio" && capabilities.some((one) => one === capability)) ?? false,
    masked,
    earlierMask: masked !== undefined && draft?.references[0]?.asset === masked ? draft.mask : undefined,
    into: ready.filter(({ type }) => (type === "video") === isVideo).slice(0, count),
    beside: nodes[0],
    draft,
    isModelGone: draft?.model !== undefined && offered.length > 0 && !known,
    price: (model?.creditCost ?? 0) * total,
    problem: !model ? undefined : isVideo ? frameProblem(model, frames) : sent.length + (isEach ? 1 : 0) > most ? `This model takes ${most === 1 ? "one image" : `${most} images`}` : undefined,
  };
}

/** The images of a form as references of a request. */
export const referencesOf = ({ chips }: Form): (Reference & { use: FrameUse | undefined })[] =>
  chips.map(({ asset, title, node, use }) => ({
    ...withRole({ asset, title, ...(node && { node }) }, isRole(use) ? use : undefined),
    use: use === "none" ? undefined : use === "first" || use === "last" ? use : "reference",
  }));

/** The prompts that things on the board were made with, the newest first. */
export function lastPrompts(graph: Graph): string[] {
  const made = [...graph.nodes.values()].flatMap(({ metadata: { provenance, prompt } }) => {
    const text = provenance?.prompt ?? prompt;
    return text ? [{ text, at: provenance?.createdAt ?? "9999" }] : [];
  });
  // Of what is still being made it is not known when. It is the newest.
  return [...new Set(made.toReversed().toSorted((a, b) => b.at.localeCompare(a.at)).map(({ text }) => text))];
}

// Where it is

/** Between a Prompt and what it is about, and between it and the edges, in pixels. */
export const GAP = 12;
const EDGE = 8;
const WIDTH = 560;
/** A place that is at least so wide on the screen has the Prompt in it. */
const LEAST_PLACE = 280;
/** How high the bar of the selection is with the gap below it, in pixels. */
export const BAR = 52;
/** The part of the board that tools and buttons cover. */
const COVERED = { left: 76, top: 64, right: 16, bottom: 76 };

export interface Placed {
  left: number;
  top: number;
  width: number;
}

const clamp = (value: number, least: number, most: number) => Math.max(Math.min(value, most), least);

/**
 * Where a Prompt lies: in the place that it fills if it fits there; else below what it is about, above it, or at a side of it, where it
 * covers nothing first, and at a side only then; else at the bottom of the board. `box`: what it is about, in pixels of the board.
 * `caption`: if that is a place, how high its title is, which is not covered. `heightAt`: how high it is at a width. `bar`: where the bar
 * of the selection is, which it leaves room for.
 */
export function placePrompt(screen: Size, heightAt: (width: number) => number, box: Box | undefined, caption: number | undefined, bar?: "above" | "bottom", covers: (box: Box) => boolean = () => false): Placed {
  const { left, right, top: least } = COVERED;
  const edge = screen.height - EDGE - (bar === "bottom" ? BAR : 0);
  const bottom = Math.min(screen.height - COVERED.bottom, edge);
  const at = (middle: number, width: number) => ({ left: clamp(middle - width / 2, left, screen.width - right - width), width });
  const room = screen.width - left - right;
  const end = box ? box.y + box.height - (caption ?? 0) - EDGE : 0;
  if (box && caption !== undefined && box.width >= LEAST_PLACE) {
    const width = Math.min(box.width - 2 * EDGE, WIDTH, room);
    const top = end - heightAt(width);
    const inside = at(box.x + box.width / 2, width);
    const isSeen = top >= least && end <= edge && inside.left >= box.x && inside.left + width <= box.x + box.width;
    if (isSeen && top >= box.y + EDGE) return { ...inside, top };
  }
  const width = clamp(WIDTH, 0, room);
  const height = heightAt(width);
  if (box) {
    const { left: middle } = at(box.x + box.width / 2, width);
    const above = box.y - GAP - height;
    const level = clamp(box.y, least, Math.max(bottom - height, least));
    const places: Placed[] = [
      { left: middle, top: box.y + box.height + GAP, width },
      { left: middle, top: above - (bar === "above" ? BAR : 0), width },
      // The bar is below then.
      { left: middle, top: above, width },
      { left: box.x + box.width + GAP, top: level, width },
      { left: box.x - GAP - width, top: level, width },
    ];
    const possible = places.filter((one) => one.left >= left && one.left + width <= screen.width - right && one.top >= least && one.top + height <= bottom);
    const found = possible.find(({ left: x, top: y }) => !covers({ x, y, width, height })) ?? possible.find(({ left }) => left === middle);
    if (found) return found;
  }
  return { ...at((left + screen.width - right) / 2, width), top: Math.max(bottom - height, EDGE) };
}
