/** One of the images of the board as an input of an Action. It is seen, and chosen from images. */
import { useId, useState } from "react";
import { Thumb } from "../library/thumb.tsx";
import { TileDialog } from "../library/tiles.tsx";
import type { Node } from "../sync/graph.ts";
import styles from "./inspector.module.css";
import { pictureOf } from "./shapes.ts";

interface Props {
  label: string;
  choices: Node[];
  /** What is said while none is chosen. */
  hint?: string | undefined;
  value: string;
  set: (id: string) => void;
}

export const LACKING = "[data-lacking]";

export function InputField({ label, choices, hint = "Choose an image…", value, set }: Props) {
  const id = useId();
  const [isOpen, setIsOpen] = useState(false);
  const chosen = choices.find((node) => node.id === value);
  return (
    <div className={styles.field}>
      <span id={id}>{label}</span>
      <button type="button" className={styles.input} aria-labelledby={`${id} ${id}-chosen`} data-lacking={chosen ? undefined : true} onClick={() => setIsOpen(true)}>
        {chosen && (
          <span className={styles.thumb}>
            <Thumb asset={chosen.asset} alt="" pixels={96} />
          </span>
        )}
        <bdi id={`${id}-chosen`}>{chosen ? chosen.title || "Image" : hint}</bdi>
      </button>
      {isOpen && (
        <TileDialog
          title={label}
          tiles={choices.map((node) => ({ key: node.id, title: node.title || "Image", asset: node.asset, ...pictureOf(node) }))}
          choose={({ key }) => set(key)}
          close={() => setIsOpen(false)}
        />
      )}
    </div>
  );
}
