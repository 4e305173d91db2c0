import { useQuery } from "@tanstack/react-query";
import { api } from "../../api.ts";
import { bytes } from "../../format.ts";
import { Failure, Waiting } from "../../ui/parts.tsx";
import { Section } from "./section.tsx";
import styles from "./settings.module.css";

/** What the account stores. */
export function Storage() {
  const { data, error, refetch } = useQuery({ queryKey: ["storage"], queryFn: ({ signal }) => api.storage(signal), staleTime: 0 });
  return (
    <Section
      title="Storage"
      lead="Images, videos and canvases count, canvases with what can be undone. When the storage is full, nothing new can be added until images or canvases are deleted."
    >
      {!data && (error ? <Failure title="The storage cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the storage" />)}
      {data && (
        <p className={styles.balance}>
          <strong>{bytes(data.bytes)}</strong> {data.max === null ? "used, without a limit" : `of ${bytes(data.max)} used`}
        </p>
      )}
    </Section>
  );
}
