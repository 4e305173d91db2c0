/** The export that is under way. */
import { Button } from "../ui/parts.tsx";
import type { Board, Ui } from "./board.ts";
import styles from "./handover-card.module.css";

export function HandoverCard({ board, handover }: { board: Board; handover: Ui["handover"] }) {
  if (!handover) return null;
  const { text, done, of, cancel } = handover;
  return (
    <section className={styles.card} aria-label="Export" data-card>
      <p>{text}</p>
      <span aria-live="off">
        {done} of {of}
      </span>
      <progress aria-label="Files that are saved" max={of} value={done} />
      <Button
        onClick={() => {
          cancel();
          board.surface?.focus();
        }}
      >
        Cancel
      </Button>
    </section>
  );
}
