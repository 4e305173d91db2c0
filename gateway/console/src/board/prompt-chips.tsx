/** The images, the text and the Elements that something is made from, as chips of a Prompt. */
import { type ReactNode, useId, useRef, useState } from "react";
import { sourceOf } from "../elements/calls.ts";
import { count as counted, firstOf } from "../format.ts";
import { Thumb } from "../library/thumb.tsx";
import { useSession } from "../session.ts";
import { laterDialog } from "../ui/later.tsx";
import { Button, Icon } from "../ui/parts.tsx";
import type { Board } from "./board.ts";
import { ROLE_WORDS } from "../words.ts";
import { ROLES } from "./making.ts";
import styles from "./prompt.module.css";
import { type Chip, currentSubject, type Form, keyOf, type Mode, type Use, write } from "./prompting.ts";

const PictureDialog = laterDialog("Image", async () => ({ default: (await import("../library/pictures.tsx")).PictureDialog }));

/** A choice with a label that is seen in the panel. */
export function Select({ label, value, set, children }: { label: string; value: string; set: (value: string) => void; children: ReactNode }) {
  const id = useId();
  return (
    <div className={styles.select}>
      <label className="unseen" htmlFor={id}>
        {label}
      </label>
      <select id={id} value={value} title={label} onChange={({ target }) => set(target.value)}>
        {children}
      </select>
    </div>
  );
}

interface ChipsProps {
  board: Board;
  canvas: string;
  form: Form;
  add: (more: Chip[]) => void;
  /** Images that are selected, for the panel. */
  selected: Chip[];
}

const wordsOf = (mode: Mode, use: Use, isChanged: boolean): string => {
  if (mode === "edit" && isChanged) return "changed";
  return use === "none" ? "not used" : use === "first" ? "begins with" : use === "last" ? "ends with" : use === "guide" ? "" : ROLE_WORDS[use];
};

export function Chips({ board, canvas, form, add, selected }: ChipsProps) {
  const { scopes } = useSession().session;
  const { chips, entries, elements, mode, most, text } = form;
  const [opened, setOpened] = useState<string>();
  const [isChoosing, setIsChoosing] = useState<"add" | "replace">();
  const [dragged, setDragged] = useState<number>();
  const group = useRef<HTMLDivElement>(null);
  const details = useId();
  const open = chips.findIndex(({ asset }) => asset === opened);
  const chip = chips[open];
  const set = (next: Chip[], removed = "") => {
    const before = board.getUi().written[keyOf(currentSubject(board))]?.removed ?? [];
    write(board, { chips: next, ...(removed !== "" && { removed: [...before, removed] }) });
  };
  const remove = (index: number) => {
    set(entries.filter((_, at) => at !== index), chips[index]?.title);
    group.current?.focus();
  };
  const move = (from: number, to: number) => {
    if (to < 0 || to >= chips.length) return;
    const next = entries.filter((_, at) => at !== from);
    next.splice(to, 0, entries[from] as Chip);
    set(next);
    setTimeout(() => group.current?.querySelectorAll<HTMLElement>("[data-chip]")[to]?.focus());
  };
  // In a video, what one image is for leaves that of the others as it is shown.
  const setUse = (use: Use) => set(entries.map((one, at) => (at === open ? { ...one, use } : mode === "video" ? { ...one, use: chips[at]?.use } : one)));
  const others = selected.filter(({ asset }) => !chips.some((one) => one.asset === asset));
  const canAdd = scopes.includes("asset:read");
  const label = counted(chips.length, "image");
  return (
    <div ref={group} className={styles.chips} role="group" aria-label={`Made from ${label}`} tabIndex={-1}>
      {text && (
        <span className={styles.chip}>
          <span className={styles.name}>
            <Icon name="text" size={16} />
            <bdi>from {text.title || firstOf(text.metadata.content ?? "", 24)}</bdi>
          </span>
          <button type="button" aria-label={`Leave out ${text.title || "the text"}`} title="Leave out" onClick={() => (write(board, { isWithoutText: true }), group.current?.focus())}>
            <Icon name="close" size={12} />
          </button>
        </span>
      )}
      {chips.map((one, index) => {
        const words = wordsOf(mode, one.use, form.isEach ? form.each.includes(one.asset) : index === 0);
        return (
          <span
            key={one.asset}
            className={styles.chip}
            data-beyond={(mode !== "video" && index >= most) || undefined}
            data-unused={one.use === "none" || undefined}
            draggable
            onDragStart={(event) => (event.dataTransfer.setData("text/plain", one.title), setDragged(index))}
            onDragEnd={() => setDragged(undefined)}
            onDrop={(event) => {
              if (dragged === undefined) return;
              event.preventDefault();
              event.stopPropagation();
              move(dragged, index);
            }}
          >
            <button
              type="button"
              data-chip
              className={styles.name}
              aria-expanded={open === index}
              aria-controls={open === index ? details : undefined}
              title={`${one.title}${words && `: ${words}`}`}
              onClick={() => setOpened(open === index ? undefined : one.asset)}
              onKeyDown={(event) => {
                const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
                if (event.key === "Delete" || event.key === "Backspace") remove(index);
                else if (step !== undefined && event.altKey) move(index, index + step);
                else return;
                event.preventDefault();
              }}
            >
              <span className={styles.thumb}>
                <Thumb asset={one.asset} alt="" pixels={64} />
              </span>
              <bdi>{one.title}</bdi>
              {words !== "" && <em>{words}</em>}
            </button>
            <button type="button" aria-label={`Remove ${one.title}`} title="Remove" onClick={() => remove(index)}>
              <Icon name="close" size={12} />
            </button>
          </span>
        );
      })}
      {elements.map((element) => (
        <span key={element.id} className={styles.chip}>
          <span className={styles.name}>
            <span className={styles.thumb}>
              <Thumb asset={element.sourceAssetIds[0] === undefined ? undefined : sourceOf(element.ownerUid, element.sourceAssetIds[0])} alt="" pixels={64} />
            </span>
            <bdi>{element.name}</bdi>
            <em>Element</em>
          </span>
          <button type="button" aria-label={`Leave out ${element.name}`} title="Leave out" onClick={() => (write(board, { elements: elements.filter((one) => one !== element) }), group.current?.focus())}>
            <Icon name="close" size={12} />
          </button>
        </span>
      ))}
      {others.length > 0 && chips.length < most && <Button className={styles.add} onClick={() => add(others)}>Add the selection</Button>}
      {canAdd && (
        <Button look="quiet" className={styles.add} aria-label="Add an image…" title="Add an image…" onClick={() => setIsChoosing("add")}>
          <Icon name="plus" size={14} />
          {chips.length === 0 && "Image"}
        </Button>
      )}
      {chip && (
        <div id={details} className={styles.details} role="group" aria-label={chip.title}>
          {mode === "edit" && open === 0 ? (
            <span className={styles.hint}>This image is changed.</span>
          ) : (
            <Select label={`What ${chip.title} is for`} value={chip.use} set={(use) => setUse(use as Use)}>
              {mode === "video" && (
                <>
                  <option value="none">not used</option>
                  <option value="first">begins with</option>
                  <option value="last">ends with</option>
                </>
              )}
              <option value="guide">guides it</option>
              {ROLES.map((role) => (
                <option key={role} value={role}>
                  {ROLE_WORDS[role]}
                </option>
              ))}
            </Select>
          )}
          {chip.node && (
            <Button look="quiet" onClick={() => board.surface?.show([chip.node?.id ?? ""])}>
              Show
            </Button>
          )}
          {canAdd && (
            <Button look="quiet" onClick={() => setIsChoosing("replace")}>
              Replace…
            </Button>
          )}
          <Button look="quiet" aria-label={`Move ${chip.title} to the left`} title="To the left (Alt ←)" disabled={open === 0} onClick={() => move(open, open - 1)}>
            ←
          </Button>
          <Button look="quiet" aria-label={`Move ${chip.title} to the right`} title="To the right (Alt →)" disabled={open === chips.length - 1} onClick={() => move(open, open + 1)}>
            →
          </Button>
        </div>
      )}
      {isChoosing && (
        <PictureDialog
          title={isChoosing === "add" ? "Image to make it from" : `Image in place of ${chip?.title ?? ""}`}
          source={{ canvas }}
          choose={({ handle, name, title = name }) => {
            if (isChoosing === "add") add([{ asset: handle, title }]);
            else if (chip && !chips.some(({ asset }) => asset === handle)) {
              set(entries.map((one, at) => (at === open ? { asset: handle, title, use: one.use } : one)), chip.title);
              setOpened(handle);
            }
          }}
          chooseElement={isChoosing === "add" && mode !== "video" ? (element) => write(board, { elements: [...elements.filter(({ id }) => id !== element.id), element] }) : undefined}
          close={() => {
            setIsChoosing(undefined);
            setTimeout(() => group.current?.focus());
          }}
        />
      )}
    </div>
  );
}
