/** Chooses Elements for what is made. */
import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import sheet from "../library/sheet.module.css";
import { Thumb } from "../library/thumb.tsx";
import { Icon } from "../ui/parts.tsx";
import { type Element, elements, sourceOf, typeName } from "./calls.ts";
import styles from "./elements.module.css";

interface Props {
  chosen: Element[];
  set: (chosen: Element[]) => void;
}

/** The Elements that changed last can be chosen. A version is chosen, so a later edit does not change the result. */
export function ElementChooser({ chosen, set }: Props) {
  const group = useRef<HTMLDivElement>(null);
  const { data } = useQuery({ queryKey: ["elements", "choices"], queryFn: ({ signal }) => elements.list("active", "", undefined, signal) });
  const others = data?.elements.filter(({ id }) => !chosen.some((one) => one.id === id)) ?? [];
  if (chosen.length === 0 && others.length === 0) return null;
  return (
    <div ref={group} className={sheet.field} role="group" aria-label="Elements" tabIndex={-1}>
      <span>Elements</span>
      {chosen.length > 0 && (
        <ul className={styles.chips}>
          {chosen.map((element) => (
            <li key={element.id}>
              {element.sourceAssetIds[0] !== undefined && <Thumb asset={sourceOf(element.ownerUid, element.sourceAssetIds[0])} alt={`First image of ${element.name}`} pixels={64} />}
              <bdi>{element.name}</bdi>
              <small>v{element.version}</small>
              <button
                type="button"
                aria-label={`Leave out ${element.name}`}
                onClick={() => {
                  set(chosen.filter(({ id }) => id !== element.id));
                  group.current?.focus();
                }}
              >
                <Icon name="close" size={13} />
              </button>
            </li>
          ))}
        </ul>
      )}
      {others.length > 0 && (
        <select
          aria-label="Add an Element"
          value=""
          onChange={({ target }) => {
            const element = others.find(({ id }) => id === target.value);
            if (element) set([...chosen, element]);
          }}
        >
          <option value="">Add an Element…</option>
          {others.map(({ id, name, type, version }) => (
            <option key={id} value={id}>
              {name} · {typeName(type)} · v{version}
            </option>
          ))}
        </select>
      )}
    </div>
  );
}
