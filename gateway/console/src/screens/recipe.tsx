/** One Recipe: its ports as a form, what it makes, and the run. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { canvasPath } from "../address.ts";
import { api } from "../api.ts";
import { Problem } from "../errors.ts";
import { priceOf } from "../format.ts";
import { isEditable, useCanvases } from "../library/canvases.ts";
import { onNewest, type Recipe, recipes, RUN_SCOPES } from "../recipes/calls.ts";
import { type Filled, RunForm } from "../recipes/form.tsx";
import { KindIcon, StandIn, Terms } from "../recipes/parts.tsx";
import { RunProgress } from "../recipes/progress.tsx";
import sheet from "../library/sheet.module.css";
import styles from "../recipes/recipes.module.css";
import { useSession } from "../session.ts";
import { useTitle } from "../ui/hooks.ts";
import { Button, Failure, Icon, Waiting } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import { Shell } from "../ui/shell.tsx";
import page from "./list.module.css";
import { Missing } from "./missing.tsx";

/** The page of the canvas that a handle names. */
function pathOf(handle: string): string {
  const [, ownerUid = "", id = ""] = handle.split(":");
  return canvasPath({ ownerUid, id });
}

export function RecipePage({ id }: { id: string }) {
  const { data, error, refetch } = useQuery({ queryKey: ["recipe", id], queryFn: ({ signal }) => recipes.read(id, undefined, signal) });
  useTitle(data?.name ?? "Recipe");
  if (error instanceof Problem && (error.status === 404 || error.status === 400)) return <Missing />;
  return (
    <Shell>
      <div className={page.page}>
        <Link className={sheet.back} href="/recipes">
          <Icon name="back" size={16} />
          All Recipes
        </Link>
        {data ? <Details recipe={data} /> : error ? <Failure title="The Recipe cannot be loaded" error={error} retry={refetch} /> : <Waiting label="Loading the Recipe" />}
      </div>
    </Shell>
  );
}

/** Stands for a canvas that is made when the run starts. */
const NEW = "new";

function Details({ recipe }: { recipe: Recipe }) {
  const { session, account } = useSession();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const [params, setParams] = useSearchParams();
  const [chosen, setChosen] = useState<string>();
  const [newId, setNewId] = useState(() => crypto.randomUUID());
  const canvases = useCanvases(isEditable);
  const run = params.get("run");
  const target = chosen ?? canvases?.[0]?.handle ?? NEW;
  const lacking = RUN_SCOPES.filter((scope) => !session.scopes.includes(scope));
  const refusal = lacking.length > 0 ? `This session may look at Recipes but not run them: it lacks ${lacking.join(", ")}.` : undefined;

  /** The canvas of the run, which is made first if it is new. */
  async function canvasOf(): Promise<string> {
    if (target !== NEW) return target;
    const handle = `canvas:${account.id}:${newId}`;
    try {
      await api.createCanvas(newId, recipe.name);
    } catch (error) {
      // An attempt without an answer had made it.
      if (!(error instanceof Problem) || error.status !== 409) throw error;
    }
    await queries.invalidateQueries({ queryKey: ["canvases"] });
    setNewId(crypto.randomUUID());
    setChosen(handle);
    return handle;
  }

  async function start(filled: Filled) {
    const canvasId = await canvasOf();
    const started = await onNewest(canvasId, (common) => recipes.run(recipe.id, { ...filled, ...common, canvasId }));
    setParams({ recipe: recipe.id, run: started.handle });
  }

  async function fork() {
    const canvasId = await canvasOf();
    await onNewest(canvasId, (common) => recipes.fork(recipe.id, { ...common, canvasId, version: recipe.version }));
    navigate(pathOf(canvasId));
  }

  return (
    <>
      <header className={sheet.intro}>
        <p className={styles.category}>
          {recipe.category}
          {recipe.visibility === "private" && <span className={styles.yours}>Yours</span>}
        </p>
        <h1 dir="auto">{recipe.name}</h1>
        <p className={styles.summary} dir="auto">
          {recipe.description ?? recipe.summary}
        </p>
        <Terms recipe={recipe} />
      </header>
      <div className={sheet.columns}>
        <section className={sheet.sheet} aria-label="Inputs">
          <h2>What it needs</h2>
          <RunForm
            recipe={recipe}
            canvas={target === NEW ? undefined : target}
            revision={canvases?.find(({ handle }) => handle === target)?.revision}
            run={start}
            {...(session.scopes.includes("canvas:write") && { fork })}
            refusal={refusal}
          >
            <label className={sheet.field}>
              <span>Canvas for the results</span>
              <select value={target} onChange={({ target }) => setChosen(target.value)}>
                {canvases?.map(({ handle, title }) => (
                  <option key={handle} value={handle}>
                    {title || "Untitled"}
                  </option>
                ))}
                <option value={NEW}>A new canvas</option>
              </select>
            </label>
          </RunForm>
        </section>
        <div className={sheet.results}>
          {run !== null && (
            <div className={sheet.sheet}>
              <h2>Run</h2>
              <RunProgress key={run} run={run}>
                {({ canvasHandle }) => (
                  <>
                    <Link className={`${parts.button} ${parts.plain}`} href={pathOf(canvasHandle)}>
                      Open the canvas
                    </Link>
                    <Button look="quiet" onClick={() => setParams({ recipe: recipe.id })}>
                      Close
                    </Button>
                  </>
                )}
              </RunProgress>
            </div>
          )}
          <section className={sheet.sheet} aria-label="Outputs">
            <h2>What it makes</h2>
            <ol className={styles.steps}>
              {recipe.outputs.map(({ key, label, description, nodeType, model, standIn, creditCost }) => (
                <li key={key}>
                  <div className={styles.stepHead}>
                    <KindIcon kind={nodeType} />
                    <strong>
                      <bdi>{label}</bdi>
                    </strong>
                    {standIn && <StandIn />}
                    <span className={styles.state}>
                      {model?.name ?? "no model"} · {priceOf(creditCost ?? 0)}
                    </span>
                  </div>
                  {description && (
                    <p className="hint" dir="auto">
                      {description}
                    </p>
                  )}
                </li>
              ))}
            </ol>
          </section>
        </div>
      </div>
    </>
  );
}
