/** A filter of what is on the board: what it asks for, what matches, and how it is written in the address. */
import { altOf } from "../alt.ts";
import { type Graph, isSection, type Node } from "../sync/graph.ts";
import { kindOf } from "./gestures.ts";
import { LABELS, type Marks, marksOf, marksSaid } from "./marks.ts";

export interface Filter {
  favorite?: true;
  /** At least so many. */
  stars?: number;
  label?: NonNullable<Marks["label"]>;
  kind?: (typeof KINDS)[number];
  by?: (typeof MAKERS)[number];
  model?: string;
  noAlt?: true;
  /** A part of what it is called or says, or of its prompt. */
  text?: string;
}

export const KINDS = ["image", "video", "text", "note"] as const;
export const MAKERS = ["people", "agents"] as const;

const isOneOf = <T extends string>(all: readonly T[], value: string | null): value is T => (all as readonly (string | null)[]).includes(value);

/** The filter that an address names. What is unknown in it is left out. Undefined if it names none. */
export function filterOf(text: string | null): Filter | undefined {
  if (text === null) return undefined;
  const params = new URLSearchParams(text);
  const [label, kind, by] = [params.get("label"), params.get("kind"), params.get("by")];
  const stars = Number(params.get("stars"));
  return {
    ...(params.has("favorite") && { favorite: true as const }),
    ...([1, 2, 3, 4, 5].includes(stars) && { stars }),
    ...(isOneOf(LABELS, label) && { label }),
    ...(isOneOf(KINDS, kind) && { kind }),
    ...(isOneOf(MAKERS, by) && { by }),
    ...(params.get("model") && { model: params.get("model") ?? "" }),
    ...(params.has("no-alt") && { noAlt: true as const }),
    ...(params.get("text") && { text: params.get("text") ?? "" }),
  };
}

/** The filter as an address names it. */
export function textOf({ noAlt, ...rest }: Filter): string {
  const entries = Object.entries({ ...rest, ...(noAlt && { "no-alt": true }) }).map(([name, value]): [string, string] => [name, value === true ? "yes" : String(value)]);
  return new URLSearchParams(entries).toString();
}

/** The model that has made what a node shows. */
export const modelOf = ({ metadata: { provenance } }: Node): string | undefined => provenance?.model;

/** Whether a picture has no words for those who do not see it. */
const lacksAlt = (node: Node): boolean => (node.type === "image" || node.type === "video") && node.asset !== undefined && node.metadata.altText === undefined && altOf(node) === "Picture without description";

function matches(node: Node, { favorite, stars, label, kind, by, model, noAlt }: Filter, text: string): boolean {
  const { tags, createdBy, content = "", prompt = "", provenance } = node.metadata;
  if ((favorite || stars !== undefined || label) && !tags) return false;
  const marks = tags && marksOf(node);
  return (
    (!favorite || marks?.isFavorite === true) &&
    (stars === undefined || (marks?.rating ?? 0) >= stars) &&
    (!label || marks?.label === label) &&
    (!kind || kindOf(node) === kind) &&
    (!by || (createdBy === "agent") === (by === "agents")) &&
    (model === undefined || modelOf(node) === model) &&
    (!noAlt || lacksAlt(node)) &&
    (text === "" || [node.title, content, provenance?.prompt ?? prompt].some((one) => one.toLowerCase().includes(text)))
  );
}

export const isEmpty = (filter: Filter): boolean => Object.keys(filter).length === 0;

/** The nodes that can match: a Section is the place of others. */
export const filterable = ({ nodes }: Graph): Node[] => [...nodes.values()].filter((node) => !isSection(node));

let last: { nodes: Graph["nodes"]; filter: Filter; matching: ReadonlySet<string> } | undefined;

/** The ids of the nodes that match, and of all Sections; undefined without a filter that leaves something out. */
export function matchingIn({ nodes }: Graph, filter: Filter | undefined): ReadonlySet<string> | undefined {
  if (!filter || isEmpty(filter)) return undefined;
  if (last?.nodes === nodes && last.filter === filter) return last.matching;
  const text = filter.text?.trim().toLowerCase() ?? "";
  const matching = new Set<string>();
  for (const node of nodes.values()) if (isSection(node) || matches(node, filter, text)) matching.add(node.id);
  last = { nodes, filter, matching };
  return matching;
}

/** Whether anything is marked, so that a filter has something to find. */
export const hasMarks = ({ nodes }: Graph): boolean => [...nodes.values()].some((node) => node.metadata.tags && marksSaid(node) !== undefined);
