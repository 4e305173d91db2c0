import { useSyncExternalStore } from "react";
import { countUnanswered, onUnanswered } from "../retry.ts";
import sheet from "./sheet.module.css";

/** Says that a start has no answer yet, also one of a form that was closed since. */
export function Unanswered() {
  if (useSyncExternalStore(onUnanswered, countUnanswered) === 0) return null;
  return (
    <p className={sheet.hint} role="alert">
      No answer yet. The same request is sent again.
    </p>
  );
}
