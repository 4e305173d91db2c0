import assert from "node:assert/strict";
import { test } from "node:test";
import { graphOf, type Node } from "../sync/graph.ts";
import { nodesOf, videoOf } from "./videos.ts";

const job = "job:0198c5b0-3c1d-7a42-b0fe-91c2d3e4f506";
/** A node's own data, which the contract's types leave open. */
const own = (custom: unknown): Node["metadata"] => ({ custom: custom as Record<string, never> });
const node = (id: string, rest: Partial<Node> = {}): Node =>
  ({ id, handle: `node:${id}`, type: "video", title: "", position: { x: 0, y: 0 }, width: 480, height: 270, metadata: {}, ...rest }) as Node;

test("a video is read from a node's own data, which other clients can write", () => {
  const written = { tool: { a: 1 }, console: { color: "red", video: { job, by: "studio", resolution: "720p", hasAudio: false } } };
  assert.deepEqual(videoOf(node("a", { metadata: own(written) })), { job, by: "studio" });
  assert.equal(videoOf(node("a", { metadata: own(written), asset: "asset:a" })), undefined, "an asset is what the node shows");
  for (const video of [undefined, null, "x", 4, [], {}, { job: 1, by: "x" }, { job: "../../x", by: "x" }, { job }, { job: `${job}/output`, by: "x" }]) {
    assert.equal(videoOf(node("a", { metadata: own({ console: { video } }) })), undefined, JSON.stringify(video));
  }
  assert.equal(videoOf(node("a", { type: "image", metadata: own(written) })), undefined);
});

const filling = (status: "running" | "failed") => ({ job: { id: "job:new", run: "run:new", status, operation: "generate" as const } });

test("a job that fills a node comes before the one in its data, until it has ended without a video", () => {
  const data = own({ console: { video: { job, by: "studio" } } });
  assert.deepEqual(videoOf(node("a", { metadata: filling("running") })), { job: "job:new" });
  assert.deepEqual(videoOf(node("a", { metadata: filling("failed") })), { job: "job:new" });
  assert.deepEqual(videoOf(node("a", { metadata: { ...data, ...filling("running") } })), { job: "job:new" });
  assert.deepEqual(videoOf(node("a", { metadata: { ...data, ...filling("failed") } })), { job, by: "studio" });
});

test("nodes are found by their handles, and by the runs and jobs that filled them", () => {
  const references: never[] = [];
  const nodes = [
    node("a"),
    node("b", { metadata: { job: { run: "run:1", status: "running", operation: "generate" } } }),
    node("c", { metadata: { provenance: { kind: "generated", run: "run:1", references, elements: [], createdAt: "" } } }),
    node("d", { metadata: own({ console: { video: { job, by: "x" } } }) }),
  ];
  const found = (...handles: string[]) => nodesOf(graphOf({ title: "", nodes, connections: [] }), handles).map(({ id }) => id);
  assert.deepEqual(found("run:1"), ["b", "c"]);
  assert.deepEqual(found(job, "node:a", "node:gone"), ["a", "d"]);
  assert.deepEqual(found(), []);
});
