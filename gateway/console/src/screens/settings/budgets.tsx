/** Spending limits as a person sees and changes them. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type SubmitEvent, useId, useState } from "react";
import type { Budget, BudgetState } from "../../person.ts";
import { Modal } from "../../ui/dialog.tsx";
import { isBeyond, problemAt, Wrong } from "../../ui/field.tsx";
import { Button, Icon, Notice } from "../../ui/parts.tsx";
import { added, budgetsOf, fullness, isNoNumber, leftOf, type Limit, limitsOf, MOST, PERIODS, spentOf, UNITS } from "./budgets.ts";
import styles from "./budgets.module.css";
import shared from "./settings.module.css";

/** What is spent of each limit. */
export function BudgetLines({ label, budgets }: { label: string; budgets: BudgetState[] }) {
  return (
    <ul className={styles.lines} aria-label={label}>
      {budgets.map((budget) => (
        <li key={`${budget.unit} ${budget.period}`} data-full={budget.left === 0 || undefined}>
          <span className={styles.meter} aria-hidden="true">
            <span style={{ width: `${fullness(budget) * 100}%` }} />
          </span>
          <span>{spentOf(budget)}</span>
          <span className={styles.left} title={budget.resetsAt}>
            {leftOf(budget)}
          </span>
        </li>
      ))}
    </ul>
  );
}

interface LimitFieldsProps {
  limits: Limit[];
  change: (limits: Limit[]) => void;
  /** What the service refused. */
  error: unknown;
}

/** The limits of a token or an app, one in a line. */
export function LimitFields({ limits, change, error }: LimitFieldsProps) {
  const ids = useId();
  const set = (key: number, more: Partial<Limit>) => change(limits.map((limit) => (limit.key === key ? { ...limit, ...more } : limit)));
  return (
    <fieldset className={styles.limits}>
      <legend>What it may spend</legend>
      <p className={styles.hint}>
        {limits.length === 0 && "Without a limit, all the credit of the account. "}
        Credits are what the service charges. Results are the images, videos and texts that models make for it, also those paid with your own keys.
      </p>
      {limits.map((limit, index) => {
        const { key, max, unit, period } = limit;
        const name = `Limit ${index + 1}`;
        const isWrong = error !== null && isNoNumber(limit);
        const problem = isWrong ? `${name} must be a whole number, 0 or more.` : problemAt(error, `budgets[${index}]`, name);
        return (
          <div key={key} className={styles.limit} role="group" aria-label={name}>
            <input
              aria-label={`${name}: at most`}
              aria-invalid={problem !== undefined}
              aria-describedby={problem === undefined ? undefined : `${ids}-${key}`}
              autoFocus={max === ""}
              inputMode="numeric"
              autoComplete="off"
              placeholder="100"
              value={max}
              onChange={({ target }) => set(key, { max: target.value })}
            />
            <select aria-label={`${name}: of what`} value={unit} onChange={({ target }) => set(key, { unit: target.value as Limit["unit"] })}>
              {Object.entries(UNITS).map(([value, words]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </select>
            <select aria-label={`${name}: how long`} value={period} onChange={({ target }) => set(key, { period: target.value as Limit["period"] })}>
              {Object.entries(PERIODS).map(([value, words]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </select>
            <Button look="quiet" aria-label={`Remove limit ${index + 1}`} onClick={() => change(limits.filter((one) => one.key !== key))}>
              <Icon name="close" size={16} />
            </Button>
            {problem !== undefined && <Wrong id={`${ids}-${key}`}>{problem}</Wrong>}
          </div>
        );
      })}
      {limits.length < MOST && (
        <Button className={styles.add} onClick={() => change(added(limits))}>
          <Icon name="plus" size={16} />
          Add a limit
        </Button>
      )}
    </fieldset>
  );
}

interface ChangeLimitsProps {
  name: string;
  budgets: BudgetState[];
  save: (budgets: Budget[]) => Promise<unknown>;
  /** The list that shows them. */
  list: "tokens" | "apps";
  close: () => void;
}

/** Changes the limits of a token or an app. */
export function ChangeLimits({ name, budgets, save, list, close }: ChangeLimitsProps) {
  const queries = useQueryClient();
  const [limits, setLimits] = useState(() => limitsOf(budgets));
  const change = useMutation({
    mutationFn: () => save(budgetsOf(limits)),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: [list] });
      close();
    },
  });

  function submit(event: SubmitEvent) {
    event.preventDefault();
    if (!change.isPending) change.mutate();
  }

  return (
    <Modal title={`Limits of “${name}”`} close={close}>
      <form className={shared.form} onSubmit={submit} noValidate>
        <LimitFields limits={limits} change={setLimits} error={change.error} />
        <p className={styles.hint}>They hold from its next start. What it has spent stays counted, and work that it has started goes on.</p>
        {isBeyond(change.error, ["budgets"]) && <Notice error={change.error} />}
        <div className={shared.buttons}>
          <Button look="primary" type="submit" isBusy={change.isPending}>
            {change.isPending ? "Saving…" : "Save limits"}
          </Button>
          <Button onClick={close}>Cancel</Button>
        </div>
      </form>
    </Modal>
  );
}
