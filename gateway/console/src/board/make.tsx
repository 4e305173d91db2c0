/** Makes pictures with a model: from a prompt, from the selected pictures, or from both. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, type ImageOperation, type Model } from "../api.ts";
import { ElementChooser } from "../elements/chooser.tsx";
import type { Element } from "../elements/calls.ts";
import { Problem } from "../errors.ts";
import { count as counted } from "../format.ts";
import { useSession } from "../session.ts";
import type { Node, Role } from "../sync/graph.ts";
import { Button, Failure, messageOf, Waiting } from "../ui/parts.tsx";
import type { Board } from "./board.ts";
import styles from "./inspector.module.css";
import { makeImages } from "./runs.ts";

const OPERATIONS: [ImageOperation, string][] = [
  ["generate", "Generate"],
  ["edit", "Edit the first picture"],
  ["variations", "Variations"],
];
const ROLES: Role[] = ["identity", "construction", "texture", "fit", "style"];
const MOST_REFERENCES = 16;

/** What a model offers for a parameter in an operation. */
function optionsOf(model: Model, name: string, operation: ImageOperation): string[] {
  const parameter = model.parameters.find((one) => one.name === name);
  return parameter?.capabilities.includes(`image.${operation}`) ? (parameter.options ?? []).map(({ value }) => String(value)) : [];
}

export function Make({ board, canvas, nodes }: { board: Board; canvas: string; nodes: Node[] }) {
  const { data, error, refetch } = useQuery({ queryKey: ["models"], queryFn: ({ signal }) => api.models(signal), staleTime: 60_000 });
  if (error) return <Failure title="The models cannot be loaded" error={error} retry={refetch} />;
  if (!data) return <Waiting label="Loading the models" />;
  if (data.length === 0) return <p className={styles.hint}>No model can make pictures with this session.</p>;
  return <MakeForm board={board} canvas={canvas} nodes={nodes} models={data} />;
}

function MakeForm({ board, canvas, nodes, models }: { board: Board; canvas: string; nodes: Node[]; models: Model[] }) {
  const { session } = useSession();
  const queries = useQueryClient();
  const balance = useQuery({ queryKey: ["balance"], queryFn: ({ signal }) => api.balance(signal) });
  const [key, setKey] = useState(models[0]?.id);
  const [typed, setTyped] = useState<string>();
  const [wanted, setWanted] = useState<ImageOperation>("generate");
  const [roles, setRoles] = useState<Record<string, Role | "">>({});
  const [elements, setElements] = useState<Element[]>([]);
  const [size, setSize] = useState("");
  const [quality, setQuality] = useState("");
  const [count, setCount] = useState(1);
  const [error, setError] = useState<unknown>();
  const [isStarting, setIsStarting] = useState(false);

  const model = models.find(({ id }) => id === key) ?? (models[0] as Model);
  const pictures = nodes.filter(({ asset }) => asset !== undefined).slice(0, MOST_REFERENCES);
  const text = nodes.find(({ type, metadata }) => (type === "text" || type === "sticky") && metadata.content && !metadata.section);
  const prompt = typed ?? text?.metadata.content?.slice(0, 8000) ?? "";
  const possible = OPERATIONS.filter(([name]) => model.capabilities.includes(`image.${name}`) && (name === "generate" || pictures.length > 0));
  const operation = possible.find(([name]) => name === wanted)?.[0] ?? possible[0]?.[0] ?? "generate";
  const sizes = optionsOf(model, "size", operation);
  const qualities = optionsOf(model, "quality", operation);
  const price = model.creditCost * count;

  async function start(event: FormEvent) {
    event.preventDefault();
    setIsStarting(true);
    setError(undefined);
    try {
      await makeImages(board, canvas, {
        operation,
        model,
        prompt,
        references: pictures.map((node) => ({ node, ...(roles[node.id] && { role: roles[node.id] as Role }) })),
        sources: text ? [text] : [],
        elements: elements.map(({ versionHandle }) => versionHandle),
        size: sizes.includes(size) ? size : "",
        quality: qualities.includes(quality) ? quality : "",
        count,
      });
    } catch (error) {
      setError(error);
    }
    setIsStarting(false);
    void queries.invalidateQueries({ queryKey: ["balance"] });
  }

  return (
    <form className={styles.form} onSubmit={(event) => void start(event)}>
      <label className={styles.field}>
        <span>Model</span>
        <select value={model.id} onChange={({ target }) => setKey(target.value)}>
          {models.map(({ id, name, connectionName, creditCost }) => (
            <option key={id} value={id}>
              {name} · {connectionName} · {creditCost === 0 ? "free" : counted(creditCost, "credit")}
            </option>
          ))}
        </select>
      </label>
      {possible.length > 1 && (
        <label className={styles.field}>
          <span>How</span>
          <select value={operation} onChange={({ target }) => setWanted(target.value as ImageOperation)}>
            {possible.map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
      )}
      <label className={styles.field}>
        <span>{text && typed === undefined ? `Prompt, from “${text.title}”` : "Prompt"}</span>
        <textarea rows={5} maxLength={8000} dir="auto" required={operation !== "variations"} value={prompt} onChange={({ target }) => setTyped(target.value)} />
      </label>
      {pictures.length > 0 ? (
        <fieldset className={styles.references}>
          <legend>{counted(pictures.length, "reference")}</legend>
          {pictures.map((node) => (
            <label key={node.id}>
              <bdi>{node.title || "Image"}</bdi>
              <select value={roles[node.id] ?? ""} onChange={({ target }) => setRoles((roles) => ({ ...roles, [node.id]: target.value as Role | "" }))}>
                <option value="">no role</option>
                {ROLES.map((role) => (
                  <option key={role}>{role}</option>
                ))}
              </select>
            </label>
          ))}
        </fieldset>
      ) : (
        <p className={styles.hint}>Select pictures to use them as references, or a text to use it as the prompt.</p>
      )}
      {session.scopes.includes("element:read") && <ElementChooser chosen={elements} set={setElements} />}
      {sizes.length > 0 && <Choice label="Size" value={size} options={sizes} set={setSize} />}
      {qualities.length > 0 && <Choice label="Quality" value={quality} options={qualities} set={setQuality} />}
      <fieldset className={styles.counts}>
        <legend>Pictures</legend>
        {[1, 2, 3, 4].map((number) => (
          <label key={number}>
            <input type="radio" name="count" checked={count === number} onChange={() => setCount(number)} />
            <span>{number}</span>
          </label>
        ))}
      </fieldset>
      {error !== undefined && (
        <p className={styles.problem} role="alert">
          {error instanceof Problem && error.fields[0] ? `${error.fields[0].field} ${error.fields[0].message}` : messageOf(error)}
        </p>
      )}
      <Button look="primary" type="submit" disabled={isStarting || possible.length === 0}>
        {isStarting ? "Starting…" : price === 0 ? "Make · free" : `Make · ${counted(price, "credit")}`}
      </Button>
      {price > 0 && balance.data !== undefined && <p className={styles.hint}>{counted(balance.data, "credit")} left</p>}
    </form>
  );
}

function Choice({ label, value, options, set }: { label: string; value: string; options: string[]; set: (value: string) => void }) {
  return (
    <label className={styles.field}>
      <span>{label}</span>
      <select value={options.includes(value) ? value : ""} onChange={({ target }) => set(target.value)}>
        <option value="">the model's default</option>
        {options.map((option) => (
          <option key={option}>{option}</option>
        ))}
      </select>
    </label>
  );
}
