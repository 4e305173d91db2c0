/** A small image of an asset. */
import { useImage } from "../board/images.ts";
import { Icon } from "../ui/parts.tsx";
import styles from "./library.module.css";

/** Fills its frame. What the image is stands beside it, so it has no words of its own. */
export function Thumb({ asset, pixels = 256 }: { asset: string | undefined; pixels?: number }) {
  const { url, hasFailed } = useImage(asset, pixels);
  return (
    <span className={styles.thumb} data-state={url ? "drawn" : hasFailed ? "failed" : "waiting"}>
      {url ? <img src={url} alt="" decoding="async" /> : hasFailed && <Icon name="image" size={20} />}
    </span>
  );
}
