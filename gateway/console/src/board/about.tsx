/** What is known of a picture on the board, beside it in Look. */
import { AiBadge } from "../screens/ai-badge.tsx";
import { FileFacts } from "../screens/asset-facts.tsx";
import styles from "../screens/look.module.css";
import { Small } from "../screens/sheet.tsx";
import type { Graph, Node } from "../sync/graph.ts";
import { Button } from "../ui/parts.tsx";
import { sourcesOf } from "./album.ts";
import { kindOf } from "./gestures.ts";
import { useAsset } from "./images.ts";
import { HowMade } from "./provenance.tsx";

export function About({ graph, node, asset: handle, go }: { graph: Graph; node: Node; asset: string; go: (id: string) => void }) {
  const { data: asset } = useAsset(handle);
  const { provenance, prompt, altText } = node.metadata;
  const sources = sourcesOf(graph, node);
  return (
    <>
      {asset && (
        <>
          <AiBadge asset={asset} />
          <dl className={styles.facts}>
            <FileFacts asset={asset} />
          </dl>
        </>
      )}
      {(provenance ?? prompt) && (
        <section aria-label="How it was made">
          <HowMade node={node} className={styles.prompt} />
        </section>
      )}
      {sources.length > 0 && (
        <section aria-label="Made from">
          <h3>Made from</h3>
          {sources.map((source) => (
            <Button key={source.id} look="quiet" className={styles.reference} onClick={() => go(source.id)}>
              <Small asset={source.asset ?? ""} isVideo={source.type === "video"} />
              <bdi>{source.title || kindOf(source)}</bdi>
            </Button>
          ))}
        </section>
      )}
      {altText !== undefined && altText !== "" && (
        <section aria-label="Alternative text">
          <h3>Alternative text</h3>
          <p dir="auto">{altText}</p>
        </section>
      )}
    </>
  );
}
