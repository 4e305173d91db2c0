import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ago, day, until } from "../../format.ts";
import { type AuthorizedApp, person } from "../../person.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { Copyable } from "../../ui/field.tsx";
import { useClock } from "../../ui/hooks.ts";
import { Button, Empty, Failure, Waiting } from "../../ui/parts.tsx";
import parts from "../../ui/parts.module.css";
import { BudgetLines, ChangeLimits } from "./budgets.tsx";
import { ALL_SCOPES } from "./scopes.ts";
import { Section } from "./section.tsx";
import styles from "./settings.module.css";

export function Apps() {
  useClock();
  const { data, error, refetch } = useQuery({ queryKey: ["apps"], queryFn: ({ signal }) => person.apps(signal) });
  return (
    <Section title="Apps" lead="Apps that you allowed to use this account, without a token of your own.">
      {!data && (error ? <Failure title="The apps cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the apps" />)}
      {data?.length === 0 && (
        <Empty title="No apps">
          <p className={parts.text}>Give this address to Claude, ChatGPT, an editor or another agent. It sends you here, and you decide what it may do.</p>
          <Copyable label="Address for agents" text={`${location.origin}/mcp`} />
        </Empty>
      )}
      {data && data.length > 0 && (
        <ul className={styles.rows} aria-label="Apps">
          {data.map((app) => (
            <App key={app.id} app={app} />
          ))}
        </ul>
      )}
    </Section>
  );
}

/** Whether anybody vouches for the name. */
const KINDS: Record<AuthorizedApp["kind"], string> = { registered: "Unverified name", listed: "Listed", command_line: "Command line" };

function App({ app }: { app: AuthorizedApp }) {
  const queries = useQueryClient();
  const [isAsking, setIsAsking] = useState(false);
  const [isChanging, setIsChanging] = useState(false);
  return (
    <li className={styles.row}>
      <div className={styles.what}>
        <h3>
          <bdi>{app.name}</bdi>
          <span className={styles.tag}>{app.host ?? KINDS[app.kind]}</span>
        </h3>
        <p className={styles.meta}>
          <span title={app.lastUsedAt}>{app.lastUsedAt === undefined ? "never used" : `used ${ago(app.lastUsedAt)}`}</span>
          <span title={app.expiresAt}>{app.expiresAt === undefined ? "does not end by itself" : `ends ${until(app.expiresAt)}`}</span>
          <span>allowed {day(app.createdAt)}</span>
        </p>
        <p className={styles.scopes} title={app.scopes.join(", ")}>
          {app.scopes.length === ALL_SCOPES.length ? <code>all scopes</code> : app.scopes.map((scope) => <code key={scope}>{scope}</code>)}
        </p>
        {app.budgets.length > 0 && <BudgetLines label={`Spent by ${app.name}`} budgets={app.budgets} />}
      </div>
      <div className={styles.actions}>
        <Button aria-label={`Limits of ${app.name}`} onClick={() => setIsChanging(true)}>
          Limits…
        </Button>
        <Button aria-label={`End access of ${app.name}`} onClick={() => setIsAsking(true)}>
          End access…
        </Button>
      </div>
      {isChanging && (
        <ChangeLimits
          name={app.name}
          budgets={app.budgets}
          save={(budgets) => person.setAppBudgets(app.id, budgets)}
          list="apps"
          close={() => setIsChanging(false)}
        />
      )}
      {isAsking && (
        <Confirm
          title={`End the access of “${app.name}”?`}
          action="End access"
          run={() => person.endApp(app.id)}
          done={() => void queries.invalidateQueries({ queryKey: ["apps"] })}
          close={() => setIsAsking(false)}
        >
          <p>Its next request is refused. To use it again, connect it again.</p>
          <p>Recipe runs that it started stop at their next step. Other work that it started goes on.</p>
        </Confirm>
      )}
    </li>
  );
}
