import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytes, count, firstOf, lasted, percent, until } from "./format.ts";

test("times are relative for a month", () => {
  const now = Date.parse("2026-03-31T12:00:00Z");
  const before = (seconds: number) => ago(now - seconds * 1000, now);
  assert.equal(before(-5), "just now");
  assert.equal(before(44), "just now");
  assert.equal(before(45), "1 minute ago");
  assert.equal(before(59 * 60), "59 minutes ago");
  assert.equal(before(3600), "1 hour ago");
  assert.equal(before(24 * 3600), "yesterday");
  assert.equal(before(30 * 86_400), "30 days ago");
  assert.equal(before(31 * 86_400), "Feb 28, 2026");
});

test("times to come", () => {
  const now = Date.now();
  const after = (seconds: number) => until(now + seconds * 1000, now);
  assert.deepEqual([after(-3), after(40), after(61), after(7200), after(5 * 86_400)], ["now", "in 40 seconds", "in 1 minute", "in 2 hours", "in 5 days"]);
});

test("counts and percentages", () => {
  assert.deepEqual([count(0, "node"), count(1, "node"), count(1234, "node")], ["0 nodes", "1 node", "1,234 nodes"]);
  assert.deepEqual([percent(0.015), percent(0.62), percent(8)], ["1.5 %", "62 %", "800 %"]);
});

test("sizes of files and durations", () => {
  assert.deepEqual([0, 1, 999, 1000, 1_843_200, 52_428_800, 5e12].map(bytes), ["0 bytes", "1 byte", "999 bytes", "1 kB", "1.84 MB", "52.4 MB", "5,000 GB"]);
  assert.deepEqual([0, 340, 5300, 59_400, 60_000, 125_000].map(lasted), ["0 ms", "340 ms", "5.3 s", "59 s", "1 min", "2 min 5 s"]);
});

test("a text is cut at characters, and not within one", () => {
  assert.deepEqual([firstOf("harbor", 6), firstOf("harbor", 3), firstOf("", 3)], ["harbor", "har", ""]);
  assert.deepEqual([firstOf("a😀b", 2), firstOf("a😀b", 3), firstOf("😀😀😀", 2)], ["a😀", "a😀b", "😀😀"]);
  assert.equal([...firstOf("😀".repeat(30_000), 24_000)].length, 24_000);
});
