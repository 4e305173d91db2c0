/** What work at a node waits for. The graph does not say it: the queues do. */
import { useMemo } from "react";
import { queuesOf, waitingIn } from "../queues.ts";
import type { Graph, Node } from "../sync/graph.ts";
import { useStatus, useWatch } from "../ui/queues.tsx";
import { isOver, statusOf } from "../work.ts";
import { useBoard } from "./context.ts";
import { statusAt } from "./gestures.ts";
import { variantOf } from "./variants.ts";

const workOf = ({ type, metadata: { job } }: Node) => ({ kind: type, operation: job?.operation ?? "" });

const isWorking = (node: Node): boolean => {
  const status = statusAt(node);
  return status !== undefined && !isOver(status);
};

/** Watches the queues of all work under way on the board. */
export function useWorkOf(graph: Graph | undefined): void {
  const queues = useMemo(() => {
    const working = graph ? [...graph.nodes.values()].filter(isWorking) : [];
    return [...new Set(working.flatMap((node) => queuesOf(workOf(node))))].toSorted();
  }, [graph]);
  useWatch(queues);
}

const WORDS: Record<string, string> = { preparing: "Waiting for its turn", queued: "Waiting for its turn", running: "Being made", finalizing: "Being stored" };

/** "Being made · 2 of 4", or that no worker is there for the work of a node that is not over. */
export function NodeStatus({ node, status }: { node: Node; status: string }) {
  const { status: queues, now } = useStatus(true, false);
  const { graph } = useBoard();
  const waiting = status === "canceling" ? undefined : waitingIn(queuesOf(workOf(node)), queues, now);
  const variant = variantOf(graph, node.id);
  return `${waiting ?? WORDS[status] ?? statusOf(status)}${variant ? ` · ${variant.number} of ${variant.ids.length}` : ""}`;
}
