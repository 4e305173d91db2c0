/** Nodes on the clipboard, as the operations that make them: for another canvas, and for this one when they are deleted. */
import { firstOf } from "../format.ts";
import { operationsOf, type WRITABLE } from "../sync/change.ts";
import type { Connection, Graph, Node } from "../sync/graph.ts";
import { carried, connectionOf, type Copied } from "./gestures.ts";
import { MOST_TITLE } from "./limits.ts";
import { ROLES } from "./making.ts";
import { record } from "./videos.ts";

/** The type of copied nodes. */
export const NODES = "application/x-canvas-nodes";

/** Nodes of a canvas with the members of Sections and the connections among them. `real` maps an id to that at the service. */
export function copiedData(graph: Graph, ids: Iterable<string>, canvas: string, real: (id: string) => string): string {
  const all = carried(graph, ids);
  const nodes = [...all].flatMap((id) => graph.nodes.get(id) ?? []);
  const connections = [...graph.connections.values()].filter(({ fromNodeId, toNodeId }) => all.has(fromNodeId) && all.has(toNodeId));
  const operations = [
    ...nodes.flatMap((node) => operationsOf({ do: "create", node: { ...node, id: real(node.id) } }, real)),
    ...connections.flatMap((connection) => operationsOf({ do: "connect", connection }, real)),
  ];
  return JSON.stringify({ canvas, operations });
}

/** Reads copied nodes. Any page can write to the clipboard, so the data can be anything: what a node cannot have is left out. */
export function copiedFrom(data: string): Copied | undefined {
  let read: Record<string, unknown>;
  try {
    read = record(JSON.parse(data));
  } catch {
    return undefined;
  }
  const operations = Array.isArray(read["operations"]) ? read["operations"].map(record) : [];
  const nodes = operations.flatMap((one) => (one["type"] === "node.create" ? nodeFrom(one) : []));
  const connections = operations.flatMap((one) => (one["type"] === "connection.create" ? connectionFrom(one) : []));
  return nodes.length === 0 ? undefined : { canvas: String(read["canvas"]), nodes, connections };
}

const isText = (value: unknown): value is string => typeof value === "string";
const isFlag = (value: unknown) => typeof value === "boolean";
const isOneOf = <Name extends string>(...names: Name[]) => (value: unknown): value is Name => names.some((name) => name === value);
const isWithin = (least: number, most: number) => (value: unknown): value is number => typeof value === "number" && value >= least && value <= most;

const isType = isOneOf("image", "video", "text", "sticky");
const isPurpose = isOneOf("flow", "reference", "list", "first-frame", "last-frame");
const isPlace = isWithin(-1e7, 1e7);
const isSide = isWithin(1, 100_000);
const METADATA: Record<(typeof WRITABLE)[number], (value: unknown) => boolean> = {
  content: isText,
  prompt: isText,
  negativePrompt: isText,
  model: isText,
  size: isText,
  quality: isText,
  aspectRatio: isText,
  count: isWithin(1, 4),
  durationSeconds: isWithin(1, 120),
  color: (value) => isText(value) && /^#[0-9a-f]{6}$/i.test(value),
  fontSize: isWithin(1, 1000),
  textAlign: isOneOf("left", "center", "right"),
  section: isFlag,
  sectionId: isText,
  locked: isFlag,
  collapsed: isFlag,
  zIndex: Number.isSafeInteger,
  tags: (value) => Array.isArray(value) && value.every(isText),
  altText: isText,
  placeholder: isFlag,
  custom: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
};

function nodeFrom({ clientId, node }: Record<string, unknown>): Node[] {
  const { type, title, position, width, height, asset, metadata } = record(node);
  const { x, y } = record(position);
  if (!isText(clientId) || !isType(type) || !isText(title) || !isPlace(x) || !isPlace(y) || !isSide(width) || !isSide(height)) return [];
  const written = record(metadata);
  const kept = Object.entries(METADATA).filter(([key, isFit]) => isFit(written[key]));
  return [
    {
      id: clientId,
      handle: `node:${clientId}`,
      type,
      title: firstOf(title, MOST_TITLE),
      position: { x, y },
      width,
      height,
      ...(type === "image" && isText(asset) && { asset }),
      metadata: Object.fromEntries(kept.map(([key]) => [key, written[key]])),
    },
  ];
}

function connectionFrom({ fromNodeId, toNodeId, purpose, role }: Record<string, unknown>): Connection[] {
  if (!isText(fromNodeId) || !isText(toNodeId) || !isPurpose(purpose)) return [];
  return [connectionOf("", fromNodeId, toNodeId, purpose, ROLES.find((one) => one === role))];
}
