import assert from "node:assert/strict";
import { test } from "node:test";
import { answer } from "./api.ts";
import { Problem } from "./errors.ts";

test("an answer that breaks off counts as lost, and can be asked for again", async () => {
  for (const cause of [new TypeError("network error"), new DOMException("timed out", "TimeoutError")]) {
    await assert.rejects(answer(Promise.reject(cause)), (error) => error instanceof Problem && error.status === 0 && error.isTemporary);
  }
  const left = new DOMException("the page is left", "AbortError");
  await assert.rejects(answer(Promise.reject(left)), left);
});
