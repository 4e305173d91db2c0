/** What the lists of administration share: pages, filters, and what is shown while there is nothing. */
import { type InfiniteData, type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Problem } from "../../errors.ts";
import { useLeave } from "../../ui/leave.tsx";
import { Button, Empty, Failure, Notice, Waiting } from "../../ui/parts.tsx";
import { signInPath } from "../../address.ts";
import styles from "../settings/settings.module.css";

/** A value of the address, if it is one of these choices. */
export const keyIn = <Choices extends object>(choices: Choices, text: string | null) => (text !== null && Object.hasOwn(choices, text) ? (text as keyof Choices) : undefined);

interface Paged {
  page: { nextCursor: string | null };
}

/** A list that is read page by page. */
export function usePages<Answer extends Paged>(queryKey: QueryKey, read: (cursor: string | undefined, signal: AbortSignal) => Promise<Answer>) {
  return useInfiniteQuery<Answer, Error, InfiniteData<Answer, string | undefined>, QueryKey, string | undefined>({
    queryKey,
    queryFn: ({ pageParam, signal }) => read(pageParam, signal),
    initialPageParam: undefined,
    getNextPageParam: ({ page }) => page.nextCursor ?? undefined,
    staleTime: 0,
  });
}

interface Listing<Answer extends Paged> {
  list: ReturnType<typeof usePages<Answer>>;
  /** What is listed, in the plural and in lower case. */
  noun: string;
  isEmpty: boolean;
  children: ReactNode;
}

/** The rows of a list, what is shown in their place, and the button for more. */
export function Listed<Answer extends Paged>({ list, noun, isEmpty, children }: Listing<Answer>) {
  const { data, error, refetch } = list;
  return (
    <>
      {!data && (error ? <Refused title={`The ${noun} cannot be loaded`} error={error} retry={refetch} /> : <Waiting label={`Loading the ${noun}`} />)}
      {data && (isEmpty ? <Empty title={`No ${noun}`} /> : children)}
      {list.isFetchNextPageError && <Notice error={list.error} />}
      {list.hasNextPage && (
        <Button className={styles.more} isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {list.isFetchingNextPage ? "Loading…" : "Show more"}
        </Button>
      )}
    </>
  );
}

/** A failure to load. Who signed in too long ago can sign in again. */
export function Refused({ title, error, retry }: { title: string; error: unknown; retry: () => unknown }) {
  const { leave, question } = useLeave();
  if (!(error instanceof Problem && error.status === 403)) return <Failure title={title} error={error} retry={retry} />;
  return (
    <section className={styles.narrow}>
      <h2>Sign in again to administer</h2>
      <p>{error.message}</p>
      <Button onClick={() => leave.mutate(signInPath(location.pathname))}>Sign out and use a link</Button>
      {question}
    </section>
  );
}

/** A choice above a list. */
export function Filter({ label, value, choices, choose }: { label: string; value: string; choices: Record<string, string>; choose: (value: string) => void }) {
  return (
    <label className={styles.filter}>
      <span>{label}</span>
      <select value={value} onChange={({ target }) => choose(target.value)}>
        <option value="">All</option>
        {Object.entries(choices).map(([key, name]) => (
          <option key={key} value={key}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
