/** The ids of this client and those of the service for the same things. */
import type { Change } from "./change.ts";
import { type Connection, Draft, type Graph, graphOf, type Node } from "./graph.ts";
import type { Canvas, CanvasChanges } from "./types.ts";

export class Aliases {
  #ours = new Map<string, string>();
  #theirs = new Map<string, string>();

  set(ours: string, real: string): void {
    this.#ours.set(real, ours);
    this.#theirs.set(ours, real);
  }

  readonly real = (id: string): string => this.#theirs.get(id) ?? id;
  readonly local = (id: string): string => this.#ours.get(id) ?? id;

  /** This client's ids by the service's. */
  get kept(): Record<string, string> {
    return Object.fromEntries(this.#ours);
  }

  graph(canvas: Canvas): Graph {
    if (this.#ours.size === 0) return graphOf(canvas);
    const nodes = canvas.nodes.map((node) => this.node(node));
    const connections = canvas.connections.map((connection) => this.connection(connection));
    return graphOf({ title: canvas.title, nodes, connections });
  }

  /** `graph` with the changes of the service. */
  patched(graph: Graph, changes: CanvasChanges): Graph {
    const draft = new Draft(graph);
    for (const id of changes.deletedConnectionIds) draft.dropConnection(this.local(id));
    for (const id of changes.deletedNodeIds) draft.dropNode(this.local(id));
    for (const node of changes.nodes ?? []) draft.putNode(this.node(node));
    for (const connection of changes.connections ?? []) draft.putConnection(this.connection(connection));
    return draft.graph;
  }

  node(node: Node): Node {
    const id = this.local(node.id);
    const section = node.metadata.sectionId;
    const home = section === undefined ? undefined : this.local(section);
    return id === node.id && home === section ? node : { ...node, id, metadata: { ...node.metadata, ...(home !== undefined && { sectionId: home }) } };
  }

  connection(connection: Connection): Connection {
    const { id, fromNodeId, toNodeId } = connection;
    return { ...connection, id: this.local(id), fromNodeId: this.local(fromNodeId), toNodeId: this.local(toNodeId) };
  }

  /** A change that may have been made before an alias was known, when what is ours was shown under the service's id. */
  change(change: Change): Change {
    const { local } = this;
    switch (change.do) {
      case "create":
        return { ...change, node: this.node(change.node) };
      case "duplicate":
        return { ...change, of: local(change.of), node: this.node(change.node) };
      case "delete":
        return { ...change, node: this.node(change.node), connections: change.connections.map((one) => this.connection(one)), members: change.members.map(local) };
      case "restore":
        return { ...change, node: this.node(change.node), members: change.members.map(local) };
      case "update": {
        const home = change.set["metadata.sectionId"];
        return { ...change, id: local(change.id), set: typeof home === "string" ? { ...change.set, "metadata.sectionId": local(home) } : change.set };
      }
      default:
        return { ...change, connection: this.connection(change.connection) };
    }
  }
}
