/** A person types the code that a program without a browser shows, and decides (docs/reference/oauth.md#device-authorization). */
import { useMutation } from "@tanstack/react-query";
import { type SubmitEvent, useState } from "react";
import { Link } from "wouter";
import { ago } from "../format.ts";
import { person, type RequestedDevice } from "../person.ts";
import { useSession } from "../session.ts";
import { Field, isBeyond, problemAt } from "../ui/field.tsx";
import { useTitle } from "../ui/hooks.ts";
import { Button, Icon, Notice } from "../ui/parts.tsx";
import styles from "./authorize.module.css";
import { Consent, Narrow, Page } from "./consent.tsx";

export function Device() {
  useTitle("Connect a device");
  const { session } = useSession();
  return <Page>{session.kind === "full" ? <Connect /> : <Narrow />}</Page>;
}

/** The code is typed, never taken from the address: who follows a link of somebody else would connect that one's program. */
function Connect() {
  const [code, setCode] = useState("");
  const lookup = useMutation({ mutationFn: (typed: string) => person.previewDevice(typed) });
  // What was looked up, which the field may no longer hold.
  if (lookup.data) return <Decision userCode={lookup.variables} request={lookup.data} />;

  function submit(event: SubmitEvent) {
    event.preventDefault();
    if (!lookup.isPending) lookup.mutate(code);
  }

  return (
    <>
      <h1>Connect the command line</h1>
      <p className={styles.lead}>
        Type the code that <code>canvas login --device</code> shows in your terminal.
      </p>
      <form className={styles.code} onSubmit={submit} noValidate>
        <Field label="Code" hint="It is good for 10 minutes." problem={problemAt(lookup.error, "userCode", "The code")}>
          {(control) => (
            <input
              {...control}
              autoFocus
              autoCapitalize="characters"
              autoComplete="off"
              spellCheck={false}
              placeholder="BCDF-GHJK"
              maxLength={40}
              value={code}
              onChange={({ target }) => setCode(target.value)}
            />
          )}
        </Field>
        {isBeyond(lookup.error, ["userCode"]) && <Notice error={lookup.error} />}
        <Button look="primary" type="submit" isBusy={lookup.isPending}>
          Continue
        </Button>
      </form>
    </>
  );
}

function Decision({ userCode, request }: { userCode: string; request: RequestedDevice }) {
  return (
    <Consent
      asked={request}
      recipient={<Recipient request={request} />}
      decide={(grant) => person.decideDevice({ userCode, decision: grant === undefined ? "deny" : "allow", ...grant })}
      renderDecided={(_, isAllowed) => <Decided isAllowed={isAllowed} />}
    />
  );
}

function Recipient({ request: { address, askedAt } }: { request: RequestedDevice }) {
  return (
    <div className={styles.recipient}>
      <p>
        Access goes to <strong>the terminal that shows this code</strong>
      </p>
      <p className={styles.quiet}>
        It asked {ago(askedAt)}, from the address <code>{address}</code>.
      </p>
      <p className={styles.warning}>
        <Icon name="finding" size={16} />
        <span>Allow it only if you have just started it yourself. If somebody sent you this code, they would get access to your account.</span>
      </p>
    </div>
  );
}

function Decided({ isAllowed }: { isAllowed: boolean }) {
  return (
    <>
      <h1>{isAllowed ? "Connected" : "Denied"}</h1>
      <p className={styles.lead} role="status">
        {isAllowed ? (
          <>
            Go back to your terminal. You can end the access in <Link href="/settings/apps">Settings</Link>.
          </>
        ) : (
          <>The command line got no access. You can close this page.</>
        )}
      </p>
    </>
  );
}
