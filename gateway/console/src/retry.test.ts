import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Problem } from "./errors.ts";
import { countUnanswered, retryUntilAnswered } from "./retry.ts";
import { sessionEnd } from "./session-end.ts";

mock.timers.enable({ apis: ["setTimeout"] });

/** Starts something that is answered so, one after the other, and the last for ever. The result says how often it was sent. */
function begin(...statuses: number[]): { sent: () => number; outcome: Promise<string> } {
  let sent = 0;
  const start = async () => {
    const status = statuses[Math.min(sent, statuses.length - 1)] ?? 0;
    sent += 1;
    if (status !== 200) throw new Problem(status, `${status}`);
    return "accepted";
  };
  return { sent: () => sent, outcome: retryUntilAnswered(start).catch((error: Problem) => error.message) };
}

/** Lets `pauses` pauses pass. */
async function pass(pauses: number): Promise<void> {
  for (let passed = 0; passed < pauses; passed += 1) {
    await new Promise((resume) => setImmediate(resume));
    mock.timers.tick(30_000);
  }
  await new Promise((resume) => setImmediate(resume));
}

test("a start without an answer is sent until there is one", async () => {
  const { sent, outcome } = begin(0, 502, 429, 429, 429, 429, 429, 429, 429, 200);
  await pass(8);
  assert.deepEqual([sent(), countUnanswered()], [9, 1]);
  await pass(1);
  assert.equal(await outcome, "accepted");
  assert.deepEqual([sent(), countUnanswered()], [10, 0]);
});

test("a start that is refused for now is given up after some attempts, and one that is refused at once", async () => {
  const limited = begin(429);
  await pass(20);
  assert.deepEqual([await limited.outcome, limited.sent(), countUnanswered()], ["429", 6, 0]);
  const refused = begin(0, 402);
  await pass(1);
  assert.deepEqual([await refused.outcome, refused.sent(), countUnanswered()], ["402", 2, 0]);
});

test("a start ends with the session", async () => {
  const { sent, outcome } = begin(0);
  await pass(2);
  for (const end of sessionEnd) end();
  await pass(2);
  assert.deepEqual([await outcome, sent(), countUnanswered(), sessionEnd.size], ["0", 3, 0, 0]);
});
