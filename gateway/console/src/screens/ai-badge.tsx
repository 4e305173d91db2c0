/** Says that an image was made with AI, in whole or in part. */
import { useQuery } from "@tanstack/react-query";
import { type Asset, aiBadgeOf, assets } from "../assets.ts";
import { useImage } from "../board/images.ts";
import { useSession } from "../session.ts";
import styles from "./ai-badge.module.css";

export function AiBadge({ asset }: { asset: Pick<Asset, "aiGenerated"> }) {
  const badge = aiBadgeOf(asset);
  return badge && <span className={styles.badge}>{badge}</span>;
}

/** The badge of an asset by its handle. An asset that cannot be seen is not asked for. */
export function AiBadgeOf({ handle }: { handle: string }) {
  const { session } = useSession();
  const { url } = useImage(handle, 64);
  const enabled = url !== undefined && session.scopes.includes("asset:read");
  const { data } = useQuery({ queryKey: ["asset", handle], queryFn: ({ signal }) => assets.read(handle, signal), enabled });
  return data && <AiBadge asset={data} />;
}
