/** Asks before work is canceled, and what becomes of its empty nodes. */
import { useState } from "react";
import { count } from "../format.ts";
import { useSession } from "../session.ts";
import { Confirm } from "../ui/dialog.tsx";
import { nameOf, work } from "../work.ts";
import styles from "./cancel.module.css";

interface Props {
  run: { handle: string; kind: string; operation: string; creditCost: number };
  /** Whether nodes wait for its outputs. */
  hasTargets: boolean;
  close: () => void;
  canceled: () => void;
}

export function CancelDialog({ run, hasTargets, close, canceled }: Props) {
  const [removes, setRemoves] = useState(true);
  const canRemove = useSession().session.scopes.includes("canvas:write") && hasTargets;
  async function cancel() {
    await work.cancel(run.handle, canRemove && removes);
    canceled();
  }
  return (
    <Confirm title={`Cancel ${nameOf(run).toLowerCase()}?`} action="Cancel it" run={cancel} close={close}>
      What is stored stays. What a provider has accepted may still be charged
      {run.creditCost > 0 ? `; the rest of ${count(run.creditCost, "credit")} is returned.` : "."}
      {canRemove && (
        <label className={styles.choice}>
          <input type="checkbox" checked={removes} onChange={({ target }) => setRemoves(target.checked)} />
          Also delete the empty places that were made for it
        </label>
      )}
    </Confirm>
  );
}
