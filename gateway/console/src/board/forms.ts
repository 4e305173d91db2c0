/** Forms that are made from the parameters of an Action. */
import type { Action, Parameter } from "../api.ts";
import type { FieldProblem } from "../errors.ts";

/** What a person entered, as text, by parameter. */
export type Entries = Record<string, string>;

export const entryOf = ({ default: value }: Parameter): string => (value === undefined ? "" : String(value));

/** The parameters to send: what was entered and differs from the default. */
export function paramsOf(action: Action, entries: Entries): Record<string, string | number> {
  const params: Record<string, string | number> = {};
  for (const parameter of action.parameters) {
    const entry = (entries[parameter.id] ?? entryOf(parameter)).replaceAll("\r\n", "\n");
    if (entry === entryOf(parameter) || (entry === "" && !parameter.required)) continue;
    const option = parameter.options?.find(({ value }) => String(value) === entry);
    params[parameter.id] = option?.value ?? (parameter.type === "number" ? Number(entry) : entry);
  }
  return params;
}

/** The refusals of a start by parameter, and those that concern something else under the empty name. */
export function problemsOf(fields: FieldProblem[]): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const { field, message } of fields) {
    const name = /^params\.(\w+)/.exec(field)?.[1] ?? "";
    const text = name === "" ? `${field} ${message}` : message;
    problems[name] = problems[name] === undefined ? text : `${problems[name]}; ${text}`;
  }
  return problems;
}

/** Whether a parameter is a place of the nine in and around a box. */
export const isAnchor = ({ id, options }: Parameter): boolean => id === "anchor" && options?.length === 9;
