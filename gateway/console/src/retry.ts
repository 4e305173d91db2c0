/** Requests that have to arrive. */
import { Problem } from "./errors.ts";
import { sessionEnd } from "./session-end.ts";
import { backoff } from "./stream.ts";

/** How often a start that was refused for now is sent again. */
const MOST_ATTEMPTS = 5;

let unanswered = 0;
const listeners = new Set<() => void>();

export const onUnanswered = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => void listeners.delete(listener);
};
/** How many starts have no answer and are sent again. */
export const countUnanswered = (): number => unanswered;

function count(change: 1 | -1): void {
  unanswered += change;
  for (const listener of listeners) listener();
}

/**
 * Sends a start until there is an answer: under the same key, so it is accepted once. Without an answer it may have been accepted, so it is
 * never given up: another start would have another key.
 */
export async function retryUntilAnswered<T>(start: () => Promise<T>): Promise<T> {
  let isUnknown = false;
  let isOver = false;
  const end = () => (isOver = true);
  sessionEnd.add(end);
  try {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await start();
      } catch (error) {
        if (!(error instanceof Problem) || !error.isTemporary) throw error;
        if (!isUnknown && error.status !== 429) count(1);
        isUnknown ||= error.status !== 429;
        if (!isUnknown && attempt === MOST_ATTEMPTS) throw error;
        const pause = error.retryAfter === undefined ? backoff(attempt) : error.retryAfter * 1000;
        await new Promise((resume) => setTimeout(resume, pause));
        if (isOver) throw error;
      }
    }
  } finally {
    sessionEnd.delete(end);
    if (isUnknown) count(-1);
  }
}
