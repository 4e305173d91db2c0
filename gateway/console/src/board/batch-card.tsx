/** How far a batch is, what has failed of it, and what can be done then. */
import { useEffect, useRef, useSyncExternalStore } from "react";
import { count } from "../format.ts";
import { Unanswered } from "../library/unanswered.tsx";
import type { Graph, Node } from "../sync/graph.ts";
import { Button, Icon, messageOf } from "../ui/parts.tsx";
import { explained } from "../work.ts";
import { batchesOf, cancelRest, canRetry, dismiss, doneOf, type Progress, progressOf, retryFailed, undoBatch } from "./batch.ts";
import styles from "./batch.module.css";
import type { Board } from "./board.ts";
import { useFailure } from "./failure.ts";
import { statusAt } from "./gestures.ts";
import parts from "../ui/parts.module.css";
import card from "./status.module.css";

/** How long a batch that was made is mentioned, in milliseconds. */
const REST = 15_000;
const NO_NODE = { type: "image", metadata: {} } as Node;

/** The newest batch of this tab of which something is there. */
export function BatchCard({ board, graph }: { board: Board; graph: Graph }) {
  const list = batchesOf(board);
  const ids = useSyncExternalStore(list.subscribe, list.getIds);
  for (const id of ids.toReversed()) {
    const progress = progressOf(graph, list, id);
    if (progress) return <Card key={id} board={board} id={id} progress={progress} />;
  }
  return null;
}

/** Why the first of those that failed did, in words. */
function useReason({ failed: [node], refused: [refusal] }: Progress): string | undefined {
  const failure = useFailure(node ?? NO_NODE);
  if (refusal) return messageOf(refusal.error);
  if (node && statusAt(node) === undefined) return "It was not started.";
  return failure && explained(failure)?.happened;
}

function Card({ board, id, progress }: { board: Board; id: string; progress: Progress }) {
  const { label, slug, made, working, failed, refused, total } = progress;
  const element = useRef<HTMLElement>(null);
  const failures = total - made.length - working.length;
  const reason = useReason(progress);
  const isOver = working.length === 0;
  const show = (ids: string[]) => board.showing(ids).run();
  const close = () => {
    dismiss(board, id);
    board.surface?.focus();
  };
  const isDone = isOver && failures === 0;
  useEffect(() => {
    if (!isDone) return;
    const timer = setInterval(() => !element.current?.matches(":hover, :focus-within") && dismiss(board, id), REST);
    return () => clearInterval(timer);
  }, [board, id, isDone]);
  return (
    <section ref={element} className={`${parts.card} ${styles.card}`} aria-label="Progress" data-card data-batch={isOver ? "over" : "working"}>
      {isOver ? (
        <p>
          {count(made.length, "image")} {made.length === 1 ? "is" : "are"} {doneOf(slug)}.{failures > 0 && ` ${failures} failed.`}
        </p>
      ) : (
        // It is read out when it ends.
        <p aria-live="off">
          <bdi>{label}</bdi> · {made.length} of {total}
          {failures > 0 && ` · ${failures} failed`}
        </p>
      )}
      {!isOver && <progress max={total} value={made.length + failures} aria-label={label} />}
      {failures > 0 && reason !== undefined && <p className={styles.bad}>{reason}</p>}
      {!isOver && <Unanswered />}
      <div className={card.choices}>
        {failures > 0 && <Button onClick={() => show([...failed.map((node) => node.id), ...refused.flatMap(({ plan }) => plan.sources.map((node) => node.id))])}>Show failed</Button>}
        {!isOver && <Button onClick={() => cancelRest(board, id)}>Cancel the rest</Button>}
        {isOver && canRetry(board, progress, id) && <Button onClick={() => retryFailed(board, id)}>Try the failed again</Button>}
        {isOver && made.length > 0 && <Button onClick={() => show(made.map((node) => node.id))}>Show</Button>}
        {isOver && <Button onClick={() => (undoBatch(board, id), board.surface?.focus())}>Undo</Button>}
      </div>
      {isOver && (
        <button type="button" className={styles.close} aria-label="Hide this message" onClick={close}>
          <Icon name="close" size={14} />
        </button>
      )}
    </section>
  );
}
