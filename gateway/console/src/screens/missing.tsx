import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { signInPath } from "../address.ts";
import { useSession } from "../session.ts";
import { useTitle } from "../ui/hooks.ts";
import { Boundary, later } from "../ui/later.tsx";
import { useLeave } from "../ui/leave.tsx";
import { Button, Empty } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import { Shell } from "../ui/shell.tsx";
import styles from "./missing.module.css";

const Unsent = later(async () => ({ default: (await import("../board/unsent.tsx")).Unsent }));

/** The page for an unknown address. */
export const Missing = () => <Nothing />;

/** The page for a canvas that does not exist or is not shared with this account: it looks the same, so nobody learns which. */
export function MissingCanvas({ handle }: { handle: string }) {
  return (
    <Nothing>
      <Boundary>
        <Unsent canvas={handle} />
      </Boundary>
    </Nothing>
  );
}

function Nothing({ children }: { children?: ReactNode }) {
  useTitle("Not found");
  const { account } = useSession();
  const { leave, question } = useLeave();
  const [path] = useLocation();
  return (
    <Shell>
      <Empty
        title="There is nothing here for you"
        image={
          <svg className={styles.image} viewBox="0 0 200 130" aria-hidden="true">
            <path className={styles.wire} d="M70 62c34 0 18 28 52 28" />
            <rect className={styles.node} x="14" y="28" width="66" height="58" rx="9" />
            <rect className={styles.gap} x="122" y="58" width="64" height="56" rx="9" />
          </svg>
        }
      >
        <p className={parts.text}>
          The page does not exist, was deleted, or is not shared with <strong>{account.email}</strong>.
        </p>
        <div className={styles.ways}>
          <Link href="/" className={`${parts.button} ${parts.primary}`}>
            All canvases
          </Link>
          <Button onClick={() => leave.mutate(signInPath(path))}>Use another account</Button>
        </div>
        {children}
        {question}
      </Empty>
    </Shell>
  );
}
