/** What people think of an image: reserved words among the tags of its node, for everybody on the canvas. */
import { update } from "../sync/change.ts";
import { type Node, same } from "../sync/graph.ts";
import { MOST_TAGS, withTag } from "../sync/tags.ts";
import type { Board } from "./board.ts";

export const FAVORITE = "favorite";
export const LABELS = ["red", "yellow", "green", "blue"] as const;

export interface Marks {
  isFavorite: boolean;
  /** From 1 to 5; 0 for none. */
  rating: number;
  label: (typeof LABELS)[number] | undefined;
}

export function marksOf({ metadata: { tags = [] } }: Node): Marks {
  const rating = Number(tags.find((tag) => /^rating:[1-5]$/.test(tag))?.at(-1) ?? 0);
  return { isFavorite: tags.includes(FAVORITE), rating, label: LABELS.find((label) => tags.includes(`label:${label}`)) };
}

/** In words, as a part of the name of a node. */
export const marksSaid = (node: Node): string | undefined => {
  const { isFavorite, rating, label } = marksOf(node);
  return [isFavorite && "a favorite", rating > 0 && (rating === 1 ? "1 star" : `${rating} stars`), label && `${label} label`].filter(Boolean).join(", ") || undefined;
};

/** A picture or video that is there. */
export const isPicture = ({ type, asset }: Node): boolean => (type === "image" || type === "video") && asset !== undefined;

/** Changes the tags of images as one step. Those that would have too many stay as they are, which is said. */
function retag(board: Board, label: string, nodes: Node[], next: (tags: string[]) => string[]): void {
  const changed = nodes.flatMap((node) => {
    const { tags = [] } = node.metadata;
    const to = next(tags);
    return same(tags, to) ? [] : { node, tags, to };
  });
  const full = changed.filter(({ tags, to }) => to.length > MOST_TAGS && to.length > tags.length);
  if (full.length > 0) board.notify(full.length === 1 ? "This image has too many tags." : `${full.length} images have too many tags.`);
  const changes = changed.filter((one) => !full.includes(one)).map(({ node, to }) => update("node", node, { "metadata.tags": to.length === 0 ? null : to }));
  if (changes.length > 0) board.engine.perform(label, changes);
}

const STEPS: Record<string, [set: string, taken: string]> = {
  favorite: ["Mark favorites", "Take favorites back"],
  label: ["Label images", "Take labels back"],
};

/** Marks images as favorites, or with a label. If all of them are marked so, they are no more. */
export function toggleMark(board: Board, tag: string, nodes = board.selected): void {
  const images = nodes.filter(isPicture);
  const isAll = images.every(({ metadata: { tags = [] } }) => tags.includes(tag));
  const [set, taken] = STEPS[tag.split(":")[0] ?? ""] ?? ["Mark images", "Take marks back"];
  retag(board, isAll ? taken : set, images, (tags) => (isAll ? tags.filter((one) => one !== tag) : tags.includes(tag) ? tags : withTag(tags, tag)));
}

/** Gives images so many stars, or none. */
export function rate(board: Board, rating: number, nodes = board.selected): void {
  const isOther = (tag: string) => !tag.startsWith("rating:") || tag === `rating:${rating}`;
  retag(board, rating === 0 ? "Take stars back" : "Give stars", nodes.filter(isPicture), (tags) => (rating === 0 || tags.includes(`rating:${rating}`) ? tags.filter(isOther) : withTag(tags, `rating:${rating}`)));
}

/** What a key marks in Look: 1 to 5 give stars, 0 takes them, and 6 to 9 give labels. */
export const markOfKey = (key: string): ((board: Board, nodes: Node[]) => void) | undefined => {
  if (/^[0-5]$/.test(key)) return (board, nodes) => rate(board, Number(key), nodes);
  const label = LABELS[Number(key) - 6];
  if (label && key.length === 1) return (board, nodes) => toggleMark(board, `label:${label}`, nodes);
  return key === "F" ? (board, nodes) => toggleMark(board, FAVORITE, nodes) : undefined;
};
export const MARK_KEYS = ["F", ..."0123456789"];
