/** What this account has started on the canvas: progress, cancellation, and why something failed. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, type RunSummary } from "../api.ts";
import { ago, count, lowered } from "../format.ts";
import { queuesOf } from "../queues.ts";
import { CancelDialog } from "../screens/cancel.tsx";
import { Reason } from "../screens/reason.tsx";
import { useClock } from "../ui/hooks.ts";
import { useWatch } from "../ui/queues.tsx";
import { Button, Failure, messageOf, Waiting } from "../ui/parts.tsx";
import { useSession } from "../session.ts";
import { attemptAt } from "./attempts.ts";
import type { Board } from "./board.ts";
import styles from "./run-list.module.css";
import { isActive, nameOf, stateOf } from "../work.ts";
import { nodesOf } from "./videos.ts";

/** How often the list is read while something is under way, in milliseconds. */
const PACE = 2000;

export function RunList({ board, canvas, revision }: { board: Board; canvas: string; revision: string | undefined }) {
  useClock();
  const { data, error, refetch } = useQuery<RunSummary[]>({
    // A start and an end of work are new revisions.
    queryKey: ["runs", canvas, revision],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => api.runs(canvas, signal),
    refetchInterval: ({ state }) => (state.data?.some(({ status }) => isActive(status) || status === "canceling") ? PACE : false),
  });
  if (error && !data) return <Failure title="The runs cannot be loaded" error={error} retry={refetch} />;
  if (!data) return <Waiting label="Loading the runs" />;
  if (data.length === 0) return <p className={styles.empty}>Nothing was started on this canvas in the last days.</p>;
  return (
    <ul className={styles.list}>
      {data.map((run) => (
        <Run key={run.id} board={board} run={run} changed={() => void refetch()} />
      ))}
    </ul>
  );
}

function Run({ board, run, changed }: { board: Board; run: RunSummary; changed: () => void }) {
  const [isOpen, setIsOpen] = useState(false);
  const [isCanceling, setIsCanceling] = useState(false);
  const { status, outputs, creditCost } = run;
  const { scopes } = useSession().session;
  const nodes = nodesOf(board.graph, [run.handle]);
  const attempt = status === "failed" ? attemptAt(board, nodes, scopes) : undefined;
  useWatch(isActive(status) ? queuesOf(run) : []);
  const parts = [lowered(stateOf(run)), outputs.total > 1 && `${outputs.done} of ${outputs.total}`, creditCost > 0 && count(creditCost, "credit")];
  return (
    <li className={styles.run} data-status={isActive(status) ? "active" : status}>
      <div className={styles.head}>
        <strong>{nameOf(run)}</strong>
        <time dateTime={run.createdAt}>{ago(run.createdAt)}</time>
      </div>
      <p>{parts.filter(Boolean).join(" · ")}</p>
      {isActive(status) && <progress aria-label={`Progress of ${run.operation}`} max={outputs.total} {...(outputs.done > 0 && { value: outputs.done })} />}
      <div className={styles.buttons}>
        {nodes.length > 0 && (
          <Button
            onClick={() => {
              board.select(nodes.map(({ id }) => id));
              board.surface?.show(nodes.map(({ id }) => id));
            }}
          >
            Show
          </Button>
        )}
        {isActive(status) && <Button onClick={() => setIsCanceling(true)}>Cancel</Button>}
        {status === "failed" && (
          <Button aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            Why
          </Button>
        )}
        {attempt && <Button onClick={attempt}>New attempt…</Button>}
      </div>
      {isOpen && <Why run={run.handle} />}
      {isCanceling && <CancelDialog run={run} hasTargets close={() => setIsCanceling(false)} canceled={changed} />}
    </li>
  );
}

function Why({ run }: { run: string }) {
  const { data, error } = useQuery({ queryKey: ["failure", run], queryFn: ({ signal }) => api.failure(run, signal) });
  if (error) return <p className={styles.reason}>{messageOf(error)}</p>;
  return data ? <Reason failure={data} /> : null;
}
