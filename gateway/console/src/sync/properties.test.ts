/**
 * Properties of the sync engine: what holds whatever people do, in whatever order requests are answered or lost. Lists of steps have the
 * size `max`: by default they have ten steps at most, and hardly any of them meets a request on its way.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Change, remove, update } from "./change.ts";
import { exchange, ModelClient, opened, plain, settle } from "./clients.ts";
import { type Fields, valueOf } from "./graph.ts";
import { Service } from "./model.ts";

type Step =
  | { at: 0 | 1; act: "create" | "note" | "delete" | "duplicate" | "undo" | "redo" | "restart" | "follow" | "section"; pick: number }
  | { at: 0 | 1; act: "move" | "title" | "content" | "connect" | "disconnect"; pick: number; value: number }
  | { at: 0 | 1; act: "answer" | "loseAnswer" | "lose"; pick: number };

const at = fc.constantFrom(0 as const, 1 as const);
const pick = fc.nat(30);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ at, act: fc.constantFrom("create", "note", "delete", "duplicate", "undo", "redo", "follow", "section"), pick }) },
  { weight: 1, arbitrary: fc.record({ at, act: fc.constant("restart"), pick }) },
  { weight: 5, arbitrary: fc.record({ at, act: fc.constantFrom("move", "title", "content", "connect", "disconnect"), pick, value: fc.nat(20) }) },
  { weight: 8, arbitrary: fc.record({ at, act: fc.constant("answer"), pick }) },
  { weight: 2, arbitrary: fc.record({ at, act: fc.constantFrom("loseAnswer", "lose"), pick }) },
) as fc.Arbitrary<Step>;

let serial = 0;

/** Returns the title of the node that it makes, if it makes one. */
async function take(service: Service, client: ModelClient, step: Step): Promise<string | undefined> {
  if (step.act === "restart") await client.restart();
  if (step.act === "follow") client.engine.follow(service.revision);
  if (step.act === "answer" || step.act === "lose" || step.act === "loseAnswer") client.network.pending[step.pick % 2]?.[step.act]();
  const { graph } = client.engine.getSnapshot();
  let made: string | undefined;
  if (graph) {
    const nodes = [...graph.nodes.values()];
    const node = nodes[step.pick % Math.max(nodes.length, 1)];
    const links = [...graph.connections.values()];
    const perform = (...changes: Change[]) => client.engine.perform(step.act, changes);
    if (step.act === "create" || step.act === "note" || step.act === "section") {
      made = `unique ${(serial += 1)}`;
      const home = nodes.find(({ metadata }) => metadata.section)?.id;
      const rest = step.act === "section" ? { section: true } : home !== undefined && step.act === "note" ? { sectionId: home } : {};
      client.create(client.note(made, step.act === "note" ? "text" : "", rest));
    } else if (step.act === "undo") client.engine.undo();
    else if (step.act === "redo") client.engine.redo();
    else if (node && step.act === "delete") perform(remove(node));
    else if (node && step.act === "duplicate") {
      const { id } = client.note("");
      const { job, provenance, history, ...metadata } = node.metadata;
      perform({ do: "duplicate", of: node.id, node: { ...node, id, position: { x: 5, y: 5 }, metadata } });
    } else if (node && step.act === "move") perform(update("node", node, { position: { x: step.value, y: step.value } }));
    else if (node && step.act === "title") perform(update("node", node, { title: `${node.title.slice(0, 20)}${step.value}` }));
    else if (node && step.act === "content") perform(update("node", node, { "metadata.content": step.value === 0 ? null : `text ${step.value}` }));
    else if (node && step.act === "connect") {
      const to = nodes[step.value % nodes.length];
      const ends = { fromNodeId: node.id, toNodeId: to?.id ?? "", from: "", to: "" };
      if (to && to !== node) perform({ do: "connect", connection: { id: client.note("").id, handle: "", ...ends, purpose: "flow" } });
    } else if (step.act === "disconnect") {
      const link = links[step.pick % Math.max(links.length, 1)];
      if (link) perform({ do: "disconnect", connection: link });
    }
  }
  await settle();
  return made;
}

const RUNS = { numRuns: Number(process.env["FAST_CHECK_RUNS"] ?? 300), seed: Number(process.env["FAST_CHECK_SEED"] ?? 1) };

test("two clients, any interleaving, lost answers and restarts: equal graphs, nothing lost, nothing twice", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60, size: "max" }), async (steps) => {
      const [service, ana, ben] = await opened("ana", "ben");
      const clients = [ana, ben] as const;
      const made: string[] = [];
      for (const step of steps) {
        const title = await take(service, clients[step.at], step);
        if (title !== undefined) made.push(title);
        for (const { engine } of clients) {
          const { state, waiting } = engine.getSnapshot();
          assert(state !== "saved" || waiting === 0, "nothing is saved while a change waits");
        }
      }
      await exchange(service, ana, ben);
      for (const client of clients) {
        assert.equal(client.engine.getSnapshot().state, "saved");
        assert.deepEqual(client.seen(), plain(service.graph));
        assert.deepEqual(client.storage.kept.batches, []);
      }
      const effects = [...service.accepted.values()].flatMap(({ request }) => (JSON.parse(request) as { operations: { type: string; node?: { title: string } }[] }).operations);
      for (const title of made) {
        const times = effects.filter(({ type, node }) => type === "node.create" && node?.title === title).length;
        assert.equal(times, 1, `${title} was created ${times} times`);
      }
    }),
    RUNS,
  );
});

test("of the texts that two people write, the last of each is with the service or in a conflict", async () => {
  const others = new Set(["delete", "undo", "redo"]);
  await fc.assert(
    fc.asyncProperty(fc.array(step.filter(({ act }) => !others.has(act)), { maxLength: 60, size: "max" }), async (steps) => {
      const [service, ana, ben] = await opened("ana", "ben");
      const clients = [ana, ben] as const;
      const last = new Map<string, readonly [ModelClient, string]>();
      for (const step of steps) {
        const client = clients[step.at];
        const nodes = [...(client.engine.getSnapshot().graph?.nodes.values() ?? [])];
        const node = step.act === "content" ? nodes[step.pick % Math.max(nodes.length, 1)] : undefined;
        if (!node) {
          await take(service, client, step);
          continue;
        }
        const text = `written ${(serial += 1)}`;
        client.set(node.id, { "metadata.content": text });
        last.set(`${step.at} ${node.id}`, [client, text]);
        await settle();
      }
      await exchange(service, ana, ben);
      const sent = [...service.accepted.values()].map(({ request }) => request).join("\n");
      for (const [client, text] of last.values()) {
        const isAsked = JSON.stringify(client.engine.getSnapshot().conflicts).includes(`"${text}"`);
        assert(isAsked || sent.includes(`"${text}"`), `${text} is lost`);
      }
    }),
    RUNS,
  );
});

test("what is ours is edited under the service's id until the answer of its creation is there", async () => {
  const [service, ana] = await opened("ana");
  ana.create(ana.note("one"));
  await settle();
  await ana.restart();
  ana.network.pending[0]?.loseAnswer();
  await settle();
  // The canvas is read, and contains what the lost answer was about.
  for (let turn = 0; turn < 2; turn += 1) {
    ana.network.pending[0]?.answer();
    await settle();
  }
  const [shown] = ana.graph.nodes.values();
  assert(shown && service.graph.nodes.has(shown.id));
  ana.set(shown.id, { "metadata.content": "written" });
  await ana.drain();
  assert.deepEqual([...service.graph.nodes.values()].map(({ metadata }) => metadata.content), ["written"]);
  assert.deepEqual(ana.seen(), plain(service.graph));
});

test("alone, undo of everything restores the canvas, and redo of everything what was made of it", async () => {
  const others = new Set(["undo", "redo", "restart", "follow"]);
  await fc.assert(
    fc.asyncProperty(fc.array(step.filter(({ act }) => !others.has(act)), { maxLength: 40, size: "max" }), async (steps) => {
      const [service, ana] = await opened("ana");
      for (const act of ["section", "note", "create", "note"] as const) await take(service, ana, { at: 0, act, pick: 0 });
      await ana.drain();
      const before = plain(service.graph);
      await ana.restart();
      await ana.drain();
      for (const step of steps) await take(service, ana, step);
      await ana.drain();
      const after = ana.seen();
      while (ana.engine.getSnapshot().undo !== undefined) ana.engine.undo();
      await ana.drain();
      assert.deepEqual(ana.seen(), before);
      assert.deepEqual(plain(service.graph), before);
      while (ana.engine.getSnapshot().redo !== undefined) ana.engine.redo();
      await ana.drain();
      assert.deepEqual(ana.seen(), after);
    }),
    RUNS,
  );
});

const written = fc.constantFrom<Fields>(
  { "metadata.content": "ben wrote this", position: { x: -7, y: -7 } },
  { "metadata.color": "#ffe48a" },
  { "metadata.tags": ["ben"] },
  { "metadata.custom": { by: "ben" } },
);

test("undo never changes what another wrote last", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step.filter(({ act }) => act !== "restart"), { maxLength: 30, size: "max" }), fc.nat(50), written, async (steps, chosen, fields) => {
      const [service, ana, ben] = await opened("ana", "ben");
      for (const step of steps) await take(service, ana, step);
      await exchange(service, ana, ben);
      const node = [...ben.graph.nodes.values()][chosen % Math.max(ben.graph.nodes.size, 1)];
      if (!node) return;
      ben.set(node.id, fields);
      await exchange(service, ben, ana);
      while (ana.engine.getSnapshot().undo !== undefined) ana.engine.undo();
      await exchange(service, ana, ben);
      const kept = service.graph.nodes.get(node.id);
      assert(kept, "the node that another changed is there");
      for (const [field, value] of Object.entries(fields)) assert.deepEqual(valueOf(kept, field), value);
    }),
    RUNS,
  );
});
