import assert from "node:assert/strict";
import { test } from "node:test";
import { graphOf, type Node } from "../sync/graph.ts";
import { endedNodes, endings } from "./endings.ts";
import { newNode } from "./gestures.ts";

const EMPTY = graphOf({ title: "", nodes: [], connections: [] });
const board = (...nodes: Node[]) => graphOf({ title: "", nodes, connections: [] });
const job = (status: string, run = "run:1") => ({ metadata: { job: { run, status, operation: "generate" } } }) as Partial<Node>;
const image = (title: string, rest: Partial<Node> = {}) => newNode(EMPTY, "image", title, { x: 0, y: 0 }, { title, ...rest });
const said = (before: Node[], after: Node[]) => endings(board(...before), board(...after)).map(({ text }) => text);
const one = (rest: Partial<Node>) => [image("Hero", rest)];
const four = (...statuses: string[]) => statuses.map((status, index) => image(`n${index}`, job(status)));
const other = (status: string) => image("other", job(status, "run:2"));

test("the end of work is said once", () => {
  assert.deepEqual(said(one(job("running")), one(job("succeeded"))), ["“Hero” is ready."]);
  assert.deepEqual(said(one({}), one(job("failed"))), ["“Hero” failed."], "it began and ended between two graphs");
  assert.deepEqual(said(one(job("failed")), one(job("failed", "run:2"))), ["“Hero” failed."]);
  assert.deepEqual(said(one(job("running")), one(job("canceled"))), ["“Hero” is canceled."]);
  assert.deepEqual(said(one(job("succeeded")), one({ ...job("succeeded"), width: 99 })), []);
  assert.deepEqual(said([], one(job("succeeded"))), [], "a deleted node is brought back");
  assert.deepEqual(said(one(job("queued")), one(job("running"))), []);
});

test("a start is said once for all its nodes, when the last of them has ended", () => {
  const running = four("running", "running", "running", "running");
  const partly = four("succeeded", "running", "running", "succeeded");
  assert.deepEqual(said(running, partly), []);
  assert.deepEqual(endedNodes(board(...running), board(...partly)).map(({ id }) => id), ["n0", "n3"], "but those that are ready are known");
  assert.deepEqual(said(partly, four("succeeded", "succeeded", "succeeded", "succeeded")), ["4 images are ready: “n0”."]);
  assert.deepEqual(said(partly, four("succeeded", "failed", "failed", "succeeded")), ["2 of 4 images failed: “n1”."]);
  assert.deepEqual(said(partly, four("succeeded", "canceled", "canceled", "succeeded")), ["2 of 4 images are ready: “n0”."]);
  assert.deepEqual(said(running, four("canceled", "canceled", "canceled", "canceled")), ["4 images are canceled: “n0”."]);
  assert.deepEqual(said([...partly, other("running")], [...four("succeeded", "succeeded", "succeeded", "succeeded"), other("succeeded")]), ["4 images are ready: “n0”.", "“other” is ready."]);
});
