/** Fields of the forms that start work with a model. */
import { useId } from "react";
import type { Model } from "../api.ts";
import { Problem } from "../errors.ts";
import { count, number } from "../format.ts";
import { Unanswered } from "../library/unanswered.tsx";
import type { Queue } from "../queues.ts";
import { Button, messageOf } from "../ui/parts.tsx";
import { QueueHint } from "../ui/queues.tsx";
import styles from "./inspector.module.css";
import { MOST_PROMPT } from "./making.ts";

export const priceOf = (credits: number): string => (credits === 0 ? "free" : count(credits, "credit"));

export function ModelField({ models, model, set }: { models: Model[]; model: Model; set: (id: string) => void }) {
  return (
    <label className={styles.field}>
      <span>Model</span>
      <select value={model.id} onChange={({ target }) => set(target.value)}>
        {models.map(({ id, name, connectionName, creditCost, beta }) => (
          <option key={id} value={id}>
            {name} · {connectionName} · {priceOf(creditCost)}
            {beta && " · beta"}
          </option>
        ))}
      </select>
    </label>
  );
}

export function PromptField({ label, value, isRequired, set }: { label: string; value: string; isRequired: boolean; set: (text: string) => void }) {
  const hint = useId();
  const isFull = value.length >= MOST_PROMPT;
  return (
    <>
      <label className={styles.field}>
        <span>{label}</span>
        <textarea rows={5} maxLength={MOST_PROMPT} dir="auto" required={isRequired} aria-describedby={isFull ? hint : undefined} value={value} onChange={({ target }) => set(target.value)} />
      </label>
      {isFull && (
        <p id={hint} className={styles.hint}>
          A prompt holds {number(MOST_PROMPT)} characters. The rest of a longer text is left out.
        </p>
      )}
    </>
  );
}

/** Says what does not follow the selection, and ends that. */
export function Stays({ what, end }: { what: string; end: () => void }) {
  return (
    <div className={styles.draft}>
      <p>{what}, whatever is selected.</p>
      <Button onClick={end}>Use the selection</Button>
    </div>
  );
}

/** One of the values that a model offers, or its default. Numbers are in their order. */
export function Choice({ label, value, options, set }: { label: string; value: string; options: string[]; set: (value: string) => void }) {
  if (options.length === 0) return null;
  const sorted = options.every((option) => Number.isFinite(Number(option))) ? options.toSorted((a, b) => Number(a) - Number(b)) : options;
  return (
    <label className={styles.field}>
      <span>{label}</span>
      <select value={options.includes(value) ? value : ""} onChange={({ target }) => set(target.value)}>
        <option value="">the model's default</option>
        {sorted.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    </label>
  );
}

interface StartProps {
  /** In which queue the work is done. */
  queue: Queue;
  price: number;
  /** What the work may cost at most, as it was entered; empty for the price. */
  cap: string;
  setCap: (cap: string) => void;
  balance: number | undefined;
  isStarting: boolean;
  isPossible: boolean;
  error: unknown;
}

/** Why a start was refused, the spending cap, and the button with the price. */
export function Start({ queue, price, cap, setCap, balance, isStarting, isPossible, error }: StartProps) {
  return (
    <>
      {error !== undefined && (
        <p className={styles.problem} role="alert">
          {error instanceof Problem && error.fields[0] ? `${error.fields[0].field} ${error.fields[0].message}` : messageOf(error)}
        </p>
      )}
      <Unanswered />
      <label className={styles.cap}>
        <span>Spend at most</span>
        <input type="number" min={0} step={1} inputMode="numeric" placeholder={String(price)} value={cap} onChange={({ target }) => setCap(target.value)} />
        <span>credits</span>
      </label>
      <QueueHint queues={[queue]} />
      <Button look="primary" type="submit" isBusy={isStarting} disabled={!isPossible}>
        {isStarting ? "Starting…" : `Make · ${priceOf(price)}`}
      </Button>
      {price > 0 && balance !== undefined && <p className={styles.hint}>{count(balance, "credit")} left</p>}
    </>
  );
}
