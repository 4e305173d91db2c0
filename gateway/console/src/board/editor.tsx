/** The board of a canvas: with everything that changes it, or without for those who may only read. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { flushSync } from "react-dom";
import { useLocation, useSearch } from "wouter";
import { canvasOf, isAttempt, shownIn } from "../address.ts";
import type { CanvasReview, CanvasSummary } from "../api.ts";
import { count, firstOf } from "../format.ts";
import type { Live } from "../live.ts";
import { Peers } from "../pointers.ts";
import { CancelDialog } from "../screens/cancel.tsx";
import { Connection, Presence, Side } from "../screens/canvas-parts.tsx";
import page from "../screens/canvas.module.css";
import { askingIn } from "../screens/review.tsx";
import { Share, ShareDialog } from "../screens/share.tsx";
import { useSession } from "../session.ts";
import { useBeforeEnd, useDraft, useTitle } from "../ui/hooks.ts";
import { combinationOf, isDialogOpen, isMenuOpen } from "../ui/keys.ts";
import { Boundary, later, laterDialog, loads } from "../ui/later.tsx";
import { Button, Empty, Failure, Icon, type IconName, Waiting } from "../ui/parts.tsx";
import { useIsNarrow } from "../ui/screen.ts";
import { Shell } from "../ui/shell.tsx";
import { UploadList } from "../ui/upload-list.tsx";
import { againAt } from "./attempts.ts";
import { batchesOf } from "./batch.ts";
import { BatchCard } from "./batch-card.tsx";
import { commandOf } from "./bar.ts";
import { Board, type Ui } from "./board.ts";
import { copiedData, copiedFrom, NODES } from "./clipboard.ts";
import { Cursors } from "./cursors.tsx";
import { BoardContext } from "./context.ts";
import { BoardMenu, KeyList, Palette } from "./dialogs.tsx";
import { ASSET, draggedAsset } from "./dragged.ts";
import styles from "./editor.module.css";
import { canLook, lookAt } from "./album.ts";
import { openExport } from "./commands.ts";
import { partOf } from "./export-names.ts";
import { HandoverCard } from "./handover-card.tsx";
import { endedNodes, endings } from "./endings.ts";
import { useEngine } from "./engines.ts";
import { hasMarks } from "./filter.ts";
import { FilterRow, useFilterAddress } from "./filter.tsx";
import { reasonOf } from "./failure.ts";
import { FormatForm } from "./format.tsx";
import { runsAt } from "./gestures.ts";
import { nodesOf } from "./videos.ts";
import { MOST_TEXT } from "./limits.ts";
import { batchOf } from "./making.ts";
import { PhoneRow, TapState } from "./phone.tsx";
import { isOver } from "../work.ts";
import { SlideView } from "./slide.tsx";
import { slidesOf } from "./slides.ts";
import { ActivityLine, Conflicts, Notices, Said, SaveState, Stopped } from "./status.tsx";
import type { Graph } from "../sync/graph.ts";
import type { State } from "../sync/types.ts";
import { closeStage } from "./stage.ts";
import { Surface } from "./surface.tsx";
import { useWorkOf } from "./waiting.tsx";
import { History, Toolbar, ZoomControls } from "./toolbar.tsx";
import { refusalOf } from "../uploads.ts";
import type { Point } from "../view.ts";
import { boardUploads } from "./uploads.ts";

const Present = laterDialog("Present", async () => ({ default: (await import("./present.tsx")).Present }));
loads.add(() => import("./handover.ts"));
const NewElement = laterDialog("Make an Element", async () => ({ default: (await import("./new-element.tsx")).NewElement }));
const StageLayer = later(() => import("./stage.tsx"));
const Panel = later(async () => ({ default: (await import("./panel.tsx")).Panel }), <Waiting label="Loading" />);

interface Props {
  handle: string;
  role: NonNullable<CanvasSummary["accessRole"]>;
  /** Whether the person may change the canvas. */
  canChange: boolean;
  /** Absent until it was read, and if it could not be: then there is an error. */
  review: CanvasReview | undefined;
  error: Error | null;
  live: Live;
  /** The board has been drawn. */
  shown: () => void;
  /** Reads the review again. */
  reload: () => void;
  /** The session ended: the page asks who is signed in. */
  signedOut: () => void;
}

/** How long after the last change the findings are read again, in milliseconds. */
const REVIEW_REST = 1000;
/** How long the first frames of a board may take before the page goes on, in milliseconds. */
const DRAWING = 100;
/** A shorter press of Space opens a picture, in milliseconds. A longer one is for the view. */
const TAP = 250;

const BoardLook = laterDialog("Look", () => import("./looking.tsx"));

export function Editor({ handle, role, canChange: hasRole, review, error, live, shown, reload, signedOut }: Props) {
  const { account, session } = useSession();
  const scopes = session.scopes.join(" ");
  const engine = useEngine(account.id, handle, hasRole);
  const snapshot = useSyncExternalStore(engine.subscribe, engine.getSnapshot);
  // The service may have refused a change before the review shows that the role was withdrawn.
  const canChange = hasRole && snapshot.state !== "read-only";
  const board = useMemo(() => new Board(engine, canChange, handle, scopes.split(" ")), [engine, canChange, handle, scopes]);
  const [peers] = useState(() => new Peers());
  const uploads = useMemo(() => boardUploads(account.id, handle), [account.id, handle]);
  const ui = useSyncExternalStore(board.subscribe, board.getUi);
  const list = useSyncExternalStore(uploads.subscribe, uploads.getList);
  const { graph, revision, state } = snapshot;
  const title = graph?.title ?? review?.canvas.title;
  const nodes = graph?.nodes.size ?? review?.canvas.nodeCount;
  const areMarked = useMemo(() => graph !== undefined && hasMarks(graph), [graph]);
  const isPhone = useIsNarrow();
  const shared = { ...canvasOf(handle), title: title ?? "", accessRole: role };
  useTitle(title ?? "");
  useCurrentBalance(graph);
  useEndings(board, graph, session.scopes.includes("job:manage"));
  useRights(board, canChange);
  useWorkOf(graph);
  useEffect(() => engine.subscribe(() => board.prune()), [engine, board]);
  useBeforeEnd(() => board.endGesture());
  // What was begun before the role was withdrawn is kept, before the engine takes nothing more.
  useLayoutEffect(() => () => board.endGesture(), [board]);

  useEffect(() => {
    if (live.revision !== undefined) engine.follow(live.revision);
  }, [engine, live.revision]);
  useEffect(() => {
    if (live.state === "live") engine.resume();
  }, [engine, live.state]);
  useEffect(() => {
    if (review && review.canvas.revision === engine.getSnapshot().revision) engine.retitled(review.canvas.title);
  }, [engine, review]);

  useFilterAddress(board, ui.filter);
  const search = useSearch();
  const [path, navigate] = useLocation();
  const isOpen = graph !== undefined;
  const showNamed = useEffectEvent((handles: string[]) => {
    const named = nodesOf(board.graph, handles);
    const ids = named.map(({ id }) => id);
    board.select(ids);
    board.surface?.show(ids);
    if (isAttempt(search)) againAt(board, named, session.scopes)?.();
    // A reload keeps the view that a person has moved to since.
    navigate(path, { replace: true });
  });
  useEffect(() => {
    const handles = shownIn(search);
    if (isOpen && handles.length > 0) showNamed(handles);
  }, [isOpen, search]);

  const stopped = useEffectEvent((state: State) => {
    if (state === "signed-out") signedOut();
    if (state === "gone" || state === "read-only") reload();
  });
  useEffect(() => stopped(state), [state]);

  const reviewed = review?.canvas.revision;
  const reread = useEffectEvent(() => reload());
  useEffect(() => {
    if (revision === undefined || reviewed === undefined || revision === reviewed) return;
    const timer = setTimeout(() => reread(), REVIEW_REST);
    return () => clearTimeout(timer);
  }, [revision, reviewed]);
  const drawn = useEffectEvent(() => shown());
  useEffect(() => {
    if (!isOpen) return;
    const timer = setTimeout(() => drawn(), DRAWING);
    return () => clearTimeout(timer);
  }, [isOpen]);

  /** Uploads files that were dropped on the slot at `point`, or pasted or chosen for the selected one. */
  function addFiles(files: File[], point?: Point, isDropped = false) {
    const refused = uploads.addAt(board, files, point, board.slotFor(isDropped ? point : undefined)?.id);
    if (refused.length > 0) board.notify(refusalOf(refused));
  }

  /** When Space was pressed, unless the pointer was since. */
  const tapped = useRef(-Infinity);
  const release = useEffectEvent(() => {
    board.pan(false);
    if (performance.now() - tapped.current < TAP && canLook(board.selected)) lookAt(board);
    tapped.current = -Infinity;
  });
  const type = useEffectEvent((event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    const isTyping = isDialogOpen() || isMenuOpen() || target.matches("input, textarea, select, video, [contenteditable], [role=menu] *");
    // Enter and Space are for the button that has the keyboard.
    const isPressing = target.matches("button, a, summary") && (event.key === "Enter" || event.key === " ");
    // Arrow keys scroll a panel.
    const isScrolling = event.key.startsWith("Arrow") && target.closest("aside") !== null;
    const isPalette = combinationOf(event) === "Mod+K";
    // Until the Stage is there, nothing else takes the key.
    if (ui.stage && event.key === "Escape" && !document.querySelector("[data-on-stage]")) return closeStage(board);
    if (event.defaultPrevented || isPressing || isScrolling || (isTyping && !isPalette) || !graph || ui.stage) return;
    if (event.key === " " && !isTyping && !event.ctrlKey) {
      board.pan(true);
      if (!event.repeat) tapped.current = performance.now();
    }
    // Held, a key that shows something shows it until it is released.
    if (event.repeat && event.code === "KeyQ") return;
    const command = commandOf(event, board);
    // A letter that the text field has missed runs nothing.
    if (!command || (board.isWriting && event.key.length === 1 && !event.ctrlKey && !event.metaKey)) return;
    event.preventDefault();
    command.run(board);
  });
  /** Beside the board, files are dropped on the middle of it. */
  const drop = useEffectEvent((event: DragEvent) => {
    if (event.defaultPrevented || !canChange || isDialogOpen() || !event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    if (event.type === "drop") addFiles([...event.dataTransfer.files]);
  });
  const paste = useEffectEvent((event: ClipboardEvent) => {
    if (!canChange || ui.stage || isDialogOpen() || (event.target as HTMLElement).matches("input, textarea")) return;
    const files = [...(event.clipboardData?.files ?? [])];
    const copied = copiedFrom(event.clipboardData?.getData(NODES) ?? "");
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (copied) board.paste(copied, handle, account.id);
    else if (files.length > 0) addFiles(files, board.surface?.pointer());
    else if (text !== "") {
      const content = firstOf(text, MOST_TEXT);
      board.create("text", board.surface?.pointer(), { metadata: { content } });
      if (content !== text) board.notifyCut("content");
    } else board.notify("Nothing on the clipboard can be pasted here.");
  });
  const copy = useEffectEvent((event: ClipboardEvent) => {
    const isText = (event.target as HTMLElement).matches("input, textarea") || getSelection()?.isCollapsed === false;
    const isCut = event.type === "cut";
    if (isText || ui.stage || board.selected.length === 0 || (isCut && (!canChange || isDialogOpen()))) return;
    event.preventDefault();
    event.clipboardData?.setData(NODES, copiedData(board.graph, board.getUi().selection, handle, engine.real));
    event.clipboardData?.setData("text/plain", board.selected.map(({ title, metadata }) => metadata.content ?? title).join("\n\n"));
    if (isCut) board.cut();
  });
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    addEventListener("keydown", (event) => type(event), { signal });
    addEventListener("keyup", ({ key }) => key === " " && release(), { signal });
    addEventListener("keyup", ({ key }) => key.toLowerCase() === "q" && board.getUi().before !== undefined && board.set({ before: undefined }), { signal });
    addEventListener("pointerdown", () => (tapped.current = -Infinity), { signal, capture: true });
    // Before the window, which refuses what nothing takes.
    for (const type of ["dragover", "drop"] as const) document.addEventListener(type, (event) => drop(event), { signal });
    for (const type of ["copy", "cut"] as const) addEventListener(type, (event) => copy(event), { signal });
    addEventListener("paste", (event) => paste(event), { signal });
    addEventListener(
      "blur",
      () => {
        board.settle();
        board.pan(false);
      },
      { signal },
    );
    return () => stop.abort();
  }, [board]);

  return (
    <BoardContext value={board}>
      <Shell
        isFixed
        header={
          <>
            <Title key={String(canChange)} board={board} title={title} meta={nodes === undefined ? role : `${role} · ${count(nodes, "thing")}`} revision={revision} />
            {canChange && <History board={board} undo={snapshot.undo} redo={snapshot.redo} />}
            <Presence live={live} peers={peers} />
            {canChange && <SaveState board={board} snapshot={snapshot} />}
            <Connection live={live} />
            {graph && graph.nodes.size > 0 && !isPhone && (
              <Button look="quiet" className={styles.export} data-export aria-label="Export" aria-haspopup="menu" aria-keyshortcuts="Shift+E" title="Export (⇧ E)" onClick={() => openExport(board)}>
                <Icon name="export" size={16} />
              </Button>
            )}
            {!isPhone && <Share canvas={shared} />}
          </>
        }
      >
        {graph && ui.filter && <FilterRow board={board} graph={graph} filter={ui.filter} />}
        <div className={page.work}>
          <div
            className={styles.stage}
            data-stage
            onDragOver={(event) => event.preventDefault()}
            onDrop={(event) => {
              event.preventDefault();
              if (!canChange) return;
              const point = board.surface?.toPlane({ x: event.clientX, y: event.clientY });
              const asset = draggedAsset(event.dataTransfer.getData(ASSET));
              if (asset) board.place(asset, point);
              else addFiles([...event.dataTransfer.files], point, true);
            }}
          >
            {graph ? (
              <Surface key={String(canChange)} board={board} graph={graph} ui={ui} canvas={handle} />
            ) : snapshot.problem ? (
              <Failure title="This canvas cannot be opened" error={snapshot.problem} retry={() => engine.resume()} />
            ) : (
              <Waiting label="Opening the canvas" />
            )}
            {graph && <Cursors board={board} graph={graph} canvas={handle} live={live} peers={peers} news={snapshot.news} />}
            <p id="board-help" className="unseen">
              Tab moves through what is in view, Ctrl Space selects several, Ctrl period goes to what can be done with them, arrow keys move the selection, question mark lists all keys. The outline has the same content as a tree.
            </p>
            <p role="status" className="unseen">
              {ui.selection.size > 0 && `${count(ui.selection.size, "thing")} selected${!ui.isCollecting ? "" : ui.isTouch ? ". A tap adds one or takes it away." : ". Tab keeps the selection, Escape ends it."}`}
            </p>
            {graph?.nodes.size === 0 && (
              <div className={styles.hint}>
                <Empty title="This canvas is empty">
                  {canChange && isPhone ? (
                    <p>Add or make something below.</p>
                  ) : canChange ? (
                    <p>
                      Drop or paste images, double-click to write, or press <kbd>?</kbd> for all keys.
                    </p>
                  ) : (
                    <p>What people and agents add to it appears here by itself.</p>
                  )}
                </Empty>
              </div>
            )}
            {graph && (isPhone ? <PhoneRow board={board} ui={ui} onFiles={addFiles} /> : <Toolbar board={board} ui={ui} onFiles={addFiles} />)}
            {!isPhone && <ZoomControls board={board} />}
            {!isPhone && <PanelToggles board={board} panel={ui.panel} isFiltering={ui.filter !== undefined} areMarked={areMarked} findings={review && askingIn(review).length} />}
            <div className={styles.foot}>
              <Stopped board={board} canvas={handle} snapshot={snapshot} again={reload} />
              <div className={styles.cards} role="status" aria-atomic="false">
                <Conflicts board={board} conflicts={snapshot.conflicts} />
                <UploadList uploads={uploads} list={list} dismissed={() => board.surface?.focus()} />
                <HandoverCard board={board} handover={ui.handover} />
                {graph && <BatchCard board={board} graph={graph} />}
              </div>
              <Notices board={board} />
              <Said board={board} />
              <ActivityLine board={board} news={snapshot.news} own={session.label} />
              <TapState board={board} ui={ui} />
            </div>
            {graph && ui.stage && <StageLayer board={board} canvas={handle} stage={ui.stage} ui={ui} />}
          </div>
          {ui.panel && (graph || ui.panel === "findings") && (
            <Side key={ui.panel} title={PANELS[ui.panel].title} close={() => board.closePanel()}>
              <Boundary>
                <Panel name={ui.panel} board={board} canvas={handle} graph={graph} ui={ui} role={role} revision={revision} isSaved={state === "saved"} review={review} error={error} reload={reload} />
              </Boundary>
            </Side>
          )}
        </div>
        {ui.menu && graph && (ui.menu.kind === "format" ? <FormatForm board={board} canvas={handle} at={ui.menu.at} /> : <BoardMenu key={JSON.stringify(ui.menu)} board={board} menu={ui.menu} />)}
        {ui.look && graph && <BoardLook board={board} graph={graph} look={ui.look} close={() => board.set({ look: undefined })} />}
        {ui.dialog === "palette" && graph && <Palette board={board} close={() => closeDialog(board, "palette")} />}
        {ui.dialog === "present" && <Present board={board} slidesOf={slidesOf} partOf={partOf} SlideView={SlideView} close={() => closeDialog(board, "present")} />}
        {ui.dialog === "element" && <NewElement board={board} close={() => closeDialog(board, "element")} />}
        {ui.dialog === "cancel" && <CancelSelected board={board} close={() => closeDialog(board, "cancel")} />}
        {ui.dialog === "keys" && <KeyList board={board} close={() => closeDialog(board, "keys")} />}
        {ui.dialog === "share" && <ShareDialog canvas={shared} close={() => closeDialog(board, "share")} />}
      </Shell>
    </BoardContext>
  );
}

/** Reads the balance again when work on the canvas begins or ends: credit is reserved, and returned. */
function useCurrentBalance(graph: Graph | undefined): void {
  const queries = useQueryClient();
  const active = useMemo(() => [...(graph?.nodes.values() ?? [])].filter(({ metadata }) => metadata.job && !isOver(metadata.job.status)).length, [graph]);
  const counted = useRef(active);
  useEffect(() => {
    if (counted.current === active) return;
    counted.current = active;
    void queries.invalidateQueries({ queryKey: ["balance"] });
  }, [queries, active]);
}

/** Says that the person may change the canvas no more, or may now. If changes were not saved, or were refused, the banner says so instead. */
function useRights(board: Board, canChange: boolean): void {
  const before = useRef(canChange);
  useEffect(() => {
    if (before.current === canChange) return;
    before.current = canChange;
    const { state, waiting, conflicts } = board.engine.getSnapshot();
    if (canChange) board.notify("You can change this canvas now.");
    else if (state !== "read-only" && waiting + conflicts.length === 0) board.notify("You can only read this canvas now.");
  }, [board, canChange]);
}

/** Says which work on the canvas has ended. `mayKnow`: whether this session may read why it failed. */
function useEndings(board: Board, graph: Graph | undefined, mayKnow: boolean): void {
  const seen = useRef(graph);
  useEffect(() => {
    const before = seen.current;
    seen.current = graph;
    if (!before || !graph || before.nodes === graph.nodes) return;
    board.surface?.flash(endedNodes(before, graph).flatMap(({ id, asset }) => (asset === undefined ? [] : id)));
    // What belongs to a batch is said by its card.
    const said = new Set(batchesOf(board).getIds());
    for (const ending of endings(before, graph).filter(({ nodes }) => !nodes.some((node) => said.has(batchOf(node)?.id ?? "")))) board.announce(ending, async (node) => (mayKnow ? reasonOf(node) : undefined));
  }, [board, graph, mayKnow]);
}

/** Asks before the work that fills the selected nodes is canceled. What ends in the meantime is still in the question. */
function CancelSelected({ board, close }: { board: Board; close: () => void }) {
  const [runs] = useState(() => runsAt(board.selected));
  return <CancelDialog runs={runs} hasTargets close={close} canceled={() => {}} />;
}

/** Closes this dialog. Another one may have been opened since, if it was closed by the browser. */
function closeDialog(board: Board, dialog: Ui["dialog"]): void {
  if (board.getUi().dialog === dialog) board.set({ dialog: undefined });
}

/** The panels, in the order of their buttons. */
const PANELS: Record<NonNullable<Ui["panel"]>, { title: string; icon: IconName; isChange?: true; scopes?: readonly string[] }> = {
  findings: { title: "Check", icon: "finding" },
  outline: { title: "Outline", icon: "outline" },
  inspect: { title: "Details", icon: "sliders" },
  make: { title: "Make", icon: "agent", isChange: true, scopes: ["image:generate", "video:generate"] },
  recipes: { title: "Recipes", icon: "recipe", isChange: true },
  assets: { title: "Pictures", icon: "image", isChange: true, scopes: ["asset:read"] },
  runs: { title: "Queue", icon: "clock", isChange: true, scopes: ["job:manage"] },
};

function PanelToggles({ board, panel, findings, isFiltering, areMarked }: { board: Board; panel: Ui["panel"]; findings: number | undefined; isFiltering: boolean; areMarked: boolean }) {
  const toggles = (Object.keys(PANELS) as (keyof typeof PANELS)[]).flatMap((name) => {
    const { title, icon, isChange, scopes } = PANELS[name];
    if (isChange && !(board.canChange && (!scopes || scopes.some((scope) => board.scopes.includes(scope))))) return [];
    const isCheck = name === "findings" && findings !== undefined;
    return (
      <Button key={name} data-panel={name} aria-expanded={panel === name} className={isCheck ? (findings > 0 ? page.found : page.clear) : undefined} onClick={() => board.togglePanel(name)}>
        <Icon name={isCheck && findings === 0 ? "check" : icon} size={16} />
        {isCheck && findings > 0 ? `${title} ${findings}` : title}
      </Button>
    );
  });
  const [check, ...others] = toggles;
  return (
    <div className={page.toggles} data-fades>
      {check}
      {(areMarked || isFiltering) && (
        <Button aria-expanded={isFiltering} aria-keyshortcuts="Shift+F" onClick={() => board.set({ filter: isFiltering ? undefined : {} })}>
          <Icon name="filter" size={16} />
          Filter
        </Button>
      )}
      {others}
    </div>
  );
}

/** The title of the canvas, which a click makes a field. */
function Title({ board, title, meta, revision }: { board: Board; title: string | undefined; meta: string; revision: string | undefined }) {
  const [isEditing, setIsEditing] = useState(false);
  const draft = useDraft(title ?? "", (text, was) => {
    if (text.trim() !== "") board.rename(text.trim(), was);
  });
  const field = useRef<HTMLInputElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    if (isEditing) field.current?.select();
  }, [isEditing]);
  function end(isKept: boolean) {
    if (isKept) draft.end();
    else draft.cancel();
    setIsEditing(false);
  }
  return (
    <div className={styles.names}>
      <h1 className={styles.title}>
        {isEditing ? (
          <input
            ref={field}
            aria-label="Title of the canvas"
            dir="auto"
            maxLength={160}
            value={draft.text}
            onChange={(event) => draft.type(event.target.value)}
            onBlur={() => end(true)}
            onKeyDown={(event) => {
              const { key, nativeEvent } = event;
              if (nativeEvent.isComposing || (key !== "Enter" && key !== "Escape")) return;
              // The button does not hear the key.
              event.preventDefault();
              flushSync(() => end(key === "Enter"));
              button.current?.focus();
            }}
          />
        ) : !board.canChange ? (
          <bdi>{title === undefined ? "Opening…" : title || "Untitled"}</bdi>
        ) : (
          <button ref={button} type="button" dir="auto" title="Rename the canvas" disabled={title === undefined} onClick={() => setIsEditing(true)}>
            {title === undefined ? "Opening…" : title || "Untitled"}
          </button>
        )}
      </h1>
      <p className={styles.meta} data-revision={revision}>
        {meta}
      </p>
    </div>
  );
}
