/** One picture or video, large: to look at it closely, to go through those beside it, and to do something with it. */
import { type MouseEvent, type ReactNode, useEffect, useEffectEvent, useState } from "react";
import { playerName } from "../alt.ts";
import { fileUrl } from "../api.ts";
import { factsOf } from "../assets.ts";
import { useAsset, useImage } from "../board/images.ts";
import { percent } from "../format.ts";
import { Dialog } from "../ui/dialog.tsx";
import { combinationOf, keyNames } from "../ui/keys.ts";
import { usePanZoom, ZOOM_STEP } from "../ui/pan-zoom.ts";
import { Button, Icon, type IconName } from "../ui/parts.tsx";
import type { Size } from "../view.ts";
import styles from "./look.module.css";
import { type Picture, useAltOf } from "./picture.ts";
import { isTooLarge, Sheet, Small } from "./sheet.tsx";

/** Something that is done with what is shown: by a key, and by a button if it has an icon. */
export interface Deed {
  label: string;
  icon?: IconName;
  keys: readonly string[];
  /** Of a button that says whether something is so. */
  isPressed?: boolean;
  run: () => void;
}

/** What stays empty around a whole picture, in pixels. */
const MARGIN = { width: 16, height: 16 };
/** How many pictures the strip shows on either side. */
const BESIDE = 16;

interface Props {
  picture: Picture;
  /** Those that the arrow keys go through, itself among them. */
  siblings: Picture[];
  /** What it was made from, and what was made from it. */
  source?: Picture | undefined;
  made?: Picture | undefined;
  go: (id: string) => void;
  /** Shows it beside another one. */
  compare: (id: string) => void;
  deeds: Deed[];
  /** What people think of it, as buttons, and in words. */
  marks?: ReactNode;
  said?: string | undefined;
  /** What is known of it. */
  about: ReactNode;
  /** Whether that is shown from the beginning. */
  isAboutOpen?: boolean;
  close: () => void;
  /** What is said meanwhile. */
  children?: ReactNode;
}

/** Takes the keys while the dialog that `frame` is in is the topmost one, wherever the keyboard is. What takes a key itself keeps it. */
export function useKeys(frame: HTMLElement | null, keys: (event: KeyboardEvent) => (() => void) | undefined): void {
  const find = useEffectEvent(keys);
  useEffect(() => {
    const listener = (event: KeyboardEvent) => {
      if (!frame || [...document.querySelectorAll("dialog[open]")].at(-1) !== frame.closest("dialog")) return;
      const target = event.target as HTMLElement;
      const isOwn = target.matches("button, a, summary") ? event.key === "Enter" || event.key === " " : target.matches("video, input") && (event.key === " " || event.key.startsWith("Arrow"));
      const run = isOwn || event.defaultPrevented ? undefined : find(event);
      if (!run) return;
      event.preventDefault();
      run();
    };
    document.addEventListener("keydown", listener);
    return () => document.removeEventListener("keydown", listener);
  }, [frame]);
}

const titled = (label: string, keys: readonly string[]): string => (keys[0] === undefined ? label : `${label} (${keyNames(keys[0]).join(" ")})`);

/** A button that leaves the keyboard where it is when it is clicked: keys go on to be those of the dialog. */
export function Tool({ label, icon, keys, isPressed, run, children }: Omit<Deed, "icon"> & { icon?: IconName | undefined; children?: ReactNode }) {
  return (
    <Button look="quiet" className={styles.tool} aria-label={label} title={titled(label, keys)} {...(isPressed !== undefined && { "aria-pressed": isPressed })} onMouseDown={(event) => event.preventDefault()} onClick={run}>
      {icon && <Icon name={icon} />}
      {children}
    </Button>
  );
}

/** The part of a plane that is shown: its frame, keys and scale. While `of` stays the same, so does the part. */
export function useViewing({ width, height }: Size, of = "") {
  const { setFrame, view, isMoved, zoomBy, zoomTo, showAll, pointOf, handlers } = usePanZoom({ x: 0, y: 0, width, height }, { isWheelZoom: true, margin: MARGIN, of: `${of} ${width} ${height}` });
  const showPixels = () => (isMoved ? showAll() : zoomTo(1 / devicePixelRatio));
  const closer = () => zoomBy(ZOOM_STEP);
  const farther = () => zoomBy(1 / ZOOM_STEP);
  const keys: Record<string, () => void> = { "+": closer, "=": closer, "-": farther, Z: showPixels };
  const frame = {
    ...handlers,
    ref: setFrame,
    "data-first": true,
    tabIndex: 0,
    role: "group",
    onDoubleClick: (event: MouseEvent) => zoomBy(event.shiftKey ? 0.5 : 2, pointOf(event)),
  };
  return { view, isMoved, closer, farther, showPixels, keys, frame, scale: percent((view?.scale ?? 1) * devicePixelRatio) };
}

export function Look({ picture, siblings, source, made, go, compare, deeds, marks, said, about, isAboutOpen = false, close, children }: Props) {
  const { id, asset, title, isVideo } = picture;
  const { data } = useAsset(asset);
  const alt = useAltOf(picture);
  const [hasAbout, setHasAbout] = useState(isAboutOpen);
  const plane = data && data.width > 0 && !isVideo ? { width: data.width, height: data.height } : undefined;
  // Variants of one size are seen at the same place, one after the other.
  const { view, isMoved, closer, farther, showPixels, keys: zoomKeys, frame, scale } = useViewing(plane ?? { width: 1, height: 1 });
  const [element, setElement] = useState<HTMLElement | null>(null);
  const at = siblings.findIndex((one) => one.id === id);
  const [before, after] = [siblings[at - 1], siblings[at + 1]];
  const step = (to: Picture | undefined) => to && go(to.id);

  const keys: Record<string, () => void> = {
    ...zoomKeys,
    ArrowLeft: () => step(before),
    ArrowRight: () => step(after),
    ArrowUp: () => step(source),
    ArrowDown: () => step(made),
    I: () => setHasAbout(!hasAbout),
    " ": close,
  };
  useKeys(element, (event) => {
    const combination = combinationOf(event);
    return deeds.find((deed) => deed.keys.includes(combination))?.run ?? keys[combination];
  });

  const place = siblings.length > 1 && at >= 0 ? `${at + 1} of ${siblings.length}` : undefined;
  return (
    <Dialog label={title || "Untitled"} className={styles.dialog} close={close}>
      <header className={styles.head}>
        <div className={styles.names}>
          <h2 dir="auto">{title || "Untitled"}</h2>
          <p>{[place, data && factsOf(data), said].filter(Boolean).join(" · ")}</p>
        </div>
        {marks}
        <div className={styles.tools}>
          {deeds.map((deed) => deed.icon && <Tool key={deed.label} {...deed} />)}
          <Tool label="About it" icon="info" keys={["I"]} isPressed={hasAbout} run={() => setHasAbout(!hasAbout)} />
          <Tool label="Close" icon="close" keys={["Escape"]} run={close} />
        </div>
      </header>
      <p role="status" className="unseen">
        {[title || "Untitled", place, said].filter(Boolean).join(", ")}
      </p>
      <div ref={setElement} className={styles.body}>
        {children && <div className={styles.notices}>{children}</div>}
        <div className={styles.frame} aria-label="Picture" aria-describedby="look-keys" {...frame}>
          {isVideo ? (
            // oxlint-disable-next-line jsx-a11y/media-has-caption -- the service makes no captions
            <video key={asset} src={fileUrl(asset)} controls autoPlay preload="auto" playsInline aria-label={playerName(alt)} />
          ) : (
            <Sheet picture={picture} known={data} plane={plane} view={view} />
          )}
          {plane && isTooLarge(plane) && view && view.scale * plane.width > 2048 && <p className={styles.hint}>Shown with 2048 pixels across: it is too large to be shown in full here.</p>}
        </div>
        {[before, after].map((one) => one && !one.isVideo && <Ahead key={one.id} asset={one.asset} pixels={(plane?.width ?? 1024) * (view?.scale ?? 1) * devicePixelRatio} />)}
        <Sides before={before} after={after} source={source} made={made} go={go} />
        {!isVideo && (
          <div className={styles.zoom} role="group" aria-label="Zoom">
            <Tool label="Zoom out" icon="minus" keys={["-"]} run={farther} />
            <Tool label={`${scale}: ${isMoved ? "show it whole" : "pixel by pixel"}`} keys={["Z"]} run={showPixels}>
              {scale}
            </Tool>
            <Tool label="Zoom in" icon="plus" keys={["+"]} run={closer} />
          </div>
        )}
        {hasAbout && (
          <section className={styles.about} aria-label="About it" tabIndex={0}>
            {about}
          </section>
        )}
      </div>
      <p id="look-keys" className="unseen">
        Arrow left and right go to the others, up to what it was made from, down to what was made from it. Plus and minus zoom, Z shows it pixel by pixel, I tells more, Escape closes.
      </p>
      {siblings.length > 1 && <Strip siblings={siblings} at={at} go={go} compare={compare} />}
    </Dialog>
  );
}

/** Loads the picture that comes next, before it comes. */
function Ahead({ asset, pixels }: { asset: string; pixels: number }) {
  useImage(asset, Math.min(pixels, 2048));
  return null;
}

function Sides({ before, after, source, made, go }: Pick<Props, "source" | "made" | "go"> & { before: Picture | undefined; after: Picture | undefined }) {
  const sides = [
    ["before", "Previous", "ArrowLeft", before],
    ["after", "Next", "ArrowRight", after],
    ["source", "What it was made from", "ArrowUp", source],
    ["made", "What was made from it", "ArrowDown", made],
  ] as const;
  return sides.map(
    ([side, label, key, to]) =>
      to && (
        <div key={side} className={styles.side} data-side={side}>
          <Tool label={label} icon="chevron" keys={[key]} run={() => go(to.id)} />
        </div>
      ),
  );
}

/** A ref for what is in the middle of a list. */
const toMiddle = (element: HTMLElement | null): void => element?.scrollIntoView({ block: "nearest", inline: "center" });

function Strip({ siblings, at, go, compare }: { siblings: Picture[]; at: number } & Pick<Props, "go" | "compare">) {
  const start = Math.max(at - BESIDE, 0);
  return (
    <nav className={styles.strip} aria-label="Pictures beside it">
      {siblings.slice(start, at + BESIDE + 1).map((one, index) => (
        <button
          key={one.id}
          ref={start + index === at ? toMiddle : undefined}
          type="button"
          tabIndex={start + index === at ? 0 : -1}
          aria-label={one.title || "Untitled"}
          aria-current={start + index === at || undefined}
          title={`${one.title || "Untitled"}. With Alt: beside the one that is shown.`}
          onMouseDown={(event) => event.preventDefault()}
          onClick={(event) => (event.altKey && start + index !== at && !one.isVideo && !siblings[at]?.isVideo ? compare(one.id) : go(one.id))}
        >
          <Small asset={one.asset} isVideo={one.isVideo} />
        </button>
      ))}
    </nav>
  );
}
