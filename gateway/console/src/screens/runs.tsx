/** Everything that the account has started: images, Actions, videos and Recipes, wherever they were started. */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { attemptPath, canvasOf, showPath } from "../address.ts";
import type { RunSummary } from "../api.ts";
import { useRunEvents } from "../live.ts";
import { useSession } from "../session.ts";
import { useAddress, useClock, useNextPages, usePages, useTitle } from "../ui/hooks.ts";
import { Button, Empty, Failure, Waiting } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import { Choice } from "../ui/search.tsx";
import { Shell } from "../ui/shell.tsx";
import { endedSince, type Filter, isOver, KINDS, type RunPages, STATUSES, statusOf, work } from "../work.ts";
import { CanvasFilter, useCanvasNames } from "./canvas-filter.tsx";
import list from "./list.module.css";
import { RunDetails } from "./run-details.tsx";
import { RunRow } from "./run-row.tsx";
import styles from "./runs.module.css";

/** How long a change of a run waits for others before the list is read again, in milliseconds. */
const REST = 400;
/** How often the list is read while something is under way, in case that no event arrives. */
const PACE = 15_000;

export function Runs() {
  useTitle("Queue");
  const { session } = useSession();
  return (
    <Shell>
      {session.scopes.includes("job:manage") ? (
        <RunsOfAccount />
      ) : (
        <Empty title="This session may not see the queue">
          <p className={parts.text}>The token that you signed in with does not have the scope job:manage.</p>
        </Empty>
      )}
    </Shell>
  );
}

const only = <Key extends string>(names: Record<Key, string>, text: string | null): Key | undefined =>
  text !== null && Object.hasOwn(names, text) ? (text as Key) : undefined;

function RunsOfAccount() {
  useClock();
  const { params, set, reset } = useAddress();
  const kind = only(KINDS, params.get("kind"));
  const status = only(STATUSES, params.get("state"));
  const canvasId = params.get("canvas") ?? undefined;
  const filter: Filter = { ...(kind && { kind }), ...(status && { status }), ...(canvasId !== undefined && { canvasId }) };
  const isFiltered = Object.keys(filter).length > 0;
  const open = params.get("run");
  const { query, progress, ended } = useRuns(filter);
  const names = useCanvasNames();
  const canStart = useSession().session.scopes.includes("image:generate");
  const titleOf = (canvasId: string) => {
    const title = names?.get(canvasId)?.title;
    return title === "" ? "Untitled" : title;
  };
  const runs = [...new Map(query.data?.pages.flatMap((page) => page.runs).map((run) => [run.handle, run])).values()];

  const setEnd = useNextPages(query);
  const { hasNextPage, fetchNextPage } = query;

  const ids = new Set(runs.map(({ handle }) => handle));
  return (
    <div className={list.page}>
      <div className={list.head}>
        <h1>Queue</h1>
        <div className={list.tools}>
          <Choice label="Kind" all="All kinds" choices={Object.entries(KINDS)} value={kind ?? ""} set={(value) => set("kind", value)} />
          <Choice label="State" all="All states" choices={Object.entries(STATUSES)} value={status ?? ""} set={(value) => set("state", value)} />
          <CanvasFilter all="All canvases" value={canvasId ?? ""} set={(handle) => set("canvas", handle)} />
        </div>
      </div>
      <p className="unseen" role="status">
        {ended}
      </p>
      {query.isPending && <Waiting label="Loading the queue" />}
      {query.isLoadingError && <Failure title="The queue cannot be loaded" error={query.error} retry={query.refetch} />}
      {query.isSuccess && runs.length === 0 && !isFiltered && (
        <Empty title="Nothing was started yet">
          <p className={parts.text}>
            What you or your agents start appears here: images and videos that a model makes, Actions, and Recipes. Open a canvas and choose{" "}
            <strong>Make</strong> to start something.
          </p>
          <Link href="/" className={`${parts.button} ${parts.plain}`}>
            Canvases
          </Link>
        </Empty>
      )}
      {query.isSuccess && runs.length === 0 && isFiltered && (
        <Empty title="No run matches">
          <Button onClick={reset}>Show everything</Button>
        </Empty>
      )}
      {open !== null && !ids.has(open) && query.isSuccess && (
        <section className={styles.alone} aria-label="Run">
          <RunDetails handle={open} state="" />
        </section>
      )}
      {runs.length > 0 && (
        <ul className={styles.list}>
          {runs.map((run) => (
            <RunRow
              key={run.handle}
              run={run}
              progress={progress.get(run.handle)}
              canvas={run.canvasId === undefined ? undefined : titleOf(run.canvasId)}
              isOpen={open === run.handle}
              toggle={() => set("run", open === run.handle ? undefined : run.handle)}
              show={run.canvasId !== undefined && <To path={showPath(canvasOf(run.canvasId), [run.handle])} label={`Show in ${titleOf(run.canvasId) ?? "its canvas"}`} words="Show" />}
              again={run.canvasId !== undefined && canStart && isAgain(run) && <To path={attemptPath(canvasOf(run.canvasId), run.handle)} label={`Again: ${run.title}`} words="Again" />}
              canceled={() => void query.refetch()}
            />
          ))}
        </ul>
      )}
      {query.isFetchNextPageError ? (
        <Failure title="The rest cannot be loaded" error={query.error} retry={fetchNextPage} />
      ) : (
        <div ref={setEnd} className={styles.end}>
          {hasNextPage && "Loading more…"}
        </div>
      )}
    </div>
  );
}

/** Whether work can be started once more at its results. */
const isAgain = ({ kind, status }: RunSummary): boolean => isOver(status) && (kind === "image" || (kind === "action" && status !== "succeeded"));

function To({ path, label, words }: { path: string; label: string; words: string }) {
  return (
    <Link href={path} className={`${parts.button} ${parts.plain}`} aria-label={label}>
      {words}
    </Link>
  );
}

/**
 * The list, which is read again when a run starts, changes its state or makes an output; the progress of those under way; and the last
 * one that ended, in words.
 */
function useRuns(filter: Filter) {
  const queries = useQueryClient();
  const [progress, setProgress] = useState<ReadonlyMap<string, number>>(new Map());
  const [ended, setEnded] = useState("");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const known = useRef(new Map<string, string>());
  useEffect(() => () => clearTimeout(timer.current), []);

  const reread = useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void queries.invalidateQueries({ queryKey: ["work"] });
    }, REST);
  }, [queries]);

  useRunEvents(true, (state) => {
    if (!state) return reread();
    setProgress((progress) => new Map(progress).set(state.run, state.progress));
    const now = `${state.status} ${state.done}`;
    if (known.current.get(state.run) !== now) reread();
    known.current.set(state.run, now);
  });

  const query = usePages(["work", "list", filter], (cursor, signal) => work.list(filter, cursor, signal), {
    refetchInterval: ({ state }) => (state.data?.pages.some(({ runs }) => runs.some(({ status }) => !isOver(status))) ? PACE : false),
  });

  // Found by comparing lists: a run may end before the stream of events is open.
  const pages = query.data?.pages;
  const before = useRef<{ of: string; pages: RunPages }>(undefined);
  const of = JSON.stringify(filter);
  useEffect(() => {
    if (!pages) return;
    const run = before.current?.of === of ? endedSince(before.current.pages, pages) : undefined;
    before.current = { of, pages };
    if (run) setEnded(`${KINDS[run.kind]}: ${statusOf(run.status).toLowerCase()}`);
  }, [of, pages]);
  return { query, progress, ended };
}
