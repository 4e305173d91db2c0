/** The field for image files that a button opens. */
import type { Ref } from "react";
import { ACCEPTED } from "../uploads.ts";

export function FileInput({ ref, multiple, onFiles }: { ref: Ref<HTMLInputElement>; multiple?: true; onFiles: (files: File[]) => void }) {
  return (
    <input
      ref={ref}
      type="file"
      multiple={multiple}
      hidden
      accept={ACCEPTED}
      aria-label={multiple ? "Images to upload" : "Image to upload"}
      onChange={({ target }) => {
        onFiles([...(target.files ?? [])]);
        target.value = "";
      }}
    />
  );
}
