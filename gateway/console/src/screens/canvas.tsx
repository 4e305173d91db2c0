import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ComponentProps, useEffect, useEffectEvent, useRef, useState } from "react";
import { canvasOf } from "../address.ts";
import { api, type CanvasReview, type Drawing } from "../api.ts";
import { Problem } from "../errors.ts";
import { ago, count } from "../format.ts";
import { type Live, useLive } from "../live.ts";
import { expire } from "../prefetch.ts";
import { useSession } from "../session.ts";
import { useClock, useLoaded, useTitle } from "../ui/hooks.ts";
import { loads } from "../ui/later.tsx";
import { Button, Empty, Failure, Icon, messageOf, Waiting } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import { Shell } from "../ui/shell.tsx";
import { Board } from "./board.tsx";
import styles from "./canvas.module.css";
import { Connection, Presence, Side } from "./canvas-parts.tsx";
import { MissingCanvas } from "./missing.tsx";
import { askingIn, Review } from "./review.tsx";
import { Share } from "./share.tsx";

const isMissing = (error: unknown) => error instanceof Problem && (error.status === 404 || error.status === 400);

const reviewOf = (handle: string) => ({
  queryKey: ["canvas", handle, "review"],
  queryFn: ({ signal }: { signal: AbortSignal }) => api.review(handle, signal),
});

const drawingOf = (handle: string) => ({
  queryKey: ["canvas", handle, "drawing"],
  queryFn: ({ signal }: { signal: AbortSignal }) => api.drawing(handle, signal),
  refetchInterval: ({ state }: { state: { data: Drawing | undefined } }) => (state.data?.isComplete === false ? 2000 : false),
});

type EditorModule = typeof import("../board/editor.tsx");

let editor: EditorModule | undefined;
export const loadEditor = async (): Promise<EditorModule> => (editor ??= await import("../board/editor.tsx"));
loads.add(loadEditor);

/** Loads the board and its content at once, although it may be the review that tells whether the person may change the canvas. */
function useHeadStart(handle: string, canChange: boolean): void {
  const { account, session } = useSession();
  const isLikely = canChange || session.scopes.includes("asset:read");
  const isKnown = useEffectEvent(() => canChange);
  useEffect(() => {
    if (!isLikely) return;
    let isLeft = false;
    let release = () => {};
    // What cannot be fetched is fetched again with the board.
    const ignore = () => {};
    loadEditor().catch(ignore);
    import("../board/engines.ts").then(({ hold }) => {
      if (!isLeft) release = hold(account.id, handle, isKnown());
    }, ignore);
    return () => {
      isLeft = true;
      release();
    };
  }, [account.id, handle, isLikely]);
}

/** A canvas: the board, or a drawing for a session that may read no images. Both follow the changes of others. */
export function Canvas({ handle }: { handle: string }) {
  const { account, session } = useSession();
  const canWrite = session.scopes.includes("canvas:write");
  // An owner needs no review to begin. It is read when the board is shown, because it takes the service longer than the canvas does.
  const isOwn = canvasOf(handle).ownerUid === account.id && canWrite;
  const [isShown, setIsShown] = useState(!isOwn);
  const { data, error, refetch } = useQuery({ ...reviewOf(handle), enabled: isShown });
  // What was read before a canvas was gone is still in `data`.
  const isFollowed = !isMissing(error) && (data !== undefined || (isOwn && isShown));
  const live = useLive(isFollowed ? handle : undefined, async () => !isMissing((await refetch()).error));
  const role = live.role ?? (isOwn ? "owner" : data?.canvas.accessRole);
  const canChange = role !== undefined && role !== "viewer" && canWrite;
  useHeadStart(handle, canChange);
  if (isMissing(error)) return <MissingCanvas handle={handle} />;
  if (canChange || (role !== undefined && session.scopes.includes("asset:read"))) {
    return <OnBoard handle={handle} role={role} canChange={canChange} review={data} error={error} live={live} shown={() => setIsShown(true)} reload={refetch} />;
  }
  if (data) return <Readable handle={handle} review={data} live={live} />;
  if (!error) return <Opening />;
  return (
    <Shell isFixed>
      <Failure title="This canvas cannot be opened" error={error} retry={refetch} />
    </Shell>
  );
}

/** Reads again what shows another revision than the canvas has now. */
function useFollowing(live: Live, shown: string | undefined, query: { isFetching: boolean; refetch: () => unknown }): void {
  const tried = useRef<string>(undefined);
  const { isFetching, refetch } = query;
  useEffect(() => {
    // One request at a time, however fast the revisions follow each other. The newest is read last, and none is read twice.
    if (isFetching || live.revision === undefined || live.revision === tried.current || live.revision === shown) return;
    tried.current = live.revision;
    void refetch();
  }, [isFetching, live.revision, shown, refetch]);
}

type Panel = "findings" | "outline";

interface OpenedProps {
  handle: string;
  review: CanvasReview;
  live: Live;
}

type EditorProps = ComponentProps<EditorModule["Editor"]>;

function OnBoard(props: Omit<EditorProps, "signedOut">) {
  const loaded = useLoaded(loadEditor, editor);
  const queries = useQueryClient();
  // What was changed here shows in the list at once.
  useEffect(() => () => void queries.invalidateQueries({ queryKey: ["canvases"] }), [queries]);
  if (!loaded) return <Opening />;
  return <loaded.Editor key={props.handle} {...props} signedOut={() => (expire(), queries.setQueryData(["session"], null))} />;
}

function Opening() {
  useTitle("");
  return (
    <Shell isFixed>
      <Waiting label="Opening the canvas" />
    </Shell>
  );
}

function Readable({ handle, review, live }: OpenedProps) {
  const { canvas } = review;
  useTitle(canvas.title);
  const drawing = useQuery(drawingOf(handle));
  useFollowing(live, canvas.revision, useQuery(reviewOf(handle)));
  useFollowing(live, drawing.data?.revision, drawing);
  const [panel, setPanel] = useState<Panel>();
  const toggles = useRef<HTMLDivElement>(null);
  const close = () => {
    toggles.current?.querySelector<HTMLElement>("[aria-expanded=true]")?.focus();
    setPanel(undefined);
  };
  const toggle = (name: Panel) => setPanel(panel === name ? undefined : name);
  const findings = askingIn(review);

  return (
    <Shell isFixed header={<Header review={review} live={live} />}>
      <div className={styles.work}>
        <div className={styles.stage}>
          {canvas.nodeCount === 0 ? (
            <Empty title="This canvas is empty">
              <p className={parts.text}>What people and agents add to it appears here by itself.</p>
            </Empty>
          ) : drawing.data ? (
            <Board drawing={drawing.data} label={`Drawing of ${canvas.title || "the canvas"}, ${count(canvas.nodeCount, "thing")}`} />
          ) : drawing.error ? (
            <Failure title="The drawing cannot be loaded" error={drawing.error} retry={drawing.refetch} />
          ) : (
            <Waiting label="Drawing the canvas" />
          )}
          {drawing.isRefetchError && <p className={styles.stale}>The newest drawing could not be loaded: {messageOf(drawing.error)}</p>}
        </div>
        <div ref={toggles} className={styles.toggles}>
          <Button
            aria-expanded={panel === "findings"}
            className={findings.length > 0 ? styles.found : styles.clear}
            onClick={() => toggle("findings")}
          >
            <Icon name={findings.length > 0 ? "finding" : "check"} size={16} />
            {findings.length > 0 ? `Check ${findings.length}` : "Check"}
          </Button>
          <Button aria-expanded={panel === "outline"} onClick={() => toggle("outline")}>
            <Icon name="outline" size={16} />
            Outline
          </Button>
        </div>
        {panel === "findings" && (
          <Side title="Check" close={close}>
            <Review review={review} />
          </Side>
        )}
        {panel === "outline" && (
          <Side title="Outline" close={close}>
            <Outline handle={handle} revision={canvas.revision} />
          </Side>
        )}
      </div>
    </Shell>
  );
}

function Header({ review: { canvas }, live }: { review: CanvasReview; live: Live }) {
  useClock();
  return (
    <>
      <div className={styles.names}>
        <h1 className={styles.title} dir="auto">
          {canvas.title || "Untitled"}
        </h1>
        <p className={styles.meta}>
          <span className={styles.role}>{canvas.accessRole}</span>
          <span>{count(canvas.nodeCount, "thing")}</span>
          <span>
            changed <time dateTime={canvas.updatedAt}>{ago(canvas.updatedAt)}</time>
          </span>
          <span className={styles.revision} title={`Revision ${canvas.revision}`}>
            revision <code data-revision={canvas.revision}>{canvas.revision.slice(0, 8)}</code>
          </span>
        </p>
      </div>
      <Presence live={live} />
      <Connection live={live} />
      <Share canvas={canvas} />
    </>
  );
}

/** The canvas as text: what a screen reader reads in place of the drawing. */
function Outline({ handle, revision }: { handle: string; revision: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["canvas", handle, "outline", revision],
    queryFn: ({ signal }) => api.outline(handle, signal),
    placeholderData: (previous) => previous,
  });
  if (data !== undefined) {
    return (
      <pre className={styles.outline} dir="auto" tabIndex={0} aria-label="Outline of the canvas" role="region">
        {data}
      </pre>
    );
  }
  return error ? <Failure title="The outline cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the outline" />;
}
