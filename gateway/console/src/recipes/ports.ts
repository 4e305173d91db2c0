/** What the ports of a Recipe are given. */
import type { components } from "../contract.ts";
import type { FieldProblem } from "../errors.ts";
import { isSection, type Node } from "../sync/graph.ts";

export type Port = components["schemas"]["RecipePort"];

/** A node or an asset by its handle. */
export interface Source {
  handle: string;
  title: string;
  /** The image, if it is one. */
  asset?: string;
  /** The first words of a text. */
  excerpt?: string;
}

/** Words, or what a node or an asset holds. */
export type Value = { text: string } | Source;

/** Values by the key of the port. */
export type Values = Readonly<Record<string, Value>>;

export const MOST_LETTERS = 8000;

export const takesImage = ({ nodeType, writtenReference }: Port): boolean => nodeType === "image" || writtenReference === true;
export const takesText = ({ nodeType }: Port): boolean => nodeType !== "image";

export const isEmpty = (value: Value | undefined): boolean => value === undefined || ("text" in value && value.text.trim() === "");

/** The values as a start sends them. */
export const inputsOf = (values: Values): Record<string, string> =>
  Object.fromEntries(Object.entries(values).flatMap(([key, value]) => (isEmpty(value) ? [] : [[key, "text" in value ? value.text : value.handle]])));

/** The ports that still need a value. One with a saved default does not. */
export const missing = (ports: Port[], values: Values): Port[] => ports.filter(({ key, useAsPreset }) => !useAsPreset && isEmpty(values[key]));

/** Refusals by the key of the port, and those that concern something else under the empty name. */
export function problemsOf(ports: Port[], fields: FieldProblem[]): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const { field, message } of fields) {
    const key = ports.find(({ key }) => field === `inputs.${key}`)?.key ?? "";
    const text = key === "" ? `${field} ${message}` : message;
    problems[key] = problems[key] === undefined ? text : `${problems[key]}; ${text}`;
  }
  return problems;
}

export const holdsText = (node: Node): boolean => !isSection(node) && (node.type === "text" || node.type === "sticky") && (node.metadata.content ?? "").trim() !== "";

/** A node as a value. `realOf` gives the id that it has at the service. */
export const valueOf = ({ id, title, type, asset, metadata }: Node, realOf: (id: string) => string): Source => ({
  handle: `node:${realOf(id)}`,
  title: title || metadata.content?.slice(0, 60) || (type === "image" ? "Image" : "Text"),
  ...(asset !== undefined && { asset }),
  ...(metadata.content && { excerpt: metadata.content.slice(0, 160) }),
});

/**
 * What a selection gives to ports: images to ports for images and texts to ports for texts, each in order, and then the images that
 * are left to ports that take either.
 */
export function filled(ports: Port[], nodes: Node[], realOf: (id: string) => string): Values {
  const images = nodes.filter(({ type, asset }) => type === "image" && asset !== undefined);
  const texts = nodes.filter(holdsText);
  const values: Record<string, Value> = {};
  const give = (to: Port[], from: Node[]) => {
    for (const { key } of to) {
      const node = values[key] === undefined ? from.shift() : undefined;
      if (node) values[key] = valueOf(node, realOf);
    }
  };
  give(ports.filter((port) => !takesText(port)), images);
  give(ports.filter(takesText), texts);
  give(ports.filter(takesImage), images);
  return values;
}

/** Keys for ports from their labels, in the form that the service takes, all different. */
export function keysOf(labels: string[]): string[] {
  const taken = new Set<string>();
  return labels.map((label) => {
    const base = label.normalize("NFKD").toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-+|-+$/g, "").slice(0, 70) || "port";
    let key = base;
    for (let number = 2; taken.has(key); number += 1) key = `${base}-${number}`;
    taken.add(key);
    return key;
  });
}

/** The keys that a prompt names as `{{key}}`. */
export const namedIn = (prompt: string): string[] => [...new Set([...prompt.matchAll(/\{\{([^{}]*)\}\}/g)].map(([, key]) => (key ?? "").trim()))];
