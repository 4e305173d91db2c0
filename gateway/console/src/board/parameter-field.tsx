/** The field of a parameter of an Action. */
import type { KeyboardEvent } from "react";
import type { Parameter } from "../api.ts";
import { isAnchor } from "./forms.ts";
import styles from "./inspector.module.css";

/** In a field for a text, Enter starts, and with Shift it begins a line. */
function submitOnEnter(event: KeyboardEvent<HTMLTextAreaElement>): void {
  if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
  event.preventDefault();
  event.currentTarget.form?.requestSubmit();
}

export function ParameterField({ parameter, value, problem, set }: { parameter: Parameter; value: string; problem: string | undefined; set: (value: string) => void }) {
  const { id, title, description, type, required, integer, min, max, step, maxLength, options } = parameter;
  const hint = problem === undefined ? undefined : `problem-${id}`;
  const shared = {
    value,
    required,
    title: description,
    "aria-invalid": problem !== undefined,
    "aria-describedby": hint,
    onChange: ({ target }: { target: { value: string } }) => set(target.value),
  };
  if (isAnchor(parameter)) {
    return (
      <fieldset className={styles.anchors}>
        <legend title={description}>{title}</legend>
        <div>
          {options?.map((option) => (
            <label key={option.value} title={option.label}>
              <input type="radio" name={id} value={option.value} checked={value === String(option.value)} onChange={shared.onChange} aria-label={option.label} />
            </label>
          ))}
        </div>
      </fieldset>
    );
  }
  const field = (
    <label className={styles.field}>
      <span>{title}</span>
      {type === "select" ? (
        <select {...shared}>
          {options?.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      ) : type === "text" && (maxLength ?? 0) > 100 ? (
        <textarea {...shared} rows={3} maxLength={maxLength} dir="auto" onKeyDown={submitOnEnter} />
      ) : type === "number" ? (
        <input {...shared} type="number" min={min} max={max} step={integer ? (step ?? 1) : "any"} />
      ) : (
        <input {...shared} type="text" maxLength={maxLength} list={options ? `options-${id}` : undefined} dir="auto" />
      )}
      {problem !== undefined && (
        <span id={hint} className="problem">
          {problem}
        </span>
      )}
    </label>
  );
  if (type !== "text" || !options) return field;
  return (
    <>
      {field}
      <datalist id={`options-${id}`}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </datalist>
    </>
  );
}

