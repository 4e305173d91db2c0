/** A small image of an asset. */
import { useImage } from "../board/images.ts";
import { Icon } from "../ui/parts.tsx";
import styles from "./library.module.css";

/** Fills its frame. */
export function Thumb({ asset, alt, pixels = 256 }: { asset: string | undefined; alt: string; pixels?: number }) {
  const { url, hasFailed } = useImage(asset, pixels);
  return (
    <span className={styles.thumb} data-state={url ? "drawn" : hasFailed ? "failed" : "waiting"}>
      {url ? <img src={url} alt={alt} aria-hidden={alt === "" || undefined} decoding="async" /> : hasFailed && <Icon name="image" size={20} />}
    </span>
  );
}
