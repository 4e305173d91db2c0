/** The images that guide a result: each with a role, from the selection or chosen among the assets. */
import { useRef, useState } from "react";
import { count } from "../format.ts";
import { Picker } from "../library/picker.tsx";
import { useSession } from "../session.ts";
import type { Role } from "../sync/graph.ts";
import { Button, Icon } from "../ui/parts.tsx";
import styles from "./inspector.module.css";
import { MOST_REFERENCES, type Reference, ROLES } from "./making.ts";

interface Props {
  canvas: string;
  references: Reference[];
  /** Selected images that are no references yet. */
  selected: Reference[];
  set: (references: Reference[]) => void;
  setRole: (asset: string, role: Role | "") => void;
}

export function References({ canvas, references, selected, set, setRole }: Props) {
  const { scopes } = useSession().session;
  const [isChoosing, setIsChoosing] = useState(false);
  const group = useRef<HTMLFieldSetElement>(null);
  const isFull = references.length >= MOST_REFERENCES;
  const isKnown = (asset: string) => references.some((one) => one.asset === asset);
  return (
    <fieldset ref={group} className={styles.references} tabIndex={-1}>
      <legend>{count(references.length, "reference")}</legend>
      {references.map(({ asset, title, role }) => (
        <div key={asset}>
          <bdi>{title}</bdi>
          <select aria-label={`Role of ${title}`} value={role ?? ""} onChange={({ target }) => setRole(asset, target.value as Role | "")}>
            <option value="">no role</option>
            {ROLES.map((role) => (
              <option key={role}>{role}</option>
            ))}
          </select>
          <Button
            look="quiet"
            aria-label={`Remove ${title}`}
            title="Remove"
            onClick={() => {
              set(references.filter((one) => one.asset !== asset));
              group.current?.focus();
            }}
          >
            <Icon name="close" size={14} />
          </Button>
        </div>
      ))}
      {!isFull && (
        <p>
          {selected.length > 0 && <Button onClick={() => set([...references, ...selected])}>Add the selection</Button>}
          {scopes.includes("asset:read") && (
            <Button onClick={() => setIsChoosing(true)}>
              <Icon name="image" size={16} />
              Add an image…
            </Button>
          )}
        </p>
      )}
      {isChoosing && (
        <Picker
          title="Image as a reference"
          canvas={canvas}
          choose={({ handle, name }) => !isKnown(handle) && set([...references, { asset: handle, title: name }])}
          close={() => {
            setIsChoosing(false);
            setTimeout(() => group.current?.focus());
          }}
        />
      )}
    </fieldset>
  );
}
