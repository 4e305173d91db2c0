/** What is known of the selection, and what can be made of it. */
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type Action, api, fileUrl, type Parameter } from "../api.ts";
import { ElementForm } from "../elements/form.tsx";
import { Problem } from "../errors.ts";
import { ago, count } from "../format.ts";
import { useSession } from "../session.ts";
import type { Node } from "../sync/graph.ts";
import { Button, Failure, messageOf, Waiting } from "../ui/parts.tsx";
import type { Board } from "./board.ts";
import { type Entries, entryOf, isAnchor, paramsOf, problemsOf } from "./forms.ts";
import { kindOf } from "./gestures.ts";
import styles from "./inspector.module.css";
import { isActive, runAction } from "./runs.ts";

export function Inspector({ board, canvas, nodes }: { board: Board; canvas: string; nodes: Node[] }) {
  const [node] = nodes;
  if (!node) return <p className={styles.hint}>Select a node to see what it is and what can be made of it.</p>;
  const pictures = nodes.filter(({ asset }) => asset !== undefined);
  return (
    <>
      {nodes.length === 1 ? <Properties key={node.id} board={board} node={node} /> : <p className={styles.hint}>{count(nodes.length, "node")} selected</p>}
      <Colors board={board} nodes={nodes} />
      {nodes.length === 1 && <Work node={node} />}
      {nodes.length === 1 && <Provenance node={node} board={board} />}
      {pictures.length > 0 && <Actions board={board} canvas={canvas} pictures={pictures} />}
      <NewElement board={board} pictures={pictures} />
    </>
  );
}

/** Makes an Element from the pictures of this account. */
function NewElement({ board, pictures }: { board: Board; pictures: Node[] }) {
  const { account, session } = useSession();
  const [isOpen, setIsOpen] = useState(false);
  const own = `asset:${account.id}:`;
  const ids = [...new Set(pictures.flatMap(({ asset }) => (asset?.startsWith(own) ? asset.slice(own.length) : [])))];
  if (ids.length === 0 || !session.scopes.includes("element:read") || !session.scopes.includes("element:write")) return null;
  return (
    <section className={styles.group}>
      <h3>Elements</h3>
      <Button onClick={() => setIsOpen(true)}>Make an Element of {ids.length === 1 ? "this picture" : `these ${ids.length} pictures`}</Button>
      {isOpen && (
        <ElementForm
          pictures={ids}
          done={({ name }) => {
            setIsOpen(false);
            board.tell(`${name} is an Element now. Choose it in Make.`);
          }}
          close={() => setIsOpen(false)}
        />
      )}
    </section>
  );
}

const NUMBERS = [
  ["X", "x"],
  ["Y", "y"],
  ["Width", "width"],
  ["Height", "height"],
] as const;

/** A field that is applied when it is left or on Enter. */
function Field({ label, value, type, apply }: { label: string; value: string; type: "text" | "number"; apply: (text: string) => void }) {
  const [draft, setDraft] = useState<string>();
  const end = () => {
    if (draft !== undefined && draft !== value) apply(draft);
    setDraft(undefined);
  };
  return (
    <label className={styles.field}>
      <span>{label}</span>
      <input
        type={type}
        dir="auto"
        value={draft ?? value}
        onChange={({ target }) => setDraft(target.value)}
        onBlur={end}
        onKeyDown={({ key }) => {
          if (key === "Enter") end();
          if (key === "Escape") setDraft(undefined);
        }}
      />
    </label>
  );
}

function Properties({ board, node }: { board: Board; node: Node }) {
  const { x, y } = node.position;
  const box = { x, y, width: node.width, height: node.height };
  const resize = (side: keyof typeof box, text: string) => {
    const number = Number(text);
    if (text.trim() === "" || !Number.isFinite(number) || Math.abs(number) > 1e7) return;
    if (side === "x" || side === "y") board.move([node.id], { x: 0, y: 0, [side]: number - box[side] });
    else board.resize(node.id, { ...box, [side]: number });
  };
  const kind = kindOf(node);
  return (
    <section className={styles.group}>
      <h3 className={styles.kind}>
        {kind[0]?.toUpperCase() + kind.slice(1)}
        {node.metadata.createdBy === "agent" && " by an agent"}
      </h3>
      <Field label="Title" type="text" value={node.title} apply={(text) => board.write(node.id, "title", text.slice(0, 160), node.title, board.newId())} />
      <div className={styles.numbers}>
        {NUMBERS.map(([label, side]) => (
          <Field key={side} label={label} type="number" value={String(box[side])} apply={(text) => resize(side, text)} />
        ))}
      </div>
    </section>
  );
}

const PALETTE = ["#ffe48a", "#ffc9a3", "#ffb8c4", "#d9c8ff", "#bfdcff", "#c7e9d4", "#e3e8ee"];

function Colors({ board, nodes }: { board: Board; nodes: Node[] }) {
  const colored = nodes.filter((node) => node.type === "sticky");
  if (colored.length === 0) return null;
  return (
    <fieldset className={styles.colors}>
      <legend>Color</legend>
      {PALETTE.map((color) => (
        <button
          key={color}
          type="button"
          aria-label={color}
          aria-pressed={colored.every(({ metadata }) => (metadata.color ?? PALETTE[0]) === color)}
          style={{ background: color }}
          onClick={() => board.setFields("Color a note", colored, { "metadata.color": color === PALETTE[0] ? null : color })}
        />
      ))}
    </fieldset>
  );
}

/** The work that fills the node. */
function Work({ node }: { node: Node }) {
  const [error, setError] = useState<unknown>();
  const { job } = node.metadata;
  if (!job || job.status === "succeeded") return null;
  return (
    <section className={styles.group}>
      <h3>Work</h3>
      <p className={styles.work}>
        <span>
          {job.operation}: {job.status}
        </span>
        {isActive(job.status) && <Button onClick={() => void api.cancelRun(job.run).catch(setError)}>Cancel</Button>}
      </p>
      {error !== undefined && <p className={styles.problem}>{messageOf(error)}</p>}
    </section>
  );
}

function Provenance({ board, node }: { board: Board; node: Node }) {
  const { provenance, prompt } = node.metadata;
  const kind = provenance && { generated: "Generated", action: "Made by an Action", import: "Imported", upload: "Uploaded", recipe: "Made by a Recipe" }[provenance.kind];
  if (!provenance && !prompt && node.asset === undefined) return null;
  const sources = (provenance?.references ?? []).flatMap(({ handle }) => [...board.graph.nodes.values()].find(({ asset }) => asset === handle) ?? []);
  return (
    <section className={styles.group}>
      {provenance && (
        <p>
          {kind} <time dateTime={provenance.createdAt}>{ago(provenance.createdAt)}</time>
          {provenance.actionId && <> · {provenance.actionId.replace("action:", "")}</>}
          {provenance.model && <> · {provenance.model}</>}
        </p>
      )}
      {(provenance?.prompt ?? prompt) && (
        <blockquote className={styles.prompt} dir="auto">
          {provenance?.prompt ?? prompt}
        </blockquote>
      )}
      <p className={styles.links}>
        {sources.map((source) => (
          <Button
            key={source.id}
            onClick={() => {
              board.select([source.id]);
              board.surface?.show([source.id]);
            }}
          >
            From <bdi>{source.title || kindOf(source)}</bdi>
          </Button>
        ))}
        {node.asset !== undefined && (
          <a className={styles.download} href={fileUrl(node.asset)} download={node.title || "picture"}>
            Download
          </a>
        )}
      </p>
    </section>
  );
}

function Actions({ board, canvas, pictures }: { board: Board; canvas: string; pictures: Node[] }) {
  const [slug, setSlug] = useState("");
  const { data, error, refetch } = useQuery({ queryKey: ["actions"], queryFn: ({ signal }) => api.actions(signal), staleTime: Infinity });
  if (error) return <Failure title="The Actions cannot be loaded" error={error} retry={refetch} />;
  if (!data) return <Waiting label="Loading the Actions" />;
  const action = data.find((one) => one.slug === slug);
  return (
    <section className={styles.group}>
      <h3>Actions</h3>
      <label className={styles.field}>
        <span>Make a new picture</span>
        <select value={slug} onChange={({ target }) => setSlug(target.value)}>
          <option value="">Choose an Action…</option>
          {data.map(({ slug, title }) => (
            <option key={slug} value={slug}>
              {title}
            </option>
          ))}
        </select>
      </label>
      {action && <ActionForm key={action.slug} board={board} canvas={canvas} action={action} pictures={pictures} />}
    </section>
  );
}

function ActionForm({ board, canvas, action, pictures }: { board: Board; canvas: string; action: Action; pictures: Node[] }) {
  const [entries, setEntries] = useState<Entries>({});
  const [second, setSecond] = useState("");
  const [error, setError] = useState<unknown>();
  const [isStarting, setIsStarting] = useState(false);
  const [first] = pictures;
  const needsSecond = action.inputs.length > 1;
  const others = needsSecond ? [...board.graph.nodes.values()].filter(({ id, asset }) => asset !== undefined && id !== first?.id) : [];
  const other = board.graph.nodes.get(second) ?? pictures[1] ?? others[0];
  const problems = error instanceof Problem ? problemsOf(error.fields) : {};

  async function start(event: FormEvent) {
    event.preventDefault();
    const sources = [first, ...(needsSecond ? [other] : [])].filter((node) => node !== undefined);
    setIsStarting(true);
    setError(undefined);
    try {
      await runAction(board, canvas, action, sources, paramsOf(action, entries));
    } catch (error) {
      setError(error);
    }
    setIsStarting(false);
  }

  return (
    <form className={styles.form} onSubmit={(event) => void start(event)}>
      <p className={styles.hint}>{action.summary}</p>
      {needsSecond && (
        <label className={styles.field}>
          <span>{action.inputs[1]?.title}</span>
          <select required value={other?.id ?? ""} onChange={({ target }) => setSecond(target.value)}>
            {others.map(({ id, title }) => (
              <option key={id} value={id}>
                {title || "Image"}
              </option>
            ))}
          </select>
        </label>
      )}
      {action.parameters.map((parameter) => (
        <ParameterField
          key={parameter.id}
          parameter={parameter}
          value={entries[parameter.id] ?? entryOf(parameter)}
          problem={problems[parameter.id]}
          set={(value) => setEntries((entries) => ({ ...entries, [parameter.id]: value }))}
        />
      ))}
      {error !== undefined && (
        <p className={styles.problem} role="alert">
          {problems[""] ?? (Object.keys(problems).length > 0 ? "Some values are not possible." : messageOf(error))}
        </p>
      )}
      <Button look="primary" type="submit" disabled={isStarting || (needsSecond && !other)}>
        {isStarting ? "Starting…" : "Run into a new node"}
      </Button>
    </form>
  );
}

function ParameterField({ parameter, value, problem, set }: { parameter: Parameter; value: string; problem: string | undefined; set: (value: string) => void }) {
  const { id, title, description, type, required, integer, min, max, step, maxLength, options } = parameter;
  const hint = problem === undefined ? undefined : `problem-${id}`;
  const shared = {
    value,
    required,
    title: description,
    "aria-invalid": problem !== undefined,
    "aria-describedby": hint,
    onChange: ({ target }: { target: { value: string } }) => set(target.value),
  };
  if (isAnchor(parameter)) {
    return (
      <fieldset className={styles.anchors}>
        <legend title={description}>{title}</legend>
        <div>
          {options?.map((option) => (
            <label key={option.value} title={option.label}>
              <input type="radio" name={id} value={option.value} checked={value === String(option.value)} onChange={shared.onChange} aria-label={option.label} />
            </label>
          ))}
        </div>
      </fieldset>
    );
  }
  const field = (
    <label className={styles.field}>
      <span>{title}</span>
      {type === "select" ? (
        <select {...shared}>
          {options?.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      ) : type === "text" && (maxLength ?? 0) > 100 ? (
        <textarea {...shared} rows={3} maxLength={maxLength} dir="auto" />
      ) : type === "number" ? (
        <input {...shared} type="number" min={min} max={max} step={integer ? (step ?? 1) : "any"} />
      ) : (
        <input {...shared} type="text" maxLength={maxLength} list={options ? `options-${id}` : undefined} dir="auto" />
      )}
      {problem !== undefined && (
        <span id={hint} className={styles.problem}>
          {problem}
        </span>
      )}
    </label>
  );
  if (type !== "text" || !options) return field;
  return (
    <>
      {field}
      <datalist id={`options-${id}`}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </datalist>
    </>
  );
}

