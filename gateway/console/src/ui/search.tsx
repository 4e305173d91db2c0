/** A field that searches in what the page shows, and a choice of what it shows. */
import { type ComponentProps, useId } from "react";
import { Icon } from "./parts.tsx";
import styles from "./search.module.css";

interface SearchProps extends Omit<ComponentProps<"input">, "onChange"> {
  label: string;
  value: string;
  set: (value: string) => void;
  /** Beside a heading, or in a panel of the board. */
  isSmall?: boolean;
}

export function Search({ label, set, isSmall = false, className, ...rest }: SearchProps) {
  return (
    <label className={[styles.search, isSmall ? styles.small : styles.large, className].filter(Boolean).join(" ")}>
      <Icon name="search" size={isSmall ? 16 : 18} />
      <input type="search" aria-label={label} placeholder="Search" onChange={({ target }) => set(target.value)} {...rest} />
    </label>
  );
}

interface ChoiceProps {
  label: string;
  /** What it says while nothing is chosen. */
  all: string;
  choices: readonly (readonly [string, string])[];
  value: string;
  set: (value: string) => void;
}

/** What is shown, of many choices: at first, all. */
export function Choice({ label, all, choices, value, set }: ChoiceProps) {
  return (
    <select aria-label={label} value={value} data-set={value !== "" || undefined} onChange={({ target }) => set(target.value)}>
      <option value="">{all}</option>
      {choices.map(([key, words]) => (
        <option key={key} value={key}>
          {words}
        </option>
      ))}
    </select>
  );
}

export function Filters<Name extends string>({ label = "Show", names, value, set }: { label?: string; names: readonly (readonly [Name, string])[]; value: Name; set: (name: Name) => void }) {
  const group = useId();
  return (
    <fieldset className={styles.filters}>
      <legend className="unseen">{label}</legend>
      {names.map(([name, label]) => (
        <label key={name}>
          <input type="radio" name={group} checked={name === value} onChange={() => set(name)} />
          <span>{label}</span>
        </label>
      ))}
    </fieldset>
  );
}
