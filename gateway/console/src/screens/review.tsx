/** What on a canvas asks to be looked at. */
import { useState } from "react";
import type { CanvasReview, Finding } from "../api.ts";
import { count } from "../format.ts";
import { findingWords } from "../words.ts";
import { Button, Icon, Notice } from "../ui/parts.tsx";
import styles from "./review.module.css";

/** What can be done about findings on the board. */
export interface Remedies {
  show: (nodeHandles: string[]) => void;
  /** What mends a finding. */
  remedyOf: (finding: Finding) => { label: string; run: () => unknown } | undefined;
  /** The title of a node. */
  title: (nodeHandle: string) => string;
  /** The ref by which agents and the command line name a node, once the service has given it one. */
  ref: (nodeHandle: string) => string | undefined;
}

/** Findings that ask for something. The others are about what people made as they wanted it. */
export const askingIn = ({ validation }: CanvasReview): Finding[] => validation.findings.filter(({ severity }) => severity !== "info");

function summaryOf(review: CanvasReview): string {
  const { outputs, productFidelity } = review.validation.completionReview;
  const asking = askingIn(review).length + productFidelity.needsReviewOutputHandles.length;
  if (asking > 0) return `Please look at ${count(asking, "thing")}.`;
  if (outputs.pendingCount > 0) return "Something is still being made.";
  return outputs.failedCount > 0 ? `${count(outputs.failedCount, "result")} failed.` : "Everything is in order.";
}

export function Review({ review, remedies }: { review: CanvasReview; remedies?: Remedies }) {
  const { completionReview, findings, truncated } = review.validation;
  const { outputs, productFidelity, status } = completionReview;
  const asking = askingIn(review);
  const notes = findings.filter(({ severity }) => severity === "info");
  const counts = ([["results", outputs.count], ["being made", outputs.pendingCount], ["failed", outputs.failedCount]] as const).filter(([, number]) => number > 0);
  return (
    <>
      <section className={styles.summary} data-status={status} aria-label="Summary">
        <h3>
          <Icon name={status === "ready" ? "check" : "finding"} />
          {summaryOf(review)}
        </h3>
        {counts.length > 0 && (
          <dl className={styles.outputs} aria-label="Results">
            {counts.map(([name, number]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{number}</dd>
              </div>
            ))}
          </dl>
        )}
      </section>
      {productFidelity.status !== "not-applicable" && <Fidelity fidelity={productFidelity} remedies={remedies} />}
      {asking.length > 0 && <Findings findings={asking} remedies={remedies} />}
      {notes.length > 0 && (
        <details className={styles.notes}>
          <summary>{count(notes.length, "more thing")}, made by people</summary>
          <Findings findings={notes} remedies={remedies} />
        </details>
      )}
      {truncated && <p className="hint">There is more than is listed here.</p>}
    </>
  );
}

function Findings({ findings, remedies }: { findings: Finding[]; remedies: Remedies | undefined }) {
  return (
    <ul className={styles.group}>
      {findings.map((finding) => (
        <FindingItem key={`${finding.code} ${finding.nodeHandles.join(" ")} ${finding.connectionHandles.join(" ")}`} finding={finding} remedies={remedies} />
      ))}
    </ul>
  );
}

function FindingItem({ finding, remedies }: { finding: Finding; remedies: Remedies | undefined }) {
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const { severity, nodeHandles } = finding;
  const remedy = remedies?.remedyOf(finding);

  async function mend() {
    setIsBusy(true);
    setError(undefined);
    await Promise.resolve(remedy?.run()).catch(setError);
    setIsBusy(false);
  }

  return (
    <li className={styles.finding} data-severity={severity}>
      <Icon name="finding" />
      <div>
        <p>{findingWords(finding)}</p>
        {remedies && nodeHandles.length > 0 && (
          <>
            <p className={styles.names}>
              {nodeHandles.slice(0, 4).map((handle) => (
                <Name key={handle} handle={handle} remedies={remedies} />
              ))}
              {nodeHandles.length > 4 && <span>and {nodeHandles.length - 4} more</span>}
            </p>
            <div className={styles.remedies}>
              <Button onClick={() => remedies.show(nodeHandles)}>Show</Button>
              {remedy && (
                <Button isBusy={isBusy} onClick={() => void mend()}>
                  {remedy.label}
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

function Name({ handle, remedies }: { handle: string; remedies: Remedies }) {
  const ref = remedies.ref(handle);
  return (
    <span>
      <bdi>{remedies.title(handle)}</bdi>
      {ref !== undefined && <code> {ref}</code>}
    </span>
  );
}

type Fidelity = CanvasReview["validation"]["completionReview"]["productFidelity"];

/** Results to compare with the product that they were made from. */
function Fidelity({ fidelity, remedies }: { fidelity: Fidelity; remedies: Remedies | undefined }) {
  const { status, reviewedOutputCount, needsReviewOutputHandles, evidenceMissingOutputHandles } = fidelity;
  return (
    <section className={styles.group}>
      <h3>The product in the results</h3>
      <p className="hint">
        {status === "passed" ? "Every result contains the product’s own pixels. " : "Compare these with the product. "}
        {reviewedOutputCount > 0 && status !== "passed" && `${count(reviewedOutputCount, "other result")} with its own pixels need no look. `}
        The service follows how images were made; it does not compare them.
      </p>
      <ul>
        {needsReviewOutputHandles.map((handle) => (
          <li key={handle} className={styles.finding} data-severity="info">
            <Icon name="image" />
            <div>
              <p>
                {remedies ? <Name handle={handle} remedies={remedies} /> : "A result"}
                {evidenceMissingOutputHandles.includes(handle) && " · it is not known what it was made from"}
              </p>
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
