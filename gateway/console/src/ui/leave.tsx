import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { count } from "../format.ts";
import { useSigningIn } from "../session.ts";
import { Confirm } from "./dialog.tsx";

/** How many changes a sign-out would delete. Where nothing can be stored, none is known of. */
export const countLost = async (): Promise<number> => (await import("../sync/storage.ts")).countKept().catch(() => 0);

export const lossOf = (changes: number): string => `${count(changes, "change")} ${changes === 1 ? "is" : "are"} not saved and will be deleted.`;

/** Signs out, after a question if that deletes changes. The question has to be rendered. */
export function useLeave() {
  const { signOut } = useSigningIn();
  const [asked, ask] = useState<{ changes: number; to: string | undefined }>();
  const leave = useMutation({
    mutationFn: async (to: string | undefined) => {
      const changes = await countLost();
      if (changes > 0) ask({ changes, to });
      else await signOut(to);
    },
  });
  const question: ReactNode = asked && (
    <Confirm title="Sign out?" action="Sign out anyway" run={() => signOut(asked.to)} close={() => ask(undefined)}>
      <p>{lossOf(asked.changes)}</p>
    </Confirm>
  );
  return { leave, question };
}
