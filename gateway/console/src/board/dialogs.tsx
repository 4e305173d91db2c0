/** The palette, which finds commands and nodes, the list of keys, and the menus of connections. */
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { isSection, type Node } from "../sync/graph.ts";
import { keyNames } from "../ui/keys.ts";
import { useIsTouch } from "../ui/screen.ts";
import { type Entry, EntryKind, KeyDialog, type KeyGroup, Keys, PaletteDialog } from "../ui/palette.tsx";
import { deleteLast, exportItems, type Item as SelectionItem, itemsOf, keyRows, leavesOf, runItem } from "./bar.ts";
import type { Board, Menu } from "./board.ts";
import { type Command, COMMANDS, isPossible } from "./commands.ts";
import styles from "./dialogs.module.css";
import { type Choice, kindOf, type Kind } from "./gestures.ts";
import { phoneItems } from "./phone.tsx";

const GROUPS = ["Add", "Edit", "Select", "View"] as const;
const GESTURES: KeyGroup = {
  title: "Mouse and trackpad",
  rows: [
    { what: "Move the view", how: "scroll, or drag with Space" },
    { what: "Zoom", how: "Ctrl and scroll, or pinch" },
    { what: "Look at a picture", how: "double-click it, or tap Space" },
    { what: "Select several", how: "drag over them, or Shift and click" },
    { what: "Connect", how: "drag from the dot at its side" },
    { what: "Drag along an axis, or a copy", how: "hold Shift, or Alt" },
    { what: "Drag without snapping", how: "hold Ctrl" },
    { what: "Write", how: "double-click" },
  ],
};

/** Keys that are no commands: the browser asks for what is copied, and gives what is pasted. */
const CLIPBOARD: KeyGroup = {
  title: "Clipboard",
  rows: [
    { what: "Copy", keys: ["Mod+C"] },
    { what: "Cut", keys: ["Mod+X"] },
    { what: "Paste, also texts and images", keys: ["Mod+V"] },
  ],
};

export function KeyList({ board, close }: { board: Board; close: () => void }) {
  const commands = COMMANDS.filter(({ isChange }) => !isChange || board.canChange);
  const groups = GROUPS.map((title) => ({ title, rows: commands.filter(({ group }) => group === title).map(({ label, keys }) => ({ what: label, keys })) }));
  const first = (group: KeyGroup, number: number) => (board.canChange ? group : { ...group, rows: group.rows.slice(0, number) });
  const selection = { title: "Selection", rows: keyRows(board.canChange) };
  return <KeyDialog groups={[...groups.filter(({ rows }) => rows.length > 0), selection, first(CLIPBOARD, 1), first(GESTURES, 4)]} close={close} />;
}

const MOST_FOUND = 40;

const hintOf = ([first]: readonly string[], kind?: string) => (first === undefined ? kind && <EntryKind>{kind}</EntryKind> : <Keys combination={first} />);

function entriesOf(board: Board, query: string, close: () => void): Entry[] {
  const wanted = query.trim().toLowerCase();
  const commands = COMMANDS.filter((one) => one.id !== "palette" && one.label.toLowerCase().includes(wanted) && isPossible(one, board) && !one.label.startsWith("…"));
  const run = (command: Command) => () => {
    close();
    command.run(board);
  };
  // Those that are there without a selection, too, are commands.
  const items = leavesOf(itemsOf(board)).filter(({ id, label }) => !commands.some((command) => command.id === id && command.label === label) && label.toLowerCase().includes(wanted));
  const entries: Entry[] = [
    ...items.map((item) => ({
      key: `selection ${item.id}`,
      label: item.label,
      hint: hintOf(item.keys, "selection"),
      run: () => {
        close();
        runItem(board, item);
      },
    })),
    ...commands.map((command) => ({ key: command.id, label: command.label, hint: hintOf(command.keys), run: run(command) })),
  ];
  if (wanted === "") return entries;
  const [selected] = board.selected.length === 1 ? board.selected : [];
  // What is called so is above what says so.
  const has = (text = "") => text.toLowerCase().includes(wanted);
  const named: Node[] = [];
  const saying: Node[] = [];
  for (const node of board.graph.nodes.values()) {
    if (node.ref === wanted || has(node.title)) named.push(node);
    else if (has(node.metadata.content)) saying.push(node);
  }
  for (const node of [...named, ...saying]) {
    if (entries.length >= MOST_FOUND) break;
    const label = node.title || node.metadata.content?.slice(0, 60) || "Untitled";
    entries.push({
      key: node.id,
      label,
      hint: <EntryKind>{kindOf(node)}</EntryKind>,
      run: () => {
        close();
        board.select([node.id]);
        board.surface?.show([node.id]);
        board.surface?.focus(node.id);
      },
    });
    if (selected && selected.id !== node.id && board.offered(selected.id, node.id).length > 0) {
      entries.push({
        key: `connect ${node.id}`,
        label: `Connect ${selected.title || "the selection"} to ${label}`,
        run: () => {
          close();
          board.offer(selected.id, node.id, { x: innerWidth / 2, y: innerHeight / 3 });
        },
      });
    }
  }
  return entries;
}

export function Palette({ board, close }: { board: Board; close: () => void }) {
  // What has opened it has the keyboard again before a command runs: to focus a node selects it.
  const closeFirst = () => flushSync(close);
  return <PaletteDialog label="Find a command or a title" field="Command or title" entriesOf={(query) => entriesOf(board, query, closeFirst)} close={close} />;
}

const KINDS: [Kind, string][] = [
  ["image", "Place for an image"],
  ["video", "Place for a video"],
  ["text", "Text"],
  ["sticky", "Note"],
];

interface Item {
  label: string;
  purpose?: string;
  /** The keys that do the same, or that it opens more. */
  hint?: string;
  /** Whether a line is above it. */
  isFirst?: boolean;
  /** Whether it is seen however long the menu is. */
  isKept?: boolean;
  run: () => void;
}

/** A menu that is a list. */
type ListMenu = Exclude<Menu, { kind: "format" }>;

/** A small menu at a point of the screen. It takes the keyboard, and gives it back. */
export function BoardMenu({ board, menu }: { board: Board; menu: ListMenu }) {
  const element = useRef<HTMLDivElement>(null);
  const { title, items } = contentOf(board, menu);
  const isSheet = useIsTouch();
  const [before] = useState(() => document.activeElement);
  const giveBack = (id?: string) => {
    // The outline, connections and the bar open menus, too.
    if (before?.isConnected && before.matches("[role=tree], .react-flow__edge, [data-bar] *")) (before as HTMLElement | SVGElement).focus();
    else board.surface?.focus(id);
  };
  const close = () => {
    board.set({ menu: undefined });
    const selected = menu.kind === "selection" ? [...board.getUi().selection].at(-1) : undefined;
    giveBack("from" in menu ? menu.from : (selected ?? before?.closest(".react-flow__node")?.getAttribute("data-id") ?? undefined));
  };

  useEffect(() => {
    element.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    const outside = (event: PointerEvent) => {
      // A press beside a sheet closes it when it ends: nothing below takes it.
      const all = element.current?.closest("[data-sheet]") ?? element.current;
      if (!all?.contains(event.target as HTMLElement)) board.set({ menu: undefined });
    };
    addEventListener("pointerdown", outside, true);
    return () => removeEventListener("pointerdown", outside, true);
  }, [board]);

  function type(event: KeyboardEvent) {
    event.stopPropagation();
    const all = [...(element.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const now = all.indexOf(document.activeElement as HTMLElement);
    const steps: Record<string, number> = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: all.length - 1 };
    const next = steps[event.key];
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      close();
    } else if (next !== undefined) {
      event.preventDefault();
      all.at(next % all.length)?.focus();
    }
  }

  const left = Math.max(Math.min(menu.at.x, innerWidth - 280), 8);
  const top = Math.min(menu.at.y, innerHeight - 60 - items.length * 36);
  const list = (
    <div ref={element} role="menu" tabIndex={-1} aria-label={title} className={styles.menu} {...(!isSheet && { style: { left, top: Math.max(top, 64) } })} onKeyDown={type}>
      <p className={styles.menuTitle}>{title}</p>
      {items.map(({ label, purpose, hint, isFirst, isKept, run }, index) => (
        <button
          key={label}
          type="button"
          role="menuitem"
          tabIndex={-1}
          data-purpose={purpose}
          data-first={(isFirst && index > 0) || undefined}
          data-kept={isKept || undefined}
          onClick={() => {
            const { panel } = board.getUi();
            run();
            const opened = board.getUi();
            // A menu or panel that was opened takes the keyboard.
            if (!opened.menu && (!opened.panel || opened.panel === panel)) giveBack(menu.kind === "selection" ? [...opened.selection].at(-1) : undefined);
          }}
        >
          {label}
          {hint !== undefined && (
            <span className={styles.hint} aria-hidden="true">
              {hint}
            </span>
          )}
        </button>
      ))}
    </div>
  );
  if (!isSheet) return list;
  return (
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions -- Escape closes it
    <div className={styles.sheet} data-sheet onClick={({ target, currentTarget }) => target === currentTarget && close()}>
      {list}
    </div>
  );
}

const item = ({ label, purpose }: Choice, run: () => void): Item => ({ label, purpose, run });

function itemOfSelection(board: Board, menu: ListMenu & { kind: "selection" | "export" }, item: SelectionItem): Item {
  const { id, label, keys, items, isFirst = false } = item;
  const isLast = id === "delete";
  const hint = items || item.isForm ? "▸" : keys[0] === undefined ? "" : keyNames(keys[0]).join(" ");
  const run = () => {
    board.set({ menu: items && menu.kind === "selection" ? { ...menu, of: id } : undefined });
    if (!items) runItem(board, item);
  };
  return { label, ...(hint !== "" && { hint }), isFirst: isFirst || isLast, isKept: isLast, run };
}

function contentOf(board: Board, menu: ListMenu): { title: string; items: Item[] } {
  if (menu.kind === "connect") {
    const { from, to } = menu;
    return { title: "Connect as", items: board.offered(from, to).map((choice) => item(choice, () => board.connect(from, to, choice))) };
  }
  if (menu.kind === "phone") return { title: menu.of === "add" ? "Add" : "More", items: phoneItems(board, menu.of) };
  if (menu.kind === "selection") {
    const all = itemsOf(board);
    const opened = all.find(({ id }) => id === menu.of);
    const items = opened?.items ?? (menu.of === undefined ? all : all.slice(Number(menu.of)));
    return {
      title: opened?.label ?? "Selection",
      items: deleteLast(items).map((item) => itemOfSelection(board, menu, item)),
    };
  }
  if (menu.kind === "export") {
    const title = board.selected.length > 0 ? "Export the selection" : "Export the board";
    return { title, items: exportItems(board).map((item) => itemOfSelection(board, menu, item)) };
  }
  if (menu.kind === "create") {
    const source = board.graph.nodes.get(menu.from);
    return {
      title: source && isSection(source) ? "Add and connect to the Section" : "Add and connect",
      items: KINDS.map(([kind, label]) => ({ label, run: () => board.createConnected(menu, kind) })),
    };
  }
  const connection = board.graph.connections.get(menu.connection);
  const choices = connection ? board.offered(connection.fromNodeId, connection.toNodeId, connection.id) : [];
  return {
    title: "Change the purpose",
    items: [
      ...choices.map((choice) => item(choice, () => board.changePurpose(menu.connection, choice))),
      { label: "Delete the connection", run: () => (board.set({ menu: undefined, link: menu.connection }), board.delete()) },
    ],
  };
}
