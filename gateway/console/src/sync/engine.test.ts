import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../errors.ts";
import { bothOf, remove, retitle, update } from "./change.ts";
import { exchange, opened, plain, settle } from "./clients.ts";
import type { Node } from "./graph.ts";
import type { Service } from "./model.ts";

/** The service refuses to delete the node `id`. */
function refuse(service: Service, id: string): void {
  const apply = service.apply.bind(service);
  service.apply = (request, actor) => {
    if (request.operations.some((one) => one.type === "node.delete" && one.nodeId === id)) throw new Problem(422, "no");
    return apply(request, actor);
  };
}

const connect = (id: string, fromNodeId: string, toNodeId: string) => ({ do: "connect", connection: { id, handle: "", fromNodeId, toNodeId, from: "", to: "", purpose: "flow" } }) as const;

test("a change is shown at once, sent once, and keeps its id", async () => {
  const [service, ana] = await opened("ana");
  const id = ana.create(ana.note("Brief"));
  assert.equal(ana.value(id, "title"), "Brief");
  assert.equal(ana.engine.getSnapshot().waiting, 1);
  await ana.drain();
  assert.equal(ana.engine.getSnapshot().state, "saved");
  assert.equal(ana.value(id, "title"), "Brief");
  assert.deepEqual(ana.seen(), plain(service.graph));
  assert.equal(ana.value(id, "metadata.createdBy"), "user", "what the service says is shown");
  assert.equal(service.accepted.size, 1);
});

test("nothing counts as saved while a change waits, also while changes of others are read", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  ben.create(ben.note("His"));
  await ben.drain();
  ana.engine.follow(service.revision);
  await settle();
  assert.deepEqual(ana.network.pending.map(({ what }) => what), ["changes"]);
  ana.create(ana.note("Hers"));
  assert.equal(ana.engine.getSnapshot().state, "saving");
  await ana.drain();
  assert.equal(ana.engine.getSnapshot().state, "saved");
  assert.equal(service.graph.nodes.size, 2);
});

test("a gesture of 200 changes is one batch, one of 201 is two, and both are one step", async () => {
  for (const [count, batches] of [[200, 1], [201, 2]] as const) {
    const [service, ana] = await opened("ana");
    const nodes = Array.from({ length: count }, (_, index) => ana.note(`n${index}`));
    ana.engine.perform("Create", nodes.map((node) => ({ do: "create", node })));
    await ana.drain();
    assert.equal(service.accepted.size, batches);
    assert.equal(service.graph.nodes.size, count);
    ana.engine.undo();
    await ana.drain();
    assert.equal(service.graph.nodes.size, 0);
  }
});

test("a lost answer is asked for again under the same key", async () => {
  const [service, ana] = await opened("ana");
  ana.create(ana.note("Once"));
  await settle();
  ana.network.pending.find(({ what }) => what === "apply")?.loseAnswer();
  await settle();
  assert.equal(ana.engine.getSnapshot().state, "waiting");
  await ana.drain();
  assert.equal(ana.engine.getSnapshot().state, "saved");
  assert.equal(service.graph.nodes.size, 1);
});

test("an answer that cannot be read is asked for again under the same key", async () => {
  const [service, ana] = await opened("ana");
  const apply = service.apply.bind(service);
  service.apply = (...request) => {
    apply(...request);
    service.apply = apply;
    throw new SyntaxError("Unexpected token '<'");
  };
  ana.create(ana.note("Once"));
  await settle();
  ana.network.pending.find(({ what }) => what === "apply")?.answer();
  await settle();
  assert.equal(ana.engine.getSnapshot().state, "waiting");
  await ana.drain();
  assert.equal(ana.engine.getSnapshot().state, "saved");
  assert.equal(service.accepted.size, 1);
  assert.deepEqual(ana.seen(), plain(service.graph));
});

test("what was not sent is sent by the next page, and what was sent is not sent again", async () => {
  for (const fate of ["lose", "loseAnswer", "answer"] as const) {
    const [service, ana] = await opened("ana");
    const id = ana.create(ana.note("Kept"));
    ana.set(id, { title: "Kept, renamed" });
    await settle();
    ana.network.pending.find(({ what }) => what === "apply")?.[fate]();
    await settle();
    await ana.restart();
    await ana.drain();
    assert.deepEqual([...service.graph.nodes.values()].map(({ title }) => title), ["Kept, renamed"], fate);
    assert.deepEqual(ana.storage.kept.batches, []);
  }
});

test("what an earlier page left survives, whatever reaches the page before it has loaded that", async () => {
  const [service, ana] = await opened("ana");
  ana.create(ana.note("Left"));
  await settle();
  const { storage } = ana;
  const load = storage.load.bind(storage);
  const loading = Promise.withResolvers<void>();
  storage.load = async () => {
    await loading.promise;
    return load();
  };
  await ana.restart();
  ana.engine.permit(true);
  ana.engine.follow(service.revision);
  ana.engine.resume();
  await ana.drain();
  assert.equal(storage.kept.batches.length, 1);
  loading.resolve();
  await ana.drain();
  assert.deepEqual([...service.graph.nodes.values()].map(({ title }) => title), ["Left"]);
});

test("what is dropped while a canvas is opened is announced once somebody listens, and once", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  ana.create(ana.note("Deleted"));
  await exchange(service, ana, ben);
  const [[id = ""] = []] = [...service.graph.nodes];
  ana.set(ana.engine.local(id), { title: "Too late" });
  await settle();
  ana.network.pending[0]?.lose();
  await settle();
  ben.engine.perform("Delete", [remove(ben.graph.nodes.get(id) as Node)]);
  await ben.drain();
  ana.isHeard = false;
  await ana.restart();
  await ana.drain();
  assert.deepEqual(ana.notices, []);
  const expected = ["A change was dropped: what it changed was deleted."];
  ana.engine.onNotice((text) => ana.notices.push(text));
  assert.deepEqual(ana.notices, expected);
  ana.engine.onNotice((text) => ana.notices.push(text));
  assert.deepEqual(ana.notices, expected);
});

test("positions: the last writer wins; texts: a person chooses", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  ana.create(ana.note("Shared", "one"));
  await exchange(service, ana, ben);
  const [[id = ""] = []] = [...service.graph.nodes];
  const mine = ana.engine.local(id);
  ana.set(mine, { position: { x: 1, y: 1 }, "metadata.content": "ana's" });
  ben.set(id, { position: { x: 2, y: 2 }, "metadata.content": "ben's" });
  await ben.drain();
  await ana.drain();
  assert.deepEqual(service.graph.nodes.get(id)?.position, { x: 1, y: 1 });
  assert.equal(service.graph.nodes.get(id)?.metadata.content, "ben's");
  const [conflict] = ana.engine.getSnapshot().conflicts;
  assert(conflict);
  assert.deepEqual([conflict.field, conflict.mine, conflict.theirs], ["metadata.content", "ana's", "ben's"]);
  await ana.restart();
  await ana.drain();
  const [kept] = ana.engine.getSnapshot().conflicts;
  assert(kept, "a conflict survives a reload");
  ana.engine.resolve(kept, "both");
  await ana.drain();
  assert.equal(service.graph.nodes.get(id)?.metadata.content, "ben's\n\nana's");
  assert.deepEqual(ana.engine.getSnapshot().conflicts, []);
  ana.engine.undo();
  await ana.drain();
  assert.equal(service.graph.nodes.get(id)?.metadata.content, "ben's");
});

test("a conflict has the newest text of the others, and keeping mine overwrites nothing that was not shown", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  ana.create(ana.note("Shared", "one"));
  await exchange(service, ana, ben);
  const [[id = ""] = []] = [...service.graph.nodes];
  const conflicts = () => ana.engine.getSnapshot().conflicts;
  const write = async (text: string) => {
    ben.set(id, { "metadata.content": text });
    await ben.drain();
  };
  await write("ben's");
  ana.set(ana.engine.local(id), { "metadata.content": "ana's" });
  await ana.drain();
  assert.equal(conflicts()[0]?.theirs, "ben's");
  await write("ben's second");
  await exchange(service, ana);
  const [shown] = conflicts();
  assert.deepEqual([shown?.mine, shown?.theirs, conflicts().length], ["ana's", "ben's second", 1]);
  await write("ben's third");
  await exchange(service, ana);
  assert(shown);
  // The choice was made on the card as it was.
  ana.engine.resolve(shown, "mine");
  await ana.drain();
  const [next] = conflicts();
  assert.deepEqual([next?.mine, next?.theirs, conflicts().length], ["ana's", "ben's third", 1]);
  assert(next);
  ana.engine.resolve(next, "mine");
  await exchange(service, ana, ben);
  assert.equal(service.graph.nodes.get(id)?.metadata.content, "ana's");
  assert.deepEqual(conflicts(), []);
});

test("a conflict that a change makes at once is shown and kept", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  ana.create(ana.note("Shared", "one"));
  await exchange(service, ana, ben);
  const [[id = ""] = []] = [...service.graph.nodes];
  ben.set(id, { "metadata.content": "ben's" });
  await exchange(service, ben, ana);
  let shown = 0;
  ana.engine.subscribe(() => (shown = ana.engine.getSnapshot().conflicts.length));
  // It was typed on a text that has been replaced meanwhile.
  const [was, set] = [{ "metadata.content": "one" }, { "metadata.content": "ana's" }];
  ana.engine.perform("Edit a text", [{ do: "update", on: "node", id: ana.engine.local(id), set, was }]);
  assert.equal(shown, 1);
  await settle();
  assert.equal(ana.storage.kept.conflicts.length, 1);
});

test("both titles and both prompts are kept in one, as far as there is room", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  ana.create(ana.note("Old", "", { prompt: "old" }));
  await exchange(service, ana, ben);
  const [[id = ""] = []] = [...service.graph.nodes];
  ana.set(ana.engine.local(id), { title: "Ana's", "metadata.prompt": "a".repeat(7000) });
  ana.engine.perform("Rename the canvas", [retitle(ana.graph.title, "Mine")]);
  ben.set(id, { title: "Ben's", "metadata.prompt": "b".repeat(2000) });
  ben.engine.perform("Rename the canvas", [retitle(ben.graph.title, "Theirs")]);
  await ben.drain();
  await ana.drain();
  const { conflicts } = ana.engine.getSnapshot();
  const both = conflicts.map((conflict) => [conflict.on, conflict.field, bothOf(conflict)]);
  assert.deepEqual(both, [["node", "title", "Ben's / Ana's"], ["node", "metadata.prompt", undefined], ["canvas", "title", "Theirs / Mine"]]);
  for (const conflict of conflicts) ana.engine.resolve(conflict, bothOf(conflict) === undefined ? "theirs" : "both");
  await ana.drain();
  assert.deepEqual([service.graph.title, service.graph.nodes.get(id)?.title], ["Theirs / Mine", "Ben's / Ana's"]);
});

test("who may only read follows the canvas and sends nothing, and what waits is sent once it is permitted", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  ana.create(ana.note("Hers"));
  await settle();
  ana.canChange = false;
  await ana.restart();
  await ana.drain();
  ben.create(ben.note("His"));
  await exchange(service, ana, ben);
  assert.deepEqual([...service.graph.nodes.values()].map(({ title }) => title), ["His"]);
  assert.deepEqual([...ana.graph.nodes.values()].map(({ title }) => title).toSorted(), ["Hers", "His"]);
  const [his] = service.graph.nodes.keys();
  ana.set(his ?? "", { title: "Not hers" });
  assert.equal(ana.graph.nodes.get(his ?? "")?.title, "His");
  assert.equal(ana.engine.getSnapshot().state, "saved");
  ana.engine.permit(true);
  await exchange(service, ana, ben);
  assert.deepEqual([...service.graph.nodes.values()].map(({ title }) => title), ["His", "Hers"]);
});

test("a deleted node is not changed, and a node with new work is not deleted", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  ana.create(ana.note("Left"));
  ana.create(ana.note("Worked on"));
  await exchange(service, ana, ben);
  const [left, worked] = [...ben.graph.nodes.values()];
  assert(left && worked);
  ana.set(ana.engine.local(left.id), { title: "Too late" });
  const target = ana.graph.nodes.get(ana.engine.local(worked.id));
  assert(target);
  ana.engine.perform("Delete", [remove(target)]);
  ben.engine.perform("Delete", [remove(left)]);
  ben.set(worked.id, { "metadata.content": "new work" });
  await ben.drain();
  await exchange(service, ana, ben);
  assert.deepEqual([...service.graph.nodes.values()].map(({ title }) => title), ["Worked on"]);
  assert.equal(ana.notices.length, 2);
  assert.deepEqual(ana.seen(), plain(service.graph));
});

test("undo gives way to what others did since, and redo repeats what was undone", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  const id = ana.create(ana.note("First"));
  ana.set(id, { title: "Second", position: { x: 9, y: 9 } });
  await exchange(service, ana, ben);
  ben.set(ana.engine.real(id), { title: "Ben's" });
  await exchange(service, ben, ana);
  ana.engine.undo();
  assert.equal(ana.value(id, "title"), "Ben's");
  assert.deepEqual(ana.value(id, "position"), { x: 0, y: 0 }, "what nobody else changed is undone");
  ana.engine.undo();
  assert(ana.graph.nodes.has(id), "a node with the work of others is not deleted");
  assert.equal(ana.notices.length, 2);
  await ana.drain();
  assert.equal(service.graph.nodes.get(ana.engine.real(id))?.title, "Ben's");
});

test("an addition that somebody else has worked on since stays when it is undone", async () => {
  for (const [field, value] of [["color", "#ffe48a"], ["tags", ["final"]], ["custom", { board: 1 }], ["sectionId", ""]] as const) {
    const [service, ana, ben] = await opened("ana", "ben");
    ben.create(ben.note("Section", "", { section: true }));
    await exchange(service, ben, ana);
    const [section] = service.graph.nodes.keys();
    const id = ana.create(ana.note("Hers"));
    await exchange(service, ana, ben);
    ben.set(ana.engine.real(id), { [`metadata.${field}`]: field === "sectionId" ? ben.engine.local(section ?? "") : value });
    await exchange(service, ben, ana);
    ana.engine.undo();
    await ana.drain();
    assert(service.graph.nodes.has(ana.engine.real(id)), field);
    assert.deepEqual(ana.notices, ["“Hers” stays: it was changed in the meantime."], field);
  }
});

test("a step is undone by its id, whatever was done since, and once", async () => {
  const [service, ana] = await opened("ana");
  const [id, other] = [ana.create(ana.note("Deleted")), ana.create(ana.note("Other"))];
  await exchange(service, ana);
  const step = ana.engine.perform("Delete", [remove(ana.graph.nodes.get(id) as Node)]);
  ana.set(other, { position: { x: 9, y: 9 } });
  ana.engine.undo(step);
  assert(ana.graph.nodes.has(id));
  assert.deepEqual(ana.value(other, "position"), { x: 9, y: 9 }, "what was done since stays");
  ana.engine.undo(step);
  assert.equal(ana.engine.getSnapshot().undo, "Change");
  await ana.drain();
  assert.deepEqual(ana.seen(), plain(service.graph));
  assert.equal(ana.engine.perform("Nothing", []), undefined);
});

test("a step that came to nothing is taken back, and the history is as it was before", async () => {
  const [service, ana] = await opened("ana");
  const [id, slot] = [ana.create(ana.note("Moved")), ana.note("Slot")];
  ana.set(id, { position: { x: 5, y: 5 } });
  ana.set(id, { position: { x: 9, y: 9 } });
  ana.engine.undo();
  const before = ana.engine.getSnapshot();
  const step = ana.engine.perform("Make", [{ do: "create", node: slot }, connect("link", id, slot.id)]);
  assert.deepEqual([ana.engine.getSnapshot().undo, ana.engine.getSnapshot().redo], ["Make", undefined]);
  await ana.drain();
  ana.engine.takeBack(step ?? "");
  await ana.drain();
  assert.deepEqual([service.graph.nodes.size, service.graph.connections.size], [1, 0]);
  const { undo, redo } = ana.engine.getSnapshot();
  assert.deepEqual([undo, redo], [before.undo, before.redo]);
  ana.engine.redo();
  assert.deepEqual(ana.value(id, "position"), { x: 9, y: 9 });
  ana.engine.undo();
  ana.engine.undo();
  await ana.drain();
  assert.deepEqual(service.graph.nodes.get(ana.engine.real(id))?.position, { x: 0, y: 0 });
  assert.deepEqual(ana.seen(), plain(service.graph));
});

test("a result that stays when its start is undone stays connected, and a target that goes takes its connections along", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  const reference = ana.create(ana.note("Reference"));
  const [result, empty] = [ana.note("Result"), ana.note("Empty")];
  const targets = [result, empty].map((node) => ({ do: "create", node }) as const);
  ana.engine.perform("Make", [...targets, connect("one", reference, result.id), connect("two", reference, empty.id), connect("three", result.id, empty.id)]);
  await exchange(service, ana, ben);
  ben.set(ana.engine.real(result.id), { "metadata.content": "made" });
  await exchange(service, ben, ana);
  ana.engine.undo();
  await ana.drain();
  assert.deepEqual([...service.graph.nodes.values()].map(({ title }) => title), ["Reference", "Result"]);
  assert.deepEqual([...service.graph.connections.keys()], [ana.engine.real("one")]);
  assert.deepEqual(ana.notices, ["“Result” stays: it was changed in the meantime."]);
  assert.deepEqual(ana.seen(), plain(service.graph));
});

test("undo of a deletion brings back nodes, connections and members under their ids", async () => {
  const [service, ana] = await opened("ana");
  const section = ana.create(ana.note("Section", "", { section: true }));
  const member = ana.create(ana.note("Member", "text", { sectionId: section }));
  const other = ana.create(ana.note("Other"));
  const ends = { fromNodeId: member, toNodeId: other, from: "", to: "" };
  ana.engine.perform("Connect", [{ do: "connect", connection: { id: "link", handle: "", ...ends, purpose: "flow" } }]);
  await ana.drain();
  const before = plain(service.graph);
  const nodes = [member, section, other].flatMap((id) => ana.graph.nodes.get(id) ?? []);
  ana.engine.perform("Delete", nodes.map(remove));
  await ana.drain();
  assert.equal(service.graph.nodes.size, 0);
  ana.engine.undo();
  await ana.drain();
  assert.deepEqual(plain(service.graph), before);
  ana.engine.redo();
  await ana.drain();
  assert.equal(service.graph.nodes.size, 0);
});

test("what the service refuses is taken back, with the reason, and what follows stays", async () => {
  const [service, ana] = await opened("ana");
  const id = ana.create(ana.note("Kept"));
  await ana.drain();
  ana.engine.perform("Connect", [{ do: "connect", connection: { id: "loop", handle: "", fromNodeId: id, toNodeId: id, from: "", to: "", purpose: "flow" } }]);
  ana.set(id, { title: "Renamed" });
  await ana.drain();
  assert.equal(ana.graph.connections.size, 0);
  assert.deepEqual(ana.notices, ["Connect was taken back: the connection exists"]);
  assert.deepEqual([...service.graph.nodes.values()].map(({ title }) => title), ["Renamed"]);
});

test("a gesture of several batches is taken back as a whole when one of them is refused", async () => {
  for (const refused of [250, 50]) {
    const [service, ana] = await opened("ana");
    const nodes = Array.from({ length: 300 }, (_, index) => ana.note(`n${index}`));
    ana.engine.perform("Create", nodes.map((node) => ({ do: "create", node })));
    await ana.drain();
    const before = plain(service.graph);
    refuse(service, ana.engine.real(nodes[refused]?.id ?? ""));
    ana.engine.perform("Delete", nodes.map(remove));
    await ana.drain();
    assert.deepEqual(plain(service.graph), before);
    assert.deepEqual(ana.seen(), before);
    assert.deepEqual(ana.notices, ["Delete was taken back: no"]);
    assert.equal(ana.engine.getSnapshot().undo, "Create");
  }
});

test("when the rest of a gesture is refused after a reload, its notice says that the beginning stays", async () => {
  const [service, ana] = await opened("ana");
  const nodes = Array.from({ length: 300 }, (_, index) => ana.note(`n${index}`));
  ana.engine.perform("Create", nodes.map((node) => ({ do: "create", node })));
  await ana.drain();
  refuse(service, ana.engine.real(nodes[250]?.id ?? ""));
  ana.engine.perform("Delete", nodes.map(remove));
  await settle();
  ana.network.pending[0]?.answer();
  await settle();
  await ana.restart();
  await ana.drain();
  assert.equal(service.graph.nodes.size, 100);
  assert.deepEqual(ana.seen(), plain(service.graph));
  assert.deepEqual(ana.notices, ["Delete was done in part: no"]);
});

test("a list of changes that is not complete is replaced by the whole canvas", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  service.horizon = 2;
  for (let index = 0; index < 5; index += 1) {
    ben.create(ben.note(`n${index}`));
    await ben.drain();
  }
  ana.create(ana.note("Mine"));
  await exchange(service, ana, ben);
  assert.equal(ana.graph.nodes.size, 6);
  assert.deepEqual(ana.seen(), plain(service.graph));
});

test("what others did is shown, and undone as far as it is still so", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  ana.create(ana.note("One"));
  ana.create(ana.note("Two"));
  await exchange(service, ana, ben);
  assert.equal(ana.engine.getSnapshot().news, undefined, "one's own changes are no news");
  const [one, two] = [...ben.graph.nodes.values()];
  assert(one && two);
  ben.engine.perform("Move", [one, two].map((node) => update("node", node, { position: { x: 50, y: 0 } })));
  await exchange(service, ben, ana);
  const { news } = ana.engine.getSnapshot();
  assert(news);
  assert.equal(news.activity[0]?.actor.label, "ben");
  ana.set(ana.engine.local(one.id), { position: { x: 70, y: 0 } });
  ana.engine.undoNews(news);
  await ana.drain();
  assert.deepEqual([one, two].map(({ id }) => service.graph.nodes.get(id)?.position.x), [70, 0]);
});

test("a refresh resolves when it has read, whatever is announced meanwhile", async () => {
  const [service, ana, ben] = await opened("ana", "ben");
  ben.create(ben.note("New"));
  await ben.drain();
  const shown: number[] = [];
  const refreshes = [1, 2].map(async () => {
    await ana.engine.refresh();
    shown.push(ana.graph.nodes.size);
  });
  await settle();
  ana.engine.follow(service.revision);
  await ana.drain();
  await Promise.all(refreshes);
  assert.deepEqual(shown, [1, 1]);
});

test("a session that ended and a role that was withdrawn stop the queue without losing it", async () => {
  for (const [status, state] of [[401, "signed-out"], [403, "read-only"], [404, "gone"]] as const) {
    const [service, ana] = await opened("ana");
    const apply = service.apply.bind(service);
    service.apply = () => {
      throw new Problem(status, "no");
    };
    ana.create(ana.note("Waits"));
    await ana.drain();
    assert.equal(ana.engine.getSnapshot().state, state);
    assert.equal(ana.storage.kept.batches.length, 1);
    service.apply = apply;
    ana.engine.resume();
    await ana.drain();
    assert.equal(service.graph.nodes.size, 1);
  }
});
