/** What is said when work on the board has ended. */
import { nameOf } from "../sync/change.ts";
import type { Graph, Node } from "../sync/graph.ts";
import { isOver } from "../work.ts";
import { statusAt } from "./gestures.ts";

/** A start of which no node waits any more. */
export interface Ending {
  /** All its nodes, and the first that failed. */
  nodes: Node[];
  failed: Node | undefined;
  text: string;
}

const ENDS: Record<string, string> = { succeeded: "ready", canceled: "canceled", expired: "not kept any more" };
const NOUNS: Record<string, string> = { image: "image", video: "video" };

/** The nodes whose work has ended between two graphs. */
export function endedNodes(before: Graph, after: Graph): Node[] {
  return [...after.nodes.values()].filter((node) => {
    const [was, { job }] = [before.nodes.get(node.id), node.metadata];
    return was && was !== node && job && isOver(job.status) && (was.metadata.job?.run !== job.run || !isOver(was.metadata.job.status));
  });
}

/** The starts whose last node has ended between two graphs. One start is said once, however many nodes it fills. */
export function endings(before: Graph, after: Graph): Ending[] {
  const runs = new Set(endedNodes(before, after).map(({ metadata: { job } }) => job?.run));
  if (runs.size === 0) return [];
  const all = [...after.nodes.values()];
  return [...runs].flatMap((run) => {
    const nodes = all.filter(({ metadata: { job } }) => job?.run === run);
    return nodes.every(({ metadata: { job } }) => job && isOver(job.status)) ? [endingOf(nodes)] : [];
  });
}

/** `statuses`: how the work at each node ended. */
export function endingOf(nodes: Node[], statuses = nodes.map((node) => statusAt(node) ?? "")): Ending {
  const failed = nodes.filter((_, index) => statuses[index] === "failed");
  const [first = nodes[0]] = failed;
  const name = first ? nameOf(first) : "";
  const noun = `${NOUNS[nodes[0]?.type ?? ""] ?? "node"}s`;
  const count = (number: number) => (number === nodes.length ? `${number} ${noun}` : `${number} of ${nodes.length} ${noun}`);
  const text = () => {
    if (failed.length > 0) return nodes.length === 1 ? `${name} failed.` : `${count(failed.length)} failed: ${name}.`;
    const ready = statuses.filter((status) => status === "succeeded").length;
    const word = ENDS[ready > 0 ? "succeeded" : (statuses[0] ?? "")] ?? statuses[0];
    return nodes.length === 1 ? `${name} is ${word}.` : `${count(ready > 0 ? ready : nodes.length)} are ${word}: ${name}.`;
  };
  return { nodes, failed: failed[0], text: text() };
}
