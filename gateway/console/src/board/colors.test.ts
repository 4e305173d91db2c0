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

test("letters leave the ground of the theme where they are illegible on it", () => {
  assert.equal(textColors("#111827").background, "light-dark(#ffffff, #ffffff)");
  assert.equal(textColors("#ffffff").background, "light-dark(#1d222a, #1d222a)");
  assert.equal(textColors("#4c8dff").background, "light-dark(#ffffff, #1d222a)");
});
