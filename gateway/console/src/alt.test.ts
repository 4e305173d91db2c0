import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { altOf, altOfAsset, altOfRun, playerName } from "./alt.ts";

test("a picture is described as the service describes it", () => {
  const cases = JSON.parse(readFileSync(new URL("../../../shared/domain/src/alt.json", import.meta.url), "utf8")) as (Parameters<typeof altOf>[0] & { alt: string })[];
  assert.ok(cases.length > 10);
  for (const { alt, ...node } of cases) assert.equal(altOf(node), alt, JSON.stringify(node));
});

test("of an asset, its title counts before its prompt, and the name of its file says nothing", () => {
  const asset = { kind: "image", name: "9f2c.png" } as const;
  assert.equal(altOfAsset({ ...asset, title: "Boots" }, "a boot"), "Boots");
  assert.equal(altOfAsset({ ...asset, title: "image" }, "a boot"), "Generated picture: a boot");
  assert.equal(altOfAsset(asset), "Picture without description");
  assert.equal(altOfAsset({ kind: "video", name: "clip.mp4" }, "a kite"), "Generated video: a kite");
});

test("of a run, its title is a prompt, the name of what was started, or nothing", () => {
  assert.equal(altOfRun({ kind: "image", operation: "generate", title: "a boot" }), "Generated picture: a boot");
  assert.equal(altOfRun({ kind: "video", operation: "generate", title: "a kite" }), "Generated video: a kite");
  assert.equal(altOfRun({ kind: "image", operation: "variations", title: "variations" }), "Picture without description");
  assert.equal(altOfRun({ kind: "action", operation: "action", title: "Resize" }), "Resize");
});

test("the controls of a decorative video have a name", () => {
  assert.deepEqual([playerName("A kite"), playerName("")], ["A kite", "Video"]);
});
