/** A small picture of an asset. */
import { usePicture } from "../board/pictures.ts";
import { Icon } from "../ui/parts.tsx";
import styles from "./library.module.css";

/** Fills its frame. What the picture is stands beside it, so it has no words of its own. */
export function Thumb({ asset, pixels = 256 }: { asset: string | undefined; pixels?: number }) {
  const { url, hasFailed } = usePicture(asset, pixels);
  return (
    <span className={styles.thumb} data-state={url ? "drawn" : hasFailed ? "failed" : "waiting"}>
      {url ? <img src={url} alt="" decoding="async" /> : hasFailed && <Icon name="picture" size={20} />}
    </span>
  );
}
