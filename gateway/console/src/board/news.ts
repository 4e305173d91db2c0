/** What others did, as a sentence: from what has changed, not from what the service counted. */
import type { Change } from "../sync/change.ts";
import { type Graph, isSection, type Node } from "../sync/graph.ts";
import type { News } from "../sync/types.ts";

/** The most telling first: of several things that were done, the first of this list is said. */
const DEEDS = ["made", "deleted", "wrote", "started work on", "moved", "resized", "connected", "disconnected", "changed"] as const;
type Deed = (typeof DEEDS)[number];

const KINDS: Record<Node["type"], string> = { image: "an image", video: "a video", text: "a text", sticky: "a note" };
const TITLE_MAX = 60;

function subjectOf(node: Node | undefined): string {
  if (!node) return "something";
  const title = [...node.title.trim()];
  if (title.length === 0) return isSection(node) ? "a Section" : KINDS[node.type];
  return `‘${title.slice(0, TITLE_MAX).join("")}${title.length > TITLE_MAX ? "…" : ""}’`;
}

/** What the change did that `undo` takes back. */
function deedOf(undo: Change): Deed {
  switch (undo.do) {
    case "delete":
      return "made";
    case "restore":
    case "create":
    case "duplicate":
      return "deleted";
    case "disconnect":
      return "connected";
    case "connect":
    case "reconnect":
      return "disconnected";
    case "update": {
      if (undo.on === "connection") return "changed";
      const has = (...fields: string[]) => fields.some((field) => field in undo.set);
      if (has("asset")) return "made";
      if (has("title", "metadata.content", "metadata.prompt", "metadata.altText")) return "wrote";
      if (has("metadata.job")) return "started work on";
      if (has("width", "height")) return "resized";
      return has("position", "metadata.sectionId") ? "moved" : "changed";
    }
  }
}

/** The node that a change is about; of a connection, the one that it leads to. Undefined for the canvas itself. */
function nodeOf(undo: Change, graph: Graph): Node | undefined {
  if ("connection" in undo) return graph.nodes.get(undo.connection.toNodeId);
  if ("node" in undo) return undo.node;
  const id = undo.on === "connection" ? graph.connections.get(undo.id)?.toNodeId : undo.id;
  return graph.nodes.get(id ?? "");
}

/** "moved ‘Hero flower’ and 2 more". */
export function deedIn({ undo }: Pick<News, "undo">, graph: Graph): string {
  const all = undo.toReversed().map((change) => ({ deed: deedOf(change), isCanvas: change.do === "update" && change.on === "canvas", node: nodeOf(change, graph) }));
  const deed = DEEDS.find((one) => all.some((other) => other.deed === one)) ?? "changed";
  const those = all.filter((one) => one.deed === deed);
  const first = those.find(({ node }) => node && node.title.trim() !== "") ?? those[0];
  const others = new Set(all.flatMap(({ node }) => node?.id ?? [])).size - (first?.node ? 1 : 0);
  const what = first?.isCanvas ? "the title of this canvas" : subjectOf(first?.node);
  return `${deed} ${what}${others > 0 ? ` and ${others} more` : ""}`;
}

/** Whether it was a program that did something. */
export const isAgent = ({ surface }: { surface: string }): boolean => surface !== "browser";
