/** Changes that the service will not take: files of them, so that they are not lost. */
import { useSyncExternalStore } from "react";
import { count } from "../format.ts";
import { useSession } from "../session.ts";
import type { Engine } from "../sync/engine.ts";
import { Button } from "../ui/parts.tsx";
import { useEngine } from "./engines.ts";
import { type UnsentFile, unsentFilesOf } from "./unsent-files.ts";
import styles from "./unsent.module.css";

function save({ name, type, content }: UnsentFile) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 30_000);
}

/** A button for each file: a browser asks before a click saves several. */
export function SaveUnsent({ engine, canvas }: { engine: Engine; canvas: string }) {
  return (
    <span className={styles.files}>
      {unsentFilesOf(engine, canvas).map((file) => (
        <Button key={file.name} onClick={() => save(file)}>
          {file.label}
        </Button>
      ))}
    </span>
  );
}

/** On the page of a canvas that is gone: what this browser still has for it. */
export function Unsent({ canvas }: { canvas: string }) {
  const { account } = useSession();
  const engine = useEngine(account.id, canvas, true);
  const { state, waiting, conflicts } = useSyncExternalStore(engine.subscribe, engine.getSnapshot);
  const unsaved = waiting + conflicts.length;
  if (state !== "gone" || unsaved === 0) return null;
  function discard() {
    engine.discard();
    for (const conflict of conflicts) engine.resolve(conflict, "theirs");
  }
  return (
    <section className={styles.unsent} aria-label="Changes that were not saved">
      <p>
        {count(unsaved, "change")} of yours {unsaved === 1 ? "was" : "were"} not saved here.{" "}
        {waiting > 0 && (
          <>
            <code>canvas apply</code> takes the files of changes, in their order.
          </>
        )}
      </p>
      <div>
        <SaveUnsent engine={engine} canvas={canvas} />
        <Button look="quiet" onClick={discard}>
          Discard
        </Button>
      </div>
    </section>
  );
}
