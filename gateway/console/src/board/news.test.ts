import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Change, inverseOf, remove, retitle, update } from "../sync/change.ts";
import { graphOf, type Node } from "../sync/graph.ts";
import { connectionOf, newNode } from "./gestures.ts";
import { deedIn } from "./news.ts";

const EMPTY = graphOf({ title: "", nodes: [], connections: [] });
const node = (id: string, title: string, type: Node["type"] = "image"): Node => ({ ...newNode(EMPTY, "text", id, { x: 0, y: 0 }), type, title });
const [hero, cup, note] = [node("a", "Hero flower"), node("b", "Cup"), node("c", "", "sticky")];
const graph = graphOf({ title: "", nodes: [hero, cup, note], connections: [] });
const moved = (one: Node) => update("node", one, { position: { x: 9, y: 9 } });
const said = (...changes: Change[]) => deedIn({ undo: inverseOf(changes) }, graph);

test("what others did is said by what was done and to what", () => {
  assert.equal(said(moved(hero)), "moved ‘Hero flower’");
  assert.equal(said(moved(hero), moved(cup), moved(note)), "moved ‘Hero flower’ and 2 more");
  assert.equal(said({ do: "create", node: note }), "made a note");
  assert.equal(said(remove(cup)), "deleted ‘Cup’");
  assert.equal(said(update("node", hero, { asset: "asset:u:1", "metadata.job": { run: "r" } })), "made ‘Hero flower’");
  assert.equal(said(update("node", hero, { "metadata.content": "new" })), "wrote ‘Hero flower’");
  assert.equal(said(update("node", hero, { width: 9, position: { x: 1, y: 1 } })), "resized ‘Hero flower’");
  assert.equal(said({ do: "connect", connection: connectionOf("k", "a", "b", "flow") }), "connected ‘Cup’");
  assert.equal(said(retitle("Old", "New")), "wrote the title of this canvas");
});

test("of several things, the most telling is said", () => {
  assert.equal(said(update("node", hero, { position: { x: 9, y: 9 } }), update("node", cup, { "metadata.content": "x" })), "wrote ‘Cup’ and 1 more");
  assert.equal(said(update("node", hero, { "metadata.color": "#fff" }), { do: "create", node: note }), "made a note and 1 more");
});

test("a sentence has an end and no word of the interface for programs", () => {
  const nodes = fc.constantFrom(hero, cup, note);
  const field = fc.constantFrom("position", "width", "title", "asset", "metadata.content", "metadata.job", "metadata.tags", "metadata.custom", "metadata.zIndex", "metadata.provenance");
  const change: fc.Arbitrary<Change> = fc.oneof(
    fc.record({ node: nodes, field }).map(({ node, field }) => update("node", node, { [field]: "x" })),
    nodes.map((node): Change => ({ do: "create", node })),
    nodes.map(remove),
    fc.record({ from: nodes, to: nodes }).map(({ from, to }): Change => ({ do: "connect", connection: connectionOf("k", from.id, to.id, "reference") })),
  );
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 8 }), (changes) => {
      const sentence = said(...changes);
      assert.match(sentence, /^[a-z ]+ (‘.+’|an? \w+|something|the title of this canvas)( and \d+ more)?$/);
      assert.doesNotMatch(sentence, /node|operation|handle|revision|metadata|_/i);
    }),
    { numRuns: 300 },
  );
});
