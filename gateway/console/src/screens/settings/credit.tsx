import { moment, number } from "../../format.ts";
import { person } from "../../person.ts";
import { usePages } from "../../ui/hooks.ts";
import { Empty } from "../../ui/parts.tsx";
import parts from "../../ui/parts.module.css";
import { BudgetLines } from "./budgets.tsx";
import { type Line, linesOf } from "./ledger.ts";
import { Listed } from "./list.tsx";
import { Section } from "./section.tsx";
import styles from "./settings.module.css";
import { useWork } from "./work.ts";
import { WorkLink } from "./work-link.tsx";

export function CreditLedger() {
  const ledger = usePages(["credit"], person.credit, { staleTime: 0 });
  const work = useWork();
  const { data } = ledger;
  const budgets = data?.pages[0]?.budgets ?? [];
  const entries = data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <Section title="Credit" lead="One line for each start: what it costs. Its price is reserved first, and what is not used is returned when it ends.">
      {data && (
        <>
          <p className={styles.balance}>
            <strong>{number(data.pages[0]?.balance ?? 0)}</strong> credits left
          </p>
          {budgets.length > 0 && (
            <div>
              <p className={styles.lead}>Whoever runs the service has set limits for this account:</p>
              <BudgetLines label="Limits of the account" budgets={budgets} />
            </div>
          )}
        </>
      )}
      <Listed
        list={ledger}
        noun="ledger"
        isEmpty={entries.length === 0}
        empty={
          <Empty title="No credit has moved yet">
            <p className={parts.text}>Whoever runs the service grants credit. Actions cost none. Nor do models of your own connections: their providers bill you.</p>
          </Empty>
        }
      >
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
            {linesOf(entries).map((line) => (
              <tr key={line.key}>
                <td>
                  <time dateTime={line.at}>{moment(line.at)}</time>
                </td>
                <td>
                  <What line={line} work={work} />
                </td>
                <td data-sign={line.amount > 0 ? "plus" : "minus"}>{line.amount === 0 ? "0" : `${line.amount < 0 ? "−" : "+"}${number(Math.abs(line.amount))}`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Listed>
    </Section>
  );
}

function What({ line: { handle, isWork, reserved, returned }, work }: { line: Line; work: ReturnType<typeof useWork> }) {
  if (!isWork) return <>Granted</>;
  return (
    <>
      {handle === undefined ? "Work whose record is over" : <WorkLink handle={handle} work={work} />}
      {returned > 0 && (
        <span className={styles.of}>
          {number(reserved)} reserved, {number(returned)} returned
        </span>
      )}
    </>
  );
}
