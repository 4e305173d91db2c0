import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { altOf } from "./alt.ts";

test("a picture is described as the service describes it", () => {
  const cases = JSON.parse(readFileSync(new URL("../../../shared/domain/src/alt.json", import.meta.url), "utf8")) as (Parameters<typeof altOf>[0] & { alt: string })[];
  assert.ok(cases.length > 10);
  for (const { alt, ...node } of cases) assert.equal(altOf(node), alt, JSON.stringify(node));
});
