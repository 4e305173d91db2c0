/** What Look shows, wherever it is from. */
import type { Asset } from "../assets.ts";

export interface Picture {
  /** What names it among the others: a node, or an asset. */
  id: string;
  asset: string;
  title: string;
  /** What it shows, in words. Empty if it is decorative. */
  alt: string;
  isVideo: boolean;
}

export const pictureOf = ({ handle, name, kind }: Asset): Picture => ({ id: handle, asset: handle, title: name, alt: name, isVideo: kind === "video" });
