/** A list of commands and places that is searched from the keyboard, and a list of keys. */
import { type KeyboardEvent, type ReactNode, useEffect, useId, useState } from "react";
import { Dialog } from "./dialog.tsx";
import { Help } from "./help.tsx";
import { keyNames } from "./keys.ts";
import styles from "./palette.module.css";
import { Button, Icon } from "./parts.tsx";

export const Keys = ({ combination }: { combination: string }) => (
  <span className={styles.keys}>
    {keyNames(combination).map((name) => (
      <kbd key={name}>{name}</kbd>
    ))}
  </span>
);

export interface KeyGroup {
  title: string;
  /** What is done by which keys, or else how. */
  rows: { what: string; keys?: readonly string[]; how?: string }[];
}

export function KeyDialog({ groups, close }: { groups: KeyGroup[]; close: () => void }) {
  const [query, setQuery] = useState("");
  const wanted = query.trim().toLowerCase();
  const isFound = ({ what, how = "", keys = [] }: KeyGroup["rows"][number]) => `${what} ${how} ${keys.map((key) => keyNames(key).join(" ")).join(" ")}`.toLowerCase().includes(wanted);
  const found = groups.map(({ title, rows }) => ({ title, rows: rows.filter(isFound) })).filter(({ rows }) => rows.length > 0);
  return (
    <Dialog label="Keyboard shortcuts" className={styles.list} close={close}>
      <header className={styles.head}>
        <h2>Keyboard shortcuts</h2>
        <Help />
        <Button look="quiet" aria-label="Close" onClick={close}>
          <Icon name="close" />
        </Button>
      </header>
      <div className={styles.search}>
        <Icon name="search" />
        <input data-first aria-label="Find a key or what it does" placeholder="Find a key or what it does" value={query} onChange={({ target }) => setQuery(target.value)} />
      </div>
      {found.length === 0 && <p className={styles.none}>No key does that.</p>}
      <div className={styles.groups}>
        {found.map(({ title, rows }) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {rows.map(({ what, keys = [], how }) => (
                <div key={what}>
                  <dt>{what}</dt>
                  <dd>
                    {how}
                    {keys.map((key) => (
                      <Keys key={key} combination={key} />
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}

export interface Entry {
  key: string;
  label: string;
  hint?: ReactNode;
  run: () => void;
}

export const EntryKind = ({ children }: { children: ReactNode }) => <span className={styles.kind}>{children}</span>;

interface PaletteProps {
  label: string;
  /** What the field is called. */
  field: string;
  entriesOf: (query: string) => Entry[];
  close: () => void;
}

export function PaletteDialog({ label, field, entriesOf, close }: PaletteProps) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const entries = entriesOf(query);
  const current = Math.min(at, entries.length - 1);

  useEffect(() => {
    // In some browsers it returns a promise, which is no cleanup.
    void document.getElementById(`${list}-${current}`)?.scrollIntoView({ block: "nearest" });
  }, [list, current]);

  function type(event: KeyboardEvent) {
    event.stopPropagation();
    // Enter and the arrows are for an input method that is at work.
    if (event.nativeEvent.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setAt((current + (event.key === "ArrowDown" ? 1 : entries.length - 1)) % Math.max(entries.length, 1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      entries[current]?.run();
    }
  }

  return (
    <Dialog label={label} className={styles.palette} close={close}>
      <div className={styles.search}>
        <Icon name="search" />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls={list}
          aria-activedescendant={entries.length > 0 ? `${list}-${current}` : undefined}
          aria-label={field}
          placeholder={label}
          autoFocus
          value={query}
          onChange={({ target }) => {
            setQuery(target.value);
            setAt(0);
          }}
          onKeyDown={type}
        />
      </div>
      <div id={list} role="listbox" aria-label="Found" className={styles.found}>
        {entries.map((entry, index) => (
          // oxlint-disable-next-line jsx-a11y/click-events-have-key-events -- the input has the keyboard
          <div key={entry.key} id={`${list}-${index}`} role="option" tabIndex={-1} aria-selected={index === current} onClick={entry.run} onPointerMove={() => setAt(index)}>
            <bdi>{entry.label}</bdi>
            {entry.hint}
          </div>
        ))}
      </div>
      {entries.length === 0 && <p className={styles.none}>Nothing has this name.</p>}
    </Dialog>
  );
}
