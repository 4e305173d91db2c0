/** The pixels of an image that is shown. */
import { useEffect, useState } from "react";
import type { Size } from "../view.ts";

/** The pixels of an image, with at most so many at its longer side; undefined until they are there. */
export function usePixels(url: string | undefined, { width, height }: Size, most: number): ImageData | undefined {
  const [pixels, setPixels] = useState<ImageData>();
  useEffect(() => {
    if (url === undefined) return;
    let isOld = false;
    const image = new Image();
    image.src = url;
    void image.decode().then(
      () => {
        const scale = Math.min(most / Math.max(width, height), 1);
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [Math.max(Math.round(width * scale), 1), Math.max(Math.round(height * scale), 1)];
        const context = canvas.getContext("2d");
        context?.drawImage(image, 0, 0, canvas.width, canvas.height);
        if (!isOld) setPixels(context?.getImageData(0, 0, canvas.width, canvas.height));
      },
      // The image itself says that it cannot be shown.
      () => {},
    );
    return () => void (isOld = true);
  }, [url, width, height, most]);
  return pixels;
}
