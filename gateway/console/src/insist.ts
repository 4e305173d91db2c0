/** Requests that have to arrive. */
import { Problem } from "./errors.ts";
import { backoff } from "./stream.ts";

/** How often a start without an answer is sent again. */
const MOST_ATTEMPTS = 5;

/** Sends a start until there is an answer: under the same key, so it is accepted once. */
export async function insist<T>(start: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof Problem) || !error.isTemporary || attempt === MOST_ATTEMPTS) throw error;
      const pause = error.retryAfter === undefined ? backoff(attempt) : error.retryAfter * 1000;
      await new Promise((resume) => setTimeout(resume, pause));
    }
  }
}
