import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ago, day } from "../../format.ts";
import { type Identity, person } from "../../person.ts";
import { useProviders } from "../../session.ts";
import { problemIn } from "../../sign-in-problem.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { useClock } from "../../ui/hooks.ts";
import { Button, Empty, Failure, Notice, Waiting } from "../../ui/parts.tsx";
import parts from "../../ui/parts.module.css";
import { Section } from "./section.tsx";
import styles from "./settings.module.css";

/** How long before its tokens stop the owner of an account is warned, in milliseconds. */
const WARNING = 14 * 24 * 60 * 60 * 1000;

const isNear = (time: string) => Date.parse(time) < Date.now() + WARNING;

/** The identities that sign in to the account. */
export function SignInWays() {
  useClock();
  const providers = useProviders();
  const { data, error, refetch } = useQuery({ queryKey: ["identities"], queryFn: ({ signal }) => person.identities(signal) });
  const link = useMutation({ mutationFn: person.link, onSuccess: (url) => location.assign(url) });
  const problem = problemIn(location.search);
  const buttons = providers.data?.map(({ id, name }) => (
    <Button key={id} isBusy={link.isPending && link.variables === id} onClick={() => link.mutate(id)}>
      Link {name}
    </Button>
  ));
  return (
    <Section
      title="Sign-in"
      lead="People at your sign-in providers who get in to this account. The address of an email alone lets nobody in."
      action={data && data.identities.length > 0 && <div className={styles.actions}>{buttons}</div>}
    >
      {problem !== undefined && (
        <p className={styles.warning} role="alert">
          {problem}
        </p>
      )}
      {link.error && <Notice error={link.error} />}
      {data?.confirmBy !== undefined && isNear(data.confirmBy) && (
        <p className={styles.warning} role="status">
          Tokens of this account stop working on {day(data.confirmBy)}. Sign in with your provider before, and they go on.
        </p>
      )}
      {!data && (error ? <Failure title="The identities cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the identities" />)}
      {data?.identities.length === 0 && (
        <Empty title="No identity is linked">
          <p className={parts.text}>
            {buttons?.length ? "Link one, and sign in with it from then on instead of a link." : "This service has no sign-in provider. Whoever runs it makes sign-in links."}
          </p>
          {buttons}
        </Empty>
      )}
      {data && data.identities.length > 0 && (
        <ul className={styles.rows} aria-label="Identities">
          {data.identities.map((identity) => (
            <Row key={identity.id} identity={identity} isLast={data.identities.length === 1} />
          ))}
        </ul>
      )}
    </Section>
  );
}

function Row({ identity: { id, name, provider, email, createdAt, lastSigninAt }, isLast }: { identity: Identity; isLast: boolean }) {
  const queries = useQueryClient();
  const [isAsking, setIsAsking] = useState(false);
  const shown = name ?? provider;
  return (
    <li className={styles.row}>
      <div className={styles.what}>
        <h3>
          <bdi>{shown}</bdi>
          {email !== undefined && <span className={styles.tag}>{email}</span>}
        </h3>
        <p className={styles.meta}>
          <span>{lastSigninAt === undefined ? "not used yet" : `used ${ago(lastSigninAt)}`}</span>
          <span>linked {ago(createdAt)}</span>
        </p>
      </div>
      <Button aria-label={`Unlink ${shown} ${email ?? ""}`.trim()} onClick={() => setIsAsking(true)}>
        Unlink…
      </Button>
      {isAsking && (
        <Confirm
          title={`Unlink ${shown}?`}
          action="Unlink"
          run={() => person.unlink(id)}
          done={() => void queries.invalidateQueries({ queryKey: ["identities"] })}
          close={() => setIsAsking(false)}
        >
          <p>It does not sign in to this account any more.{isLast && " You need a sign-in link afterwards, which whoever runs the service makes."}</p>
        </Confirm>
      )}
    </li>
  );
}
