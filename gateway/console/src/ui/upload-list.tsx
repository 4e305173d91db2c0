/** Uploads that are under way or have failed. */
import { removedOf } from "../assets.ts";
import { count } from "../format.ts";
import { isRepeatable, type Upload, type Uploads } from "../uploads.ts";
import { Button, Icon } from "./parts.tsx";
import parts from "./parts.module.css";
import styles from "./upload-list.module.css";

interface Props {
  uploads: Uploads;
  list: readonly Upload[];
  /** An upload was dismissed by a button that goes with it. */
  dismissed?: () => void;
}

export function UploadList({ uploads, list, dismissed }: Props) {
  if (list.length === 0) return null;
  const open = list.filter(({ stored }) => !stored);
  const cleaned = list.flatMap(({ key, stored }) => (stored ? [{ key, stored }] : []));
  const removed = removedOf(cleaned.map(({ stored }) => stored));
  return (
    <section className={parts.card} aria-label="Uploads" data-card>
      <h3>{count(list.length, "upload")}</h3>
      {removed !== undefined && (
        <p className={styles.removed} role="status">
          <span>
            {count(cleaned.length, "image")} stored without private metadata: {removed}.{cleaned.some(({ stored }) => stored.original) && " The file as it was is kept for you alone."}
          </span>
          <Button look="quiet" aria-label="Dismiss what was removed" onClick={() => uploads.dismiss(...cleaned.map(({ key }) => key))}>
            <Icon name="close" size={14} />
          </Button>
        </p>
      )}
      <ul>
        {open.map(({ key, name, progress, problem }) => (
          <li key={key} className={styles.upload}>
            <span dir="auto">{name}</span>
            {problem ? (
              <>
                <span className={styles.problem}>{problem.fields[0]?.message ?? problem.message}</span>
                {isRepeatable(problem) && <Button onClick={() => uploads.retry(key)}>Try again</Button>}
                <Button look="quiet" aria-label={`Dismiss ${name}`} onClick={() => (uploads.dismiss(key), dismissed?.())}>
                  <Icon name="close" size={14} />
                </Button>
              </>
            ) : (
              <progress value={progress} max={1} aria-label={`Upload of ${name}`} />
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
