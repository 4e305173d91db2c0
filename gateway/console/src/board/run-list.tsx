/** What this account has started on the canvas: progress, cancellation, and why something failed. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, type RunSummary } from "../api.ts";
import { RunRow } from "../screens/run-row.tsx";
import { useSession } from "../session.ts";
import { useClock } from "../ui/hooks.ts";
import { Button, Failure, Waiting } from "../ui/parts.tsx";
import { isActive, isOver } from "../work.ts";
import { againAt } from "./attempts.ts";
import type { Board } from "./board.ts";
import { nodesOf } from "./videos.ts";

/** How often the list is read while something is under way, in milliseconds. */
const PACE = 2000;

export function RunList({ board, canvas, revision }: { board: Board; canvas: string; revision: string | undefined }) {
  useClock();
  const [open, setOpen] = useState<string>();
  const { data, error, refetch } = useQuery<RunSummary[]>({
    // A start and an end of work are new revisions.
    queryKey: ["runs", canvas, revision],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => api.runs(canvas, signal),
    refetchInterval: ({ state }) => (state.data?.some(({ status }) => isActive(status) || status === "canceling") ? PACE : false),
  });
  if (error && !data) return <Failure title="The queue cannot be loaded" error={error} retry={refetch} />;
  if (!data) return <Waiting label="Loading the queue" />;
  if (data.length === 0) return <p>Nothing was started on this canvas in the last days.</p>;
  return (
    <ul>
      {data.map((run) => (
        <Run key={run.id} board={board} run={run} isOpen={open === run.id} toggle={() => setOpen(open === run.id ? undefined : run.id)} changed={() => void refetch()} />
      ))}
    </ul>
  );
}

function Run({ board, run, isOpen, toggle, changed }: { board: Board; run: RunSummary; isOpen: boolean; toggle: () => void; changed: () => void }) {
  const { scopes } = useSession().session;
  const nodes = nodesOf(board.graph, [run.handle]);
  const again = isOver(run.status) ? againAt(board, nodes, scopes) : undefined;
  const ids = nodes.map(({ id }) => id);
  return (
    <RunRow
      run={run}
      isOpen={isOpen}
      toggle={toggle}
      show={
        ids.length > 0 && (
          <Button
            onClick={() => {
              board.select(ids);
              board.surface?.show(ids);
            }}
          >
            Show
          </Button>
        )
      }
      again={again && <Button onClick={again}>Again</Button>}
      canceled={changed}
    />
  );
}
