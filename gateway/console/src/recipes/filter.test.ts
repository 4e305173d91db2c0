import assert from "node:assert/strict";
import { test } from "node:test";
import { categoriesOf, matches, tagsOf } from "./filter.ts";

const recipes = [
  { category: "Product Visualization" as const, tags: ["product", "hero"] },
  { category: "Product Visualization" as const, tags: ["product", "macro"] },
  { category: "Content Package" as const, tags: ["video"] },
  { category: "Brand & Visual Design" as const },
];

const found = (category: string, ...tags: string[]) => recipes.map((recipe) => matches(recipe, { category, tags }));

test("a Recipe is shown if it has the category and all tags", () => {
  assert.deepEqual(found(""), [true, true, true, true]);
  assert.deepEqual(found("Product Visualization"), [true, true, false, false]);
  assert.deepEqual(found("", "product", "hero"), [true, false, false, false]);
  assert.deepEqual(found("Content Package", "product"), [false, false, false, false]);
});

test("categories are each named once, in order", () => {
  assert.deepEqual(categoriesOf(recipes, ""), ["Brand & Visual Design", "Content Package", "Product Visualization"]);
  assert.deepEqual(categoriesOf(recipes.slice(2, 3), "Marketing & Ads"), ["Content Package", "Marketing & Ads"]);
});

test("the tags that are offered are the chosen ones and those that are left, the most frequent first", () => {
  assert.deepEqual(tagsOf(recipes, { category: "", tags: [] }), ["product", "hero", "macro", "video"]);
  assert.deepEqual(tagsOf(recipes, { category: "Content Package", tags: [] }), ["video"]);
  assert.deepEqual(tagsOf(recipes, { category: "", tags: ["product"] }), ["product", "hero", "macro"]);
  assert.deepEqual(tagsOf(recipes, { category: "", tags: ["gone"] }), ["gone"]);
});
