/**
 * Layout operations of the service. What an arrangement comes to is decided there alone, for people as for agents: it looks for free
 * places, lets Sections grow, and measures texts. So it is shown when the answer is there. It is one step of the history here.
 */
import { transportOf } from "../api.ts";
import type { components } from "../contract.ts";
import { Problem } from "../errors.ts";
import type { Change } from "../sync/change.ts";
import { type Graph, type Node, same, valueOf } from "../sync/graph.ts";
import { isLocked, readingRows, unitsOf } from "./arrange.ts";
import type { Board } from "./board.ts";
import { keep } from "./engines.ts";
import { startOn } from "./runs.ts";

type Operation = components["schemas"]["Operation"];
export type Arrangement = "row" | "column" | "grid" | "tidy";

/** The most nodes that the service arranges at a time. */
export const MOST_ARRANGED = 200;

/** The operations that arrange nodes. Tidy keeps the rows that are there, and fits a Section that is alone to its members. */
export function arrangement(graph: Graph, nodes: Node[], how: Arrangement, real: (id: string) => string): Operation[] {
  const [section] = nodes.length === 1 ? nodes : [];
  const members = section ? [...graph.nodes.values()].filter(({ metadata }) => metadata.sectionId === section.id) : unitsOf(graph, nodes.map(({ id }) => id));
  const rows = readingRows(members.filter((node) => !isLocked(node)));
  const nodeIds = rows.flat().map(({ id }) => real(id));
  if (nodeIds.length === 0) return [];
  const columns = Math.max(...rows.map(({ length }) => length));
  return [
    { type: "layout.arrange", nodeIds, ...(how === "tidy" ? { layout: "grid" as const, columns } : { layout: how }) },
    ...(section && !isLocked(section) ? [{ type: "section.fit", nodeId: real(section.id) } as const] : []),
  ];
}

/** What layout operations change of a node. */
const FIELDS = ["position", "width", "height", "metadata.fontSize"];

/** The change that puts a node back. */
function undoOf(before: Graph, after: Graph, id: string): Change[] {
  const [from, to] = [before.nodes.get(id), after.nodes.get(id)];
  const fields = from && to ? FIELDS.filter((field) => !same(valueOf(from, field), valueOf(to, field))) : [];
  if (!from || !to || fields.length === 0) return [];
  const values = (node: Node) => Object.fromEntries(fields.map((field) => [field, valueOf(node, field)]));
  return [{ do: "update", on: "node", id, set: values(from), was: values(to) }];
}

/** Does layout operations once everything is saved, on the newest revision. */
export async function layOut(board: Board, label: string, operationsOf: (graph: Graph, real: (id: string) => string) => Operation[]): Promise<void> {
  const { engine } = board;
  const release = keep(engine);
  try {
    board.settle();
    const { before, changed } = await startOn(board, async (common) => {
      const before = board.graph;
      const operations = operationsOf(before, engine.real);
      const answer = operations.length > 0 ? await transportOf(board.canvas).apply({ ...common, operations, force: true }) : undefined;
      return { before, changed: answer?.changedNodeIds ?? [] };
    });
    await engine.refresh();
    const undoToo = changed.flatMap((id) => undoOf(before, board.graph, engine.local(id)));
    if (undoToo.length > 0) engine.perform(label, [], { undoToo });
  } catch (error) {
    const reason = error instanceof Problem ? (error.fields[0]?.message ?? error.message) : "Something in this page failed.";
    board.notify(`${label} was not done: ${reason}`);
  } finally {
    release();
  }
}
