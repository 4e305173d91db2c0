import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { RunSummary } from "./api.ts";
import { deliveryOf, endedSince, explained, isActive, isOver, nameOf, STATUSES, statusOf, tookOf } from "./work.ts";

const schemas = (JSON.parse(readFileSync(new URL("../../openapi.json", import.meta.url), "utf8")) as { components: { schemas: Record<string, { enum?: string[] }> } }).components.schemas;

test("every failure of the contract is explained in words of its own", () => {
  const codes = ["FailureCode", "RunFailureCode"].flatMap((name) => schemas[name]?.enum ?? []);
  assert.ok(codes.length > 10);
  for (const code of codes) {
    const explanation = explained({ code, message: "details", retryable: false });
    if (code === "recipe_run_canceled" || code === "result_expired") assert.equal(explanation, undefined);
    else assert.notEqual(explanation?.happened, "It failed.", code);
  }
});

test("the cause of a video's failure is in its message", () => {
  const failure = { code: "video_generation_failed", message: "provider_rejected: The provider refused the content: a\nb", retryable: false };
  const explanation = explained(failure);
  assert.equal(explanation?.code, "provider_rejected");
  assert.equal(explanation.said, "The provider refused the content: a\nb");
  assert.equal(explained({ ...failure, message: "no cause" })?.said, "no cause");
});

test("another attempt is offered only where it may succeed, and as a new charge", () => {
  assert.match(explained({ code: "provider_timeout", message: "", retryable: true })?.remedy ?? "", /a new charge/);
  assert.match(explained({ code: "provider_rejected", message: "", retryable: false })?.remedy ?? "", /would fail in the same way/);
  assert.equal(explained({ code: "canceled", message: "", retryable: false }), undefined);
});

test("every status of the contract has a name, and is over, active or canceling", () => {
  assert.deepEqual(Object.keys(STATUSES).toSorted(), schemas["JobStatus"]?.enum?.toSorted());
  for (const status of Object.keys(STATUSES)) assert.equal(Number(isOver(status)) + Number(isActive(status)) + Number(status === "canceling"), 1);
  assert.equal(statusOf("later"), "later");
});

test("work is named by what it makes", () => {
  assert.equal(nameOf({ kind: "video", operation: "generate" }), "Video");
  assert.equal(nameOf({ kind: "image", operation: "generate" }), "Generate");
});

test("the delivery of a webhook is described in words", () => {
  assert.equal(deliveryOf({ id: "webhook:1", status: "delivered", attempts: 1, lastStatus: 200 }), "delivered after 1 attempt");
  assert.equal(deliveryOf({ id: "webhook:1", status: "pending", attempts: 0 }), "waits to be sent");
  assert.equal(deliveryOf({ id: "webhook:1", status: "pending", attempts: 2, lastStatus: 503 }), "will be sent again; 2 attempts so far, last answer 503");
  assert.match(deliveryOf({ id: "webhook:1", status: "failed", attempts: 4, lastStatus: 410, errorCode: "webhook_rejected" as never }), /^not delivered after 4 attempts, last answer 410/);
});

test("how long work took is known once it has ended, until its result expires", () => {
  const at = { createdAt: "2026-01-01T00:00:00.000Z", updatedAt: "2026-01-01T00:00:01.500Z" };
  assert.deepEqual(["succeeded", "failed", "canceled", "expired", "running"].map((status) => tookOf({ status, ...at })), [1500, 1500, 1500, undefined, undefined]);
});

const run = (handle: string, status: string) => ({ handle, status }) as RunSummary;
const page = (...runs: RunSummary[]) => ({ runs });

test("a run that ended between two readings of a list is found, also when it began between them", () => {
  const first = [page(run("a", "running")), page(run("b", "queued"))];
  const found = (...now: { runs: RunSummary[] }[]) => endedSince(first, now)?.handle;
  assert.equal(found(...first), undefined);
  assert.equal(found(page(run("a", "failed")), page(run("b", "queued"))), "a");
  assert.equal(found(page(run("a", "running")), page(run("b", "canceled"))), "b");
  assert.equal(found(page(run("c", "failed"), run("a", "running")), page(run("b", "queued"))), "c");
  assert.equal(found(...first, page(run("old", "succeeded"))), undefined, "a further page has runs that were over before");
  assert.equal(endedSince([page(run("a", "failed"))], [page(run("a", "failed"))]), undefined);
});
