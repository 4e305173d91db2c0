/** One run in a list, on its page and beside the board: its results, what it makes, how far it is, and what can be done with it. */
import { type ReactNode, useState } from "react";
import { altOfRun } from "../alt.ts";
import type { RunSummary } from "../api.ts";
import { ago, lasted, priceOf } from "../format.ts";
import { useModelNames } from "../library/models.ts";
import { Thumb } from "../library/thumb.tsx";
import { queuesOf } from "../queues.ts";
import { Button, Icon } from "../ui/parts.tsx";
import { useWatch } from "../ui/queues.tsx";
import { DRAFT } from "../words.ts";
import { isActive, isOver, stateOf, tookOf } from "../work.ts";
import { CancelDialog } from "./cancel.tsx";
import { RunDetails } from "./run-details.tsx";
import styles from "./run-row.module.css";

const ICONS = { image: "image", action: "sliders", video: "video", recipe: "recipe" } as const;

interface Props {
  run: RunSummary;
  /** Of work that is under way, in percent, where more is known than its outputs. */
  progress?: number | undefined;
  /** Title of the canvas, as far as it is known, where more than one is listed. */
  canvas?: string | undefined;
  isOpen: boolean;
  toggle: () => void;
  /** Shows its nodes, and starts it once more. */
  show?: ReactNode;
  again?: ReactNode;
  /** It was canceled. */
  canceled: () => void;
}

export function RunRow({ run, progress, canvas, isOpen, toggle, show, again, canceled }: Props) {
  const { handle, title, status, outputs, creditCost, createdAt, standIn, model, canvasId } = run;
  const [isCanceling, setIsCanceling] = useState(false);
  const names = useModelNames();
  useWatch(isOver(status) ? [] : queuesOf(run));
  const took = tookOf(run);
  const isWorking = !isOver(status);
  const done = progress ?? (100 * outputs.done) / outputs.total;
  const part = outputs.total > 1 && (isWorking || outputs.done < outputs.total) ? `, ${outputs.done} of ${outputs.total}` : "";
  const facts = [
    model !== undefined && (names.get(model) ?? model),
    priceOf(creditCost),
    canvas !== undefined && `in ${canvas}`,
  ].filter((fact) => fact !== false);
  return (
    <li className={styles.run} data-status={isWorking ? "active" : status} data-open={isOpen || undefined}>
      <div className={styles.row}>
        <Results run={run} />
        <div className={styles.text}>
          <button type="button" className={styles.toggle} aria-expanded={isOpen} title={title} onClick={toggle}>
            <span className={styles.title} dir="auto">
              {title}
            </span>
            {outputs.total > 1 && <span className={styles.count}>× {outputs.total}</span>}
            <Icon name="chevron" size={14} />
          </button>
          <p className={styles.state}>
            <span>
              {stateOf(run)}
              {part}
            </span>
            {took !== undefined && <span className={styles.took}>{`${status === "succeeded" ? "in" : "after"} ${lasted(took)}`}</span>}
          </p>
          <p className={styles.facts}>
            {facts.map((fact) => (
              <span key={fact} dir="auto">
                {fact}
              </span>
            ))}
            <time dateTime={createdAt} title={new Date(createdAt).toLocaleString("en")}>
              {ago(createdAt)}
            </time>
            {standIn && (
              <span className={styles.mark} title={DRAFT.sentence}>
                {DRAFT.mark}
              </span>
            )}
          </p>
        </div>
        <div className={styles.buttons}>
          {show}
          {again}
          {isActive(status) && <Button onClick={() => setIsCanceling(true)}>Cancel</Button>}
        </div>
      </div>
      {isWorking && <progress aria-label={`Progress of ${title}`} max={100} {...(done > 0 && { value: done })} />}
      {isOpen && <RunDetails handle={handle} state={`${status} ${outputs.done}`} alt={altOfRun(run)} />}
      {isCanceling && <CancelDialog runs={[run]} hasTargets={canvasId !== undefined} close={() => setIsCanceling(false)} canceled={canceled} />}
    </li>
  );
}

/** The first results, or the kind of work while there is none. */
function Results({ run }: { run: RunSummary }) {
  const { kind, results, outputs, status } = run;
  const shown = results.slice(0, 4);
  const missing = isOver(status) ? 0 : Math.min(outputs.total, 4) - shown.length;
  if (shown.length === 0) {
    return (
      <span className={styles.results} data-count={0} data-waiting={missing > 0 || undefined}>
        <Icon name={ICONS[kind]} size={22} />
      </span>
    );
  }
  return (
    <span className={styles.results} data-count={shown.length + Math.max(missing, 0)}>
      {shown.map((asset, index) => (
        <Thumb key={asset} asset={asset} alt={index === 0 ? altOfRun(run) : ""} pixels={160} />
      ))}
      {Array.from({ length: Math.max(missing, 0) }, (_, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- the placeholders are all the same
        <span key={index} className={styles.waiting} />
      ))}
    </span>
  );
}
