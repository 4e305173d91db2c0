/** What the board says at its edges: whether everything is saved, what others did, conflicts, uploads, and short notices. */
import { type ReactNode, useEffect, useRef, useState } from "react";
import { ago, count } from "../format.ts";
import { bothOf } from "../sync/change.ts";
import type { News, OpenConflict, Snapshot } from "../sync/types.ts";
import { Button, Icon, messageOf } from "../ui/parts.tsx";
import type { Board, Remedy } from "./board.ts";
import { deedIn, isAgent } from "./news.ts";
import parts from "../ui/parts.module.css";
import styles from "./status.module.css";
import { subjectOf, textOf } from "./unsent-files.ts";
import { SaveUnsent } from "./unsent.tsx";

/** How long saving takes before it is mentioned, in milliseconds. */
const NOTICEABLE = 600;

/** Whether `is` has been true for a while. */
function useIsLong(is: boolean): boolean {
  const [isLong, setIsLong] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsLong(is), is ? NOTICEABLE : 0);
    return () => clearTimeout(timer);
  }, [is]);
  return is && isLong;
}

/** "Saved", or what waits and why. */
export function SaveState({ board, snapshot: { state, waiting, problem } }: { board: Board; snapshot: Snapshot }) {
  const isSaving = useIsLong(state === "saving");
  const isWaiting = state === "waiting" || state === "signed-out" || state === "gone";
  const wait = `${count(waiting, "change")} ${waiting === 1 ? "waits" : "wait"}`;
  const label = isWaiting ? (waiting > 0 ? wait : "Waiting") : state === "opening" ? "Opening…" : isSaving ? "Saving…" : "Saved";
  return (
    <p className={styles.save} data-save={state} data-state={isWaiting ? "waiting" : isSaving ? "saving" : "saved"} title={isWaiting && problem ? messageOf(problem) : undefined}>
      <Icon name={isWaiting ? "finding" : "check"} size={14} />
      <span role="status">{label}</span>
      {state === "waiting" && (
        <button type="button" onClick={() => board.engine.resume()}>
          Try now
        </button>
      )}
    </p>
  );
}

/** What is said when the role no longer permits changes. */
export function Stopped({ board, canvas, snapshot: { state, waiting, conflicts, problem }, again }: { board: Board; canvas: string; snapshot: Snapshot; again: () => void }) {
  const unsaved = waiting + conflicts.length;
  if (state !== "read-only" && (board.canChange || unsaved === 0)) return null;
  return (
    <div className={styles.banner} role="alert" data-card>
      <p>
        You can no longer change this canvas. {unsaved > 0 && `${count(unsaved, "change")} of yours ${unsaved === 1 ? "was" : "were"} not saved.`}{" "}
        {problem && messageOf(problem)}
      </p>
      {unsaved > 0 && <SaveUnsent engine={board.engine} canvas={canvas} />}
      <Button
        onClick={() => {
          board.engine.resume();
          again();
        }}
      >
        Try again
      </Button>
    </div>
  );
}

/** How long a newer change waits until it looks again whether the line is free, in milliseconds. */
const HELD = 500;

/**
 * The newest change of others, which can be undone. It is read out: what contains it is there before it. While the pointer or the keyboard
 * is on the line, it stays the same: a person undoes the change that they have read.
 */
export function ActivityLine({ board, news, own }: { board: Board; news: News | undefined; own: string }) {
  const [hidden, hide] = useState<string>();
  const [shown, show] = useState(news);
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const goOn = () => {
      if (element.current?.matches(":hover, :focus-within")) timer = setTimeout(goOn, HELD);
      else show(news);
    };
    goOn();
    return () => clearTimeout(timer);
  }, [news]);
  const isOwn = shown?.activity.every(({ actor }) => actor.surface === "browser" && actor.label === own);
  return (
    <div ref={element} role="status" aria-atomic="false">
      {shown && !isOwn && shown.key !== hidden && <Activity key={shown.key} board={board} news={shown} hide={() => (hide(shown.key), board.surface?.focus())} />}
    </div>
  );
}

function Activity({ board, news, hide }: { board: Board; news: News; hide: () => void }) {
  const [newest] = news.activity;
  if (!newest) return null;
  return (
    <div className={styles.activity} data-card>
      <p>
        <Icon name={isAgent(newest.actor) ? "agent" : "cursor"} size={14} />
        <strong dir="auto">{newest.actor.label}</strong>
        {isAgent(newest.actor) && ", an agent,"} <bdi>{deedIn(news, board.graph)}</bdi>{" "}
        <time dateTime={newest.at} aria-live="off">
          {ago(newest.at)}
        </time>
      </p>
      {news.nodes.length > 0 && (
        <button
          type="button"
          onClick={() => {
            board.select(news.nodes);
            board.surface?.show(news.nodes);
          }}
        >
          Show
        </button>
      )}
      {board.canChange && (
        <button type="button" onClick={() => (board.engine.undoNews(news), hide())}>
          Undo
        </button>
      )}
      <button type="button" aria-label="Hide this message" onClick={hide}>
        <Icon name="close" size={14} />
      </button>
    </div>
  );
}

export function Conflicts({ board, conflicts }: { board: Board; conflicts: OpenConflict[] }) {
  return conflicts.map((conflict) => <ConflictCard key={conflict.key} board={board} conflict={conflict} />);
}

function ConflictCard({ board, conflict }: { board: Board; conflict: OpenConflict }) {
  const choose = (choice: "mine" | "theirs" | "both") => {
    board.engine.resolve(conflict, choice);
    board.surface?.focus();
  };
  return (
    <section className={`${parts.card} ${styles.card}`} aria-label="Conflict" data-card>
      <h3>{subjectOf(board.graph, conflict)} was changed by someone else at the same time</h3>
      <dl>
        <dt>Yours</dt>
        <dd dir="auto" tabIndex={0}>{textOf(conflict.mine)}</dd>
        <dt>Theirs</dt>
        <dd dir="auto" tabIndex={0}>{textOf(conflict.theirs)}</dd>
      </dl>
      <div className={styles.choices}>
        {board.canChange && (
          <Button look="primary" onClick={() => choose("mine")}>
            Keep mine
          </Button>
        )}
        <Button onClick={() => choose("theirs")}>Keep theirs</Button>
        {board.canChange && bothOf(conflict) !== undefined && <Button onClick={() => choose("both")}>Keep both</Button>}
      </div>
    </section>
  );
}

/** How long a notice stays, in milliseconds. */
const NOTICE = 8000;

interface Notice {
  key: number;
  text: string;
  remedies: Remedy[];
}

const without = (key: number) => (notices: Notice[]) => notices.filter((notice) => notice.key !== key);

/** Sentences that the engine and the board say. They are read out, too. None goes while the pointer or the keyboard is on them. */
export function Notices({ board }: { board: Board }): ReactNode {
  const [notices, setNotices] = useState<Notice[]>([]);
  const element = useRef<HTMLDivElement>(null);
  const serial = useRef(0);
  useEffect(() => {
    const end = (key: number) => {
      if (element.current?.matches(":hover, :focus-within")) setTimeout(() => end(key), NOTICE);
      else setNotices(without(key));
    };
    const show = (text: string, ...remedies: Remedy[]) => {
      serial.current += 1;
      const key = serial.current;
      setNotices((notices) => [...notices.slice(-2), { key, text, remedies }]);
      setTimeout(() => end(key), NOTICE);
    };
    const stop = [board.engine.onNotice(show), board.onNotice(show)];
    return () => stop.forEach((end) => end());
  }, [board]);
  return (
    <div ref={element} className={styles.notices} role="status" aria-live="polite" aria-atomic="false">
      {notices.map(({ key, text, remedies }) => (
        <div key={key} data-card>
          <p dir="auto">{text}</p>
          {remedies.map(({ label, run }) => (
            <button
              key={label}
              type="button"
              onClick={() => {
                setNotices(without(key));
                board.surface?.focus();
                run();
              }}
            >
              {label}
            </button>
          ))}
        </div>
      ))}
    </div>
  );
}

/** The last sentence that is only read out. */
export function Said({ board }: { board: Board }) {
  const [said, say] = useState({ key: 0, text: "" });
  useEffect(() => board.onSaid((text) => say(({ key }) => ({ key: key + 1, text }))), [board]);
  return (
    <p role="status" className="unseen">
      <span key={said.key}>{said.text}</span>
    </p>
  );
}
