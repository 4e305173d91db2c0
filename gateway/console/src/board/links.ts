/** Connections with their nodes, and the same found by node. Each is made once for each graph, when it is first asked for. */
import type { Connection, Graph, Node } from "../sync/graph.ts";

export interface Link {
  connection: Connection;
  from: Node;
  to: Node;
}

const lists = new WeakMap<Graph, Link[]>();
const maps = new WeakMap<Graph, Map<string, Link[]>>();

export function allLinks(graph: Graph): Link[] {
  const known = lists.get(graph);
  if (known) return known;
  const links: Link[] = [];
  for (const connection of graph.connections.values()) {
    const from = graph.nodes.get(connection.fromNodeId);
    const to = graph.nodes.get(connection.toNodeId);
    if (from && to) links.push({ connection, from, to });
  }
  lists.set(graph, links);
  return links;
}

function linksByNode(graph: Graph): Map<string, Link[]> {
  const known = maps.get(graph);
  if (known) return known;
  const byNode = new Map<string, Link[]>();
  for (const link of allLinks(graph)) {
    for (const end of [link.from, link.to]) {
      const there = byNode.get(end.id);
      if (there) there.push(link);
      else byNode.set(end.id, [link]);
    }
  }
  maps.set(graph, byNode);
  return byNode;
}

export const linksAt = (graph: Graph, id: string): Link[] => linksByNode(graph).get(id) ?? [];
