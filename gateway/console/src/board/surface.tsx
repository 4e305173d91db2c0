/**
 * The surface of the board. React Flow handles dragging, connecting and the view. It is given only the nodes in view, so a canvas of
 * 10000 nodes costs as much as one of 100; from far away it is given only the one that is edited, and `overview.ts` draws the others.
 */
import { type NodeChange, type OnConnectEnd, ReactFlow, ReactFlowProvider, useReactFlow } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { type KeyboardEvent, type MouseEvent, type PointerEvent, useDeferredValue, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { type Graph, isSection } from "../sync/graph.ts";
import type { Box, Point } from "../view.ts";
import { canLook, lookAt } from "./album.ts";
import { isLocked } from "./arrange.ts";
import { SelectionBar } from "./bar.tsx";
import type { Board, Ui } from "./board.ts";
import { Bracket } from "./bracket.tsx";
import { Camera, LEAST_ZOOM, MOST_ZOOM } from "./camera.ts";
import { DetailContext } from "./context.ts";
import { type BoardEdge, edgeTypes } from "./edges.tsx";
import { Elements, MOST_RENDERED } from "./elements.ts";
import { matchingIn } from "./filter.ts";
import { enclosed } from "./gestures.ts";
import { useFading } from "./fading.ts";
import { Guides } from "./guides.tsx";
import { Hints } from "./hints.tsx";
import { onHold } from "./hold.ts";
import { Dots, Minimap, Overview } from "./layers.tsx";
import { type BoardNode, nodeTypes } from "./nodes.tsx";
import { PromptLayer } from "./prompt.tsx";
import { SpatialIndex } from "./spatial.ts";
import styles from "./surface.module.css";

/** How far a pointer moves before a press is a drag. */
const DRAG_START = 4;
/** How many nodes begin to be rendered in a frame. */
const MOST_NEW = 16;

const LABELS = { "edge.a11yDescription.default": "Enter changes what it is for, Delete deletes it." };

interface Props {
  board: Board;
  graph: Graph;
  ui: Ui;
  canvas: string;
}

/** Whether the last thing that was pressed is the Tab key. */
let isTabLast = false;
addEventListener("keydown", ({ key }) => (isTabLast = key === "Tab"), true);
addEventListener("pointerdown", () => (isTabLast = false), true);

export function Surface(props: Props) {
  const [frame, setFrame] = useState<HTMLDivElement | null>(null);
  return (
    <div ref={setFrame} onFocus={({ currentTarget }) => (currentTarget.dataset["focus"] = isTabLast ? "tab" : "")} className={styles.frame} data-tool={props.ui.isPanning ? "hand" : props.ui.tool} data-collecting={(props.ui.isTouch && props.ui.isCollecting) || undefined} data-reading={!props.board.canChange || undefined}>
      {frame && (
        <ReactFlowProvider>
          <Flow {...props} frame={frame} />
        </ReactFlowProvider>
      )}
    </div>
  );
}

const isAdding = (event: { shiftKey: boolean; ctrlKey: boolean; metaKey: boolean }) => event.shiftKey || event.ctrlKey || event.metaKey;
const isPane = (target: EventTarget) => target instanceof Element && target.classList.contains("react-flow__pane");
const placeOf = (event: globalThis.MouseEvent | TouchEvent): Point => {
  const { clientX, clientY } = "changedTouches" in event ? (event.changedTouches[0] ?? { clientX: 0, clientY: 0 }) : event;
  return { x: clientX, y: clientY };
};

/** The ids of `nodes`. If many are new, a few of them in each frame: what comes into view all at once delays no frame by much. */
function useGradually(nodes: BoardNode[]): ReadonlySet<string> {
  const [rendered, setRendered] = useState<ReadonlySet<string>>(() => new Set());
  const fresh = nodes.filter(({ id }) => !rendered.has(id));
  const areFew = fresh.length <= MOST_NEW;
  // Before anything is shown: a node that was made has the keyboard at once.
  if (areFew && (fresh.length > 0 || nodes.length !== rendered.size)) setRendered(new Set(nodes.map(({ id }) => id)));
  useEffect(() => {
    if (areFew) return;
    const request = requestAnimationFrame(() => {
      let room = MOST_NEW;
      setRendered(new Set(nodes.flatMap(({ id }) => (rendered.has(id) || (room -= 1) >= 0 ? id : []))));
    });
    return () => cancelAnimationFrame(request);
  }, [areFew, nodes, rendered]);
  return rendered;
}

/** Whether the first frame is on the screen. What it does not need comes after it. */
function useIsDrawn(): boolean {
  const [isDrawn, setIsDrawn] = useState(false);
  useEffect(() => {
    let request = requestAnimationFrame(() => (request = requestAnimationFrame(() => setIsDrawn(true))));
    return () => cancelAnimationFrame(request);
  }, []);
  return isDrawn;
}

function Flow({ board, graph, ui, canvas, frame }: Props & { frame: HTMLElement }) {
  const { setViewport } = useReactFlow();
  const [camera] = useState(() => new Camera(canvas, board, frame));
  const [elements] = useState(() => new Elements(board.canChange));
  const [marquee, setMarquee] = useState<Box>();
  // The view moves on while what has come into it is rendered.
  const seen = useDeferredValue(useSyncExternalStore(camera.subscribe, camera.getWindow));
  const index = useMemo(() => new SpatialIndex(graph.nodes.values()), [graph.nodes]);
  const inView = useMemo(() => (seen.isFar ? [] : index.in(seen.box)), [index, seen]);
  const isOverview = seen.isFar || inView.length > MOST_RENDERED;
  const isDrawn = useIsDrawn();
  // In the first frame, many are drawn.
  const areDrawn = isOverview || (!isDrawn && inView.length > MOST_NEW);
  const [focused, setFocused] = useState<string>();
  const wanted = useMemo(
    () => (areDrawn ? elements.nodes(graph, [], { ...ui, drag: undefined }, undefined) : elements.nodes(graph, inView, ui, focused)),
    [elements, graph, inView, areDrawn, ui, focused],
  );
  const rendered = useGradually(wanted);
  const nodes = useMemo(() => wanted.filter(({ id }) => rendered.has(id)), [wanted, rendered]);
  const edges = useMemo(() => elements.edges(graph, nodes, { link: ui.link, selection: ui.selection, areLinesHidden: ui.areLinesHidden, filter: ui.filter }), [elements, graph, nodes, ui.link, ui.selection, ui.areLinesHidden, ui.filter]);
  const isHand = ui.tool === "hand" || ui.isPanning;
  const { canChange } = board;
  const { selection, drag, areLinesHidden } = ui;
  const matching = matchingIn(graph, ui.filter);
  useFading(camera, frame, selection);
  const scene = useMemo(() => ({ graph, index, rendered, selection, drag, areLinesHidden, matching }), [graph, index, rendered, selection, drag, areLinesHidden, matching]);

  // The node that has the keyboard stays when it leaves the view. When it goes, because it is deleted or far away, the board has the keyboard.
  const isFocusLost = focused !== undefined && !wanted.some(({ id }) => id === focused);
  useLayoutEffect(() => {
    if (!isFocusLost) return;
    setFocused(undefined);
    if (document.activeElement === document.body || camera.focused() !== undefined) camera.focus();
  }, [camera, isFocusLost]);

  useEffect(() => camera.connect((view) => void setViewport(view)), [camera, setViewport]);

  /** The press of a finger or a pen that is for the board: the library does not move the view with it. Two fingers are always for the view. */
  const isOwnPress = useRef(false);
  /** Whether the finger that presses has rested on something: it is no tap any more. */
  const isHeld = useRef(false);
  const cancelPress = useRef<() => void>(undefined);
  useEffect(() => {
    const keep = (event: TouchEvent) => isOwnPress.current && event.touches.length === 1 && event.stopPropagation();
    frame.addEventListener("touchstart", keep, true);
    return () => frame.removeEventListener("touchstart", keep, true);
  }, [frame]);

  /** Where the pointer was pressed, and how far it went from there before a drag began, in the plane: the library forgets that. */
  const pressed = useRef<Point>(undefined);
  const ahead = useRef<Point>({ x: 0, y: 0 });

  function beginDrag(id: string, event: globalThis.MouseEvent | TouchEvent) {
    const at = camera.toPlane(placeOf(event));
    const from = pressed.current ?? at;
    ahead.current = { x: at.x - from.x, y: at.y - from.y };
    board.beginDrag(id);
  }

  function change(changes: NodeChange<BoardNode>[]) {
    const { drag, resize } = board.getUi();
    if (!drag || resize || !board.isDragging) return;
    for (const one of changes) {
      if (one.type !== "position" || one.dragging === undefined || !one.position) continue;
      // A second finger, or the deletion of the node under the pointer, ends a drag without onNodeDragStop.
      if (!one.dragging) {
        endDrag(one.id);
        return;
      }
      const start = drag.from.get(one.id);
      // Somebody deleted it in the meantime.
      if (!start || !graph.nodes.has(one.id)) continue;
      // All that is carried moves as the node under the pointer does.
      board.dragTo({ x: one.position.x - start.x + ahead.current.x, y: one.position.y - start.y + ahead.current.y });
      return;
    }
  }

  function endDrag(id: string) {
    if (!board.getUi().drag) return;
    board.drop();
    if (!board.getUi().selection.has(id)) board.select([id]);
  }

  const endConnection: OnConnectEnd = (event, { fromNode, fromHandle, toNode }) => {
    if (!fromNode) return;
    const at = placeOf(event);
    const point = camera.toPlane(at);
    const isReverse = fromHandle?.type === "target";
    const hit = toNode ? graph.nodes.get(toNode.id) : index.at(point);
    if (!hit || (isSection(hit) && !toNode)) board.set({ menu: { kind: "create", from: fromNode.id, isReverse, point, at } });
    else if (isReverse) board.offer(hit.id, fromNode.id, at);
    else board.offer(fromNode.id, hit.id, at);
  };

  /**
   * A press on the empty plane begins a rectangle that selects, or is a click. On a node that is drawn it begins a drag; on a Section only
   * if that is selected, since the inside of a Section is the plane. A finger moves the view, unless it is on what is selected, or taps put
   * the selection together; one that rests on a node begins that.
   */
  function press(event: PointerEvent) {
    const isTouch = event.pointerType === "touch";
    isOwnPress.current = false;
    isHeld.current = false;
    if (isTouch !== board.getUi().isTouch) board.set({ isTouch });
    if (!event.isPrimary) return cancelPress.current?.();
    // A tap beside what is open only closes it.
    if (isTouch && board.getUi().menu) return;
    const place = placeOf(event.nativeEvent);
    const start = camera.toPlane(place);
    pressed.current = start;
    const target = event.target as Element;
    const { selection, isCollecting } = board.getUi();
    const at = index.at(start);
    const hit = at && !rendered.has(at.id) ? at : undefined;
    const id = target.closest(".react-flow__node")?.getAttribute("data-id") ?? (isPane(target) ? hit?.id : undefined);
    if (isTouch && id !== undefined && !target.closest("input, textarea, button, video")) {
      onHold(event, () => {
        isHeld.current = true;
        board.collect(id);
      });
    }
    if (!isPane(target) || event.button !== 0 || isHand) return;
    const isAlso = isAdding(event) || (isTouch && isCollecting);
    const before = isAlso ? [...selection] : [];
    const isSelected = hit !== undefined && selection.has(hit.id);
    const isGrab = isTouch ? isSelected : !isAlso && (isSelected || !hit || !isSection(hit));
    const grabbed = canChange && hit && !isLocked(hit) && isGrab ? hit : undefined;
    const isOwn = !isTouch || isCollecting || grabbed !== undefined;
    isOwnPress.current = isOwn;
    let isDrag = false;
    const stop = new AbortController();
    const move = (next: globalThis.PointerEvent) => {
      const isStart = !isDrag && Math.hypot(next.clientX - event.clientX, next.clientY - event.clientY) > DRAG_START;
      if (isStart && grabbed) board.beginDrag(grabbed.id);
      isDrag ||= isStart;
      if (!isDrag || !isOwn) return;
      const end = camera.toPlane(placeOf(next));
      if (grabbed) {
        board.dragTo({ x: end.x - start.x, y: end.y - start.y });
        return;
      }
      const box = { x: Math.min(start.x, end.x), y: Math.min(start.y, end.y), width: Math.abs(end.x - start.x), height: Math.abs(end.y - start.y) };
      setMarquee(box);
      const inReach = index.in(box).filter(({ id }) => matching?.has(id) ?? true);
      const ids = [...before, ...enclosed(inReach, box)];
      if (isTouch) board.set({ selection: new Set(ids) });
      else board.select(ids);
    };
    cancelPress.current = () => {
      stop.abort();
      setMarquee(undefined);
      if (isDrag && grabbed) board.escape();
      else if (isDrag && isOwn) board.set({ selection: new Set(before) });
    };
    const end = () => {
      stop.abort();
      setMarquee(undefined);
      board.surface?.focus();
      if (isDrag && grabbed) endDrag(grabbed.id);
      if (isDrag || isHeld.current) return;
      if (hit) board.pick(hit.id, place, isAdding(event));
      else if (board.getUi().connecting !== undefined) board.set({ connecting: undefined });
      else if (!isAlso) board.select([]);
    };
    addEventListener("pointermove", move, { signal: stop.signal });
    addEventListener("pointerup", end, { signal: stop.signal });
    addEventListener("pointercancel", isTouch ? () => stop.abort() : end, { signal: stop.signal });
  }

  function typeOnEdge(event: KeyboardEvent) {
    const { target, key } = event;
    const id = target instanceof Element && target.matches(".react-flow__edge") ? target.getAttribute("data-id") : null;
    if (id === null || !["Enter", " ", "Delete", "Backspace"].includes(key)) return;
    event.preventDefault();
    board.selectLink(id);
    if (!canChange) return;
    if (key === "Delete" || key === "Backspace") {
      board.delete();
      board.surface?.focus();
    } else {
      const { left, top, width, height } = (target as Element).getBoundingClientRect();
      board.set({ menu: { kind: "purpose", connection: id, at: { x: left + width / 2, y: top + height / 2 } } });
    }
  }

  function doubleClick(event: MouseEvent) {
    if (!isPane(event.target)) return;
    const { isTouch } = board.getUi();
    const point = camera.toPlane(placeOf(event.nativeEvent));
    const hit = index.at(point);
    if (!isOverview && canChange && !isTouch) board.create("text", point);
    else if (hit) board.surface?.show([hit.id]);
  }

  return (
    <DetailContext value={seen.detail}>
      {isDrawn && <Dots camera={camera} />}
      <Overview camera={camera} scene={scene} />
      <ReactFlow<BoardNode, BoardEdge>
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        defaultViewport={camera.first}
        minZoom={LEAST_ZOOM}
        maxZoom={MOST_ZOOM}
        tabIndex={0}
        aria-label="Board"
        aria-describedby="board-help"
        ariaLabelConfig={LABELS}
        elementsSelectable={false}
        selectionKeyCode={null}
        multiSelectionKeyCode={null}
        deleteKeyCode={null}
        disableKeyboardA11y
        elevateNodesOnSelect={false}
        zoomOnDoubleClick={false}
        connectOnClick={false}
        connectionRadius={32}
        nodesDraggable={!isHand && canChange}
        nodesConnectable={canChange}
        panOnDrag={isHand ? [0, 1, 2] : [1, 2]}
        panOnScroll={!isHand}
        nodeDragThreshold={DRAG_START}
        attributionPosition="bottom-right"
        // The first turn of a wheel is a start alone.
        onMoveStart={(event, view) => camera.moved(view, Boolean(event))}
        onMove={(event, view) => camera.moved(view, Boolean(event))}
        onMoveEnd={() => camera.keep()}
        onNodesChange={change}
        onNodeClick={(event, { id }) => isHeld.current || board.pick(id, placeOf(event.nativeEvent), isAdding(event))}
        onNodeDoubleClick={(_, { id, data: { node } }) => (canLook([node]) ? lookAt(board, [id]) : node.type === "image" || node.type === "video" || !canChange ? board.surface?.show([id]) : board.edit(id))}
        onNodeContextMenu={(event, { id }) => {
          event.preventDefault();
          // A finger that rests on a node.
          if (board.getUi().isTouch) return;
          if (!board.getUi().selection.has(id)) board.select([id]);
          board.set({ menu: { kind: "selection", at: placeOf(event.nativeEvent) } });
        }}
        onNodeMouseEnter={(_, { id }) => board.hover(id)}
        onNodeMouseLeave={() => board.hover(undefined)}
        // The event is that of the browser, whatever its type says.
        onNodeDragStart={(event, { id }) => beginDrag(id, event as unknown as globalThis.MouseEvent)}
        onNodeDragStop={(_, { id }) => endDrag(id)}
        onEdgeClick={(_, { id }) => board.selectLink(id)}
        onEdgeDoubleClick={({ nativeEvent }, { id }) => canChange && board.set({ menu: { kind: "purpose", connection: id, at: placeOf(nativeEvent) } })}
        onConnectEnd={endConnection}
        onPointerDown={press}
        onPointerMove={({ nativeEvent }) => camera.point(placeOf(nativeEvent))}
        onPointerLeave={() => camera.point(undefined)}
        onDoubleClick={doubleClick}
        onFocus={({ target }) => {
          setFocused(camera.focused());
          const id = target.matches(":focus-visible") ? target.getAttribute("data-id") : null;
          if (id === null || board.keepsSelection || board.getUi().selection.has(id)) return;
          if (target.matches(".react-flow__edge")) board.selectLink(id);
          else if (target.matches(".react-flow__node")) board.select([id]);
        }}
        onBlur={({ relatedTarget }) => relatedTarget && setFocused(undefined)}
        onKeyDown={typeOnEdge}
      >
        {!areDrawn && !drag && <Bracket board={board} graph={graph} selection={selection} />}
      </ReactFlow>
      <Guides board={board} camera={camera} graph={graph} ui={ui} />
      {isDrawn && <SelectionBar board={board} camera={camera} ui={ui} isHidden={marquee !== undefined || ui.look !== undefined} />}
      {isDrawn && <Hints board={board} camera={camera} ui={ui} />}
      {isDrawn && <Minimap camera={camera} graph={graph} index={index} />}
      {canChange && <PromptLayer board={board} camera={camera} canvas={canvas} graph={graph} ui={ui} />}
      {marquee && <div className={styles.marquee} style={camera.toBoard(marquee)} />}
    </DetailContext>
  );
}
