/** Connections with their nodes, found by node. Made once for each graph. */
import type { Connection, Graph, Node } from "../sync/graph.ts";

export interface Link {
  connection: Connection;
  from: Node;
  to: Node;
}

const known = new WeakMap<Graph, { all: Link[]; byNode: Map<string, Link[]> }>();

function linksOf(graph: Graph): { all: Link[]; byNode: Map<string, Link[]> } {
  const made = known.get(graph);
  if (made) return made;
  const all: Link[] = [];
  const byNode = new Map<string, Link[]>();
  for (const connection of graph.connections.values()) {
    const [from, to] = [graph.nodes.get(connection.fromNodeId), graph.nodes.get(connection.toNodeId)];
    if (!from || !to) continue;
    const link = { connection, from, to };
    all.push(link);
    for (const end of [from, to]) {
      const there = byNode.get(end.id);
      if (there) there.push(link);
      else byNode.set(end.id, [link]);
    }
  }
  const links = { all, byNode };
  known.set(graph, links);
  return links;
}

export const allLinks = (graph: Graph): Link[] => linksOf(graph).all;
export const linksAt = (graph: Graph, id: string): Link[] => linksOf(graph).byNode.get(id) ?? [];
