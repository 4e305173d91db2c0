/** The runs that deliveries and movements of credit belong to. */
import { useQuery } from "@tanstack/react-query";
import { answer, contract, type RunSummary } from "../../api.ts";

/** The newest work of the account, by id. Older work has no summary, and is named by its handle alone. */
export function useWork(): Map<string, RunSummary> {
  const { data } = useQuery({
    queryKey: ["runs", "all"],
    queryFn: ({ signal }) => answer(contract.GET("/api/canvas-agent/v1/runs", { params: { query: { limit: 100 } }, signal })),
  });
  return new Map(data?.runs.map((run) => [run.id, run]));
}

/** The id in the handle of a run or a job. */
export const idOf = (handle: string): string => handle.replace(/^(?:run|job):/, "");

/** The address of the canvas with this handle. */
export const canvasPathOf = (handle: string): string => `/c/${handle.replace(/^canvas:/, "").replace(":", "/")}`;
