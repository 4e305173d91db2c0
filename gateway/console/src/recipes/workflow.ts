/** A Recipe that is made from nodes of a canvas: which of them are inputs, and how the others are made. */
import { firstOf } from "../format.ts";
import { type Graph, isSection, type Node } from "../sync/graph.ts";
import type { CreateWorkflow } from "./calls.ts";
import { keysOf, namedIn } from "./ports.ts";

/** What a node is in the new Recipe. */
export interface Part {
  /** The id of the node. */
  id: string;
  type: "image" | "text" | "sticky";
  role: "input" | "output" | "none";
  label: string;
  /** Whether the node holds something, which can be the default of an input. */
  isFull: boolean;
  useAsDefault: boolean;
  prompt: string;
  /** The ids of the nodes that an output is made from. */
  from: string[];
}

export const MOST_INPUTS = 16;
export const MOST_OUTPUTS = 8;

const isPart = (node: Node): boolean => !isSection(node) && node.type !== "video" && node.metadata.recipe === undefined;

/** The nodes of a selection that can be ports: the members of a Section in place of the Section. */
export function partsOf(graph: Graph, ids: Iterable<string>): Node[] {
  const wanted = new Set(ids);
  const nodes = [...graph.nodes.values()].filter((node) => isPart(node) && (wanted.has(node.id) || wanted.has(node.metadata.sectionId ?? "")));
  return nodes.toSorted((a, b) => a.position.x - b.position.x || a.position.y - b.position.y);
}

/** What nodes probably are: what something leads to is made, and what leads to something is given. */
export function proposed(graph: Graph, nodes: Node[]): Part[] {
  const ids = new Set(nodes.map(({ id }) => id));
  const links = [...graph.connections.values()].filter(({ fromNodeId, toNodeId }) => ids.has(fromNodeId) && ids.has(toNodeId));
  const isMade = new Set(links.map(({ toNodeId }) => toNodeId));
  return nodes.map(({ id, type, title, asset, metadata }) => {
    const isFull = type === "image" ? asset !== undefined : (metadata.content ?? "").trim() !== "";
    const isInput = !isMade.has(id) && (links.some(({ fromNodeId }) => fromNodeId === id) || isFull);
    return {
      id,
      type: type as Part["type"],
      role: isInput ? "input" : "output",
      label: firstOf(title || (type === "image" ? "Image" : "Text"), 80),
      isFull,
      useAsDefault: false,
      prompt: metadata.prompt ?? metadata.provenance?.prompt ?? "",
      from: links.filter(({ toNodeId }) => toNodeId === id).map(({ fromNodeId }) => fromNodeId),
    };
  });
}

/** The parts with the keys that they get. Inputs come first, because an output can only be made from what is before it. */
export function keyed(parts: Part[]): (Part & { key: string })[] {
  const used = [...parts.filter(({ role }) => role === "input"), ...parts.filter(({ role }) => role === "output")];
  const keys = keysOf(used.map(({ label }) => label));
  return used.map((part, index) => Object.assign({ key: keys[index] ?? "" }, part));
}

/** The request that makes the Recipe. An output is made from what is chosen for it and what its prompt names, else from every input. */
export function bodyOf(name: string, description: string, parts: Part[], handleOf: (id: string) => string): Omit<CreateWorkflow, "idempotencyKey"> {
  const all = keyed(parts);
  const inputs = all.filter(({ role }) => role === "input");
  const outputs = all.filter(({ role }) => role === "output");
  return {
    name,
    ...(description.trim() !== "" && { description }),
    inputs: inputs.map(({ id, key, label, type, useAsDefault, isFull }) => ({ key, label, type, sourceNodeId: handleOf(id), useAsDefault: useAsDefault && isFull })),
    outputs: outputs.map(({ key, label, type, prompt, from }) => {
      const before = all.slice(0, all.findIndex((part) => part.key === key));
      const named = namedIn(prompt);
      const chosen = before.filter((part) => from.includes(part.id) || named.includes(part.key)).map((part) => part.key);
      const unknown = named.filter((one) => !chosen.includes(one));
      const inputKeys = [...(chosen.length > 0 ? chosen : inputs.map((part) => part.key)), ...unknown];
      return { key, label, type: type === "image" ? "image" : "text", prompt, inputKeys };
    }),
  };
}

/** Refusals by part and field, such as `0.prompt` for the first part. Others are under the empty name. */
export function partProblems(parts: Part[], fields: { field: string; message: string }[]): Record<string, string> {
  const all = keyed(parts);
  const problems: Record<string, string> = {};
  for (const { field, message } of fields) {
    const [, list, index, name = ""] = /^(inputs|outputs)\[(\d+)\]\.(\w+)/.exec(field) ?? [];
    const part = all.filter(({ role }) => `${role}s` === list)[Number(index)];
    const at = part ? `${part.id}.${name === "label" ? "label" : "prompt"}` : "";
    const text = part ? message : `${field} ${message}`;
    problems[at] = problems[at] === undefined ? text : `${problems[at]}; ${text}`;
  }
  return problems;
}
