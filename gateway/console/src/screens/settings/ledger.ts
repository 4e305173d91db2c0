/** The movements of credit, with all of a run in one line. */
import type { LedgerEntry } from "../../person.ts";

export interface Line {
  key: string;
  /** When its last movement was. */
  at: string;
  /** What it added, or took if negative. */
  amount: number;
  isWork: boolean;
  /** Handle of the run or job, while it has a record. */
  handle: string | undefined;
  reserved: number;
  returned: number;
}

/** The lines of these movements, which begin with the newest. */
export function linesOf(entries: readonly LedgerEntry[]): Line[] {
  const lines = new Map<string, Line>();
  for (const [index, { amount, createdAt, reason, run, job, workId }] of entries.entries()) {
    const handle = run ?? job;
    // Entries have no id, and none changes. Those of the steps of a Recipe name its run.
    const key = handle ?? workId ?? `${entries.length - index} ${createdAt}`;
    const line = lines.get(key) ?? { key, at: createdAt, amount: 0, isWork: reason !== "grant", handle, reserved: 0, returned: 0 };
    line.amount += amount;
    if (reason === "reserve") line.reserved -= amount;
    if (reason === "return") line.returned += amount;
    lines.set(key, line);
  }
  return [...lines.values()];
}
