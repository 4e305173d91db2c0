import { type KeyboardEvent, useEffect, useState } from "react";
import type { Drawing } from "../api.ts";
import { percent } from "../format.ts";
import { usePanZoom, ZOOM_STEP } from "../ui/pan-zoom.ts";
import { Button, Icon } from "../ui/parts.tsx";
import type { Box } from "../view.ts";
import styles from "./board.module.css";

const STEP = 64;

/** How long after the last zoom the image is drawn at its new size, in milliseconds. Until then the drawn one is stretched. */
const REST = 150;

/** A drawing that pans and zooms by mouse, trackpad, touch and keyboard. */
export function Board({ drawing, label }: { drawing: Drawing; label: string }) {
  const shown = useDecoded(drawing);
  const box = shown?.box ?? drawing.box;
  const { setFrame, view, panBy, zoomBy, zoomTo, showAll, pointOf, handlers } = usePanZoom(box);
  const drawn = useSettled(view?.scale);
  const showFullSize = () => zoomTo(1);

  function type(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = event.shiftKey ? STEP * 4 : STEP;
    const keys: Record<string, () => void> = {
      ArrowLeft: () => panBy(by, 0),
      ArrowRight: () => panBy(-by, 0),
      ArrowUp: () => panBy(0, by),
      ArrowDown: () => panBy(0, -by),
      "+": () => zoomBy(ZOOM_STEP),
      "=": () => zoomBy(ZOOM_STEP),
      "-": () => zoomBy(1 / ZOOM_STEP),
      "0": showAll,
      "1": showFullSize,
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  return (
    <div className={styles.board}>
      <div
        ref={setFrame}
        className={styles.frame}
        tabIndex={0}
        role="region"
        aria-label="Canvas"
        aria-describedby="board-keys"
        onKeyDown={type}
        {...handlers}
        onDoubleClick={(event) => zoomBy(event.shiftKey ? 0.5 : 2, pointOf(event))}
      >
        {shown && view && drawn !== undefined && (
          <img
            src={shown.url}
            alt={label}
            draggable={false}
            className={styles.sheet}
            style={{
              width: box.width * drawn,
              height: box.height * drawn,
              transform: `translate(${Math.round(view.x + box.x * view.scale)}px, ${Math.round(view.y + box.y * view.scale)}px) scale(${view.scale / drawn})`,
            }}
          />
        )}
      </div>
      <p id="board-keys" className="unseen">
        Arrow keys move, plus and minus zoom, 0 shows the whole canvas, 1 shows it at full size. The outline has the same as text.
      </p>
      <div className={styles.zoom} role="group" aria-label="Zoom">
        <Button look="quiet" aria-label="Zoom out" title="Zoom out (−)" onClick={() => zoomBy(1 / ZOOM_STEP)}>
          <Icon name="minus" />
        </Button>
        <Button look="quiet" className={styles.scale} title="Full size (1)" onClick={showFullSize}>
          {percent(view?.scale ?? 1)}
        </Button>
        <Button look="quiet" aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoomBy(ZOOM_STEP)}>
          <Icon name="plus" />
        </Button>
        <Button look="quiet" aria-label="Show the whole canvas" title="Whole canvas (0)" onClick={showAll}>
          <Icon name="fit" />
        </Button>
      </div>
    </div>
  );
}

/** The scale at which the image is drawn: the last one that stayed for a moment, or that is too far from the one before. */
function useSettled(scale: number | undefined): number | undefined {
  const [settled, setSettled] = useState<number>();
  const isFar = scale !== undefined && (settled === undefined || scale > settled * 2 || scale < settled / 2);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(scale), isFar ? 0 : REST);
    return () => clearTimeout(timer);
  }, [scale, isFar]);
  return settled;
}

/** The newest drawing that the browser has decoded. Until then the previous one stays, so that nothing flickers. */
function useDecoded(drawing: Drawing): { url: string; box: Box } | undefined {
  const [shown, setShown] = useState<{ url: string; box: Box }>();
  useEffect(() => {
    const url = URL.createObjectURL(drawing.image);
    const image = new Image();
    image.src = url;
    let isCurrent = true;
    const swap = () => isCurrent && setShown({ url, box: drawing.box });
    image.decode().then(swap, swap);
    return () => {
      isCurrent = false;
      // It is shown until its successor is decoded.
      setTimeout(() => URL.revokeObjectURL(url), 30_000);
    };
  }, [drawing]);
  return shown;
}
