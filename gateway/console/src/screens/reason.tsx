import { explained, type Failure } from "../work.ts";
import styles from "./reason.module.css";

/** Why something failed, and what can be done. */
export function Reason({ failure }: { failure: Failure }) {
  const reason = explained(failure);
  if (!reason) return null;
  return (
    <div className={styles.reason} data-reason>
      <p>
        <strong>{reason.happened}</strong> {reason.remedy}
      </p>
      <p className={styles.said}>
        <bdi>{reason.said}</bdi> <code>{reason.code}</code>
      </p>
    </div>
  );
}
