import { admin, type AuditEntry } from "../../admin.ts";
import { moment } from "../../format.ts";
import { useAddress, useDraft } from "../../ui/hooks.ts";
import { Section } from "../settings/section.tsx";
import styles from "../settings/settings.module.css";
import { Filter, keyIn, Listed, usePages } from "./list.tsx";

const OUTCOMES = { ok: "Done", refused: "Refused" } as const;
const GROUPS: Record<string, string> = {
  "signin.": "Sign-ins",
  "session.": "Sessions",
  "account.": "Accounts",
  "identity.": "Identities",
  "token.": "Tokens",
  "app.": "Apps",
  "client.": "Listed apps",
  "connection.": "Connections",
  "canvas.": "Canvases",
  "asset.": "Pictures",
  "recipe.": "Recipes",
  "delivery.": "Deliveries",
  "work.": "Work",
  "keys.": "Keys",
  "audit.": "Audit",
};

export function Audit() {
  const { params, set } = useAddress();
  const event = params.get("event") ?? "";
  const account = params.get("account") ?? "";
  const outcome = keyIn(OUTCOMES, params.get("outcome"));
  const draft = useDraft(account, (text) => set("account", text.trim()));
  const filter = { ...(event !== "" && { event }), ...(account !== "" && { account }), ...(outcome && { outcome }) };
  const list = usePages(["admin", "audit", filter], (cursor, signal) => admin.audit(filter, cursor, signal));
  const entries = list.data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <Section title="Audit" lead="Who did what, newest first. Entries cannot be changed; the command admin audit verify proves it.">
      <div className={styles.actions}>
        <Filter label="Event" value={event} choices={GROUPS} choose={(value) => set("event", value)} />
        <Filter label="Outcome" value={outcome ?? ""} choices={OUTCOMES} choose={(value) => set("outcome", value)} />
        <label className={styles.filter}>
          <span>Account</span>
          <input
            autoComplete="off"
            spellCheck={false}
            placeholder="Id"
            value={draft.text}
            onChange={({ target }) => draft.type(target.value)}
            onBlur={draft.end}
            onKeyDown={({ key }) => key === "Enter" && draft.end()}
          />
        </label>
      </div>
      <Listed list={list} noun="entries" isEmpty={entries.length === 0}>
        <ul className={styles.rows} aria-label="Entries">
          {entries.map((entry) => (
            <Row key={entry.id} entry={entry} />
          ))}
        </ul>
      </Listed>
    </Section>
  );
}

/** Who acted, in words. */
function actorOf({ actor }: AuditEntry): string {
  if (actor.account) return actor.account.email ?? actor.account.id;
  if (actor.via === "command") return `the command ${actor.id ?? ""}`;
  return actor.via === "system" ? "the service" : "somebody unknown";
}

function Row({ entry }: { entry: AuditEntry }) {
  const facts: [string, string | undefined][] = [
    ["Entry", String(entry.id)],
    ["By", entry.actor.id && `${entry.actor.via} ${entry.actor.label ?? ""} ${entry.actor.id}`],
    ["Account", entry.account && `${entry.account.email ?? "deleted"} ${entry.account.id}`],
    ["Address", entry.address],
    ["Client", entry.client],
    ["Request", entry.requestId],
    ...Object.entries(entry.details).map(([name, value]): [string, string] => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  ];
  return (
    <li className={styles.row}>
      <div className={styles.what}>
        <h3>
          <code>{entry.event}</code>
          {entry.outcome === "refused" && <span className={styles.tag}>Refused</span>}
          <span className={styles.of}>
            <bdi>{entry.account?.email ?? entry.account?.id}</bdi>
          </span>
        </h3>
        <p className={styles.meta}>
          <time dateTime={entry.at}>{moment(entry.at)}</time>
          <span>
            by <bdi>{actorOf(entry)}</bdi>
          </span>
        </p>
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
      </div>
    </li>
  );
}
