import { useSyncExternalStore } from "react";
import { countUnanswered, onUnanswered } from "../retry.ts";

/** Says that a start has no answer yet, also one of a form that was closed since. */
export function Unanswered() {
  if (useSyncExternalStore(onUnanswered, countUnanswered) === 0) return null;
  return (
    <p className="hint" role="alert">
      No answer yet. The same request is sent again.
    </p>
  );
}
