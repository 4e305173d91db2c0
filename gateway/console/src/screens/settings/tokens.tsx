import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { ago, count, day, until } from "../../format.ts";
import { type AgentToken, person } from "../../person.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { useClock } from "../../ui/hooks.ts";
import { Button, Empty, Failure, Icon, Waiting } from "../../ui/parts.tsx";
import parts from "../../ui/parts.module.css";
import { BudgetLines, ChangeLimits } from "./budgets.tsx";
import { ALL_SCOPES, presetOf } from "./scopes.ts";
import { Section } from "./section.tsx";
import styles from "./settings.module.css";

/** The most active tokens of an account. */
const MOST = 20;

const isActive = ({ revokedAt, expiresAt }: AgentToken) => revokedAt === undefined && (expiresAt === undefined || new Date(expiresAt).getTime() > Date.now());

export function Tokens() {
  useClock();
  const { data, error, refetch } = useQuery({ queryKey: ["tokens"], queryFn: ({ signal }) => person.tokens(signal) });
  const active = data?.filter(isActive) ?? [];
  const ended = data?.filter((token) => !isActive(token)) ?? [];
  return (
    <Section
      title="Tokens"
      lead="A token lets an agent or a program use this account, within its scopes and limits."
      action={
        <div className={styles.actions}>
          {data && (
            <span className={styles.quota}>
              {active.length} of {MOST} active
            </span>
          )}
          <Link href="/settings/tokens/new" className={`${parts.button} ${parts.primary}`}>
            <Icon name="plus" size={16} />
            New token
          </Link>
        </div>
      }
    >
      {!data && (error ? <Failure title="The tokens cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the tokens" />)}
      {data && active.length === 0 && (
        <Empty title="No active tokens">
          <p className={parts.text}>Make one for each agent or program, with no more scopes than it needs. What it does on a canvas appears under its label.</p>
        </Empty>
      )}
      {active.length > 0 && <TokenList label="Active tokens" tokens={active} />}
      {ended.length > 0 && (
        <details className={styles.ended}>
          <summary>{count(ended.length, "token")} expired or revoked</summary>
          <TokenList label="Expired and revoked tokens" tokens={ended} />
        </details>
      )}
    </Section>
  );
}

function TokenList({ label, tokens }: { label: string; tokens: AgentToken[] }) {
  return (
    <ul className={styles.rows} aria-label={label}>
      {tokens.map((token) => (
        <Token key={token.id} token={token} />
      ))}
    </ul>
  );
}

const SURFACES = { api: "API", cli: "Command line", tool: "Tool adapter", browser: "Browser" } as const;

function expiry({ revokedAt, expiresAt }: AgentToken): string {
  if (revokedAt !== undefined) return `revoked ${ago(revokedAt)}`;
  if (expiresAt === undefined) return "does not expire";
  return new Date(expiresAt).getTime() > Date.now() ? `expires ${until(expiresAt)}` : `expired ${ago(expiresAt)}`;
}

function Token({ token }: { token: AgentToken }) {
  const queries = useQueryClient();
  const [isAsking, setIsAsking] = useState(false);
  const [isChanging, setIsChanging] = useState(false);
  const preset = presetOf(token.scopes);
  return (
    <li className={styles.row} data-ended={!isActive(token) || undefined}>
      <div className={styles.what}>
        <h3>
          <bdi>{token.label}</bdi>
          <span className={styles.tag}>{SURFACES[token.surface]}</span>
        </h3>
        <p className={styles.meta}>
          <span title={token.lastUsedAt}>{token.lastUsedAt === undefined ? "never used" : `used ${ago(token.lastUsedAt)}`}</span>
          <span title={token.expiresAt}>{expiry(token)}</span>
          <span>created {day(token.createdAt)}</span>
        </p>
        <p className={styles.scopes} title={token.scopes.join(", ")}>
          {preset && token.scopes.length === ALL_SCOPES.length ? <code>all scopes</code> : token.scopes.map((scope) => <code key={scope}>{scope}</code>)}
        </p>
        {token.budgets.length > 0 && <BudgetLines label={`Spent by ${token.label}`} budgets={token.budgets} />}
      </div>
      {isActive(token) && (
        <div className={styles.actions}>
          <Button aria-label={`Limits of ${token.label}`} onClick={() => setIsChanging(true)}>
            Limits…
          </Button>
          <Button aria-label={`Revoke ${token.label}`} onClick={() => setIsAsking(true)}>
            Revoke…
          </Button>
        </div>
      )}
      {isChanging && (
        <ChangeLimits
          name={token.label}
          budgets={token.budgets}
          save={(budgets) => person.setBudgets(token.id, budgets)}
          list="tokens"
          close={() => setIsChanging(false)}
        />
      )}
      {isAsking && (
        <Confirm
          title={`Revoke “${token.label}”?`}
          action="Revoke"
          run={() => person.revokeToken(token.id)}
          done={() => void queries.invalidateQueries({ queryKey: ["tokens"] })}
          close={() => setIsAsking(false)}
        >
          <p>Its next request is refused, and sessions that it signed in end. This cannot be undone: whatever uses it needs a new token.</p>
          <p>Recipe runs that it started stop at their next step. Other work that it started goes on.</p>
        </Confirm>
      )}
    </li>
  );
}
