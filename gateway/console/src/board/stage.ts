/**
 * The Stage: one picture, worked on where it is seen. Its state is the entries of the form of an Action, so each handle is a field and each
 * field a handle. All of it is pure, but for what was entered last for a picture, which is there again until a reload.
 *
 * There are two kinds of coordinates, both in pixels: those of the *upright* picture, which is the picture after quarter turns and mirroring,
 * and those of the *view*, which is the upright picture turned by the degrees of the crop about its middle. In the view, the rectangle of a
 * crop is level.
 */
import type { Action } from "../api.ts";
import type { Node } from "../sync/graph.ts";
import type { Box, Point, Size } from "../view.ts";
import { sourceOf } from "./attempts.ts";
import type { Board } from "./board.ts";
import type { Entries } from "./forms.ts";
import type { Mark } from "./masking.ts";
import { anchorNear, type Preview, previewOf, shares } from "./preview.ts";
import { middleOf } from "./spatial.ts";

export type Tool = "crop" | "text" | "colors" | "overlay" | "size" | "format" | "mask";

/** Mirrored from left to right first, then turned clockwise by quarters. */
export interface Turn {
  quarters: 0 | 1 | 2 | 3;
  isMirrored: boolean;
}

/** What a step of the Stage can change. */
interface Snapshot {
  entries: Entries;
  turn: Turn;
  /** The ratio that the rectangle keeps, as "4:5"; empty for any. */
  ratio: string;
  /** What is painted as a mask. */
  marks: readonly Mark[];
  /** What is laid over the picture. */
  second: Second | undefined;
}

/** A second picture, and the node that shows it, if there is one. */
export interface Second {
  asset: string;
  title: string;
  id?: string;
}

/** What a mask is painted with. */
export interface Brush {
  kind: Exclude<Mark["kind"], "invert">;
  /** In percent of the longer side of the picture. */
  width: number;
}

export interface Stage extends Snapshot {
  tool: Tool;
  /** The node that is worked on. */
  id: string;
  /** The picture, and the node that shows it, if there is one. The picture is empty if it is gone. */
  asset: string;
  source: string | undefined;
  past: Snapshot[];
  future: Snapshot[];
  /** What the last step is of: the next one with the same name goes on with it. */
  gesture: string | undefined;
  /** Whether the result takes the place of the node, which was made with the same Action. */
  replaces: boolean | undefined;
  brush: Brush;
}

const MOST_STEPS = 100;
/** The Actions of the tools. A mask is for an edit by a model, which the Prompt starts. */
export const SLUGS: Record<Exclude<Tool, "mask">, string> & { mask?: undefined } = { crop: "crop", text: "add-text-to-image", colors: "color-grade", overlay: "overlay-image", size: "resize", format: "change-aspect-ratio" };
export const MOST_DEGREES = 45;
/** How far a corner may be outside of the picture, in pixels: the service permits half a pixel. */
const TOLERANCE = 0.45;
const LEVEL: Turn = { quarters: 0, isMirrored: false };
const UNCHANGED: Snapshot = { entries: {}, turn: LEVEL, ratio: "", marks: [], second: undefined };
const BRUSH: Brush = { kind: "brush", width: 6 };
export const MOST_WIDTH = 40;

/** What was entered last, by tool and picture. */
const kept = new Map<string, Snapshot>();
const keyOf = ({ tool, asset, replaces }: Pick<Stage, "tool" | "asset" | "replaces">) => `${tool} ${asset} ${replaces !== undefined}`;
const snapshotOf = ({ entries, turn, ratio, marks, second }: Snapshot): Snapshot => ({ entries, turn, ratio, marks, second });
const NEW = { past: [], future: [], gesture: undefined, brush: BRUSH };

// Opening and closing

/** Opens the Stage on the picture of a node. `over`: the one whose picture is laid over it. */
export function openStage(board: Board, tool: Tool, { id, asset = "" }: Pick<Node, "id" | "asset">, over?: Node): void {
  const before = kept.get(keyOf({ tool, asset, replaces: undefined }));
  // A mask is for what is written in the Prompt.
  const prompt = tool === "mask" ? board.getUi().prompt : undefined;
  const second = over ? secondOf(over.asset ?? "", over) : before?.second;
  board.set({ stage: { ...UNCHANGED, ...before, ...NEW, second, tool, id, asset, source: id, replaces: undefined }, menu: undefined, prompt, attempt: undefined });
}

const secondOf = (asset: string, node?: Node): Second => ({ asset, title: node?.title || "Image", ...(node && { id: node.id }) });

/** How a picture was made with a tool of the Stage: undefined for one that was made otherwise. `over`: the handle of what was laid over it. */
export function madeOnStage({ asset, metadata: { provenance } }: Node): ({ tool: Exclude<Tool, "mask"> } & Snapshot & { handle: string; over?: string | undefined }) | undefined {
  const handle = provenance?.references[0]?.handle;
  if (asset === undefined || provenance?.kind !== "action" || handle === undefined) return undefined;
  const steps = provenance.steps?.map(({ actionId, params }) => ({ slug: slugOf(actionId), params: params as Params })) ?? [{ slug: slugOf(provenance.actionId ?? ""), params: (provenance.params ?? {}) as Params }];
  const [first, last] = [steps[0], steps.at(-1)];
  if (!first || !last) return undefined;
  const turn = first.slug === "rotate" ? turnOf(first.params) : LEVEL;
  const tool = (["text", "colors", "overlay", "size", "format"] as const).find((one) => steps.length === 1 && last.slug === SLUGS[one]);
  if (tool) return { ...UNCHANGED, tool, handle, over: provenance.references[1]?.handle, entries: entriesOf(last.params) };
  if (!turn) return undefined;
  if (steps.length === 1 && last.slug === "rotate") return { ...UNCHANGED, tool: "crop", handle, turn };
  if (last.slug !== SLUGS.crop || steps.length > 2 || (steps.length === 2 && first.slug !== "rotate")) return undefined;
  return { ...UNCHANGED, tool: "crop", handle, entries: entriesOf(last.params), turn };
}

/** Opens the Stage on what a picture was made from, with what was entered then. */
export function reopenStage(board: Board, node: Node): void {
  const made = madeOnStage(node);
  if (!made) return;
  const { handle, over = "", ...rest } = made;
  const assetAt = (handle: string) => sourceOf(board, handle)?.asset ?? (handle.startsWith("asset:") ? handle : "");
  const [source, asset, top] = [sourceOf(board, handle), assetAt(handle), assetAt(over)];
  const second = top === "" ? undefined : secondOf(top, sourceOf(board, over));
  const before = kept.get(keyOf({ tool: made.tool, asset, replaces: true }));
  board.set({ stage: { ...rest, second, ...before, ...NEW, id: node.id, asset, source: source?.id, replaces: true }, menu: undefined, prompt: undefined, attempt: undefined });
}

export function closeStage(board: Board): void {
  const { stage, panel, prompt } = board.getUi();
  if (!stage) return;
  keepStage(stage);
  board.set({ stage: undefined, prompt: panel === "make" ? prompt : undefined });
  board.surface?.focus(stage.id);
}

/** What is entered is there the next time. */
export const keepStage = (stage: Stage): void => void kept.set(keyOf(stage), snapshotOf(stage));

/** What was entered has been started with, and is not there the next time. */
export const forgetStage = (stage: Stage): void => void kept.delete(keyOf(stage));

// Steps

/** The Stage after a step. Steps of one gesture are one. */
export function stepped(stage: Stage, change: Partial<Snapshot>, gesture?: string): Stage {
  const { past } = stage;
  const goesOn = gesture !== undefined && gesture === stage.gesture;
  return { ...stage, ...change, gesture, past: goesOn ? past : [...past, snapshotOf(stage)].slice(-MOST_STEPS), future: [] };
}

/** The Stage with one field changed. What is typed into one field is one step. */
export const entered = (stage: Stage, name: string, value: string): Stage => stepped(stage, { entries: { ...stage.entries, [name]: value } }, `field ${name}`);

export function undone(stage: Stage): Stage {
  const { past, future } = stage;
  const before = past.at(-1);
  return before ? { ...stage, ...before, gesture: undefined, past: past.slice(0, -1), future: [...future, snapshotOf(stage)] } : stage;
}

export function redone(stage: Stage): Stage {
  const { past, future } = stage;
  const after = future.at(-1);
  return after ? { ...stage, ...after, gesture: undefined, past: [...past, snapshotOf(stage)], future: future.slice(0, -1) } : stage;
}

/** The Stage as if a gesture had not begun. */
export const withdrawn = (stage: Stage, gesture: string): Stage => (stage.gesture === gesture ? { ...undone(stage), future: [] } : stage);

// Crop and turn

/** A level rectangle in the view, and by how much the picture is turned under it. */
export interface Crop {
  box: Box;
  degrees: number;
}

/** The size of the picture after its quarter turns. */
export const uprightSize = ({ width, height }: Size, { quarters }: Turn): Size => (quarters % 2 === 0 ? { width, height } : { width: height, height: width });

/** A point turned clockwise about another one. */
function turned({ x, y }: Point, about: Point, degrees: number): Point {
  const [sin, cos] = [Math.sin((degrees * Math.PI) / 180), Math.cos((degrees * Math.PI) / 180)];
  const [across, down] = [x - about.x, y - about.y];
  return { x: about.x + across * cos - down * sin, y: about.y + across * sin + down * cos };
}

const boxAround = ({ x, y }: Point, { width, height }: Size): Box => ({ x: x - width / 2, y: y - height / 2, width, height });
const clamp = (value: number, least: number, most: number) => (least > most ? (least + most) / 2 : Math.min(Math.max(value, least), most));

/** Half of the room that a rectangle takes in the upright picture, across and down. */
export function reach({ width, height }: Size, degrees: number): Point {
  const [sin, cos] = [Math.abs(Math.sin((degrees * Math.PI) / 180)), Math.abs(Math.cos((degrees * Math.PI) / 180))];
  return { x: (width * cos + height * sin) / 2, y: (width * sin + height * cos) / 2 };
}

/** Whether the four corners of the rectangle are in the picture of this size. */
export function isInside({ box, degrees }: Crop, size: Size, tolerance = TOLERANCE): boolean {
  const { x, y } = turned(middleOf(box), middleOf({ x: 0, y: 0, ...size }), -degrees);
  const half = reach(box, degrees);
  return x - half.x >= -tolerance && y - half.y >= -tolerance && x + half.x <= size.width + tolerance && y + half.y <= size.height + tolerance;
}

/** The rectangle moved by the least that brings it into the picture, and made smaller with its ratio kept if it is too large. */
export function broughtInside({ box, degrees }: Crop, size: Size): Crop {
  const half = reach(box, degrees);
  const scale = Math.min(1, size.width / 2 / half.x, size.height / 2 / half.y);
  const smaller = { width: box.width * scale, height: box.height * scale };
  const about = middleOf({ x: 0, y: 0, ...size });
  const { x, y } = turned(middleOf(box), about, -degrees);
  const room = reach(smaller, degrees);
  const middle = { x: clamp(x, room.x, size.width - room.x), y: clamp(y, room.y, size.height - room.y) };
  return { box: boxAround(turned(middle, about, degrees), smaller), degrees };
}

const numberOf = (entry: string | undefined): number | undefined => (entry === undefined || entry.trim() === "" || !Number.isFinite(Number(entry)) ? undefined : Number(entry));

/** The rectangle of the entries: without a size, all of the picture. */
export function cropOf({ width, height, x, y, degrees, anchor }: Entries, size: Size): Crop {
  const sides = { width: Math.max(numberOf(width) ?? size.width, 1), height: Math.max(numberOf(height) ?? size.height, 1) };
  const { x: across, y: down } = shares(anchor || "center");
  const angle = clamp(numberOf(degrees) ?? 0, -MOST_DEGREES, MOST_DEGREES);
  const at = { x: numberOf(x) ?? (size.width - sides.width) * across, y: numberOf(y) ?? (size.height - sides.height) * down };
  const middle = turned(middleOf({ ...at, ...sides }), middleOf({ x: 0, y: 0, ...size }), angle);
  return { box: boxAround(middle, sides), degrees: angle };
}

/** The two whole numbers around a value, the nearer one first. */
const wholes = (value: number): number[] => [Math.round(value), Math.round(value) > value ? Math.floor(value) : Math.ceil(value)];

/** The entries of a rectangle, in whole pixels. One that would reach beyond a turned picture for that is smaller by a few pixels. */
export function entriesOfCrop(crop: Crop, size: Size): Entries {
  const { box, degrees } = isInside(crop, size) ? crop : broughtInside(crop, size);
  const { x, y } = turned(middleOf(box), middleOf({ x: 0, y: 0, ...size }), -degrees);
  for (let less = 0; ; less += 1) {
    const width = Math.max(Math.round(box.width) - less, 1);
    const height = Math.max(Math.round(box.height) - less, 1);
    const places = wholes(x - width / 2).flatMap((left) => wholes(y - height / 2).map((top) => ({ x: left, y: top })));
    const all = places.map((at) => ({ x: String(at.x), y: String(at.y), width: String(width), height: String(height), degrees: degrees === 0 ? "" : String(degrees) }));
    const found = all.find((entries) => isInside(cropOf(entries, size), size)) ?? (width === 1 && height === 1 ? all[0] : undefined);
    if (found) return found;
  }
}

/** The Stage with this rectangle. */
export const cropped = (stage: Stage, crop: Crop, size: Size, gesture?: string, rest: Partial<Snapshot> = {}): Stage =>
  stepped(stage, { ...rest, entries: { ...stage.entries, ...entriesOfCrop(crop, size), anchor: "" } }, gesture);

/** The rectangle moved by so much, within the picture. */
export const movedCrop = ({ box, degrees }: Crop, by: Point, size: Size): Crop => broughtInside({ box: { ...box, x: box.x + by.x, y: box.y + by.y }, degrees }, size);

/** What a handle moves: the sides at -1 (left, top) and 1 (right, bottom); 0 moves neither. */
export interface Handle {
  x: -1 | 0 | 1;
  y: -1 | 0 | 1;
}

/** How far one can go from one rectangle to another without leaving the picture. */
function towards(from: Crop, box: Box, size: Size): Box {
  const at = (part: number): Box => ({
    x: from.box.x + (box.x - from.box.x) * part,
    y: from.box.y + (box.y - from.box.y) * part,
    width: from.box.width + (box.width - from.box.width) * part,
    height: from.box.height + (box.height - from.box.height) * part,
  });
  if (isInside({ box, degrees: from.degrees }, size, 1e-6)) return box;
  let [least, most] = [0, 1];
  for (let step = 0; step < 40; step += 1) {
    const middle = (least + most) / 2;
    if (isInside({ box: at(middle), degrees: from.degrees }, size, 1e-6)) least = middle;
    else most = middle;
  }
  return at(least);
}

/** The side of a rectangle after a handle at it has moved, with the other one or the middle where it was. */
function stretched(start: number, length: number, end: -1 | 0 | 1, by: number, isFromMiddle: boolean): [start: number, length: number] {
  if (end === 0) return [start, length];
  const next = Math.max(length + end * by * (isFromMiddle ? 2 : 1), 1);
  if (isFromMiddle) return [start + (length - next) / 2, next];
  return [end < 0 ? start + length - next : start, next];
}

/** The rectangle after a handle has moved by so much from where it was. `ratio`: width by height, if it is kept. */
export function resizedCrop(crop: Crop, handle: Handle, by: Point, size: Size, { ratio, isFromMiddle = false }: { ratio?: number | undefined; isFromMiddle?: boolean } = {}): Crop {
  // What was entered in whole pixels can reach beyond a turned picture by less than one.
  const start = broughtInside(crop, size);
  const { box, degrees } = start;
  const [x, width] = stretched(box.x, box.width, handle.x, by.x, isFromMiddle);
  const [y, height] = stretched(box.y, box.height, handle.y, by.y, isFromMiddle);
  if (ratio === undefined) {
    // First across, then down: at one edge of the picture, the other side moves on.
    const across = towards(start, { ...box, x, width }, size);
    return { box: towards({ box: across, degrees }, { ...across, y, height }, size), degrees };
  }
  // A side leads the other one; of a corner, the longer way.
  const sides = handle.y === 0 || (handle.x !== 0 && width / ratio >= height) ? { width, height: width / ratio } : { width: height * ratio, height };
  const place = (start: number, length: number, next: number, end: -1 | 0 | 1) => (end === 0 || isFromMiddle ? start + (length - next) / 2 : end < 0 ? start + length - next : start);
  const wanted = { x: place(box.x, box.width, sides.width, handle.x), y: place(box.y, box.height, sides.height, handle.y), ...sides };
  // What is not of the ratio yet begins as a point where the handle's opposite is.
  const fixed = { x: place(box.x, box.width, 0, handle.x), y: place(box.y, box.height, 0, handle.y), width: 0, height: 0 };
  return { box: towards({ box: fixed, degrees }, wanted, size), degrees };
}

/** A new rectangle between two points of the view. */
export function drawnCrop(from: Point, to: Point, degrees: number, size: Size, ratio?: number): Crop {
  const start = { box: { ...from, width: 0, height: 0 }, degrees };
  const inside = isInside(start, size) ? start : broughtInside(start, size);
  const handle: Handle = { x: to.x < from.x ? -1 : 1, y: to.y < from.y ? -1 : 1 };
  return resizedCrop(inside, handle, { x: to.x - inside.box.x, y: to.y - inside.box.y }, size, { ratio });
}

/** The nearest of some lines within reach of a value, or the value. */
export function snapped(value: number, lines: readonly number[], within: number): number {
  const nearest = lines.toSorted((a, b) => Math.abs(a - value) - Math.abs(b - value))[0];
  return nearest !== undefined && Math.abs(nearest - value) <= within ? nearest : value;
}

/** Edges, thirds and the middle of a length. */
export const linesOf = (length: number): number[] => [0, length / 3, length / 2, (2 * length) / 3, length];

/** How far a handle moves, if what it moves snaps to lines of a picture that is level. */
export function snappedBy({ box, degrees }: Crop, handle: Handle, by: Point, size: Size, within: number): Point {
  if (degrees !== 0) return by;
  const along = (start: number, length: number, end: -1 | 0 | 1, way: number, whole: number) => {
    if (end === 0) return way;
    const edge = end < 0 ? start : start + length;
    return snapped(edge + way, linesOf(whole), within) - edge;
  };
  return { x: along(box.x, box.width, handle.x, by.x, size.width), y: along(box.y, box.height, handle.y, by.y, size.height) };
}

/** How far a rectangle moves, if its edges or its middle snap to the edges or the middle of a picture that is level. */
export function snappedMove({ box, degrees }: Crop, by: Point, size: Size, within: number): Point {
  if (degrees !== 0) return by;
  const along = (start: number, length: number, way: number, whole: number) => {
    const places = [0, whole - length, (whole - length) / 2];
    return snapped(start + way, places, within) - start;
  };
  return { x: along(box.x, box.width, by.x, size.width), y: along(box.y, box.height, by.y, size.height) };
}

/** Width by height of "4:5"; undefined for anything else. */
export function ratioIn(text: string): number | undefined {
  const [, across, down] = /^(\d+(?:\.\d{1,2})?):(\d+(?:\.\d{1,2})?)$/.exec(text.trim()) ?? [];
  const ratio = Number(across) / Number(down);
  return Number.isFinite(ratio) && ratio > 0 ? ratio : undefined;
}

/** The largest rectangle of a ratio about a point of the view, or as near to it as the picture permits. */
export function largestCrop(ratio: number, about: Point, degrees: number, size: Size): Crop {
  const unit = reach({ width: ratio, height: 1 }, degrees);
  const scale = Math.min(size.width / 2 / unit.x, size.height / 2 / unit.y);
  // The service rounds a crop to a ratio down, too.
  const whole = degrees === 0 ? Math.floor : (value: number) => value;
  return broughtInside({ box: boxAround(about, { width: Math.max(whole(ratio * scale + 1e-9), 1), height: Math.max(whole(scale + 1e-9), 1) }), degrees }, size);
}

/** The Stage with a ratio that its rectangle has and keeps. "" keeps none. */
export function withRatio(stage: Stage, ratio: string, size: Size): Stage {
  const value = ratioIn(ratio);
  const { box, degrees } = cropOf(stage.entries, size);
  if (value === undefined) return stepped(stage, { ratio });
  return cropped(stage, largestCrop(value, middleOf(box), degrees, size), size, undefined, { ratio });
}

/** The Stage with width and height exchanged. */
export function withSidesSwapped(stage: Stage, size: Size): Stage {
  const { box, degrees } = cropOf(stage.entries, size);
  const ratio = stage.ratio.split(":").toReversed().join(":");
  return cropped(stage, { box: boxAround(middleOf(box), { width: box.height, height: box.width }), degrees }, size, undefined, { ratio });
}

/** The Stage with the picture turned by degrees under the rectangle, which keeps its ratio and is as large as before, if that is inside. */
export function withDegrees(stage: Stage, degrees: number, size: Size, gesture?: string): Stage {
  // In one gesture, the rectangle grows again when the picture is turned back.
  const start = gesture !== undefined && gesture === stage.gesture ? (stage.past.at(-1)?.entries ?? stage.entries) : stage.entries;
  const before = cropOf(start, size);
  const angle = clamp(Math.round(degrees * 10) / 10, -MOST_DEGREES, MOST_DEGREES);
  if (angle === before.degrees) return stepped(stage, { entries: start }, gesture);
  const about = middleOf({ x: 0, y: 0, ...size });
  const middle = turned(middleOf(before.box), about, -before.degrees);
  // It shrinks about its middle, which stays.
  const half = reach(before.box, angle);
  const scale = Math.min(1, middle.x / half.x, middle.y / half.y, (size.width - middle.x) / half.x, (size.height - middle.y) / half.y);
  const sides = { width: before.box.width * scale, height: before.box.height * scale };
  return cropped(stage, { box: boxAround(turned(middle, about, angle), sides), degrees: angle }, size, gesture);
}

/** The Stage with the picture turned by a quarter: 1 to the right, -1 to the left. `size`: that of the upright picture before. */
export function withQuarter(stage: Stage, to: 1 | -1, size: Size): Stage {
  const quarters = ((stage.turn.quarters + to + 4) % 4) as Turn["quarters"];
  const entries = mapped(stage.entries, size, ({ x, y, width, height }) =>
    to > 0 ? { x: size.height - y - height, y: x, width: height, height: width } : { x: y, y: size.width - x - width, width: height, height: width },
  );
  return stepped(stage, { turn: { ...stage.turn, quarters }, entries, ratio: stage.ratio.split(":").toReversed().join(":") });
}

/** The Stage with the picture mirrored from left to right, as it is seen. */
export function withMirror(stage: Stage, size: Size): Stage {
  const { quarters, isMirrored } = stage.turn;
  const entries = mapped(stage.entries, size, ({ x, ...box }) => ({ ...box, x: size.width - x - box.width }));
  const degrees = numberOf(entries["degrees"]);
  return stepped(stage, { turn: { quarters: ((4 - quarters) % 4) as Turn["quarters"], isMirrored: !isMirrored }, entries: { ...entries, ...(degrees && { degrees: String(-degrees) }) } });
}

/** The Stage with all of the picture, as it is. */
export function resetCrop(stage: Stage): Stage {
  const { x, y, width, height, degrees, anchor, ...entries } = stage.entries;
  return stepped(stage, { entries, turn: LEVEL, ratio: "" });
}

/** The entries with their rectangle in another upright picture. If it is all of the picture, it stays so. */
function mapped(entries: Entries, size: Size, map: (box: Box) => Box): Entries {
  if (!entries["width"] && !entries["height"]) return entries;
  const { box, degrees } = cropOf(entries, size);
  const { x, y, width, height } = map(boxAround(turned(middleOf(box), middleOf({ x: 0, y: 0, ...size }), -degrees), box));
  return { ...entries, x: String(Math.round(x)), y: String(Math.round(y)), width: String(width), height: String(height), anchor: "" };
}

// What is put on a picture: a text, or another picture

/** Where a box of this size is on a picture, with the entries of what is in it. */
export function boxPlace({ anchor, offsetX, offsetY }: Entries, box: Size, size: Size): Point {
  const { x, y } = shares(anchor || "bottom");
  return { x: (size.width - box.width) * x + (numberOf(offsetX) ?? 0), y: (size.height - box.height) * y + (numberOf(offsetY) ?? 0) };
}

/** The anchor and offsets of a box at a point: of the nine anchors the nearest, so that it stays where it is if the box grows. */
export function anchorAt(at: Point, box: Size, size: Size): Entries {
  const anchor = anchorNear({ x: (at.x + box.width / 2) / size.width, y: (at.y + box.height / 2) / size.height });
  const home = boxPlace({ anchor }, box, size);
  return { anchor, offsetX: String(Math.round(at.x - home.x)), offsetY: String(Math.round(at.y - home.y)) };
}

/** The Stage with a box at a point, snapped to edges, margins of 5 % and the middle of the picture. */
export function withBoxAt(stage: Stage, at: Point, box: Size, size: Size, within: number, gesture?: string): Stage {
  const along = (value: number, length: number, whole: number) => snapped(value, [0, whole * 0.05, (whole - length) / 2, whole * 0.95 - length, whole - length], within);
  const place = { x: along(at.x, box.width, size.width), y: along(at.y, box.height, size.height) };
  return stepped(stage, { entries: { ...stage.entries, ...anchorAt(place, box, size) } }, gesture);
}

// Masks

export const brushWidth = ({ width: percent }: Brush, { width, height }: Size): number => (percent / 100) * Math.max(width, height);

export const withBrush = (stage: Stage, change: Partial<Brush>): Stage => {
  const { kind, width } = { ...stage.brush, ...change };
  return { ...stage, brush: { kind, width: clamp(width, 1, MOST_WIDTH) } };
};

/** The Stage with one mark more. That of a gesture takes the place of what it was before. */
export function marked(stage: Stage, mark: Mark, gesture?: string): Stage {
  const before = gesture !== undefined && gesture === stage.gesture ? stage.marks.slice(0, -1) : stage.marks;
  return stepped(stage, { marks: [...before, mark] }, gesture);
}

// What is started

type Params = Record<string, string | number>;

const slugOf = (handle: string) => handle.replace("action:", "");
const entriesOf = (params: Params): Entries => Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));

/** The quarter turns and the mirroring of an Action that does only these. */
function turnOf({ degrees = 0, flip = "none" }: Params): Turn | undefined {
  const quarters = Number(degrees) / 90;
  if (!Number.isInteger(quarters) || flip === "vertical" || flip === "both") return undefined;
  return { quarters: (((quarters % 4) + 4) % 4) as Turn["quarters"], isMirrored: flip === "horizontal" };
}

/** Entries of colors that change nothing, as others are 0. */
const NEUTRAL: Record<string, string> = { gamma: "1", preset: "none", intensity: "100", format: "auto", quality: "85" };

/** One Action that is run, with its entries. */
export interface Step {
  slug: string;
  entries: Entries;
}

/** What a Stage runs, in order; nothing if it changes nothing. */
export function stepsOf({ tool, entries, turn, second }: Pick<Stage, "tool" | "entries" | "turn" | "second">, size: Size): Step[] {
  if (tool === "mask") return [];
  if (tool === "overlay") return second ? [{ slug: SLUGS.overlay, entries }] : [];
  if (tool === "text") return (entries["text"] ?? "").trim() === "" ? [] : [{ slug: SLUGS.text, entries }];
  if (tool === "colors") return Object.entries(entries).some(([name, value]) => value !== "" && value !== (NEUTRAL[name] ?? "0")) ? [{ slug: SLUGS.colors, entries }] : [];
  if (tool !== "crop") return previewOn({ tool, entries }, size) ? [{ slug: SLUGS[tool], entries }] : [];
  const isTurned = turn.quarters !== 0 || turn.isMirrored;
  const upright = uprightSize(size, turn);
  const { box, degrees } = cropOf(entries, upright);
  const isWhole = degrees === 0 && box.width === upright.width && box.height === upright.height;
  const { format = "", quality = "" } = entries;
  const rotate = { slug: "rotate", entries: { degrees: String(90 * turn.quarters), flip: turn.isMirrored ? "horizontal" : "none", ...(isWhole && { format, quality }) } };
  // What was entered is sent as it is; what is missing follows from it.
  const isComplete = ["x", "y", "width", "height"].every((name) => (entries[name] ?? "") !== "");
  const crop = { slug: SLUGS.crop, entries: isComplete ? entries : { ...entries, ...entriesOfCrop({ box, degrees }, upright), anchor: "" } };
  return [...(isTurned ? [rotate] : []), ...(isWhole ? [] : [crop])];
}

const REFUSALS: Partial<Record<Tool, string>> = { text: "Write a text first.", overlay: "Choose an image to lay over it.", size: "A value is missing or not possible.", format: "A value is missing or not possible." };

/** Why a Stage cannot be applied; undefined if it can. */
export function refusalOf(stage: Stage, size: Size, canChange: boolean): string | undefined {
  if (!canChange) return "You can only read this canvas now.";
  if (stepsOf(stage, size).length === 0) return REFUSALS[stage.tool] ?? "Nothing is changed yet.";
  const upright = uprightSize(size, stage.turn);
  if (stage.tool === "crop" && !isInside(cropOf(stage.entries, upright), upright)) return "The rectangle reaches beyond the image.";
  return undefined;
}

/** About what a size or format makes; undefined while a value is missing or not possible. */
export function previewOn({ tool, entries }: Pick<Stage, "tool" | "entries">, size: Size): Preview | undefined {
  const values = Object.entries(entries).flatMap(([name, value]) => (value === "" ? [] : [[name, Number.isFinite(Number(value)) ? Number(value) : value] as const]));
  return tool === "size" || tool === "format" ? previewOf(SLUGS[tool], Object.fromEntries(values), size) : undefined;
}

/** The size in pixels of what a Stage makes. */
export function sizeMade({ tool, entries, turn }: Stage, size: Size): Size {
  if (tool !== "crop") return previewOn({ tool, entries }, size)?.size ?? size;
  const { width, height } = cropOf(entries, uprightSize(size, turn)).box;
  return { width: Math.round(width), height: Math.round(height) };
}

/** The Actions of steps, with the entries. */
export const actionsOf = (steps: Step[], all: readonly Action[]): { action: Action; entries: Entries }[] =>
  steps.flatMap(({ slug, entries }) => {
    const action = all.find((one) => one.slug === slug);
    return action ? [{ action, entries }] : [];
  });
