/**
 * Three hints for a person who is new here, each once in a browser, one at a time. A hint takes no pointer, so it is in nobody's way. It is
 * over when a person does what it says, presses Escape, or has had time to read it.
 */
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Graph, Node } from "../sync/graph.ts";
import { combinationOf } from "../ui/keys.ts";
import { Keys } from "../ui/palette.tsx";
import { freePart } from "./bar.ts";
import { useIsTouch } from "../ui/screen.ts";
import type { Board, Ui } from "./board.ts";
import type { Camera } from "./camera.ts";
import styles from "./hints.module.css";
import { boundsOf } from "./spatial.ts";
import { variantOf } from "./variants.ts";

/** The key of the storage under which this browser keeps which are over. */
const STORED = "canvas.hints";
/** How long what a hint speaks of is there before it, and how long it is shown, in milliseconds. */
const REST = 900;
const SHOWN = 15_000;
/** Distances from what it speaks of, without and with the bar between, and from the edges, in pixels. */
const [BESIDE, BEYOND_BAR, EDGE] = [14, 66, 8];
/** How many nodes are worth arranging. */
const SEVERAL = 5;

interface Hint {
  id: string;
  /** The key that it names. */
  keys: string;
  says: ReactNode;
  /** What it speaks of; without any, it is not shown. */
  about: (board: Board) => Node[];
}

/** The results of a run that has made several. */
function results(graph: Graph): Node[] {
  for (const { id, asset } of graph.nodes.values()) {
    const nodes = asset === undefined ? [] : (variantOf(graph, id)?.ids ?? []).flatMap((id) => graph.nodes.get(id) ?? []);
    if (nodes.filter((node) => node.asset !== undefined).length > 1) return nodes;
  }
  return [];
}

const HINTS: readonly Hint[] = [
  {
    id: "make",
    keys: "G",
    says: (
      <>
        Press <Keys combination="G" /> to make something from this.
      </>
    ),
    about: ({ selected, scopes }) => (selected.length === 1 && selected[0]?.type === "image" && selected[0].asset !== undefined && scopes.includes("image:generate") ? selected : []),
  },
  {
    id: "favorite",
    keys: "F",
    says: (
      <>
        Mark what you like with <Keys combination="F" />.
      </>
    ),
    about: ({ graph }) => results(graph),
  },
  {
    id: "tidy",
    keys: "Shift+A",
    says: (
      <>
        Drag to arrange, <Keys combination="Shift+A" /> tidies what is selected.
      </>
    ),
    about: ({ graph }) => (graph.nodes.size >= SEVERAL ? [...graph.nodes.values()].slice(0, SEVERAL) : []),
  },
];

const readEnded = (): ReadonlySet<string> => new Set((localStorage.getItem(STORED) ?? "").split(" "));

export function Hints({ board, camera, ui }: { board: Board; camera: Camera; ui: Ui }) {
  const isTouch = useIsTouch();
  const [ended, setEnded] = useState(readEnded);
  const isBusy = Boolean(ui.editing ?? ui.drag ?? ui.resize ?? ui.menu ?? ui.dialog ?? ui.prompt?.opened);
  const hint = isTouch || !board.canChange || isBusy ? undefined : HINTS.find(({ id, about }) => !ended.has(id) && about(board).length > 0);
  if (!hint) return null;
  const end = () => {
    const next = new Set(readEnded()).add(hint.id);
    localStorage.setItem(STORED, [...next].join(" ").trim());
    setEnded(next);
  };
  return <Beside key={hint.id} hint={hint} nodes={hint.about(board)} camera={camera} end={end} />;
}

function Beside({ hint: { keys, says }, nodes, camera, end }: { hint: Hint; nodes: Node[]; camera: Camera; end: () => void }) {
  const element = useRef<HTMLParagraphElement>(null);
  const [isShown, setIsShown] = useState(false);
  const ending = useRef(end);
  useLayoutEffect(() => void (ending.current = end));
  useEffect(() => {
    const timer = setTimeout(() => (isShown ? ending.current() : setIsShown(true)), isShown ? SHOWN : REST);
    const type = (event: KeyboardEvent) => {
      const pressed = combinationOf(event);
      if (pressed === keys || (isShown && pressed === "Escape")) ending.current();
    };
    addEventListener("keydown", type, true);
    return () => {
      clearTimeout(timer);
      removeEventListener("keydown", type, true);
    };
  }, [isShown, keys]);

  useLayoutEffect(() => {
    const box = boundsOf(nodes);
    if (!isShown || !box) return;
    const place = () => {
      const hint = element.current as HTMLElement;
      const free = freePart(camera.screen);
      const { left, top, width, height } = camera.toBoard(box);
      const isBarBelow = top - BEYOND_BAR < free.y;
      const x = Math.min(Math.max(left + width / 2 - hint.offsetWidth / 2, free.x + EDGE), free.x + free.width - hint.offsetWidth - EDGE);
      const y = Math.min(Math.max(top + height + (isBarBelow ? BEYOND_BAR : BESIDE), free.y + EDGE), free.y + free.height - hint.offsetHeight - EDGE);
      hint.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
    };
    place();
    return camera.subscribe(place);
  }, [isShown, nodes, camera]);

  if (!isShown) return null;
  return (
    <p ref={element} className={styles.hint} role="note">
      {says}
    </p>
  );
}
