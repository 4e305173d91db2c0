/** An asset of the panel Pictures that is dragged onto the board or the prompt. */
import type { Placed } from "../assets.ts";

/** The type of an asset that is dragged. */
export const ASSET = "application/x-canvas-asset";

/** The asset that was dragged here. Another page can drag something of this type, so the data can be anything. */
export function draggedAsset(data: string): Placed | undefined {
  try {
    const { handle, name, width, height } = JSON.parse(data) as Record<string, unknown>;
    const isAsset = typeof handle === "string" && handle.startsWith("asset:") && typeof name === "string" && typeof width === "number" && typeof height === "number";
    return isAsset ? { handle, name, width, height } : undefined;
  } catch {
    return undefined;
  }
}
