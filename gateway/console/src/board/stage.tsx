/** The Stage: the picture of a node, large over the board, with a tool on it and what the tool has as fields below it. */
import { useQuery } from "@tanstack/react-query";
import { type CSSProperties, useEffect, useEffectEvent, useLayoutEffect, useMemo, useRef, useState } from "react";
import { api } from "../api.ts";
import { formatOf } from "../assets.ts";
import { bytes, percent } from "../format.ts";
import { combinationOf, isDialogOpen } from "../ui/keys.ts";
import { usePanZoom, ZOOM_STEP } from "../ui/pan-zoom.ts";
import { Button, Icon } from "../ui/parts.tsx";
import type { Point } from "../view.ts";
import type { Board, Ui } from "./board.ts";
import { arrowed, CropPicture, CropTools, nameOf } from "./crop.tsx";
import { ColorsPicture, ColorsTools } from "./colors-tool.tsx";
import type { Grab } from "./grab.ts";
import { assetQuery, useImage } from "./images.ts";
import { nudgedOverlay } from "./laying.ts";
import { MaskPicture, MaskTools } from "./mask.tsx";
import { shareOf } from "./masking.ts";
import { ResultPicture, ResultTools } from "./result.tsx";
import { OverlayPicture, OverlayTools } from "./overlay.tsx";
import { StagePrompt } from "./prompt.tsx";
import { pictureOf, ratioOf } from "./shapes.ts";
import { closeStage, keepStage, redone, refusalOf, sizeMade, SLUGS, type Stage, undone, uprightSize, withBrush, withdrawn, withSidesSwapped } from "./stage.ts";
import { applyStage } from "./stage-run.ts";
import styles from "./stage.module.css";
import { nudgedText, TextPicture, TextTools } from "./write.tsx";

/** What stays empty around the picture, in pixels. */
const MARGIN = { width: 28, height: 28 };
const NO_SIZE = { width: 1, height: 1 };
/** How long after the last change the rectangle is read out, in milliseconds. */
const REST = 500;
const GLIDE = { duration: 220, easing: "cubic-bezier(0.2, 0, 0, 1)" };
const ARROWS: Record<string, Point> = { ArrowLeft: { x: -1, y: 0 }, ArrowRight: { x: 1, y: 0 }, ArrowUp: { x: 0, y: -1 }, ArrowDown: { x: 0, y: 1 } };
const NAMES = { crop: "Crop and turn", text: "Text on the image", colors: "Colors", overlay: "Overlay", size: "Size", format: "Format", mask: "Mask" } as const;
const ZOOMS: Record<string, number> = { "+": ZOOM_STEP, "=": ZOOM_STEP, "-": 1 / ZOOM_STEP };
/** What the keys of the mask do to its brush. */
const BRUSHES: Record<string, (brush: Stage["brush"]) => Partial<Stage["brush"]>> = {
  X: ({ kind }) => ({ kind: kind === "brush" ? "eraser" : "brush" }),
  ",": ({ width }) => ({ width: width - 1 }),
  ".": ({ width }) => ({ width: width + 1 }),
  "[": ({ width }) => ({ width: width - 1 }),
  "]": ({ width }) => ({ width: width + 1 }),
};

interface Props {
  board: Board;
  canvas: string;
  stage: Stage;
  ui: Ui;
}

export default function StageLayer({ board, canvas, stage, ui }: Props) {
  const isThere = stage.asset !== "";
  const { data: asset, isError } = useQuery({ queryKey: ["asset", stage.asset], queryFn: ({ signal }) => api.asset(stage.asset, signal), staleTime: Infinity, enabled: isThere });
  const { data: actions } = useQuery({ queryKey: ["actions", "image"], queryFn: ({ signal }) => api.actions("image", signal), staleTime: Infinity });
  const { data: over } = useQuery({ ...assetQuery(stage.second?.asset ?? ""), enabled: stage.second !== undefined });
  const { url } = useImage(isThere ? stage.asset : undefined, 2048);
  const [root, setRoot] = useState<HTMLElement | null>(null);
  const grabRef = useRef<Grab>(undefined);
  const [isBefore, setIsBefore] = useState(false);
  const slug = SLUGS[stage.tool];
  const action = actions?.find((one) => one.slug === slug);
  const isResult = stage.tool === "size" || stage.tool === "format";
  const upright = asset && (isResult && !isBefore ? sizeMade(stage, asset) : uprightSize(asset, stage.turn));
  const { setFrame, screen, view, isMoved, zoomBy, showAll, handlers } = usePanZoom({ x: 0, y: 0, ...(upright ?? NO_SIZE) }, { isWheelZoom: true, margin: MARGIN, most: Infinity, isTool: true, of: stage.id });
  const scale = upright && view?.scale;
  /** How far a person has moved the picture out of the middle. */
  const shift = upright && view && screen && { x: view.x - (screen.width - upright.width * view.scale) / 2, y: view.y - (screen.height - upright.height * view.scale) / 2 };
  const refusal = asset ? refusalOf(stage, asset, board.canChange) : undefined;
  const isReady = asset !== undefined && scale !== undefined && (slug === undefined || action !== undefined);
  const node = board.graph.nodes.get(stage.id);

  // The board, the tools and the buttons at its edges are behind it.
  useLayoutEffect(() => {
    const others = [...(root?.parentElement?.children ?? [])].filter((one) => one !== root);
    for (const one of others) one.toggleAttribute("inert", true);
    return () => others.forEach((one) => one.toggleAttribute("inert", false));
  }, [root]);

  useLayoutEffect(() => {
    if (isReady) (root?.querySelector<HTMLElement>("[data-first]") ?? root?.querySelector<HTMLElement>("input, select"))?.focus({ preventScroll: true });
  }, [isReady, root]);

  // The board can go before it is closed: the role is withdrawn, or the page is left for another one.
  useEffect(() => keepStage(stage), [stage]);

  // The picture comes from where it is on the board.
  const glide = useEffectEvent(() => {
    const picture = root?.querySelector<HTMLElement>(`.${styles.view}`);
    if (!picture || !node || !board.surface || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const [from, end] = [board.surface.toScreen(node.position), board.surface.toScreen({ x: node.position.x + pictureOf(node).width, y: node.position.y })];
    const { left, top, width } = picture.getBoundingClientRect();
    picture.animate([{ transformOrigin: "0 0", transform: `translate(${from.x - left}px, ${from.y - top}px) scale(${(end.x - from.x) / Math.max(width, 1)})` }, { transformOrigin: "0 0", transform: "none" }], GLIDE);
  });
  useEffect(() => {
    if (isReady) glide();
  }, [isReady]);

  const apply = () => {
    if (stage.tool === "mask") root?.querySelector("form")?.requestSubmit();
    else if (asset && actions) void applyStage(board, canvas, actions, asset);
  };

  /** Takes back the drag that is under way. False if there is none. */
  function dropDrag(): boolean {
    const { current } = grabRef;
    current?.drop();
    if (current) board.set({ stage: withdrawn(stage, current.gesture) });
    return current !== undefined;
  }

  const type = useEffectEvent((event: KeyboardEvent) => {
    const target = event.target as HTMLElement;
    if (event.defaultPrevented || isDialogOpen() || target.closest("aside, [role=menu]")) return;
    const combination = combinationOf(event);
    const isTyping = target.matches("textarea, input:not([type=range], [type=radio], [type=color])");
    const by = ARROWS[event.key];
    const set = (next: Stage) => board.set({ stage: next });
    if (combination === "Escape") {
      if (!dropDrag()) closeStage(board);
    } else if (stage.tool === "mask" && isTyping) return;
    else if (combination === "Enter" && !event.isComposing && !target.matches("button, summary, select")) apply();
    else if (combination === "Mod+Z") set(undone(stage));
    else if (combination === "Mod+Shift+Z" || combination === "Mod+Y") set(redone(stage));
    else if (isTyping || target.matches("select, [type=range], [type=radio]") || !asset || scale === undefined) return;
    else if (by && !event.ctrlKey && !event.metaKey) {
      const step = event.shiftKey ? 10 : 1;
      const way = { x: by.x * step, y: by.y * step };
      if (stage.tool === "crop") set(arrowed(stage, way, event.altKey, asset));
      else if (stage.tool === "text") set(nudgedText(stage, way, asset, scale));
      else if (stage.tool === "overlay" && over && action) set(nudgedOverlay(stage, action, way, over, asset));
    } else if (combination === "X" && stage.tool === "crop") set(withSidesSwapped(stage, uprightSize(asset, stage.turn)));
    else if (combination === "Q") setIsBefore(true);
    else if (ZOOMS[combination] !== undefined) zoomBy(ZOOMS[combination]);
    else if (combination === "0") showAll();
    else if (BRUSHES[combination] && stage.tool === "mask") set(withBrush(stage, BRUSHES[combination](stage.brush)));
    else return;
    event.preventDefault();
  });
  useEffect(() => {
    const stop = new AbortController();
    addEventListener("keydown", (event) => type(event), { signal: stop.signal });
    addEventListener("keyup", ({ code, key }) => (code === "KeyQ" || key.toUpperCase() === "Q") && setIsBefore(false), { signal: stop.signal });
    return () => stop.abort();
  }, []);

  const facts = asset && `${asset.width} × ${asset.height} px · ${ratioOf(asset)} · ${bytes(asset.bytes)} ${formatOf(asset.mimeType)}`;
  const made = asset && sizeMade(stage, asset);
  const share = useMemo(() => (asset ? shareOf(stage.marks, asset) : 0), [stage.marks, asset]);
  return (
    <section ref={setRoot} className={styles.stage} aria-label={`${NAMES[stage.tool]}: ${node?.title || "Image"}`} tabIndex={-1} data-on-stage={stage.tool} data-before={isBefore || undefined}>
      <div
        ref={setFrame}
        className={styles.area}
        style={shift && ({ "--x": `${shift.x}px`, "--y": `${shift.y}px` } as CSSProperties)}
        {...handlers}
        onPointerDown={(event) => {
          // Two fingers zoom: what the first one has begun is taken back.
          if (!event.isPrimary) dropDrag();
          handlers.onPointerDown(event);
        }}
      >
        {isReady && stage.tool === "crop" && <CropPicture board={board} stage={stage} size={asset} scale={scale} url={url} grabRef={grabRef} />}
        {isReady && action && stage.tool === "text" && <TextPicture board={board} stage={stage} action={action} size={asset} scale={scale} url={url} grabRef={grabRef} />}
        {isReady && action && stage.tool === "colors" && <ColorsPicture stage={stage} action={action} size={asset} scale={scale} url={url} isBefore={isBefore} />}
        {isReady && action && stage.tool === "overlay" && <OverlayPicture board={board} stage={stage} second={stage.second} action={action} size={asset} scale={scale} url={url} grabRef={grabRef} />}
        {isReady && action && isResult && <ResultPicture board={board} stage={stage} action={action} size={asset} scale={scale} url={url} grabRef={grabRef} isBefore={isBefore} />}
        {isReady && stage.tool === "mask" && <MaskPicture board={board} stage={stage} size={asset} scale={scale} url={url} grabRef={grabRef} />}
        {(isError || !isThere) && (
          <p className={styles.gone} role="alert">
            {stage.replaces === undefined ? "This image cannot be read now." : "The image that this one was made from is gone."}
          </p>
        )}
      </div>
      <div className={styles.tools}>
        {isReady && stage.tool === "crop" && <CropTools board={board} stage={stage} size={asset} />}
        {isReady && action && stage.tool === "text" && <TextTools board={board} stage={stage} action={action} size={asset} />}
        {isReady && action && stage.tool === "colors" && <ColorsTools board={board} stage={stage} action={action} />}
        {isReady && action && stage.tool === "overlay" && <OverlayTools board={board} canvas={canvas} stage={stage} action={action} />}
        {isReady && action && isResult && <ResultTools board={board} stage={stage} action={action} />}
        {isReady && stage.tool === "mask" && <MaskTools board={board} stage={stage} size={asset} />}
        {isReady && stage.tool === "mask" && ui.panel !== "make" && (
          <div className={styles.prompt}>
            <StagePrompt board={board} canvas={canvas} graph={board.graph} ui={ui} />
          </div>
        )}
        <div className={styles.end}>
          {isReady && (
            <div className={styles.zoom} role="group" aria-label="Zoom">
              <button type="button" className={styles.tool} aria-label="Zoom out" title="Zoom out (−)" onClick={() => zoomBy(1 / ZOOM_STEP)}>
                <Icon name="minus" size={16} />
              </button>
              <button type="button" className={styles.tool} title="Show it whole (0)" disabled={!isMoved} onClick={showAll}>
                {percent(scale * devicePixelRatio)}
              </button>
              <button type="button" className={styles.tool} aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoomBy(ZOOM_STEP)}>
                <Icon name="plus" size={16} />
              </button>
            </div>
          )}
          <p className={styles.facts}>
            {facts}
            {made && (stage.tool === "crop" || isResult) && (
              <>
                {" "}
                <Icon name="arrow" size={13} /> <strong>{`${made.width} × ${made.height} px`}</strong> · {ratioOf(made)}
              </>
            )}
            {share > 0 && ` · ${percent(share)} may change`}
          </p>
          {slug !== undefined && refusal !== undefined && stage.past.length > 0 && <p className={styles.refusal}>{refusal}</p>}
          {stage.replaces !== undefined && (
            <label className={styles.check}>
              <input type="checkbox" checked={stage.replaces} onChange={({ target }) => board.set({ stage: { ...stage, replaces: target.checked } })} />
              <span>Replace the image</span>
            </label>
          )}
          <Button look="quiet" aria-pressed={isBefore} title="As it was (hold Q)" onClick={() => setIsBefore(!isBefore)}>
            Before
          </Button>
          {slug !== undefined && (
            <Button look="quiet" onClick={() => board.set({ panel: "inspect", action: slug })}>
              All settings
            </Button>
          )}
          <Button onClick={() => closeStage(board)}>Cancel</Button>
          {slug !== undefined && (
            <Button look="primary" isBusy={!isReady || refusal !== undefined} title={refusal ?? "Apply (Enter)"} onClick={apply}>
              Apply
            </Button>
          )}
        </div>
      </div>
      {upright && stage.tool === "crop" && <Said text={nameOf(stage, upright)} />}
      {stage.tool === "mask" && <Said text={`${percent(share)} of the image may change`} />}
    </section>
  );
}

/** Reads a text out when it has not changed for a moment. */
function Said({ text }: { text: string }) {
  const [said, setSaid] = useState("");
  const first = useRef(text);
  useEffect(() => {
    if (text === first.current) return;
    const timer = setTimeout(() => setSaid(text), REST);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <p className="unseen" role="status">
      {said}
    </p>
  );
}
