import { useInfiniteQuery } from "@tanstack/react-query";
import { moment, number } from "../../format.ts";
import { type LedgerEntry, person } from "../../person.ts";
import { Button, Empty, Failure, Notice, Waiting } from "../../ui/parts.tsx";
import parts from "../../ui/parts.module.css";
import { Section } from "./section.tsx";
import styles from "./settings.module.css";
import { useWork } from "./work.ts";
import { WorkLink } from "./work-link.tsx";

const REASONS: Record<LedgerEntry["reason"], string> = { grant: "Granted", reserve: "Reserved", return: "Returned" };

export function CreditLedger() {
  const ledger = useInfiniteQuery({
    queryKey: ["credit"],
    queryFn: ({ pageParam, signal }) => person.credit(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ page }) => page.nextCursor ?? undefined,
    staleTime: 0,
  });
  const work = useWork();
  const { data, error, refetch } = ledger;
  const entries = data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <Section title="Credit" lead="A start reserves its price. What is not used is returned when the work ends; the rest is the charge.">
      {!data && (error ? <Failure title="The ledger cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the ledger" />)}
      {data && (
        <>
          <p className={styles.balance}>
            <strong>{number(data.pages[0]?.balance ?? 0)}</strong> credits left
          </p>
          {entries.length === 0 ? (
            <Empty title="No credit has moved yet">
              <p className={parts.text}>Whoever runs the service grants credit. Actions are free, and so are models of your own connections.</p>
            </Empty>
          ) : (
            <table className={styles.ledger}>
              <caption className="unseen">Movements of credit, newest first</caption>
              <thead>
                <tr>
                  <th scope="col">When</th>
                  <th scope="col">What</th>
                  <th scope="col">Credits</th>
                </tr>
              </thead>
              <tbody>
                {entries.map((entry, index) => (
                  // oxlint-disable-next-line react/no-array-index-key -- entries have no id, and none changes
                  <tr key={`${entry.createdAt} ${index}`}>
                    <td>
                      <time dateTime={entry.createdAt}>{moment(entry.createdAt)}</time>
                    </td>
                    <td>
                      {REASONS[entry.reason]}{" "}
                      <WorkOf entry={entry} work={work} />
                    </td>
                    <td data-sign={entry.amount < 0 ? "minus" : "plus"}>{entry.amount < 0 ? `−${number(-entry.amount)}` : `+${number(entry.amount)}`}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
          {ledger.isFetchNextPageError && <Notice error={ledger.error} />}
          {ledger.hasNextPage && (
            <Button className={styles.more} isBusy={ledger.isFetchingNextPage} onClick={() => void ledger.fetchNextPage()}>
              {ledger.isFetchingNextPage ? "Loading…" : "Show older"}
            </Button>
          )}
        </>
      )}
    </Section>
  );
}

function WorkOf({ entry, work }: { entry: LedgerEntry; work: ReturnType<typeof useWork> }) {
  const handle = entry.run ?? entry.job;
  if (handle !== undefined) return <span className={styles.of}><WorkLink handle={handle} work={work} /></span>;
  return entry.workId === undefined ? null : <span className={styles.of}>work whose record is over</span>;
}
