import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type SubmitEvent, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { person, type Scope, type TokenCreated } from "../../person.ts";
import { Copyable, Field, isBeyond, problemAt, Wrong } from "../../ui/field.tsx";
import { Button, Icon, Notice } from "../../ui/parts.tsx";
import parts from "../../ui/parts.module.css";
import { budgetsOf, type Limit } from "./budgets.ts";
import { LimitFields } from "./budgets.tsx";
import { ALL_SCOPES, neededBy, PRESETS, presetOf, SCOPES, withNeeded } from "./scopes.ts";
import styles from "./new-token.module.css";
import shared from "./settings.module.css";
import { commandLines, requestLines, type TokenLine, toolLines } from "./token-lines.ts";

/** How a token is used. The service calls it the surface: it decides as what nodes are recorded, and here, which lines come first. */
const USES = {
  tool: "An agent, through the tool adapter",
  cli: "The command line",
  api: "A program, through the API",
} as const;
type Use = keyof typeof USES;

const DEFAULT_DAYS = "30";

export function NewToken() {
  const queries = useQueryClient();
  const [label, setLabel] = useState("");
  const [use, setUse] = useState<Use>("tool");
  const [chosen, setChosen] = useState<Scope[]>([...(PRESETS[2]?.scopes ?? [])]);
  const [days, setDays] = useState(DEFAULT_DAYS);
  const [isEndless, setIsEndless] = useState(false);
  const [limits, setLimits] = useState<Limit[]>([]);
  const creation = useMutation({
    mutationFn: person.createToken,
    onSuccess: () => void queries.invalidateQueries({ queryKey: ["tokens"] }),
    // The answer has the secret, which is kept nowhere after this page.
    gcTime: 0,
  });
  const scopes = withNeeded(chosen);

  function submit(event: SubmitEvent) {
    event.preventDefault();
    if (creation.isPending) return;
    // NaN would be sent as null, which means a token without an end. The service refuses 0, and names the rule.
    creation.mutate({ label, scopes, surface: use, budgets: budgetsOf(limits), ...(!isEndless && { expiresDays: Number(days) || 0 }) });
  }

  if (creation.data) return <Created created={creation.data} use={use} />;
  const { error } = creation;
  const scopeProblem = problemAt(error, "scopes", "Scopes");
  return (
    <section className={shared.section} aria-labelledby="section-title">
      <Link href="/settings/tokens" className={styles.back}>
        <Icon name="back" size={15} />
        Tokens
      </Link>
      <h2 id="section-title">New token</h2>
      <form className={shared.form} onSubmit={submit} noValidate>
        <Field label="Label" hint="What it does on a canvas appears under this name." problem={problemAt(error, "label", "The label")}>
          {(control) => <input {...control} autoFocus dir="auto" autoComplete="off" placeholder="Campaign agent" value={label} onChange={({ target }) => setLabel(target.value)} />}
        </Field>
        <Field label="Used by">
          {(control) => (
            <select {...control} value={use} onChange={({ target }) => setUse(target.value as Use)}>
              {Object.entries(USES).map(([key, name]) => (
                <option key={key} value={key}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </Field>
        <fieldset className={styles.scopeSet} aria-describedby={scopeProblem === undefined ? undefined : "scope-problem"}>
          <legend>What it may do</legend>
          <div className={styles.presets} role="group" aria-label="Common choices">
            {PRESETS.map((preset) => (
              <button key={preset.name} type="button" aria-pressed={presetOf(scopes) === preset} onClick={() => setChosen([...preset.scopes])}>
                {preset.name}
              </button>
            ))}
          </div>
          <ul>
            {ALL_SCOPES.map((scope) => (
              <ScopeBox key={scope} scope={scope} scopes={scopes} chosen={chosen} choose={setChosen} />
            ))}
          </ul>
          {scopeProblem !== undefined && <Wrong id="scope-problem">{scopeProblem}</Wrong>}
        </fieldset>
        <LimitFields limits={limits} change={setLimits} error={error} />
        <div className={styles.expiry}>
          <Field label="Expires after, in days" hint="1 to 90. Afterwards it is refused." problem={problemAt(error, "expiresDays", "The number of days")}>
            {(control) => <input {...control} inputMode="numeric" autoComplete="off" disabled={isEndless} value={isEndless ? "" : days} onChange={({ target }) => setDays(target.value)} />}
          </Field>
          <label className={styles.tick}>
            <input type="checkbox" checked={isEndless} onChange={({ target }) => setIsEndless(target.checked)} />
            <span>Does not expire</span>
          </label>
        </div>
        {isBeyond(error, ["label", "scopes", "expiresDays", "budgets"]) && <Notice error={error} />}
        <div className={shared.buttons}>
          <Button look="primary" type="submit" isBusy={creation.isPending}>
            {creation.isPending ? "Creating…" : "Create token"}
          </Button>
          <Link href="/settings/tokens" className={`${parts.button} ${parts.plain}`}>
            Cancel
          </Link>
        </div>
      </form>
    </section>
  );
}

interface ScopeBoxProps {
  scope: Scope;
  scopes: Scope[];
  chosen: Scope[];
  choose: (scopes: Scope[]) => void;
}

/** A scope that another one needs is ticked and cannot be taken away before that one. */
function ScopeBox({ scope, scopes, chosen, choose }: ScopeBoxProps) {
  const dependents = neededBy(scope, scopes);
  const id = `scope-${scope}`;
  return (
    <li>
      <label className={styles.tick}>
        <input
          type="checkbox"
          aria-describedby={id}
          checked={scopes.includes(scope)}
          disabled={dependents.length > 0}
          onChange={({ target }) => choose(target.checked ? [...chosen, scope] : chosen.filter((one) => one !== scope))}
        />
        <code>{scope}</code>
      </label>
      <p id={id}>
        {SCOPES[scope].grants}.{dependents.length > 0 && <span className={styles.needed}> Needed by {dependents.join(", ")}.</span>}
      </p>
    </li>
  );
}

/** The one time that the secret is shown. */
function Created({ created: { token, secret }, use }: { created: TokenCreated; use: Use }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const [isCopied, setIsCopied] = useState(false);
  useEffect(() => {
    scrollTo(0, 0);
    heading.current?.focus({ preventScroll: true });
  }, []);
  useEffect(() => {
    if (isCopied) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isCopied]);
  const { origin } = location;
  const groups: Record<Use, { title: string; lines: TokenLine[] }> = {
    tool: { title: "Tool adapter", lines: toolLines(origin, secret) },
    cli: { title: "Command line", lines: commandLines(origin, secret) },
    api: { title: "HTTP", lines: requestLines(origin, secret) },
  };
  const order = [use, ...(Object.keys(groups) as Use[]).filter((key) => key !== use)];
  return (
    <section className={shared.section} aria-labelledby="section-title">
      <h2 id="section-title" ref={heading} tabIndex={-1}>
        Token <bdi>{token.label}</bdi>
      </h2>
      <p className={styles.once}>
        <Icon name="finding" />
        This is the only time that it is shown. Copy it now, and keep it where passwords are kept.
      </p>
      <Copyable label="Token" text={secret} onCopy={() => setIsCopied(true)} />
      {order.map((key) => (
        <div key={key} className={styles.lines}>
          <h3>{groups[key].title}</h3>
          {groups[key].lines.map(({ label, hint, text }) => (
            <div key={label}>
              <p className={shared.lead}>{hint}</p>
              <Copyable label={label} text={text} {...(text.includes(secret) && { onCopy: () => setIsCopied(true) })} />
            </div>
          ))}
        </div>
      ))}
      <div className={shared.buttons}>
        <Link href="/settings/tokens" className={`${parts.button} ${parts.primary}`}>
          Done
        </Link>
        <a className={`${parts.button} ${parts.plain}`} href="/docs">
          API documentation
        </a>
      </div>
    </section>
  );
}
