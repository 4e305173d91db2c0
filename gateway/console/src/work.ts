/** Runs and jobs: how they are read, started and canceled, and what is said of them. */
import { answer, contract, CONTRACT, patience, type RunSummary } from "./api.ts";
import type { components } from "./contract.ts";
import { type WaitingFor, waitingFor } from "./queues.ts";

type Schemas = components["schemas"];
export type RunKind = Schemas["RunKind"];
export type JobStatus = Schemas["JobStatus"];
export type ImageJob = Schemas["ImageJob"];
export type RecipeRun = Schemas["RecipeRun"];
export type VideoJob = Schemas["VideoJob"];
export type Work = ImageJob | RecipeRun | VideoJob;
export type Delivery = Schemas["DeliveryState"];

export interface Filter {
  kind?: RunKind;
  status?: JobStatus;
  /** Handle of a canvas. */
  canvasId?: string;
}

export const KINDS: Record<RunKind, string> = { image: "Images", action: "Actions", video: "Videos", recipe: "Recipes" };

export const STATUSES: Record<JobStatus, string> = {
  preparing: "Preparing",
  queued: "Waiting for its turn",
  running: "Running",
  finalizing: "Being stored",
  canceling: "Canceling",
  succeeded: "Succeeded",
  failed: "Failed",
  canceled: "Canceled",
  expired: "No longer kept",
};

const OPERATIONS: Record<string, string> = { generate: "Generate", edit: "Edit", variations: "Variations", action: "Action", recipe: "Recipe" };
const ENDED = new Set(["succeeded", "failed", "canceled", "expired"]);

/** "Generate", "Video". */
export const nameOf = ({ kind, operation }: { kind: string; operation: string }): string =>
  kind === "video" ? "Video" : (OPERATIONS[operation] ?? operation);

export const statusOf = (status: string): string => STATUSES[status as JobStatus] ?? status;

/** What a record says of its state: what the work waits for, or else its status. */
export const stateOf = (record: { status: string; waitingFor?: WaitingFor }, now?: number): string =>
  record.waitingFor && isActive(record.status) ? waitingFor(record.waitingFor, now) : statusOf(record.status);

/** Whether nothing more will happen to work in this status. */
export const isOver = (status: string): boolean => ENDED.has(status);

/** Whether work in this status can be canceled. */
export const isActive = (status: string): boolean => !isOver(status) && status !== "canceling";

/** How long work took from its start to its end, in milliseconds; undefined before the end, and when it is not known any more. */
export function tookOf({ status, createdAt, updatedAt }: { status: string; createdAt: string; updatedAt: string }): number | undefined {
  // The last change of an expired result is its expiry.
  return isOver(status) && status !== "expired" ? Date.parse(updatedAt) - Date.parse(createdAt) : undefined;
}

/** The pages of a list of runs, the newest first. */
export type RunPages = readonly { runs: RunSummary[] }[];

/** The first run that ended between two readings of a list. One that is new on the first page may be over already. */
export function endedSince(before: RunPages, now: RunPages): RunSummary | undefined {
  const statuses = new Map(before.flatMap(({ runs }) => runs).map(({ handle, status }) => [handle, status]));
  return now
    .flatMap(({ runs }, page) => runs.map((run) => ({ run, was: statuses.get(run.handle) ?? (page === 0 ? "queued" : run.status) })))
    .find(({ run, was }) => isOver(run.status) && !isOver(was))?.run;
}

const isVideo = (handle: string): boolean => handle.startsWith("job:");

/** The address of the video of a video job that has succeeded. Only who started the job may load it, for as long as the job is kept. */
export const videoUrl = (job: string): string => `${CONTRACT}/jobs/${encodeURIComponent(job)}/output`;

export const work = {
  list: (filter: Filter, cursor: string | undefined, signal: AbortSignal) =>
    answer(contract.GET("/api/canvas-agent/v1/runs", { params: { query: { limit: 25, ...filter, ...(cursor && { cursor }) } }, signal })),

  /** How much of the newest work is under way on each canvas, by handle. */
  active: async (signal: AbortSignal): Promise<ReadonlyMap<string, number>> => {
    const { runs } = await answer(contract.GET("/api/canvas-agent/v1/runs", { params: { query: { limit: 100 } }, signal }));
    const counts = new Map<string, number>();
    for (const { status, canvasId } of runs) if (canvasId !== undefined && !isOver(status)) counts.set(canvasId, (counts.get(canvasId) ?? 0) + 1);
    return counts;
  },

  /** Reads a run by its handle, and a video by that of its job. */
  read: async (handle: string, signal: AbortSignal): Promise<Work> => {
    const call = isVideo(handle)
      ? contract.GET("/api/canvas-agent/v1/jobs/{jobId}", { params: { path: { jobId: handle } }, signal })
      : contract.GET("/api/canvas-agent/v1/runs/{runId}", { params: { path: { runId: handle } }, signal });
    // A record is in full unless `view` asks for less.
    return (await answer<unknown>(call)) as Work;
  },

  video: (job: string, signal: AbortSignal) => work.read(job, signal) as Promise<VideoJob>,

  /** Asks work to stop. `removesTargets`: whether the empty nodes that its start made are deleted. */
  cancel: async (handle: string, removesTargets: boolean): Promise<void> => {
    const query = removesTargets ? { removeTargets: true } : {};
    if (isVideo(handle)) await contract.DELETE("/api/canvas-agent/v1/jobs/{jobId}", { params: { path: { jobId: handle }, query }, signal: patience() });
    else await contract.DELETE("/api/canvas-agent/v1/runs/{runId}", { params: { path: { runId: handle }, query }, signal: patience() });
  },

  /** Starts a video. The key of the body makes another attempt a replay. */
  startVideo: async (body: Schemas["VideoStart"]): Promise<VideoJob> =>
    (await answer(contract.POST("/api/canvas-agent/v1/videos/generate", { body, signal: patience() }))) as VideoJob,

  /** Makes an asset of the video of a job. A repetition returns the same asset. */
  keepVideo: async (job: string, body: Schemas["VideoKeeping"]): Promise<Schemas["Asset"]> =>
    (await answer(contract.POST("/api/canvas-agent/v1/jobs/{jobId}/asset", { params: { path: { jobId: job } }, body, signal: patience() }))).asset,
};

// Failures

export interface Failure {
  code: string;
  message: string;
  retryable: boolean;
}

/** What happened and what can be done, by the code of a failure. */
const REASONS: Record<string, [happened: string, remedy: string]> = {
  provider_authentication_failed: ["The provider refused the key.", "Save a valid key for the connection in the settings."],
  provider_timeout: ["The provider did not finish in time.", ""],
  provider_rate_limited: ["The provider takes no more requests for now.", "Wait some minutes before the next attempt."],
  provider_rejected: [
    "The provider refused the request.",
    "Change the prompt or the references, choose another model, or look whether the account at the provider can pay.",
  ],
  provider_unavailable: ["The provider is out of order.", "Wait, or choose another model."],
  runtime_failed: ["The service itself failed.", "Tell the operator its name for programs."],
  action_input_invalid: ["An image that the work needs is gone or cannot be read.", "Upload it again, or choose another one."],
  output_finalization_failed: [
    "The result was made but could not be stored.",
    "Look whether the account has room for it, and whether you may still change the canvas.",
  ],
  recipe_input_invalid: ["An input of the Recipe cannot be used.", "Fill its ports with other images or texts."],
  recipe_step_failed: ["A step of the Recipe failed.", "Its outputs say why."],
  recipe_output_missing: ["An output of the Recipe was not made.", ""],
  delegation_revoked: ["The session or token that started it was revoked.", "Start it again from a session that stays."],
};
/** Codes of work that did not fail: it was canceled, or it succeeded and its record has expired since. */
const NO_FAILURES = new Set(["canceled", "recipe_run_canceled", "result_expired"]);

/** The failure of a video has the code of its cause at the beginning of its message. */
function causeOf({ code, message }: Failure): { code: string; message: string } {
  const cause = code === "video_generation_failed" ? /^(\w+): (.*)$/s.exec(message) : null;
  return cause ? { code: cause[1] ?? code, message: cause[2] ?? message } : { code, message };
}

export interface Explanation {
  happened: string;
  /** What the service or the provider said. */
  said: string;
  remedy: string;
  code: string;
}

/** Why work failed, in plain words; undefined for work that did not fail. */
export function explained(failure: Failure): Explanation | undefined {
  if (NO_FAILURES.has(failure.code)) return undefined;
  const { code, message } = causeOf(failure);
  const [happened, remedy] = REASONS[code] ?? ["It failed.", ""];
  const again = failure.retryable
    ? "Another attempt may succeed. It is a new start, and a new charge."
    : "The same start would fail in the same way.";
  return { happened, said: message, remedy: [remedy, again].filter(Boolean).join(" "), code };
}

/** Where the delivery of a webhook is. */
export function deliveryOf({ status, attempts, lastStatus, errorCode }: Delivery): string {
  const tries = `${attempts} ${attempts === 1 ? "attempt" : "attempts"}`;
  const last = lastStatus === undefined ? "" : `, last answer ${lastStatus}`;
  if (status === "delivered") return `delivered after ${tries}`;
  if (status === "failed") return `not delivered after ${tries}${last}${errorCode ? ` (${errorCode})` : ""}`;
  return attempts === 0 ? "waits to be sent" : `will be sent again; ${tries} so far${last}`;
}
