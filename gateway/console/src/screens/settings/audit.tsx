import { moment } from "../../format.ts";
import { type AuditEntry, person } from "../../person.ts";
import { useSession } from "../../session.ts";
import { useAddress, usePages } from "../../ui/hooks.ts";
import { browserName } from "./browser-name.ts";
import { actorOf, OUTCOMES, OWN_GROUPS, sentenceOf } from "./events.ts";
import { Facts, Filter, keyIn, Listed } from "./list.tsx";
import { Section } from "./section.tsx";
import styles from "./settings.module.css";

/** What was done with one's own account. */
export function History() {
  const { account } = useSession();
  const { params, set } = useAddress();
  const event = keyIn(OWN_GROUPS, params.get("event"));
  const outcome = keyIn(OUTCOMES, params.get("outcome"));
  const filter = { ...(event && { event }), ...(outcome && { outcome }) };
  const list = usePages(["audit", filter], (cursor, signal) => person.audit(filter, cursor, signal), { staleTime: 0 });
  const entries = list.data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <Section title="History" lead="What was done with this account, by you and by others, newest first. Nobody can change an entry.">
      <div className={styles.actions}>
        <Filter label="Show" value={event ?? ""} choices={OWN_GROUPS} choose={(value) => set("event", value)} />
        <Filter label="Outcome" value={outcome ?? ""} choices={OUTCOMES} choose={(value) => set("outcome", value)} />
      </div>
      <Listed list={list} noun="entries" isEmpty={entries.length === 0}>
        <ul className={styles.rows} aria-label="Entries">
          {entries.map((entry) => (
            <Entry key={entry.id} entry={entry} own={account.id} />
          ))}
        </ul>
      </Listed>
    </Section>
  );
}

const shown = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** A row, for the account `own` or for administrators. */
export function Entry({ entry, own }: { entry: AuditEntry; own?: string }) {
  const { actor, account, client, event } = entry;
  const facts: [string, string | undefined][] = [
    ["Entry", String(entry.id)],
    ["Event", event],
    ["By", actor.id && `${actor.via} ${actor.label ?? ""} ${actor.id}`],
    ["Account", own === undefined && account ? `${account.email ?? "deleted"} ${account.id}` : undefined],
    ["Address", entry.address],
    ["Client", client],
    ["Request", entry.requestId],
    ...Object.entries(entry.details).map(([name, value]): [string, string] => [name, shown(value)]),
  ];
  return (
    <li className={styles.row}>
      <div className={styles.what}>
        <h3>
          {sentenceOf(entry)}
          {entry.outcome === "refused" && <span className={styles.tag}>Refused</span>}
          {own === undefined && (
            <span className={styles.of}>
              <bdi>{account?.email ?? account?.id}</bdi>
            </span>
          )}
        </h3>
        <p className={styles.meta}>
          <time dateTime={entry.at}>{moment(entry.at)}</time>
          <span>
            by <bdi>{actorOf(actor, own)}</bdi>
          </span>
          {own !== undefined && client !== undefined && <span>{browserName(client)}</span>}
          {own === undefined && <code>{event}</code>}
        </p>
        <Facts facts={facts} />
      </div>
    </li>
  );
}
