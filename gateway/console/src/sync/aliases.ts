/** The ids of this client and those of the service for the same things. */
import { type Connection, type Graph, graphOf, type Node } from "./graph.ts";
import type { Canvas } from "./types.ts";

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
}
