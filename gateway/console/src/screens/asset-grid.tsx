/** Assets as a grid of images and posters, read page by page and loaded when they come near the screen. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { type DragEvent, type KeyboardEvent, type ReactNode, useState } from "react";
import { type Asset, assets, factsOf, type Listed, type Place, sizeOf, type Where } from "../assets.ts";
import { useImage } from "../board/images.ts";
import { count } from "../format.ts";
import { useIsNear, useNextPages } from "../ui/hooks.ts";
import { Empty, Failure, Icon } from "../ui/parts.tsx";
import styles from "./asset-grid.module.css";

/** The query of the list, which all that changes assets invalidates. */
export const ASSETS = "assets";

interface Props {
  where: Where;
  /** What is listed: images, or videos, too. */
  kind?: "image" | "all";
  /** Part of the name. */
  wanted: string;
  isSmall?: boolean;
  /** What choosing an asset does, for screen readers. */
  action: string;
  /** `listed`: all that are shown, in their order. */
  choose: (asset: Asset, listed: Asset[]) => void;
  drag?: ((asset: Asset, event: DragEvent) => void) | undefined;
  /** What stands in place of a list without assets. */
  empty: ReactNode;
}

export function AssetGrid({ where, kind = "image", wanted, isSmall = false, action, choose, drag, empty }: Props) {
  const list = useInfiniteQuery({
    queryKey: [ASSETS, where, kind],
    queryFn: ({ pageParam, signal }) => assets.list(where, kind, pageParam, signal),
    initialPageParam: (where.startsWith("canvas:") ? { canvas: where } : {}) as Place,
    getNextPageParam: ({ next }) => next,
  });
  const all = [...new Map(list.data?.pages.flatMap(({ items }) => items).map((item) => [item.asset.handle, item])).values()];
  const needle = wanted.trim().toLocaleLowerCase();
  const found = all.filter(({ asset: { name } }) => name.toLocaleLowerCase().includes(needle));

  // The service has no search: with one, all pages are read; without, the next when the end of the list is near.
  const setEnd = useNextPages(list, needle !== "");
  const { hasNextPage, isFetching, fetchNextPage } = list;

  if (list.isLoadingError) return <Failure title="The assets cannot be loaded" error={list.error} retry={list.refetch} />;
  if (list.isSuccess && all.length === 0 && !hasNextPage) return empty;
  return (
    <>
      <p className="unseen" role="status">
        {list.isPending ? "Loading assets" : needle !== "" && !isFetching && `${count(found.length, "asset")} found`}
      </p>
      <ul className={isSmall ? styles.small : styles.grid} onKeyDown={moveInGrid} aria-busy={list.isPending}>
        {list.isPending
          ? Array.from({ length: isSmall ? 6 : 12 }, (_, index) => (
              // oxlint-disable-next-line react/no-array-index-key -- the placeholders are all the same
              <li key={index} className={styles.ghost} aria-hidden="true" />
            ))
          : found.map((item) => <Tile key={item.asset.handle} item={item} isSmall={isSmall} action={action} choose={(asset) => choose(asset, found.map((one) => one.asset))} drag={drag} />)}
      </ul>
      {list.isSuccess && found.length === 0 && !hasNextPage && <Empty title="No asset has this name" />}
      {list.isFetchNextPageError ? (
        <Failure title="The rest cannot be loaded" error={list.error} retry={fetchNextPage} />
      ) : (
        <div ref={setEnd} className={styles.end}>
          {hasNextPage && (needle === "" ? "Loading more…" : `Searched ${count(all.length, "asset")}…`)}
        </div>
      )}
    </>
  );
}

function Tile({ item: { asset, canvas }, isSmall, action, choose, drag }: { item: Listed; isSmall: boolean; choose: (asset: Asset) => void } & Pick<Props, "action" | "drag">) {
  const { name } = asset;
  return (
    <li className={styles.tile}>
      <button type="button" draggable={drag !== undefined} onDragStart={drag && ((event) => drag(asset, event))} onClick={() => choose(asset)}>
        <span className="unseen">{action} </span>
        <Thumbnail asset={asset} alt={name} pixels={isSmall ? 128 : 240} />
        <span className={styles.name} dir="auto" title={name}>
          {name}
        </span>
        <span className={styles.facts}>{isSmall ? sizeOf(asset) : factsOf(asset)}</span>
        {canvas !== undefined && !isSmall && (
          <span className={styles.facts}>
            in <bdi>{canvas || "Untitled"}</bdi>
          </span>
        )}
      </button>
    </li>
  );
}

/** A small image of an asset, or of the poster of a video, once it is near the screen. */
export function Thumbnail({ asset, alt, pixels }: { asset: Pick<Asset, "handle"> & Partial<Pick<Asset, "kind" | "previewUrl">>; alt: string; pixels: number }) {
  const isVideo = asset.kind === "video";
  const hasImage = !isVideo || asset.previewUrl !== undefined;
  const [frame, setFrame] = useState<HTMLElement | null>(null);
  const isNear = useIsNear(frame);
  const { url, hasFailed } = useImage(isNear && hasImage ? asset.handle : undefined, pixels * devicePixelRatio);
  return (
    <span ref={setFrame} className={styles.frame} data-state={url ? "drawn" : hasFailed || !hasImage ? "failed" : "waiting"}>
      {url ? (
        <img src={url} alt={alt} decoding="async" draggable={false} />
      ) : (
        (hasFailed || !hasImage) && (
          <>
            <Icon name={isVideo ? "video" : "image"} size={22} />
            <span>No preview</span>
          </>
        )
      )}
    </span>
  );
}

/** Arrow keys move among the buttons of a grid. */
function moveInGrid(event: KeyboardEvent<HTMLElement>): void {
  const all = [...event.currentTarget.querySelectorAll("button")];
  const at = all.indexOf(document.activeElement as HTMLButtonElement);
  if (at < 0) return;
  const columns = all.findIndex(({ offsetTop }) => offsetTop > (all[0]?.offsetTop ?? 0));
  const row = columns < 0 ? all.length : columns;
  const steps: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + row, ArrowUp: at - row, Home: 0, End: all.length - 1 };
  const next = all[steps[event.key] ?? -1];
  if (!next) return;
  event.preventDefault();
  event.stopPropagation();
  next.focus();
}
