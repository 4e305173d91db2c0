/** The images of an account and of a canvas: found, filtered and chosen, on their page, beside the board, and in dialogs. */
import { keepPreviousData, useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { type DragEvent, type ReactNode, useMemo, useRef, useState } from "react";
import { type Asset, factsOf, sizeOf } from "../assets.ts";
import { type Element, elements, sourceOf, typeName } from "../elements/calls.ts";
import { ago, count } from "../format.ts";
import { CanvasFilter } from "../screens/canvas-filter.tsx";
import { useSession } from "../session.ts";
import { Modal } from "../ui/dialog.tsx";
import { FileInput } from "../ui/file-input.tsx";
import { useNextPages, useSettled } from "../ui/hooks.ts";
import { Button, Empty, Failure, Icon, Notice, Waiting } from "../ui/parts.tsx";
import { Choice, Filters, Search } from "../ui/search.tsx";
import { isEditable, isOwned } from "./canvases.ts";
import { ASSETS, type Filter, type Listed, pageOf, sinceOf, type Sort, TIMES, type Where } from "./listing.ts";
import { useModelNames } from "./models.ts";
import styles from "./pictures.module.css";
import { type Size, SIZES, type Tile, Tiles } from "./tiles.tsx";
import { Unanswered } from "./unanswered.tsx";
import { upload } from "./upload.ts";

/** How long nothing was typed before it is searched for, in milliseconds. */
const REST = 250;
const SORTS: Record<Sort, string> = { new: "Newest first", old: "Oldest first", name: "By name", size: "Largest first" };
const KEPT_SIZE = "canvas.pictures";
const FAVORITE = "favorite";

/** Where the filters are kept: in the address of a page, or for as long as a dialog is open. */
export interface Kept {
  params: URLSearchParams;
  set: (name: string, value: string | undefined) => void;
}

function useKept(): Kept {
  const [params, setParams] = useState(() => new URLSearchParams());
  const set = (name: string, value: string | undefined) =>
    setParams((before) => {
      const after = new URLSearchParams(before);
      if (value === undefined || value === "") after.delete(name);
      else after.set(name, value);
      return after;
    });
  return { params, set };
}

type Tab = "board" | "mine" | "elements";
const TABS: Record<Tab, string> = { board: "This board", mine: "Mine", elements: "Elements" };

interface Props {
  /** Where images come from: a board, everything of the account, or the first of them that the person looks at. */
  source: { canvas?: string | undefined; isBoardAlone?: boolean; isOwn?: boolean; kind?: Filter["kind"] };
  /** With it, several are chosen: which are, and how many can be. */
  many?: { chosen: readonly string[]; most: number } | undefined;
  /** `listed`: all that are shown, in their order. */
  choose: (asset: Asset, listed: Asset[]) => void;
  /** With it, Elements can be chosen, too. */
  chooseElement?: ((element: Element) => void) | undefined;
  /** What choosing one does, for screen readers. */
  action?: string;
  /** The tab to begin with. */
  first?: Tab;
  kept?: Kept;
  drag?: ((asset: Asset, event: DragEvent) => void) | undefined;
  /** In a panel there is less room. */
  isSmall?: boolean;
  /** A page has its own way to upload. */
  canUpload?: boolean;
  /** What stands in place of a list without images. */
  empty?: ReactNode;
}

export function Pictures({ source: { canvas, isBoardAlone = false, isOwn = false, kind = "image" }, many, choose, chooseElement, action = "", first, kept, drag, isSmall = false, canUpload = true, empty }: Props) {
  const { scopes } = useSession().session;
  const queries = useQueryClient();
  const own = useKept();
  const { params, set } = kept ?? own;
  const [size, setSize] = useState<Size>(() => keptSize(isSmall));
  const [uploaded, setUploaded] = useState<{ error?: unknown; isBusy?: boolean }>({});
  const mayUpload = canUpload && (scopes.includes("image:generate") || scopes.includes("video:generate"));

  const tabs = (["board", "mine", "elements"] as const).filter((one) => (one === "board" ? canvas !== undefined && canvas !== "" : one === "mine" ? !isBoardAlone : chooseElement && scopes.includes("element:read")));
  const wantedTab = params.get("from") ?? first;
  const tab = tabs.find((one) => one === wantedTab) ?? tabs[0] ?? "mine";
  const value = (name: string) => params.get(name) ?? "";
  const place = value("canvas");
  const where: Where = tab === "board" ? (canvas as Where) : place === "" ? "all" : place === "none" ? "none" : `canvas:${place.replace(/^canvas:/, "")}`;
  const q = useSettled(value("q").trim(), REST);
  const [time, model, tag] = [value("when"), value("model"), value("tag")];
  const sort = Object.hasOwn(SORTS, value("sort")) ? (value("sort") as Sort) : "new";
  const isFiltered = [q, time, model, tag].some((one) => one !== "");

  function resize(next: Size) {
    setSize(next);
    if (!isSmall) localStorage.setItem(KEPT_SIZE, next);
  }

  async function add(file: File | undefined) {
    if (!file) return;
    setUploaded({ isBusy: true });
    try {
      const asset = await upload(file);
      void queries.invalidateQueries({ queryKey: [ASSETS] });
      set("from", "mine");
      choose(asset, [asset]);
      setUploaded({});
    } catch (error) {
      setUploaded({ error });
    }
  }

  const select = (label: string, name: string, all: string, choices: readonly (readonly [string, string])[]) => (
    <Choice label={label} all={all} choices={choices} value={value(name)} set={(next) => set(name, next || undefined)} />
  );

  return (
    <div className={isSmall ? styles.small : styles.pictures}>
      <div className={styles.tools}>
        {tabs.length > 1 && <Filters label="From" names={tabs.map((one) => [one, TABS[one]] as const)} value={tab} set={(next) => set("from", next)} />}
        <Search isSmall className={styles.search ?? ""} label="Search by title, name or prompt" value={value("q")} set={(text) => set("q", text)} />
        {mayUpload && <Upload isBusy={uploaded.isBusy === true} isFull={many !== undefined && many.chosen.length >= many.most} add={(file) => void add(file)} />}
      </div>
      {tab !== "elements" && (
        <div className={styles.filters}>
          {select("When", "when", "Any time", Object.entries(TIMES).map(([key, [label]]) => [key, label] as const))}
          <Models select={select} />
          {tab === "mine" && (
            <CanvasFilter all="Everywhere" value={place} set={(next) => set("canvas", next || undefined)} first={[["none", "In no canvas"]]} {...(!kept && { isOffered: isOwn ? isOwned : isEditable })} />
          )}
          <Button look="quiet" aria-pressed={tag === FAVORITE} title="Favorites alone" aria-label="Favorites alone" onClick={() => set("tag", tag === FAVORITE ? undefined : FAVORITE)}>
            <Icon name="heart" size={16} />
          </Button>
          {select("Order", "sort", SORTS.new, Object.entries(SORTS).filter(([key]) => key !== "new"))}
          {!isSmall && <Filters label="Size" names={(Object.keys(SIZES) as Size[]).map((one) => [one, one.toUpperCase()] as const)} value={size} set={resize} />}
        </div>
      )}
      {many && (
        <p className={styles.hint} role="status">
          {many.chosen.length} of {many.most} chosen
        </p>
      )}
      <Unanswered />
      {uploaded.error !== undefined && <Notice error={uploaded.error} />}
      {tab === "elements" && chooseElement ? (
        <ElementTiles wanted={q} size={size} choose={chooseElement} />
      ) : (
        <AssetTiles
          where={where}
          filter={{ kind, sort, ...(q !== "" && { q }), ...(model !== "" && { model }), ...(tag !== "" && { tag }), ...sinceIn(time) }}
          isFiltered={isFiltered}
          clear={() => ["q", "when", "model", "tag"].forEach((name) => set(name, undefined))}
          {...{ size, many, action, choose, drag, empty }}
        />
      )}
    </div>
  );
}

const sinceIn = (time: string) => {
  const since = sinceOf(time);
  return since === undefined ? {} : { since };
};

function keptSize(isSmall: boolean): Size {
  const kept = isSmall ? "s" : localStorage.getItem(KEPT_SIZE);
  return kept !== null && Object.hasOwn(SIZES, kept) ? (kept as Size) : "m";
}

function Models({ select }: { select: (label: string, name: string, all: string, choices: readonly (readonly [string, string])[]) => ReactNode }) {
  const names = useModelNames();
  return names.size === 0 ? null : select("Made by", "model", "Any model", [...names]);
}

function Upload({ isBusy, isFull, add }: { isBusy: boolean; isFull: boolean; add: (file: File | undefined) => void }) {
  const files = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button isBusy={isBusy} disabled={isFull} onClick={() => files.current?.click()}>
        <Icon name="upload" size={16} />
        {isBusy ? "Uploading…" : "Upload"}
      </Button>
      <FileInput ref={files} onFiles={([file]) => add(file)} />
    </>
  );
}

interface AssetTilesProps extends Pick<Props, "many" | "choose" | "drag" | "empty"> {
  where: Where;
  filter: Filter;
  isFiltered: boolean;
  clear: () => void;
  size: Size;
  action: string;
}

type AssetTile = Tile & { listed: Listed };

function tileOf(listed: Listed, models: ReadonlyMap<string, string>): AssetTile {
  const { asset, canvas } = listed;
  const { handle, name, kind, width, height, createdAt, previewUrl, model = "" } = asset;
  const maker = models.get(model) ?? model;
  const title = asset.title || name;
  const facts = [title, title === name ? "" : name, factsOf(asset), maker && `made by ${maker}`, canvas === undefined ? "" : `in ${canvas}`];
  const isVideo = kind === "video";
  return {
    key: handle,
    title,
    asset: isVideo && previewUrl === undefined ? undefined : handle,
    isVideo,
    width,
    height,
    note: [ago(createdAt), maker, sizeOf(asset)].filter(Boolean).join(" · "),
    hint: facts.filter(Boolean).join("\n"),
    listed,
  };
}

function AssetTiles({ where, filter, isFiltered, clear, size, many, action, choose, drag, empty }: AssetTilesProps) {
  const list = useInfiniteQuery({
    queryKey: [ASSETS, where, filter],
    queryFn: ({ pageParam, signal }) => pageOf(where, filter, pageParam, signal),
    initialPageParam: undefined as Parameters<typeof pageOf>[2],
    getNextPageParam: ({ rest }) => (rest.length > 0 ? rest : undefined),
    placeholderData: keepPreviousData,
  });
  const setEnd = useNextPages(list);
  const { hasNextPage, isFetching, isPlaceholderData, fetchNextPage } = list;
  const pages = list.data?.pages;
  const models = useModelNames();
  const tiles = useMemo(() => [...new Map(pages?.flatMap(({ items }) => items).map((item) => [item.asset.handle, tileOf(item, models)])).values()], [pages, models]);
  if (list.isLoadingError) return <Failure title="The images cannot be loaded" error={list.error} retry={list.refetch} />;
  const isOver = list.isSuccess && !isPlaceholderData && tiles.length === 0 && !hasNextPage;
  return (
    <>
      <p className="unseen" role="status">
        {list.isPending ? "Loading the images" : isFiltered && !isFetching && `${count(tiles.length, "image")}${hasNextPage ? " and more" : ""} found`}
      </p>
      {list.isPending && <Waiting label="Loading the images" />}
      {isOver && !isFiltered && (empty ?? <p className={styles.nothing}>There are no images here yet.</p>)}
      {isOver && isFiltered && (
        <Empty title="No image matches">
          <Button onClick={clear}>Show all</Button>
        </Empty>
      )}
      <Tiles
        label="Images"
        action={action}
        tiles={tiles}
        size={size}
        choose={({ listed }) => choose(listed.asset, tiles.map((one) => one.listed.asset))}
        isChosen={many && (({ key }) => many.chosen.includes(key))}
        isFull={many !== undefined && many.chosen.length >= many.most}
        drag={drag && (({ listed }, event) => drag(listed.asset, event))}
        isBusy={list.isPending || isPlaceholderData}
      />
      {list.isFetchNextPageError ? (
        <Failure title="The rest cannot be loaded" error={list.error} retry={fetchNextPage} />
      ) : (
        <div ref={setEnd} className={styles.end}>
          {hasNextPage && "Loading more…"}
        </div>
      )}
    </>
  );
}

function ElementTiles({ wanted, size, choose }: { wanted: string; size: Size; choose: (element: Element) => void }) {
  const { data, error, refetch } = useQuery({ queryKey: ["elements", "choices", wanted], queryFn: ({ signal }) => elements.list("active", wanted, undefined, signal), placeholderData: keepPreviousData });
  const tiles = useMemo(
    () =>
      data?.elements.map((element) => {
        const { id, name, type, version, ownerUid, sourceAssetIds, guidelines } = element;
        const [image] = sourceAssetIds;
        return { key: id, title: name, note: `${typeName(type)} · v${version}`, width: 1, height: 1, ...(image === undefined ? { words: guidelines ?? "" } : { asset: sourceOf(ownerUid, image) }), element };
      }) ?? [],
    [data],
  );
  if (error && !data) return <Failure title="The Elements cannot be loaded" error={error} retry={refetch} />;
  if (!data) return <Waiting label="Loading the Elements" />;
  if (tiles.length === 0) return <p className={styles.nothing}>{wanted === "" ? "There are no Elements yet." : "No Element matches."}</p>;
  return <Tiles label="Elements" action="" tiles={tiles} size={size} choose={({ element }) => choose(element)} />;
}

interface DialogProps extends Pick<Props, "source" | "many" | "choose" | "chooseElement" | "first"> {
  title: string;
  close: () => void;
}

/** A dialog that chooses images. One that chooses a single one closes with it. */
export function PictureDialog({ title, close, many, choose, chooseElement, ...rest }: DialogProps) {
  const once = <T extends unknown[],>(take: (...one: T) => void) => (...one: T) => {
    take(...one);
    if (!many) close();
  };
  return (
    <Modal title={title} isWide close={close}>
      <Pictures {...rest} many={many} choose={once(choose)} chooseElement={chooseElement && once(chooseElement)} />
      {many && (
        <p className={styles.done}>
          <Button look="primary" onClick={close}>
            Done
          </Button>
        </p>
      )}
    </Modal>
  );
}
