import assert from "node:assert/strict";
import { test } from "node:test";
import { remove } from "../sync/change.ts";
import { type ModelClient, opened, settle } from "../sync/clients.ts";
import type { Service } from "../sync/model.ts";
import { bodiesOf, type Body, textsOf } from "./unsent-files.ts";

const bodies = ({ engine }: ModelClient) => bodiesOf(engine.unsent(), engine.real, engine.getSnapshot().revision);

/** Does what `canvas apply` does with each file. */
function applyTo(service: Service, files: Body[]): void {
  for (const file of files) service.apply({ ...file, baseRevision: file.baseRevision ?? service.revision }, "cli");
}

test("gestures that were not sent are one body", async () => {
  const [service, ana] = await opened("ana");
  const id = ana.create(ana.note("Brief"));
  ana.set(id, { title: "Renamed" });
  const files = bodies(ana);
  assert.deepEqual(files.map(({ baseRevision, force, operations }) => [baseRevision, force, operations.length]), [["r0", true, 2]]);
  applyTo(service, files);
  assert.deepEqual([...service.graph.nodes.values()].map(({ title }) => title), ["Renamed"]);
});

test("a gesture that took effect without an answer is not applied once more", async () => {
  const [service, ana] = await opened("ana");
  ana.create(ana.note("Brief"));
  await settle();
  ana.network.pending[0]?.loseAnswer();
  await settle();
  assert.equal(service.graph.nodes.size, 1);
  applyTo(service, bodies(ana));
  assert.equal(service.graph.nodes.size, 1, "the file is a replay");
  ana.create(ana.note("Next"));
  assert.throws(() => applyTo(service, bodies(ana)), /the key was used/);
  assert.equal(service.graph.nodes.size, 1);
});

test("more than 200 operations are several bodies, each of which can be applied", async () => {
  const [service, ana] = await opened("ana");
  const ids = Array.from({ length: 150 }, (_, index) => ana.note(`n${index}`)).map((node) => ana.create(node));
  await ana.drain();
  for (const id of ids) ana.set(id, { position: { x: 10, y: 20 } });
  ana.engine.perform("Delete", ids.slice(0, 100).flatMap((id) => ana.graph.nodes.get(id) ?? []).map(remove));
  const files = bodies(ana);
  assert.deepEqual(files.map(({ operations, baseRevision, force }) => [operations.length, baseRevision, force]), [[150, service.revision, true], [100, undefined, false]]);
  applyTo(service, files);
  assert.equal(service.graph.nodes.size, 50);
  assert([...service.graph.nodes.values()].every(({ position }) => position.x === 10));
});

test("the texts of a conflict can be read", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  const id = ana.create(ana.note("Brief", "A harbor"));
  await ana.drain();
  ben.engine.follow(service.revision);
  await ben.drain();
  const shared = [...ben.graph.nodes.keys()][0] ?? "";
  ben.set(shared, { "metadata.content": "A pier" });
  await ben.drain();
  ana.set(id, { "metadata.content": "A quiet harbor" });
  ana.engine.follow(service.revision);
  await ana.drain();
  const { graph, conflicts } = ana.engine.getSnapshot();
  assert.equal(textsOf(graph, conflicts), "The text of “Brief”\n\nYours:\nA quiet harbor\n\nTheirs:\nA pier\n");
  assert.match(textsOf(undefined, conflicts), /^The text of node:/);
});
