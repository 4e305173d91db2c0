/** What is exported, and what it is called: pure functions of a graph. */
import { firstOf } from "../format.ts";
import { type Graph, isSection, type Node } from "../sync/graph.ts";
import { readingRows } from "./arrange.ts";
import { carried } from "./gestures.ts";
import { sectionsOf } from "./slides.ts";

/** The images and videos among these nodes and in the Sections among them; without any, those of the board. */
export const filesIn = (graph: Graph, nodes: Node[]): Node[] =>
  [...(nodes.length === 0 ? graph.nodes.keys() : carried(graph, nodes.map(({ id }) => id)))].flatMap((id) => graph.nodes.get(id) ?? []).filter(({ asset }) => asset !== undefined);

/** What the service draws of these nodes: a Section with its members, these nodes, or without any the whole canvas. `real`: the id at the service. */
export function partOf(nodes: Node[], real: (id: string) => string): { section?: string; nodes?: string } {
  const [node] = nodes;
  if (!node) return {};
  if (nodes.length === 1 && isSection(node)) return { section: real(node.id) };
  return { nodes: nodes.map(({ id }) => real(id)).join(",") };
}

/** The longest name of a file or folder, in characters, without ending. */
const MOST_NAME = 110;

const trim = (text: string): string => text.replaceAll(/\s+/g, " ").replaceAll(/^[. ]+|[. ]+$/g, "");

/** A title as the name of a file or folder of every system, without an ending. */
export function nameFor(title: string, otherwise: string): string {
  const plain = title.normalize("NFC").replaceAll(/[/\\:*?"<>|\p{C}]/gu, " ").replace(/\.(jpe?g|png|webp|gif|avif|hei[cf]|mp4|txt)$/i, "");
  return trim(firstOf(trim(plain), MOST_NAME)) || otherwise;
}

/**
 * The paths of these nodes in a ZIP, without endings: numbered as they are read, in a folder for each Section. No two are equal, also where
 * a system makes no difference between capital and small letters.
 */
export function pathsOf(graph: Graph, nodes: Node[]): Map<string, string> {
  const wanted = new Set(nodes.map(({ id }) => id));
  const paths = new Map<string, string>();
  const number = (members: Node[], folder: string) => {
    const digits = Math.max(String(members.length).length, 2);
    for (const [at, { id, title, type }] of members.entries()) paths.set(id, `${folder}${String(at + 1).padStart(digits, "0")} ${nameFor(title, type)}`);
  };
  const taken = new Set<string>();
  for (const [section, members] of sectionsOf(graph)) {
    const own = members.filter(({ id }) => wanted.has(id));
    if (own.length === 0) continue;
    const name = nameFor(section.title, "Section");
    let folder = name;
    for (let next = 2; taken.has(folder.toLowerCase()); next += 1) folder = `${name} ${next}`;
    taken.add(folder.toLowerCase());
    number(own, `${folder}/`);
  }
  number(readingRows(nodes.filter(({ id }) => !paths.has(id))).flat(), "");
  return paths;
}

/** What an export is called: by the one node that it has, or by the canvas. */
export const titleOf = (graph: Graph, [node, ...others]: Node[]): string => nameFor(others.length === 0 && node ? node.title : graph.title, "Canvas");
