/** The model of the service, on which the properties of the sync engine are tested, against the service itself. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { Problem } from "../../gateway/console/src/errors.ts";
import { arrangement } from "../../gateway/console/src/board/layout.ts";
import { graphOf } from "../../gateway/console/src/sync/graph.ts";
import { Service } from "../../gateway/console/src/sync/model.ts";
import { apply, BASE_URL, type Canvas, type Graph, read, send, TOKEN } from "./service.ts";

type Operation = Record<string, unknown> & { type: string };
type Choose = <T>(items: readonly T[]) => T;

/** Numbers that are the same in every run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}

interface Known {
  nodes: string[];
  connections: string[];
}

/** An operation that often fits and sometimes does not. Ids are names that both sides translate. */
function operation(pick: Choose, known: Known, newName: () => string): Operation {
  const node = () => pick(known.nodes.length > 0 ? known.nodes : ["missing"]);
  const connection = () => pick(known.connections.length > 0 ? known.connections : ["missing"]);
  const place = () => ({ x: pick([0, 40, 80]), y: pick([0, 500, 1000]) });
  const make = (): Operation => {
    const clientId = newName();
    known.nodes.push(clientId);
    const metadata = pick([{}, { content: "text" }, { section: true }, { sectionId: node() }]);
    return { type: "node.create", clientId, node: { type: "sticky", title: clientId, position: place(), width: 100, height: 100, metadata } };
  };
  const connect = (): Operation => {
    const clientId = newName();
    known.connections.push(clientId);
    return { type: "connection.create", clientId, fromNodeId: node(), toNodeId: node(), purpose: pick(["flow", "list"]) };
  };
  const copy = (): Operation => {
    const clientId = newName();
    known.nodes.push(clientId);
    return { type: "node.duplicate", clientId, nodeId: node(), position: place() };
  };
  return pick([
    make,
    make,
    connect,
    copy,
    () => ({ type: "node.move", nodeId: node(), position: place() }),
    () => ({ type: "node.update", nodeId: node(), patch: { title: pick(["one", "two"]), metadata: { content: pick(["more", null]) } } }),
    () => ({ type: "node.delete", nodeId: node() }),
    () => ({ type: "node.restore", nodeId: node() }),
    () => ({ type: "connection.delete", connectionId: connection() }),
    () => ({ type: "connection.restore", connectionId: connection() }),
    () => ({ type: "connection.update", connectionId: connection(), purpose: pick(["flow", "list"]) }),
    () => ({ type: "canvas.update", title: pick(["a", "b"]) }),
  ])();
}

/** The same operation with the ids that one side has given. */
function translated(operation: Operation, ids: Map<string, string>): Operation {
  const real = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(real);
    if (typeof value !== "object" || value === null) return value;
    const references = ["nodeId", "connectionId", "fromNodeId", "toNodeId", "sectionId"];
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, references.includes(key) ? (ids.get(String(one)) ?? one) : real(one)]));
  };
  return real(operation) as Operation;
}

/** A graph with the names in place of the ids of one side. */
function named({ title, nodes, connections }: Pick<Graph, "title" | "nodes" | "connections">, ids: Map<string, string>): unknown {
  const names = new Map([...ids].map(([name, id]) => [id, name]));
  const name = (id: string) => names.get(id) ?? id;
  const sorted = (entries: (readonly [string, unknown])[]) => entries.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    title,
    nodes: sorted(
      nodes.map(({ id, type, title, position, width, height, metadata: { content = "", section = false, sectionId } }) => {
        const home = sectionId === undefined ? undefined : name(sectionId);
        return [name(id), { type, title, position, width, height, content, section, home }];
      }),
    ),
    connections: sorted(connections.map(({ id, fromNodeId, toNodeId, purpose }) => [name(id), { from: name(fromNodeId), to: name(toNodeId), purpose }])),
  };
}

test("the model accepts and refuses what the service does, and comes to the same graph", async () => {
  for (const seed of [1, 2, 3, 4, 5, 6]) {
    const next = random(seed);
    const pick: Choose = (items) => items[Math.floor(next() * items.length)] as (typeof items)[number];
    const known: Known = { nodes: [], connections: [] };
    let made = 0;
    const model = new Service();
    model.graph = { ...model.graph, title: "Model" };
    const { canvas } = await send<{ canvas: Canvas }>("POST", "/canvases", { title: "Model" });
    const ids = { model: new Map<string, string>(), service: new Map<string, string>() };
    let { revision } = canvas;
    let refused = 0;
    for (let turn = 0; turn < 60; turn += 1) {
      const operations = Array.from({ length: 1 + Math.floor(next() * 3) }, () => operation(pick, known, () => `name${(made += 1)}`));
      const idempotencyKey = randomUUID();
      const response = await fetch(`${BASE_URL}/api/canvas-agent/v1/canvases/${canvas.handle}/operations`, {
        method: "POST",
        headers: { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json", Prefer: "return=minimal" },
        body: JSON.stringify({ baseRevision: revision, idempotencyKey, force: true, operations: operations.map((one) => translated(one, ids.service)) }),
      });
      const answer = (await response.json()) as { canvas: Canvas; resolvedIds: Record<string, string> };
      let verdict = 200;
      try {
        const request = { baseRevision: model.revision, idempotencyKey, operations: operations.map((one) => translated(one, ids.model)) };
        const { resolvedIds } = model.apply(request as never, "model");
        for (const [name, id] of Object.entries(resolvedIds)) ids.model.set(name, id);
      } catch (error) {
        assert(error instanceof Problem, String(error));
        verdict = error.status;
        refused += 1;
      }
      assert.equal(verdict < 400, response.ok, `seed ${seed}, turn ${turn}: ${JSON.stringify(operations)} ${JSON.stringify(answer)}`);
      if (!response.ok) continue;
      revision = answer.canvas.revision;
      for (const [name, id] of Object.entries(answer.resolvedIds)) ids.service.set(name, id);
      assert.deepEqual(named(model.read() as unknown as Graph, ids.model), named(await read(canvas), ids.service), `seed ${seed}, turn ${turn}: ${JSON.stringify(operations)}`);
    }
    assert(refused > 0 && refused < 60, "both outcomes are tried");
  }
});

test("nodes that the console arranges are in the order in which the service reads the members of a Section", async () => {
  const next = random(7);
  const among = (least: number, most: number) => least + Math.floor(next() * (most - least));
  const { canvas } = await send<{ canvas: Canvas }>("POST", "/canvases", { title: "Order" });
  const boards = 200;
  for (let board = 0; board < boards; board += 1) {
    const frame = { type: "node.create", clientId: "s", node: { type: "sticky", title: `S${board}`, position: { x: 0, y: board * 20_000 }, width: 2000, height: 2000, metadata: { section: true } } };
    const members = Array.from({ length: among(2, 9) }, (_, at) => ({
      type: "node.create",
      clientId: `m${at}`,
      node: { type: "text", title: "", position: { x: among(100, 1400), y: board * 20_000 + among(100, 1400) }, width: among(40, 500), height: among(40, 500), metadata: { sectionId: "s" } },
    }));
    await apply(canvas, [frame, ...members]);
  }
  const before = await read(canvas);
  const graph = graphOf(before as never);
  const sections = before.nodes.filter(({ metadata }) => metadata.section);
  const orders = sections.map(({ id }) => {
    const [operation] = arrangement(graph, [...graph.nodes.values()].filter((node) => node.id === id), "row", (id) => id);
    return (operation as { nodeIds: string[] }).nodeIds;
  });
  for (let at = 0; at < boards; at += 40) await apply(canvas, sections.slice(at, at + 40).map(({ id }) => ({ type: "layout.arrange", layout: "row", sectionId: id })));
  const after = await read(canvas);
  for (const [index, { id }] of sections.entries()) {
    const members = after.nodes.filter(({ metadata }) => metadata.sectionId === id).toSorted((a, b) => a.position.x - b.position.x);
    assert.deepEqual(orders[index], members.map((member) => member.id), `board ${index}`);
  }
});
