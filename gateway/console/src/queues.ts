/** Queues, and what work waits for, in words. */
import type { components } from "./contract.ts";

type Schemas = components["schemas"];
export type Queue = Schemas["Queue"];
export type QueueStatus = Schemas["QueueStatus"];
export type WaitingFor = Schemas["WaitingFor"];

const TIME = new Intl.DateTimeFormat("en", { timeStyle: "medium", hourCycle: "h23" });
const LIST = new Intl.ListFormat("en");

/** "40 s", "12 min", "5 h": how long ago that was. */
function since(time: string, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`;
}

/** "Waiting for a worker: none seen for 40 s". */
export function waitingFor({ what, lastSeenAt, retryAt }: WaitingFor, now = Date.now()): string {
  switch (what) {
    case "worker":
      return `Waiting for a worker: ${lastSeenAt === undefined ? "none was ever seen" : `none seen for ${since(lastSeenAt, now)}`}`;
    case "slot":
      return "Waiting for its turn";
    case "retry":
      return retryAt === undefined ? "Waiting for the next attempt" : `Next attempt at ${TIME.format(new Date(retryAt))}`;
    case "provider":
      return "With the provider";
    case "input":
      return "Waiting for another result";
  }
}

/** The queues in which work is done: a Recipe run makes its images in another one than its steps. */
export function queuesOf({ kind, operation }: { kind: string; operation: string }): Queue[] {
  if (kind === "video") return ["video"];
  if (kind === "recipe" || operation === "recipe") return ["recipe", "generation"];
  return [kind === "action" || operation === "action" ? "image" : "generation"];
}

/** The state of a queue without workers as that of work in it; undefined if it has workers. */
export function waitingIn(queues: readonly Queue[], status: readonly QueueStatus[] | undefined, now = Date.now()): string | undefined {
  const silent = status?.find(({ queue, state }) => state === "silent" && queues.includes(queue));
  return silent && waitingFor({ what: "worker", since: "", ...(silent.lastSeenAt !== undefined && { lastSeenAt: silent.lastSeenAt }) }, now);
}

export interface Trouble {
  state: "silent" | "slow";
  /** "the queue video", "the queues recipe and generation". */
  queues: string;
  /** For how long nobody was seen, or the oldest work has waited; undefined if nobody ever was. */
  time: string | undefined;
}

/** What is wrong with these queues: those without workers together, and then those that are slow. */
export function troubles(queues: readonly Queue[], status: readonly QueueStatus[] | undefined, now = Date.now()): Trouble[] {
  const named = status?.filter(({ queue }) => queues.includes(queue)) ?? [];
  return (["silent", "slow"] as const).flatMap((state) => {
    const those = named.filter((one) => one.state === state);
    if (those.length === 0) return [];
    const names = LIST.format(those.map(({ queue }) => queue));
    const seen = those.flatMap(({ lastSeenAt }) => lastSeenAt ?? []).toSorted().at(-1);
    const waited = Math.max(...those.map(({ oldestWaitingSeconds }) => oldestWaitingSeconds));
    const time = state === "silent" ? seen && since(seen, now) : since(new Date(now - waited * 1000).toISOString(), now);
    return [{ state, queues: `the ${those.length === 1 ? "queue" : "queues"} ${names}`, time }];
  });
}
