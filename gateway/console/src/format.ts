/** Numbers and times as people read them. */
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "long" });
const DATE = new Intl.DateTimeFormat("en", { dateStyle: "medium" });
const MOMENT = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });
const NUMBER = new Intl.NumberFormat("en");

/** "3 minutes ago"; after a month, the date. */
export function ago(time: string | number, now = Date.now()): string {
  const seconds = Math.max(0, (now - new Date(time).getTime()) / 1000);
  if (seconds < 45) return "just now";
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return RELATIVE.format(-minutes, "minute");
  const hours = Math.round(seconds / 3600);
  if (hours < 24) return RELATIVE.format(-hours, "hour");
  const days = Math.round(seconds / 86_400);
  return days <= 30 ? RELATIVE.format(-days, "day") : day(time);
}

/** "in 3 minutes". */
export function until(time: string | number, now = Date.now()): string {
  const seconds = Math.max(0, (new Date(time).getTime() - now) / 1000);
  if (seconds < 60) return RELATIVE.format(Math.round(seconds), "second");
  if (seconds < 3600) return RELATIVE.format(Math.round(seconds / 60), "minute");
  if (seconds < 2 * 86_400) return RELATIVE.format(Math.round(seconds / 3600), "hour");
  return RELATIVE.format(Math.round(seconds / 86_400), "day");
}

export const day = (time: string | number): string => DATE.format(new Date(time));

/** The date and the time of day. */
export const moment = (time: string | number): string => MOMENT.format(new Date(time));

export const number = (value: number): string => NUMBER.format(value);

/** "1 node", "1,234 nodes". */
export const count = (number: number, noun: string, plural = `${noun}s`): string =>
  `${NUMBER.format(number)} ${number === 1 ? noun : plural}`;

/** What the account is charged. Somebody else may be paid, such as the provider of an own key: so it is never "free". */
export const priceOf = (credits: number): string => (credits === 0 ? "no credits" : count(credits, "credit"));

const UNITS = ["byte", "kilobyte", "megabyte", "gigabyte"].map(
  (unit) => new Intl.NumberFormat("en", { style: "unit", unit, unitDisplay: unit === "byte" ? "long" : "short", maximumSignificantDigits: 3 }),
);

/** "512 bytes", "1.84 MB". */
export function bytes(number: number): string {
  const power = Math.min(Math.floor(Math.log10(Math.max(number, 1)) / 3), UNITS.length - 1);
  return UNITS[power]?.format(number / 1000 ** power) ?? String(number);
}

/** "340 ms", "5.3 s", "2 min 5 s". */
export function lasted(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min${whole % 60 === 0 ? "" : ` ${whole % 60} s`}`;
}

/** The text with a small first letter, as within a sentence. */
export const lowered = (text: string): string => `${text[0]?.toLowerCase() ?? ""}${text.slice(1)}`;

/** The first `most` characters, as the service counts them: two surrogates that belong together are one. */
export function firstOf(text: string, most: number): string {
  let [count, end] = [0, 0];
  for (const { length } of text) {
    if (count === most) break;
    count += 1;
    end += length;
  }
  return text.slice(0, end);
}

/** A percentage without needless digits. */
export const percent = (part: number): string => `${part < 0.1 ? (part * 100).toFixed(1) : Math.round(part * 100)} %`;
