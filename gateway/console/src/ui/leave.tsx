import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { count } from "../format.ts";
import { useSigningIn } from "../session.ts";
import { countUploads } from "../uploads.ts";
import { Confirm } from "./dialog.tsx";

/** What a sign-out would delete, as a sentence, or nothing. Where changes cannot be stored, none is known of. */
export async function loss(): Promise<string> {
  const changes = await (await import("../sync/storage.ts")).countKept().catch(() => 0);
  const uploads = countUploads();
  const lost = [changes > 0 && count(changes, "change"), uploads > 0 && count(uploads, "upload")].filter((part) => part !== false);
  return lost.length === 0 ? "" : `${lost.join(" and ")} ${changes + uploads === 1 ? "is" : "are"} not saved and will be deleted.`;
}

/** Signs out, after a question if that deletes something. The question has to be rendered. */
export function useLeave() {
  const { signOut } = useSigningIn();
  const [asked, ask] = useState<{ lost: string; to: string | undefined }>();
  const leave = useMutation({
    mutationFn: async (to: string | undefined) => {
      const lost = await loss();
      if (lost !== "") ask({ lost, to });
      else await signOut(to);
    },
  });
  const question: ReactNode = asked && (
    <Confirm title="Sign out?" action="Sign out anyway" run={() => signOut(asked.to)} close={() => ask(undefined)}>
      <p>{asked.lost}</p>
    </Confirm>
  );
  return { leave, question };
}
