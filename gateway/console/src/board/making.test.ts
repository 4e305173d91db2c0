import assert from "node:assert/strict";
import { test } from "node:test";
import type { Model } from "../api.ts";
import { graphOf, type Node, withFields } from "../sync/graph.ts";
import { draftOf, failedAction, frameProblem, keptAction, keptOf, modelOf, optionsOf, videoCapability } from "./making.ts";

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

test("an image is made again with what it was made with", () => {
  const made = [node("Made", { metadata: { provenance } }), node("Beside", { metadata: { provenance } })];
  const graph = graphOf({ title: "", nodes: [...made, node("Photo", { asset: "asset:a:1" as never })], connections: [] });
  const draft = draftOf(graph, made[0] as Node);
  assert.ok(draft);
  const { references, ...rest } = draft;
  assert.deepEqual(rest, { of: "Made", into: [], operation: "edit", model: "sketch", provider: "managed", prompt: "a harbor", elements: ["element:x@v1"], size: "1024x1024", quality: "", count: 2 });
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
const job = { id: "job:1", run: "run:1", operation: "edit", status: "failed" } as never;

test("a slot whose work failed has the draft that it keeps, for all slots of the run that are empty", () => {
  const making = { operation: "edit" as const, model: model([], { modelId: "sketch" }), prompt: "a harbor", references: [{ asset: "asset:a:1", title: "", role: "style" as const }], elements: ["element:x@v1"], size: "1024x1024", quality: "" };
  const slots = ["One", "Two"].map((id) => {
    const slot = node(id, { metadata: { job, custom: { other: 1 } as never } });
    return withFields(slot, keptOf(slot, making));
  });
  const custom = slots[0]?.metadata.custom as Record<string, unknown> | undefined;
  assert.equal(custom?.["other"], 1, "what other clients keep stays");
  const done = node("Done", { asset: "asset:a:9" as never, metadata: { job } });
  const draft = draftOf(graphOf({ title: "", nodes: [...slots, done], connections: [] }), slots[1] as Node);
  assert.ok(draft);
  const { references, ...rest } = draft;
  assert.deepEqual(rest, { of: "Two", into: ["One", "Two"], operation: "edit", model: "sketch", provider: "managed", prompt: "a harbor", elements: ["element:x@v1"], size: "1024x1024", quality: "", count: 2 });
  assert.deepEqual(references.map(({ asset, role }) => [asset, role]), [["asset:a:1", "style"]]);
});

test("a slot of another client has the draft that its connections give, and whatever it keeps does no harm", () => {
  const photo = node("Photo", { asset: "asset:a:1" as never });
  const text = node("Text", { type: "text", metadata: { content: "a harbor" } });
  const connections = [{ id: "1", fromNodeId: "Photo", toNodeId: "Slot", purpose: "reference", role: "fit" }, { id: "2", fromNodeId: "Text", toNodeId: "Slot", purpose: "flow" }];
  for (const custom of [undefined, { console: 1 }, { console: { image: { references: 7, elements: {}, provider: [] } } }]) {
    const slot = node("Slot", { metadata: { job, ...(custom && { custom: custom as never }) } });
    const draft = draftOf(graphOf({ title: "", nodes: [photo, text, slot], connections: connections as never }), slot);
    assert.deepEqual([draft?.prompt, draft?.model, draft?.elements, draft?.references.map(({ asset, role }) => [asset, role])], ["a harbor", undefined, [], [["asset:a:1", "fit"]]]);
  }
});

test("work that goes on, that was done, or that an Action does has no draft", () => {
  const graph = graphOf({ title: "", nodes: [], connections: [] });
  for (const other of [{ status: "running" }, { status: "succeeded" }, { operation: "action" }]) {
    assert.equal(draftOf(graph, node("a", { metadata: { job: { ...(job as object), ...other } as never } })), undefined);
  }
});

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
  assert.match(frameProblem(model(["video.generate.fromImage"]), []) ?? "", /without images/);
});

test("another attempt at an Action has what its node keeps, or else what leads to the node, whatever a client wrote there", () => {
  const failed = { ...(job as object), operation: "action", status: "canceled" } as never;
  const photo = node("Photo", { asset: "asset:a:1" as never });
  const connections = [{ id: "c", fromNodeId: "Photo", toNodeId: "Slot", purpose: "flow" }] as never;
  const attempt = (custom?: unknown) => {
    const slot = node("Slot", { metadata: { job: failed, ...(custom !== undefined && { custom: custom as never }) } });
    return failedAction(graphOf({ title: "", nodes: [photo, slot], connections }), slot);
  };
  const kept = withFields(node("Slot"), keptAction(node("Slot", { metadata: { custom: { mine: 1 } as never } }), "crop", { width: 32 }, ["node:x"])).metadata.custom as Record<string, unknown>;
  assert.equal(kept["mine"], 1);
  assert.deepEqual(attempt(kept), { attempt: { of: "Slot", into: "Slot", slug: "crop", entries: { width: "32" } }, inputs: ["node:x"] });
  for (const custom of [undefined, { console: 1 }, { console: { action: { slug: 7, params: [], inputs: "x" } } }]) {
    assert.deepEqual(attempt(custom), { attempt: { of: "Slot", into: "Slot", slug: "", entries: {} }, inputs: [photo.handle] });
  }
  assert.equal(failedAction(graphOf({ title: "", nodes: [photo], connections: [] as never }), photo), undefined);
});
