import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { opened } from "../sync/clients.ts";
import { graphOf, type Node } from "../sync/graph.ts";
import { exportItems, itemsOf, leavesOf } from "./bar.ts";
import { Board } from "./board.ts";
import { nameFor, pathsOf } from "./export-names.ts";
import { ahead } from "./handover.ts";
import { hasSlides, slidesOf } from "./slides.ts";

const node = (id: string, title: string, at: number, rest: Partial<Node> = {}): Node => ({ id, handle: `node:${id}`, type: "image", title, asset: `asset:u:${id}`, position: { x: at * 400, y: 0 }, width: 320, height: 240, metadata: {}, ...rest });
const section = (id: string, title: string, at: number): Node => {
  const { asset, ...rest } = node(id, title, at, { type: "sticky", metadata: { section: true } });
  return rest;
};

test("files are numbered as they are read, in a folder for each Section", () => {
  const graph = graphOf({
    title: "Café",
    nodes: [
      section("s", "Hero / shots", 0),
      node("b", "Cup.jpg", 2, { metadata: { sectionId: "s" } }),
      node("a", "Hero: flower?", 1, { metadata: { sectionId: "s" } }),
      section("t", "hero  SHOTS", 4),
      node("c", "Cup", 5, { metadata: { sectionId: "t" } }),
      node("d", "", 6, { type: "video" }),
    ],
    connections: [],
  });
  const files = [...graph.nodes.values()].filter(({ asset }) => asset !== undefined);
  assert.deepEqual(Object.fromEntries(pathsOf(graph, files)), {
    a: "Hero shots/01 Hero flower",
    b: "Hero shots/02 Cup",
    c: "hero SHOTS 2/01 Cup",
    d: "01 video",
  });
  assert.deepEqual(slidesOf(graph).map(({ title, nodes }) => `${title}: ${nodes.map(({ id }) => id).join(" ")}`), ["Hero / shots: s a b", "hero  SHOTS: t c"]);
});

test("without Sections, images are slides, and a board of texts has none", () => {
  const text = node("x", "Brief", 2, { type: "text" });
  delete text.asset;
  const graph = graphOf({ title: "", nodes: [node("b", "B", 1), node("a", "A", 0), text], connections: [] });
  assert.deepEqual(slidesOf(graph).map(({ id }) => id), ["a", "b"]);
  assert.equal(hasSlides(graph), true);
  assert.equal(hasSlides(graphOf({ title: "", nodes: [text], connections: [] })), false);
});

const title = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("Cup", "cup", "CUP ", "..", "Cup 2", "a/b", "a:b", "CUP.jpg", "NOT INCLUDED.txt", "01 Cup", "\u0000", "x".repeat(300)));

test("no two files of a ZIP have one name, and every system takes each", () => {
  fc.assert(
    fc.property(fc.array(title, { maxLength: 4 }), fc.array(fc.record({ title, home: fc.integer({ min: -1, max: 3 }), x: fc.integer({ min: 0, max: 9 }) }), { maxLength: 12 }), (sections, images) => {
      const nodes = [
        ...sections.map((title, at) => section(`s${at}`, title, at)),
        ...images.map(({ title, home, x }, at) => node(`n${at}`, title, x, { metadata: home >= 0 && home < sections.length ? { sectionId: `s${home}` } : {} })),
      ];
      const graph = graphOf({ title: "", nodes, connections: [] });
      const files = nodes.filter(({ asset }) => asset !== undefined);
      const paths = [...pathsOf(graph, files).values()];
      assert.equal(paths.length, files.length);
      assert.equal(new Set(paths.map((path) => `${path}.jpg`.toLowerCase())).size, files.length);
      for (const path of paths) {
        const parts = path.split("/");
        assert(parts.length <= 2);
        for (const part of parts) {
          assert.match(part, /^[^/\\:*?"<>|\p{Cc}]+$/u);
          assert(!/^[. ]|[. ]$/.test(part), JSON.stringify(part));
          assert.equal(part, part.normalize("NFC"));
          assert([...part].length <= 115);
        }
      }
    }),
    { numRuns: 300 },
  );
});

test("a title is a name of its own, or what stands in for it", () => {
  assert.equal(nameFor("Steam over a cup", "image"), "Steam over a cup");
  assert.equal(nameFor(" ...hidden. ", "image"), "hidden");
  assert.equal(nameFor("///", "image"), "image");
});

test("calls are made some at a time, and answered in order", async () => {
  let [running, most] = [0, 0];
  const call = async (value: number) => {
    most = Math.max(most, (running += 1));
    await new Promise((resolve) => setTimeout(resolve, value % 3));
    running -= 1;
    return value;
  };
  const values = Array.from({ length: 9 }, (_, at) => at);
  for (const width of [2, 1]) {
    const answers: number[] = [];
    for await (const answer of ahead(values, call, width)) answers.push(answer);
    assert.deepEqual(answers, values);
    assert.equal(most, width);
    most = 0;
  }
});

test("what can be exported follows the selection, and waits for the connection", async () => {
  const [, ana] = await opened("ana");
  const board = new Board(ana.engine, false, "canvas:u:c");
  const labels = () => exportItems(board).map(({ id }) => id);
  assert.deepEqual(labels(), ["png", "copy-png"]);
  const cup = ana.create({ ...ana.note("Cup"), type: "image", asset: "asset:u:1" });
  assert.deepEqual(labels(), ["zip", "png", "copy-png", "paper"]);
  board.select([cup]);
  assert(leavesOf(itemsOf(board)).some(({ id }) => id === "paper"));
  await ana.drain();
  assert(exportItems(board).every(({ refused }) => refused === undefined));
});
