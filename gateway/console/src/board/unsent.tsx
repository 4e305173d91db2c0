/** Changes that the service will not take: a file of them, so that they are not lost. */
import { useSyncExternalStore } from "react";
import { count } from "../format.ts";
import { useSession } from "../session.ts";
import { operationsOf } from "../sync/change.ts";
import type { Engine } from "../sync/engine.ts";
import { Button } from "../ui/parts.tsx";
import { useEngine } from "./engines.ts";
import styles from "./unsent.module.css";

/** The changes that wait, as the body of one batch of operations. */
function bodyOf(engine: Engine): object {
  const batches = engine.unsent();
  const [first] = batches;
  const { revision } = engine.getSnapshot();
  const operations = batches.flatMap(({ changes }) => changes.flatMap((change) => operationsOf(change, engine.real)));
  return { baseRevision: first?.sent?.baseRevision ?? revision, idempotencyKey: first?.key, operations };
}

/** Saves the changes that wait as a file that `canvas apply` reads. */
export function SaveUnsent({ engine, canvas }: { engine: Engine; canvas: string }) {
  function save() {
    const url = URL.createObjectURL(new Blob([JSON.stringify(bodyOf(engine), undefined, 2)], { type: "application/json" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = `changes of ${canvas.replaceAll(":", " ")}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 30_000);
  }
  return <Button onClick={save}>Save them as a file</Button>;
}

/** On the page of a canvas that is gone: what this browser still has for it. */
export function Unsent({ canvas }: { canvas: string }) {
  const { account } = useSession();
  const engine = useEngine(account.id, canvas, true);
  const { state, waiting } = useSyncExternalStore(engine.subscribe, engine.getSnapshot);
  if (state !== "gone" || waiting === 0) return null;
  return (
    <section className={styles.unsent} aria-label="Changes that were not saved">
      <p>
        {count(waiting, "change")} of yours {waiting === 1 ? "was" : "were"} not saved here. The file is a batch of operations for <code>canvas apply</code>.
      </p>
      <div>
        <SaveUnsent engine={engine} canvas={canvas} />
        <Button look="quiet" onClick={() => engine.discard()}>
          Discard
        </Button>
      </div>
    </section>
  );
}
