/** A choice among the canvases of a person, and their titles. */
import { useQuery } from "@tanstack/react-query";
import { api, type CanvasSummary } from "../api.ts";
import { Choice } from "../ui/search.tsx";

/** More pages of canvases than this are not read for their titles. */
const MOST_PAGES = 20;

/** The canvases, by their handles. */
export function useCanvasNames(): ReadonlyMap<string, CanvasSummary> | undefined {
  const { data } = useQuery({
    queryKey: ["canvas-names"],
    queryFn: async ({ signal }) => {
      const names = new Map<string, CanvasSummary>();
      let cursor: string | undefined;
      for (let page = 0; page < MOST_PAGES; page += 1) {
        const answer = await api.canvases(cursor, signal);
        for (const canvas of answer.canvases) names.set(canvas.handle, canvas);
        cursor = answer.page.nextCursor ?? undefined;
        if (cursor === undefined) break;
      }
      return names;
    },
    staleTime: 60_000,
  });
  return data;
}

interface Props {
  /** What it says while nothing is chosen. */
  all: string;
  /** Handle of a canvas, or a value of `first`. */
  value: string;
  set: (value: string) => void;
  /** Values and labels before the canvases. */
  first?: [string, string][];
  /** Which canvases are offered; all without it. */
  isOffered?: (canvas: CanvasSummary) => boolean;
}

const NONE: [string, string][] = [];

export function CanvasFilter({ all, value, set, first = NONE, isOffered }: Props) {
  const names = useCanvasNames();
  const offered = [...(names?.values() ?? [])].filter((canvas) => isOffered?.(canvas) ?? true).map(({ handle, title }): [string, string] => [handle, title || "Untitled"]);
  const choices = [...first, ...offered];
  const isKnown = value === "" || choices.some(([key]) => key === value);
  return <Choice label="Canvas" all={all} choices={isKnown ? choices : [...choices, [value, names?.get(value)?.title ?? value.replace("canvas:", "")]]} value={value} set={set} />;
}
