/** Assets: the pictures that an account has stored. */
import { answer, api, type CanvasSummary, contract, patience, send, transportOf } from "./api.ts";
import type { components } from "./contract.ts";
import type { Size } from "./view.ts";

export type Asset = components["schemas"]["Asset"];

/** What a node that shows an asset is made from. */
export type Placed = Pick<Asset, "handle" | "name" | "width" | "height">;

export const assets = {
  /** The account's own, or those that are stored in a canvas. */
  list: (canvasId: string | undefined, cursor: string | undefined, signal: AbortSignal) =>
    answer(
      contract.GET("/api/canvas-agent/v1/assets", {
        params: { query: { limit: 60, ...(canvasId && { canvasId }), ...(cursor && { cursor }) } },
        signal,
      }),
    ),

  read: async (assetId: string, signal: AbortSignal): Promise<Asset> =>
    (await answer(contract.GET("/api/canvas-agent/v1/assets/{assetId}", { params: { path: { assetId } }, signal }))).asset,

  /** Deletes an asset for good. Without `force` it is a conflict while a node shows it. */
  remove: async ({ ownerUid, id }: Asset, force: boolean): Promise<void> => {
    const body = JSON.stringify({ confirm: true, ...(force && { force }) });
    const headers = { "Content-Type": "application/json" };
    await send(new Request(`/console/assets/${encodeURIComponent(ownerUid)}/${encodeURIComponent(id)}`, { method: "DELETE", headers, body, signal: patience() }));
  },
};

/** A canvas and the handles of its nodes that show an asset. */
export interface Usage {
  canvas: CanvasSummary;
  nodes: string[];
}

/** Reads one canvas after another, and tells after each what was found so far. */
export async function* shownBy(asset: string, signal: AbortSignal): AsyncGenerator<{ usages: Usage[]; seen: number; all: number }> {
  const canvases: CanvasSummary[] = [];
  for (let cursor: string | undefined, isLast = false; !isLast; ) {
    const list: Awaited<ReturnType<typeof api.canvases>> = await api.canvases(cursor, signal);
    canvases.push(...list.canvases);
    cursor = list.page.nextCursor ?? undefined;
    isLast = cursor === undefined;
  }
  const usages: Usage[] = [];
  for (const [index, canvas] of canvases.entries()) {
    signal.throwIfAborted();
    if (canvas.nodeCount > 0) {
      const { nodes } = await transportOf(canvas.handle).read();
      const showing = nodes.filter((node) => node.asset === asset).map(({ handle }) => handle);
      if (showing.length > 0) usages.push({ canvas, nodes: showing });
    }
    yield { usages: [...usages], seen: index + 1, all: canvases.length };
  }
}

/** The longer side of a picture in a node that is made for it, and the height of its title, as the service has them. */
const SIDE = 320;
const CAPTION = 28;

/** The size of a node that shows a whole picture above its title. */
export function nodeSizeOf(picture: Size, title: string): Size {
  const scale = SIDE / Math.max(picture.width, picture.height, 1);
  const [width, height] = [picture.width, picture.height].map((pixels) => Math.max(Math.round(pixels * scale), 1)) as [number, number];
  const hasCaption = title.trim() !== "" && height >= 2 * CAPTION && width >= 2 * CAPTION;
  return { width, height: hasCaption ? height + CAPTION : height };
}

/** "PNG", "JPEG". */
export const formatOf = (mimeType: string): string => (mimeType.split("/")[1] ?? mimeType).toUpperCase();
