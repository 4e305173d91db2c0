/** Fields of forms: a label, a hint, and what the service said of the value. */
import { type ReactNode, useId, useState } from "react";
import { Problem } from "../errors.ts";
import styles from "./field.module.css";
import { Button, Icon } from "./parts.tsx";

interface Control {
  id: string;
  "aria-describedby": string | undefined;
  "aria-invalid": boolean;
}

interface FieldProps {
  label: string;
  hint?: ReactNode;
  /** What is wrong with the value. */
  problem?: string | undefined;
  children: (control: Control) => ReactNode;
}

export function Field({ label, hint, problem, children }: FieldProps) {
  const id = useId();
  const described = [hint !== undefined && `${id}-hint`, problem !== undefined && `${id}-problem`].filter(Boolean).join(" ");
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": described || undefined, "aria-invalid": problem !== undefined })}
      {problem !== undefined && <Wrong id={`${id}-problem`}>{problem}</Wrong>}
      {hint !== undefined && (
        <p id={`${id}-hint`} className="hint">
          {hint}
        </p>
      )}
    </div>
  );
}

/** What is wrong with a field. */
export const Wrong = ({ id, children }: { id?: string; children: ReactNode }) => (
  <p id={id} className="problem" role="alert">
    {children}
  </p>
);

/** What the service said of a field, as a sentence: "Label must have 1 to 80 characters." */
export function problemAt(error: unknown, field: string, label: string): string | undefined {
  const found = error instanceof Problem ? error.fields.find((one) => one.field === field || one.field.startsWith(`${field}[`)) : undefined;
  return found && `${label} ${found.message}.`;
}

/** Whether an error is not about one of these fields, so that it has to be shown apart from them. */
export const isBeyond = (error: unknown, fields: string[]): boolean => error !== null && fields.every((field) => problemAt(error, field, "") === undefined);

/** Text to copy: a command, or a secret. */
export function Copyable({ label, text, onCopy }: { label: string; text: string; onCopy?: () => void }) {
  const [state, setState] = useState<"copied" | "refused">();
  async function copy() {
    const isCopied = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
    setState(isCopied ? "copied" : "refused");
    if (isCopied) onCopy?.();
  }
  return (
    <div className={styles.copyable} role="group" aria-label={label}>
      <pre tabIndex={0} role="region" aria-label={`Text of ${label.toLowerCase()}`}>
        {text}
      </pre>
      <Button aria-label={`Copy ${label.toLowerCase()}`} onClick={() => void copy()}>
        <Icon name={state === "copied" ? "check" : "copy"} size={15} />
        {state === "copied" ? "Copied" : "Copy"}
      </Button>
      <span className="unseen" role="status">
        {state === "copied" && `${label} copied`}
      </span>
      {state === "refused" && <p className="hint">The browser does not let this page copy. Select the text instead.</p>}
    </div>
  );
}
