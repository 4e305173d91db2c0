/** The form that a Recipe's ports make, with the price of what is filled in on its button. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useId, useState } from "react";
import { api, type Model } from "../api.ts";
import { Problem } from "../errors.ts";
import { count, priceOf } from "../format.ts";
import { PictureDialog } from "../library/pictures.tsx";
import { Thumb } from "../library/thumb.tsx";
import { TileDialog } from "../library/tiles.tsx";
import { Unanswered } from "../library/unanswered.tsx";
import { waitingFor } from "../queues.ts";
import { termsOf } from "../words.ts";
import { useSettled } from "../ui/hooks.ts";
import { Button, Icon, messageOf } from "../ui/parts.tsx";
import { QueueHint } from "../ui/queues.tsx";
import { type Recipe, recipes, type RunRecipe, type StartQuote } from "./calls.ts";
import { inputsOf, missing, MOST_LETTERS, type Port, problemsOf, type Source, takesImage, takesText, type Value, type Values } from "./ports.ts";
import sheet from "../library/sheet.module.css";
import styles from "./recipes.module.css";

/** How long nothing was typed before the price is asked for, in milliseconds. */
const REST = 500;

/** What a start says beside the canvas. */
export type Filled = Pick<RunRecipe, "inputs" | "model" | "maxCredits" | "instanceNodeId" | "version">;

interface Props {
  recipe: Recipe;
  /** The instance that is run, if it is on a canvas already, and the keys of the ports for which it holds a value. */
  instance?: string | undefined;
  held?: ReadonlySet<string>;
  /** The canvas of the run, as far as it exists, and its revision. */
  canvas: string | undefined;
  revision: string | undefined;
  /** Values that the selection gives. What is entered here comes before them. */
  given?: Values;
  /** Nodes whose text a port can take. */
  texts?: Source[];
  /** Where the run goes. */
  children: ReactNode;
  run: (filled: Filled) => Promise<void>;
  fork?: () => Promise<void>;
  /** What this session may not do. */
  refusal?: string | undefined;
}

const NONE: Values = {};
const NO_TEXTS: Source[] = [];
const NOTHING: ReadonlySet<string> = new Set();

export function RunForm({ recipe, instance, held = NOTHING, canvas, revision, given = NONE, texts = NO_TEXTS, children, run, fork, refusal }: Props) {
  const queries = useQueryClient();
  const prefix = useId();
  const [own, setOwn] = useState(NONE);
  const [model, setModel] = useState("");
  const [cap, setCap] = useState("");
  const [problems, setProblems] = useState<Record<string, string>>({});
  const [busy, setBusy] = useState<"run" | "fork">();

  const values = { ...given, ...own };
  const lacking = missing(recipe.inputs, values).filter(({ key }) => !held.has(key));
  const filled: Filled = {
    version: recipe.version,
    inputs: inputsOf(values),
    ...(model !== "" && { model }),
    ...(instance !== undefined && { instanceNodeId: instance }),
  };
  const quote = useQuote(recipe, filled, canvas, refusal === undefined && lacking.length === 0 ? revision : undefined);
  const makesImages = recipe.outputs.some(({ nodeType }) => nodeType === "image");
  const models = useQuery({ queryKey: ["models"], queryFn: ({ signal }) => api.models(signal), staleTime: 60_000, enabled: makesImages && refusal === undefined });
  const able = models.data?.filter(({ capabilities }) => capabilities.includes("image.generate") || capabilities.includes("image.edit"));
  const shown = quote?.creditCost ?? costOf(recipe, model, able);
  const balance = useQuery({ queryKey: ["balance"], queryFn: ({ signal }) => api.balance(signal) });

  function set(key: string, value: Value) {
    setOwn((own) => ({ ...own, [key]: value }));
    setProblems(({ [key]: _, "": __, ...rest }) => rest);
  }

  async function attempt(what: "run" | "fork", task: () => Promise<void>) {
    setBusy(what);
    setProblems({});
    try {
      await task();
    } catch (error) {
      const found = error instanceof Problem ? problemsOf(recipe.inputs, error.fields) : {};
      setProblems(Object.keys(found).length > 0 ? found : { "": messageOf(error) });
    }
    setBusy(undefined);
    void queries.invalidateQueries({ queryKey: ["balance"] });
  }

  function start(event: FormEvent) {
    event.preventDefault();
    if (lacking[0]) {
      setProblems(Object.fromEntries(lacking.map((port) => [port.key, takesText(port) ? "Write a text here." : "Choose an image."])));
      document.getElementById(`${prefix}${lacking[0].key}`)?.focus();
      return;
    }
    const most = cap.trim() === "" ? shown : Number(cap);
    void attempt("run", () => run({ ...filled, ...(most !== undefined && { maxCredits: most }) }));
  }

  return (
    <form className={sheet.form} noValidate onSubmit={start}>
      {recipe.inputs.map((port) => (
        <PortField
          key={port.key}
          id={`${prefix}${port.key}`}
          port={port}
          isOptional={port.useAsPreset || held.has(port.key)}
          isHeld={held.has(port.key)}
          value={values[port.key]}
          problem={problems[port.key]}
          canvas={canvas}
          texts={texts}
          set={(value) => set(port.key, value)}
        />
      ))}
      {children}
      {refusal === undefined && (
        <details className={sheet.more}>
          <summary>Model and spending cap</summary>
          {makesImages && <Models models={able} value={model} set={setModel} />}
          <label className={sheet.field}>
            <span>Most credits to spend</span>
            <input type="number" min={0} step={1} inputMode="numeric" placeholder={shown === undefined ? "" : String(shown)} value={cap} onChange={({ target }) => setCap(target.value)} />
          </label>
        </details>
      )}
      {problems[""] !== undefined && (
        <p className="problem" role="alert">
          {problems[""]}
        </p>
      )}
      <Unanswered />
      {refusal !== undefined && <p className="hint">{refusal}</p>}
      <div className={sheet.buttons}>
        <Button look="primary" type="submit" isBusy={busy !== undefined} disabled={refusal !== undefined || (shown === undefined && cap.trim() === "")}>
          {busy === "run" ? "Starting…" : shown === undefined ? "Run" : `Run · ${priceOf(shown)}`}
        </Button>
        {fork && (
          <Button isBusy={busy !== undefined} onClick={() => void attempt("fork", fork)}>
            {busy === "fork" ? "Copying…" : "Fork without running"}
          </Button>
        )}
      </div>
      {quote?.waitingFor ? (
        <p className="hint" role="status">
          It would wait. {waitingFor(quote.waitingFor)}.
        </p>
      ) : (
        <QueueHint queues={["generation"]} />
      )}
      {shown !== undefined && shown > 0 && balance.data !== undefined && <p className="hint">{count(balance.data, "credit")} left</p>}
    </form>
  );
}

/** What a run would cost as it is filled in, and wait for, if it can be started so. */
function useQuote(recipe: Recipe, filled: Filled, canvas: string | undefined, revision: string | undefined): StartQuote | undefined {
  const body = useSettled(canvas === undefined || revision === undefined ? "" : JSON.stringify({ ...filled, canvasId: canvas, baseRevision: revision }), REST);
  const { data } = useQuery({
    queryKey: ["quote", recipe.handle, body],
    queryFn: ({ signal }) => recipes.quote(recipe.id, JSON.parse(body) as RunRecipe, signal),
    enabled: body !== "",
    retry: false,
  });
  return data;
}

/** The price of a run without a quote, as far as it is known: a chosen model makes every image, and no text. */
function costOf({ creditCost, outputs }: Recipe, model: string, models: Model[] | undefined): number | undefined {
  if (model === "") return creditCost;
  const each = models?.find(({ handle }) => handle === model)?.creditCost;
  return each === undefined ? undefined : outputs.reduce((sum, { nodeType, creditCost = 0 }) => sum + (nodeType === "image" ? each : creditCost), 0);
}

function Models({ models, value, set }: { models: Model[] | undefined; value: string; set: (value: string) => void }) {
  return (
    <label className={sheet.field}>
      <span>Model for the images</span>
      <select value={value} onChange={({ target }) => set(target.value)}>
        <option value="">As the Recipe says</option>
        {models?.map(({ handle, name, ...terms }) => (
          <option key={handle} value={handle}>
            {name} · {termsOf(terms)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface PortProps {
  id: string;
  port: Port;
  isOptional: boolean;
  isHeld: boolean;
  value: Value | undefined;
  problem: string | undefined;
  canvas: string | undefined;
  texts: Source[];
  set: (value: Value) => void;
}

function PortField({ id, port, isOptional, isHeld, value, problem, canvas, texts, set }: PortProps) {
  const [isChoosing, setIsChoosing] = useState<"image" | "text">();
  const chosen = value && "handle" in value ? value : undefined;
  const describedBy = [port.description && `${id}-hint`, problem !== undefined && `${id}-problem`].filter(Boolean).join(" ") || undefined;
  const focusLater = () => setTimeout(() => document.getElementById(id)?.focus());
  const close = () => {
    setIsChoosing(undefined);
    focusLater();
  };
  const chooseImage = (
    <Button id={takesText(port) || chosen ? undefined : id} className={takesText(port) ? styles.small : styles.slot} aria-describedby={describedBy} aria-label={`Choose an image for ${port.label}`} onClick={() => setIsChoosing("image")}>
      <Icon name="image" size={16} />
      Choose an image
    </Button>
  );
  return (
    <div className={styles.port} role="group" aria-labelledby={`${id}-label`}>
      <label id={`${id}-label`} htmlFor={id}>
        <bdi>{port.label}</bdi>
        {isOptional && <small>optional</small>}
      </label>
      {port.description && (
        <p id={`${id}-hint`} className="hint" dir="auto">
          {port.description}
        </p>
      )}
      {chosen ? (
        <div className={styles.chosen}>
          {chosen.asset === undefined ? <Icon name="text" size={16} /> : <Thumb asset={chosen.asset} alt={chosen.title || port.label} pixels={96} />}
          <bdi>{chosen.title}</bdi>
          <Button id={id} look="quiet" className={styles.small} aria-label={`Take ${chosen.title} out of ${port.label}`} onClick={() => (set({ text: "" }), focusLater())}>
            <Icon name="close" size={16} />
          </Button>
        </div>
      ) : takesText(port) ? (
        <>
          <textarea
            id={id}
            rows={3}
            dir="auto"
            maxLength={MOST_LETTERS}
            placeholder={isHeld ? "What it holds now, if empty" : isOptional ? "Its default, if empty" : undefined}
            value={value && "text" in value ? value.text : ""}
            aria-required={!isOptional}
            aria-invalid={problem !== undefined}
            aria-describedby={describedBy}
            onChange={({ target }) => set({ text: target.value })}
          />
          {(texts.length > 0 || takesImage(port)) && (
            <div className={styles.sources}>
              {texts.length > 0 && (
                <Button className={styles.small} aria-label={`Choose a text of the canvas for ${port.label}`} onClick={() => setIsChoosing("text")}>
                  <Icon name="text" size={16} />
                  Choose a text
                </Button>
              )}
              {takesImage(port) && chooseImage}
            </div>
          )}
        </>
      ) : (
        chooseImage
      )}
      {problem !== undefined && (
        <p id={`${id}-problem`} className="problem">
          {problem}
        </p>
      )}
      {isChoosing === "image" && <PictureDialog title={`Image for ${port.label}`} source={{ canvas }} choose={({ handle, name, title = name }) => set({ handle, title, asset: handle })} close={close} />}
      {isChoosing === "text" && (
        <TileDialog title={`Text for ${port.label}`} tiles={texts.map((source) => ({ key: source.handle, title: source.title, words: source.excerpt ?? "", source }))} choose={({ source }) => set(source)} close={close} />
      )}
    </div>
  );
}
