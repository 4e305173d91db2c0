/** What a person did, as steps that can be undone and redone. */
import type { Change } from "./change.ts";

export interface Step {
  id: string;
  label: string;
  /** What undoes it, or does it again. */
  changes: Change[];
  /** A step joins the one before if that has the same value. */
  merge: string | undefined;
  /** What could be redone before. */
  redo?: Step[];
  /** Of a step that starts work: what the work has put into its nodes belongs to it, and this ends the work when the step is undone. */
  undone?: (() => void) | undefined;
}

const MOST_STEPS = 200;

/** The nodes that a change concerns. */
function idsOf(change: Change): string[] {
  if ("connection" in change) return [change.connection.fromNodeId, change.connection.toNodeId];
  return "node" in change ? [change.node.id] : [change.id];
}

export class History {
  undo: Step[] = [];
  redo: Step[] = [];

  /** Adds what was done. Returns the id of the step that it is, or that it has joined. */
  add(step: Step): string {
    const last = this.undo.at(-1);
    const isJoined = step.merge !== undefined && step.merge === last?.merge && this.redo.length === 0;
    step.redo = this.redo;
    this.redo = [];
    if (last && isJoined) {
      last.changes = [...step.changes, ...last.changes];
      return last.id;
    }
    this.undo = [...this.undo, step].slice(-MOST_STEPS);
    return step.id;
  }

  /** Takes what concerns these nodes out of a step. */
  takePart(id: string, nodes: ReadonlySet<string>): Step | undefined {
    const step = [...this.undo, ...this.redo].find((one) => one.id === id);
    if (!step) return undefined;
    const concerns = (change: Change) => idsOf(change).some((one) => nodes.has(one));
    const changes = step.changes.filter(concerns);
    step.changes = step.changes.filter((change) => !concerns(change));
    if (step.changes.length === 0) this.take(id);
    return { ...step, changes };
  }

  /** Takes a step away, whether it was undone or not. If nothing was done since, what could be redone before can be redone again. */
  take(id: string): Step | undefined {
    const step = [...this.undo, ...this.redo].find((one) => one.id === id);
    if (step?.redo && step === this.undo.at(-1) && this.redo.length === 0) this.redo = step.redo;
    this.undo = this.undo.filter((one) => one !== step);
    this.redo = this.redo.filter((one) => one !== step);
    return step;
  }
}
