/**
 * What a narrow window has in place of the tools, of the buttons for panels and of those for the scale: one row at the bottom edge. While
 * something is selected, its bar takes that place.
 */
import { useRef } from "react";
import { count } from "../format.ts";
import { nameOf } from "../sync/change.ts";
import { Button, Icon, type IconName } from "../ui/parts.tsx";
import type { Board, Menu, Ui } from "./board.ts";
import { type Command, COMMANDS, isPossible } from "./commands.ts";
import styles from "./phone.module.css";
import { BoardFiles } from "./toolbar.tsx";

const ADD = ["text", "sticky", "image", "video", "section", "upload"];
const MORE = ["outline", "inspect", "recipes", "fit", "filter", "redo", "lines", "select-all", "export", "present", "palette"];

const commandsOf = (board: Board, ids: string[]): Command[] => ids.flatMap((id) => COMMANDS.find((one) => one.id === id && isPossible(one, board)) ?? []);

/** What the menus of the row have. */
export function phoneItems(board: Board, of: "add" | "more"): { label: string; run: () => void }[] {
  const { size } = board.graph.connections;
  const labelOf = ({ id, label }: Command) => (id === "lines" ? `${board.getUi().areLinesHidden ? "Show" : "Hide"} ${count(size, "connection")}` : label);
  const items = commandsOf(board, of === "add" ? ADD : MORE)
    .filter(({ id }) => id !== "lines" || size > 0)
    .map((command) => ({ label: labelOf(command), run: () => (board.set({ menu: undefined }), command.run(board)) }));
  if (of === "add") return items;
  return [
    { label: "Check", run: () => board.set({ menu: undefined, panel: "findings" }) },
    ...items,
    { label: "Share", run: () => board.set({ menu: undefined, dialog: "share" }) },
  ];
}

interface ItemProps {
  icon: IconName;
  label: string;
  isOpen: boolean;
  hasMenu?: true;
  panel?: string;
  run: (at: { x: number; y: number }) => void;
}

function RowItem({ icon, label, isOpen, hasMenu, panel, run }: ItemProps) {
  return (
    <button
      type="button"
      className={styles.item}
      data-panel={panel}
      aria-expanded={isOpen}
      {...(hasMenu && { "aria-haspopup": "menu" })}
      onClick={({ currentTarget }) => {
        const { left, top } = currentTarget.getBoundingClientRect();
        run({ x: left, y: top });
      }}
    >
      <Icon name={icon} size={20} />
      {label}
    </button>
  );
}

export function PhoneRow({ board, ui, onFiles }: { board: Board; ui: Ui; onFiles: (files: File[]) => void }) {
  const { canChange, scopes } = board;
  const may = (...wanted: string[]) => canChange && wanted.some((scope) => scopes.includes(scope));
  // A press on the button of a menu that is open closes it before the click.
  const pressed = useRef<Menu>(undefined);
  const menu = (of: "add" | "more") => ({
    hasMenu: true as const,
    isOpen: ui.menu?.kind === "phone" && ui.menu.of === of,
    run: (at: { x: number; y: number }) => {
      const wasOpen = pressed.current?.kind === "phone" && pressed.current.of === of;
      board.set({ menu: wasOpen ? undefined : { kind: "phone", of, at } });
    },
  });
  const panel = (name: NonNullable<Ui["panel"]>) => ({ panel: name, isOpen: ui.panel === name, run: () => board.togglePanel(name) });
  return (
    <div className={styles.row} role="toolbar" aria-label="Tools" onPointerDownCapture={() => void (pressed.current = board.getUi().menu)}>
      {canChange && <RowItem icon="plus" label="Add" {...menu("add")} />}
      {may("image:generate", "video:generate") && <RowItem icon="agent" label="Make" {...panel("make")} />}
      {may("asset:read") && <RowItem icon="image" label="Pictures" {...panel("assets")} />}
      {may("job:manage") && <RowItem icon="clock" label="Queue" {...panel("runs")} />}
      <RowItem icon="more" label="More" panel="more" {...menu("more")} />
      {canChange && <BoardFiles onFiles={onFiles} />}
    </div>
  );
}

/** What a tap does now, and how that ends. */
export function TapState({ board, ui }: { board: Board; ui: Ui }) {
  const from = board.graph.nodes.get(ui.connecting ?? "");
  if (from) {
    return (
      <div className={styles.state} role="status" data-card>
        <p>
          Choose what to connect <bdi>{nameOf(from)}</bdi> with
        </p>
        <Button onClick={() => board.set({ connecting: undefined })}>Cancel</Button>
      </div>
    );
  }
  if (!ui.isTouch || !ui.isCollecting) return null;
  return (
    <div className={styles.state} data-card>
      <p>{ui.selection.size} selected</p>
      <Button onClick={() => board.set({ isCollecting: false })}>Done</Button>
    </div>
  );
}
