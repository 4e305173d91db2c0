import assert from "node:assert/strict";
import { test } from "node:test";
import { problemIn } from "./sign-in-problem.ts";

test("a code has its text, and any other text of the address is shown to nobody", () => {
  assert.equal(problemIn(""), undefined);
  assert.match(problemIn("?problem=expired") ?? "", /too long/);
  for (const unknown of ["", "toString", "<script>", "expired%20"]) assert.equal(problemIn(`?problem=${unknown}`), problemIn("?problem=refused"));
});
