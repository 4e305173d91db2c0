import assert from "node:assert/strict";
import { test } from "node:test";
import type { Model } from "../api.ts";
import { graphOf, type Node } from "../sync/graph.ts";
import { draftOf, frameProblem, modelOf, optionsOf, videoCapability } from "./making.ts";

const node = (id: string, rest: Partial<Node> = {}): Node =>
  ({ id, handle: `node:${id}`, type: "image", title: id, position: { x: 0, y: 0 }, width: 320, height: 320, metadata: {}, ...rest }) as Node;
const provenance = {
  kind: "generated" as const,
  operation: "edit" as const,
  model: "sketch",
  provider: "managed" as never,
  prompt: "a harbor",
  size: "1024x1024",
  references: [{ handle: "asset:a:1", role: "style" as const }, { handle: "asset:a:2" }, { handle: "node:gone" }],
  elements: ["element:x@v1" as never],
  run: "run:1" as never,
  createdAt: "2026-01-01T00:00:00Z",
};

test("a picture is made again with what it was made with", () => {
  const made = [node("Made", { metadata: { provenance } }), node("Beside", { metadata: { provenance } })];
  const graph = graphOf({ title: "", nodes: [...made, node("Photo", { asset: "asset:a:1" as never })], connections: [] });
  const draft = draftOf(graph, made[0] as Node);
  assert.ok(draft);
  const { references, ...rest } = draft;
  assert.deepEqual(rest, { of: "Made", operation: "edit", model: "sketch", provider: "managed", prompt: "a harbor", elements: ["element:x@v1"], size: "1024x1024", quality: "", count: 2 });
  assert.deepEqual(
    references.map(({ asset, role, node }) => [asset, role, node?.id]),
    [["asset:a:1", "style", "Photo"], ["asset:a:2", undefined, undefined]],
  );
});

test("what no model made is not made again", () => {
  const graph = graphOf({ title: "", nodes: [], connections: [] });
  for (const other of [node("a"), node("b", { metadata: { provenance: { ...provenance, kind: "upload" } } }), node("c", { metadata: { provenance: { ...provenance, kind: "action", operation: "action" } } })]) {
    assert.equal(draftOf(graph, other), undefined);
  }
});

const model = (capabilities: string[], rest: Partial<Model> = {}): Model =>
  ({ modelId: "m", provider: "managed", name: "Model", capabilities, parameters: [], standIn: false, ...rest }) as unknown as Model;

test("a model is found by its id and provider, or else by its id", () => {
  const [one, other] = [model([], { provider: "openai" as never }), model([])];
  assert.equal(modelOf([one, other], { model: "m", provider: "managed" }), other);
  assert.equal(modelOf([one], { model: "m", provider: "managed" }), one);
  assert.equal(modelOf([one], { model: "n", provider: "openai" }), undefined);
});

test("options are those of the capability", () => {
  const parameters = [{ name: "size", label: "", description: "", type: "string", required: false, capabilities: ["image.generate"], options: [{ label: "", value: 1 }] }];
  const sized = model(["image.generate"], { parameters: parameters as never });
  assert.deepEqual(optionsOf(sized, "size", "image.generate"), ["1"]);
  assert.deepEqual(optionsOf(sized, "size", "image.edit"), []);
});

test("frames and references of a video are checked before it is started", () => {
  const all = model(["video.generate", "video.generate.fromImage", "video.generate.fromFrames", "video.generate.fromReferences"]);
  assert.equal(videoCapability(["first", "last"]), "video.generate.fromFrames");
  for (const uses of [[], ["first"], ["first", "last"], ["reference", "reference"]] as const) assert.equal(frameProblem(all, [...uses]), undefined);
  assert.match(frameProblem(all, ["first", "first"]) ?? "", /one first frame/);
  assert.match(frameProblem(all, ["last"]) ?? "", /needs a first frame/);
  assert.match(frameProblem(all, ["first", "reference"]) ?? "", /not both/);
  assert.equal(frameProblem({ ...all, standIn: true }, ["first", "reference"]), undefined);
  assert.match(frameProblem(model(["video.generate.fromImage"]), []) ?? "", /without pictures/);
});
