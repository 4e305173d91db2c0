import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { graphOf, type Node } from "../sync/graph.ts";
import { type Filter, filterOf, hasMarks, KINDS, MAKERS, matchingIn, textOf } from "./filter.ts";
import { LABELS } from "./marks.ts";

const node = (id: string, rest: Partial<Node> = {}, metadata: Partial<Node["metadata"]> = {}): Node =>
  ({ id, handle: `node:${id}`, type: "image", asset: `asset:u:${id}`, title: id, position: { x: 0, y: 0 }, width: 100, height: 100, ...rest, metadata }) as Node;

const graph = graphOf({
  title: "",
  connections: [],
  nodes: [
    node("Hero", {}, { tags: ["favorite", "rating:4", "label:red"], provenance: { model: "Sketch", prompt: "a red CUP", references: [] } as never }),
    node("Cup", {}, { tags: ["rating:2"], createdBy: "agent" }),
    node("photo.jpg"),
    node("Film", { type: "video" }, { tags: ["mood"] }),
    node("Brief", { type: "text", asset: undefined } as never, { content: "Warm light on a cup" }),
    node("Frame", { type: "sticky", asset: undefined } as never, { section: true }),
  ],
});

const found = (filter: Filter) => [...(matchingIn(graph, filter) ?? ["all"])].filter((id) => id !== "Frame");

test("a filter finds what has all that it asks for, and leaves Sections alone", () => {
  assert.deepEqual(found({ favorite: true }), ["Hero"]);
  assert.deepEqual(found({ stars: 2 }), ["Hero", "Cup"]);
  assert.deepEqual(found({ stars: 3 }), ["Hero"]);
  assert.deepEqual(found({ label: "red" }), ["Hero"]);
  assert.deepEqual(found({ label: "blue" }), []);
  assert.deepEqual(found({ kind: "video" }), ["Film"]);
  assert.deepEqual(found({ kind: "image", by: "people" }), ["Hero", "photo.jpg"]);
  assert.deepEqual(found({ by: "agents" }), ["Cup"]);
  assert.deepEqual(found({ model: "Sketch" }), ["Hero"]);
  assert.deepEqual(found({ noAlt: true }), ["photo.jpg"]);
  assert.deepEqual(found({ text: " cup" }), ["Hero", "Cup", "Brief"]);
  assert.deepEqual(found({ text: "cup", kind: "text" }), ["Brief"]);
  assert(matchingIn(graph, { favorite: true })?.has("Frame"));
  assert.deepEqual([matchingIn(graph, {}), matchingIn(graph, undefined)], [undefined, undefined]);
  assert.deepEqual([hasMarks(graph), hasMarks(graphOf({ title: "", connections: [], nodes: [node("One", {}, { tags: ["mood"] })] }))], [true, false]);
});

const filters: fc.Arbitrary<Filter> = fc.record(
  {
    favorite: fc.constant(true as const),
    stars: fc.integer({ min: 1, max: 5 }),
    label: fc.constantFrom(...LABELS),
    kind: fc.constantFrom(...KINDS),
    by: fc.constantFrom(...MAKERS),
    model: fc.string({ minLength: 1 }),
    noAlt: fc.constant(true as const),
    text: fc.string({ minLength: 1, unit: "grapheme" }),
  },
  { requiredKeys: [] },
);

test("every filter is the same after it was in an address, and an address can say anything", () => {
  fc.assert(fc.property(filters, (filter) => assert.deepEqual(filterOf(new URLSearchParams({ filter: textOf(filter) }).get("filter")), { ...filter })), { numRuns: 300 });
  assert.deepEqual([filterOf(null), filterOf(""), filterOf("stars=9&label=pink&kind=x&by=me&what")], [undefined, {}, {}]);
});
