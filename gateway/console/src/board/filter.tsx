/** The row above the board that says what is to be seen clearly. It is in the address, too. */
import { useEffect, useMemo, useRef } from "react";
import { useModelNames } from "../library/models.ts";
import type { Graph } from "../sync/graph.ts";
import { useAddress } from "../ui/hooks.ts";
import { Button, Icon } from "../ui/parts.tsx";
import { Choice } from "../ui/search.tsx";
import type { Board } from "./board.ts";
import { type Filter, filterable, filterOf, isEmpty, KINDS, MAKERS, matchingIn, modelOf, textOf } from "./filter.ts";
import styles from "./filter.module.css";
import { LABELS } from "./marks.ts";

const NAMES: Record<string, string> = { image: "Images", video: "Videos", text: "Texts", note: "Notes", people: "By people", agents: "By agents", red: "Red", yellow: "Yellow", green: "Green", blue: "Blue" };

const STARS = [1, 2, 3, 4, 5].map((stars) => [String(stars), stars === 5 ? "★★★★★" : `${"★".repeat(stars)} or more`] as const);

/** Keeps the filter of the board in the address: it can be linked. */
export function useFilterAddress(board: Board, filter: Filter | undefined): void {
  const { params, set } = useAddress();
  const wanted = filter && !isEmpty(filter) ? textOf(filter) : undefined;
  const isRead = useRef(false);
  useEffect(() => {
    if (!isRead.current) {
      isRead.current = true;
      const linked = filterOf(params.get("filter"));
      if (linked) board.set({ filter: linked });
    } else if ((params.get("filter") ?? undefined) !== wanted) {
      set("filter", wanted);
    }
  });
}

export function FilterRow({ board, graph, filter }: { board: Board; graph: Graph; filter: Filter }) {
  const all = useMemo(() => filterable(graph), [graph]);
  const models = useMemo(() => [...new Set(all.flatMap((node) => modelOf(node) ?? []))].toSorted(), [all]);
  const names = useModelNames();
  const matching = matchingIn(graph, filter);
  const found = matching ? all.filter(({ id }) => matching.has(id)) : all;
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);

  /** Sets one part of the filter, or leaves it out. */
  function choose<Key extends keyof Filter>(key: Key, value: Filter[Key] | undefined) {
    const next: Filter = { ...filter };
    if (value === undefined) delete next[key];
    else next[key] = value;
    board.set({ filter: next });
  }
  function close() {
    board.set({ filter: undefined });
    board.surface?.focus();
  }
  const list = <Key extends "label" | "kind" | "by" | "model">(key: Key, label: string, any: string, values: readonly string[]) => (
    <Choice label={label} all={any} choices={values.map((value) => [value, NAMES[value] ?? names.get(value) ?? value] as const)} value={filter[key] ?? ""} set={(value) => choose(key, (value || undefined) as Filter[Key] | undefined)} />
  );

  return (
    <div
      role="search"
      className={styles.row}
      aria-label="Filter"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        close();
      }}
    >
      <input ref={first} type="search" aria-label="Text" placeholder="Title, text or prompt" value={filter.text ?? ""} onChange={({ target }) => choose("text", target.value || undefined)} />
      <div className={styles.choices}>
        <Button look="quiet" aria-label="Favorites" title="Favorites" aria-pressed={filter.favorite === true} onClick={() => choose("favorite", filter.favorite ? undefined : true)}>
          <Icon name="heart" />
        </Button>
        <Choice label="Stars" all="Any stars" choices={STARS} value={String(filter.stars ?? "")} set={(value) => choose("stars", Number(value) || undefined)} />
        {list("label", "Label", "Any label", LABELS)}
        {list("kind", "Kind", "Everything", KINDS)}
        {list("by", "Made by", "By anybody", MAKERS)}
        {models.length > 0 && list("model", "Model", "Any model", models)}
        <label className={styles.check}>
          <input type="checkbox" checked={filter.noAlt === true} onChange={({ target }) => choose("noAlt", target.checked || undefined)} />
          No alternative text
        </label>
      </div>
      <span className={styles.count} role="status">
        {found.length} of {all.length}
      </span>
      <Button
        disabled={found.length === 0}
        onClick={() => {
          board.select(found.map(({ id }) => id));
          board.surface?.focus();
        }}
      >
        Select them
      </Button>
      <Button look="quiet" aria-label="End the filter" title="End the filter (Esc)" onClick={close}>
        <Icon name="close" />
      </Button>
    </div>
  );
}
