import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { actionName, errorWords } from "./words.ts";

test("each error code of the contract has words for people, and no word of the interface for programs", () => {
  const document = JSON.parse(readFileSync(new URL("../../openapi.json", import.meta.url), "utf8")) as { components: { schemas: { ErrorCode: { enum: string[] } } } };
  for (const code of document.components.schemas.ErrorCode.enum) {
    const words = errorWords(code) ?? assert.fail(code);
    assert.match(words, /^[A-Z].+\. [A-Z].+\.$/, code);
    assert.doesNotMatch(words, /operation|finding|node|handle|revision|request|_/i, code);
  }
  assert.equal(errorWords("of a later service"), undefined);
  assert.equal(errorWords(undefined), undefined);
});

test("an Action is named as the service names it", () => {
  assert.equal(actionName("action:color-grade"), "Color grade");
  assert.equal(actionName("action:resize"), "Resize");
});
