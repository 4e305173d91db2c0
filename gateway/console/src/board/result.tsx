/** Sizes and formats on the Stage: about what is made, and all that can be chosen for it. A drag chooses which part stays, or where the image is. */
import type { PointerEvent, RefObject } from "react";
import type { Action } from "../api.ts";
import type { Size } from "../view.ts";
import type { Board } from "./board.ts";
import { Result } from "./comparison.tsx";
import { entryOf, isAnchor } from "./forms.ts";
import { type Grab, grab } from "./grab.ts";
import { ParameterField } from "./parameter-field.tsx";
import { anchorNear } from "./preview.ts";
import { previewOn, entered, type Stage, stepped } from "./stage.ts";
import styles from "./stage.module.css";

interface Props {
  board: Board;
  stage: Stage;
  action: Action;
  size: Size;
}

export function ResultPicture({ board, stage, action, size, scale, url, grabRef, isBefore }: Props & { scale: number; url: string | undefined; grabRef: RefObject<Grab | undefined>; isBefore: boolean }) {
  const preview = isBefore ? undefined : previewOn(stage, size);
  const shown = preview?.size ?? size;

  function begin(event: PointerEvent<HTMLDivElement>) {
    const frame = event.currentTarget.getBoundingClientRect();
    grab(event, grabRef, ({ clientX, clientY }, gesture) => {
      const now = board.getUi().stage;
      const anchor = anchorNear({ x: (clientX - frame.left) / frame.width, y: (clientY - frame.top) / frame.height });
      if (now && action.parameters.some(isAnchor)) board.set({ stage: stepped(now, { entries: { ...now.entries, anchor } }, gesture) });
    });
  }

  return (
    <div className={styles.plane}>
      <div className={`${styles.view} ${styles.page} ${styles.squares}`} style={{ width: shown.width * scale, height: shown.height * scale }} data-result onPointerDown={begin}>
        {url !== undefined && <Result preview={preview ?? { size, image: { x: 0, y: 0, ...size } }} url={url} />}
      </div>
    </div>
  );
}

export function ResultTools({ board, stage, action }: Omit<Props, "size">) {
  return (
    <div className={styles.fields}>
      {action.parameters.map((parameter) => (
        <ParameterField key={parameter.id} parameter={parameter} value={stage.entries[parameter.id] ?? entryOf(parameter)} problem={undefined} set={(entry) => board.set({ stage: entered(stage, parameter.id, entry) })} />
      ))}
    </div>
  );
}
