/** The graph of a canvas as values, and a draft of one that is changed in place. */
import type { components } from "../contract.ts";

export type Node = components["schemas"]["Node"];
export type Connection = components["schemas"]["Connection"];
export type Purpose = Connection["purpose"];
export type Role = NonNullable<Connection["role"]>;

export interface Graph {
  title: string;
  /** By id, in the order of creation. */
  nodes: ReadonlyMap<string, Node>;
  connections: ReadonlyMap<string, Connection>;
}

/** Values of fields by name. A field is a member, or a key of a node's metadata as `metadata.key`. What is absent is null. */
export type Fields = Record<string, unknown>;

const METADATA = "metadata.";

export function valueOf(item: object, field: string): unknown {
  const record = item as Record<string, unknown>;
  if (!field.startsWith(METADATA)) return record[field] ?? null;
  return (record["metadata"] as Record<string, unknown>)[field.slice(METADATA.length)] ?? null;
}

/** A copy of `item` with other values in some fields. */
export function withFields<T extends object>(item: T, fields: Fields): T {
  const copy = { ...item } as Record<string, unknown>;
  for (const [field, value] of Object.entries(fields)) {
    const isMetadata = field.startsWith(METADATA);
    if (isMetadata && copy["metadata"] === (item as Record<string, unknown>)["metadata"]) copy["metadata"] = { ...(copy["metadata"] as object) };
    const target = isMetadata ? (copy["metadata"] as Record<string, unknown>) : copy;
    const key = isMetadata ? field.slice(METADATA.length) : field;
    if (value === null || value === undefined) delete target[key];
    else target[key] = value;
  }
  return copy as T;
}

/** Whether two values of JSON are equal. The order of members does not count. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b || ((a ?? null) === null && (b ?? null) === null)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return [...new Set([...Object.keys(left), ...Object.keys(right)])].every((key) => same(left[key], right[key]));
}

export const isSection = (node: Node): boolean => node.type === "sticky" && node.metadata.section === true;

function byId<Item extends { id: string }>(items: Item[]): Map<string, Item> {
  const map = new Map<string, Item>();
  for (const item of items) map.set(item.id, item);
  return map;
}

/** The connections are put into a map when they are first asked for, which is after the first frame of a board. */
export function graphOf({ title, nodes, connections }: { title: string; nodes: Node[]; connections: Connection[] }): Graph {
  let byConnection: Map<string, Connection> | undefined;
  return {
    title,
    nodes: byId(nodes),
    get connections() {
      return (byConnection ??= byId(connections));
    },
  };
}

/** A graph that is changed in place. Its maps are copied at the first change, and without one it stays the same graph. */
export class Draft {
  title: string;
  #graph: Graph;
  #ownNodes: Map<string, Node> | undefined;
  #ownConnections: Map<string, Connection> | undefined;
  /** The connections of each node, made when they are first asked for. */
  #touching: Map<string, Set<string>> | undefined;

  constructor(graph: Graph) {
    this.title = graph.title;
    this.#graph = graph;
  }

  get #nodes(): ReadonlyMap<string, Node> {
    return this.#ownNodes ?? this.#graph.nodes;
  }

  get #connections(): ReadonlyMap<string, Connection> {
    return this.#ownConnections ?? this.#graph.connections;
  }

  get graph(): Graph {
    if (this.#ownNodes || this.#ownConnections || this.title !== this.#graph.title) {
      this.#graph = { title: this.title, nodes: this.#nodes, connections: this.#connections };
    }
    // What was handed out does not change any more.
    this.#ownNodes = undefined;
    this.#ownConnections = undefined;
    return this.#graph;
  }

  node(id: string): Node | undefined {
    return this.#nodes.get(id);
  }

  connection(id: string): Connection | undefined {
    return this.#connections.get(id);
  }

  putNode(node: Node): void {
    this.#ownNodes ??= new Map(this.#nodes);
    this.#ownNodes.set(node.id, node);
  }

  putConnection(connection: Connection): void {
    this.#ownConnections ??= new Map(this.#connections);
    this.#ownConnections.set(connection.id, connection);
    this.#index(connection);
  }

  dropConnection(id: string): void {
    const connection = this.#connections.get(id);
    if (!connection) return;
    this.#ownConnections ??= new Map(this.#connections);
    this.#ownConnections.delete(id);
    for (const end of [connection.fromNodeId, connection.toNodeId]) this.#touching?.get(end)?.delete(id);
  }

  /** Deletes a node with its connections, and frees the members of a Section. */
  dropNode(id: string): void {
    for (const connection of this.connectionsOf(id)) this.dropConnection(connection.id);
    for (const member of this.membersOf(id)) this.putNode(withFields(member, { "metadata.sectionId": null }));
    this.#ownNodes ??= new Map(this.#nodes);
    this.#ownNodes.delete(id);
  }

  connectionsOf(id: string): Connection[] {
    if (!this.#touching) {
      this.#touching = new Map();
      for (const connection of this.#connections.values()) this.#index(connection);
    }
    return [...(this.#touching.get(id) ?? [])].flatMap((touching) => this.#connections.get(touching) ?? []);
  }

  membersOf(id: string): Node[] {
    const section = this.#nodes.get(id);
    if (!section || !isSection(section)) return [];
    return [...this.#nodes.values()].filter((node) => node.metadata.sectionId === id);
  }

  /** The connection of these ends and this purpose. There is at most one. */
  between(from: string, to: string, purpose: Purpose): Connection | undefined {
    return this.connectionsOf(from).find((one) => one.fromNodeId === from && one.toNodeId === to && one.purpose === purpose);
  }

  #index(connection: Connection): void {
    if (!this.#touching) return;
    for (const end of [connection.fromNodeId, connection.toNodeId]) {
      const ids = this.#touching.get(end) ?? new Set();
      this.#touching.set(end, ids.add(connection.id));
    }
  }
}
