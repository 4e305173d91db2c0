import { Link } from "wouter";
import type { RunSummary } from "../../api.ts";
import { canvasPathOf, idOf } from "./work.ts";

/** Names work, with links to its run and its canvas. */
export function WorkLink({ handle, work }: { handle: string; work: Map<string, RunSummary> }) {
  const run = work.get(idOf(handle));
  return (
    <>
      <Link href={`/runs?run=${encodeURIComponent(run?.handle ?? handle)}`} title={handle}>
        {run ? <bdi>{run.title}</bdi> : handle.startsWith("run:recipe-") ? "Recipe" : "Run"}
      </Link>
      {run?.canvasId !== undefined && (
        <>
          {" "}
          on a <Link href={canvasPathOf(run.canvasId)}>canvas</Link>
        </>
      )}
    </>
  );
}
