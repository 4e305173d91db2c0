/** A program asks for access, and the person decides (docs/reference/oauth.md#consent). */
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { Problem } from "../errors.ts";
import { person, type RequestedAuthorization } from "../person.ts";
import { useSession } from "../session.ts";
import { useTitle } from "../ui/hooks.ts";
import { Failure, Icon, Waiting } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import styles from "./authorize.module.css";
import { Consent, Narrow, Page } from "./consent.tsx";

export function Authorize() {
  useTitle("Allow an app");
  const { session } = useSession();
  return <Page>{session.kind === "full" ? <Asked query={location.search.slice(1)} /> : <Narrow />}</Page>;
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

function Decision({ query, request }: { query: string; request: RequestedAuthorization }) {
  return (
    <Consent
      asked={request}
      recipient={<Recipient request={request} />}
      decide={async (grant) => {
        const { redirectTo } = await person.decideAuthorization({ query, decision: grant === undefined ? "deny" : "allow", ...grant });
        location.assign(redirectTo);
        return redirectTo;
      }}
      renderDecided={(redirectTo, isAllowed) => <Decided request={request} isAllowed={isAllowed} redirectTo={redirectTo} />}
    />
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
