/** A picture on a plane that pans and zooms. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { fileUrl } from "../api.ts";
import type { Asset } from "../assets.ts";
import { assetQuery, useImage } from "../board/images.ts";
import { Icon } from "../ui/parts.tsx";
import type { Size, View } from "../view.ts";
import styles from "./look.module.css";
import { type Picture, useAltOf } from "./picture.ts";

/** The widest rendition, and the most pixels of a file that a browser shows without trouble. */
const WIDEST = 2048;
const MOST_PIXELS = 64e6;
/** From this scale on, the pixels of a picture are seen as squares. */
const SQUARES = 3;

/** Whether the file of an asset is not shown itself, because it has too many pixels. */
export const isTooLarge = ({ width, height }: Size): boolean => width * height > MOST_PIXELS;

/** The address of a picture for so many pixels across: of a rendition, or of the file itself if that has more than any rendition. */
function useSharp(asset: string, known: Asset | undefined, pixels: number): { url: string | undefined; hasFailed: boolean } {
  const rendition = useImage(asset, Math.min(pixels, WIDEST));
  const [ready, setReady] = useState<string>();
  const needsFile = known !== undefined && known.kind !== "video" && pixels > WIDEST && known.width > WIDEST && !isTooLarge(known);
  useEffect(() => {
    if (!needsFile) return;
    let isWanted = true;
    const image = new Image();
    image.src = fileUrl(asset);
    image.decode().then(
      () => isWanted && setReady(asset),
      // The rendition stays.
      () => {},
    );
    return () => {
      isWanted = false;
    };
  }, [asset, needsFile]);
  return ready === asset ? { url: fileUrl(asset), hasFailed: false } : rendition;
}

interface SheetProps {
  picture: Picture;
  known: Asset | undefined;
  /** The plane, with its origin at the top left, and the part of it that is shown. */
  plane: Size | undefined;
  view: View | undefined;
  /** Whether it fills the plane, of which another picture has given the ratio. */
  isFilling?: boolean;
  /** How much of it is seen: to the left or right of a share of the frame, or through it. */
  clip?: string;
  opacity?: number;
}

/** The picture as sharp as it is there. Until its size is known, it is shown as a whole. */
export function Sheet({ picture, known, plane, view, isFilling = false, clip, opacity }: SheetProps) {
  const { asset, title } = picture;
  const alt = useAltOf(picture);
  const scale = view?.scale ?? 1;
  const { url, hasFailed } = useSharp(asset, known, (plane?.width ?? WIDEST / 2) * scale * devicePixelRatio);
  if (url === undefined) return <p className={styles.missing}>{hasFailed ? `${title || "This picture"} cannot be shown. Its file may be damaged, or only its owner can see it.` : "Loading…"}</p>;
  const image = <img src={url} alt={alt} aria-hidden={alt === ""} draggable={false} decoding="async" />;
  if (!plane || !view) return <div className={styles.whole}>{image}</div>;
  const { width, height } = plane;
  return (
    // What is cut off is measured in the frame, and not in the plane.
    <div className={styles.layer} style={{ clipPath: clip, opacity }}>
      <div
        className={styles.sheet}
        data-filling={isFilling || undefined}
        data-squares={scale * devicePixelRatio >= SQUARES || undefined}
        style={{ width, height, transform: `translate(${view.x}px, ${view.y}px) scale(${scale})` }}
      >
        {image}
      </div>
    </div>
  );
}

/** A small picture in a strip or a list. A video may have no poster. */
export function Small({ asset, isVideo }: { asset: string; isVideo: boolean }) {
  const { data } = useQuery({ ...assetQuery(asset), enabled: isVideo });
  const { url } = useImage(isVideo && data?.previewUrl === undefined ? undefined : asset, 64 * devicePixelRatio);
  return <span className={styles.small}>{url !== undefined ? <img src={url} alt="" aria-hidden="true" draggable={false} /> : isVideo && <Icon name="video" />}</span>;
}
