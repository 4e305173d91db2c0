/** What React Flow is given for what is in view. Objects stay the same as long as nothing of them changes, so nothing renders needlessly. */
import { MarkerType, Position } from "@xyflow/react";
import { type Connection, type Graph, isSection, type Node } from "../sync/graph.ts";
import type { Point } from "../view.ts";
import { isLocked } from "./arrange.ts";
import type { Ui } from "./board.ts";
import type { BoardEdge } from "./edges.tsx";
import { matchingIn } from "./filter.ts";
import { described, purposeInFull, stateId } from "./gestures.ts";
import { linksAt } from "./links.ts";
import { type BoardNode, typeOf } from "./nodes.tsx";
import { lineAt } from "./shapes.ts";
import { boundsOf, boxOf } from "./spatial.ts";
import { variantOf } from "./variants.ts";

/** With more nodes than this in view, they are drawn, not rendered. */
export const MOST_RENDERED = 300;
/** How far from variants a line to all of them ends. */
const BESIDE = 8;

/** Where a line to all of these nodes ends. */
function endOf(graph: Graph, ids: string[]): Point | undefined {
  const box = boundsOf(ids.flatMap((id) => graph.nodes.get(id) ?? []));
  return box && { x: box.x - BESIDE, y: box.y + box.height / 2 };
}

type State = Pick<Ui, "selection" | "isCollecting" | "isTouch" | "editing" | "drag" | "resize" | "link" | "tool" | "filter">;

/** Elements with what they were made of. */
type Known<Element> = Map<string, { key: unknown[]; element: Element }>;

export class Elements {
  /** Whether nodes can be resized. */
  #canChange: boolean;
  #nodes: Known<BoardNode> = new Map();
  #edges: Known<BoardEdge> = new Map();

  constructor(canChange: boolean) {
    this.#canChange = canChange;
  }

  /**
   * The nodes in view, with those that are edited or moved, the one that has the keyboard, and those at the other ends of lines. From far
   * away, none is in view, and what is edited is alone.
   */
  nodes(graph: Graph, inView: Node[], ui: State, focused: string | undefined): BoardNode[] {
    const shown = new Map(inView.map((node) => [node.id, node]));
    const add = (id: string | undefined) => {
      const node = id === undefined ? undefined : graph.nodes.get(id);
      if (node) shown.set(node.id, node);
    };
    add(ui.editing?.id);
    add(focused);
    for (const id of ui.drag?.from.keys() ?? []) if (shown.size < MOST_RENDERED) add(id);
    for (const { id } of inView) {
      for (const { from, to } of linksAt(graph, id)) if (shown.size < 2 * MOST_RENDERED) for (const end of [from, to]) add(end.id);
    }
    const next: Known<BoardNode> = new Map();
    for (const node of shown.values()) next.set(node.id, this.#node(graph, node, ui));
    this.#nodes = next;
    return [...next.values()].map(({ element }) => element);
  }

  /** The connections among these nodes. From one node to all variants of a run, there is one line for each purpose, to the left of them. */
  edges(graph: Graph, nodes: BoardNode[], { link, selection, areLinesHidden, filter }: Pick<Ui, "link" | "selection" | "areLinesHidden" | "filter">): BoardEdge[] {
    const matching = matchingIn(graph, filter);
    const ids = new Set(nodes.map(({ id }) => id).filter((id) => matching?.has(id) ?? true));
    const next: Known<BoardEdge> = new Map();
    const bundles = new Set<string>();
    for (const id of ids) {
      for (const { connection } of linksAt(graph, id)) {
        const { fromNodeId, toNodeId, purpose, role } = connection;
        if (next.has(connection.id) || !ids.has(fromNodeId) || !ids.has(toNodeId)) continue;
        const isSelected = connection.id === link;
        if (areLinesHidden && !isSelected) continue;
        const isEndSelected = selection.has(fromNodeId) || selection.has(toNodeId);
        const variant = isSelected || isEndSelected ? undefined : variantOf(graph, toNodeId);
        const bundle = variant && JSON.stringify([fromNodeId, variant.ids[0], purpose, role]);
        if (bundle !== undefined && bundles.has(bundle)) continue;
        if (bundle !== undefined) bundles.add(bundle);
        next.set(connection.id, this.#edge(graph, connection, isSelected, isEndSelected, variant && endOf(graph, variant.ids)));
      }
    }
    this.#edges = next;
    return [...next.values()].map(({ element }) => element);
  }

  #node(graph: Graph, node: Node, ui: State): { key: unknown[]; element: BoardNode } {
    const isSelected = ui.selection.has(node.id);
    const isResizable = this.#canChange && isSelected && ui.selection.size === 1 && ui.tool === "select" && !isLocked(node);
    const editing = ui.editing?.id === node.id ? ui.editing.field : undefined;
    const start = ui.drag?.from.get(node.id);
    const by = start && ui.drag?.by;
    const resized = ui.resize?.id === node.id ? ui.resize.box : undefined;
    const isOneOfSeveral = isSelected && (ui.isCollecting || ui.selection.size > 1);
    const label = `${described(graph, node)}${isOneOfSeveral ? ", selected" : ""}`;
    const number = variantOf(graph, node.id)?.number;
    // What does not match the filter is seen faintly, and cannot be reached, unless it is selected: it may have just been made.
    const isFaint = !isSelected && !(matchingIn(graph, ui.filter)?.has(node.id) ?? true);
    // A finger moves what is selected, and else the view.
    const isFixed = isLocked(node) || (ui.isTouch && !isSelected);
    const key = [node, isSelected, isFixed, isResizable, editing, start, by?.x, by?.y, resized, label, number, isFaint];
    const known = this.#nodes.get(node.id);
    if (known && known.key.every((part, at) => part === key[at])) return known;
    const { x, y, width, height } = resized ?? boxOf(node);
    const isFrame = isSection(node);
    const middle = lineAt({ ...node, width, height });
    const z = Math.min(Math.max(node.metadata.zIndex ?? 0, -900), 1e6);
    return {
      key,
      element: {
        id: node.id,
        type: typeOf(node),
        position: start && by ? { x: start.x + by.x, y: start.y + by.y } : { x, y },
        width,
        height,
        measured: { width, height },
        selected: isSelected,
        // Lines are below titles of Sections, and these below all that is in them.
        zIndex: isFrame ? 600 : 2000 + z,
        ariaLabel: label,
        ...(isFixed && { draggable: false }),
        ...((node.type === "image" || node.type === "video") && node.asset === undefined && { domAttributes: { "aria-describedby": stateId(node.id) } }),
        ...(isFaint && { className: "faint", focusable: false, domAttributes: { inert: true } }),
        data: { node, editing, isResizable, number },
        // Known sizes and places: nothing is measured.
        handles: [
          { type: "target", position: Position.Left, x: 0, y: middle, width: 1, height: 1 },
          { type: "source", position: Position.Right, x: width, y: middle, width: 1, height: 1 },
        ],
        // The inside of a Section is the plane: only its title takes the pointer.
        ...(isFrame && { style: { pointerEvents: "none" as const } }),
      },
    };
  }

  #edge(graph: Graph, connection: Connection, isSelected: boolean, isEndSelected: boolean, end: Point | undefined): { key: unknown[]; element: BoardEdge } {
    const name = (id: string) => graph.nodes.get(id)?.title ?? "";
    const label = `Connection from ${name(connection.fromNodeId)} to ${name(connection.toNodeId)}${connection.purpose === "flow" ? "" : `, ${purposeInFull(connection).toLowerCase()}`}`;
    const key = [connection, isSelected, isEndSelected, end?.x, end?.y, label];
    const known = this.#edges.get(connection.id);
    if (known && known.key.every((part, at) => part === key[at])) return known;
    return {
      key,
      element: {
        id: connection.id,
        type: "connection",
        source: connection.fromNodeId,
        target: connection.toNodeId,
        selected: isSelected,
        zIndex: 500,
        data: { connection, isEndSelected, end },
        markerEnd: { type: MarkerType.ArrowClosed, width: 15, height: 15, color: "context-stroke" },
        ariaLabel: label,
        ariaRole: "button",
        domAttributes: { "aria-roledescription": "connection", "aria-haspopup": "menu" },
      },
    };
  }
}
