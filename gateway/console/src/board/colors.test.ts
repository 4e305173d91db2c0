import assert from "node:assert/strict";
import { test } from "node:test";
import { contrastOf, noteColors, textColors } from "./colors.ts";

test("contrast is that of WCAG", () => {
  assert.equal(Math.round(contrastOf("#000000", "#ffffff") * 100), 2100);
  assert.equal(Math.round(contrastOf("#767676", "#ffffff") * 100), 454);
});

test("a note has the ink that is legible on its color", () => {
  assert.deepEqual(noteColors("#1e3a8a"), { background: "#1e3a8a", color: "#ffffff" });
  assert.deepEqual(noteColors("#ffe48a"), { background: "#ffe48a", color: "#1f242b" });
});

/** The two colors of `light-dark(…)`. */
const themes = (value: string) => /^light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)$/.exec(value)?.slice(1) ?? assert.fail(value);

test("letters leave the ground of the theme where they cannot be seen on it, and are made darker or lighter where they are hard to read", () => {
  assert.deepEqual(textColors("#111827"), { background: "light-dark(#ffffff, #ffffff)", color: "light-dark(#111827, #111827)" });
  assert.deepEqual(textColors("#ffffff"), { background: "light-dark(#1d222a, #1d222a)", color: "light-dark(#ffffff, #ffffff)" });
  const { background, color } = textColors("#4c8dff");
  assert.equal(background, "light-dark(#ffffff, #1d222a)");
  assert.equal(themes(color)[1], "#4c8dff", "it is legible as it is");
  assert.equal(themes(color)[0], "#3d71cc");
});

test("letters have the contrast of level AA on every color and in every color", () => {
  const parts = ["00", "33", "55", "66", "77", "7b", "80", "88", "99", "cc", "ff"];
  for (const color of parts.flatMap((red) => parts.flatMap((green) => parts.map((blue) => `#${red}${green}${blue}`)))) {
    const note = noteColors(color);
    assert(contrastOf(note.color, note.background) >= 4.5, `on ${color}`);
    const text = textColors(color);
    const inks = themes(text.color);
    for (const [index, ground] of themes(text.background).entries()) assert(contrastOf(inks[index] ?? "", ground) >= 4.5, `in ${color} on ${ground}`);
  }
});
