/** What a canvas does not take any more, as files: batches for `canvas apply`, and texts to read. */
import { MOST_OPERATIONS, nameOf, operationsOf } from "../sync/change.ts";
import type { Engine } from "../sync/engine.ts";
import type { Graph } from "../sync/graph.ts";
import type { Batch, OpenConflict, Request } from "../sync/types.ts";

export interface UnsentFile {
  /** What its button says. */
  label: string;
  name: string;
  type: string;
  content: string;
}

/** A body of the operations route. Without a revision, `canvas apply` takes the newest one. */
export interface Body {
  baseRevision: string | undefined;
  idempotencyKey: string;
  operations: Request["operations"];
  force: boolean;
}

/** Whether the batch is sent with `force`. */
const isForced = ({ force = false, changes }: Batch) => force || !changes.some((change) => change.do === "delete");

/**
 * Bodies in the order in which they have to be applied. Batches are joined as far as the service permits: a node that is made has no id
 * that another body could name.
 */
export function bodiesOf(batches: readonly Batch[], real: (id: string) => string, revision: string | undefined): Body[] {
  const bodies: Body[] = [];
  for (const batch of batches) {
    const operations = batch.changes.flatMap((change) => operationsOf(change, real));
    const last = bodies.at(-1);
    if (last && last.operations.length + operations.length <= MOST_OPERATIONS) {
      last.operations.push(...operations);
      last.force &&= isForced(batch);
    } else {
      // Each body changes the revision for the next one.
      const baseRevision = last ? undefined : (batch.sent?.baseRevision ?? revision);
      bodies.push({ baseRevision, idempotencyKey: batch.key, operations, force: isForced(batch) });
    }
  }
  return bodies;
}

const FIELDS: Record<string, string> = { title: "title", "metadata.content": "text", "metadata.prompt": "prompt", "metadata.altText": "description" };

/** What a conflict is about. */
export function subjectOf(graph: Graph | undefined, { on, id, field }: OpenConflict): string {
  if (on === "canvas") return "The title of the canvas";
  const node = graph?.nodes.get(id);
  return `The ${FIELDS[field] ?? "value"} of ${node ? nameOf(node) : graph ? "something deleted" : `node:${id}`}`;
}

export const textOf = (value: unknown): string => (typeof value === "string" && value !== "" ? value : "(empty)");

/** Both texts of each conflict. */
export const textsOf = (graph: Graph | undefined, conflicts: OpenConflict[]): string =>
  conflicts.map((one) => `${subjectOf(graph, one)}\n\nYours:\n${textOf(one.mine)}\n\nTheirs:\n${textOf(one.theirs)}\n`).join("\n---\n\n");

export function unsentFilesOf(engine: Engine, canvas: string): UnsentFile[] {
  const { graph, revision, conflicts } = engine.getSnapshot();
  const bodies = bodiesOf(engine.unsent(), engine.real, revision);
  const of = canvas.replaceAll(":", " ");
  const files = bodies.map((body, index): UnsentFile => {
    const [label, part] = bodies.length === 1 ? ["Save them as a file", ""] : [`Save file ${index + 1} of ${bodies.length}`, ` ${index + 1}`];
    return { label, name: `changes of ${of}${part}.json`, type: "application/json", content: JSON.stringify(body, undefined, 2) };
  });
  if (conflicts.length > 0) files.push({ label: "Save the texts in conflict", name: `texts of ${of}.txt`, type: "text/plain", content: textsOf(graph, conflicts) });
  return files;
}
