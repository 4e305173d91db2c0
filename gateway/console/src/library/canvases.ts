/** Canvases to choose from. */
import { useQuery } from "@tanstack/react-query";
import { api, type CanvasSummary } from "../api.ts";

const MOST_PAGES = 4;

/** The canvases that changed last. */
async function newest(signal: AbortSignal): Promise<CanvasSummary[]> {
  const canvases = new Map<string, CanvasSummary>();
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES && (page === 0 || cursor !== undefined); page += 1) {
    const list = await api.canvases(cursor, signal);
    for (const canvas of list.canvases) canvases.set(canvas.handle, canvas);
    cursor = list.page.nextCursor ?? undefined;
  }
  return [...canvases.values()];
}

/** The canvases that changed last, at most a hundred, and of them those that are wanted. */
export function useCanvases(isWanted: (canvas: CanvasSummary) => boolean): CanvasSummary[] | undefined {
  const { data } = useQuery({ queryKey: ["canvases", "newest"], queryFn: ({ signal }) => newest(signal) });
  return data?.filter(isWanted);
}

export const isEditable = ({ accessRole }: CanvasSummary): boolean => accessRole !== "viewer";
export const isOwned = ({ accessRole }: CanvasSummary): boolean => accessRole === "owner";
