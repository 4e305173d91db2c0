/** What others point at on the board, and what is sent of this page: arrows, frames around selections, drags, and following. */
import { type CSSProperties, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { api } from "../api.ts";
import { listenTo, type Live } from "../live.ts";
import { colorOf, type Peers, PointerSender } from "../pointers.ts";
import { useSession } from "../session.ts";
import type { Pointer, PointerState, Presence } from "../stream.ts";
import type { Graph, Node } from "../sync/graph.ts";
import type { News } from "../sync/types.ts";
import { useSwitch } from "../ui/switches.ts";
import type { Box } from "../view.ts";
import type { Board } from "./board.ts";
import styles from "./cursors.module.css";
import { carried } from "./gestures.ts";
import { deedIn } from "./news.ts";
import { boundsOf, middleOf } from "./spatial.ts";

/** Of a drag, this many outlines are shown. */
const MOST_GHOSTS = 64;
/** How long an agent's arrow is shown after its change, in milliseconds. */
const AGENT_SHOWN = 4000;

interface Props {
  board: Board;
  graph: Graph;
  canvas: string;
  live: Live;
  peers: Peers;
  news: News | undefined;
}

export function Cursors({ board, graph, canvas, live, peers, news }: Props) {
  const { session } = useSession();
  const areShown = useSwitch("canvas.pointers");
  const told = useSyncExternalStore(peers.subscribe, peers.getList);
  // Who has left points at nothing.
  const list = useMemo(() => told.filter(({ id }) => live.who.some((one) => one.id === id)), [told, live.who]);
  const plane = useRef<HTMLDivElement>(null);
  useSending(board, canvas, live.who, peers);
  useEffect(() => {
    const stop = listenTo(canvas, (message) => {
      if (message.event === "pointers") peers.told(message.who);
      // A stream that is opened again begins with what is shown then.
      else if (message.event === "state" && message.state === "interrupted") peers.forget();
    });
    return () => (stop(), peers.forget());
  }, [canvas, peers]);
  useLayoutEffect(() => {
    const place = () => {
      const { surface } = board;
      const element = plane.current;
      if (!surface || !element?.parentElement) return;
      const [{ left, top }, origin, unit] = [element.parentElement.getBoundingClientRect(), surface.toScreen({ x: 0, y: 0 }), surface.toScreen({ x: 1, y: 0 })];
      const zoom = unit.x - origin.x;
      element.style.transform = `translate(${origin.x - left}px, ${origin.y - top}px) scale(${zoom})`;
      element.style.setProperty("--pixel", String(1 / zoom));
    };
    place();
    return board.onScale(place);
  }, [board]);

  return (
    <>
      <div className={styles.layer} aria-hidden="true">
        <div ref={plane} className={styles.plane}>
          {areShown && list.map((pointer) => <Peer key={pointer.id} board={board} graph={graph} pointer={pointer} name={nameOf(pointer, session.label)} />)}
          <AgentArrow key={news?.key} graph={graph} news={news} />
        </div>
      </div>
      <Following board={board} peers={peers} who={live.who} />
    </>
  );
}

const nameOf = ({ label, surface }: Presence, own: string): string => (surface === "browser" && label === own ? `${label} (you, other tab)` : label);

const colored = (id: string, style: CSSProperties = {}): CSSProperties => ({ ...style, "--color": colorOf(id) }) as CSSProperties;
const placed = ({ x, y, width, height }: Box): CSSProperties => ({ translate: `${x}px ${y}px`, width, height });
const boxOf = ({ position: { x, y }, width, height }: Node): Box => ({ x, y, width, height });

function Peer({ board, graph, pointer, name }: { board: Board; graph: Graph; pointer: Pointer; name: string }) {
  const { id, at, selection = [], moving, editing } = pointer;
  const shown = (ids: Iterable<string>) => [...ids].flatMap((id) => graph.nodes.get(board.engine.local(id)) ?? []);
  const framed = shown(new Set(editing === undefined ? selection : [editing, ...selection]));
  const dragged = moving ? shown(carried(graph, new Set(shown(selection).map(({ id }) => id)))).slice(0, MOST_GHOSTS) : [];
  return (
    <div style={colored(id)} data-peer={name}>
      {framed.map((node, index) => (
        <div key={node.id} data-part="frame" className={styles.frame} style={placed(boxOf(node))}>
          {index === 0 && <span className={styles.name}>{editing === undefined ? name : `${name} is writing…`}</span>}
        </div>
      ))}
      {moving && dragged.map((node) => <div key={node.id} data-part="ghost" className={styles.ghost} style={placed({ ...boxOf(node), x: node.position.x + moving[0], y: node.position.y + moving[1] })} />)}
      {at && <Arrow x={at[0]} y={at[1]} name={name} />}
    </div>
  );
}

function Arrow({ x, y, name, sentence }: { x: number; y: number; name: string; sentence?: string }) {
  return (
    <div data-part="arrow" className={styles.arrow} style={{ translate: `${x}px ${y}px` }}>
      <div className={styles.tip}>
        <svg width="18" height="20" viewBox="0 0 18 20">
          <path d="M1.5 1.5 16 9.2l-6.4 1.6-3.2 6.4z" />
        </svg>
        <span className={styles.name}>
          <bdi>{name}</bdi>
          {sentence !== undefined && (
            <small>
              <bdi>{sentence}</bdi>
            </small>
          )}
        </span>
      </div>
    </div>
  );
}

/** An agent points at nothing. Its arrow is where its last change was, for a moment. */
function AgentArrow({ graph, news }: { graph: Graph; news: News | undefined }) {
  const [isOver, setIsOver] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsOver(true), AGENT_SHOWN);
    return () => clearTimeout(timer);
  }, []);
  const newest = news?.activity[0];
  const box = boundsOf((news?.nodes ?? []).flatMap((id) => graph.nodes.get(id) ?? []));
  if (isOver || !newest || !box || newest.actor.surface === "browser") return null;
  const { label } = newest.actor;
  const { x, y } = middleOf(box);
  return (
    <div style={colored(label)} data-peer={label}>
      <Arrow x={x} y={y} name={label} sentence={deedIn(news, graph)} />
    </div>
  );
}

const isVisible = () => document.visibilityState === "visible";
function onVisibility(listener: () => void): () => void {
  document.addEventListener("visibilitychange", listener);
  return () => document.removeEventListener("visibilitychange", listener);
}

/** Sends what this page shows, while other people are on the canvas and the page is looked at. */
function useSending(board: Board, canvas: string, who: Presence[], peers: Peers): void {
  const [sender] = useState(() => new PointerSender((body) => api.point(canvas, body)));
  const isSeen = useSyncExternalStore(onVisibility, isVisible);
  const people = who.filter(({ surface }) => surface === "browser").map(({ id }) => id);
  // Who presents does not point.
  const isPresenting = useSyncExternalStore(board.subscribe, () => board.getUi().dialog === "present");
  const isOn = useSwitch("canvas.pointer") && isSeen && !isPresenting && people.length > 1;
  const known = useRef<string[]>([]);
  useEffect(() => {
    if (people.some((id) => !known.current.includes(id))) sender.announce();
    known.current = people;
  });
  useEffect(() => {
    sender.turn(isOn);
    return () => sender.turn(false);
  }, [sender, isOn]);
  useEffect(() => {
    const show = () => sender.show(shownOn(board, peers.getFollowed() === undefined));
    const stop = new AbortController();
    // The surface has taken the place of the pointer before.
    for (const type of ["pointermove", "keydown"]) addEventListener(type, show, { signal: stop.signal, passive: true });
    const stops = [board.subscribe(show), board.onScale(show)];
    return () => {
      stop.abort();
      for (const end of stops) end();
    };
  }, [board, sender, peers]);
}

/** What this page shows of its person. A view that follows another is not the person's own: two who follow each other would never rest. */
function shownOn(board: Board, isOwnView: boolean): PointerState {
  const { selection, drag, editing } = board.getUi();
  const { surface, engine } = board;
  const [at, seen] = [surface?.pointer(), surface?.seen];
  return {
    ...(at && { at: [at.x, at.y] }),
    ...(selection.size > 0 && { selection: [...selection].slice(0, 32).map(engine.real) }),
    ...(drag && (drag.by.x !== 0 || drag.by.y !== 0) && { moving: [drag.by.x, drag.by.y] }),
    ...(seen && isOwnView && { view: [seen.x, seen.y, seen.width, seen.height] }),
    ...(editing && { editing: engine.real(editing.id) }),
  };
}

/** Keys that do not move the view. */
const QUIET = new Set(["Tab", "Shift", "Control", "Alt", "Meta"]);

/** The view follows somebody until the person moves it. */
function Following({ board, peers, who }: { board: Board; peers: Peers; who: Presence[] }) {
  const id = useSyncExternalStore(peers.subscribe, peers.getFollowed);
  const followed = useMemo(() => who.find((one) => one.id === id), [who, id]);
  const view = useSyncExternalStore(peers.subscribe, () => peers.viewOf(id));
  const bar = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (id === undefined || !view) return;
    const [x, y, width, height] = view;
    board.surface?.showBox({ x, y, width, height });
  }, [board, id, view]);
  useEffect(() => {
    if (id !== undefined && !followed) peers.follow(undefined);
  }, [id, followed, peers]);
  useEffect(() => {
    if (id === undefined) return;
    const stop = new AbortController();
    const options = { signal: stop.signal, capture: true, passive: true };
    const end = ({ target }: Event) => {
      // A press beside the board, such as on another face, moves nothing.
      if (bar.current?.parentElement?.contains(target as Element)) peers.follow(undefined);
    };
    for (const type of ["wheel", "pointerdown"]) addEventListener(type, end, options);
    addEventListener(
      "keydown",
      (event) => {
        if (QUIET.has(event.key)) return;
        // The board keeps its selection.
        if (event.key === "Escape") event.preventDefault();
        peers.follow(undefined);
      },
      { signal: stop.signal, capture: true },
    );
    return () => stop.abort();
  }, [id, peers]);
  return (
    <div ref={bar} className={styles.following} data-on={followed !== undefined || undefined} style={followed && colored(followed.id)} role="status">
      {followed && (
        <button type="button" onClick={() => peers.follow(undefined)}>
          Following <bdi>{followed.label}</bdi> · <kbd>Esc</kbd>
        </button>
      )}
    </div>
  );
}
