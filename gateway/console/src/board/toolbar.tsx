/** The tools at the left edge, and the history. */
import { type ReactNode, useEffect, useRef, useSyncExternalStore } from "react";
import { FileInput } from "../ui/file-input.tsx";
import { keyNames } from "../ui/keys.ts";
import { Button, Icon } from "../ui/parts.tsx";
import type { Board, Ui } from "./board.ts";
import { CHOOSE_FILES, type Command, COMMANDS, isPossible } from "./commands.ts";
import styles from "./editor.module.css";

const command = (id: string): Command => COMMANDS.find((one) => one.id === id) as Command;

const hint = ({ label, keys }: Command) => `${label} (${keyNames(keys[0] ?? "").join(" ")})`;

function Tool({ board, id, icon, isPressed }: { board: Board; id: string; icon: Parameters<typeof Icon>[0]["name"]; isPressed?: boolean }) {
  const one = command(id);
  return (
    <Button
      look="quiet"
      className={styles.tool}
      aria-label={one.label}
      aria-keyshortcuts={one.keys.join(" ").replaceAll("Mod", "Control")}
      title={hint(one)}
      {...(isPressed !== undefined && { "aria-pressed": isPressed })}
      disabled={!isPossible(one, board)}
      onClick={() => one.run(board)}
    >
      <Icon name={icon} size={20} />
    </Button>
  );
}

export function Toolbar({ board, ui, onFiles }: { board: Board; ui: Ui; onFiles: (files: File[]) => void }) {
  return (
    <div className={styles.tools} data-fades role="toolbar" aria-label="Tools" aria-orientation="vertical">
      <Button look="quiet" className={styles.tool} aria-label="Select" title="Select (Esc)" aria-pressed={ui.tool === "select"} onClick={() => board.set({ tool: "select" })}>
        <Icon name="cursor" size={20} />
      </Button>
      <Tool board={board} id="hand" icon="hand" isPressed={ui.tool === "hand"} />
      {board.canChange && (
        <>
          <hr />
          <Tool board={board} id="text" icon="text" />
          <Tool board={board} id="sticky" icon="note" />
          <Tool board={board} id="image" icon="image" />
          <Tool board={board} id="video" icon="video" />
          <Tool board={board} id="section" icon="section" />
          <hr />
          <Tool board={board} id="upload" icon="upload" />
          <BoardFiles onFiles={onFiles} />
        </>
      )}
    </div>
  );
}

/** The field that the command for it opens. */
export function BoardFiles({ onFiles }: { onFiles: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const open = () => input.current?.click();
    addEventListener(CHOOSE_FILES, open);
    return () => removeEventListener(CHOOSE_FILES, open);
  }, []);
  return <FileInput ref={input} multiple onFiles={onFiles} />;
}

export function History({ board, undo, redo }: { board: Board; undo: string | undefined; redo: string | undefined }): ReactNode {
  return (
    <div className={styles.history} role="group" aria-label="History">
      <Button look="quiet" aria-label="Undo" title={undo === undefined ? "Nothing to undo" : `Undo: ${undo}`} disabled={undo === undefined} onClick={() => board.undo()}>
        <Icon name="undo" />
      </Button>
      <Button look="quiet" aria-label="Redo" title={redo === undefined ? "Nothing to redo" : `Redo: ${redo}`} disabled={redo === undefined} onClick={() => board.redo()}>
        <Icon name="redo" />
      </Button>
    </div>
  );
}

/** The scale. A click shows the board at full size. */
function Scale({ board }: { board: Board }) {
  const percent = useSyncExternalStore(board.onScale, board.getPercent);
  const { label, keys, run } = command("full-size");
  return (
    <Button look="quiet" className={`${styles.tool} ${styles.scale}`} aria-label={`${percent} %: full size`} aria-keyshortcuts={keys.join(" ")} title={`${label} (1)`} onClick={() => run(board)}>
      {percent} %
    </Button>
  );
}

export function ZoomControls({ board }: { board: Board }) {
  return (
    <div className={styles.zoom} role="group" aria-label="Zoom">
      <Tool board={board} id="zoom-out" icon="minus" />
      <Scale board={board} />
      <Tool board={board} id="zoom-in" icon="plus" />
      <Tool board={board} id="fit" icon="fit" />
      <Tool board={board} id="keys" icon="keys" />
    </div>
  );
}
