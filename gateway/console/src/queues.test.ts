import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type Queue, type QueueStatus, queuesOf, troubles, waitingFor, type WaitingFor, waitingIn } from "./queues.ts";
import { stateOf } from "./work.ts";

const schemas = (JSON.parse(readFileSync(new URL("../../openapi.json", import.meta.url), "utf8")) as { components: { schemas: Record<string, { enum?: string[] }> } }).components.schemas;
const at = "2026-01-01T12:00:00.000Z";
const now = Date.parse(at) + 40_000;
const status = (queue: Queue, state: QueueStatus["state"], more: Partial<QueueStatus> = {}): QueueStatus => ({ queue, state, workers: state === "silent" ? 0 : 1, oldestWaitingSeconds: 0, ...more });

test("every cause of a wait has words of its own", () => {
  const causes = schemas["WaitCause"]?.enum ?? [];
  assert.equal(causes.length, 5);
  const words = causes.map((what) => waitingFor({ what: what as WaitingFor["what"], since: at }, now));
  assert.equal(new Set(words).size, 5, words.join());
  assert.equal(waitingFor({ what: "worker", since: at, lastSeenAt: at }, now), "Waiting for a worker: none seen for 40 s");
  assert.equal(waitingFor({ what: "worker", since: at, lastSeenAt: at }, now + 600_000), "Waiting for a worker: none seen for 10 min");
  assert.equal(waitingFor({ what: "worker", since: at, lastSeenAt: at }, now - 600_000), "Waiting for a worker: none seen for 0 s", "a clock that is behind");
  assert.equal(waitingFor({ what: "worker", since: at }, now), "Waiting for a worker: none was ever seen");
  assert.match(waitingFor({ what: "retry", since: at, retryAt: at }, now), /^Next attempt at \d\d:00:00$/);
});

test("work that waits says for what, in place of its status", () => {
  assert.equal(stateOf({ status: "queued", waitingFor: { what: "slot", since: at } }), "Waiting for its turn");
  assert.equal(stateOf({ status: "running" }), "Running");
  assert.equal(stateOf({ status: "canceling", waitingFor: { what: "worker", since: at } }), "Canceling");
  assert.equal(stateOf({ status: "succeeded" }), "Succeeded");
});

test("each kind of work is done in its queues", () => {
  const known = new Set(schemas["Queue"]?.enum);
  const queues = [
    { kind: "action", operation: "action" },
    { kind: "image", operation: "action" },
    { kind: "image", operation: "edit" },
    { kind: "video", operation: "generate" },
    { kind: "recipe", operation: "recipe" },
  ].map(queuesOf);
  assert.deepEqual(queues, [["image"], ["image"], ["generation"], ["video"], ["recipe", "generation"]]);
  assert(queues.flat().every((queue) => known.has(queue)));
});

test("what is wrong with the queues of somebody's work is told, and nothing of others", () => {
  const all = [status("image", "ok"), status("generation", "silent", { lastSeenAt: at }), status("recipe", "silent"), status("video", "slow", { oldestWaitingSeconds: 400 }), status("webhook", "silent")];
  assert.deepEqual(troubles(["image"], all, now), []);
  assert.deepEqual(troubles(["recipe", "generation"], all, now), [{ state: "silent", queues: "the queues generation and recipe", time: "40 s" }]);
  assert.deepEqual(troubles(["recipe"], all, now), [{ state: "silent", queues: "the queue recipe", time: undefined }]);
  assert.deepEqual(troubles(["video", "generation"], all, now).map(({ state, time }) => [state, time]), [["silent", "40 s"], ["slow", "6 min"]]);
  assert.deepEqual(troubles(["video"], undefined, now), []);
  assert.equal(waitingIn(["generation"], all, now), "Waiting for a worker: none seen for 40 s");
  assert.equal(waitingIn(["video", "image"], all, now), undefined);
});
