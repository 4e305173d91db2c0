import assert from "node:assert/strict";
import { test } from "node:test";
import { attemptPath, canvasPath, credentialOf, isAttempt, linkOf, returnPath, shownIn, signInPath } from "./address.ts";

const ORIGIN = "https://canvas.example";

test("signing in returns to the page that was asked for", () => {
  for (const path of ["/c/studio/harbor", "/?q=autumn&show=shared", canvasPath({ ownerUid: "a", id: "b" })]) {
    assert.equal(returnPath(new URL(signInPath(path), ORIGIN).search, ORIGIN), path);
  }
  assert.equal(signInPath("/"), "/signin");
});

test("signing in never leads to another origin, or back to itself", () => {
  const wrong = ["", "harbor", "//evil.example", "/\\evil.example", "https://evil.example/", "javascript:alert(1)", "/\t/evil.example", "/signin?next=/"];
  for (const next of wrong) {
    const path = returnPath(`?next=${encodeURIComponent(next)}`, ORIGIN);
    assert.equal(path, "/", next);
  }
  assert.equal(returnPath("", ORIGIN), "/");
});

test("the address of another attempt names the run, and says so", () => {
  const { search } = new URL(attemptPath({ ownerUid: "a", id: "b" }, "run:1"), ORIGIN);
  assert.deepEqual([shownIn(search), isAttempt(search), isAttempt("?show=run:1")], [["run:1"], true, false]);
});

test("a pasted token, link or fragment is recognized", () => {
  assert.deepEqual(credentialOf("  cba_abc.DEF-1 \n"), { token: "cba_abc.DEF-1" });
  assert.deepEqual(credentialOf("http://127.0.0.1:8080/signin#01af.s3cret_-"), { link: "01af.s3cret_-" });
  assert.deepEqual(credentialOf("#01af.s3cret"), { link: "01af.s3cret" });
  assert.deepEqual(credentialOf("01af.s3cret"), { link: "01af.s3cret" });
  for (const wrong of ["", "cba_", "hello", "http://127.0.0.1:8080/signin", "a.b.c", "cba_ x"]) {
    assert.equal(credentialOf(wrong), undefined, wrong);
  }
  assert.equal(linkOf("#"), undefined);
});
