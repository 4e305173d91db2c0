/** A model of the service for tests: one canvas, with the rules of batches that the engine relies on. */
import type { components } from "../contract.ts";
import { Problem } from "../errors.ts";
import type { Answer, Kept, Request, Storage, Transport } from "./types.ts";
import { Draft, type Graph, isSection, type Node, same, withFields } from "./graph.ts";

type Operation = components["schemas"]["Operation"];
type CanvasChanges = components["schemas"]["CanvasChanges"];
type Canvas = components["schemas"]["Canvas"];

const unprocessable = (message: string) => new Problem(422, message, undefined, undefined, { fields: [{ field: "operations[0]", message }] });

export class Service {
  graph: Graph = { title: "Model", nodes: new Map(), connections: new Map() };
  revision = "r0";
  /** Every batch that took effect, by key. */
  readonly accepted = new Map<string, { request: string; answer: Answer }>();
  /** The most revisions back that changes are known. */
  horizon = 1000;
  #history: { revision: string; graph: Graph; actor: string }[] = [{ revision: "r0", graph: this.graph, actor: "" }];
  #made = 0;

  read(): Canvas {
    const { title, nodes, connections } = this.graph;
    const shown = { title, revision: this.revision, nodes: [...nodes.values()], connections: [...connections.values()] };
    return structuredClone({ id: "c", handle: "canvas:u:c", ownerUid: "u", createdAt: "", updatedAt: "", ...shown });
  }

  changes(since: string): CanvasChanges {
    const at = this.#history.findLastIndex(({ revision }) => revision === since);
    const lists = { changedNodeIds: [] as string[], deletedNodeIds: [] as string[], changedConnectionIds: [] as string[], deletedConnectionIds: [] as string[] };
    const answer = { since, revision: this.revision, activity: [] as CanvasChanges["activity"], nodes: [] as Node[], connections: [] as Canvas["connections"] };
    const old = this.#history[at]?.graph;
    if (!old || this.#history.length - at > this.horizon) return { ...answer, ...lists, complete: false };
    for (const kind of ["nodes", "connections"] as const) {
      const [changed, deleted] = kind === "nodes" ? [lists.changedNodeIds, lists.deletedNodeIds] : [lists.changedConnectionIds, lists.deletedConnectionIds];
      for (const [id, item] of this.graph[kind]) {
        if (same(old[kind].get(id), item)) continue;
        changed.push(id);
        answer[kind].push(item as never);
      }
      for (const id of old[kind].keys()) if (!this.graph[kind].has(id)) deleted.push(id);
    }
    for (const { revision, actor } of this.#history.slice(at + 1)) {
      const by = { ownerUid: "u", surface: "browser", label: actor } as const;
      answer.activity.unshift({ id: revision, type: "operations.applied", at: "2026-01-01T00:00:00Z", revision, actor: by, summary: "changed the canvas", nodeIds: [] });
    }
    return structuredClone({ ...answer, ...lists, complete: true });
  }

  apply(request: Request, actor: string): Answer {
    const { idempotencyKey, ...rest } = request;
    const earlier = this.accepted.get(idempotencyKey);
    const canvas = () => ({ revision: this.revision, title: this.graph.title });
    if (earlier) {
      if (earlier.request !== JSON.stringify(rest)) throw new Problem(409, "the key was used for another request");
      return { ...earlier.answer, canvas: canvas(), replayed: true };
    }
    if (request.baseRevision !== this.revision) throw new Problem(409, "the canvas has changed since baseRevision");
    if (request.operations.length === 0 || request.operations.length > 200) throw new Problem(400, "operations");
    const draft = new Draft(this.graph);
    const resolvedIds: Record<string, string> = {};
    for (const operation of request.operations) this.#run(draft, operation, resolvedIds);
    this.graph = draft.graph;
    this.revision = `r${this.#history.length}`;
    this.#history.push({ revision: this.revision, graph: this.graph, actor });
    const answer = { canvas: canvas(), replayed: false, resolvedIds };
    this.accepted.set(idempotencyKey, { request: JSON.stringify(rest), answer });
    return answer;
  }

  #run(draft: Draft, operation: Operation, resolvedIds: Record<string, string>): void {
    const real = (id: string) => resolvedIds[id] ?? id;
    const named = (id: string): Node => {
      const node = draft.node(real(id));
      if (!node) throw unprocessable(`node ${id} does not exist`);
      return node;
    };
    const inSection = (node: Node): Node => {
      const home = node.metadata.sectionId;
      if (home === undefined) return node;
      const section = draft.node(real(home));
      if (!section || !isSection(section)) throw unprocessable(`${home} is no Section`);
      return withFields(node, { "metadata.sectionId": section.id });
    };
    const fresh = (clientId: string | undefined): string => {
      this.#made += 1;
      const id = `s${this.#made}`;
      if (clientId !== undefined) resolvedIds[clientId] = id;
      return id;
    };
    switch (operation.type) {
      case "node.create": {
        const id = fresh(operation.clientId);
        const { type, title = type, position = { x: 0, y: 0 }, width = 320, height = 320, asset, metadata = {} } = operation.node;
        const kept = Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== null));
        const node = { id, handle: `node:${id}`, type, title, position, width, height, metadata: { ...kept, createdBy: "user" }, ...(asset && { asset }) };
        return draft.putNode(inSection(node as Node));
      }
      case "node.duplicate": {
        const { job, provenance, history, ...metadata } = named(operation.nodeId).metadata;
        const id = fresh(operation.clientId);
        return draft.putNode({ ...named(operation.nodeId), id, handle: `node:${id}`, position: operation.position, metadata });
      }
      case "node.move":
        return draft.putNode({ ...named(operation.nodeId), position: operation.position });
      case "node.update": {
        const { metadata = {}, ...members } = operation.patch;
        const fields = Object.fromEntries(Object.entries(metadata ?? {}).map(([key, value]) => [`metadata.${key}`, value]));
        return draft.putNode(inSection(withFields({ ...named(operation.nodeId), ...members } as Node, fields)));
      }
      case "node.delete":
        return draft.dropNode(named(operation.nodeId).id);
      case "node.restore":
        return this.#restoreNode(draft, operation.nodeId);
      case "connection.create":
      case "connection.restore": {
        const former = operation.type === "connection.restore" ? this.#last("connections", operation.connectionId) : undefined;
        const { purpose = "flow", role } = former ?? (operation as { purpose?: "flow"; role?: "style" });
        const from = named(former?.fromNodeId ?? (operation as { fromNodeId: string }).fromNodeId).id;
        const to = named(former?.toNodeId ?? (operation as { toNodeId: string }).toNodeId).id;
        if (from === to || draft.between(from, to, purpose)) throw unprocessable("the connection exists");
        const id = former?.id ?? fresh((operation as { clientId?: string }).clientId);
        const ends = { fromNodeId: from, toNodeId: to, from: `node:${from}`, to: `node:${to}` };
        return draft.putConnection({ id, handle: `connection:${id}`, ...ends, purpose, ...(role && { role }) });
      }
      case "connection.update": {
        const connection = draft.connection(real(operation.connectionId));
        if (!connection) throw unprocessable("the connection does not exist");
        const { type, connectionId, ...fields } = operation;
        return draft.putConnection(withFields(connection, fields));
      }
      case "connection.delete": {
        if (!draft.connection(real(operation.connectionId))) throw unprocessable("the connection does not exist");
        return draft.dropConnection(real(operation.connectionId));
      }
      case "canvas.update":
        draft.title = operation.title;
    }
  }

  #restoreNode(draft: Draft, id: string): void {
    const former = this.#last("nodes", id);
    if (!former || draft.node(id)) throw unprocessable("nothing to restore");
    const home = former.metadata.sectionId;
    draft.putNode(home === undefined || draft.node(home) ? former : withFields(former, { "metadata.sectionId": null }));
    if (!isSection(former)) return;
    for (const node of this.#before(id)?.nodes.values() ?? []) {
      const member = draft.node(node.id);
      if (node.metadata.sectionId === id && member && member.metadata.sectionId === undefined) {
        draft.putNode(withFields(member, { "metadata.sectionId": id }));
      }
    }
  }

  #before = (id: string): Graph | undefined => this.#history.findLast(({ graph }) => graph.nodes.has(id) || graph.connections.has(id))?.graph;

  #last<Kind extends "nodes" | "connections">(kind: Kind, id: string) {
    const former = this.#before(id)?.[kind].get(id) as (Kind extends "nodes" ? Node : Canvas["connections"][number]) | undefined;
    if (!former) throw unprocessable(`${id} was never here`);
    return former;
  }
}

/** A request or a pause that waits for the test. */
export interface Pending {
  what: string;
  answer: () => void;
  /** The request takes effect, and its answer is lost. */
  loseAnswer: () => void;
  /** The request does not arrive. */
  lose: () => void;
}

/** A network in which every request waits until the test decides what becomes of it. */
export class Network {
  readonly pending: Pending[] = [];
  #service: Service;

  constructor(service: Service) {
    this.#service = service;
  }

  transport(actor: string): Transport {
    return {
      read: () => this.#request("read", () => this.#service.read()),
      changes: (since) => this.#request("changes", () => this.#service.changes(since)),
      apply: (request) => {
        const body = structuredClone(request);
        return this.#request("apply", () => this.#service.apply(body, actor));
      },
    };
  }

  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        const at = this.pending.indexOf(entry);
        if (at >= 0) this.pending.splice(at, 1);
        resolve();
      };
      const entry: Pending = { what: "wait", answer: done, loseAnswer: done, lose: done };
      signal.addEventListener("abort", done);
      this.pending.push(entry);
    });
  }

  #request<T>(what: string, effect: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const lost = new Problem(0, "The service cannot be reached.");
      const end = (how: () => void) => () => {
        const at = this.pending.indexOf(entry);
        if (at >= 0) this.pending.splice(at, 1);
        how();
      };
      const attempt = (then: (value: T) => void) => {
        try {
          then(effect());
        } catch (error) {
          reject(error);
        }
      };
      const entry: Pending = {
        what,
        answer: end(() => attempt(resolve)),
        loseAnswer: end(() => attempt(() => reject(lost))),
        lose: end(() => reject(lost)),
      };
      this.pending.push(entry);
    });
  }
}

/** What the storage of a browser keeps: copies. */
export class MemoryStorage implements Storage {
  kept: Kept = { batches: [], aliases: {}, conflicts: [] };

  async load(): Promise<Kept> {
    return structuredClone(this.kept);
  }

  async save(kept: Kept): Promise<void> {
    this.kept = structuredClone(kept);
  }
}
