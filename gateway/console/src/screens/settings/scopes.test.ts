import assert from "node:assert/strict";
import { test } from "node:test";
import { ALL_SCOPES, neededBy, PRESETS, presetOf, withNeeded } from "./scopes.ts";

test("what a scope needs is added, and nothing is added twice", () => {
  assert.deepEqual(withNeeded(["job:manage"]), ["job:manage"]);
  assert.deepEqual(withNeeded(["video:generate", "canvas:read"]), ["canvas:read", "asset:read", "video:generate"]);
  for (const scope of ALL_SCOPES) assert.deepEqual(withNeeded(withNeeded([scope])), withNeeded([scope]));
  assert.deepEqual(neededBy("asset:read", ["video:generate", "element:write"]), ["video:generate"]);
});

test("every preset has what its scopes need, and is recognized", () => {
  for (const preset of PRESETS) {
    assert.deepEqual(withNeeded(preset.scopes), preset.scopes);
    assert.equal(presetOf(preset.scopes.toReversed()), preset);
  }
  assert.equal(presetOf(["job:manage"]), undefined);
});
