/** Variants: the nodes that one run has filled or fills. No data is written for them. */
import type { Graph, Node } from "../sync/graph.ts";

export interface Variant {
  /** Its number among the variants, from 1. */
  number: number;
  ids: string[];
}

const known = new WeakMap<Graph["nodes"], Map<string, Variant>>();

/** The run that has made what a node shows, or that fills it. The outputs of a Recipe are no variants of each other. */
const runOf = ({ metadata: { provenance, job, recipe } }: Node): string | undefined => (recipe ? undefined : (provenance?.run ?? job?.run));

function variantsIn(nodes: Graph["nodes"]): Map<string, Variant> {
  const present = known.get(nodes);
  if (present) return present;
  const runs = new Map<string, string[]>();
  for (const node of nodes.values()) {
    const run = runOf(node);
    if (run !== undefined) runs.set(run, [...(runs.get(run) ?? []), node.id]);
  }
  const variants = new Map([...runs.values()].filter((ids) => ids.length > 1).flatMap((ids) => ids.map((id, index): [string, Variant] => [id, { number: index + 1, ids }])));
  known.set(nodes, variants);
  return variants;
}

/** Undefined for a node that was made alone. */
export const variantOf = ({ nodes }: Graph, id: string | undefined): Variant | undefined => (id === undefined ? undefined : variantsIn(nodes).get(id));
