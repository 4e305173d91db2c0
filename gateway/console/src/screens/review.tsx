/** The review of a canvas: whether the work on it can be called done, and what asks for something. */
import { useState } from "react";
import type { CanvasReview, Finding } from "../api.ts";
import { count } from "../format.ts";
import { Button, Icon, Notice } from "../ui/parts.tsx";
import styles from "./review.module.css";

/** What can be done about findings on the board. */
export interface Remedies {
  show: (nodeHandles: string[]) => void;
  makeRoom?: (finding: Finding) => Promise<void>;
  /** The title of a node. */
  title: (nodeHandle: string) => string;
}

const SEVERITIES = { error: "Error", warning: "Warning", info: "Note" } as const;
const STATUSES = { ready: "Ready", "needs-review": "Needs a look", blocked: "Not finished" } as const;
const OVERLAPS = new Set(["agent_overlap", "user_overlap"]);

export function Review({ review: { validation }, remedies }: { review: CanvasReview; remedies?: Remedies }) {
  const { completionReview: completion, findings, truncated } = validation;
  const { outputs, productFidelity } = completion;
  const asking = findings.filter(({ severity }) => severity !== "info");
  const notes = findings.filter(({ severity }) => severity === "info");
  return (
    <>
      <section className={styles.summary} data-status={completion.status} aria-label="Completion review">
        <h3>
          <Icon name={completion.status === "ready" ? "check" : "finding"} />
          {STATUSES[completion.status]}
        </h3>
        <p>{completion.instruction}</p>
        <p className={styles.claim}>{completion.doneClaimAllowed ? "The work may be reported as done." : "The work may not be reported as done yet."}</p>
        {outputs.count > 0 && (
          <dl className={styles.outputs} aria-label="Outputs">
            {([["outputs", outputs.count], ["stored", outputs.durableCount], ["in work", outputs.pendingCount], ["failed", outputs.failedCount]] as const).map(([name, number]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{number}</dd>
              </div>
            ))}
          </dl>
        )}
      </section>
      {productFidelity.status !== "not-applicable" && <Fidelity fidelity={productFidelity} remedies={remedies} />}
      {asking.length > 0 && <Findings title={count(asking.length, "finding")} findings={asking} remedies={remedies} />}
      {notes.length > 0 && (
        <details className={styles.notes}>
          <summary>{count(notes.length, "note")} on nodes of people</summary>
          <Findings findings={notes} remedies={remedies} />
        </details>
      )}
      {truncated && <p className={styles.hint}>There are more findings than the service lists.</p>}
    </>
  );
}

function Findings({ title, findings, remedies }: { title?: string; findings: Finding[]; remedies: Remedies | undefined }) {
  return (
    <section className={styles.group}>
      {title !== undefined && <h3>{title}</h3>}
      <ul>
        {findings.map((finding) => (
          <FindingItem key={`${finding.code} ${finding.nodeHandles.join(" ")} ${finding.connectionHandles.join(" ")}`} finding={finding} remedies={remedies} />
        ))}
      </ul>
    </section>
  );
}

function FindingItem({ finding, remedies }: { finding: Finding; remedies: Remedies | undefined }) {
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const { code, severity, message, nodeHandles } = finding;

  async function makeRoom() {
    setIsBusy(true);
    setError(undefined);
    await remedies?.makeRoom?.(finding).catch(setError);
    setIsBusy(false);
  }

  return (
    <li className={styles.finding} data-severity={severity}>
      <Icon name="finding" />
      <div>
        <p>{message}</p>
        <p className={styles.code}>
          {SEVERITIES[severity]} <code>{code}</code>
        </p>
        {remedies && nodeHandles.length > 0 && (
          <>
            <p className={styles.names}>
              {nodeHandles.slice(0, 4).map((handle) => (
                <bdi key={handle}>{remedies.title(handle)}</bdi>
              ))}
              {nodeHandles.length > 4 && <span>and {nodeHandles.length - 4} more</span>}
            </p>
            <div className={styles.remedies}>
              <Button onClick={() => remedies.show(nodeHandles)}>Show</Button>
              {remedies.makeRoom && OVERLAPS.has(code) && (
                <Button isBusy={isBusy} onClick={() => void makeRoom()}>
                  {isBusy ? "Making room…" : "Make room"}
                </Button>
              )}
            </div>
          </>
        )}
        {error !== undefined && <Notice error={error} />}
      </div>
    </li>
  );
}

type Fidelity = CanvasReview["validation"]["completionReview"]["productFidelity"];

/** Outputs to compare with the product that they were made from. */
function Fidelity({ fidelity, remedies }: { fidelity: Fidelity; remedies: Remedies | undefined }) {
  const { status, reviewedOutputCount, needsReviewOutputHandles, evidenceMissingOutputHandles, reasons = [] } = fidelity;
  const reasonOf = (handle: string) => reasons.find(({ nodeHandle }) => nodeHandle === handle)?.reason;
  return (
    <section className={styles.group}>
      <h3>Product fidelity</h3>
      <p className={styles.hint}>
        {status === "passed" ? "Every output contains the product's own pixels. " : "Compare these with the product. "}
        {reviewedOutputCount > 0 && status !== "passed" && `${count(reviewedOutputCount, "other output")} with its own pixels need no look. `}
        The service follows how images were made; it does not compare them.
      </p>
      <ul>
        {needsReviewOutputHandles.map((handle) => (
          <li key={handle} className={styles.finding} data-severity="info">
            <Icon name="image" />
            <div>
              <p>
                <bdi>{remedies?.title(handle) ?? "An output"}</bdi>
                {evidenceMissingOutputHandles.includes(handle) && " · origin unknown"}
              </p>
              {reasonOf(handle) && <p className={styles.code}>{reasonOf(handle)}</p>}
              {remedies && (
                <div className={styles.remedies}>
                  <Button onClick={() => remedies.show([handle])}>Show</Button>
                </div>
              )}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
