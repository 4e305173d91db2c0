import assert from "node:assert/strict";
import { test } from "node:test";
import type { LedgerEntry } from "../../person.ts";
import { linesOf } from "./ledger.ts";

const entry = (reason: LedgerEntry["reason"], amount: number, createdAt: string, of: Partial<LedgerEntry> = {}): LedgerEntry => ({ reason, amount, createdAt, ...of });

test("what a run has reserved and got back is one line, and so is each grant", () => {
  const lines = linesOf([
    entry("return", 1, "5", { job: "job:1", workId: "1" }),
    entry("reserve", -4, "4", { job: "job:1", workId: "1" }),
    entry("reserve", -2, "3", { run: "run:recipe-2", workId: "2" }),
    entry("reserve", -3, "3", { run: "run:recipe-2", workId: "3" }),
    entry("return", 6, "2", { workId: "4" }),
    entry("reserve", -6, "2", { workId: "4" }),
    entry("grant", 50, "1"),
    entry("grant", 50, "1"),
  ]);
  assert.deepEqual(lines.map(({ at, amount, handle, reserved, returned }) => [at, amount, handle, reserved, returned]), [
    ["5", -3, "job:1", 4, 1],
    ["3", -5, "run:recipe-2", 5, 0],
    ["2", 0, undefined, 6, 6],
    ["1", 50, undefined, 0, 0],
    ["1", 50, undefined, 0, 0],
  ]);
  assert.equal(new Set(lines.map(({ key }) => key)).size, lines.length);
});
