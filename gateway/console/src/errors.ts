/** A request that failed. `status` is 0 when no response arrived. */
export class Problem extends Error {
  override name = "Problem";
  readonly status: number;
  readonly requestId: string | undefined;
  /** Seconds, as the service asked for. */
  readonly retryAfter: number | undefined;

  constructor(status: number, message: string, requestId?: string, retryAfter?: number) {
    super(message);
    this.status = status;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Reads the error envelope of a failed response. */
export async function problemOf(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => undefined);
  const error = (body as { error?: { message?: string; requestId?: string } } | undefined)?.error;
  const after = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new Problem(
    response.status,
    error?.message ?? `The service answered ${response.status}.`,
    error?.requestId ?? response.headers.get("x-request-id") ?? undefined,
    Number.isFinite(after) ? after : undefined,
  );
}
