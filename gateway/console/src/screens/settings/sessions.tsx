import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ago, count, day } from "../../format.ts";
import { type OpenSession, person } from "../../person.ts";
import { useSigningIn } from "../../session.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { useClock } from "../../ui/hooks.ts";
import { loss, useLeave } from "../../ui/leave.tsx";
import { Button, Failure, Notice, Waiting } from "../../ui/parts.tsx";
import { browserName } from "./browser-name.ts";
import { Section } from "./section.tsx";
import styles from "./settings.module.css";

export function Sessions() {
  useClock();
  const { signOutEverywhere } = useSigningIn();
  const [isAsking, setIsAsking] = useState(false);
  const { data: lost = "" } = useQuery({ queryKey: ["lost"], queryFn: loss, enabled: isAsking, staleTime: 0 });
  const { data, error, refetch } = useQuery({ queryKey: ["sessions"], queryFn: ({ signal }) => person.sessions(signal) });
  return (
    <Section
      title="Sessions"
      lead="Browsers in which this account is signed in. A session ends after 12 hours without use."
      action={data && <Button onClick={() => setIsAsking(true)}>Sign out everywhere…</Button>}
    >
      {!data && (error ? <Failure title="The sessions cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the sessions" />)}
      {data && (
        <ul className={styles.rows} aria-label="Sessions">
          {data.toSorted((one, other) => Number(other.current) - Number(one.current)).map((session) => (
            <SessionRow key={session.id} session={session} />
          ))}
        </ul>
      )}
      {isAsking && data && (
        <Confirm title="Sign out everywhere?" action="Sign out everywhere" run={signOutEverywhere} close={() => setIsAsking(false)}>
          <p>
            <strong>{count(data.length, "session")}</strong> of this account, this one included, end at once. You need a new sign-in link afterwards.
          </p>
          {lost !== "" && <p>{lost}</p>}
          <p>Recipe runs that they started stop at their next step. Other work goes on, and tokens keep working: revoke those under Tokens.</p>
        </Confirm>
      )}
    </Section>
  );
}

function SessionRow({ session }: { session: OpenSession }) {
  const queries = useQueryClient();
  const { leave, question } = useLeave();
  const name = browserName(session.client);
  const end = useMutation({
    mutationFn: () => person.endSession(session.id),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["sessions"] }),
  });
  return (
    <li className={styles.row}>
      <div className={styles.what}>
        <h3>
          <bdi title={session.client}>{name}</bdi>
          {session.current && <span className={styles.current}>This session</span>}
          {session.kind === "narrow" && (
            <span className={styles.tag}>
              Token <bdi>{session.label}</bdi>
            </span>
          )}
        </h3>
        <p className={styles.meta}>
          <span title={session.lastUsedAt}>{session.lastUsedAt === undefined ? "not used yet" : `used ${ago(session.lastUsedAt)}`}</span>
          <span>signed in {ago(session.createdAt)}</span>
          <span>until {day(session.expiresAt)} at the latest</span>
        </p>
        {(end.error ?? leave.error) && <Notice error={end.error ?? leave.error} />}
        {question}
      </div>
      <Button isBusy={end.isPending || leave.isPending} aria-label={session.current ? "Sign out of this session" : `End the session in ${name}, signed in ${ago(session.createdAt)}`} onClick={() => (session.current ? leave.mutate(undefined) : end.mutate())}>
        {session.current ? "Sign out" : "End"}
      </Button>
    </li>
  );
}
