/** The images that an Action runs on, one of which is shown. */
import { count } from "../format.ts";
import { Thumb } from "../library/thumb.tsx";
import type { Node } from "../sync/graph.ts";
import styles from "./batch.module.css";
import type { Related } from "./related.ts";

interface Props {
  nodes: Node[];
  related: Related[];
  at: number;
  show: (at: number) => void;
}

export function Each({ nodes, related, at, show }: Props) {
  const step = (by: 1 | -1) => show((at + by + nodes.length) % nodes.length);
  const impossible = related.filter(({ isImpossible }) => isImpossible).length;
  return (
    <div className={styles.each} role="group" aria-label={count(nodes.length, "image")}>
      <p>
        <button type="button" aria-label="Previous image" onClick={() => step(-1)}>
          ‹
        </button>
        <span>
          {at + 1} of {nodes.length}
          {related[at]?.isRelated && " · in relation"}
        </span>
        <button type="button" aria-label="Next image" onClick={() => step(1)}>
          ›
        </button>
      </p>
      <ul>
        {nodes.map((node, index) => (
          <li key={node.id}>
            <button
              type="button"
              aria-label={`${node.title || "Image"}${related[index]?.isImpossible ? ", not possible" : ""}`}
              title={node.title}
              aria-current={index === at}
              data-impossible={related[index]?.isImpossible || undefined}
              onClick={() => show(index)}
            >
              <Thumb asset={node.asset} alt="" pixels={64} />
            </button>
          </li>
        ))}
      </ul>
      {impossible > 0 && <p className={styles.bad}>{impossible === nodes.length ? "These values are not possible here." : `These values are not possible for ${count(impossible, "image")}, which will be left out.`}</p>}
    </div>
  );
}
