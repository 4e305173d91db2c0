/** Spending limits of a token, an app or an account: what the service calls budgets. */
import { count, number, until } from "../../format.ts";
import type { Budget, BudgetState } from "../../person.ts";

/** A limit while it is typed. */
export interface Limit {
  key: number;
  max: string;
  unit: Budget["unit"];
  period: Budget["period"];
}

export const UNITS: Record<Budget["unit"], string> = { credits: "credits", outputs: "results" };
export const PERIODS: Record<Budget["period"], string> = { day: "a day", month: "a month", total: "in total" };

const PRESENT: Record<Budget["period"], string> = { day: "today", month: "this month", total: "in total" };
const ALL = (Object.keys(PERIODS) as Budget["period"][]).flatMap((period) => (Object.keys(UNITS) as Budget["unit"][]).map((unit) => ({ unit, period })));

/** The most limits of a token or an app: each unit and period once. */
export const MOST = ALL.length;

let keys = 0;

/** The next limit to type: a unit and period that the others do not have. */
export function added(limits: Limit[]): Limit[] {
  const free = ALL.find(({ unit, period }) => !limits.some((one) => one.unit === unit && one.period === period)) ?? ALL[0];
  return free === undefined ? limits : [...limits, { key: ++keys, max: "", ...free }];
}

/** Limits that are set, to change them. */
export const limitsOf = (budgets: Budget[]): Limit[] => budgets.map(({ max, unit, period }) => ({ key: ++keys, max: String(max), unit, period }));

/** The number that is typed. NaN is sent as null, which the service refuses by the name of the field; an empty text would be 0. */
const maxOf = ({ max }: Limit): number => (max.trim() === "" ? Number.NaN : Number(max));

/** Whether what is typed is no number of credits or results. */
export const isNoNumber = (limit: Limit): boolean => !Number.isSafeInteger(maxOf(limit)) || maxOf(limit) < 0;

/** What is sent. */
export const budgetsOf = (limits: Limit[]): Budget[] => limits.map((limit) => ({ max: maxOf(limit), unit: limit.unit, period: limit.period }));

/** "12 of 100 credits this month". */
export const spentOf = ({ spent, max, unit, period }: BudgetState): string =>
  `${number(spent)} of ${count(max, unit === "credits" ? "credit" : "result")} ${PRESENT[period]}`;

/** "88 left, starts again in 3 days". */
export function leftOf({ left, resetsAt }: BudgetState, now = Date.now()): string {
  const rest = left === 0 ? "nothing left" : `${number(left)} left`;
  return resetsAt === undefined ? rest : `${rest}, starts again ${until(resetsAt, now)}`;
}

/** How full a limit is, from 0 to 1. */
export const fullness = ({ spent, max }: BudgetState): number => (max === 0 ? 1 : Math.min(1, spent / max));
