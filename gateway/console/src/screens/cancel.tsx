/** Asks before work is canceled, and what becomes of its empty nodes. */
import { useState } from "react";
import { count } from "../format.ts";
import { useSession } from "../session.ts";
import { Confirm } from "../ui/dialog.tsx";
import { nameOf, work } from "../work.ts";
import styles from "./cancel.module.css";

export interface Run {
  handle: string;
  kind: string;
  operation: string;
  creditCost: number;
}

interface Props {
  runs: readonly Run[];
  /** Whether nodes wait for its outputs. */
  hasTargets: boolean;
  close: () => void;
  canceled: () => void;
}

export function CancelDialog({ runs, hasTargets, close, canceled }: Props) {
  const [removes, setRemoves] = useState(true);
  const canRemove = useSession().session.scopes.includes("canvas:write") && hasTargets;
  async function cancel() {
    await Promise.all(runs.map(({ handle }) => work.cancel(handle, canRemove && removes)));
    canceled();
  }
  const [first, ...others] = runs;
  const cost = runs.reduce((sum, { creditCost }) => sum + creditCost, 0);
  return (
    <Confirm title={`Cancel ${first && others.length === 0 ? nameOf(first).toLowerCase() : count(runs.length, "run")}?`} action={others.length === 0 ? "Cancel it" : "Cancel them"} run={cancel} close={close}>
      What is stored stays. What a provider has accepted may still be charged
      {cost > 0 ? `; the rest of ${count(cost, "credit")} is returned.` : "."}
      {canRemove && (
        <label className={styles.choice}>
          <input type="checkbox" checked={removes} onChange={({ target }) => setRemoves(target.checked)} />
          Also delete the empty places that were made for it
        </label>
      )}
    </Confirm>
  );
}
