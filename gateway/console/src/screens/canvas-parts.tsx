/** Parts of the canvas page that its two forms share: the board, and the drawing for viewers. */
import { type CSSProperties, type KeyboardEvent, type ReactNode, useEffect, useRef, useSyncExternalStore } from "react";
import type { Live } from "../live.ts";
import { colorOf, Peers } from "../pointers.ts";
import { useSession } from "../session.ts";
import { Avatar, Button, Icon } from "../ui/parts.tsx";
import styles from "./canvas.module.css";

const NOBODY = new Peers();

/** Who else has the canvas open. On the board, a click on the face of a person follows the view of that person. */
export function Presence({ live, peers }: { live: Live; peers?: Peers }) {
  const { session } = useSession();
  const followed = useSyncExternalStore((peers ?? NOBODY).subscribe, (peers ?? NOBODY).getFollowed);
  const who = live.who.filter(({ label, surface }) => surface !== "browser" || label !== session.label);
  if (who.length === 0) return null;
  const names = who.map(({ label, surface }) => (surface === "browser" ? label : `${label} (${surface})`));
  return (
    <ul className={styles.who} aria-label="Also here">
      {who.slice(0, 4).map(({ id, label, surface }, index) => (
        <li key={id} title={names[index]}>
          {peers && surface === "browser" ? (
            <button
              type="button"
              className={styles.face}
              style={{ "--color": colorOf(id) } as CSSProperties}
              aria-pressed={followed === id}
              aria-label={`Follow ${label}`}
              onClick={() => peers.follow(followed === id ? undefined : id)}
            >
              <Avatar name={label} />
            </button>
          ) : (
            <>
              <Avatar name={label} />
              <span className="unseen" dir="auto">
                {names[index]}
              </span>
            </>
          )}
        </li>
      ))}
      {who.length > 4 && (
        <li className={styles.more} title={names.slice(4).join(", ")}>
          +{who.length - 4}
        </li>
      )}
    </ul>
  );
}

function onNetwork(changed: () => void): () => void {
  const stop = new AbortController();
  for (const change of ["online", "offline"]) addEventListener(change, changed, { signal: stop.signal });
  return () => stop.abort();
}

export function Connection({ live }: { live: Live }) {
  const hasNetwork = useSyncExternalStore(onNetwork, () => navigator.onLine);
  const label = live.state === "live" ? "Live" : !hasNetwork ? "Offline" : live.state === "connecting" ? "Connecting…" : "Reconnecting…";
  const since = live.since !== undefined && `since ${new Date(live.since).toLocaleTimeString("en", { timeStyle: "short" })}`;
  return (
    <p className={styles.connection} data-state={live.state} role="status">
      <span>{label}</span> {since && <span className={styles.since}>{since}</span>}
    </p>
  );
}

export function Side({ title, close, children }: { title: string; close: () => void; children: ReactNode }) {
  const heading = useRef<HTMLHeadingElement>(null);
  // Unless something in it has taken the keyboard already.
  useEffect(() => {
    if (!heading.current?.closest("aside")?.contains(document.activeElement)) heading.current?.focus();
  }, []);
  function type(event: KeyboardEvent) {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    // The board keeps its selection.
    event.preventDefault();
    close();
  }
  return (
    <aside tabIndex={-1} className={styles.side} aria-label={title} onKeyDown={type}>
      <div className={styles.sideHead}>
        <h2 ref={heading} tabIndex={-1}>
          {title}
        </h2>
        <Button look="quiet" aria-label={`Close ${title.toLowerCase()}`} onClick={close}>
          <Icon name="close" />
        </Button>
      </div>
      {children}
    </aside>
  );
}
