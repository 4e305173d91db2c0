import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type SubmitEvent, useEffect, useEffectEvent, useState } from "react";
import { Link } from "wouter";
import { type Account, admin, type CreateAccount } from "../../admin.ts";
import { ago, bytes, count, day, number } from "../../format.ts";
import { Modal } from "../../ui/dialog.tsx";
import { Copyable, Field, isBeyond, problemAt } from "../../ui/field.tsx";
import { useAddress, useClock, usePages, useSettled } from "../../ui/hooks.ts";
import { Button, Notice } from "../../ui/parts.tsx";
import { Filter, keyIn, Listed } from "../settings/list.tsx";
import { Section } from "../settings/section.tsx";
import styles from "../settings/settings.module.css";

const STATES = { enabled: "Enabled", disabled: "Disabled" } as const;
const ROLES = { member: "Members", admin: "Administrators" } as const;
/** How long somebody has not typed before accounts are searched, in milliseconds. */
const REST = 250;

export function Accounts() {
  useClock();
  const { params, set } = useAddress();
  const [text, setText] = useState(params.get("q") ?? "");
  const [isCreating, setIsCreating] = useState(false);
  const q = useSettled(text.trim(), REST);
  const noteQ = useEffectEvent((q: string) => set("q", q));
  useEffect(() => noteQ(q), [q]);
  const status = keyIn(STATES, params.get("status"));
  const role = keyIn(ROLES, params.get("role"));
  const filter = { ...(q !== "" && { q }), ...(status && { status }), ...(role && { role }) };
  const list = usePages(["admin", "accounts", filter], (cursor, signal) => admin.accounts(filter, cursor, signal), { staleTime: 0 });
  const accounts = list.data?.pages.flatMap((page) => page.accounts) ?? [];
  return (
    <Section
      title="Accounts"
      lead="Who may use the service, and what it may use. What an account makes is not shown here."
      action={
        <Button look="primary" onClick={() => setIsCreating(true)}>
          New account…
        </Button>
      }
    >
      <div className={styles.actions} role="search">
        <label className={styles.filter}>
          <span>Find</span>
          <input type="search" autoComplete="off" spellCheck={false} maxLength={254} placeholder="Email, name or id" value={text} onChange={({ target }) => setText(target.value)} />
        </label>
        <Filter label="State" value={status ?? ""} choices={STATES} choose={(value) => set("status", value)} />
        <Filter label="Role" value={role ?? ""} choices={ROLES} choose={(value) => set("role", value)} />
      </div>
      <Listed list={list} noun="accounts" isEmpty={accounts.length === 0}>
        <ul className={styles.rows} aria-label="Accounts">
          {accounts.map((account) => (
            <Row key={account.id} account={account} />
          ))}
        </ul>
      </Listed>
      {isCreating && <Creation close={() => setIsCreating(false)} />}
    </Section>
  );
}

function Row({ account }: { account: Account }) {
  return (
    <li className={styles.row} {...(!account.enabled && { "data-ended": true })}>
      <div className={styles.what}>
        <h3>
          <Link href={`/admin/accounts/${account.id}`}>
            <bdi>{account.email}</bdi>
          </Link>
          {account.role === "admin" && <span className={styles.current}>Administrator</span>}
          {!account.enabled && <span className={styles.tag}>Disabled</span>}
        </h3>
        <p className={styles.meta}>
          <span>{number(account.creditBalance)} credits</span>
          <span>{bytes(account.storage.bytes)} stored</span>
          <span>{count(account.tokens, "token")}</span>
          <span>{account.lastSignedInAt === undefined ? "not signed in lately" : `signed in ${ago(account.lastSignedInAt)}`}</span>
        </p>
      </div>
    </li>
  );
}

function Creation({ close }: { close: () => void }) {
  const queries = useQueryClient();
  const [email, setEmail] = useState("");
  const [displayName, setDisplayName] = useState("");
  const [credits, setCredits] = useState("0");
  const [isInvited, setIsInvited] = useState(true);
  const creation = useMutation({
    mutationFn: (body: CreateAccount) => admin.createAccount(body),
    onSuccess: () => void queries.invalidateQueries({ queryKey: ["admin", "accounts"] }),
    // The answer has the invitation, which is kept nowhere after this dialog.
    gcTime: 0,
  });
  const { error, data } = creation;

  function submit(event: SubmitEvent) {
    event.preventDefault();
    if (creation.isPending) return;
    const name = displayName.trim();
    creation.mutate({ email: email.trim(), credits: Math.trunc(Number(credits)) || 0, ...(name !== "" && { displayName: name }), ...(isInvited && { invite: true as const }) });
  }

  if (data) {
    return (
      <Modal title="The account is there" close={close}>
        <div className={styles.form}>
          {data.invitation ? (
            <>
              <p>
                Send this link to <strong>{data.account.email}</strong>. It signs in once, until {day(data.invitation.expiresAt)}, and is not shown again.
              </p>
              <Copyable label="Link" text={data.invitation.url} />
            </>
          ) : (
            <p>
              <strong>{data.account.email}</strong> can sign in with a link.
            </p>
          )}
          <div className={styles.buttons}>
            <Button look="primary" onClick={close}>
              Done
            </Button>
          </div>
        </div>
      </Modal>
    );
  }
  return (
    <Modal title="New account" close={close}>
      <form className={styles.form} onSubmit={submit} noValidate>
        <Field label="Email" problem={problemAt(error, "email", "The email")}>
          {(control) => <input {...control} data-first type="email" autoComplete="off" value={email} onChange={({ target }) => setEmail(target.value)} />}
        </Field>
        <Field label="Name" hint="What others see. Empty: the first part of the email." problem={problemAt(error, "displayName", "The name")}>
          {(control) => <input {...control} dir="auto" autoComplete="off" value={displayName} onChange={({ target }) => setDisplayName(target.value)} />}
        </Field>
        <Field label="Credits" problem={problemAt(error, "credits", "The number of credits")}>
          {(control) => <input {...control} inputMode="numeric" autoComplete="off" value={credits} onChange={({ target }) => setCredits(target.value)} />}
        </Field>
        <label>
          <input type="checkbox" checked={isInvited} onChange={({ target }) => setIsInvited(target.checked)} /> Make a link that signs the person in
        </label>
        {isBeyond(error, ["email", "displayName", "credits"]) && <Notice error={error} />}
        <div className={styles.buttons}>
          <Button look="primary" type="submit" isBusy={creation.isPending}>
            Create account
          </Button>
          <Button onClick={close}>Cancel</Button>
        </div>
      </form>
    </Modal>
  );
}
