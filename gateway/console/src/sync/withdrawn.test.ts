/** What becomes of changes when the role, or the canvas, is gone while they are made. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../errors.ts";
import { update } from "./change.ts";
import { exchange, opened, plain, settle } from "./clients.ts";
import type { Service } from "./model.ts";

/** The service refuses the changes of `name` until the returned function is called. */
function withdraw(service: Service, name: string, status = 403): () => void {
  const apply = service.apply.bind(service);
  service.apply = (request, actor) => {
    if (actor === name) throw new Problem(status, "no");
    return apply(request, actor);
  };
  return () => (service.apply = apply);
}

test("without the role, the canvas is followed, and what was not sent is kept until it is back", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  const id = ana.create(ana.note("Hers"));
  await exchange(service, ana, ben);
  const giveBack = withdraw(service, "ana");
  ana.set(id, { title: "Renamed" });
  await ana.drain();
  assert.equal(ana.engine.getSnapshot().state, "read-only");
  // It was typed before the page showed that.
  ana.set(id, { "metadata.content": "typed" });
  ben.create(ben.note("His"));
  await exchange(service, ben, ana);
  assert.equal(ana.engine.getSnapshot().state, "read-only");
  assert.deepEqual([...ana.graph.nodes.values()].map(({ title }) => title), ["Renamed", "His"]);
  assert.equal(ana.value(id, "metadata.content"), "typed");
  assert.deepEqual([ana.engine.getSnapshot().waiting, ana.storage.kept.batches.length], [2, 2]);

  ana.engine.permit(false);
  await ana.drain();
  assert.deepEqual(ana.notices, []);
  ana.set(id, { "metadata.content": "not permitted" });
  assert.equal(ana.value(id, "metadata.content"), "typed");
  assert.deepEqual(ana.notices, ["Change was not done: you may not change this canvas."]);

  giveBack();
  ana.engine.permit(true);
  await exchange(service, ana, ben);
  assert.equal(ana.engine.getSnapshot().state, "saved");
  assert.deepEqual(ana.seen(), plain(service.graph));
  const hers = service.graph.nodes.get(ana.engine.real(id));
  assert.deepEqual([hers?.title, hers?.metadata.content], ["Renamed", "typed"]);
});

test("without the role, nothing is lost by undo, redo and the choice of a text", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  const id = ana.create(ana.note("First", "one"));
  ana.set(id, { title: "Second" });
  ana.engine.undo();
  await exchange(service, ana, ben);
  const real = ana.engine.real(id);
  ben.set(real, { "metadata.content": "ben's" });
  await ben.drain();
  ana.set(id, { "metadata.content": "ana's" });
  await exchange(service, ana, ben);
  ben.set(real, { position: { x: 50, y: 0 } });
  await exchange(service, ben, ana);
  withdraw(service, "ana");
  ana.engine.perform("Move", [update("node", ana.graph.nodes.get(id) ?? ana.note(""), { width: 200 })]);
  await ana.drain();
  const before = ana.engine.getSnapshot();
  const [conflict] = before.conflicts;
  assert(conflict && before.news && before.undo === "Move");
  ana.engine.undo();
  ana.engine.redo();
  ana.engine.undoNews(before.news);
  for (const choice of ["mine", "both"] as const) ana.engine.resolve(conflict, choice);
  await ana.drain();
  const { undo, redo, news, conflicts, waiting } = ana.engine.getSnapshot();
  assert.deepEqual([undo, redo, news, conflicts, waiting], [before.undo, before.redo, before.news, before.conflicts, 1]);
  assert.deepEqual(new Set(ana.notices), new Set(["You can no longer change this canvas."]));
  ana.engine.resolve(conflict, "theirs");
  assert.deepEqual(ana.engine.getSnapshot().conflicts, []);
});

test("a change without an answer takes effect once, also when the role is withdrawn and given back", async () => {
  for (const fate of ["lose", "loseAnswer"] as const) {
    const [service, ana] = await opened("ana");
    ana.create(ana.note("Once"));
    await settle();
    ana.network.pending.find(({ what }) => what === "apply")?.[fate]();
    await settle();
    const giveBack = withdraw(service, "ana");
    await ana.drain();
    assert.equal(ana.engine.getSnapshot().state, "read-only");
    giveBack();
    ana.engine.resume();
    await ana.drain();
    assert.equal(ana.engine.getSnapshot().state, "saved");
    assert.deepEqual([...service.graph.nodes.values()].map(({ title }) => title), ["Once"], fate);
    assert.deepEqual(ana.seen(), plain(service.graph));
  }
});

test("what was typed when the canvas was gone is kept", async () => {
  const [service, ana] = await opened("ana");
  const id = ana.create(ana.note("Kept"));
  await ana.drain();
  withdraw(service, "ana", 404);
  ana.set(id, { title: "Sent" });
  await ana.drain();
  assert.equal(ana.engine.getSnapshot().state, "gone");
  ana.set(id, { "metadata.content": "typed" });
  await settle();
  assert.equal(ana.storage.kept.batches.length, 2);
});
