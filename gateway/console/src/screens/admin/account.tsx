import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type SubmitEvent, useState } from "react";
import { Link } from "wouter";
import { type Account, type AccountToken, admin, type ChangeAccount } from "../../admin.ts";
import { ago, bytes, count, day, moment, number } from "../../format.ts";
import { useSession } from "../../session.ts";
import { Confirm } from "../../ui/dialog.tsx";
import { Field, isBeyond, problemAt } from "../../ui/field.tsx";
import { useClock } from "../../ui/hooks.ts";
import { Button, Failure, Notice, Waiting } from "../../ui/parts.tsx";
import { Refused } from "../settings/list.tsx";
import { Section } from "../settings/section.tsx";
import styles from "../settings/settings.module.css";

/** Bytes of a gibibyte, in which quotas are written. */
const GIB = 1024 ** 3;

const isPast = (time: string | undefined) => time !== undefined && Date.parse(time) <= Date.now();

export function AccountPage({ uid }: { uid: string }) {
  const { data, error, refetch } = useQuery({ queryKey: ["admin", "account", uid], queryFn: ({ signal }) => admin.account(uid, signal), staleTime: 0 });
  if (!data) return error ? <Refused title="The account cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the account" />;
  return <Shown account={data} />;
}

function Shown({ account }: { account: Account }) {
  useClock();
  const queries = useQueryClient();
  const own = useSession().account.id === account.id;
  const [asked, ask] = useState<"disable" | "sessions">();
  const change = useMutation({
    mutationFn: (body: ChangeAccount) => admin.changeAccount(account.id, body),
    onSuccess: (changed) => {
      queries.setQueryData(["admin", "account", account.id], changed);
      void queries.invalidateQueries({ queryKey: ["admin", "accounts"] });
    },
  });
  const { storage } = account;
  const facts: [string, string][] = [
    ["Id", account.id],
    ["Name", account.displayName],
    ["Created", moment(account.createdAt)],
    ["Signed in", account.lastSignedInAt === undefined ? "not within 90 days" : ago(account.lastSignedInAt)],
    ["Sessions", number(account.sessions)],
    ["Credits", number(account.creditBalance)],
    ["Storage", `${bytes(storage.bytes)} of ${storage.max === undefined ? "any number" : bytes(storage.max)}${storage.default ? " (default)" : ""}`],
  ];
  return (
    <Section
      title={account.email}
      lead={
        <>
          {account.role === "admin" ? "Administrator" : "Member"}
          {!account.enabled && ", disabled"}. <Link href={`/admin/audit?account=${account.id}`}>What was done with it</Link>
        </>
      }
      action={
        <div className={styles.actions}>
          <Button isBusy={change.isPending} disabled={own && account.role === "admin"} onClick={() => change.mutate({ role: account.role === "admin" ? "member" : "admin" })}>
            {account.role === "admin" ? "Take the role of administrator" : "Make administrator"}
          </Button>
          <Button isBusy={change.isPending} disabled={own} onClick={() => (account.enabled ? ask("disable") : change.mutate({ enabled: true }))}>
            {account.enabled ? "Disable…" : "Enable"}
          </Button>
        </div>
      }
    >
      {change.error && <Notice error={change.error} />}
      <div className={styles.details}>
        <dl>
          {facts.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd dir="auto">{value}</dd>
            </div>
          ))}
        </dl>
      </div>
      <CreditForm account={account} />
      <QuotaForm account={account} change={change.mutateAsync} />
      <Tokens uid={account.id} />
      <div className={styles.buttons}>
        <Button onClick={() => ask("sessions")}>End all sessions and tokens…</Button>
      </div>
      {asked === "disable" && (
        <Confirm title={`Disable ${account.email}?`} action="Disable" run={() => change.mutateAsync({ enabled: false })} close={() => ask(undefined)}>
          <p>Every request with a session or token of this account is refused from now on. Work that runs goes on. Enabling the account restores all of it.</p>
        </Confirm>
      )}
      {asked === "sessions" && (
        <Confirm
          title="End all sessions and tokens?"
          action="End them"
          run={() => admin.endSessions(account.id)}
          done={() => void queries.invalidateQueries({ queryKey: ["admin"] })}
          close={() => ask(undefined)}
        >
          <p>
            {count(account.sessions, "session")} and {count(account.tokens, "token")} of <strong>{account.email}</strong> end for good. The person needs a new sign-in
            link, and programs need new tokens.
          </p>
        </Confirm>
      )}
    </Section>
  );
}

function CreditForm({ account }: { account: Account }) {
  const queries = useQueryClient();
  const [amount, setAmount] = useState("");
  const [note, setNote] = useState("");
  // A repetition of a request that may have arrived moves nothing again.
  const [key, setKey] = useState(() => crypto.randomUUID());
  const move = useMutation({
    mutationFn: () => admin.moveCredit(account.id, { amount: Math.trunc(Number(amount)) || 0, idempotencyKey: key, ...(note.trim() !== "" && { note: note.trim() }) }),
    onSuccess: () => {
      setAmount("");
      setNote("");
      setKey(crypto.randomUUID());
      void queries.invalidateQueries({ queryKey: ["admin"] });
    },
  });
  const { error } = move;

  function submit(event: SubmitEvent) {
    event.preventDefault();
    if (!move.isPending) move.mutate();
  }

  return (
    <form className={styles.form} onSubmit={submit} noValidate aria-label="Credit">
      <Field label="Add credits" hint="Negative: take them away." problem={problemAt(error, "amount", "The number of credits")}>
        {(control) => <input {...control} inputMode="numeric" autoComplete="off" value={amount} onChange={({ target }) => setAmount(target.value)} />}
      </Field>
      <Field label="Note" hint="The person sees it in the ledger." problem={problemAt(error, "note", "The note")}>
        {(control) => <input {...control} dir="auto" autoComplete="off" maxLength={200} value={note} onChange={({ target }) => setNote(target.value)} />}
      </Field>
      {isBeyond(error, ["amount", "note"]) && <Notice error={error} />}
      <div className={styles.buttons}>
        <Button type="submit" isBusy={move.isPending}>
          Add
        </Button>
      </div>
      <p className="unseen" role="status">
        {move.data && `The account has ${number(move.data.creditBalance)} credits`}
      </p>
    </form>
  );
}

function QuotaForm({ account, change }: { account: Account; change: (body: ChangeAccount) => Promise<Account> }) {
  const { max, default: isDefault } = account.storage;
  const [text, setText] = useState(isDefault || max === undefined ? "" : String(max / GIB));
  const set = useMutation({ mutationFn: change });

  function submit(event: SubmitEvent) {
    event.preventDefault();
    if (set.isPending) return;
    set.mutate(text.trim() === "" ? { storageDefault: true } : { storageMax: Math.round((Number(text) || 0) * GIB) });
  }

  const { error } = set;
  return (
    <form className={styles.form} onSubmit={submit} noValidate aria-label="Storage">
      <Field label="Storage quota, in GiB" hint="Empty: the default of the installation. 0: no limit." problem={problemAt(error, "storageMax", "The quota")}>
        {(control) => <input {...control} inputMode="decimal" autoComplete="off" value={text} onChange={({ target }) => setText(target.value)} />}
      </Field>
      {isBeyond(error, ["storageMax"]) && <Notice error={error} />}
      <div className={styles.buttons}>
        <Button type="submit" isBusy={set.isPending}>
          Set
        </Button>
      </div>
      <p className="unseen" role="status">
        {set.isSuccess && "The quota is set"}
      </p>
    </form>
  );
}

function Tokens({ uid }: { uid: string }) {
  const { data, error, refetch } = useQuery({ queryKey: ["admin", "tokens", uid], queryFn: ({ signal }) => admin.tokens(uid, signal), staleTime: 0 });
  if (!data) return error ? <Failure title="The tokens cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the tokens" />;
  const active = data.tokens.filter(({ revokedAt, expiresAt }) => revokedAt === undefined && !isPast(expiresAt));
  if (active.length === 0) return <p className={styles.lead}>No active tokens.</p>;
  return (
    <ul className={styles.rows} aria-label="Tokens">
      {active.map((token) => (
        <TokenRow key={token.id} uid={uid} token={token} />
      ))}
    </ul>
  );
}

function TokenRow({ uid, token }: { uid: string; token: AccountToken }) {
  const queries = useQueryClient();
  const revoke = useMutation({ mutationFn: () => admin.revokeToken(uid, token.id), onSuccess: () => queries.invalidateQueries({ queryKey: ["admin"] }) });
  return (
    <li className={styles.row}>
      <div className={styles.what}>
        <h3>
          <bdi>{token.label}</bdi>
        </h3>
        <p className={styles.meta}>
          <span>{token.lastUsedAt === undefined ? "not used yet" : `used ${ago(token.lastUsedAt)}`}</span>
          <span>{token.expiresAt === undefined ? "does not expire" : `until ${day(token.expiresAt)}`}</span>
        </p>
        {revoke.error && <Notice error={revoke.error} />}
      </div>
      <Button isBusy={revoke.isPending} aria-label={`Revoke ${token.label}`} onClick={() => revoke.mutate()}>
        Revoke
      </Button>
    </li>
  );
}
