/** The bar of the selection: above it, or on touch screens and narrow windows at the bottom edge. What it has is in `bar.ts`. */
import { type KeyboardEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import { keyNames } from "../ui/keys.ts";
import { Icon } from "../ui/parts.tsx";
import { useIsTouch } from "../ui/screen.ts";
import type { Box } from "../view.ts";
import { barName, deleteLast, freePart, type Item, itemsOf, placeBar, runItem } from "./bar.ts";
import styles from "./bar.module.css";
import type { Board, Ui } from "./board.ts";
import type { Camera } from "./camera.ts";
import { lineAt } from "./shapes.ts";
import { boundsOf } from "./spatial.ts";

/** How far the dots at the ends of a connection, and its label, reach beyond its line, in pixels. */
const BESIDE_LINE = 10;

/** The box of what is selected, in the plane: of a connection, that of its line. */
function boxOfSelection({ graph, selected, getUi }: Board): Box | undefined {
  if (selected.length > 0) return boundsOf(selected);
  const { fromNodeId = "", toNodeId = "" } = graph.connections.get(getUi().link ?? "") ?? {};
  const [from, to] = [graph.nodes.get(fromNodeId), graph.nodes.get(toNodeId)];
  if (!from || !to) return undefined;
  const [start, end] = [from.position.x + from.width, to.position.x];
  const [top, bottom] = [from, to].map((node) => node.position.y + lineAt(node)).toSorted((a, b) => a - b) as [number, number];
  return { x: Math.min(start, end), y: top, width: Math.abs(end - start), height: bottom - top };
}

interface Props {
  board: Board;
  camera: Camera;
  ui: Ui;
  /** Whether a gesture is under way that the board does not know. */
  isHidden: boolean;
}

const ADDING = new Set(["Shift", "Control", "Meta"]);

/** Whether a key is held with which a click adds to the selection. */
function useIsAdding(): boolean {
  const [isHeld, setIsHeld] = useState(false);
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    const change = ({ key, type, target }: globalThis.KeyboardEvent) => ADDING.has(key) && setIsHeld(type === "keydown" && !(target as HTMLElement).matches("input, textarea"));
    for (const type of ["keydown", "keyup"] as const) addEventListener(type, change, { signal });
    addEventListener("blur", () => setIsHeld(false), { signal });
    return () => stop.abort();
  }, []);
  return isHeld;
}

export function SelectionBar({ board, camera, ui, isHidden }: Props) {
  const isAdding = useIsAdding();
  const items = isHidden || ui.stage || ui.drag || ui.resize || ui.editing ? [] : itemsOf(board);
  const box = boxOfSelection(board);
  if (items.length === 0 || !box) return null;
  return <Bar key={items.map(({ id }) => id).join(" ")} board={board} camera={camera} items={items} box={box} beside={ui.link === undefined ? 0 : BESIDE_LINE} open={ui.menu?.kind === "selection" ? ui.menu.of : ui.menu?.kind} isAdding={isAdding} />;
}

const titleOf = ({ label, keys, refused }: Item) => refused ?? (keys[0] === undefined ? label : `${label} (${keyNames(keys[0]).join(" ")})`);

/** How wide the bar may be. */
const roomOf = ({ screen }: Camera) => freePart(screen).width - 16;

interface BarProps {
  board: Board;
  camera: Camera;
  items: Item[];
  box: Box;
  beside: number;
  open: string | undefined;
  isAdding: boolean;
}

function Bar({ board, camera, items, box, beside, open, isAdding }: BarProps) {
  const isTouch = useIsTouch();
  const element = useRef<HTMLDivElement>(null);
  const primary = items.filter(({ isPrimary }) => isPrimary).length;
  /** How many items there is room for. */
  const [{ most, room }, fit] = useState({ most: primary, room: roomOf(camera) });
  const [at, setAt] = useState(0);
  const rest = isTouch ? undefined : items.slice(most);
  const buttons = isTouch ? deleteLast(items) : items.slice(0, most);
  const size = buttons.length + (rest && rest.length > 0 ? 1 : 0);

  useLayoutEffect(() => {
    const width = element.current?.offsetWidth ?? 0;
    if (!isTouch && width > room && most > 1) fit({ most: most - 1, room });
  }, [isTouch, most, room]);

  useLayoutEffect(() => {
    const bar = element.current as HTMLDivElement;
    if (isTouch) {
      bar.style.transform = "";
      return;
    }
    const size = { width: bar.offsetWidth, height: bar.offsetHeight };
    const place = () => {
      const { left, top, width, height } = camera.toBoard(box);
      const shown = { x: left, y: top - beside, width, height: height + 2 * beside };
      const at = placeBar(shown, size, freePart(camera.screen), camera.prompt);
      bar.style.transform = `translate(${Math.round(at.x)}px, ${Math.round(at.y)}px)`;
    };
    place();
    const stops = [camera.subscribe(place), camera.subscribeToPrompt(place)];
    return () => stops.forEach((stop) => stop());
  });

  // What the keyboard was on goes with the selection, or while that is dragged.
  useLayoutEffect(() => {
    const bar = element.current;
    return () => {
      if (bar?.contains(document.activeElement)) board.surface?.focus([...board.getUi().selection].at(-1));
    };
  }, [board]);

  // A wider board may have room again.
  useEffect(() => {
    const observer = new ResizeObserver(() => fit({ most: primary, room: roomOf(camera) }));
    const board = element.current?.parentElement;
    if (board) observer.observe(board);
    return () => observer.disconnect();
  }, [camera, primary]);

  function openAt(button: Element, of: string) {
    const { left, top, bottom } = button.getBoundingClientRect();
    board.set({ menu: { kind: "selection", at: { x: left, y: isTouch ? top - 8 : bottom + 8 }, of } });
  }

  function type(event: KeyboardEvent) {
    const all = [...(element.current?.querySelectorAll("button") ?? [])];
    const steps: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: size - 1 };
    const next = steps[event.key];
    if (next !== undefined) {
      const to = (next + size) % size;
      setAt(to);
      all[to]?.focus();
    } else if (event.key === "Escape") {
      board.surface?.focus([...board.getUi().selection].at(-1));
    } else if (event.key === "ArrowDown" && all[at]?.getAttribute("aria-haspopup")) {
      all[at].click();
    } else if (!event.key.startsWith("Arrow")) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  const more = rest && rest.length > 0 ? String(most) : undefined;
  return (
    // A click leaves the keyboard with the node.
    // oxlint-disable-next-line jsx-a11y/interactive-supports-focus -- its buttons have the focus, one of them at a time
    <div ref={element} role="toolbar" aria-label={barName(board)} className={styles.bar} data-bar data-touch={isTouch || undefined} data-adding={isAdding || undefined} onKeyDown={type} onMouseDown={(event) => event.preventDefault()}>
      {buttons.map((item, index) => (
        <button
          key={item.id}
          type="button"
          tabIndex={index === Math.min(at, size - 1) ? 0 : -1}
          className={styles.item}
          data-item={item.id}
          aria-label={item.label}
          title={titleOf(item)}
          aria-disabled={item.refused !== undefined || undefined}
          {...((item.items || item.isForm) && { "aria-haspopup": item.items ? "menu" : "dialog", "aria-expanded": open === item.id })}
          onFocus={() => setAt(index)}
          onClick={({ currentTarget }) => (item.items ? openAt(currentTarget, item.id) : runItem(board, item))}
        >
          <Icon name={item.icon} size={18} />
          <span className={styles.label}>{item.label}</span>
          {(item.items || item.isForm) && <Icon name="chevron" size={13} />}
        </button>
      ))}
      {more !== undefined && (
        <button
          type="button"
          tabIndex={Math.min(at, size - 1) === size - 1 ? 0 : -1}
          className={styles.item}
          aria-label="More"
          title="More"
          aria-haspopup="menu"
          aria-expanded={open === more}
          onFocus={() => setAt(size - 1)}
          onClick={({ currentTarget }) => openAt(currentTarget, more)}
        >
          <Icon name="more" size={18} />
        </button>
      )}
    </div>
  );
}
