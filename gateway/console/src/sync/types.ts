/** What the engine is made of and what it shows. */
import type { components } from "../contract.ts";
import type { Problem } from "../errors.ts";
import type { Change, Conflict } from "./change.ts";
import type { Graph } from "./graph.ts";

type Operation = components["schemas"]["Operation"];
export type Canvas = components["schemas"]["Canvas"];
export type CanvasChanges = components["schemas"]["CanvasChanges"];
export type Activity = components["schemas"]["Activity"];

export interface Request {
  baseRevision: string;
  idempotencyKey: string;
  operations: Operation[];
  force?: boolean;
}

export interface Answer {
  canvas: { revision: string; title: string };
  replayed: boolean;
  resolvedIds: Record<string, string>;
  changedNodeIds?: string[];
}

/** Requests to the service. Each throws a `Problem` if it fails. */
export interface Transport {
  read(): Promise<Canvas>;
  changes(since: string): Promise<CanvasChanges>;
  apply(request: Request): Promise<Answer>;
}

/** What a page leaves behind for the next one. */
export interface Kept {
  batches: Batch[];
  /** This client's ids by the service's. */
  aliases: Record<string, string>;
  conflicts: OpenConflict[];
}

export interface Storage {
  load(): Promise<Kept>;
  save(kept: Kept): Promise<void>;
}

export interface Environment {
  transport: Transport;
  storage: Storage;
  newId(): string;
  /** Whether changes may be made and sent to begin with. */
  canChange: boolean;
  /** Waits, or until `signal`. */
  wait(milliseconds: number, signal: AbortSignal): Promise<void>;
}

export interface Batch {
  key: string;
  label: string;
  /** The step of the history that it belongs to. */
  step: string;
  changes: Change[];
  /** What is done in the same session joins it until it is sent. */
  merge?: string;
  /** The request that was sent and has no answer yet. */
  sent?: Request;
  force?: boolean;
  /** Whether the service has another batch of the step already. */
  isRest?: boolean;
}

export type OpenConflict = Conflict & { key: string };

/** What others did in one or more revisions. */
export interface News {
  key: string;
  activity: Activity[];
  nodes: string[];
  /** How it is undone. */
  undo: Change[];
}

export type State =
  | "opening"
  | "saved"
  | "saving"
  /** The service cannot be reached, or not now. Changes are kept and sent again. */
  | "waiting"
  /** Stopped until `resume`: the session ended. */
  | "signed-out"
  /** The role no longer permits changes. The canvas is followed, and changes are kept until `permit` or `resume`. */
  | "read-only"
  /** Stopped until `resume`: the canvas was deleted or is no longer shared. */
  | "gone";

export interface Snapshot {
  state: State;
  graph: Graph | undefined;
  revision: string | undefined;
  /** Gestures that the service does not have yet. */
  waiting: number;
  problem: Problem | undefined;
  conflicts: OpenConflict[];
  undo: string | undefined;
  redo: string | undefined;
  news: News | undefined;
}
