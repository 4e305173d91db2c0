import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { mentionAt, partsOf, promptWith, withMention } from "./mention.ts";

const mentions = [
  { title: "Hero", as: "image 1" },
  { title: "Hero flower", as: "image 2" },
  { title: "Lumen cup", as: "Lumen cup" },
];

test("a mention of an image is sent as its number, and one of an Element as its name", () => {
  assert.equal(promptWith("backlit, steam like @Hero, with @Lumen cup", mentions), "backlit, steam like image 1, with Lumen cup");
});

test("of titles that begin alike, the longest is mentioned", () => {
  assert.equal(promptWith("@Hero flower and @Hero.", mentions), "image 2 and image 1.");
});

test("of two images with one title, the first is mentioned", () => {
  assert.equal(promptWith("@Cup", [{ title: "Cup", as: "image 1" }, { title: "Cup", as: "image 2" }]), "image 1");
});

test("what mentions nothing stays as it was typed", () => {
  for (const text of ["@Heroine", "ana@Hero", "@ Hero", "@Nobody", "@", ""]) assert.equal(promptWith(text, mentions), text);
});

test("a mention begins at an @ that is in no word, and ends with the line", () => {
  assert.deepEqual(mentionAt("like @He", 8), { at: 5, query: "He" });
  assert.deepEqual(mentionAt("like @Hero flower", 8), { at: 5, query: "He" });
  assert.deepEqual(mentionAt("@", 1), { at: 0, query: "" });
  for (const [text, caret] of [["ana@He", 6], ["@Hero\nnow", 9], ["like @He", 5], ["", 0], [`@${"x".repeat(61)}`, 62]] as const) assert.equal(mentionAt(text, caret), undefined, text);
});

test("a mention that is chosen replaces what was typed of it", () => {
  assert.deepEqual(withMention("like @He, warm", { at: 5, query: "He" }, "Hero"), { text: "like @Hero, warm", caret: 10 });
  assert.deepEqual(withMention("like @He warm", { at: 5, query: "He" }, "Hero"), { text: "like @Hero warm", caret: 11 });
  assert.deepEqual(withMention("@", { at: 0, query: "" }, "Hero"), { text: "@Hero ", caret: 6 });
});

test("the parts of a text are the text, and mentions are found wherever they stand", () => {
  const title = fc.string({ minLength: 1, maxLength: 8, unit: fc.constantFrom("a", "b", " ", "@", "é", "1") });
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("a", "b", " ", "@", "é", "\n") }), fc.array(title, { maxLength: 5 }), (text, titles) => {
      const parts = partsOf(text, titles);
      assert.equal(parts.map(({ text }) => text).join(""), text);
      for (const part of parts) if (part.title !== undefined) assert.equal(part.text, `@${part.title}`);
      assert.equal(promptWith(text, titles.map((title) => ({ title, as: `@${title}` }))), text);
    }),
    { numRuns: 300 },
  );
});
