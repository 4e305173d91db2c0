/** A run of a Recipe: its steps, what they made, and why some did not. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { altOf } from "../alt.ts";
import { priceOf } from "../format.ts";
import { madeImage, useAltsOf } from "../library/outputs.ts";
import { Thumb } from "../library/thumb.tsx";
import { Reason } from "../screens/reason.tsx";
import { Button, Failure, Icon, Notice, Waiting } from "../ui/parts.tsx";
import { Problem } from "../errors.ts";
import { queuesOf, waitingFor } from "../queues.ts";
import { useSession } from "../session.ts";
import { useWatch } from "../ui/queues.tsx";
import { type RecipeRun, recipes, type RunOutput } from "./calls.ts";
import { KindIcon, StandIn } from "./parts.tsx";
import sheet from "../library/sheet.module.css";
import { isOver, work } from "../work.ts";
import styles from "./recipes.module.css";

/** How often a run is read while it is under way, in milliseconds. */
const PACE = 1000;

const STATES: Record<RunOutput["status"], string> = { pending: "waits", running: "is being made", succeeded: "done", failed: "failed", canceled: "canceled" };

interface Props {
  /** The handle of the run. */
  run: string;
  /** What can be done with the run. */
  children?: (run: RecipeRun) => ReactNode;
}

export function RunProgress({ run, children }: Props) {
  const [error, setError] = useState<unknown>();
  const [isCanceling, setIsCanceling] = useState(false);
  const mayFollow = useSession().session.scopes.includes("job:manage");
  const { data, error: failure, refetch } = useQuery({
    queryKey: ["run", run],
    queryFn: ({ signal }) => recipes.readRun(run, signal),
    enabled: mayFollow,
    refetchInterval: ({ state: { data, error } }) => ((error instanceof Problem && !error.isTemporary) || (data && isOver(data.status)) ? false : PACE),
  });
  useWatch(data && !isOver(data.status) ? queuesOf(data) : []);
  if (!mayFollow) return <p role="status">The run was started. This session may not follow it: it lacks job:manage. Its results appear on the canvas.</p>;
  if (!data) return failure ? <Failure title="The run cannot be read" error={failure} retry={refetch} /> : <Waiting label="Reading the run" />;

  async function cancel() {
    setIsCanceling(true);
    setError(undefined);
    await work.cancel(run, false).catch(setError);
    await refetch();
    setIsCanceling(false);
  }

  const done = data.outputs.filter(({ status }) => status !== "pending" && status !== "running").length;
  return (
    <section className={styles.run} aria-label="Run">
      <div className={styles.runHead}>
        <p role="status">
          <strong data-status={data.status}>{sentence(data)}</strong>
          {data.waitingFor && <span aria-live="off">. {waitingFor(data.waitingFor)}</span>}
        </p>
        {data.creditCost > 0 && <span>{priceOf(data.creditCost)}</span>}
      </div>
      {!isOver(data.status) && <progress aria-label="Progress of the run" max={data.outputs.length} value={done} />}
      <ol className={styles.steps}>
        {data.outputs.map((output) => (
          <Step key={output.key} canvas={data.canvasHandle} output={output} />
        ))}
      </ol>
      {data.failure && <Reason failure={data.failure} />}
      {error !== undefined && <Notice error={error} />}
      <div className={sheet.buttons}>
        {!isOver(data.status) && (
          <Button isBusy={isCanceling} onClick={() => void cancel()}>
            {isCanceling ? "Canceling…" : "Cancel the run"}
          </Button>
        )}
        {children?.(data)}
      </div>
    </section>
  );
}

function sentence({ status, outputs, currentStep }: RecipeRun): string {
  const step = outputs.findIndex(({ key }) => key === currentStep);
  if (status === "succeeded") return "Done";
  if (status === "failed") return "Failed";
  if (status === "canceled") return "Canceled";
  return step < 0 ? "Under way" : `Step ${step + 1} of ${outputs.length}: ${outputs[step]?.label}`;
}

function Step({ canvas, output: { label, type, status, standIn, value, assetId, nodeHandle, failure } }: { canvas: string; output: RunOutput }) {
  const [alt = ""] = useAltsOf(canvas, assetId === undefined ? [] : [madeImage(assetId, nodeHandle, altOf({ type: "image", title: label, metadata: {} }))]);
  return (
    <li data-status={status}>
      <div className={styles.stepHead}>
        <KindIcon kind={type} />
        <strong>
          <bdi>{label}</bdi>
        </strong>
        {standIn && status === "succeeded" && <StandIn />}
        <span className={styles.state}>
          {status === "succeeded" && <Icon name="check" size={14} />}
          {STATES[status]}
        </span>
      </div>
      {value !== undefined && (
        <blockquote className={styles.value} dir="auto">
          {value}
        </blockquote>
      )}
      {assetId !== undefined && (
        <span className={styles.image}>
          <Thumb asset={assetId} alt={alt} pixels={640} />
        </span>
      )}
      {failure && <Reason failure={failure} />}
    </li>
  );
}
