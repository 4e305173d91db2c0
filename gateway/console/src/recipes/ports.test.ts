import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "../sync/graph.ts";
import { filled, inputsOf, keysOf, missing, namedIn, type Port, problemsOf } from "./ports.ts";

const port = (key: string, nodeType: Port["nodeType"], rest: Partial<Port> = {}): Port => ({ nodeId: `input-${key}`, key, label: key, description: "", useAsPreset: false, nodeType, ...rest });
const node = (id: string, type: Node["type"], rest: Partial<Node> = {}): Node => ({
  id,
  handle: `node:${id}`,
  type,
  title: id,
  position: { x: 0, y: 0 },
  width: 100,
  height: 100,
  metadata: {},
  ...rest,
});
const image = (id: string) => node(id, "image", { asset: `asset:a:${id}` });
const text = (id: string) => node(id, "text", { metadata: { content: `words of ${id}` } });

const PORTS = [port("product", "image"), port("offer", "text"), port("mood", "sticky", { useAsPreset: true, writtenReference: true })];

const handles = (nodes: Node[]) => inputsOf(filled(PORTS, nodes, (id) => id));
const keys = (ports: Port[]) => ports.map(({ key }) => key);

test("a selection fills ports of its kinds in order, and images that are left go to ports that take either", () => {
  assert.deepEqual(handles([]), {});
  assert.deepEqual(handles([text("a"), image("b"), text("c")]), { product: "node:b", offer: "node:a", mood: "node:c" });
  assert.deepEqual(handles([image("a"), image("b"), image("c"), text("d")]), { product: "node:a", offer: "node:d", mood: "node:b" });
});

test("empty nodes and Sections fill nothing", () => {
  const section = node("s", "sticky", { metadata: { section: true, content: "no text of its own" } });
  assert.deepEqual(filled(PORTS, [node("a", "image"), node("b", "text"), section, node("v", "video", { asset: "asset:a:v" })], String), {});
});

test("a port without a value is missing unless it has a default", () => {
  assert.deepEqual(keys(missing(PORTS, {})), ["product", "offer"]);
  assert.deepEqual(keys(missing(PORTS, { offer: { text: "  \n" }, product: { handle: "node:1", title: "" } })), ["offer"]);
  assert.deepEqual(inputsOf({ offer: { text: "  \n" }, mood: { text: " calm " } }), { mood: " calm " });
});

test("refusals stand at their ports, and others under the empty name", () => {
  const fields = [
    { field: "inputs.offer", message: "is missing" },
    { field: "inputs.offer", message: "is too short" },
    { field: "model", message: "cannot make it" },
  ];
  assert.deepEqual(problemsOf(PORTS, fields), { offer: "is missing; is too short", "": "model cannot make it" });
});

test("keys follow labels, are different, and have the form of the service", () => {
  assert.deepEqual(keysOf(["Ad copy!", "ad COPY", "Überschrift", "港", ""]), ["ad-copy", "ad-copy-2", "u-berschrift", "port", "port-2"]);
  assert(keysOf(["x".repeat(160)]).every((key) => /^[A-Za-z0-9_-]{1,80}$/.test(key)));
});

test("a prompt names keys in double braces", () => {
  assert.deepEqual(namedIn("{{a}} and {{ b }}, {{a}}, {c}, {{ open"), ["a", "b"]);
});
