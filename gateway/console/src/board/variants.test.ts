import assert from "node:assert/strict";
import { test } from "node:test";
import { graphOf, type Node } from "../sync/graph.ts";
import { newNode } from "./gestures.ts";
import { variantOf } from "./variants.ts";

const EMPTY = graphOf({ title: "", nodes: [], connections: [] });
const image = (id: string, metadata: object): Node => ({ ...newNode(EMPTY, "image", id, { x: 0, y: 0 }), metadata: metadata as Node["metadata"] });
const made = (run: string) => ({ provenance: { kind: "generated", references: [], elements: [], run } });
const filling = (run: string) => ({ job: { run, status: "running", operation: "generate" } });

test("variants are the nodes of one run, also of one that is under way, in the order of their creation", () => {
  const nodes = [image("a", made("run:1")), image("b", { ...made("run:0"), ...filling("run:2") }), image("c", filling("run:1")), image("d", made("run:3")), image("e", {})];
  const graph = graphOf({ title: "", nodes, connections: [] });
  assert.deepEqual(variantOf(graph, "a"), { number: 1, ids: ["a", "c"] });
  assert.deepEqual(variantOf(graph, "c"), { number: 2, ids: ["a", "c"] });
  for (const id of ["b", "d", "e", undefined]) assert.equal(variantOf(graph, id), undefined);
});

test("outputs of a Recipe are no variants", () => {
  const part = { recipe: { role: "output" } };
  const graph = graphOf({ title: "", nodes: [image("a", { ...made("run:1"), ...part }), image("b", { ...made("run:1"), ...part })], connections: [] });
  assert.equal(variantOf(graph, "a"), undefined);
});
