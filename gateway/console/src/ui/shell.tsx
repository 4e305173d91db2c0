/** The frame of the screens for a person who is signed in. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { api } from "../api.ts";
import { day, number } from "../format.ts";
import { useSession } from "../session.ts";
import { useIsLater } from "./hooks.ts";
import { keyNames } from "./keys.ts";
import { useLeave } from "./leave.tsx";
import { Avatar, Button, Icon, intoView, Mark, Notice } from "./parts.tsx";
import { QueueBanner } from "./queues.tsx";
import { Places, SCREENS, usePlaces } from "./places.tsx";
import styles from "./shell.module.css";
import { POINTER_SWITCHES, setSwitch, type Switch, useSwitch } from "./switches.ts";
import { setTheme, THEMES, theme } from "./theme.ts";

interface Props {
  /** What stands in the header beside the mark. */
  header?: ReactNode;
  /** Whether the content fills the window instead of scrolling with the page. */
  isFixed?: boolean;
  children: ReactNode;
}

export function Shell({ header, isFixed = false, children }: Props) {
  const main = useRef<HTMLElement>(null);
  const [dialog, open] = usePlaces(isFixed);
  // A new screen is announced, and the keyboard continues in it.
  useEffect(() => main.current?.focus({ preventScroll: true }), []);
  return (
    <div className={isFixed ? styles.fixed : styles.shell}>
      <header className={styles.header}>
        <a className={styles.skip} href="#content" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
          Skip to the content
        </a>
        <Link href="/" className={styles.home}>
          <Mark />
          <span className={isFixed ? "unseen" : styles.name}>Canvas Service</span>
        </Link>
        <div className={styles.middle}>{header ?? (isFixed ? null : <Screens />)}</div>
        {!isFixed && (
          <Button look="quiet" className={styles.find} aria-label="Find a screen or a canvas" aria-keyshortcuts="Control+K" title={`Find a screen or a canvas (${keyNames("Mod+K").join(" ")})`} onClick={() => open("palette")}>
            <Icon name="search" />
          </Button>
        )}
        <Credit />
        <AccountMenu />
      </header>
      <QueueBanner />
      <main id="content" ref={main} tabIndex={-1} className={styles.main}>
        {children}
      </main>
      {dialog && <Places dialog={dialog} open={open} />}
    </div>
  );
}

function Screens() {
  const [path] = useLocation();
  return (
    <nav className={styles.screens} aria-label="Screens">
      {SCREENS.map(([to, label]) => {
        const isCurrent = to === "/" ? path === to : path === to || path.startsWith(`${to}/`);
        return (
          <Link key={to} href={to} {...(isCurrent && { "aria-current": "page", ref: intoView })}>
            {label}
          </Link>
        );
      })}
    </nav>
  );
}

/** How often the balance is read while a page is looked at, and how long after the page is there it is first read, in milliseconds. */
const BALANCE_PACE = 30_000;
const BALANCE_REST = 200;

/** The credits that are left, for a session that can spend them. */
function Credit() {
  const { session } = useSession();
  const { data } = useQuery({
    queryKey: ["balance"],
    queryFn: ({ signal }) => api.balance(signal),
    enabled: useIsLater(BALANCE_REST) && session.scopes.some((scope) => scope === "image:generate" || scope === "video:generate"),
    refetchInterval: BALANCE_PACE,
  });
  if (data === undefined) return null;
  const content = (
    <>
      <Icon name="credit" size={16} />
      <span>{number(data)}</span> <span className={styles.unit}>{data === 1 ? "credit" : "credits"}</span>
    </>
  );
  return session.kind === "full" ? (
    <Link href="/settings/credit" className={styles.credit} title="Credit that is left">
      {content}
    </Link>
  ) : (
    <p className={styles.credit} title="Credit that is left">
      {content}
    </p>
  );
}

function AccountMenu() {
  const { account, session } = useSession();
  const { leave, question } = useLeave();
  const [chosen, choose] = useState(theme);
  const name = account.displayName;

  return (
    <>
      <button type="button" className={styles.account} popoverTarget="account" aria-label={`Account of ${name}`}>
        <Avatar name={name} />
        <Icon name="chevron" size={14} />
      </button>
      <div id="account" popover="auto" className={styles.menu}>
        <div className={styles.person}>
          <Avatar name={name} size={40} />
          <div>
            <p className={styles.display} dir="auto">
              {name}
            </p>
            {name !== account.email && <p className={styles.detail}>{account.email}</p>}
          </div>
        </div>
        <p className={styles.detail}>
          {session.kind === "narrow" ? (
            <>
              Signed in with the token <strong dir="auto">{session.label}</strong>
            </>
          ) : (
            "Signed in"
          )}
          , until {day(session.expiresAt)}
        </p>
        <fieldset className={styles.themes}>
          <legend className="unseen">Colors</legend>
          {THEMES.map((theme) => (
            <label key={theme}>
              <input
                type="radio"
                name="theme"
                checked={theme === chosen}
                onChange={() => {
                  setTheme(theme);
                  choose(theme);
                }}
              />
              <span>{theme[0]?.toUpperCase() + theme.slice(1)}</span>
            </label>
          ))}
        </fieldset>
        <div>
          {POINTER_SWITCHES.map(([name, label]) => (
            <Toggle key={name} name={name} label={label} />
          ))}
        </div>
        {account.role === "admin" && (
          <Link className={styles.entry} href="/admin/accounts">
            Administration
          </Link>
        )}
        <a className={styles.entry} href="/docs">
          API documentation
        </a>
        {leave.error && <Notice error={leave.error} />}
        <Button className={styles.leave} isBusy={leave.isPending} onClick={() => leave.mutate(undefined)}>
          Sign out
        </Button>
      </div>
      {question}
    </>
  );
}

function Toggle({ name, label }: { name: Switch; label: string }) {
  const isOn = useSwitch(name);
  return (
    <label className={styles.toggle}>
      <input type="checkbox" role="switch" aria-checked={isOn} checked={isOn} onChange={({ target }) => setSwitch(name, target.checked)} />
      {label}
    </label>
  );
}
