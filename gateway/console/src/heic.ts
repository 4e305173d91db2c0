/** HEIC files, which the service takes only where the operator has set a decoder. Browsers that show them can convert them. */

const NAME = /\.hei[cf]$/i;

/** Some systems give these files no type. */
export const isHeic = ({ type, name }: File): boolean => type === "image/heic" || type === "image/heif" || (type === "" && NAME.test(name));

/** The image as a JPEG, or as it is where the browser cannot read it: then the service converts it, or says what can be done. */
export async function jpegOrHeic(file: File): Promise<File> {
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    return new File([file], file.name, { type: "image/heic" });
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
