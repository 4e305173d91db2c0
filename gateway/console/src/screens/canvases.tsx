import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { Link } from "wouter";
import { canvasPath } from "../address.ts";
import { api, type CanvasSummary } from "../api.ts";
import { Problem } from "../errors.ts";
import { ago, count } from "../format.ts";
import { useRunEvents } from "../live.ts";
import { useAddress, useClock, useIsDark, useIsNear, useNextPages, useObjectUrl, usePages, useTitle } from "../ui/hooks.ts";
import { useSession } from "../session.ts";
import { later, laterDialog } from "../ui/later.tsx";
import { Button, Empty, Failure, Icon, Notice } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import { Filters, Search } from "../ui/search.tsx";
import { Shell } from "../ui/shell.tsx";
import { work } from "../work.ts";
import styles from "./canvases.module.css";
import page from "./list.module.css";
import { ShareDialog } from "./share.tsx";

const loadGallery = () => import("./gallery.tsx");
const Gallery = laterDialog("New canvas", async () => ({ default: (await loadGallery()).Gallery }));
const Beginning = later(async () => ({ default: (await loadGallery()).Beginning }));
const DeleteCanvas = laterDialog("Delete", async () => ({ default: (await import("./delete-canvas.tsx")).DeleteCanvas }));

/** How long a change of a run waits for others before the work is read again, in milliseconds. */
const REST = 400;
const NO_WORK: ReadonlyMap<string, number> = new Map();

const FILTERS = {
  all: { label: "All", has: () => true },
  owned: { label: "Owned", has: (canvas: CanvasSummary) => canvas.accessRole === "owner" },
  shared: { label: "Shared", has: (canvas: CanvasSummary) => canvas.accessRole !== "owner" },
  agent: { label: "Agent", has: (canvas: CanvasSummary) => canvas.canvasType === "agent" },
} as const;
type Filter = keyof typeof FILTERS;

const FILTER_NAMES = (Object.keys(FILTERS) as Filter[]).map((key) => [key, FILTERS[key].label] as const);

const isFilter = (text: string | null): text is Filter => text !== null && Object.hasOwn(FILTERS, text);

export function Canvases() {
  useTitle("Canvases");
  useClock();
  const { params, set, reset } = useAddress();
  const shown = params.get("show");
  const filter = isFilter(shown) ? shown : "all";
  const wanted = params.get("q") ?? "";
  const isFiltered = filter !== "all" || wanted.trim() !== "";

  const list = usePages(["canvases"], api.canvases, {
    // The first page stays current by itself; further ones when the window is visited again.
    refetchInterval: ({ state }) => (state.data?.pages.length === 1 ? 15_000 : false),
  });
  // A canvas that changes while pages are read can be on two of them.
  const canvases = [...new Map(list.data?.pages.flatMap(({ canvases }) => canvases).map((canvas) => [canvas.handle, canvas])).values()];
  const needle = wanted.trim().toLocaleLowerCase();
  const found = canvases.filter((canvas) => FILTERS[filter].has(canvas) && canvas.title.toLocaleLowerCase().includes(needle));

  // The service has no search: with a filter, all pages are read; without one, the next when the end of the list is near.
  const setEnd = useNextPages(list, isFiltered);
  const { hasNextPage, isFetching, fetchNextPage } = list;

  const active = useActiveWork();
  const isEmpty = list.isSuccess && canvases.length === 0;
  return (
    <Shell>
      <div className={page.page}>
        <div className={page.head}>
          <h1>Canvases</h1>
          {!isEmpty && (
            <div className={page.tools}>
              <Search label="Search by title" value={wanted} set={(value) => set("q", value)} />
              <Filters names={FILTER_NAMES} value={filter} set={(name) => set("show", name === "all" ? "" : name)} />
              <NewCanvas />
            </div>
          )}
        </div>
        <p className="unseen" role="status">
          {list.isSuccess && !isFetching && isFiltered && `${count(found.length, "canvas", "canvases")} found`}
        </p>
        {list.isPending && <Skeleton />}
        {list.isLoadingError && <Failure title="The canvases cannot be loaded" error={list.error} retry={list.refetch} />}
        {isEmpty && <First />}
        {list.data && !isEmpty && (
          <>
            <ul className={styles.grid}>
              {found.map((canvas) => (
                <Card key={canvas.handle} canvas={canvas} active={active.get(canvas.handle) ?? 0} />
              ))}
            </ul>
            {found.length === 0 && !hasNextPage && (
              <Empty title="No canvas matches">
                <Button onClick={reset}>Show all canvases</Button>
              </Empty>
            )}
            {list.isFetchNextPageError ? (
              <Failure title="The rest cannot be loaded" error={list.error} retry={fetchNextPage} />
            ) : (
              <div ref={setEnd} className={page.end} role="status">
                {hasNextPage && (isFiltered ? `Searched ${count(canvases.length, "canvas", "canvases")}…` : "Loading more…")}
              </div>
            )}
          </>
        )}
      </div>
    </Shell>
  );
}

/** Opens what a new canvas can begin with. */
function NewCanvas() {
  const { session } = useSession();
  const [isOpen, setIsOpen] = useState(false);
  if (!session.scopes.includes("canvas:write")) return null;
  return (
    <>
      <Button look="primary" aria-haspopup="dialog" onClick={() => setIsOpen(true)}>
        <Icon name="plus" size={16} />
        New canvas
      </Button>
      {isOpen && <Gallery close={() => setIsOpen(false)} />}
    </>
  );
}

/** How much of the account's work is under way on each canvas. */
function useActiveWork(): ReadonlyMap<string, number> {
  const queries = useQueryClient();
  const isAllowed = useSession().session.scopes.includes("job:manage");
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useRunEvents(isAllowed, () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void queries.invalidateQueries({ queryKey: ["work", "active"] });
    }, REST);
  });
  const { data = NO_WORK } = useQuery({ queryKey: ["work", "active"], queryFn: ({ signal }) => work.active(signal), enabled: isAllowed });
  return data;
}

function Card({ canvas, active }: { canvas: CanvasSummary; active: number }) {
  const { session } = useSession();
  const [isRenaming, setIsRenaming] = useState(false);
  const pencil = useRef<HTMLButtonElement>(null);
  const isShared = canvas.accessRole !== "owner";
  const mayRename = canvas.accessRole !== "viewer" && session.scopes.includes("canvas:write");
  const name = canvas.title || "Untitled";
  function end(isByKey: boolean) {
    flushSync(() => setIsRenaming(false));
    if (isByKey) pencil.current?.focus();
  }
  return (
    <li className={styles.item}>
      <Link href={canvasPath(canvas)} className={styles.card}>
        <Thumbnail canvas={canvas} />
        <div className={styles.text}>
          <h2 className={styles.title} dir="auto">
            {name}
          </h2>
          <p className={styles.meta}>
            <span>{count(canvas.nodeCount, "thing")}</span>
            <time dateTime={canvas.updatedAt}>{ago(canvas.updatedAt)}</time>
            {active > 0 && (
              <span className={styles.working}>
                <span className={styles.spinner} />
                {count(active, "run")} under way
              </span>
            )}
          </p>
          {(isShared || canvas.canvasType === "agent") && (
            <p className={styles.tags}>
              {canvas.canvasType === "agent" && <span className={styles.agent}>Agent</span>}
              {isShared && <span>Shared, {canvas.accessRole}</span>}
            </p>
          )}
        </div>
      </Link>
      {isRenaming ? (
        <Rename canvas={canvas} end={end} />
      ) : (
        <div className={styles.buttons}>
          {mayRename && (
            <Button ref={pencil} aria-label={`Rename ${name}`} title="Rename" onClick={() => setIsRenaming(true)}>
              <Icon name="edit" size={16} />
            </Button>
          )}
          {!isShared && session.kind === "full" && <OwnerButtons canvas={canvas} />}
        </div>
      )}
    </li>
  );
}

/** The title of a canvas as a field over it, which Enter applies, and leaving it. */
function Rename({ canvas, end }: { canvas: CanvasSummary; end: (isByKey: boolean) => void }) {
  const queries = useQueryClient();
  const field = useRef<HTMLInputElement>(null);
  const [title, setTitle] = useState(canvas.title);
  const [error, setError] = useState<unknown>();
  const isSending = useRef(false);
  useEffect(() => field.current?.select(), []);
  async function apply(isByKey: boolean) {
    const wanted = title.trim();
    if (isSending.current) return;
    if (wanted === "" || wanted === canvas.title) return end(isByKey);
    isSending.current = true;
    try {
      await api.renameCanvas(canvas, wanted);
      await queries.invalidateQueries({ queryKey: ["canvases"] });
      end(isByKey);
    } catch (error) {
      isSending.current = false;
      setError(error);
    }
  }
  return (
    <div className={styles.rename}>
      <input
        ref={field}
        aria-label="Title of the canvas"
        dir="auto"
        maxLength={160}
        value={title}
        onChange={({ target }) => setTitle(target.value)}
        onBlur={() => void apply(false)}
        onKeyDown={({ key, nativeEvent }) => {
          if (nativeEvent.isComposing) return;
          if (key === "Enter") void apply(true);
          if (key !== "Escape") return;
          // Some browsers say that a field is left when it is removed.
          isSending.current = true;
          end(true);
        }}
      />
      {error !== undefined && <Notice error={error} />}
    </div>
  );
}

/** What only the owner of a canvas may do. */
function OwnerButtons({ canvas }: { canvas: CanvasSummary }) {
  const [asked, setAsked] = useState<"share" | "delete">();
  const name = canvas.title || "Untitled";
  const close = () => setAsked(undefined);
  return (
    <>
      <Button aria-label={`Share ${name}`} title="Share" onClick={() => setAsked("share")}>
        <Icon name="share" size={16} />
      </Button>
      <Button aria-label={`Delete ${name}`} title="Delete" onClick={() => setAsked("delete")}>
        <Icon name="trash" size={16} />
      </Button>
      {asked === "share" && <ShareDialog canvas={canvas} close={close} />}
      {asked === "delete" && <DeleteCanvas canvas={canvas} close={close} />}
    </>
  );
}

/** The drawing of a canvas, once the card is near the screen. */
function Thumbnail({ canvas }: { canvas: CanvasSummary }) {
  const [frame, setFrame] = useState<HTMLElement | null>(null);
  const isNear = useIsNear(frame);
  const isEmpty = canvas.nodeCount === 0;
  const isDark = useIsDark();
  const { data, isError } = useQuery({
    queryKey: ["thumbnail", canvas.handle, canvas.revision, isDark],
    queryFn: ({ signal }) => api.thumbnail(canvas.handle, isDark, signal),
    enabled: isNear && !isEmpty,
    staleTime: Infinity,
    placeholderData: keepPreviousData,
    retry: (failures, error) => failures < 5 && error instanceof Problem && error.isTemporary,
    refetchInterval: ({ state }) => (state.data?.isComplete === false && state.dataUpdateCount < 6 ? 5000 : false),
  });
  const url = useObjectUrl(data?.image);
  return (
    <span ref={setFrame} className={styles.frame} data-state={isEmpty ? "empty" : url ? "drawn" : isError ? "failed" : "waiting"}>
      {url ? (
        <img src={url} alt="" aria-hidden="true" decoding="async" />
      ) : isEmpty ? (
        <span>Empty</span>
      ) : (
        isError && (
          <>
            <Icon name="image" size={22} />
            <span>No preview</span>
          </>
        )
      )}
    </span>
  );
}

function Skeleton() {
  return (
    <div role="status">
      <span className="unseen">Loading canvases</span>
      <ul className={styles.grid} aria-hidden="true">
        {Array.from({ length: 8 }, (_, index) => (
          // oxlint-disable-next-line react/no-array-index-key -- the placeholders are all the same
          <li key={index} className={styles.ghost}>
            <span className={styles.frame} data-state="waiting" />
            <span className={styles.bar} />
            <span className={styles.bar} />
          </li>
        ))}
      </ul>
    </div>
  );
}

/** An account without canvases. */
function First() {
  const { session } = useSession();
  return (
    <div className={styles.first}>
      <h2>No canvases yet</h2>
      <p className={parts.text}>
        Make one, or let agents and programs do so through the API. Those that people share with you appear here, too.
      </p>
      {session.scopes.includes("canvas:write") && <Beginning />}
    </div>
  );
}
