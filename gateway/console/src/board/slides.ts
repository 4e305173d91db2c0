/** What a presentation shows: pure functions of a graph. */
import { type Graph, isSection, type Node } from "../sync/graph.ts";
import { readingRows } from "./arrange.ts";

/** A Section with its members, or one image or video. */
export interface Slide {
  id: string;
  title: string;
  nodes: Node[];
}

const inOrder = (nodes: Node[]): Node[] => readingRows(nodes).flat();

/** Sections that have members, as they are read, each with these. */
export function sectionsOf(graph: Graph): [section: Node, members: Node[]][] {
  const all = [...graph.nodes.values()];
  const members = Map.groupBy(all, ({ metadata }) => metadata.sectionId);
  return inOrder(all.filter(isSection)).flatMap((section) => {
    const own = members.get(section.id);
    return own ? [[section, inOrder(own)] as [Node, Node[]]] : [];
  });
}

/** The Sections of a board as they are read, or if it has none its images and videos. */
export function slidesOf(graph: Graph): Slide[] {
  const sections = sectionsOf(graph).map(([section, members]): Slide => ({ id: section.id, title: section.title, nodes: [section, ...members] }));
  if (sections.length > 0) return sections;
  return inOrder([...graph.nodes.values()].filter(({ asset }) => asset !== undefined)).map((node) => ({ id: node.id, title: node.title, nodes: [node] }));
}

export const hasSlides = (graph: Graph): boolean => [...graph.nodes.values()].some(({ asset, metadata }) => asset !== undefined || graph.nodes.has(metadata.sectionId ?? ""));
