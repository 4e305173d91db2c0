/** HEIC files, which the service does not take. Browsers that show them can convert them. */
import { Problem } from "./errors.ts";

const NAME = /\.hei[cf]$/i;

/** Some systems give these files no type. */
export const isHeic = ({ type, name }: File): boolean => type === "image/heic" || type === "image/heif" || (type === "" && NAME.test(name));

/** The image as a JPEG, if the browser can read it. */
export async function jpegOf(file: File): Promise<File> {
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Problem(415, "This browser cannot read HEIC. Convert the file to JPEG first.");
  }
  try {
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
    const jpeg = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.92 });
    return new File([jpeg], file.name.replace(NAME, ".jpg"), { type: "image/jpeg" });
  } finally {
    bitmap.close();
  }
}
