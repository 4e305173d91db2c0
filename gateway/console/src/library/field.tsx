/** A field of a form with its label and what is wrong with it. */
import type { ReactNode } from "react";
import sheet from "./sheet.module.css";

interface Shared {
  id: string;
  "aria-invalid": boolean;
  "aria-describedby": string | undefined;
}

export function Field({ label, id, problem, children }: { label: string; id: string; problem?: string | undefined; children: (shared: Shared) => ReactNode }) {
  return (
    <div className={sheet.field}>
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-invalid": problem !== undefined, "aria-describedby": problem === undefined ? undefined : `${id}-problem` })}
      {problem !== undefined && (
        <p id={`${id}-problem`} className="problem">
          {problem}
        </p>
      )}
    </div>
  );
}
