import assert from "node:assert/strict";
import { test } from "node:test";
import { answer, send, serves } from "./api.ts";
import { Problem } from "./errors.ts";

test("an answer that breaks off or is not JSON counts as lost, and can be asked for again", async () => {
  for (const cause of [new TypeError("network error"), new DOMException("timed out", "TimeoutError")]) {
    await assert.rejects(answer(Promise.reject(cause)), (error) => error instanceof Problem && error.status === 0 && error.isTemporary);
  }
  const unreadable = new Response("<html>").json().then((data: unknown) => ({ data }));
  await assert.rejects(answer(unreadable), (error) => error instanceof Problem && error.isTemporary);
  const left = new DOMException("the page is left", "AbortError");
  await assert.rejects(answer(Promise.reject(left)), left);
});

/** The account that a request names. */
async function named(): Promise<string | null> {
  const request = new Request("http://localhost/console/tokens");
  await send(request, async () => new Response());
  return request.headers.get("X-Canvas-Account");
}

test("a page serves one account, and its requests name it", async () => {
  assert.equal(await named(), null);
  assert.deepEqual([serves("ana"), serves("ben"), serves("ana")], [true, false, true]);
  assert.equal(await named(), "ana");
});
