/** The text field of a Prompt, which offers what can be mentioned, and brings the last prompts of the board. */
import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useId, useLayoutEffect, useRef, useState } from "react";
import { elements as elementCalls, sourceOf } from "../elements/calls.ts";
import { firstOf, number } from "../format.ts";
import { Thumb } from "../library/thumb.tsx";
import { useSession } from "../session.ts";
import type { Graph, Node } from "../sync/graph.ts";
import type { Board, Ui } from "./board.ts";
import { MOST_PROMPT } from "./making.ts";
import { mentionAt, partsOf, type Typed, withMention } from "./mention.ts";
import styles from "./prompt.module.css";
import { type Chip, type Form, keyOf, lastPrompts, type Subject, write } from "./prompting.ts";
import { boxOf, middleOf } from "./spatial.ts";

/** How long after the opening Enter starts nothing, in milliseconds: it may be the one that has opened the Prompt. */
const OPENING = 300;
/** From so many characters on, it is said how many are left. */
const NEARLY_FULL = MOST_PROMPT - 400;
const MOST_OFFERED = 8;

interface FieldProps {
  board: Board;
  graph: Graph;
  ui: Ui;
  subject: Subject;
  form: Form;
  isPanel: boolean;
  add: (more: Chip[]) => void;
  describedBy: string;
}

interface Offer {
  key: string;
  title: string;
  asset: string | undefined;
  kind: string;
  take: () => void;
}

export function Field({ board, graph, ui, subject, form, isPanel, add, describedBy }: FieldProps) {
  const { typed, text, chips, elements, mode } = form;
  const { scopes } = useSession().session;
  const ids = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const mirror = useRef<HTMLDivElement>(null);
  const focused = useRef(0);
  const [mention, setMention] = useState<Typed>();
  const [active, setActive] = useState(0);
  const [recalled, setRecalled] = useState(-1);
  const caret = useRef<number>(undefined);
  const { opened } = ui.prompt ?? {};

  useLayoutEffect(() => {
    const { prompt } = board.getUi();
    if (opened === undefined || !prompt) return;
    area.current?.focus({ preventScroll: true });
    focused.current = performance.now();
    board.set({ prompt: { ...prompt, opened: undefined } });
  }, [board, opened]);
  useLayoutEffect(() => {
    const field = area.current as HTMLTextAreaElement;
    if (caret.current !== undefined) field.setSelectionRange(caret.current, caret.current);
    caret.current = undefined;
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
  });

  const isOffering = mention !== undefined;
  const found = useQuery({ queryKey: ["elements", "choices"], queryFn: ({ signal }) => elementCalls.list("active", "", undefined, signal), enabled: isOffering && scopes.includes("element:read") });
  const offers = isOffering ? offersOf() : [];
  const at = Math.min(active, offers.length - 1);
  const isOpen = offers.length > 0;

  /** Images: what is selected, then what is near the middle of the view; and Elements. */
  function offersOf(): Offer[] {
    const query = mention?.query.toLowerCase() ?? "";
    const middle = board.surface ? middleOf(board.surface.free()) : { x: 0, y: 0 };
    const far = (node: Node) => Math.hypot(middleOf(boxOf(node)).x - middle.x, middleOf(boxOf(node)).y - middle.y);
    const nodes = [...graph.nodes.values()].filter(({ type, asset, title }) => type === "image" && asset !== undefined && title.toLowerCase().includes(query) && title !== "");
    const sorted = nodes.toSorted((a, b) => Number(ui.selection.has(b.id)) - Number(ui.selection.has(a.id)) || far(a) - far(b)).slice(0, MOST_OFFERED);
    const pictures = sorted.map((node): Offer => ({ key: node.id, title: node.title, asset: node.asset, kind: "image", take: () => add([{ asset: node.asset ?? "", title: node.title, of: node.id }]) }));
    const named = (found.data?.elements ?? []).filter(({ name }) => name.toLowerCase().includes(query)).slice(0, MOST_OFFERED);
    const others = named.map((element): Offer => {
      const [source] = element.sourceAssetIds;
      const take = () => !elements.some(({ id }) => id === element.id) && write(board, { elements: [...elements, element] });
      return { key: element.id, title: element.name, asset: source === undefined ? undefined : sourceOf(element.ownerUid, source), kind: "Element", take };
    });
    return [...pictures, ...(mode === "video" ? [] : others)].slice(0, MOST_OFFERED);
  }

  function enter(prompt: string, field: HTMLTextAreaElement) {
    write(board, { prompt: firstOf(prompt, MOST_PROMPT) });
    setMention(mentionAt(prompt, field.selectionStart));
    setActive(0);
    setRecalled(-1);
  }

  function take({ title, take }: Offer) {
    if (!mention) return;
    take();
    const next = withMention(typed, mention, title);
    caret.current = next.caret;
    write(board, { prompt: firstOf(next.text, MOST_PROMPT) });
    setMention(undefined);
    area.current?.focus();
  }

  /** Brings the last prompts of the board into an empty field, one by one. */
  function recall(step: number): boolean {
    if (typed !== "" && recalled < 0) return false;
    const all = lastPrompts(graph);
    const next = Math.min(recalled + step, all.length - 1);
    if (next < -1 || all.length === 0) return false;
    setRecalled(next);
    write(board, { prompt: all[next] ?? "" });
    return true;
  }

  function type(event: KeyboardEvent<HTMLTextAreaElement>) {
    const { key, nativeEvent } = event;
    if (nativeEvent.isComposing) return;
    if (isOpen && (key === "ArrowDown" || key === "ArrowUp")) setActive((at + (key === "ArrowDown" ? 1 : offers.length - 1)) % offers.length);
    else if (isOpen && (key === "Enter" || key === "Tab")) take(offers[at] as Offer);
    else if (isOpen && key === "Escape") setMention(undefined);
    else if (key === "Enter" && !event.shiftKey && !event.altKey) {
      if (performance.now() - focused.current > OPENING) event.currentTarget.form?.requestSubmit();
    } else if ((key === "ArrowUp" && recall(1)) || (key === "ArrowDown" && recalled >= 0 && recall(-1))) caret.current = undefined;
    else return;
    event.preventDefault();
  }

  const removed = ui.written[keyOf(subject)]?.removed ?? [];
  const struck = removed.filter((title) => !chips.some((chip) => chip.title === title) && !elements.some(({ name }) => name === title));
  const parts = partsOf(typed, struck);
  const left = MOST_PROMPT - typed.length;
  const isCut = left === 0 || (typed.trim() === "" && (text?.metadata.content?.length ?? 0) > MOST_PROMPT);
  return (
    <div className={styles.field}>
      {parts.some(({ title }) => title !== undefined) && (
        <div ref={mirror} className={styles.mirror} aria-hidden="true" dir="auto">
          {parts.map(({ at, text, title }) => (title === undefined ? <span key={at}>{text}</span> : <s key={at}>{text}</s>))}
        </div>
      )}
      <textarea
        ref={area}
        rows={isPanel ? 4 : 2}
        dir="auto"
        aria-label="Prompt"
        aria-describedby={describedBy}
        placeholder={text ? firstOf(text.metadata.content ?? "", 400) : mode === "edit" ? "What shall change?" : "What shall it show? @ mentions an image"}
        required={mode !== "variations" && !text}
        value={typed}
        {...(isOpen && { role: "combobox", "aria-expanded": true, "aria-autocomplete": "list", "aria-controls": `${ids}-offers`, "aria-activedescendant": `${ids}-${at}` })}
        onChange={({ target }) => enter(target.value, target)}
        onSelect={({ currentTarget }) => setMention(mentionAt(currentTarget.value, currentTarget.selectionStart))}
        onBlur={() => setMention(undefined)}
        onScroll={({ currentTarget }) => mirror.current?.scrollTo(0, currentTarget.scrollTop)}
        onKeyDown={type}
      />
      {isOpen && (
        <div id={`${ids}-offers`} className={styles.offers} role="listbox" aria-label="Images and Elements">
          {offers.map((offer, index) => (
            // The field keeps the keyboard.
            <div key={offer.key} id={`${ids}-${index}`} role="option" tabIndex={-1} aria-selected={index === at} onPointerDown={(event) => (event.preventDefault(), take(offer))}>
              <span className={styles.thumb}>
                <Thumb asset={offer.asset} alt="" pixels={64} />
              </span>
              <bdi>{offer.title}</bdi>
              <small>{offer.kind}</small>
            </div>
          ))}
        </div>
      )}
      {(isCut || typed.length >= NEARLY_FULL) && (
        <p className={styles.hint} role="status">
          {isCut ? `A prompt holds ${number(MOST_PROMPT)} characters. The rest of a longer text is left out.` : `${number(left)} characters left`}
        </p>
      )}
    </div>
  );
}
