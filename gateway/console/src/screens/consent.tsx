/** What a person is asked before a program gets access (docs/reference/oauth.md#consent). */
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { signInPath } from "../address.ts";
import type { Budget, Scope } from "../person.ts";
import { useSession } from "../session.ts";
import { isBeyond } from "../ui/field.tsx";
import { useLeave } from "../ui/leave.tsx";
import { Avatar, Button, Mark, Notice } from "../ui/parts.tsx";
import styles from "./authorize.module.css";
import { budgetsOf, limitsOf } from "./settings/budgets.ts";
import { LimitFields } from "./settings/budgets.tsx";
import { neededBy, SCOPES, withNeeded } from "./settings/scopes.ts";

/** The page of a decision. */
export function Page({ children }: { children: ReactNode }) {
  return (
    <main className={styles.page}>
      <div className={styles.brand}>
        <Mark size={30} />
        <span>Canvas Service</span>
      </div>
      <div className={styles.card}>{children}</div>
    </main>
  );
}

export function Narrow() {
  const { session } = useSession();
  const { leave, question } = useLeave();
  return (
    <>
      <h1>Only a person may allow an app</h1>
      <p className={styles.lead}>
        You are signed in with the token <bdi>{session.label}</bdi>, which must not give access to others. Sign in by a link, and you come back here.
      </p>
      <div className={styles.buttons}>
        <Button look="primary" onClick={() => leave.mutate(signInPath(location.pathname + location.search))}>
          Sign out and use a link
        </Button>
      </div>
      {question}
    </>
  );
}

/** The scopes that spend credit. */
const SPENDING: readonly Scope[] = ["image:generate", "video:generate"];

/** Scopes by what they mean for the person, in the order in which they matter more. */
const GROUPS: { name: string; scopes: readonly Scope[] }[] = [
  { name: "Look", scopes: ["canvas:read", "asset:read", "element:read"] },
  { name: "Edit", scopes: ["canvas:write", "element:write", "job:manage"] },
  { name: "Spend credit", scopes: SPENDING },
];

/** Days until the app ends. */
const ENDS: [value: string, name: string][] = [
  ["1", "after 1 day"],
  ["7", "after 7 days"],
  ["30", "after 30 days"],
  ["90", "after 90 days"],
  ["", "when you end it"],
];

/** What a person allows. */
export interface Grant {
  scopes: Scope[];
  budgets: Budget[];
  expiresDays?: number;
}

interface ConsentProps<T> {
  asked: { name: string; scopes: Scope[]; budgets: Budget[] };
  /** Who gets access, as far as it is known. */
  recipient: ReactNode;
  /** Sends the decision; a denial has no grant. */
  decide: (grant: Grant | undefined) => Promise<T>;
  /** What is shown after the decision. */
  renderDecided: (answer: T, isAllowed: boolean) => ReactNode;
}

/** What is asked for, and the decision about it. */
export function Consent<T>({ asked, recipient, decide, renderDecided }: ConsentProps<T>) {
  const { account } = useSession();
  const { leave, question } = useLeave();
  const [chosen, setChosen] = useState<Scope[]>(asked.scopes);
  const [limits, setLimits] = useState(() => limitsOf(asked.budgets));
  const [days, setDays] = useState("90");
  const scopes = withNeeded(chosen);
  const canSpend = scopes.some((scope) => SPENDING.includes(scope));
  const decision = useMutation({ mutationFn: decide });
  if (decision.isSuccess) return renderDecided(decision.data, decision.variables !== undefined);
  const allow = () => decision.mutate({ scopes, budgets: canSpend ? budgetsOf(limits) : [], ...(days !== "" && { expiresDays: Number(days) }) });
  const groups = GROUPS.map(({ name, scopes }) => ({ name, scopes: scopes.filter((scope) => asked.scopes.includes(scope)) }));
  return (
    <>
      <h1>
        Allow <bdi className={styles.name}>{asked.name}</bdi> to use your canvases?
      </h1>
      <div className={styles.person}>
        <Avatar name={account.displayName} size={36} />
        <div>
          <p dir="auto">{account.displayName}</p>
          <p className={styles.quiet}>{account.email}</p>
        </div>
        <Button look="quiet" onClick={() => leave.mutate(signInPath(location.pathname + location.search))}>
          Use another account
        </Button>
      </div>
      {recipient}
      <fieldset className={styles.scopes}>
        <legend>What it may do</legend>
        {groups.map(
          ({ name, scopes: those }) =>
            those.length > 0 && (
              <div key={name} role="group" aria-label={name}>
                <p className={styles.group}>{name}</p>
                <ul>
                  {those.map((scope) => (
                    <ScopeSwitch key={scope} scope={scope} scopes={scopes} chosen={chosen} choose={setChosen} />
                  ))}
                </ul>
              </div>
            ),
        )}
      </fieldset>
      {canSpend && <LimitFields limits={limits} change={setLimits} error={decision.error} />}
      <p className={styles.quiet}>It may use all canvases that you may use. What it does appears under its name.</p>
      <label className={styles.end}>
        <span>Access ends</span>
        <select value={days} onChange={({ target }) => setDays(target.value)}>
          {ENDS.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {isBeyond(decision.error, ["budgets"]) && <Notice error={decision.error} />}
      <div className={styles.buttons}>
        <Button isBusy={decision.isPending} onClick={() => decision.mutate(undefined)}>
          Deny
        </Button>
        <Button look="primary" isBusy={decision.isPending || scopes.length === 0} onClick={allow}>
          Allow
        </Button>
      </div>
      {question}
    </>
  );
}

interface ScopeSwitchProps {
  scope: Scope;
  scopes: Scope[];
  chosen: Scope[];
  choose: (scopes: Scope[]) => void;
}

/** A scope that another one needs cannot be taken away before that one. */
function ScopeSwitch({ scope, scopes, chosen, choose }: ScopeSwitchProps) {
  const dependents = neededBy(scope, scopes);
  return (
    <li>
      <label>
        <input
          type="checkbox"
          checked={scopes.includes(scope)}
          disabled={dependents.length > 0}
          onChange={({ target }) => choose(target.checked ? [...chosen, scope] : chosen.filter((one) => one !== scope))}
        />
        <span>
          {SCOPES[scope].grants}
          <code>{scope}</code>
        </span>
      </label>
    </li>
  );
}
