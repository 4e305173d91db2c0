/** What Look goes through on the board, and what it is opened with. */
import type { Graph, Node } from "../sync/graph.ts";
import { readingRows } from "./arrange.ts";
import type { Board } from "./board.ts";
import { linksAt } from "./links.ts";
import { isPicture } from "./marks.ts";
import { variantOf } from "./variants.ts";

/** What is looked at: one of several, or several beside each other. */
export interface Looked {
  at: string;
  /** What the arrow keys go through, if several were selected. */
  among?: string[];
  compared?: string[];
}

/** The fewest and the most pictures that are compared. */
const COMPARED = [2, 8] as const;

const picturesIn = ({ nodes }: Graph, ids: Iterable<string>): Node[] => [...ids].flatMap((id) => nodes.get(id) ?? []).filter(isPicture);
const inReadingOrder = (nodes: Node[]): Node[] => readingRows(nodes).flat();

/** What the arrow keys go through: what was selected, or else the variants of the run, or else the Section or the board, in reading order. */
export function siblingsOf(graph: Graph, { at, among }: Looked, matching?: ReadonlySet<string>): Node[] {
  const variants = variantOf(graph, at)?.ids ?? [];
  const few = picturesIn(graph, among ?? variants);
  if (few.length > 1 && few.some(({ id }) => id === at)) return few;
  const home = graph.nodes.get(at)?.metadata.sectionId;
  const isBeside = (node: Node) => node.id === at || (isPicture(node) && (home === undefined || node.metadata.sectionId === home) && (matching?.has(node.id) ?? true));
  return inReadingOrder([...graph.nodes.values()].filter(isBeside));
}

/** The pictures that a picture was made from, as far as they are on the board. */
export function sourcesOf(graph: Graph, node: Node): Node[] {
  const handles = new Set<string>((node.metadata.provenance?.references ?? []).map(({ handle }) => handle));
  const named = [...graph.nodes.values()].filter(({ handle, asset }) => handles.has(handle) || (asset !== undefined && handles.has(asset)));
  const linked = linksAt(graph, node.id).filter(({ to }) => to.id === node.id).map(({ from }) => from);
  return [...new Set([...named, ...linked])].filter((one) => isPicture(one) && one.id !== node.id);
}

/** The pictures that were made from a picture. */
export function madeFrom(graph: Graph, node: Node): Node[] {
  const named = [...graph.nodes.values()].filter(({ metadata: { provenance } }) => provenance?.references.some(({ handle }) => handle === node.handle || handle === node.asset));
  const linked = linksAt(graph, node.id).filter(({ from }) => from.id === node.id).map(({ to }) => to);
  return [...new Set([...named, ...linked])].filter((one) => isPicture(one) && one.id !== node.id);
}

/** Whether all of these can be looked at. */
export const canLook = (nodes: Node[]): boolean => nodes.length > 0 && nodes.every(isPicture);
export const canCompare = (nodes: Node[]): boolean => nodes.length >= COMPARED[0] && nodes.length <= COMPARED[1] && nodes.every(({ type, asset }) => type === "image" && asset !== undefined);

/** Shows a picture large, or the first of several. It is selected: what is done then is done with it. */
export function lookAt(board: Board, ids: Iterable<string> = board.getUi().selection): void {
  const pictures = inReadingOrder(picturesIn(board.graph, ids));
  const [first] = pictures;
  if (!first) return;
  board.select([first.id]);
  board.set({ menu: undefined, look: { at: first.id, ...(pictures.length > 1 && { among: pictures.map(({ id }) => id) }) } });
}

/** Shows pictures beside each other. */
export function compare(board: Board, ids: Iterable<string> = board.getUi().selection): void {
  const compared = inReadingOrder(picturesIn(board.graph, ids)).map(({ id }) => id);
  const [at] = compared;
  if (at === undefined) return;
  board.select([at]);
  board.set({ menu: undefined, look: { at, compared } });
}
