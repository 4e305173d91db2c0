/** What a person sets up for the account: who and what may use it. */
import type { ComponentType } from "react";
import { Link, Redirect } from "wouter";
import { signInPath } from "../../address.ts";
import { day } from "../../format.ts";
import { useProviders, useSession } from "../../session.ts";
import { useTitle } from "../../ui/hooks.ts";
import { useLeave } from "../../ui/leave.tsx";
import { Button, intoView } from "../../ui/parts.tsx";
import { Shell } from "../../ui/shell.tsx";
import { Missing } from "../missing.tsx";
import { Apps } from "./apps.tsx";
import { History } from "./audit.tsx";
import { Connections } from "./connections.tsx";
import { CreditLedger } from "./credit.tsx";
import { Name } from "./name.tsx";
import { NewToken } from "./new-token.tsx";
import { Sessions } from "./sessions.tsx";
import styles from "./settings.module.css";
import { Sharing } from "./sharing.tsx";
import { SignInWays } from "./sign-in.tsx";
import { Storage } from "./storage.tsx";
import { Tokens } from "./tokens.tsx";
import { Webhooks } from "./webhooks.tsx";

interface Tab {
  label: string;
  Content: ComponentType;
}

const TABS: Record<string, Tab> = {
  tokens: { label: "Tokens", Content: Tokens },
  apps: { label: "Apps", Content: Apps },
  connections: { label: "Connections", Content: Connections },
  sessions: { label: "Sessions", Content: Sessions },
  signin: { label: "Sign-in", Content: SignInWays },
  name: { label: "Name", Content: Name },
  sharing: { label: "Sharing", Content: Sharing },
  webhooks: { label: "Webhooks", Content: Webhooks },
  credit: { label: "Credit", Content: CreditLedger },
  storage: { label: "Storage", Content: Storage },
  history: { label: "History", Content: History },
};

/** Pages below a tab. */
const PAGES: Record<string, Tab> = { "tokens/new": { label: "New token", Content: NewToken } };

/** `path` is what follows `/settings/` in the address. */
export function Settings({ path }: { path: string }) {
  const { session } = useSession();
  const providers = useProviders();
  const shown = Object.hasOwn(TABS, path) ? TABS[path] : Object.hasOwn(PAGES, path) ? PAGES[path] : undefined;
  useTitle(shown ? `${shown.label} · Settings` : "Settings");
  if (path === "") return <Redirect to="/settings/tokens" replace />;
  if (!shown) return <Missing />;
  const current = path.split("/")[0];
  // Without providers there is nothing to see there.
  const isShown = (key: string) => key !== "signin" || key === current || providers.data?.length;
  return (
    <Shell>
      <div className={styles.page}>
        <h1>Settings</h1>
        <nav className={styles.tabs} aria-label="Settings">
          {Object.entries(TABS).filter(([key]) => isShown(key)).map(([key, { label }]) => (
            <Link key={key} href={`/settings/${key}`} {...(key === current && { "aria-current": "page", ref: intoView })}>
              {label}
            </Link>
          ))}
        </nav>
        {session.kind === "full" ? <shown.Content /> : <Narrow />}
      </div>
    </Shell>
  );
}

/** What a session that was opened with a token may do, and why it has no settings. */
function Narrow() {
  const { session, account } = useSession();
  const { leave, question } = useLeave();
  return (
    <section className={styles.narrow}>
      <h2>Settings need a sign-in link</h2>
      <p>
        You are signed in with the token <strong dir="auto">{session.label}</strong>. A token must not create tokens, give access to canvases or read keys, so a
        session that it opens has no settings.
      </p>
      <p>
        Until {day(session.expiresAt)}, this session may: {session.scopes.map((scope, index) => [index > 0 && ", ", <code key={scope}>{scope}</code>])}.
      </p>
      <p>
        To change settings of <strong>{account.email}</strong>, sign out and open a sign-in link. Whoever runs the service makes one:{" "}
        <code>canvas-gateway admin session link --account {account.email}</code>
      </p>
      <Button onClick={() => leave.mutate(signInPath(location.pathname))}>Sign out and use a link</Button>
      {question}
    </section>
  );
}
