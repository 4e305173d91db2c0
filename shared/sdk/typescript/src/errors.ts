import type { ErrorBody, ErrorCode, ImageJob, RecipeRun, VideoJob, Violation } from "./types.js";

/** A run or a job. */
export type Work = ImageJob | RecipeRun | VideoJob;

/** The base of all errors of this package. */
export class CanvasError extends Error {
  override name = "CanvasError";
}

/** The service refused a request. */
export class ApiError extends CanvasError {
  override name = "ApiError";
  readonly status: number;
  /** Stable: branch on it, never on the message. */
  readonly code: ErrorCode;
  /** Each violation, with the field that it concerns. */
  readonly fields: Violation[];
  /** Data for programs, for example `currentRevision` of a revision conflict. */
  readonly details: Record<string, unknown>;
  /** Identifies the request for support. */
  readonly requestId: string;
  /** Milliseconds after which the request may pass. */
  readonly retryAfterMs: number | undefined;

  constructor(response: Response, requestId: string, body: Partial<ErrorBody>) {
    const code = body.code ?? "request_failed";
    const fields = (body.fields ?? []).map((violation) => ` ${violation.field}: ${violation.message}`).join(";");
    super(`${response.status} ${code}: ${body.message ?? "no error envelope"}${fields} (request ${requestId})`);
    this.status = response.status;
    this.code = code;
    this.fields = body.fields ?? [];
    this.details = { ...body.details };
    this.requestId = requestId;
    this.retryAfterMs = retryAfter(response.headers.get("retry-after"));
  }

  /** `true` if the canvas has another revision than the request is based on. */
  get isRevisionConflict(): boolean {
    return this.code === "conflict" && "currentRevision" in this.details;
  }
}

/** There was no answer, or it broke off. Whether the request had an effect is not known. */
export class ConnectionError extends CanvasError {
  override name = "ConnectionError";
  /** The id that the request carried. */
  readonly requestId: string;

  constructor(message: string, requestId: string, cause?: unknown) {
    super(`${message} (request ${requestId})`, { cause });
    this.requestId = requestId;
  }
}

/** Work ended without success. `work.failure` says why, where there is a reason. */
export class WorkFailedError extends CanvasError {
  override name = "WorkFailedError";
  readonly work: Work;

  constructor(work: Work) {
    const failure = "failure" in work && work.failure ? `: ${work.failure.code}, ${work.failure.message}` : "";
    super(`${work.id} is ${work.status}${failure}`);
    this.work = work;
  }
}

/** Work had not ended when the time to wait was over. It goes on: wait again, or cancel it. */
export class WaitTimeoutError extends CanvasError {
  override name = "WaitTimeoutError";
  readonly work: Work;

  constructor(work: Work) {
    super(`${work.id} is still ${work.status}`);
    this.work = work;
  }
}

/** A webhook is not genuine, or too old. */
export class WebhookError extends CanvasError {
  override name = "WebhookError";
}

function retryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  const milliseconds = /^\d+$/.test(value) ? 1000 * Number(value) : Date.parse(value) - Date.now();
  return Number.isNaN(milliseconds) ? undefined : Math.max(0, milliseconds);
}
