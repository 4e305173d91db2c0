import assert from "node:assert/strict";
import { test } from "node:test";
import { type Connection, type Graph, graphOf, type Node } from "../sync/graph.ts";
import { bodyOf, keyed, type Part, partProblems, partsOf, proposed } from "./workflow.ts";

const node = (id: string, type: Node["type"], x: number, rest: Partial<Node> = {}): Node => ({
  id,
  handle: `node:${id}`,
  type,
  title: id,
  position: { x, y: 0 },
  width: 100,
  height: 100,
  metadata: {},
  ...rest,
});
const flow = (fromNodeId: string, toNodeId: string): Connection => ({
  id: `${fromNodeId}-${toNodeId}`,
  handle: `connection:${fromNodeId}-${toNodeId}`,
  fromNodeId,
  toNodeId,
  from: `node:${fromNodeId}`,
  to: `node:${toNodeId}`,
  purpose: "flow",
});

/** A Section with a brief and a photograph, a slogan from the brief, and a poster from slogan and photograph. */
const GRAPH: Graph = graphOf({
  title: "Poster",
  nodes: [
    node("section", "sticky", 0, { metadata: { section: true } }),
    node("Poster", "image", 300, { metadata: { sectionId: "section", prompt: "Poster with {{photo}}" } }),
    node("Slogan", "text", 200, { metadata: { sectionId: "section" } }),
    node("Brief", "text", 0, { metadata: { sectionId: "section", content: "A cup" } }),
    node("Photo", "image", 100, { asset: "asset:a:1", metadata: { sectionId: "section" } }),
    node("Elsewhere", "text", 50),
    node("Video", "video", 60, { metadata: { sectionId: "section" } }),
  ],
  connections: [flow("Brief", "Slogan"), flow("Slogan", "Poster"), flow("Photo", "Poster"), flow("Elsewhere", "Poster")],
});

/** The parts of the Section, some of them changed. */
function parts(changes: Record<string, Partial<Part>> = {}): Part[] {
  const all = proposed(GRAPH, partsOf(GRAPH, ["section"]));
  for (const part of all) Object.assign(part, changes[part.id]);
  return all;
}

test("the members of a Section are the parts, from left to right, without videos", () => {
  assert.deepEqual(parts().map(({ id, role }) => [id, role]), [["Brief", "input"], ["Photo", "input"], ["Slogan", "output"], ["Poster", "output"]]);
});

test("an output is made from what leads to it and what its prompt names", () => {
  const { inputs, outputs } = bodyOf("Poster", " ", parts(), (id) => `node:${id}`);
  assert.deepEqual(inputs.map(({ key, type, sourceNodeId, useAsDefault }) => [key, type, sourceNodeId, useAsDefault]), [
    ["brief", "text", "node:Brief", false],
    ["photo", "image", "node:Photo", false],
  ]);
  assert.deepEqual(outputs.map(({ key, inputKeys }) => [key, inputKeys]), [["slogan", ["brief"]], ["poster", ["photo", "slogan"]]]);
});

test("an output without sources is made from every input, and an unknown key is left to the service to refuse", () => {
  const loose = parts({ Slogan: { from: [] }, Poster: { from: [], prompt: "{{nothing}}" } });
  assert.deepEqual(bodyOf("Poster", "", loose, String).outputs.map(({ inputKeys }) => inputKeys), [["brief", "photo"], ["brief", "photo", "nothing"]]);
});

test("an output is never made from a later one or from itself", () => {
  const circular = parts({ Slogan: { from: ["Poster", "Slogan", "Brief"] } });
  assert.deepEqual(bodyOf("Poster", "", circular, String).outputs[0]?.inputKeys, ["brief"]);
});

test("what is left out has no key, and an empty node is no default", () => {
  const chosen = parts({ Brief: { useAsDefault: true, isFull: false }, Photo: { useAsDefault: true }, Slogan: { role: "none" } });
  assert.deepEqual(keyed(chosen).map(({ key }) => key), ["brief", "photo", "poster"]);
  assert.deepEqual(bodyOf("Poster", "", chosen, String).inputs.map(({ useAsDefault }) => useAsDefault), [false, true]);
});

test("refusals stand at their nodes", () => {
  const fields = [
    { field: "outputs[1].prompt", message: "is empty" },
    { field: "inputs[0].label", message: "is too long" },
    { field: "name", message: "is missing" },
  ];
  assert.deepEqual(partProblems(parts(), fields), { "Poster.prompt": "is empty", "Brief.label": "is too long", "": "name is missing" });
});
