/** Colors on the Stage: sliders, and the image as it will be. While it is pressed, it is as it was. */
import { useEffect, useRef, useState } from "react";
import type { Action, Parameter } from "../api.ts";
import type { Size } from "../view.ts";
import type { Board } from "./board.ts";
import { entryOf } from "./forms.ts";
import { grade } from "./grade.ts";
import { ParameterField } from "./parameter-field.tsx";
import { usePixels } from "./pixels.ts";
import { allParams } from "./shapes.ts";
import { entered, type Stage } from "./stage.ts";
import styles from "./stage.module.css";

/** The longer side of the preview, in pixels. */
const MOST_SIDE = 1024;
/** What has a slider; all the others are in the panel. */
const SLIDERS = ["exposure", "contrast", "highlights", "shadows", "saturation", "vibrance", "temperature", "tint"];

interface Props {
  board: Board;
  stage: Stage;
  action: Action;
  size: Size;
  scale: number;
  url: string | undefined;
}

export function ColorsPicture({ stage, action, size, scale, url, isBefore }: Omit<Props, "board"> & { isBefore: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const pixels = usePixels(url, size, MOST_SIDE);
  const [isPressed, setIsPressed] = useState(false);
  const params = JSON.stringify(allParams(action, stage.entries));
  useEffect(() => {
    if (!pixels) return;
    const request = requestAnimationFrame(() => {
      const shown = new ImageData(new Uint8ClampedArray(pixels.data), pixels.width, pixels.height);
      if (!isPressed && !isBefore) grade(shown.data, JSON.parse(params) as Record<string, string | number>);
      canvas.current?.getContext("2d")?.putImageData(shown, 0, 0);
    });
    return () => cancelAnimationFrame(request);
  }, [pixels, params, isPressed, isBefore]);
  return (
    <div className={styles.plane} onPointerDown={() => setIsPressed(true)} onPointerUp={() => setIsPressed(false)} onPointerCancel={() => setIsPressed(false)} onPointerLeave={() => setIsPressed(false)}>
      <div className={`${styles.view} ${styles.page}`} style={{ width: size.width * scale, height: size.height * scale }} title="Press to see it as it was">
        <canvas ref={canvas} className={styles.flat} width={pixels?.width ?? 1} height={pixels?.height ?? 1} role="img" aria-label="About what is made" />
      </div>
    </div>
  );
}

const valueOf = ({ entries }: Stage, parameter: Parameter) => entries[parameter.id] ?? entryOf(parameter);

/** A slider for each of these parameters. A double-click makes it neutral. */
export function Sliders({ ids, board, stage, action }: Pick<Props, "board" | "stage" | "action"> & { ids: readonly string[] }) {
  const set = (id: string, entry: string) => board.set({ stage: entered(stage, id, entry) });
  return (
    <div className={styles.sliders}>
      {ids.flatMap((id) => {
        const parameter = action.parameters.find((one) => one.id === id);
        if (!parameter) return [];
        const { title, min = -100, max = 100 } = parameter;
        return (
          <label key={id} className={styles.slider} title={parameter.description}>
            <span>{title}</span>
            <input
              type="range"
              data-first={id === ids[0] || undefined}
              min={min}
              max={max}
              step={max - min <= 10 ? 0.05 : 1}
              value={Number(valueOf(stage, parameter))}
              onChange={({ target }) => set(id, target.value)}
              onDoubleClick={() => set(id, entryOf(parameter))}
            />
            <output>{valueOf(stage, parameter)}</output>
          </label>
        );
      })}
    </div>
  );
}

export function ColorsTools({ board, stage, action }: Pick<Props, "board" | "stage" | "action">) {
  const preset = action.parameters.find(({ id }) => id === "preset");
  const hasPreset = preset !== undefined && valueOf(stage, preset) !== "none";
  return (
    <>
      <Sliders ids={hasPreset ? [...SLIDERS, "intensity"] : SLIDERS} board={board} stage={stage} action={action} />
      {preset && <div className={styles.fields}><ParameterField parameter={preset} value={valueOf(stage, preset)} problem={undefined} set={(entry) => board.set({ stage: entered(stage, preset.id, entry) })} /></div>}
    </>
  );
}
