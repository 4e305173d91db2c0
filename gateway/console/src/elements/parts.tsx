/** What an Element looks like, and whether its images are there. */
import { useQuery } from "@tanstack/react-query";
import { Thumb } from "../library/thumb.tsx";
import { Icon } from "../ui/parts.tsx";
import { type Collection, collections, type SourceHealth, sourceOf } from "./calls.ts";
import styles from "./elements.module.css";

/** At most four source images, or a quotation of the guidelines. */
export function Preview({ ownerUid, sourceAssetIds, guidelines }: { ownerUid: string; sourceAssetIds: string[]; guidelines?: string | undefined }) {
  const shown = sourceAssetIds.slice(0, 4);
  return (
    <div className={styles.preview} data-images={shown.length}>
      {shown.map((id, index) => (
        <Thumb key={id} asset={sourceOf(ownerUid, id)} alt={`Source image ${index + 1}`} pixels={shown.length === 1 ? 512 : 256} />
      ))}
      {shown.length === 0 && <p dir="auto">{guidelines}</p>}
    </div>
  );
}

const HEALTH: Record<SourceHealth["status"], string> = { available: "Sources available", unavailable: "", unknown: "Sources not checked" };

export function Health({ health: { status, unavailableSourceAssetIds } }: { health: SourceHealth }) {
  const gone = unavailableSourceAssetIds.length;
  return (
    <span className={styles.health} data-status={status}>
      <Icon name={status === "available" ? "check" : "finding"} size={13} />
      {status === "unavailable" ? `${gone} ${gone === 1 ? "source is" : "sources are"} missing` : HEALTH[status]}
    </span>
  );
}

export const useCollectionsQuery = () => useQuery({ queryKey: ["collections"], queryFn: ({ signal }) => collections.list(signal) });
export const useCollections = (): Collection[] | undefined => useCollectionsQuery().data;
