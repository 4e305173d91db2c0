/** Look and Compare on the board. What is shown is selected, so that all that can be done with a selection can be done with it. */
import { useEffect, useMemo, useRef } from "react";
import { flushSync } from "react-dom";
import { altOf } from "../alt.ts";
import { Compare } from "../screens/compare.tsx";
import { type Deed, Look } from "../screens/look.tsx";
import type { Picture } from "../screens/picture.ts";
import type { Graph, Node } from "../sync/graph.ts";
import { About } from "./about.tsx";
import { type Looked, madeFrom, siblingsOf, sourcesOf } from "./album.ts";
import { isLocked } from "./arrange.ts";
import { itemsOf, leavesOf, runItem } from "./bar.ts";
import type { Board } from "./board.ts";
import { MarkButtons } from "./mark-buttons.tsx";
import { MARK_KEYS, markOfKey, marksSaid } from "./marks.ts";
import { Notices } from "./status.tsx";
import { variantOf } from "./variants.ts";

/** What of the bar is here, too, and by which key. */
const ITEMS: Record<string, string> = { edit: "E", crop: "K", download: "D" };
/** Those that go on here. The others go on on the board. */
const STAYING = new Set(["download"]);

function pictureOf(graph: Graph, node: Node): Picture {
  const { id, asset = "", title, type } = node;
  const number = variantOf(graph, id)?.number;
  return { id, asset, title: number === undefined ? title : `${title} · ${number}`, alt: altOf(node), isVideo: type === "video" };
}

interface Props {
  board: Board;
  graph: Graph;
  look: Looked;
  close: () => void;
}

export default function BoardLook({ board, graph, look, close: leave }: Props) {
  const { at, among, compared } = look;
  const node = graph.nodes.get(at);
  const matching = board.matching;
  const siblings = useMemo(() => siblingsOf(graph, { at, ...(among && { among }) }, matching), [graph, at, among, matching]);
  const pictures = useMemo(() => siblings.map((one) => pictureOf(graph, one)), [siblings, graph]);
  const before = useRef<Node[]>([]);

  function show(next: Looked) {
    board.select([next.at]);
    board.set({ look: next });
  }
  const go = (id: string) => show({ at: id, ...(among?.includes(id) && { among }) });
  function close() {
    flushSync(leave);
    const ids = (compared ?? [at]).filter((id) => board.graph.nodes.has(id));
    board.select(ids);
    if (ids.length > 0 && !board.surface?.sees(ids)) board.surface?.show(ids);
    board.surface?.focus(ids.at(-1));
  }

  // Somebody else has deleted what is shown: the next one gives its place.
  const isGone = node?.asset === undefined;
  useEffect(() => {
    if (!isGone) {
      before.current = siblings;
      return;
    }
    const index = before.current.findIndex(({ id }) => id === at);
    const next = [...before.current.slice(index + 1), ...before.current.slice(0, Math.max(index, 0)).toReversed()].find(({ id }) => graph.nodes.get(id)?.asset !== undefined);
    if (next) go(next.id);
    else leave();
  });
  if (!node || isGone) return null;

  const marks: Deed[] = board.canChange ? MARK_KEYS.map((key) => ({ label: key, keys: [key], run: () => markOfKey(key)?.(board, [node]) })) : [];
  const shared = { marks: board.canChange && <MarkButtons board={board} node={node} />, said: marksSaid(node), close };

  const shown = (compared ?? []).flatMap((id) => graph.nodes.get(id) ?? []).filter(({ asset }) => asset !== undefined);
  if (shown.length > 1) {
    const set = (ids: string[]) => (ids.length > 1 ? board.set({ look: { ...look, at: ids.includes(board.getUi().look?.at ?? "") ? (board.getUi().look?.at ?? at) : (ids[0] ?? at), compared: ids } }) : go(ids[0] ?? at));
    return <Compare {...shared} pictures={shown.map((one) => pictureOf(graph, one))} framed={at} frame={(id) => show({ ...look, at: id })} set={set} deeds={marks} look={go}><Notices board={board} /></Compare>;
  }

  const items = leavesOf(itemsOf(board)).flatMap((item): Deed[] => {
    const key = ITEMS[item.id];
    const run = () => {
      if (!STAYING.has(item.id)) close();
      runItem(board, item);
    };
    return key === undefined ? [] : [{ label: item.label, icon: item.icon, keys: [key], run }];
  });
  function remove() {
    const index = siblings.findIndex(({ id }) => id === at);
    const next = siblings[index + 1] ?? siblings[index - 1];
    if (next) go(next.id);
    else close();
    board.delete([node as Node]);
    if (next) board.select([next.id]);
  }
  const [source, made] = [sourcesOf(graph, node)[0], madeFrom(graph, node)[0]];
  const deeds: Deed[] = [
    ...items,
    ...(source?.type === "image" && node.type === "image" ? [{ label: "Compare with what it was made from", icon: "compare" as const, keys: ["Q"], run: () => board.set({ look: { at, compared: [source.id, at] } }) }] : []),
    ...(board.canChange && !isLocked(node) ? [{ label: "Delete", icon: "trash" as const, keys: ["Delete", "Backspace"], run: remove }] : []),
    ...(board.canChange ? [{ label: "Undo", keys: ["Mod+Z"], run: () => board.undo() }] : []),
    ...marks,
  ];
  return (
    <Look
      {...shared}
      picture={pictureOf(graph, node)}
      siblings={pictures}
      source={source && pictureOf(graph, source)}
      made={made && pictureOf(graph, made)}
      go={go}
      compare={(id) => board.set({ look: { at, compared: [at, id] } })}
      deeds={deeds}
      about={<About graph={graph} node={node} asset={node.asset ?? ""} go={go} />}
    >
      <Notices board={board} />
    </Look>
  );
}
