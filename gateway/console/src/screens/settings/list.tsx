/** What the lists of settings and of administration share: filters, what is shown while there is nothing, and the facts of a row. */
import type { ReactNode } from "react";
import { signInPath } from "../../address.ts";
import { Problem } from "../../errors.ts";
import type { usePages } from "../../ui/hooks.ts";
import { useLeave } from "../../ui/leave.tsx";
import { Button, Empty, Failure, Notice, Waiting } from "../../ui/parts.tsx";
import styles from "./settings.module.css";

/** A value of the address, if it is one of these choices. */
export const keyIn = <Choices extends object>(choices: Choices, text: string | null) => (text !== null && Object.hasOwn(choices, text) ? (text as keyof Choices) : undefined);

interface Listing {
  list: Pick<ReturnType<typeof usePages>, "data" | "error" | "refetch" | "isFetchNextPageError" | "hasNextPage" | "isFetchingNextPage" | "fetchNextPage">;
  /** What is listed, in the plural and in lower case. */
  noun: string;
  isEmpty: boolean;
  /** What is shown in the place of an empty list. */
  empty?: ReactNode;
  children: ReactNode;
}

/** The rows of a list, what is shown in their place, and the button for more. */
export function Listed({ list, noun, isEmpty, empty, children }: Listing) {
  const { data, error, refetch } = list;
  return (
    <>
      {!data && (error ? <Refused title={`The ${noun} cannot be loaded`} error={error} retry={refetch} /> : <Waiting label={`Loading the ${noun}`} />)}
      {data && (isEmpty ? (empty ?? <Empty title={`No ${noun}`} />) : children)}
      {list.isFetchNextPageError && <Notice error={list.error} />}
      {list.hasNextPage && (
        <Button className={styles.more} isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          {list.isFetchingNextPage ? "Loading…" : "Show more"}
        </Button>
      )}
    </>
  );
}

/** A failure to load. Who signed in too long ago to administer can sign in again. */
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

interface FilterProps {
  label: string;
  value: string;
  choices: Record<string, string>;
  choose: (value: string) => void;
}

/** A choice above a list. */
export function Filter({ label, value, choices, choose }: FilterProps) {
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

/** What is known of a row, folded. */
export function Facts({ facts }: { facts: readonly (readonly [string, string | undefined])[] }) {
  return (
    <details className={styles.details}>
      <summary>Details</summary>
      <dl>
        {facts.map(
          ([name, value]) =>
            value !== undefined && (
              <div key={name}>
                <dt>{name}</dt>
                <dd dir="auto">{value}</dd>
              </div>
            ),
        )}
      </dl>
    </details>
  );
}
