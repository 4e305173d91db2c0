/** Assets: the images and videos that an account has stored. */
import { answer, api, type CanvasSummary, contract, patience, send, transportOf } from "./api.ts";
import type { components } from "./contract.ts";
import { bytes } from "./format.ts";
import type { Size } from "./view.ts";

export type Asset = components["schemas"]["Asset"];

/** What a node that shows an asset is made from. */
export type Placed = Pick<Asset, "handle" | "name" | "width" | "height">;

export const assets = {
  read: async (assetId: string, signal: AbortSignal): Promise<Asset> =>
    (await answer(contract.GET("/api/canvas-agent/v1/assets/{assetId}", { params: { path: { assetId } }, signal }))).asset,

  /** Deletes an asset for good. Without `force` it is a conflict while a node shows it. */
  remove: async ({ ownerUid, id }: Asset, force: boolean): Promise<void> => {
    const body = JSON.stringify({ confirm: true, ...(force && { force }) });
    const headers = { "Content-Type": "application/json" };
    await send(new Request(`/console/assets/${encodeURIComponent(ownerUid)}/${encodeURIComponent(id)}`, { method: "DELETE", headers, body, signal: patience() }));
  },
};

export async function allCanvases(signal: AbortSignal): Promise<CanvasSummary[]> {
  const canvases: CanvasSummary[] = [];
  for (let cursor: string | undefined, isLast = false; !isLast; ) {
    const list: Awaited<ReturnType<typeof api.canvases>> = await api.canvases(cursor, signal);
    canvases.push(...list.canvases);
    cursor = list.page.nextCursor ?? undefined;
    isLast = cursor === undefined;
  }
  return canvases;
}

/** A canvas and the handles of its nodes that show an asset. */
export interface Usage {
  canvas: CanvasSummary;
  nodes: string[];
}

/** Reads one canvas after another, and reports after each what was found so far. */
export async function* shownBy(asset: string, signal: AbortSignal): AsyncGenerator<{ usages: Usage[]; seen: number; all: number }> {
  const canvases = await allCanvases(signal);
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

/** The longer side of an image in a node that is made for it, and the height of its title, as the service has them. */
const SIDE = 320;
export const CAPTION = 28;

/** The size of a node that shows a whole image above its title. `side`: the longer side of the image. */
export function nodeSizeOf(image: Size, title: string, side = SIDE): Size {
  const scale = side / Math.max(image.width, image.height, 1);
  const [width, height] = [image.width, image.height].map((pixels) => Math.max(Math.round(pixels * scale), 1)) as [number, number];
  return withCaption({ width, height }, title);
}

/** The size of a node that is this wide and shows a whole image above its title. */
export const nodeSizeAt = (width: number, image: Size, title: string): Size => withCaption({ width, height: Math.max(Math.round((width * image.height) / image.width), 1) }, title);

const withCaption = ({ width, height }: Size, title: string): Size => ({ width, height: title.trim() !== "" && height >= 2 * CAPTION && width >= 2 * CAPTION ? height + CAPTION : height });

/** The badge of an image that was made with AI. */
export const aiBadgeOf = ({ aiGenerated }: Pick<Asset, "aiGenerated">): "AI" | "partly AI" | undefined =>
  aiGenerated === "yes" ? "AI" : aiGenerated === "partly" ? "partly AI" : undefined;

const REMOVED: Record<string, string> = {
  location: "the place",
  device: "the camera",
  person: "people and contacts",
  thumbnail: "a smaller copy",
  trailer: "data behind the image",
  text: "texts",
  other: "other details",
};

/** What was removed from the files of assets, in words; undefined if nothing was. */
export function removedOf(all: Pick<Asset, "metadataRemoved">[]): string | undefined {
  const classes = new Set<string>(all.flatMap(({ metadataRemoved }) => metadataRemoved ?? []));
  const words = Object.keys(REMOVED).flatMap((name) => (classes.has(name) ? [REMOVED[name]] : []));
  return words.length === 0 ? undefined : new Intl.ListFormat("en").format(words as string[]);
}

/** Width and height, and of a video how long it is. */
export const sizeOf = ({ width, height, durationSeconds }: Asset): string => [width > 0 && `${width} × ${height}`, durationSeconds !== undefined && `${durationSeconds} s`].filter(Boolean).join(" · ");

/** Size, format and weight. */
export const factsOf = (asset: Asset): string => [sizeOf(asset), formatOf(asset.mimeType), bytes(asset.bytes)].filter(Boolean).join(" · ");

/** "PNG", "JPEG". */
export const formatOf = (mimeType: string): string => (mimeType.split("/")[1] ?? mimeType).toUpperCase();
