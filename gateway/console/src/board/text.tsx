/** Texts that are edited in place. They are plain text: nothing in them is markup. */
import { type ClipboardEvent, type KeyboardEvent, useEffect, useEffectEvent, useLayoutEffect, useRef, useState } from "react";
import type { Node } from "../sync/graph.ts";
import { useBeforeEnd } from "../ui/hooks.ts";
import type { Board } from "./board.ts";
import { useBoard } from "./context.ts";
import { MOST_TEXT, MOST_TITLE } from "./limits.ts";

/** How long after the last key press a text is sent, and how long after the first at the latest, in milliseconds. */
const REST = 800;
const LONGEST_REST = 2000;

interface Props {
  id: string;
  field: "content" | "title";
  /** The text as it is on the canvas. */
  value: string;
  label: string;
  className?: string | undefined;
  fontSize?: number | undefined;
  /** The letters of a node that grows with its text, and shrinks again to the height that it has now. */
  lettersOf?: (node: Node) => number;
}

/** The height that a field needs to show all that is in it. As high as it is, it would not say that it needs less. */
function heightOf(field: HTMLElement): number {
  const { style } = field;
  style.flex = "none";
  style.height = "0";
  const { scrollHeight } = field;
  style.flex = "";
  style.height = "";
  return scrollHeight;
}

function textOf(board: Board, id: string, field: Props["field"]): string {
  const node = board.graph.nodes.get(id);
  return (field === "content" ? node?.metadata.content : node?.title) ?? "";
}

export function TextField({ id, field, value, label, className, fontSize, lettersOf }: Props) {
  const board = useBoard();
  const [text, setText] = useState(value);
  /** The text on the canvas that `text` was typed on. */
  const [base, setBase] = useState(value);
  const [session] = useState(board.newId);
  const [least] = useState(() => board.graph.nodes.get(id)?.height ?? 0);
  /** The outline, if the keyboard came from there: it goes back. */
  const [outline] = useState(() => document.activeElement?.closest<HTMLElement>("[role=tree]"));
  /** How much higher the node is than its field. */
  const frame = useRef<number>(undefined);
  const element = useRef<HTMLTextAreaElement & HTMLInputElement>(null);

  // Somebody else changed the text, and nothing was typed since.
  if (value !== base && text === base) {
    setText(value);
    setBase(value);
  }

  /** The height of a node that grows. */
  function height(): number | undefined {
    if (!lettersOf || !element.current) return undefined;
    frame.current ??= least - element.current.clientHeight;
    return Math.max(Math.round(frame.current + heightOf(element.current)), least);
  }

  function flush(text: string) {
    if (text === base) return;
    board.write(id, field, text, base, session, height());
    // When somebody else changed it, theirs stays here, and mine is in a conflict.
    const now = textOf(board, id, field);
    setText(now);
    setBase(now);
  }
  const flushLatest = useEffectEvent((latest?: string) => flush(latest ?? text));

  useEffect(() => {
    const timer = setTimeout(() => flushLatest(text), REST);
    return () => clearTimeout(timer);
  }, [text]);

  // A line more or less is seen at once.
  const grow = useEffectEvent((text: string) => {
    if ((height() ?? board.graph.nodes.get(id)?.height) !== board.graph.nodes.get(id)?.height) flush(text);
  });
  useLayoutEffect(() => grow(text), [text]);

  const isTyped = text !== base;
  useEffect(() => {
    if (!isTyped) return;
    const timer = setTimeout(() => flushLatest(), LONGEST_REST);
    return () => clearTimeout(timer);
  }, [isTyped]);
  useBeforeEnd(() => flush(text));

  useLayoutEffect(() => {
    element.current?.focus();
    element.current?.select();
    // A node can leave the screen while it is edited.
    return () => flushLatest();
  }, []);

  function type(event: KeyboardEvent) {
    event.stopPropagation();
    const { key, ctrlKey, metaKey, nativeEvent } = event;
    const isDone = key === "Enter" && !nativeEvent.isComposing && (field === "title" || ctrlKey || metaKey);
    if (key !== "Escape" && !isDone) return;
    event.preventDefault();
    flush(text);
    board.stopEditing(!outline);
    outline?.focus();
  }

  const most = field === "title" ? MOST_TITLE : MOST_TEXT;

  /** Says what the browser does: it leaves out what is beyond `maxLength`. */
  function paste({ clipboardData, currentTarget: { value, selectionStart, selectionEnd } }: ClipboardEvent<HTMLInputElement | HTMLTextAreaElement>) {
    const pasted = clipboardData.getData("text/plain").replaceAll("\r\n", "\n");
    const replaced = (selectionEnd ?? 0) - (selectionStart ?? 0);
    if (value.length - replaced + pasted.length > most) board.notifyCut(field);
  }

  const node = board.graph.nodes.get(id);
  // Letters shrink before the node grows.
  const letters = lettersOf && node ? lettersOf({ ...node, height: least, metadata: { ...node.metadata, content: text } }) : fontSize;
  const shared = {
    ref: element,
    value: text,
    "aria-label": label,
    dir: "auto",
    // React Flow moves no node and zooms nothing from here.
    className: `nodrag nopan nowheel ${className ?? ""}`,
    style: letters === undefined ? undefined : { fontSize: letters },
    onChange: (event: { target: { value: string } }) => setText(event.target.value),
    onKeyDown: type,
    onPaste: paste,
    maxLength: most,
    onBlur: () => {
      flush(text);
      const { editing } = board.getUi();
      if (editing?.id === id && editing.field === field) board.set({ editing: undefined });
    },
  };
  return field === "title" ? <input {...shared} /> : <textarea {...shared} />;
}
