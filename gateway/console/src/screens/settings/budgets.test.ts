import assert from "node:assert/strict";
import { test } from "node:test";
import type { BudgetState } from "../../person.ts";
import { added, budgetsOf, fullness, isNoNumber, leftOf, type Limit, limitsOf, MOST, spentOf } from "./budgets.ts";

const NOW = Date.parse("2026-11-30T20:00:00.000Z");
const state = (more: Partial<BudgetState>): BudgetState => ({ of: "token", unit: "credits", period: "month", max: 100, spent: 12, left: 88, ...more });

test("a limit says what is spent, what is left, and when it starts again", () => {
  assert.equal(spentOf(state({})), "12 of 100 credits this month");
  assert.equal(spentOf(state({ unit: "outputs", period: "day", max: 1, spent: 0 })), "0 of 1 result today");
  assert.equal(spentOf(state({ period: "total", max: 1234 })), "12 of 1,234 credits in total");
  assert.equal(leftOf(state({ resetsAt: "2026-12-01T00:00:00.000Z" }), NOW), "88 left, starts again in 4 hours");
  assert.equal(leftOf(state({ left: 0 }), NOW), "nothing left");
});

test("a limit is full at its maximum, beyond a lowered one, and at 0", () => {
  assert.equal(fullness(state({ spent: 25 })), 0.25);
  for (const full of [{ spent: 100 }, { spent: 200 }, { max: 0, spent: 0 }]) assert.equal(fullness(state(full)), 1);
});

test("each limit that is added counts something else, until all are there", () => {
  let limits: Limit[] = [];
  for (let left = MOST; left > 0; left -= 1) limits = added(limits);
  assert.equal(new Set(limits.map(({ unit, period }) => unit + period)).size, MOST);
  assert.equal(new Set(limits.map(({ key }) => key)).size, MOST);
});

test("an empty number is no limit of 0", () => {
  const [limit] = limitsOf([state({ max: 7 })]);
  assert.ok(limit);
  for (const max of ["", " ", "x", "1.5", "-1", "9007199254740992"]) assert.ok(isNoNumber({ ...limit, max }), max);
  for (const max of ["0", "9007199254740991"]) assert.ok(!isNoNumber({ ...limit, max }), max);
  assert.deepEqual(budgetsOf([limit, { ...limit, max: " " }, { ...limit, max: "x" }]).map(({ max }) => max), [7, Number.NaN, Number.NaN]);
});
