/** Images and texts as tiles in rows, of which those near the screen are drawn. The whole is one Tab stop, and keys move in it. */
import { type DragEvent, type KeyboardEvent, type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useImage } from "../board/images.ts";
import { useIsNear } from "../ui/hooks.ts";
import { Modal } from "../ui/dialog.tsx";
import { Icon } from "../ui/parts.tsx";
import { Search } from "../ui/search.tsx";
import { type Row, rowsOf, shownRatio, stepOf } from "./rows.ts";
import styles from "./tiles.module.css";

export interface Tile {
  key: string;
  title: string;
  /** The image, if there is one. */
  asset?: string | undefined;
  isVideo?: boolean;
  /** Words in place of an image. */
  words?: string | undefined;
  width?: number;
  height?: number;
  note?: string | undefined;
  /** All that is known, for the pointer. */
  hint?: string;
}

/** Heights of the images of each size, in pixels. */
export const SIZES = { s: 84, m: 150, l: 250 } as const;
export type Size = keyof typeof SIZES;

const GAP = 10;
/** The height of what is below an image, and the distance to the next row. */
const CAPTION = 56;

interface Props<T extends Tile> {
  label: string;
  /** What choosing a tile does, for screen readers. */
  action: string;
  tiles: readonly T[];
  size: Size;
  choose: (tile: T) => void;
  /** With it, several can be chosen: whether one is. */
  isChosen?: ((tile: T) => boolean) | undefined;
  /** No more can be chosen. */
  isFull?: boolean;
  drag?: ((tile: T, event: DragEvent) => void) | undefined;
  isBusy?: boolean;
}

export function Tiles<T extends Tile>({ label, action, tiles, size, choose, isChosen, isFull = false, drag, isBusy = false }: Props<T>) {
  const grid = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  const [current, setCurrent] = useState("");
  const isMoving = useRef(false);
  useLayoutEffect(() => {
    const element = grid.current;
    if (!element) return;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const ratios = useMemo(() => tiles.map(({ words, width = 0, height = 0 }) => (words === undefined ? shownRatio(width, height) : 1.5)), [tiles]);
  const rows = useMemo(() => (width > 0 ? rowsOf(ratios, width, SIZES[size], GAP) : []), [ratios, width, size]);
  const at = Math.max(tiles.findIndex(({ key }) => key === current), 0);
  useEffect(() => {
    if (!isMoving.current) return;
    isMoving.current = false;
    grid.current?.querySelector<HTMLElement>("[tabindex='0']")?.focus();
  });

  function type(event: KeyboardEvent) {
    const next = stepOf(rows, ratios, at, event.key);
    const tile = next === undefined ? undefined : tiles[next];
    if (!tile) return;
    event.preventDefault();
    event.stopPropagation();
    isMoving.current = true;
    setCurrent(tile.key);
  }

  return (
    <div ref={grid} className={styles.frame}>
      {tiles.length > 0 && (
        <div className={styles.grid} role="grid" aria-label={label} aria-rowcount={rows.length} tabIndex={-1} aria-busy={isBusy} onKeyDown={type}>
          {rows.map((row, index) => (
            <RowOf key={row.from} row={row} index={index} isNeeded={index < 2 || (at >= row.from - 1 && at <= row.to)}>
              {() =>
                tiles.slice(row.from, row.to).map((tile, within) => {
                  const wide = Math.floor((ratios[row.from + within] ?? 1) * row.height);
                  const chosen = isChosen?.(tile);
                  return (
                    <div key={tile.key} role="gridcell" className={styles.tile} style={{ width: wide, flexGrow: row.isFull ? 1 : 0 }}>
                      <button
                        type="button"
                        tabIndex={row.from + within === at ? 0 : -1}
                        title={tile.hint ?? tile.title}
                        aria-pressed={chosen}
                        aria-disabled={(isFull && chosen === false) || undefined}
                        draggable={drag !== undefined}
                        onDragStart={drag && ((event) => drag(tile, event))}
                        onFocus={() => setCurrent(tile.key)}
                        onClick={() => (isFull && chosen === false ? undefined : choose(tile))}
                      >
                        {action !== "" && <span className="unseen">{action} </span>}
                        <Face tile={tile} width={wide} height={row.height} />
                        <span className={styles.title} dir="auto">
                          {tile.title}
                        </span>
                        <span className={styles.note}>{tile.note}</span>
                        {chosen === true && (
                          <span className={styles.tick}>
                            <Icon name="check" size={14} />
                          </span>
                        )}
                      </button>
                    </div>
                  );
                })
              }
            </RowOf>
          ))}
        </div>
      )}
    </div>
  );
}

/** A row as high as its tiles, whether they are drawn or not. */
function RowOf({ row, index, isNeeded, children }: { row: Row; index: number; isNeeded: boolean; children: () => ReactNode }) {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const isDrawn = useIsNear(element) || isNeeded;
  return (
    <div ref={setElement} className={styles.row} style={{ height: row.height + CAPTION }} {...(isDrawn && { role: "row", "aria-rowindex": index + 1 })}>
      {isDrawn && children()}
    </div>
  );
}

function Face({ tile: { asset, words, isVideo }, width, height }: { tile: Tile; width: number; height: number }) {
  const { url, hasFailed } = useImage(asset, Math.max(width, height) * devicePixelRatio);
  const isGone = asset === undefined || hasFailed;
  return (
    <span className={styles.face} style={{ height }} data-state={words === undefined ? (url ? "drawn" : isGone ? "failed" : "waiting") : "words"}>
      {words !== undefined ? <span dir="auto">{words}</span> : url ? <img src={url} alt="" aria-hidden="true" decoding="async" draggable={false} /> : isGone && <Icon name={isVideo ? "video" : "image"} size={22} />}
      {isVideo && url && (
        <span className={styles.play}>
          <Icon name="play" size={13} />
        </span>
      )}
    </span>
  );
}

interface ChoiceProps<T extends Tile> {
  title: string;
  tiles: readonly T[];
  choose: (tile: T) => void;
  close: () => void;
}

/** A dialog that chooses one of a few things that are known: images or texts of a board. */
export function TileDialog<T extends Tile>({ title, tiles, choose, close }: ChoiceProps<T>) {
  const [wanted, setWanted] = useState("");
  const needle = wanted.trim().toLocaleLowerCase();
  const found = useMemo(() => tiles.filter(({ title, words = "" }) => `${title} ${words}`.toLocaleLowerCase().includes(needle)), [tiles, needle]);
  return (
    <Modal title={title} isWide close={close}>
      {tiles.length > 8 && <Search isSmall label="Search" value={wanted} set={setWanted} />}
      <Tiles
        label={title}
        action=""
        tiles={found}
        size="m"
        choose={(tile) => {
          close();
          choose(tile);
        }}
      />
      {found.length === 0 && <p className={styles.nothing}>{tiles.length === 0 ? "There is nothing to choose on this board yet." : "Nothing matches."}</p>}
    </Modal>
  );
}
