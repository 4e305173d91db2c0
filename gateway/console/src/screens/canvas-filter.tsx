/** A choice among the canvases of a person, and their titles. */
import { useQuery } from "@tanstack/react-query";
import { api, type CanvasSummary } from "../api.ts";
import list from "./list.module.css";

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
  /** Handle of a canvas, or a value of `first`. */
  value: string | undefined;
  set: (value: string | undefined) => void;
  /** Values and labels before the canvases. An empty value is no choice. */
  first: [string, string][];
  /** Which canvases are offered; all without it. */
  isOffered?: (canvas: CanvasSummary) => boolean;
}

export function CanvasFilter({ value, set, first, isOffered }: Props) {
  const names = useCanvasNames();
  return (
    <span className={list.select}>
      <select aria-label="Canvas" value={value ?? ""} onChange={({ target }) => set(target.value || undefined)}>
        {first.map(([key, label]) => (
          <option key={key} value={key}>
            {label}
          </option>
        ))}
        {value !== undefined && !first.some(([key]) => key === value) && !names?.has(value) && <option value={value}>{value.replace("canvas:", "")}</option>}
        {[...(names?.values() ?? [])].filter(isOffered ?? (() => true)).map(({ handle, title }) => (
          <option key={handle} value={handle}>
            {title || "Untitled"}
          </option>
        ))}
      </select>
    </span>
  );
}
