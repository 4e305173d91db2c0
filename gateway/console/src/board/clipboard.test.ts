import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { copiedFrom } from "./clipboard.ts";

const node = { type: "sticky", title: "Note", position: { x: 1, y: 2 }, width: 240, height: 240, metadata: { content: "words" } };
const read = (node: object, rest: object[] = []) => copiedFrom(JSON.stringify({ canvas: "canvas:u:c", operations: [{ type: "node.create", clientId: "a", node }, ...rest] }));

test("what is on the clipboard can be anything", () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => void copiedFrom(JSON.stringify(value))));
  fc.assert(fc.property(fc.jsonValue(), fc.jsonValue(), (metadata, asset) => void read({ ...node, metadata, asset })));
  for (const data of ["", "{", "null", '{"operations":[{"type":"node.create"}]}']) assert.equal(copiedFrom(data), undefined);
});

test("what a node cannot have is left out, and what can be no node", () => {
  const metadata = { content: "words", color: "red; background: url(x)", fontSize: 1e9, job: { run: "run:1" }, createdBy: "agent", tags: [1], zIndex: 3, section: "yes", custom: [] };
  assert.deepEqual(read({ ...node, asset: "asset:u:1", metadata })?.nodes, [{ id: "a", handle: "node:a", ...node, metadata: { content: "words", zIndex: 3 } }]);
  for (const fault of [{ type: "script" }, { title: 1 }, { position: { x: null, y: 0 } }, { width: 0 }, { height: 1e6 }]) assert.equal(read({ ...node, ...fault }), undefined);
});

test("connections have a purpose that there is", () => {
  const link = { type: "connection.create", fromNodeId: "a", toNodeId: "b", purpose: "reference", role: "style" };
  const found = read(node, [link, { ...link, purpose: "other" }, { ...link, role: "other" }, { ...link, toNodeId: 1 }])?.connections;
  assert.deepEqual(found?.map(({ purpose, role }) => [purpose, role]), [["reference", "style"], ["reference", undefined]]);
});
