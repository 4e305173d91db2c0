import { admin } from "../../admin.ts";
import { useAddress, useDraft, usePages } from "../../ui/hooks.ts";
import { Entry } from "../settings/audit.tsx";
import { GROUPS, OUTCOMES } from "../settings/events.ts";
import { Filter, keyIn, Listed } from "../settings/list.tsx";
import { Section } from "../settings/section.tsx";
import styles from "../settings/settings.module.css";

export function Audit() {
  const { params, set } = useAddress();
  const event = params.get("event") ?? "";
  const account = params.get("account") ?? "";
  const outcome = keyIn(OUTCOMES, params.get("outcome"));
  const draft = useDraft(account, (text) => set("account", text.trim()));
  const filter = { ...(event !== "" && { event }), ...(account !== "" && { account }), ...(outcome && { outcome }) };
  const list = usePages(["admin", "audit", filter], (cursor, signal) => admin.audit(filter, cursor, signal), { staleTime: 0 });
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
            <Entry key={entry.id} entry={entry} />
          ))}
        </ul>
      </Listed>
    </Section>
  );
}
