/** The canvas as a tree: the same content and the same commands, for people who do not see the board or do not use a mouse. */
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { type Graph, isSection, type Node } from "../sync/graph.ts";
import { Icon } from "../ui/parts.tsx";
import type { Board, Ui } from "./board.ts";
import { described, kindOf, purposeOf } from "./gestures.ts";
import { linksAt } from "./links.ts";
import styles from "./outline.module.css";

const ROW = 34;
/** Rows rendered beyond the visible ones. */
const SPARE = 8;

interface Row {
  key: string;
  level: number;
  /** Its place among the rows beside it, from 1, and how many there are. */
  place: number;
  of: number;
  label: string;
  name: string;
  icon: Parameters<typeof Icon>[0]["name"];
  node: Node;
  /** Whether it has rows below it, and shows them. */
  isOpen?: boolean;
  connection?: string;
}

function rowsOf(graph: Graph, closed: ReadonlySet<string>): Row[] {
  const members = new Map<string, Node[]>();
  const roots: Node[] = [];
  for (const node of graph.nodes.values()) {
    const home = node.metadata.sectionId;
    if (home === undefined || !graph.nodes.has(home)) roots.push(node);
    else members.set(home, [...(members.get(home) ?? []), node]);
  }
  const rows: Row[] = [];
  const add = (node: Node, level: number, place: number, of: number) => {
    const links = linksAt(graph, node.id).filter(({ from }) => from === node);
    const below = members.get(node.id) ?? [];
    const size = below.length + links.length;
    const isOpen = size > 0 && !closed.has(node.id);
    const label = node.title || node.metadata.content?.slice(0, 80) || "Untitled";
    rows.push({ key: node.id, level, place, of, label, name: described(graph, node), icon: iconOf(node), node, ...(size > 0 && { isOpen }) });
    if (!isOpen) return;
    for (const [index, member] of below.entries()) add(member, level + 1, index + 1, size);
    for (const [index, { connection, to }] of links.entries()) {
      const what = `${to.title || kindOf(to)}${connection.purpose === "flow" ? "" : `, ${purposeOf(connection)}`}`;
      rows.push({ key: connection.id, level: level + 1, place: below.length + index + 1, of: size, label: `→ ${what}`, name: `Connection to ${what}`, icon: "connection", node: to, connection: connection.id });
    }
  };
  const sorted = roots.toSorted((a, b) => Number(isSection(b)) - Number(isSection(a)));
  for (const [index, node] of sorted.entries()) add(node, 1, index + 1, sorted.length);
  return rows;
}

function iconOf(node: Node): Row["icon"] {
  if (isSection(node)) return "section";
  return node.type === "sticky" ? "note" : node.type;
}

export function OutlineTree({ board, graph, ui }: { board: Board; graph: Graph; ui: Ui }) {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = useState<string>();
  /** The row from which Shift selects. */
  const [anchor, setAnchor] = useState<string>();
  const [scroll, setScroll] = useState({ top: 0, height: 600 });
  const tree = useRef<HTMLDivElement>(null);
  const rows = useMemo(() => rowsOf(graph, closed), [graph, closed]);
  const found = rows.findIndex(({ key }) => key === current);
  // When the current row goes, the next one takes its place.
  const [place, setPlace] = useState(0);
  if (found >= 0 && found !== place) setPlace(found);
  const at = found >= 0 ? found : Math.max(0, Math.min(place, rows.length - 1));
  const first = Math.max(0, Math.floor(scroll.top / ROW) - SPARE);
  const last = Math.min(rows.length, Math.ceil((scroll.top + scroll.height) / ROW) + SPARE);

  useEffect(() => {
    const element = tree.current;
    if (!element) return;
    const measure = () => setScroll((scroll) => ({ ...scroll, height: element.clientHeight }));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  /** Goes to a row and selects it, adds it or takes it away, selects all between the anchor and it, or only goes there. */
  function go(to: number, how: "set" | "toggle" | "extend" | "move" = "set") {
    const row = rows[Math.min(Math.max(to, 0), rows.length - 1)];
    const element = tree.current;
    if (!row || !element) return;
    setCurrent(row.key);
    const top = rows.indexOf(row) * ROW;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW > element.scrollTop + element.clientHeight) element.scrollTop = top + ROW - element.clientHeight;
    if (how === "move") return;
    if (how === "extend") {
      const known = rows.findIndex(({ key }) => key === anchor);
      const from = known < 0 ? at : known;
      setAnchor(rows[from]?.key);
      const [first, last] = [Math.min(from, rows.indexOf(row)), Math.max(from, rows.indexOf(row))];
      board.select(rows.slice(first, last + 1).flatMap(({ key, connection }) => (connection === undefined ? key : [])));
      return;
    }
    setAnchor(row.key);
    if (row.connection === undefined) board.select([row.key], how);
    else if (how === "set") board.selectLink(row.connection);
  }

  function toggle(row: Row, isOpen: boolean) {
    setClosed((closed) => {
      const next = new Set(closed);
      if (isOpen) next.delete(row.key);
      else next.add(row.key);
      return next;
    });
  }

  function type(event: KeyboardEvent) {
    const row = rows[at];
    const isControl = event.ctrlKey || event.metaKey;
    if (!row || event.altKey || (isControl && !["ArrowDown", "ArrowUp", "Home", "End", " "].includes(event.key))) return;
    const how = event.shiftKey ? "extend" : isControl ? "move" : "set";
    const parent = () => rows.findLastIndex(({ level }, index) => index < at && level < row.level);
    const actions: Record<string, () => void> = {
      ArrowDown: () => go(current === undefined ? 0 : at + 1, how),
      ArrowUp: () => go(at - 1, how),
      Home: () => go(0, how),
      End: () => go(rows.length - 1, how),
      ArrowRight: () => (row.isOpen === false ? toggle(row, true) : row.isOpen && go(at + 1)),
      ArrowLeft: () => (row.isOpen ? toggle(row, false) : row.level > 1 && go(parent())),
      Enter: () => {
        if (!board.canChange) return board.surface?.show([row.node.id]);
        if (row.connection !== undefined) return board.set({ menu: { kind: "purpose", connection: row.connection, at: { x: innerWidth - 640, y: 200 } } });
        board.edit(row.key);
      },
      " ": () => (isControl ? go(at, "toggle") : row.connection === undefined && board.surface?.show([row.key])),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  return (
    <>
      <p className={styles.help}>
        Arrow keys move, {board.canChange && "Enter edits, "}Space shows it on the board. Shift selects several, Ctrl Space one more.{" "}
        {board.canChange ? "Delete, F2, Ctrl D and Ctrl K work here, too." : "Ctrl C copies their texts."}
      </p>
      {rows.length === 0 && <p className={styles.help}>This canvas is empty.</p>}
      <div
        ref={tree}
        role="tree"
        aria-label="Outline of the canvas"
        aria-multiselectable="true"
        // Only rows in view are rendered.
        aria-activedescendant={at >= first && at < last && rows[at] ? `row-${rows[at].key}` : undefined}
        tabIndex={0}
        className={styles.tree}
        onKeyDown={type}
        onScroll={({ currentTarget }) => setScroll({ top: currentTarget.scrollTop, height: currentTarget.clientHeight })}
      >
        <div role="presentation" style={{ height: rows.length * ROW }} className={styles.sheet}>
          {rows.slice(first, last).map((row, index) => (
            // oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- the tree has the keyboard
            <div
              key={row.key}
              id={`row-${row.key}`}
              role="treeitem"
              tabIndex={-1}
              aria-level={row.level}
              aria-posinset={row.place}
              aria-setsize={row.of}
              aria-selected={row.connection === undefined ? ui.selection.has(row.key) : ui.link === row.connection}
              aria-expanded={row.isOpen}
              aria-label={row.name}
              data-current={row.key === rows[at]?.key || undefined}
              className={styles.row}
              style={{ top: (first + index) * ROW, paddingInlineStart: 8 + (row.level - 1) * 18 }}
              onClick={({ shiftKey, ctrlKey, metaKey }) => go(first + index, shiftKey ? "extend" : ctrlKey || metaKey ? "toggle" : "set")}
              onDoubleClick={() => board.surface?.show([row.node.id])}
            >
              <Icon name={row.icon} size={15} />
              <span dir="auto">{row.label}</span>
            </div>
          ))}
        </div>
      </div>
    </>
  );
}
