/** A program asks for access, and the person decides (docs/reference/oauth.md#consent). */
import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { signInPath } from "../address.ts";
import { Problem } from "../errors.ts";
import { person, type RequestedAuthorization, type Scope } from "../person.ts";
import { useSession } from "../session.ts";
import { isBeyond } from "../ui/field.tsx";
import { useTitle } from "../ui/hooks.ts";
import { useLeave } from "../ui/leave.tsx";
import { Avatar, Button, Failure, Icon, Mark, Notice, Waiting } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import styles from "./authorize.module.css";
import { budgetsOf, limitsOf } from "./settings/budgets.ts";
import { LimitFields } from "./settings/budgets.tsx";
import { neededBy, SCOPES, withNeeded } from "./settings/scopes.ts";

export function Authorize() {
  useTitle("Allow an app");
  const { session } = useSession();
  return (
    <main className={styles.page}>
      <div className={styles.brand}>
        <Mark size={30} />
        <span>Canvas Service</span>
      </div>
      <div className={styles.card}>{session.kind === "full" ? <Asked query={location.search.slice(1)} /> : <Narrow />}</div>
    </main>
  );
}

function Asked({ query }: { query: string }) {
  const preview = useQuery({
    queryKey: ["authorization", query],
    queryFn: ({ signal }) => person.previewAuthorization(query, signal),
    // What is asked for does not change while the person decides.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const { data, error } = preview;
  if (data?.request) return <Decision query={query} request={data.request} />;
  if (data?.redirectTo !== undefined) return <Refused redirectTo={data.redirectTo} />;
  if (error instanceof Problem && error.status === 400) return <Invalid error={error} />;
  if (error instanceof Problem && error.status === 404) {
    return <Nothing title="Apps cannot be allowed here">Whoever runs the service has switched this off.</Nothing>;
  }
  if (error) return <Failure title="The request cannot be read" error={error} retry={preview.refetch} />;
  return <Waiting label="Reading what the app asks for" />;
}

/** The app is told, but not without a click: anybody may register an address, and this page must lead nobody there by itself. */
function Refused({ redirectTo }: { redirectTo: string }) {
  return (
    <>
      <h1>This request is not valid</h1>
      <p className={styles.lead}>The app that sent you here asked in a way that this service does not accept. Nothing was allowed.</p>
      <div className={styles.buttons}>
        <Link href="/" className={`${parts.button} ${parts.primary}`}>
          All canvases
        </Link>
        <a href={redirectTo} className={`${parts.button} ${parts.plain}`}>
          Tell {new URL(redirectTo).host || "the app"}
        </a>
      </div>
    </>
  );
}

function Nothing({ title, children }: { title: string; children: ReactNode }) {
  return (
    <>
      <h1>{title}</h1>
      <p className={styles.lead}>{children}</p>
      <div className={styles.buttons}>
        <Link href="/" className={`${parts.button} ${parts.primary}`}>
          All canvases
        </Link>
      </div>
    </>
  );
}

/** Nothing is sent to an address that does not belong to a known client. */
function Invalid({ error }: { error: Problem }) {
  return (
    <Nothing title="This request is not valid">
      An app sent you here with a request that {error.fields[0]?.message ?? "is not valid"}. Nothing was sent back to it. Connect again from the app; if that
      does not help, tell whoever makes it.
    </Nothing>
  );
}

function Narrow() {
  const { session } = useSession();
  const { leave, question } = useLeave();
  return (
    <>
      <h1>Only a person may allow an app</h1>
      <p className={styles.lead}>
        You are signed in with the token <bdi>{session.label}</bdi>, which must not give access to others. Sign in by a link, and you come back here.
      </p>
      <div className={styles.buttons}>
        <Button look="primary" onClick={() => leave.mutate(signInPath(location.pathname + location.search))}>
          Sign out and use a link
        </Button>
      </div>
      {question}
    </>
  );
}

/** The scopes that spend credit. */
const SPENDING: readonly Scope[] = ["image:generate", "video:generate"];

/** Scopes by what they mean for the person, in the order in which they matter more. */
const GROUPS: { name: string; scopes: readonly Scope[] }[] = [
  { name: "Look", scopes: ["canvas:read", "asset:read", "element:read"] },
  { name: "Edit", scopes: ["canvas:write", "element:write", "job:manage"] },
  { name: "Spend credit", scopes: SPENDING },
];

/** Days until the app ends. */
const ENDS: [value: string, name: string][] = [
  ["1", "after 1 day"],
  ["7", "after 7 days"],
  ["30", "after 30 days"],
  ["90", "after 90 days"],
  ["", "when you end it"],
];

function Decision({ query, request }: { query: string; request: RequestedAuthorization }) {
  const { account } = useSession();
  const { leave, question } = useLeave();
  const [chosen, setChosen] = useState<Scope[]>(request.scopes);
  const [limits, setLimits] = useState(() => limitsOf(request.budgets));
  const [days, setDays] = useState("90");
  const scopes = withNeeded(chosen);
  const canSpend = scopes.some((scope) => SPENDING.includes(scope));
  const decision = useMutation({
    mutationFn: (isAllowed: boolean) =>
      person.decideAuthorization({
        query,
        decision: isAllowed ? "allow" : "deny",
        ...(isAllowed && { scopes, budgets: canSpend ? budgetsOf(limits) : [], ...(days !== "" && { expiresDays: Number(days) }) }),
      }),
    onSuccess: ({ redirectTo }) => location.assign(redirectTo),
  });
  if (decision.data) return <Decided request={request} isAllowed={decision.variables === true} redirectTo={decision.data.redirectTo} />;
  const groups = GROUPS.map(({ name, scopes }) => ({ name, scopes: scopes.filter((scope) => request.scopes.includes(scope)) }));
  return (
    <>
      <h1>
        Allow <bdi className={styles.name}>{request.name}</bdi> to use your canvases?
      </h1>
      <div className={styles.person}>
        <Avatar name={account.displayName} size={36} />
        <div>
          <p dir="auto">{account.displayName}</p>
          <p className={styles.quiet}>{account.email}</p>
        </div>
        <Button look="quiet" onClick={() => leave.mutate(signInPath(location.pathname + location.search))}>
          Use another account
        </Button>
      </div>
      <Recipient request={request} />
      <fieldset className={styles.scopes}>
        <legend>What it may do</legend>
        {groups.map(
          ({ name, scopes: those }) =>
            those.length > 0 && (
              <div key={name} role="group" aria-label={name}>
                <p className={styles.group}>{name}</p>
                <ul>
                  {those.map((scope) => (
                    <ScopeSwitch key={scope} scope={scope} scopes={scopes} chosen={chosen} choose={setChosen} />
                  ))}
                </ul>
              </div>
            ),
        )}
      </fieldset>
      {canSpend && <LimitFields limits={limits} change={setLimits} error={decision.error} />}
      <p className={styles.quiet}>It may use all canvases that you may use. What it does appears under its name.</p>
      <label className={styles.end}>
        <span>Access ends</span>
        <select value={days} onChange={({ target }) => setDays(target.value)}>
          {ENDS.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {isBeyond(decision.error, ["budgets"]) && <Notice error={decision.error} />}
      <div className={styles.buttons}>
        <Button isBusy={decision.isPending} onClick={() => decision.mutate(false)}>
          Deny
        </Button>
        <Button look="primary" isBusy={decision.isPending || scopes.length === 0} onClick={() => decision.mutate(true)}>
          Allow
        </Button>
      </div>
      {question}
    </>
  );
}

/** Who gets the answer. Any program can say that it has this name, but only one gets what is sent to the address. */
function Recipient({ request: { kind, name, redirectHost, redirectTarget, redirectUri } }: { request: RequestedAuthorization }) {
  const isLocal = redirectTarget !== "web";
  return (
    <div className={styles.recipient}>
      <p>
        Access goes to <strong>{isLocal ? "an app on this computer" : redirectHost}</strong>
      </p>
      <p className={styles.address}>
        <code>{redirectUri}</code>
      </p>
      {kind === "listed" ? (
        <p className={styles.quiet}>Whoever runs this service has listed this app.</p>
      ) : (
        <p className={styles.warning}>
          <Icon name="finding" size={16} />
          <span>
            {isLocal ? (
              <>Any program on this computer can say that it is “<bdi>{name}</bdi>”. Allow it only if you have just started to connect it.</>
            ) : (
              <>The name is unverified: the app gave it to itself. Go by the address.</>
            )}
          </span>
        </p>
      )}
    </div>
  );
}

interface ScopeSwitchProps {
  scope: Scope;
  scopes: Scope[];
  chosen: Scope[];
  choose: (scopes: Scope[]) => void;
}

/** A scope that another one needs cannot be taken away before that one. */
function ScopeSwitch({ scope, scopes, chosen, choose }: ScopeSwitchProps) {
  const dependents = neededBy(scope, scopes);
  return (
    <li>
      <label>
        <input
          type="checkbox"
          checked={scopes.includes(scope)}
          disabled={dependents.length > 0}
          onChange={({ target }) => choose(target.checked ? [...chosen, scope] : chosen.filter((one) => one !== scope))}
        />
        <span>
          {SCOPES[scope].grants}
          <code>{scope}</code>
        </span>
      </label>
    </li>
  );
}

/** A page stays open when its answer goes to a program that is not a page. */
function Decided({ request, isAllowed, redirectTo }: { request: RequestedAuthorization; isAllowed: boolean; redirectTo: string }) {
  return (
    <>
      <h1>{isAllowed ? "Connected" : "Denied"}</h1>
      <p className={styles.lead} role="status">
        {isAllowed ? (
          <>
            <bdi>{request.name}</bdi> has access. You can close this page, and end the access in <Link href="/settings/apps">Settings</Link>.
          </>
        ) : (
          <>
            <bdi>{request.name}</bdi> got no access. You can close this page.
          </>
        )}
      </p>
      <p className={styles.quiet}>
        If the app does not go on, <a href={redirectTo}>return to it</a>.
      </p>
    </>
  );
}
