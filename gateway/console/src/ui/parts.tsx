/** Parts that all screens share. */
import type { ComponentProps, ReactNode } from "react";
import { Problem } from "../errors.ts";
import { errorWords } from "../words.ts";
import { GUIDES } from "./guides.ts";
import styles from "./parts.module.css";

const ICONS = {
  back: "M15 5l-7 7 7 7",
  next: "M9 5l7 7-7 7",
  search: "M10.5 17a6.5 6.5 0 1 1 0-13 6.5 6.5 0 0 1 0 13zM15.5 15.5L20 20",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V5a1 1 0 0 1 1-1h4M20 9V5a1 1 0 0 0-1-1h-4M4 15v4a1 1 0 0 0 1 1h4M20 15v4a1 1 0 0 1-1 1h-4",
  outline: "M4 6h16M8 12h12M8 18h12M4 12h.01M4 18h.01",
  finding: "M12 9v4M12 16.5h.01M10.6 4.6L3.2 17.5A1.6 1.6 0 0 0 4.6 20h14.8a1.6 1.6 0 0 0 1.4-2.5L13.4 4.6a1.6 1.6 0 0 0-2.8 0z",
  copy: "M9 8h10a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H9a1 1 0 0 1-1-1V9a1 1 0 0 1 1-1zM16 8V5a1 1 0 0 0-1-1H5a1 1 0 0 0-1 1v10a1 1 0 0 0 1 1h3",
  trash: "M5 7h14M10 7V5a1 1 0 0 1 1-1h2a1 1 0 0 1 1 1v2M7 7l.8 12a1 1 0 0 0 1 1h6.4a1 1 0 0 0 1-1L17 7M10.5 11v5M13.5 11v5",
  share: "M9 12a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM21 6a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM21 18a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM8.7 10.7l6.6-3.4M8.7 13.3l6.6 3.4",
  credit: "M12 10.5c4.4 0 8-1.3 8-3s-3.6-3-8-3-8 1.3-8 3 3.6 3 8 3zM4 7.5v4.5c0 1.7 3.6 3 8 3s8-1.3 8-3V7.5M4 12v4.5c0 1.7 3.6 3 8 3s8-1.3 8-3V12",
  check: "M5 12.5l4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6L6 18",
  chevron: "M7 10l5 5 5-5",
  cursor: "M5 4l6 16 2.4-6.6L20 11z",
  hand: "M8 12V6.5a1.5 1.5 0 0 1 3 0V11M11 11V5a1.5 1.5 0 0 1 3 0v6M14 11V6.5a1.5 1.5 0 0 1 3 0V14c0 4-2.2 6.5-5.5 6.5-3 0-4.2-1.6-5.4-4L4.6 13c-.6-1.3 1-2.4 2-1.4L8 13",
  video: "M5 5h14a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V6a1 1 0 0 1 1-1zM10 9l5 3-5 3z",
  text: "M5 7V5h14v2M12 5v14M9 19h6",
  note: "M5 4h14a1 1 0 0 1 1 1v9l-6 6H5a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1zM14 20v-5a1 1 0 0 1 1-1h5",
  section: "M4 8V5a1 1 0 0 1 1-1h3M16 4h3a1 1 0 0 1 1 1v3M20 16v3a1 1 0 0 1-1 1h-3M8 20H5a1 1 0 0 1-1-1v-3M9 9h6v6H9z",
  upload: "M12 16V5M7.5 9L12 4.5 16.5 9M4 16v3a1 1 0 0 0 1 1h14a1 1 0 0 0 1-1v-3",
  download: "M12 5v11M7.5 12L12 16.5 16.5 12M4 16v3a1 1 0 0 0 1 1h14a1 1 0 0 0 1-1v-3",
  export: "M12 15V4.5M8 8.5L12 4.5l4 4M8 11H6a1 1 0 0 0-1 1v7a1 1 0 0 0 1 1h12a1 1 0 0 0 1-1v-7a1 1 0 0 0-1-1h-2",
  play: "M8 5.5v13l11-6.5z",
  undo: "M8 5L4 9l4 4M4 9h10a5.5 5.5 0 0 1 0 11H9",
  redo: "M16 5l4 4-4 4M20 9H10a5.5 5.5 0 0 0 0 11h5",
  keys: "M9 9.5a3 3 0 1 1 4.2 2.7c-.8.4-1.2.9-1.2 1.8M12 17.5h.01",
  clock: "M12 20a8 8 0 1 1 0-16 8 8 0 0 1 0 16zM12 8v4.5l3 1.8",
  sliders: "M4 8h9M17 8h3M13 8a2 2 0 1 0 4 0 2 2 0 0 0-4 0M4 16h3M11 16h9M7 16a2 2 0 1 0 4 0 2 2 0 0 0-4 0",
  recipe: "M4 5h7v5H4zM13 14h7v5h-7zM7.5 10v3.5a3 3 0 0 0 3 3H13",
  connection: "M7 7a2 2 0 1 1 0-4 2 2 0 0 1 0 4zM17 21a2 2 0 1 1 0-4 2 2 0 0 1 0 4zM7 7v4a4 4 0 0 0 4 4h2a4 4 0 0 1 4 4",
  agent: "M12 3l2.2 6.8L21 12l-6.8 2.2L12 21l-2.2-6.8L3 12l6.8-2.2z",
  heart: "M12 20s-7.5-4.7-7.5-10.2A4.2 4.2 0 0 1 12 7.2a4.2 4.2 0 0 1 7.5 2.6C19.5 15.3 12 20 12 20z",
  image: "M5 4h14a1 1 0 0 1 1 1v14a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1zM4 16l4.5-4.5 4 4L15 13l5 5M15 8.5h.01",
  look: "M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 15a3 3 0 1 1 0-6 3 3 0 0 1 0 6z",
  compare: "M4 5h16v14H4zM12 3v18M15.5 10l2 2-2 2M8.5 10l-2 2 2 2",
  filter: "M4 6h16M7 12h10M10 18h4",
  info: "M12 20a8 8 0 1 1 0-16 8 8 0 0 1 0 16zM12 11v5M12 8h.01",
  star: "M12 4l2.4 5 5.6.8-4 3.9.9 5.5-4.9-2.6-4.9 2.6.9-5.5-4-3.9 5.6-.8z",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  edit: "M5 19l1-4L16.5 4.5l3 3L9 18zM14 7l3 3",
  brush: "M20 4l-9.5 8.5 2 2L21 5zM9.5 13.5c-3.5.2-3 4.5-6 5.5 3 1.5 7.5 1 8-3.5",
  crop: "M7 3v14h14M3 7h14v14",
  ratio: "M4 7h16v10H4zM8 12h.01M12 12h.01M16 12h.01",
  resize: "M4 4h16v16H4zM9 15l6-6M11 9h4v4",
  turn: "M5 12a7 7 0 1 1 2 5M5 19v-4h4",
  arrow: "M4 12h15M13 6l6 6-6 6",
  mirror: "M12 4v16M9 7L3 17h6zM15 7l6 10h-6z",
  color: "M12 4s6 6.4 6 10.2a6 6 0 0 1-12 0C6 10.4 12 4 12 4z",
  layers: "M12 4l8 4.5-8 4.5-8-4.5zM4 14l8 4.5 8-4.5",
  select: "M4 4h3M10.5 4h3M17 4h3v3M20 10.5v3M20 17v3h-3M13.5 20h-3M7 20H4v-3M4 13.5v-3M4 7V4",
  row: "M4 8h4v8H4zM10 8h4v8h-4zM16 8h4v8h-4z",
  column: "M8 4h8v4H8zM8 10h8v4H8zM8 16h8v4H8z",
  grid: "M5 5h5v5H5zM14 5h5v5h-5zM5 14h5v5H5zM14 14h5v5h-5z",
  tidy: "M5 5h5v5H5zM14 5h5v5h-5zM5 14h5v5H5zM16.5 13.5v6M13.5 16.5h6",
  "align-left": "M4 4v16M8 7h11v3H8zM8 14h7v3H8z",
  "align-center": "M12 4v16M6 7h12v3H6zM8 14h8v3H8z",
  "align-right": "M20 4v16M5 7h11v3H5zM9 14h7v3H9z",
  "align-top": "M4 4h16M7 8h3v11H7zM14 8h3v7h-3z",
  "align-middle": "M4 12h16M7 6h3v12H7zM14 8h3v8h-3z",
  "align-bottom": "M4 20h16M7 5h3v11H7zM14 9h3v7h-3z",
  "distribute-x": "M4 4v16M20 4v16M10 7h4v10h-4z",
  "distribute-y": "M4 4h16M4 20h16M7 10h10v4H7z",
  "same-height": "M4 5h16M4 19h16M12 8v8M9.5 10.5L12 8l2.5 2.5M9.5 13.5L12 16l2.5-2.5",
  "same-width": "M5 4v16M19 4v16M8 12h8M10.5 9.5L8 12l2.5 2.5M13.5 9.5L16 12l-2.5 2.5",
  front: "M9 9h11v11H9zM4 15V4h11",
  "back-most": "M4 4h11v11H4zM20 9v11H9",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  larger: "M3 18L8 6l5 12M5 14h6M15 12h6M18 9v6",
  smaller: "M3 18L8 6l5 12M5 14h6M15 12h6",
  "text-start": "M4 6h16M4 11h10M4 16h13",
  "text-center": "M4 6h16M7 11h10M5.5 16h13",
  "text-end": "M4 6h16M10 11h10M7 16h13",
  "turn-around": "M4 9h14M14 5l4 4-4 4M20 15H6M10 11l-4 4 4 4",
} as const;

export type IconName = keyof typeof ICONS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg className={styles.icon} width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

export function Mark({ size = 28 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="#1f3fd6" />
      <path d="M13 12h2c4 0 2 8 6 8" fill="none" stroke="#aebcff" strokeWidth="2" strokeLinecap="round" />
      <rect x="5" y="8" width="9" height="8" rx="2.2" fill="#fff" />
      <rect x="19" y="16" width="8" height="8" rx="2.2" fill="#ffd84d" />
    </svg>
  );
}

interface ButtonProps extends ComponentProps<"button"> {
  look?: "primary" | "plain" | "quiet" | "danger";
  /** Whether what it does is under way, so that it does nothing now. A disabled button would lose the keyboard. */
  isBusy?: boolean;
}

/** A ref for a control that may go because it was used: the keyboard goes on in the dialog, panel or page around it. */
function keepKeyboard(control: HTMLElement | null): () => void {
  return () => {
    if (!control || document.activeElement !== control) return;
    const home = control.closest<HTMLElement>("dialog, aside, main");
    // Something else may take the keyboard, or the home may go as well.
    setTimeout(() => document.activeElement === document.body && home?.focus({ preventScroll: true }));
  };
}

export function Button({ look = "plain", isBusy = false, className, type = "button", onClick, ref = keepKeyboard, ...rest }: ButtonProps) {
  return (
    <button
      ref={ref}
      type={type}
      className={[styles.button, styles[look], className].filter(Boolean).join(" ")}
      aria-disabled={isBusy || undefined}
      onClick={isBusy ? (event) => event.preventDefault() : onClick}
      {...rest}
    />
  );
}

/** The first letter of a person's or agent's name, in a color of its own. */
export function Avatar({ name, size = 28 }: { name: string; size?: number }) {
  const hue = [...name].reduce((sum, letter) => (sum * 31 + (letter.codePointAt(0) ?? 0)) % 360, 7);
  return (
    <svg className={styles.avatar} width={size} height={size} viewBox="0 0 28 28" aria-hidden="true">
      <circle cx="14" cy="14" r="14" fill={`hsl(${hue} 52% 38%)`} />
      <text x="14" y="18.6" textAnchor="middle" fontSize="13" fontWeight="600" fill="#fff">
        {([...name][0] ?? "?").toUpperCase()}
      </text>
    </svg>
  );
}

/** A ref for what has to be seen: the current link of a bar that may be wider than the window, or details below it. */
export const intoView = (element: HTMLElement | null): void => element?.scrollIntoView({ block: "nearest", inline: "nearest" });

export function Waiting({ label }: { label: string }) {
  return (
    <div className={styles.page} role="status">
      <span className={styles.spinner} />
      <span className="unseen">{label}</span>
    </div>
  );
}

/** A page or panel without content: what it means, and what to do. */
export function Empty({ title, children, image }: { title: string; children?: ReactNode; image?: ReactNode }) {
  return (
    <div className={styles.page}>
      {image}
      <h2 className={styles.title}>{title}</h2>
      {children}
    </div>
  );
}

/** A failed request: what happened and what to do, another attempt, and for support what the service said and its request id. */
export function Failure({ title, error, retry }: { title: string; error: unknown; retry?: () => unknown }) {
  const code = error instanceof Problem ? error.code : undefined;
  const words = errorWords(code);
  return (
    <div className={styles.page} role="alert">
      <span className={styles.sign}>
        <Icon name="finding" size={24} />
      </span>
      <h2 className={styles.title}>{title}</h2>
      <p className={styles.text} dir="auto">
        {words ?? messageOf(error)}
      </p>
      {retry && <Button onClick={() => void retry()}>Try again</Button>}
      {words === undefined ? (
        <RequestId error={error} />
      ) : (
        <details className={styles.support}>
          <summary>Details for support</summary>
          <p dir="auto">{messageOf(error)}</p>
          <p>
            <a href={`${GUIDES.errors}#${code}`} target="_blank" rel="noreferrer">
              About this error
            </a>
          </p>
          <RequestId error={error} />
        </details>
      )}
    </div>
  );
}

/** A failure beside other content. */
export function Notice({ error }: { error: unknown }) {
  return (
    <div className={styles.notice} role="alert">
      <p dir="auto">{messageOf(error)}</p>
      <RequestId error={error} />
    </div>
  );
}

function RequestId({ error }: { error: unknown }) {
  if (!(error instanceof Problem) || !error.requestId) return null;
  return (
    <p className={styles.request}>
      Request <code>{error.requestId}</code>
    </p>
  );
}

export const messageOf = (error: unknown): string =>
  error instanceof Problem ? error.message : "Something in this page failed. Reload it to go on.";
