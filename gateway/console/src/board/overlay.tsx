/** An image that is laid over another one, on the Stage: a drag moves it, a corner makes it larger. */
import { type PointerEvent, type RefObject, useState } from "react";
import type { Action } from "../api.ts";
import { sourceOf } from "../elements/calls.ts";
import { PictureDialog } from "../library/pictures.tsx";
import { Thumb } from "../library/thumb.tsx";
import { Button } from "../ui/parts.tsx";
import type { Size } from "../view.ts";
import type { Board } from "./board.ts";
import { Sliders } from "./colors-tool.tsx";
import { entryOf } from "./forms.ts";
import { type Grab, grab } from "./grab.ts";
import { useAsset, useImage } from "./images.ts";
import { ParameterField } from "./parameter-field.tsx";
import { laidOver, scaledOverlay } from "./laying.ts";
import { allParams } from "./shapes.ts";
import { entered, type Second, type Stage, stepped, withBoxAt } from "./stage.ts";
import styles from "./stage.module.css";

const SNAP = 6;

interface Props {
  board: Board;
  canvas: string;
  stage: Stage;
  action: Action;
  size: Size;
  scale: number;
  url: string | undefined;
  grabRef: RefObject<Grab | undefined>;
}

export function OverlayPicture({ second, ...props }: Omit<Props, "canvas"> & { second: Second | undefined }) {
  const { size, scale, url } = props;
  return (
    <div className={styles.plane}>
      <div className={styles.view} style={{ width: size.width * scale, height: size.height * scale }}>
        {second ? <Overlay key={second.asset} {...props} second={second} /> : <img className={styles.flat} src={url} alt="" aria-hidden="true" draggable={false} />}
      </div>
    </div>
  );
}

/** Both images. What is beyond the one below is cut, but not the handles. */
function Overlay({ board, stage, action, size, scale, url: below, grabRef, second }: Omit<Props, "canvas"> & { second: Second }) {
  const { data: shape } = useAsset(second.asset);
  const { url } = useImage(second.asset, 2048);
  const picture = <img className={styles.flat} src={below} alt="" aria-hidden="true" draggable={false} />;
  if (!shape) return picture;
  const { inner, box, at } = laidOver(action, stage.entries, shape, size);
  const { opacity, blend, rotate } = allParams(action, stage.entries);
  const middle = { x: at.x + box.width / 2, y: at.y + box.height / 2 };
  const place = { left: middle.x * scale, top: middle.y * scale, width: inner.width * scale, height: inner.height * scale, transform: `translate(-50%, -50%) rotate(${Number(rotate)}deg)` };

  function begin(event: PointerEvent<HTMLDivElement>) {
    const { left = 0, top = 0 } = event.currentTarget.parentElement?.getBoundingClientRect() ?? {};
    const far = ({ clientX, clientY }: { clientX: number; clientY: number }) => Math.hypot(clientX - left - middle.x * scale, clientY - top - middle.y * scale);
    const isCorner = (event.target as HTMLElement).dataset["handle"] !== undefined;
    grab(event, grabRef, (next, gesture) => {
      const now = board.getUi().stage;
      if (!now || !shape) return;
      const to = { x: at.x + (next.clientX - event.clientX) / scale, y: at.y + (next.clientY - event.clientY) / scale };
      board.set({ stage: isCorner ? scaledOverlay(now, action, far(next) / Math.max(far(event), 1), shape, size, gesture) : withBoxAt(now, to, box, size, next.ctrlKey ? 0 : SNAP / scale, gesture) });
    });
  }

  return (
    <>
      <div className={`${styles.flat} ${styles.page}`}>
        {picture}
        <img className={styles.laid} src={url} alt="" aria-hidden="true" data-after style={{ ...place, opacity: Number(opacity) / 100, mixBlendMode: blend as "normal" }} />
      </div>
      <div className={`${styles.laid} ${styles.text}`} data-overlay data-after style={place} onPointerDown={begin}>
        {["-1 -1", "1 -1", "-1 1", "1 1"].map((name) => (
          <span key={name} className={styles.handle} data-handle={name} style={{ left: name.startsWith("-") ? 0 : "100%", top: name.endsWith("-1") ? 0 : "100%" }} />
        ))}
      </div>
    </>
  );
}

export function OverlayTools({ board, canvas, stage, action }: Pick<Props, "board" | "canvas" | "stage" | "action">) {
  const [isChoosing, setIsChoosing] = useState(stage.second === undefined);
  const { second } = stage;
  const blend = action.parameters.find(({ id }) => id === "blend");
  const choose = (next: Second) => board.set({ stage: stepped(stage, { second: next }) });
  return (
    <>
      <Button data-first className={styles.second} onClick={() => setIsChoosing(true)}>
        {second && (
          <span>
            <Thumb asset={second.asset} alt="" pixels={64} />
          </span>
        )}
        <bdi>{second ? second.title : "Choose an image…"}</bdi>
      </Button>
      <Sliders ids={["scale", "opacity", "rotate"]} board={board} stage={stage} action={action} />
      {blend && (
        <div className={styles.fields}>
          <ParameterField parameter={blend} value={stage.entries[blend.id] ?? entryOf(blend)} problem={undefined} set={(entry) => board.set({ stage: entered(stage, blend.id, entry) })} />
        </div>
      )}
      {isChoosing && (
        <PictureDialog
          title="Image to lay over it"
          source={{ canvas }}
          choose={({ handle, name, title = name }) => choose({ asset: handle, title })}
          chooseElement={({ name, ownerUid, sourceAssetIds: [image] }) => image !== undefined && choose({ asset: sourceOf(ownerUid, image), title: name })}
          close={() => setIsChoosing(false)}
        />
      )}
    </>
  );
}
