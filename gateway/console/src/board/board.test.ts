import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { applied, applyTo, inverseOf, judge } from "../sync/change.ts";
import { Draft, type Graph, graphOf, type Node } from "../sync/graph.ts";
import { choices, connectionOf, described, duplicated, enclosed, filled, isEmptySlot, moved, newNode, removed, resized, sectioned } from "./gestures.ts";
import { around, boxOf, SpatialIndex, touches } from "./spatial.ts";

const EMPTY = graphOf({ title: "", nodes: [], connections: [] });
const place = fc.integer({ min: -20_000, max: 20_000 });
const side = fc.oneof(fc.integer({ min: 1, max: 900 }), fc.integer({ min: 1, max: 100_000 }));
const box = fc.record({ x: place, y: place, width: side, height: side });

const node = (id: string, x: number, y: number, rest: Partial<Node> = {}): Node => newNode(EMPTY, "text", id, { x: 0, y: 0 }, { position: { x, y }, ...rest });
const graph = (...nodes: Node[]): Graph => graphOf({ title: "", nodes, connections: [] });
const section = (id: string, x: number, y: number, width: number, height: number) =>
  newNode(EMPTY, "section", id, { x: 0, y: 0 }, { position: { x, y }, width, height });

const of = (type: Node["type"], id: string): Node => ({ ...node(id, 0, 0), type });
const job = (status: string, run = "run:1") => ({ metadata: { job: { run, status, operation: "generate" } } }) as Partial<Node>;
const words = (node: Node) => described(graph(node), node);

let made = 0;
const newId = () => `new${(made += 1)}`;

test("a window holds exactly the nodes that touch it", () => {
  fc.assert(
    fc.property(fc.array(box, { maxLength: 60 }), box, (boxes, view) => {
      const nodes = boxes.map(({ x, y, width, height }, index) => node(`n${index}`, x, y, { width, height }));
      const expected = nodes.filter((node) => touches(boxOf(node), view)).map(({ id }) => id);
      assert.deepEqual(new SpatialIndex(nodes).in(view).map(({ id }) => id), expected);
    }),
  );
});

test("the topmost node is hit, and a Section only where nothing else is", () => {
  const low = node("low", 0, 0);
  const high = node("high", 10, 10, { metadata: { zIndex: 2 } });
  const index = new SpatialIndex([high, low, section("s", -50, -50, 1000, 1000)]);
  assert.equal(index.at({ x: 50, y: 50 })?.id, "high");
  assert.equal(index.at({ x: 5, y: 5 })?.id, "low");
  assert.equal(index.at({ x: 900, y: 900 })?.id, "s");
  assert.equal(index.at({ x: 5000, y: 0 }), undefined);
});

test("a rectangle takes what it touches, and a Section only as a whole", () => {
  const nodes = [section("s", 0, 0, 500, 500), node("a", 100, 100)];
  assert.deepEqual(enclosed(nodes, { x: 90, y: 90, width: 50, height: 50 }), ["a"]);
  assert.deepEqual(enclosed(nodes, { x: -1, y: -1, width: 502, height: 502 }), ["s", "a"]);
});

test("a Section carries its members, once", () => {
  const before = graph(section("s", 0, 0, 900, 900), node("a", 50, 50, { metadata: { sectionId: "s" } }), node("b", 2000, 0));
  const after = applied(before, moved(before, ["s", "a"], { x: 10, y: 20 }));
  assert.deepEqual([...after.nodes.values()].map(({ position }) => position), [{ x: 10, y: 20 }, { x: 60, y: 70 }, { x: 2000, y: 0 }]);
  assert.equal(after.nodes.get("a")?.metadata.sectionId, "s");
});

test("a node joins the Section that it is dropped in, and leaves the one that it is dragged out of", () => {
  const before = graph(section("s", 0, 0, 900, 900), node("a", 5000, 0));
  const inside = applied(before, moved(before, ["a"], { x: -4900, y: 10 }));
  assert.equal(inside.nodes.get("a")?.metadata.sectionId, "s");
  const outside = applied(inside, moved(inside, ["a"], { x: 4900, y: 0 }));
  assert.equal(outside.nodes.get("a")?.metadata.sectionId, undefined);
});

test("copies keep their Section and the connections among them", () => {
  const before = applied(graph(section("s", 0, 0, 900, 900), node("a", 50, 80, { metadata: { sectionId: "s" } }), node("b", 2000, 0)), [
    { do: "connect", connection: connectionOf("c1", "a", "s", "list") },
    { do: "connect", connection: connectionOf("c2", "a", "b", "flow") },
  ]);
  const { changes, copies } = duplicated(before, ["s"], newId, { free: { x: 0, y: 0, width: 4000, height: 2000 } });
  const after = applied(before, changes);
  assert.equal(after.nodes.size, 5);
  assert.equal(after.nodes.get(copies.get("a") ?? "")?.metadata.sectionId, copies.get("s"));
  const added = [...after.connections.values()].filter(({ id }) => !before.connections.has(id));
  assert.deepEqual(added.map(({ fromNodeId, toNodeId, purpose }) => [fromNodeId, toNodeId, purpose]), [[copies.get("a"), copies.get("s"), "list"]]);
});

test("a Section is made around nodes, which become its members", () => {
  const before = graph(node("a", 100, 100), node("b", 900, 400), section("old", 0, 0, 10, 10));
  const after = applied(before, sectioned(before, ["a", "b", "old"], "s", { x: 0, y: 0 }));
  const frame = after.nodes.get("s");
  assert(frame);
  const members = ["a", "b"].flatMap((id) => after.nodes.get(id) ?? []);
  assert(members.every(({ metadata }) => metadata.sectionId === "s"));
  assert.equal(after.nodes.get("old")?.metadata.sectionId, undefined);
  const all = around([...members.map(boxOf), boxOf(frame)]);
  assert.deepEqual(all, boxOf(frame));
});

test("members are deleted before their Section", () => {
  const before = graph(section("s", 0, 0, 900, 900), node("a", 50, 50, { metadata: { sectionId: "s" } }));
  assert.deepEqual(removed(before, ["s", "a"]).map((change) => change.do === "delete" && change.node.id), ["a", "s"]);
});

test("an image takes the place of an empty slot, and an undo gives it back", () => {
  const slot = { ...of("image", "slot"), title: "Hero", position: { x: 40, y: 50 }, width: 300, height: 200, metadata: { sectionId: "s", zIndex: 3 } };
  const image = { ...of("image", "p"), title: "harbor.png", asset: "asset:p" };
  const others = [section("s", 0, 0, 900, 900), of("video", "v"), of("text", "t")];
  const links = [connectionOf("c1", "t", "slot", "reference"), connectionOf("c2", "slot", "v", "first-frame")];
  const before = applied(graph(slot, ...others), links.map((connection) => ({ do: "connect", connection })));
  for (const start of [before, applied(before, [{ do: "create", node: image }])]) {
    const draft = new Draft(start);
    const done = filled(start, slot, image, newId).flatMap((change) => {
      const { change: left, dropped } = judge(draft, change, "rebase");
      assert.equal(dropped, undefined);
      if (left) applyTo(draft, left);
      return left ?? [];
    });
    const after = draft.graph;
    assert.equal(after.nodes.has("slot"), false);
    const { id, handle, asset, ...place } = after.nodes.get("p") as Node;
    assert.deepEqual(place, { type: "image", title: "Hero", position: { x: 40, y: 50 }, width: 300, height: 200, metadata: { sectionId: "s", zIndex: 3 } });
    assert.equal(asset, "asset:p");
    const ends = [...after.connections.values()].map(({ fromNodeId, toNodeId, purpose }) => [fromNodeId, toNodeId, purpose]);
    assert.deepEqual(ends, [["t", "p", "reference"], ["p", "v", "first-frame"]]);
    const undone = applied(after, inverseOf(done));
    assert.deepEqual(undone.nodes.get("slot"), slot);
    assert.deepEqual(undone.nodes.get("p"), start.nodes.get("p"));
    assert.deepEqual([...undone.connections.keys()].toSorted(), ["c1", "c2"]);
  }
});

test("only an empty image without work under way is filled", () => {
  const image = of("image", "i");
  assert(isEmptySlot(image));
  assert(isEmptySlot({ ...image, ...job("failed") }));
  assert(!isEmptySlot({ ...image, ...job("running") }));
  assert(!isEmptySlot({ ...image, asset: "asset:a" }));
  assert(!isEmptySlot({ ...image, metadata: { recipe: { role: "input" } } } as Node), "an instance of a Recipe knows its slots");
  assert(!isEmptySlot(of("video", "v")));
});

test("the state of a node is described in words", () => {
  assert.equal(words(of("image", "i")), "Image Text, empty");
  assert.equal(words(of("video", "v")), "Video Text, empty");
  assert.equal(words({ ...of("image", "i"), ...job("finalizing") }), "Image Text, being stored");
  assert.equal(words({ ...of("video", "v"), ...job("failed") }), "Video Text, failed");
  assert.equal(words({ ...of("image", "i"), asset: "asset:a", ...job("succeeded") }), "Image Text");
  const video: unknown = { console: { video: { job: "job:0198c5b0-3c1d-7a42-b0fe-91c2d3e4f506", by: "u" } } };
  assert.equal(words({ ...of("video", "v"), metadata: { custom: video } } as Node), "Video Text", "its video says more");
});

test("sizes stay within the service's limits", () => {
  const change = resized(node("a", 0, 0), { x: 0.4, y: 0.6, width: 1, height: 1e9 });
  assert(change.do === "update");
  assert.deepEqual(change.set, { position: { x: 0, y: 1 }, width: 24, height: 100_000 });
});

test("only what the rules of the graph permit is offered", () => {
  const before = graph(of("image", "i"), of("image", "j"), of("video", "v"), of("text", "t"));
  const offered = (from: string, to: string, graph = before) =>
    choices(graph, graph.nodes.get(from) as Node, graph.nodes.get(to) as Node).map(({ purpose, role }) => (role ? `${purpose}:${role}` : purpose));
  assert.deepEqual(offered("i", "i"), []);
  assert.deepEqual(offered("v", "i"), ["flow", "list"]);
  assert.deepEqual(offered("t", "i"), ["flow", "reference", "list"]);
  assert(offered("i", "v").includes("first-frame"));
  assert(offered("i", "j").includes("reference:identity"));
  const framed = applied(before, [{ do: "connect", connection: connectionOf("c", "i", "v", "first-frame") }]);
  assert(!offered("j", "v", framed).includes("first-frame"), "a video has one first frame");
  assert(offered("j", "v", framed).includes("last-frame"));
  const referenced = applied(before, [{ do: "connect", connection: connectionOf("c", "i", "j", "reference", "style") }]);
  assert.deepEqual(offered("i", "j", referenced), ["flow", "list"]);
});
