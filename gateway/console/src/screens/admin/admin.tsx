/** What administrators manage. Members load none of it. */
import type { ComponentType } from "react";
import { Link, Redirect } from "wouter";
import { useSession } from "../../session.ts";
import { useTitle } from "../../ui/hooks.ts";
import { intoView } from "../../ui/parts.tsx";
import { Shell } from "../../ui/shell.tsx";
import { Missing } from "../missing.tsx";
import styles from "../settings/settings.module.css";
import { AccountPage } from "./account.tsx";
import { Accounts } from "./accounts.tsx";
import { Audit } from "./audit.tsx";
import { Deliveries } from "./deliveries.tsx";
import { Health } from "./health.tsx";
import { Recipes } from "./recipes.tsx";
import { WorkOfAll } from "./work.tsx";

const TABS: Record<string, { label: string; Content: ComponentType }> = {
  accounts: { label: "Accounts", Content: Accounts },
  work: { label: "Work", Content: WorkOfAll },
  deliveries: { label: "Deliveries", Content: Deliveries },
  recipes: { label: "Recipes", Content: Recipes },
  audit: { label: "Audit", Content: Audit },
  health: { label: "Health", Content: Health },
};

/** `path` is what follows `/admin/` in the address. */
export function Admin({ path }: { path: string }) {
  const { account } = useSession();
  const [tab = "", uid, ...more] = path.split("/");
  const shown = Object.hasOwn(TABS, tab) ? TABS[tab] : undefined;
  useTitle(shown ? `${shown.label} · Administration` : "Administration");
  if (path === "") return <Redirect to="/admin/accounts" replace />;
  const isAccount = tab === "accounts" && uid !== undefined && uid !== "" && more.length === 0;
  if (!shown || account.role !== "admin" || (uid !== undefined && !isAccount)) return <Missing />;
  return (
    <Shell>
      <div className={styles.page}>
        <h1>Administration</h1>
        <nav className={styles.tabs} aria-label="Administration">
          {Object.entries(TABS).map(([key, { label }]) => (
            <Link key={key} href={`/admin/${key}`} {...(key === tab && { "aria-current": "page", ref: intoView })}>
              {label}
            </Link>
          ))}
        </nav>
        {isAccount ? <AccountPage key={uid} uid={uid} /> : <shown.Content />}
      </div>
    </Shell>
  );
}
