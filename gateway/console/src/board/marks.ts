/** What people think of an image: reserved words among the tags of its node, for everybody on the canvas. */
import { update } from "../sync/change.ts";
import type { Node } from "../sync/graph.ts";
import { MOST_TAGS, withTag } from "../sync/tags.ts";
import type { Board } from "./board.ts";

const FAVORITE = "favorite";
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

const isMarkable = ({ type, asset }: Node): boolean => (type === "image" || type === "video") && asset !== undefined;
export const hasMarkable = (board: Board): boolean => board.selected.some(isMarkable);

/** Makes the selected images favorites. If all of them are, they are none any more. */
export function toggleFavorite(board: Board): void {
  const nodes = board.selected.filter(isMarkable);
  const isAll = nodes.every((node) => marksOf(node).isFavorite);
  const changed = nodes.filter((node) => isAll || !marksOf(node).isFavorite);
  const full = changed.filter(({ metadata: { tags = [] } }) => !isAll && tags.length >= MOST_TAGS);
  if (full.length > 0) board.notify(full.length === 1 ? "This image has too many tags." : `${full.length} images have too many tags.`);
  const changes = changed
    .filter((node) => !full.includes(node))
    .map((node) => {
      const tags = node.metadata.tags ?? [];
      const next = isAll ? tags.filter((tag) => tag !== FAVORITE) : withTag(tags, FAVORITE);
      return update("node", node, { "metadata.tags": next.length === 0 ? null : next });
    });
  if (changes.length > 0) board.engine.perform(isAll ? "Take favorites back" : "Mark favorites", changes);
}
