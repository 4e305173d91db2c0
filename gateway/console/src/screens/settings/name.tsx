import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type SubmitEvent, useState } from "react";
import type { Session } from "../../api.ts";
import { person } from "../../person.ts";
import { useSession } from "../../session.ts";
import { Field, isBeyond, problemAt } from "../../ui/field.tsx";
import { Button, Notice } from "../../ui/parts.tsx";
import { Section } from "./section.tsx";
import styles from "./settings.module.css";

/** The name that others see. */
export function Name() {
  const queries = useQueryClient();
  const { account } = useSession();
  const [name, setName] = useState(account.displayName);
  const change = useMutation({
    mutationFn: person.rename,
    onSuccess: (account) => {
      setName(account.displayName);
      queries.setQueryData<Session | null>(["session"], (session) => session && { ...session, account, session: { ...session.session, label: account.displayName } });
    },
  });

  function submit(event: SubmitEvent) {
    event.preventDefault();
    if (!change.isPending) change.mutate(name);
  }

  const { error } = change;
  return (
    <Section title="Name" lead="What others see of you on canvases that you share. They do not see your email, except the owner of a canvas that is shared with you.">
      <form className={styles.form} onSubmit={submit} noValidate>
        <Field label="Name" hint="At most 80 characters, without @. Empty: the first part of your email." problem={problemAt(error, "displayName", "The name")}>
          {(control) => <input {...control} dir="auto" autoComplete="off" value={name} onChange={({ target }) => setName(target.value)} />}
        </Field>
        {isBeyond(error, ["displayName"]) && <Notice error={error} />}
        <div className={styles.buttons}>
          <Button look="primary" type="submit" isBusy={change.isPending}>
            Save
          </Button>
        </div>
        <p className="unseen" role="status">
          {change.data && `Your name is ${change.data.displayName}`}
        </p>
      </form>
    </Section>
  );
}
