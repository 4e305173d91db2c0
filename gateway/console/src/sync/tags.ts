/** The tags of a node as a set, of which two people change different parts. */

/** Tags of these kinds exclude each other: a node has one rating and one label. */
const SINGLE = ["rating:", "label:"];
/** How many tags a node has at most. */
export const MOST_TAGS = 24;

const listOf = (value: unknown): string[] => (Array.isArray(value) ? value.filter((one) => typeof one === "string") : []);
const kindOf = (tag: string): string => SINGLE.find((kind) => tag.startsWith(kind)) ?? tag;

/** `tags` with one more, in place of the one that it excludes. */
export const withTag = (tags: readonly string[], tag: string): string[] => [...tags.filter((one) => kindOf(one) !== kindOf(tag)), tag];

/** What becomes of the change from `was` to `set` on tags that are now `now`: what it adds is there and what it takes is gone, and all else stays. */
export function mergedTags(was: unknown, set: unknown, now: unknown): string[] | null {
  const [before, after, present] = [listOf(was), listOf(set), listOf(now)];
  const kept = present.filter((tag) => after.includes(tag) || !before.includes(tag));
  const added = after.filter((tag) => !before.includes(tag) && !kept.includes(tag));
  const merged = added.reduce((tags: string[], tag) => (tags.length < MOST_TAGS || tags.some((one) => kindOf(one) === kindOf(tag)) ? withTag(tags, tag) : tags), kept);
  return merged.length === 0 ? null : merged;
}
