/** What gestures change: pure functions from a graph to changes of it. */
import { type Change, remove, update } from "../sync/change.ts";
import { type Connection, type Graph, isSection, type Node, type Purpose, type Role, valueOf, withFields } from "../sync/graph.ts";
import type { Box, Point, Size } from "../view.ts";
import { PURPOSE_WORDS, ROLE_WORDS } from "../words.ts";
import { isActive, isOver, statusOf } from "../work.ts";
import { linksAt } from "./links.ts";
import { marksSaid } from "./marks.ts";
import { placeFor, type Where } from "./places.ts";
import { around, boxOf, encloses, middleOf, touches } from "./spatial.ts";
import { videoOf } from "./videos.ts";

export type Kind = "image" | "video" | "text" | "sticky" | "section";
type NewId = () => string;

/** Nodes on the clipboard. */
export interface Copied {
  /** The handle of the canvas that they were copied from. */
  canvas: string;
  /** With their ids at the service. */
  nodes: Node[];
  connections: Connection[];
}

/** The service's default sizes, and one for Sections. */
const SIZES: Record<Kind, Size> = {
  image: { width: 320, height: 320 },
  video: { width: 480, height: 270 },
  text: { width: 320, height: 160 },
  sticky: { width: 240, height: 240 },
  section: { width: 960, height: 640 },
};
/** What a node is called until it is named. */
export const TITLES: Record<Kind, string> = { image: "Image", video: "Video", text: "Text", sticky: "Note", section: "Section" };
/** Room between a Section's frame and its members; above them is its title. */
const PADDING = 40;
const HEAD = 72;
/** The size that the service accepts. */
const LEAST_SIDE = 24;
const MOST_SIDE = 100_000;

const whole = ({ x, y }: Point): Point => ({ x: Math.round(x), y: Math.round(y) });

/** A new node whose middle is at `point`, in the Section that is there. */
export function newNode(graph: Graph, kind: Kind, id: string, point: Point, rest: Partial<Node> = {}): Node {
  const size = { ...SIZES[kind], ...(rest.width && { width: rest.width }), ...(rest.height && { height: rest.height }) };
  const position = rest.position ?? whole({ x: point.x - size.width / 2, y: point.y - size.height / 2 });
  const home = kind === "section" ? undefined : sectionAround(graph, { ...position, ...size });
  const metadata = { ...(kind === "section" && { section: true }), ...(home && { sectionId: home.id }), ...rest.metadata };
  const type = kind === "section" ? "sticky" : kind;
  return { id, handle: `node:${id}`, type, title: TITLES[kind], ...rest, position, ...size, metadata };
}

export const sizeOf = (kind: Kind): Size => SIZES[kind];

/** The Section that holds the middle of `box`. */
function sectionAround(graph: Graph, box: Box): Node | undefined {
  const { x, y } = middleOf(box);
  return [...graph.nodes.values()].findLast((node) => isSection(node) && touches(boxOf(node), { x, y, width: 0, height: 0 }));
}

/** These nodes and the members of the Sections among them. */
export function carried(graph: Graph, ids: Iterable<string>): Set<string> {
  const moved = new Set([...ids].filter((id) => graph.nodes.has(id)));
  const sections = new Set([...moved].filter((id) => isSection(graph.nodes.get(id) as Node)));
  if (sections.size > 0) {
    for (const node of graph.nodes.values()) if (sections.has(node.metadata.sectionId ?? "")) moved.add(node.id);
  }
  return moved;
}

/** Where the nodes that are being moved were when that began, and how far they are from there. What others do to them moves none of them. */
export interface Drag {
  from: ReadonlyMap<string, Point>;
  by: Point;
}

/** The beginning of a move of these nodes. */
export const dragOf = (graph: Graph, ids: Iterable<string>): Drag => ({
  from: new Map([...carried(graph, ids)].map((id) => [id, (graph.nodes.get(id) as Node).position])),
  by: { x: 0, y: 0 },
});

/** Moves nodes, from where they are or from there. A node that is dropped in a Section joins it, and one that is dropped outside leaves its own. */
export function moved(graph: Graph, ids: Iterable<string>, by: Point, from?: Drag["from"]): Change[] {
  const all = carried(graph, ids);
  return [...all].flatMap((id) => {
    const node = graph.nodes.get(id) as Node;
    const start = from?.get(id) ?? node.position;
    const position = whole({ x: start.x + by.x, y: start.y + by.y });
    const home = node.metadata.sectionId;
    if (isSection(node) || (home !== undefined && all.has(home))) return update("node", node, { position });
    const next = sectionAround(graph, { ...boxOf(node), ...position });
    return update("node", node, { position, ...(next?.id !== home && { "metadata.sectionId": next?.id ?? null }) });
  });
}

const side = (length: number) => Math.min(Math.max(Math.round(length), LEAST_SIDE), MOST_SIDE);

export function resized(node: Node, { x, y, width, height }: Box): Change {
  return update("node", node, { position: whole({ x, y }), width: side(width), height: side(height) });
}

/** Deletes nodes; the members of a Section before the Section, so that an undo knows where they belonged. */
export function removed(graph: Graph, ids: Iterable<string>): Change[] {
  const nodes = [...ids].flatMap((id) => graph.nodes.get(id) ?? []);
  return nodes.toSorted((a, b) => Number(isSection(a)) - Number(isSection(b))).map(remove);
}

/** How far nodes are moved to where there is room for all of them together. */
function wayOf(graph: Graph, nodes: Node[], where: Where): Point {
  const box = around(nodes.map(boxOf)) ?? { x: 0, y: 0, width: 0, height: 0 };
  const { x, y } = placeFor(graph, box, where);
  return whole({ x: x - box.x, y: y - box.y });
}

/** Copies nodes with the connections among them, beside the originals or at a point. `copies` maps each original to its copy. */
export function duplicated(graph: Graph, ids: Iterable<string>, newId: NewId, { at, free }: Where): { changes: Change[]; copies: Map<string, string> } {
  const all = [...carried(graph, ids)].map((id) => graph.nodes.get(id) as Node);
  const by = wayOf(graph, all, { free, ...(at ? { at } : { sources: all }) });
  const copies = new Map(all.map(({ id }) => [id, newId()]));
  const changes: Change[] = all.map((node) => {
    const { job, provenance, history, source, recipe, upload, ...metadata } = node.metadata;
    const id = copies.get(node.id) as string;
    const position = { x: node.position.x + by.x, y: node.position.y + by.y };
    return { do: "duplicate", of: node.id, node: { ...node, id, handle: `node:${id}`, position, metadata } };
  });
  for (const node of all) {
    const home = node.metadata.sectionId ?? null;
    const at = { x: node.position.x + by.x, y: node.position.y + by.y };
    const next = copies.get(home ?? "") ?? (isSection(node) ? home : (sectionAround(graph, { ...boxOf(node), ...at })?.id ?? null));
    // The service puts a copy into the Section of its original.
    if (next !== home) changes.push({ do: "update", on: "node", id: copies.get(node.id) as string, set: { "metadata.sectionId": next }, was: { "metadata.sectionId": home } });
  }
  return { changes: [...changes, ...linksAmong(copies, graph.connections.values(), newId)], copies };
}

/** Makes nodes that were copied, with the connections among them, where there is room. `copies` maps each of them to the one that is made. */
export function pasted(graph: Graph, { nodes, connections }: Copied, newId: NewId, where: Where): { changes: Change[]; copies: Map<string, string> } {
  const by = wayOf(graph, nodes, where);
  const copies = new Map(nodes.map(({ id }) => [id, newId()]));
  // A Section is there before its members.
  const sorted = nodes.toSorted((a, b) => Number(isSection(b)) - Number(isSection(a)));
  const changes = sorted.map((node): Change => {
    const id = copies.get(node.id) as string;
    const position = { x: node.position.x + by.x, y: node.position.y + by.y };
    const home = copies.get(node.metadata.sectionId ?? "") ?? (isSection(node) ? undefined : sectionAround(graph, { ...boxOf(node), ...position })?.id);
    return { do: "create", node: withFields({ ...node, id, handle: `node:${id}`, position }, { "metadata.sectionId": home }) };
  });
  return { changes: [...changes, ...linksAmong(copies, connections, newId)], copies };
}

/** The connections among nodes, for their copies. */
const linksAmong = (copies: Map<string, string>, connections: Iterable<Connection>, newId: NewId): Change[] =>
  [...connections].flatMap(({ fromNodeId, toNodeId, purpose, role }) => {
    const [from, to] = [copies.get(fromNodeId), copies.get(toNodeId)];
    return from === undefined || to === undefined ? [] : { do: "connect", connection: connectionOf(newId(), from, to, purpose, role) };
  });

/** A Section around nodes, which become its members. Without nodes, an empty one at `place`. */
export function sectioned(graph: Graph, ids: Iterable<string>, id: string, place: Point): Change[] {
  const nodes = [...ids].flatMap((one) => graph.nodes.get(one) ?? []).filter((node) => !isSection(node));
  const box = around(nodes.map(boxOf));
  if (!box) return [{ do: "create", node: newNode(graph, "section", id, place, { position: place }) }];
  const position = whole({ x: box.x - PADDING, y: box.y - HEAD });
  const size = { width: Math.round(box.width + 2 * PADDING), height: Math.round(box.height + PADDING + HEAD) };
  const section = newNode(graph, "section", id, place, { position, ...size });
  return [{ do: "create", node: section }, ...nodes.map((node) => update("node", node, { "metadata.sectionId": id }))];
}

/** The nodes that a selection rectangle takes: none that is locked, and Sections only if they are inside as a whole. */
export const enclosed = (nodes: Node[], box: Box): string[] =>
  nodes.filter((node) => node.metadata.locked !== true && (isSection(node) ? encloses(box, boxOf(node)) : touches(box, boxOf(node)))).map(({ id }) => id);

/** Whether an image can take the place of a node. The slots of a Recipe stay: its instance knows them by their ids. */
export const isEmptySlot = ({ type, asset, metadata: { job, recipe } }: Node): boolean =>
  type === "image" && asset === undefined && !recipe && (!job || isOver(job.status));

/**
 * Puts an image, a node of the canvas or a new one, in the place of an empty slot: with its box, title, Section and connections. The
 * slot is deleted, because the service gives no image to a node that exists; before the connections are made, because a video has one
 * first frame.
 */
export function filled(graph: Graph, slot: Node, image: Node, newId: NewId): Change[] {
  const fields = ["position", "width", "height", "title", "metadata.sectionId", "metadata.zIndex"];
  const set = Object.fromEntries(fields.map((field) => [field, valueOf(slot, field)]));
  const at = (id: string) => (id === slot.id ? image.id : id);
  return [
    graph.nodes.has(image.id) ? update("node", image, set) : { do: "create", node: withFields(image, set) },
    remove(slot),
    ...linksAt(graph, slot.id).map(
      ({ connection: { fromNodeId, toNodeId, purpose, role } }): Change => ({ do: "connect", connection: connectionOf(newId(), at(fromNodeId), at(toNodeId), purpose, role) }),
    ),
  ];
}

/** The size of the letters of a text or note. Without one of its own, a note has the largest at which its text fits, as the service draws it. */
export function letterSize({ type, width, height, metadata: { content = "", fontSize } }: Node): number {
  if (fontSize !== undefined || type !== "sticky") return fontSize ?? 15;
  const area = (width - 36) * (height - 60);
  const lines = content.split("\n").length;
  return [26, 21, 17, 14].find((size) => content.length * size * size * 0.8 <= area && lines * size * 1.42 <= height - 60) ?? 12;
}

// Connections

export interface Choice {
  purpose: Purpose;
  role?: Role;
  label: string;
}

export const connectionOf = (id: string, fromNodeId: string, toNodeId: string, purpose: Purpose, role?: Role): Connection => ({
  id,
  handle: `connection:${id}`,
  fromNodeId,
  toNodeId,
  from: `node:${fromNodeId}`,
  to: `node:${toNodeId}`,
  purpose,
  ...(role && { role }),
});

function choiceOf(purpose: Purpose, role?: Role): Choice {
  const use = { purpose, ...(role && { role }) };
  return { ...use, label: purposeInFull(use) };
}

/** What two nodes can be connected for, as if the connection `except` were not there. */
export function choices(graph: Graph, from: Node, to: Node, except?: string): Choice[] {
  if (from.id === to.id) return [];
  const present = [...graph.connections.values()].filter(({ id }) => id !== except);
  const taken = new Set(present.filter((one) => one.fromNodeId === from.id && one.toNodeId === to.id).map(({ purpose }) => purpose));
  const frames = new Set(present.filter((one) => one.toNodeId === to.id).map(({ purpose }) => purpose));
  const isFrame = from.type === "image" && to.type === "video";
  const all = [
    choiceOf("flow"),
    ...(from.type === "video" ? [] : [choiceOf("reference")]),
    ...(from.type === "image" ? Object.keys(ROLE_WORDS).map((role) => choiceOf("reference", role as Role)) : []),
    choiceOf("list"),
    ...(isFrame && !frames.has("first-frame") ? [choiceOf("first-frame")] : []),
    ...(isFrame && !frames.has("last-frame") ? [choiceOf("last-frame")] : []),
  ];
  return all.filter(({ purpose }) => !taken.has(purpose));
}

/** What a connection is for, in short. */
export const purposeOf = ({ purpose, role }: Pick<Connection, "purpose" | "role">): string => (role ? ROLE_WORDS[role] : PURPOSE_WORDS[purpose].toLowerCase());

/** The same in full, as a choice and for who does not see the line. */
export const purposeInFull = ({ purpose, role }: Pick<Connection, "purpose" | "role">): string => `${PURPOSE_WORDS[purpose]}${role ? `: ${ROLE_WORDS[role]}` : ""}`;

// Words

export const kindOf = (node: Node): string => (isSection(node) ? "Section" : node.type === "sticky" ? "note" : node.type);

/** The handle of the work at a node: of a run, or of the job that makes a video. */
export const workAt = ({ type, metadata: { job } }: Node): string | undefined => (type === "video" ? (job?.id ?? job?.run) : job?.run);

/** The runs that fill these nodes now, each once. */
export function runsAt(nodes: Node[]): { handle: string; kind: string; operation: string; creditCost: number }[] {
  const runs = nodes.flatMap((node) => {
    const handle = workAt(node);
    const isRunning = node.asset === undefined && isActive(statusAt(node) ?? "canceled");
    return handle !== undefined && isRunning ? [[handle, { handle, kind: node.type === "video" ? "video" : "image", operation: node.metadata.job?.operation ?? "", creditCost: 0 }] as const] : [];
  });
  return [...new Map(runs).values()];
}

/** The status of the work at a node. Work that failed in part has succeeded where it has made something. */
export const statusAt = ({ metadata: { job, provenance } }: Node): string | undefined => (job && provenance?.run === job.run && isOver(job.status) ? "succeeded" : job?.status);

/** The id of the element that says more of a node's state than the graph: how far a video is, why work failed. */
export const stateId = (node: string): string => `state-${node}`;

/** What a screen reader says of a node. */
export function described(graph: Graph, node: Node): string {
  const { content, sectionId, job, createdBy } = node.metadata;
  const home = sectionId === undefined ? undefined : graph.nodes.get(sectionId);
  const kind = kindOf(node);
  const status = statusAt(node);
  const isEmpty = !node.asset && (node.type === "image" || (node.type === "video" && !videoOf(node)));
  return [
    `${kind[0]?.toUpperCase()}${kind.slice(1)} ${node.title || "without a title"}`,
    content?.slice(0, 120),
    isEmpty && !job ? "empty" : undefined,
    status !== undefined && status !== "succeeded" ? statusOf(status).toLowerCase() : undefined,
    home && `in Section ${home.title}`,
    createdBy === "agent" ? "made by an agent" : undefined,
    marksSaid(node),
  ]
    .filter(Boolean)
    .join(", ");
}
