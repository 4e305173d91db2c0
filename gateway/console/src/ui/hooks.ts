import { type InfiniteData, type QueryKey, useInfiniteQuery, type UseInfiniteQueryOptions } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useLayoutEffect, useReducer, useRef, useState, useSyncExternalStore } from "react";
import { useSearchParams } from "wouter";
import { Problem } from "../errors.ts";

/** Sets the title of the page. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === "" ? "Canvas Service" : `${title} · Canvas Service`;
  }, [title]);
}

/**
 * What `load` resolves to, or undefined until then. What is shown with it appears in the next frame, while React keeps the fallback of a
 * `lazy` component for 300 ms. `known`: the result, if it is there already.
 */
export function useLoaded<T>(load: () => Promise<T>, known?: T): T | undefined {
  const [result, setResult] = useState<{ value: T | undefined } | { error: unknown }>({ value: known });
  useEffect(() => {
    load().then(
      (value) => setResult((before) => ("value" in before && before.value === value ? before : { value })),
      () => setResult({ error: new Problem(0, "A part of the console cannot be loaded. If another attempt fails, too, reload the page.") }),
    );
  }, [load]);
  if ("error" in result) throw result.error;
  return result.value;
}

/** A URL of `blob` while the component is shown. */
export function useObjectUrl(blob: Blob | undefined): string | undefined {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    if (!blob) return;
    const made = URL.createObjectURL(blob);
    setUrl(made);
    // An image that is being replaced is still shown for a moment.
    return () => void setTimeout(() => URL.revokeObjectURL(made), 1000);
  }, [blob]);
  return url;
}

/** Whether the component has been shown for so long, in milliseconds: what can wait leaves the processor to what the page is for. */
export function useIsLater(rest: number): boolean {
  const [isLater, setIsLater] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setIsLater(true), rest);
    return () => clearTimeout(timer);
  }, [rest]);
  return isLater;
}

/** Calls `changed` when the page becomes light or dark. */
export function onTheme(changed: () => void): () => void {
  const scheme = matchMedia(DARK);
  scheme.addEventListener("change", changed);
  const chosen = new MutationObserver(changed);
  chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    scheme.removeEventListener("change", changed);
    chosen.disconnect();
  };
}

const DARK = "(prefers-color-scheme: dark)";

function isDark(): boolean {
  const { theme } = document.documentElement.dataset;
  return theme === "dark" || (theme !== "light" && matchMedia(DARK).matches);
}

export const useIsDark = (): boolean => useSyncExternalStore(onTheme, isDark);

/** Calls `flush` whenever the page may be about to end: it is closed, left, reloaded or hidden. */
export function useBeforeEnd(flush: () => void): void {
  const flushLatest = useEffectEvent(flush);
  useEffect(() => {
    const stop = new AbortController();
    for (const type of ["visibilitychange", "beforeunload", "pagehide"]) addEventListener(type, () => flushLatest(), { signal: stop.signal });
    return () => stop.abort();
  }, []);
}

interface Draft {
  text: string;
  /** The value that it was typed on. */
  was: string;
}

/** What is typed into a field that shows `value`. `end` applies it, unless it is what it was typed on. So does the field when it or the page goes. */
export function useDraft(value: string, apply: (text: string, was: string) => void) {
  const [draft, setDraft] = useState<Draft>();
  // A field can be left before what was typed last is rendered.
  const latest = useRef<Draft>(undefined);
  function set(draft: Draft | undefined) {
    latest.current = draft;
    setDraft(draft);
  }
  function end() {
    const typed = latest.current;
    set(undefined);
    if (typed && typed.text !== typed.was) apply(typed.text, typed.was);
  }
  const endLatest = useEffectEvent(end);
  useLayoutEffect(() => () => endLatest(), []);
  useBeforeEnd(end);
  return {
    text: draft?.text ?? value,
    isTyped: draft !== undefined,
    type: (text: string) => set({ text, was: draft?.was ?? value }),
    end,
    cancel: () => set(undefined),
  };
}

/** Draws the component again every half minute, for relative times. */
export function useClock(): void {
  const [, tick] = useReducer((ticks: number) => ticks + 1, 0);
  useEffect(() => {
    const timer = setInterval(tick, 30_000);
    return () => clearInterval(timer);
  }, []);
}

/** Whether `element` is on the screen, or soon will be. */
export function useIsNear(element: Element | null): boolean {
  const [isNear, setIsNear] = useState(false);
  useEffect(() => {
    if (!element) return;
    const observer = new IntersectionObserver((entries) => setIsNear(entries.at(-1)?.isIntersecting ?? false), {
      rootMargin: "400px",
      // The same in a panel or a dialog that scrolls.
      scrollMargin: "400px",
    } as IntersectionObserverInit);
    observer.observe(element);
    return () => observer.disconnect();
  }, [element]);
  return isNear;
}

interface Paged {
  page: { nextCursor?: string | null };
}

type PagesQuery<Answer> = UseInfiniteQueryOptions<Answer, Error, InfiniteData<Answer, string | undefined>, QueryKey, string | undefined>;

/** A list that is read page by page. */
export function usePages<Answer extends Paged>(
  queryKey: QueryKey,
  read: (cursor: string | undefined, signal: AbortSignal) => Promise<Answer>,
  options: Pick<PagesQuery<Answer>, "placeholderData" | "refetchInterval" | "staleTime"> = {},
) {
  return useInfiniteQuery<Answer, Error, InfiniteData<Answer, string | undefined>, QueryKey, string | undefined>({
    queryKey,
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: undefined,
    getNextPageParam: ({ page }) => page.nextCursor ?? undefined,
    ...options,
  });
}

interface Pages {
  hasNextPage: boolean;
  isFetching: boolean;
  isFetchNextPageError: boolean;
  fetchNextPage: () => unknown;
}

/** Reads the next page of a list when its end is near, or all of them if `isAll`. Returns the ref of the element at the end. */
export function useNextPages({ hasNextPage, isFetching, isFetchNextPageError, fetchNextPage }: Pages, isAll = false): (end: Element | null) => void {
  const [end, setEnd] = useState<Element | null>(null);
  const isNearEnd = useIsNear(end);
  const needsMore = hasNextPage && !isFetching && !isFetchNextPageError && (isAll || isNearEnd);
  useEffect(() => {
    if (needsMore) void fetchNextPage();
  }, [needsMore, fetchNextPage]);
  return setEnd;
}

/** What the address says behind its path, and what changes one value of it, or removes all. The way back stays the same. */
export function useAddress(): { params: URLSearchParams; set: (name: string, value: string | readonly string[] | undefined) => void; reset: () => void } {
  const [params, setParams] = useSearchParams();
  const set = (name: string, value: string | readonly string[] | undefined) =>
    setParams(
      (params) => {
        params.delete(name);
        for (const one of typeof value === "string" ? [value] : (value ?? [])) if (one !== "") params.append(name, one);
        return params;
      },
      { replace: true },
    );
  return { params, set, reset: () => setParams({}, { replace: true }) };
}

/** `value` once it has not changed for a while, in milliseconds. */
export function useSettled<T>(value: T, rest: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), rest);
    return () => clearTimeout(timer);
  }, [value, rest]);
  return settled;
}
