/**
 * Changes of a graph: how they are applied, undone, sent, and what becomes of them when somebody else changed the graph before.
 *
 * A change carries what it found: an update the values that it replaces, a deletion the node that it deletes. So whether somebody else
 * touched the same thing is seen by comparing, whatever happened in between.
 */
import type { components } from "../contract.ts";
import { type Connection, Draft, type Fields, type Graph, isSection, type Node, same, valueOf, withFields } from "./graph.ts";
import { mergedTags } from "./tags.ts";

/** The service's limit on operations of a batch. */
export const MOST_OPERATIONS = 200;

type Operation = components["schemas"]["Operation"];

export type Change =
  | { do: "create"; node: Node }
  /** A copy of the node `of`. Only its position is its own. */
  | { do: "duplicate"; of: string; node: Node }
  | { do: "delete"; node: Node; connections: Connection[]; members: string[] }
  /** Brings back a node that was deleted, under its id. */
  | { do: "restore"; node: Node; members: string[] }
  | { do: "connect"; connection: Connection }
  | { do: "disconnect"; connection: Connection }
  | { do: "reconnect"; connection: Connection }
  /** Sets fields of a node, of a connection, or the title of the canvas. */
  | { do: "update"; on: "node" | "connection" | "canvas"; id: string; set: Fields; was: Fields };

/** Texts that two people wrote at the same time. Nobody's is lost: a person chooses. */
export interface Conflict {
  on: "node" | "canvas";
  id: string;
  field: string;
  mine: unknown;
  theirs: unknown;
}

/** Fields that people write. For all others, the last writer wins. */
const TEXTS = new Set(["title", "metadata.content", "metadata.prompt", "metadata.altText"]);
/** How long each of them may be, in characters, and what is put between two that are joined. */
const JOINED: Record<string, { most: number; between: string }> = {
  title: { most: 160, between: " / " },
  "metadata.content": { most: 24_000, between: "\n\n" },
  "metadata.prompt": { most: 8000, between: "\n\n" },
  "metadata.altText": { most: 1000, between: " / " },
};
/** What a person would miss of a node that is deleted. */
const WORK = ["title", "asset", "metadata.content", "metadata.prompt", "metadata.altText"];
const MEMBERS = ["title", "type", "position", "width", "height"];
export const WRITABLE = [
  "content", "prompt", "negativePrompt", "model", "size", "quality", "aspectRatio", "count", "durationSeconds", "color", "fontSize",
  "textAlign", "section", "sectionId", "locked", "collapsed", "zIndex", "tags", "custom", "altText",
  "placeholder",
] as const; // prettier-ignore
/** The fields that show whether a node is still as it was made. Its Section is looked at by itself: it may have been deleted. */
const STATE = [...WORK, "position", "width", "height", "metadata.job", ...WRITABLE.filter((key) => key !== "sectionId").map((key) => `metadata.${key}`)];

export const update = (on: "node" | "connection", item: { id: string }, set: Fields): Change => ({
  do: "update",
  on,
  id: item.id,
  set,
  was: Object.fromEntries(Object.keys(set).map((field) => [field, valueOf(item, field)])),
});

/** Deletes a node. What goes with it is looked up when the change is made. */
export const remove = (node: Node): Change => ({ do: "delete", node, connections: [], members: [] });

/** The change that gives a canvas another title than the one that it `was`. */
export const retitle = (was: string, title: string): Change => ({ do: "update", on: "canvas", id: "", set: { title }, was: { title: was } });

export function applyTo(draft: Draft, change: Change): void {
  switch (change.do) {
    case "create":
      return draft.putNode(change.node);
    case "duplicate":
      // The service gives it a ref of its own.
      return draft.putNode(withFields(change.node, { ref: null }));
    case "restore":
      draft.putNode(change.node);
      for (const id of change.members) {
        const member = draft.node(id);
        if (member) draft.putNode(withFields(member, { "metadata.sectionId": change.node.id }));
      }
      return;
    case "delete":
      return draft.dropNode(change.node.id);
    case "connect":
    case "reconnect":
      return draft.putConnection(change.connection);
    case "disconnect":
      return draft.dropConnection(change.connection.id);
    case "update": {
      if (change.on === "canvas") {
        draft.title = String(change.set["title"] ?? "");
      } else if (change.on === "node") {
        const node = draft.node(change.id);
        if (node) draft.putNode(withFields(node, change.set));
      } else {
        const connection = draft.connection(change.id);
        if (connection) draft.putConnection(withFields(connection, change.set));
      }
    }
  }
}

export function applied(graph: Graph, changes: Iterable<Change>): Graph {
  const draft = new Draft(graph);
  for (const change of changes) applyTo(draft, change);
  return draft.graph;
}

/** The changes that undo `change`, in order. */
function inverse(change: Change): Change[] {
  switch (change.do) {
    case "create":
    case "duplicate":
      return [remove(change.node)];
    case "restore":
      return [{ do: "delete", node: change.node, connections: [], members: change.members }];
    case "delete":
      return [
        { do: "restore", node: change.node, members: change.members },
        ...change.connections.map((connection): Change => ({ do: "reconnect", connection })),
      ];
    case "connect":
    case "reconnect":
      return [{ do: "disconnect", connection: change.connection }];
    case "disconnect":
      return [{ do: "reconnect", connection: change.connection }];
    case "update":
      return [{ ...change, set: change.was, was: change.set }];
  }
}

export const inverseOf = (changes: Change[]): Change[] => changes.toReversed().flatMap(inverse);

/** The changes of an undo without what would disconnect a node that stays: one that it would delete, if it had not been changed in the meantime. */
export function keepingConnected(draft: Draft, changes: Change[]): Change[] {
  const after = new Draft(draft.graph);
  for (const one of changes) {
    const { change } = judge(after, one, "undo");
    if (change) applyTo(after, change);
  }
  const deleted = new Set(changes.flatMap((one) => (one.do === "delete" ? [one.node.id] : [])));
  return changes.filter((one) => {
    const ends = one.do === "disconnect" ? [one.connection.fromNodeId, one.connection.toNodeId] : [];
    return !ends.some((id) => deleted.has(id)) || ends.some((id) => !after.node(id));
  });
}

/** One update for two of the same node, connection or canvas that follow each other. */
export function joinedUpdates([first, second, ...rest]: Change[]): Change | undefined {
  if (first?.do !== "update" || second?.do !== "update" || first.on !== second.on || first.id !== second.id || rest.length > 0) return undefined;
  return { ...first, set: { ...first.set, ...second.set }, was: { ...second.was, ...first.was } };
}

export interface Judgment {
  /** What is left of the change. */
  change?: Change;
  conflicts?: Conflict[];
  /** Why it was dropped, as a sentence. Absent if it had happened already. */
  dropped?: string;
}

/**
 * What becomes of a change on a graph that is not the one it was made for. An `undo` gives way to whatever others did since; a change
 * that waits to be sent gives way only where somebody's text or image would be lost.
 */
export function judge(draft: Draft, change: Change, mode: "rebase" | "undo"): Judgment {
  switch (change.do) {
    case "create": {
      const section = change.node.metadata.sectionId;
      if (section === undefined || draft.node(section)) return { change };
      return { change: { ...change, node: withFields(change.node, { "metadata.sectionId": null }) } };
    }
    case "duplicate":
      return draft.node(change.of) ? { change } : gone(change.node);
    case "restore":
      return draft.node(change.node.id) ? {} : { change };
    case "delete": {
      const node = draft.node(change.node.id);
      if (!node) return {};
      const connections = draft.connectionsOf(node.id);
      const members = draft.membersOf(node.id).map(({ id }) => id);
      const known = new Set(change.members);
      const differs = (mode === "undo" ? STATE : WORK).some((field) => !same(valueOf(node, field), valueOf(change.node, field)));
      const home = node.metadata.sectionId;
      const isHoused = home !== undefined && home !== change.node.metadata.sectionId;
      const isUsed = mode === "undo" && (isHoused || connections.length > 0 || members.some((id) => !known.has(id)));
      if (differs || isUsed) return { dropped: `${nameOf(node)} stays: it was changed in the meantime.` };
      return { change: { do: "delete", node, connections, members } };
    }
    case "connect":
    case "reconnect": {
      const { id, fromNodeId, toNodeId, purpose } = change.connection;
      if (!draft.node(fromNodeId) || !draft.node(toNodeId)) return { dropped: "A connection was not made: one of its ends was deleted." };
      return draft.connection(id) || draft.between(fromNodeId, toNodeId, purpose) ? {} : { change };
    }
    case "disconnect": {
      const connection = draft.connection(change.connection.id);
      return connection ? { change: { do: "disconnect", connection } } : {};
    }
    case "update":
      return judgeUpdate(draft, change, mode);
  }
}

function judgeUpdate(draft: Draft, change: Change & { do: "update" }, mode: "rebase" | "undo"): Judgment {
  const { on, id } = change;
  const item = on === "canvas" ? { id, title: draft.title } : on === "node" ? draft.node(id) : draft.connection(id);
  if (!item) return mode === "undo" ? { dropped: "What it would change was deleted." } : { dropped: "A change was dropped: what it changed was deleted." };
  const set: Fields = {};
  const was: Fields = {};
  const conflicts: Conflict[] = [];
  let isKept = false;
  for (const [field, wanted] of Object.entries(change.set)) {
    const now = valueOf(item, field);
    const isMerged = field === "metadata.tags" && !same(now, change.was[field]);
    const value = isMerged ? mergedTags(change.was[field], wanted, now) : wanted;
    const section = field === "metadata.sectionId" && value !== null ? draft.node(String(value)) : undefined;
    const isHomeless = field === "metadata.sectionId" && value !== null && (!section || !isSection(section));
    if (same(now, value) || isHomeless) continue;
    if (!isMerged && !same(now, change.was[field])) {
      if (mode === "undo") {
        isKept = true;
        continue;
      }
      if (TEXTS.has(field) && on !== "connection") {
        conflicts.push({ on, id, field, mine: value, theirs: now });
        continue;
      }
    }
    set[field] = value;
    was[field] = now;
  }
  const hasRest = Object.keys(set).length > 0 && !(on === "connection" && clashes(draft, item as Connection, set));
  return {
    ...(hasRest && { change: { ...change, set, was } }),
    ...(conflicts.length > 0 && { conflicts }),
    ...(isKept && { dropped: `${on === "node" ? nameOf(item as Node) : "Something"} was changed in the meantime and stays as it is.` }),
  };
}

/** The conflict with what `graph` has in place of mine. What was deleted keeps its last text. */
export function newest<Known extends Conflict>(conflict: Known, graph: Graph): Known {
  const item = conflict.on === "canvas" ? graph : graph.nodes.get(conflict.id);
  return item ? { ...conflict, theirs: valueOf(item, conflict.field) } : conflict;
}

/** The text of the others, followed by mine; undefined if there is only one of them, or no room for both. */
export function bothOf({ field, mine, theirs }: Conflict): string | undefined {
  const { most, between } = JOINED[field] ?? { most: 0, between: "" };
  if (typeof mine !== "string" || typeof theirs !== "string" || mine === "" || theirs === "") return undefined;
  const text = `${theirs}${between}${mine}`;
  return [...text].length > most ? undefined : text;
}

function clashes(draft: Draft, { id, fromNodeId, toNodeId, purpose }: Connection, set: Fields): boolean {
  const other = draft.between(fromNodeId, toNodeId, (set["purpose"] as Connection["purpose"] | undefined) ?? purpose);
  return other !== undefined && other.id !== id;
}

const gone = (node: Node): Judgment => ({ dropped: `${nameOf(node)} was not copied: the original was deleted.` });

export const nameOf = (node: Node): string => (node.title.trim() === "" ? `The ${isSection(node) ? "Section" : node.type}` : `“${node.title}”`);

/** The operations that make a change at the service. `real` maps an id of this client to the one of the service. */
export function operationsOf(change: Change, real: (id: string) => string): Operation[] {
  switch (change.do) {
    case "create": {
      const { id, type, title, position, width, height, asset, metadata } = change.node;
      const written = Object.fromEntries(WRITABLE.flatMap((key) => (metadata[key] === undefined ? [] : [[key, metadata[key]]])));
      if (metadata.sectionId !== undefined) written["sectionId"] = real(metadata.sectionId);
      const node = { type, title, position, width, height, metadata: written, ...(asset !== undefined && { asset }) };
      return [{ type: "node.create", clientId: id, node }];
    }
    case "duplicate":
      return [{ type: "node.duplicate", nodeId: real(change.of), clientId: change.node.id, position: change.node.position }];
    case "delete":
      return [{ type: "node.delete", nodeId: real(change.node.id) }];
    case "restore":
      return [{ type: "node.restore", nodeId: real(change.node.id) }];
    case "connect": {
      const { id, fromNodeId, toNodeId, purpose, role } = change.connection;
      const ends = { fromNodeId: real(fromNodeId), toNodeId: real(toNodeId) };
      return [{ type: "connection.create", clientId: id, ...ends, purpose, ...(role && { role }) }];
    }
    case "disconnect":
      return [{ type: "connection.delete", connectionId: real(change.connection.id) }];
    case "reconnect":
      return [{ type: "connection.restore", connectionId: real(change.connection.id) }];
    case "update":
      return updatesOf(change, real);
  }
}

function updatesOf({ on, id, set }: Change & { do: "update" }, real: (id: string) => string): Operation[] {
  if (on === "canvas") return [{ type: "canvas.update", title: String(set["title"] ?? "") }];
  if (on === "connection") return [{ type: "connection.update", connectionId: real(id), ...set }];
  const { position, ...rest } = set;
  const patch: Record<string, unknown> = {};
  const metadata: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(rest)) {
    if (!field.startsWith("metadata.")) patch[field] = value ?? "";
    else metadata[field.slice("metadata.".length)] = field === "metadata.sectionId" && value !== null ? real(String(value)) : value;
  }
  if (Object.keys(metadata).length > 0) patch["metadata"] = metadata;
  const nodeId = real(id);
  return [
    ...(position ? [{ type: "node.move", nodeId, position } as Operation] : []),
    ...(Object.keys(patch).length > 0 ? [{ type: "node.update", nodeId, patch } as Operation] : []),
  ];
}

/** The changes that lead from one graph to another, of these nodes and connections. */
export function difference(before: Graph, after: Graph, nodes: Iterable<string>, connections: Iterable<string>): Change[] {
  const [old, fresh] = [new Draft(before), new Draft(after)];
  const changes: Change[] = [];
  const covered = new Set<string>();
  for (const id of nodes) {
    const [from, to] = [old.node(id), fresh.node(id)];
    if (from && !to) {
      const cut = old.connectionsOf(id).filter((connection) => !covered.has(connection.id));
      for (const connection of cut) covered.add(connection.id);
      changes.push({ do: "delete", node: from, connections: cut, members: old.membersOf(id).map((member) => member.id) });
    } else if (to && !from) {
      changes.push({ do: "create", node: to });
    } else if (from && to && from !== to) {
      const fields = [...MEMBERS, ...WRITABLE.map((key) => `metadata.${key}`)].filter((field) => !same(valueOf(from, field), valueOf(to, field)));
      if (fields.length > 0) changes.push(update("node", from, Object.fromEntries(fields.map((field) => [field, valueOf(to, field)]))));
    }
  }
  for (const id of connections) {
    const [from, to] = [old.connection(id), fresh.connection(id)];
    if (from && !to && !covered.has(id)) changes.push({ do: "disconnect", connection: from });
    else if (to && !from) changes.push({ do: "connect", connection: to });
    else if (from && to && !same(from, to)) changes.push(update("connection", from, { purpose: to.purpose, role: to.role ?? null }));
  }
  return changes;
}

/** The node that a change leaves on the canvas, if it is one of a node. */
export function nodeOf(change: Change): string[] {
  if (change.do === "update") return change.on === "node" ? [change.id] : [];
  return "node" in change && change.do !== "delete" ? [change.node.id] : [];
}

/** Changes in groups of at most `most` operations each. */
export function groupsOf(changes: Change[], most: number): Change[][] {
  const groups: Change[][] = [];
  let room = 0;
  for (const change of changes) {
    const size = operationsOf(change, (id) => id).length;
    if (size > room) {
      groups.push([]);
      room = most;
    }
    groups.at(-1)?.push(change);
    room -= size;
  }
  return groups;
}
