/** The geometry of an image that is laid over another one. */
import type { Action } from "../api.ts";
import type { Point, Size } from "../view.ts";
import type { Entries } from "./forms.ts";
import { allParams } from "./shapes.ts";
import { boxPlace, reach, type Stage, stepped, withBoxAt } from "./stage.ts";

/** The least and the most that the service takes, in percent of the width of the image below. */
const SCALE = { least: 0.1, most: 400 };

/** An overlay on an image, in pixels of that: its size, the box that it takes when it is turned, and where that is. */
export interface Laid {
  inner: Size;
  box: Size;
  at: Point;
}

/** Where an overlay of this shape is on an image of this size. */
export function laidOver(action: Action, entries: Entries, shape: Size, size: Size): Laid {
  const { scale, rotate, anchor, offsetX, offsetY } = allParams(action, entries);
  const width = (size.width * Number(scale)) / 100;
  const inner = { width, height: (width * shape.height) / shape.width };
  const half = reach(inner, Number(rotate));
  const box = { width: 2 * half.x, height: 2 * half.y };
  return { inner, box, at: boxPlace({ anchor: String(anchor), offsetX: String(offsetX), offsetY: String(offsetY) }, box, size) };
}

/** The Stage with the overlay made so many times as large about its middle. */
export function scaledOverlay(stage: Stage, action: Action, times: number, shape: Size, size: Size, gesture?: string): Stage {
  // In one gesture, it is relative to what was there before.
  const start = gesture !== undefined && gesture === stage.gesture ? (stage.past.at(-1)?.entries ?? stage.entries) : stage.entries;
  const before = laidOver(action, start, shape, size);
  const scale = Math.min(Math.max(Number(allParams(action, start)["scale"]) * times, SCALE.least), SCALE.most);
  const entries = { ...start, scale: String(Math.round(scale * 10) / 10) };
  const { box } = laidOver(action, entries, shape, size);
  const at = { x: before.at.x + (before.box.width - box.width) / 2, y: before.at.y + (before.box.height - box.height) / 2 };
  return withBoxAt(stepped(stage, { entries }, gesture), at, box, size, 0, gesture);
}

/** The Stage with the overlay moved by so many pixels of the image. */
export function nudgedOverlay(stage: Stage, action: Action, by: Point, shape: Size, size: Size): Stage {
  const { at, box } = laidOver(action, stage.entries, shape, size);
  return withBoxAt(stage, { x: Math.round(at.x) + by.x, y: Math.round(at.y) + by.y }, box, size, 0, "arrows");
}
