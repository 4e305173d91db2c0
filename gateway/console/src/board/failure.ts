/** Why the work of a node failed. */
import { useQuery } from "@tanstack/react-query";
import { useContext } from "react";
import { SessionContext } from "../session.ts";
import type { Node } from "../sync/graph.ts";
import { statusAt, workAt } from "./gestures.ts";
import { explained, type Failure, type Work, work } from "../work.ts";

/** How long a notice waits for the reason, in milliseconds. */
const PATIENCE = 3000;

/** Of a Recipe run, what failed at this node says more than what became of the run. */
const failureIn = (run: Work, node: string): Failure | undefined =>
  ("outputs" in run ? run.outputs.find(({ nodeHandle }) => nodeHandle === node)?.failure : undefined) ?? run.failure;

/** Why the work of a node failed, in words; undefined if this session may not know. */
export async function reasonOf(node: Node): Promise<string | undefined> {
  const run = await work.read(workAt(node) ?? "", AbortSignal.timeout(PATIENCE)).catch(() => undefined);
  const failure = run && failureIn(run, node.handle);
  return failure && explained(failure)?.happened;
}

/** Undefined until it is known, and if this session may not know: the service shows a run to who started it, for as long as it keeps it. */
export function useFailure(node: Node): Failure | undefined {
  const handle = workAt(node);
  const session = useContext(SessionContext);
  const mayKnow = session?.session.scopes.includes("job:manage") ?? false;
  const { data } = useQuery({
    queryKey: ["failed", handle],
    queryFn: ({ signal }) => work.read(handle ?? "", signal),
    enabled: statusAt(node) === "failed" && mayKnow,
    staleTime: Infinity,
    // What the service does not show now, it does not show later: nodes come into view again and again.
    retryOnMount: false,
    refetchOnWindowFocus: false,
  });
  return data && failureIn(data, node.handle);
}
