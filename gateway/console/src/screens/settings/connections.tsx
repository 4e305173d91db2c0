import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type SubmitEvent, useState } from "react";
import { api } from "../../api.ts";
import { person, type ProviderConnection } from "../../person.ts";
import { Confirm, Modal } from "../../ui/dialog.tsx";
import { Field, isBeyond, problemAt } from "../../ui/field.tsx";
import { Button, Empty, Failure, Icon, Notice, Waiting } from "../../ui/parts.tsx";
import parts from "../../ui/parts.module.css";
import { Section } from "./section.tsx";
import styles from "./settings.module.css";

type Provider = ProviderConnection["provider"];

const PROVIDERS: Record<Provider, string> = {
  openai: "OpenAI",
  google: "Google",
  replicate: "Replicate",
  fal: "fal",
  stability: "Stability AI",
  "black-forest-labs": "Black Forest Labs",
  runway: "Runway",
};

export function Connections() {
  const [isAdding, setIsAdding] = useState(false);
  const { data, error, refetch } = useQuery({ queryKey: ["connections"], queryFn: ({ signal }) => person.connections(signal) });
  const add = (
    <Button look="primary" onClick={() => setIsAdding(true)}>
      <Icon name="plus" size={16} />
      Add a connection
    </Button>
  );
  return (
    <Section
      title="Connections"
      lead="Your own keys for providers of models. Work with their models costs no credit here; the provider bills you."
      action={data && data.length > 0 && add}
    >
      {!data && (error ? <Failure title="The connections cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the connections" />)}
      {data?.length === 0 && (
        <Empty title="No connections yet">
          <p className={parts.text}>With a key of OpenAI, Google or another provider, its models appear wherever a model is chosen. The key is encrypted, and never shown again.</p>
          {add}
        </Empty>
      )}
      {data && data.length > 0 && (
        <ul className={styles.rows} aria-label="Connections">
          {data.map((connection) => (
            <Connection key={connection.id} connection={connection} />
          ))}
        </ul>
      )}
      {isAdding && <SaveForm close={() => setIsAdding(false)} />}
    </Section>
  );
}

/** Lists of connections and models that a change of a connection makes old. */
function useReread(): () => void {
  const queries = useQueryClient();
  return () => {
    for (const key of ["connections", "models"]) void queries.invalidateQueries({ queryKey: [key] });
  };
}

function Connection({ connection }: { connection: ProviderConnection }) {
  const { id, name, provider, maskedKey } = connection;
  const [asked, setAsked] = useState<"replace" | "delete">();
  const reread = useReread();
  const close = () => setAsked(undefined);
  return (
    <li className={styles.row}>
      <div className={styles.what}>
        <h3>
          <bdi>{name}</bdi>
          <span className={styles.tag}>{PROVIDERS[provider]}</span>
        </h3>
        <p className={styles.meta}>
          <span>
            key <code>{maskedKey}</code>
          </span>
        </p>
        <Models connection={connection} />
      </div>
      <div className={styles.actions}>
        <Button aria-label={`Replace key of ${name}`} onClick={() => setAsked("replace")}>
          Replace key…
        </Button>
        <Button aria-label={`Delete ${name}`} onClick={() => setAsked("delete")}>
          Delete…
        </Button>
      </div>
      {asked === "replace" && <SaveForm connection={connection} close={close} />}
      {asked === "delete" && (
        <Confirm title={`Delete “${name}”?`} action="Delete" run={() => person.deleteConnection(id)} done={reread} close={close}>
          <p>Its key is deleted, and its models are no longer offered. Work that is under way with them fails at its next call of the provider.</p>
        </Confirm>
      )}
    </li>
  );
}

/** The models that a connection runs, by their names. */
function Models({ connection: { models } }: { connection: ProviderConnection }) {
  const { data } = useQuery({ queryKey: ["models", "all"], queryFn: ({ signal }) => api.allModels(signal), staleTime: 60_000 });
  if (models.length === 0) return <p className={styles.lead}>No models of this provider are known.</p>;
  return (
    <p className={styles.scopes}>
      {models.map((model) => (
        <code key={model}>{data?.find(({ modelId }) => modelId === model)?.name ?? model}</code>
      ))}
    </p>
  );
}

/** Adds a connection, or replaces the key of one. The key is sent, and kept nowhere in the page. */
function SaveForm({ connection, close }: { connection?: ProviderConnection; close: () => void }) {
  const reread = useReread();
  const [provider, setProvider] = useState<Provider>(connection?.provider ?? "openai");
  const [name, setName] = useState(connection?.name ?? "");
  const [apiKey, setApiKey] = useState("");
  const saving = useMutation({
    mutationFn: person.saveConnection,
    onSuccess: () => {
      reread();
      close();
    },
    gcTime: 0,
  });

  function submit(event: SubmitEvent) {
    event.preventDefault();
    if (!saving.isPending) saving.mutate({ provider, name, apiKey });
  }

  return (
    <Modal title={connection ? `Replace the key of “${connection.name}”` : "Add a connection"} close={close}>
      <form className={styles.form} onSubmit={submit} noValidate>
        {!connection && (
          <>
            <Field label="Provider" problem={problemAt(saving.error, "provider", "The provider")}>
              {(control) => (
                <select {...control} data-first value={provider} onChange={({ target }) => setProvider(target.value as Provider)}>
                  {Object.entries(PROVIDERS).map(([key, label]) => (
                    <option key={key} value={key}>
                      {label}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            <Field label="Name" hint="Stands beside its models. The same name and provider again replaces the key." problem={problemAt(saving.error, "name", "The name")}>
              {(control) => <input {...control} dir="auto" autoComplete="off" placeholder="Studio" value={name} onChange={({ target }) => setName(target.value)} />}
            </Field>
          </>
        )}
        <Field label="API key" hint="It is encrypted, and never shown again." problem={problemAt(saving.error, "apiKey", "The key")}>
          {(control) => (
            <input
              {...control}
              type="password"
              {...(connection && { "data-first": true })}
              autoComplete="off"
              autoCapitalize="none"
              spellCheck={false}
              value={apiKey}
              onChange={({ target }) => setApiKey(target.value)}
            />
          )}
        </Field>
        {isBeyond(saving.error, ["provider", "name", "apiKey"]) && <Notice error={saving.error} />}
        <div className={styles.buttons}>
          <Button look="primary" type="submit" isBusy={saving.isPending}>
            {saving.isPending ? "Saving…" : connection ? "Replace key" : "Add connection"}
          </Button>
          <Button onClick={close}>Cancel</Button>
        </div>
      </form>
    </Modal>
  );
}
