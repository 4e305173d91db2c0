/** Which Recipes of a list are shown, and by which tags the list can be narrowed down. */
import type { Recipe } from "./calls.ts";

type Filed = Pick<Recipe, "category" | "tags">;

export interface Filter {
  /** Empty: every category. */
  category: string;
  /** A Recipe has all of them. */
  tags: readonly string[];
}

export const matches = ({ category, tags = [] }: Filed, filter: Filter): boolean =>
  (filter.category === "" || category === filter.category) && filter.tags.every((tag) => tags.includes(tag));

/** The categories of these Recipes and the chosen one, by name. */
export function categoriesOf(recipes: Filed[], chosen: string): string[] {
  const all = new Set<string>(recipes.map(({ category }) => category));
  if (chosen !== "") all.add(chosen);
  return [...all].toSorted((a, b) => a.localeCompare(b, "en"));
}

/** The tags of these Recipes: those that are chosen, then the most frequent. None of them leads to an empty list. */
export function tagsOf(recipes: Filed[], filter: Filter): string[] {
  const counts = new Map<string, number>();
  for (const { tags = [] } of recipes.filter((recipe) => matches(recipe, filter))) {
    for (const tag of new Set(tags)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  }
  const others = [...counts].filter(([tag]) => !filter.tags.includes(tag)).toSorted(([a, many], [b, more]) => more - many || a.localeCompare(b, "en"));
  return [...filter.tags, ...others.map(([tag]) => tag)];
}
