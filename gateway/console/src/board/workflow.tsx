/** Makes a Recipe from nodes of the canvas: what goes in, and how the others are made from it. */
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { Problem } from "../errors.ts";
import { retryUntilAnswered } from "../retry.ts";
import { recipes } from "../recipes/calls.ts";
import { kindOf } from "../recipes/parts.tsx";
import { MOST_LETTERS } from "../recipes/ports.ts";
import { Field } from "../library/field.tsx";
import sheet from "../library/sheet.module.css";
import { Unanswered } from "../library/unanswered.tsx";
import { bodyOf, keyed, MOST_INPUTS, MOST_OUTPUTS, type Part, partProblems, partsOf, proposed } from "../recipes/workflow.ts";
import { Button, messageOf } from "../ui/parts.tsx";
import type { Board } from "./board.ts";
import panel from "./recipe-panel.module.css";

interface Props {
  board: Board;
  canvas: string;
  /** What was selected when the form was opened. */
  ids: string[];
  made: (chosen: { id: string; instance: string }) => void;
}

export function WorkflowForm({ board, canvas, ids, made }: Props) {
  const queries = useQueryClient();
  const { engine } = board;
  const [name, setName] = useState(() => board.graph.nodes.get(ids[0] ?? "")?.title ?? "");
  const [description, setDescription] = useState("");
  const [parts, setParts] = useState<Part[]>(() => proposed(board.graph, partsOf(board.graph, ids)));
  const [key] = useState(() => crypto.randomUUID());
  const [problems, setProblems] = useState<Record<string, string>>({});
  const [isMaking, setIsMaking] = useState(false);
  const all = keyed(parts);

  const change = (id: string, part: Partial<Part>) => {
    setParts((parts) => parts.map((one) => (one.id === id ? { ...one, ...part } : one)));
    setProblems({});
  };

  /** What the service could not take, by field. */
  function lacking(): Record<string, string> {
    const [inputs, outputs] = (["input", "output"] as const).map((role) => parts.filter((part) => part.role === role).length);
    const sides = inputs === 0 || outputs === 0 ? { "": "A Recipe needs an input and an output." } : {};
    const most = (inputs ?? 0) > MOST_INPUTS || (outputs ?? 0) > MOST_OUTPUTS ? { "": `A Recipe has at most ${MOST_INPUTS} inputs and ${MOST_OUTPUTS} outputs. Leave some out.` } : {};
    return {
      ...(name.trim() === "" && { name: "Give it a name." }),
      ...Object.fromEntries(all.filter(({ label }) => label.trim() === "").map(({ id }) => [`${id}.label`, "Give it a name."])),
      ...Object.fromEntries(all.filter(({ role, prompt }) => role === "output" && prompt.trim() === "").map(({ id }) => [`${id}.prompt`, "Write how it is made."])),
      ...sides,
      ...most,
    };
  }

  async function make(event: FormEvent) {
    event.preventDefault();
    const found = lacking();
    setProblems(found);
    if (Object.keys(found).length > 0) {
      const form = event.currentTarget;
      setTimeout(() => form.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
      return;
    }
    setIsMaking(true);
    try {
      const body = { ...bodyOf(name, description, parts, (id) => `node:${engine.real(id)}`), idempotencyKey: key };
      const { workflow } = await retryUntilAnswered(() => recipes.create(canvas, body));
      await engine.refresh();
      void queries.invalidateQueries({ queryKey: ["recipes"] });
      if (!workflow) return;
      const ports = [...workflow.inputs, ...workflow.outputs].map(({ portNodeId }) => portNodeId);
      board.select([engine.local(workflow.recipeNodeId)]);
      board.surface?.show([workflow.recipeNodeId, ...ports].map(engine.local));
      made({ id: workflow.id, instance: workflow.recipeNodeId });
    } catch (error) {
      const refused = error instanceof Problem ? partProblems(parts, error.fields) : {};
      setProblems(Object.keys(refused).length > 0 ? refused : { "": messageOf(error) });
      setIsMaking(false);
    }
  }

  return (
    <form className={sheet.form} noValidate onSubmit={(event) => void make(event)}>
      <p className="hint">The new Recipe is yours alone. Its first instance goes onto this canvas; nothing runs.</p>
      <Field label="Name of the Recipe" id="workflow-name" problem={problems["name"]}>
        {(shared) => <input {...shared} type="text" dir="auto" maxLength={160} value={name} onChange={({ target }) => setName(target.value)} />}
      </Field>
      <Field label="Description" id="workflow-description">
        {(shared) => <textarea {...shared} rows={2} dir="auto" maxLength={1200} value={description} onChange={({ target }) => setDescription(target.value)} />}
      </Field>
      {parts.map((part, index) => (
        <PartFields key={part.id} part={part} title={board.graph.nodes.get(part.id)?.title || `${kindOf(part.type)} ${index + 1}`} all={all} problems={problems} change={(to) => change(part.id, to)} />
      ))}
      {parts.length === 0 && <p className="problem">The selection has no images and texts.</p>}
      {problems[""] !== undefined && (
        <p className="problem" role="alert">
          {problems[""]}
        </p>
      )}
      <Unanswered />
      <Button look="primary" type="submit" isBusy={isMaking} disabled={parts.length === 0}>
        {isMaking ? "Making…" : "Make the Recipe"}
      </Button>
    </form>
  );
}

interface PartProps {
  part: Part;
  title: string;
  all: (Part & { key: string })[];
  problems: Record<string, string>;
  change: (part: Partial<Part>) => void;
}

function PartFields({ part, title, all, problems, change }: PartProps) {
  const { id, role, label, isFull, useAsDefault, prompt, from } = part;
  const before = role === "output" ? all.slice(0, all.findIndex((one) => one.id === id)) : [];
  return (
    <fieldset className={panel.part}>
      <legend>
        <bdi>{title}</bdi>
      </legend>
      <Field label="Role" id={`${id}-role`}>
        {(shared) => (
          <select {...shared} value={role} onChange={({ target }) => change({ role: target.value as Part["role"] })}>
            <option value="input">Goes in</option>
            <option value="output">Is made</option>
            <option value="none">Not part of it</option>
          </select>
        )}
      </Field>
      {role !== "none" && (
        <Field label="Name of the port" id={`${id}-label`} problem={problems[`${id}.label`]}>
          {(shared) => <input {...shared} type="text" dir="auto" maxLength={80} value={label} onChange={({ target }) => change({ label: target.value })} />}
        </Field>
      )}
      {role === "input" && isFull && (
        <label className={panel.check}>
          <input type="checkbox" checked={useAsDefault} onChange={({ target }) => change({ useAsDefault: target.checked })} />
          What it holds now is the default
        </label>
      )}
      {role === "output" && (
        <>
          <fieldset className={panel.from}>
            <legend>Made from</legend>
            {before.map((one) => (
              <label key={one.id} className={panel.check}>
                <input
                  type="checkbox"
                  aria-label={`${one.label} {{${one.key}}}`}
                  checked={from.includes(one.id)}
                  onChange={({ target }) => change({ from: target.checked ? [...from, one.id] : from.filter((other) => other !== one.id) })}
                />
                <span>
                  <bdi>{one.label}</bdi> <code>{`{{${one.key}}}`}</code>
                </span>
              </label>
            ))}
          </fieldset>
          <Field label="How it is made" id={`${id}-prompt`} problem={problems[`${id}.prompt`]}>
            {(shared) => (
              <textarea {...shared} rows={4} dir="auto" maxLength={MOST_LETTERS} placeholder="Words for the model. {{key}} stands for a text." value={prompt} onChange={({ target }) => change({ prompt: target.value })} />
            )}
          </Field>
        </>
      )}
    </fieldset>
  );
}
