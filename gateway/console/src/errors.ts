export interface FieldProblem {
  field: string;
  message: string;
}

interface Envelope {
  code?: string;
  message?: string;
  requestId?: string;
  fields?: FieldProblem[];
  details?: { findings?: unknown[]; creditCost?: number; budget?: object };
}

/** A request that failed. `status` is 0 when no response arrived. */
export class Problem extends Error {
  override name = "Problem";
  readonly status: number;
  /** The code of the contract, by which the console explains it. */
  readonly code: string | undefined;
  readonly requestId: string | undefined;
  /** Seconds, as the service asked for. */
  readonly retryAfter: number | undefined;
  /** What is wrong with the request, and where. */
  readonly fields: FieldProblem[];
  /** What the work costs, of a start that was refused because that is more than it may. Not when a budget refuses it: a person who agrees to the price changes nothing. */
  readonly creditCost: number | undefined;
  /** Whether a batch was refused for what it does to the look of the canvas. */
  readonly isBlockedByFindings: boolean;

  constructor(status: number, message: string, requestId?: string, retryAfter?: number, envelope: Envelope = {}) {
    super(message);
    this.status = status;
    this.code = envelope.code;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
    this.fields = envelope.fields ?? [];
    this.creditCost = envelope.details?.budget === undefined ? envelope.details?.creditCost : undefined;
    this.isBlockedByFindings = status === 422 && (envelope.details?.findings?.length ?? 0) > 0;
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Reads the error envelope of a failed response. */
export async function problemOf(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => undefined);
  const error = (body as { error?: Envelope } | undefined)?.error;
  const after = Number(response.headers.get("retry-after") ?? Number.NaN);
  return new Problem(
    response.status,
    error?.message ?? `The service answered ${response.status}.`,
    error?.requestId ?? response.headers.get("x-request-id") ?? undefined,
    Number.isFinite(after) ? after : undefined,
    error,
  );
}
