/** What is said of queues: a banner while one that matters to what is shown has no workers or is slow, and a hint before a start. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { api } from "../api.ts";
import { type Queue, type QueueStatus, type Trouble, troubles } from "../queues.ts";
import { Icon } from "./parts.tsx";
import styles from "./queues.module.css";

/** How often the state is read while work is under way and the page is looked at, and how often while something is wrong, in milliseconds. */
const PACE = 30_000;
const TROUBLED_PACE = 10_000;

/** How many parts of the page show work of each queue. */
const watched = new Map<Queue, number>();
let watchedNow: readonly Queue[] = [];
const listeners = new Set<() => void>();

function watch(queue: Queue, change: 1 | -1): void {
  watched.set(queue, (watched.get(queue) ?? 0) + change);
  const now = [...watched].flatMap(([queue, count]) => (count > 0 ? queue : [])).toSorted();
  if (now.join() === watchedNow.join()) return;
  watchedNow = now;
  listeners.forEach((listener) => listener());
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** Says what is wrong with these queues for as long as the component is shown: it shows work of theirs that is not over. */
export function useWatch(queues: readonly Queue[]): void {
  const names = queues.join();
  useEffect(() => {
    const those = names.split(",").filter(Boolean) as Queue[];
    those.forEach((queue) => watch(queue, 1));
    return () => those.forEach((queue) => watch(queue, -1));
  }, [names]);
}

/**
 * The state of all queues, and when it was read. If it `paces`, it is read again and again, but not while the page is hidden. The banner
 * does so for all that shows work.
 */
export function useStatus(isWanted: boolean, paces: boolean): { status: QueueStatus[] | undefined; now: number } {
  const { data, dataUpdatedAt } = useQuery({
    queryKey: ["status"],
    queryFn: ({ signal }) => api.status(signal),
    enabled: isWanted,
    retry: false,
    refetchInterval: ({ state }) => (!paces ? false : state.data?.some(({ state }) => state !== "ok") ? TROUBLED_PACE : PACE),
  });
  return { status: isWanted ? data : undefined, now: dataUpdatedAt };
}

/** The banner. It is read out when it appears: what contains it is there before it. How long it has been so is not read out again. */
export function QueueBanner() {
  const queues = useSyncExternalStore(subscribe, () => watchedNow);
  const { status, now } = useStatus(queues.length > 0, true);
  return (
    <div role="status">
      {troubles(queues, status, now).map((trouble) => (
        <p key={trouble.state} className={styles.banner} data-state={trouble.state}>
          <Icon name="finding" size={16} />
          <span>
            <Words trouble={trouble} /> {trouble.state === "silent" ? "Work waits until one is started." : "It goes on, and takes longer than usual."}
          </span>
        </p>
      ))}
    </div>
  );
}

/** What would happen to work that is started in these queues now; nothing if they are well. */
export function QueueHint({ queues }: { queues: readonly Queue[] }) {
  const { status, now } = useStatus(true, true);
  return (
    <div role="status">
      {troubles(queues, status, now).map((trouble) => (
        <p key={trouble.state} className={styles.hint} data-state={trouble.state}>
          <Words trouble={trouble} /> {trouble.state === "silent" ? "What you start waits until one is started." : "What you start may take longer than usual."}
        </p>
      ))}
    </div>
  );
}

function Words({ trouble: { state, queues, time } }: { trouble: Trouble }) {
  if (state === "slow") {
    return (
      <>
        Work in {queues} has waited <span aria-live="off">for {time}</span>.
      </>
    );
  }
  if (time === undefined) return <>No worker has ever asked for {queues}.</>;
  return (
    <>
      No worker has asked for {queues} <span aria-live="off">for {time}</span>.
    </>
  );
}
