/** Requests about Recipes. */
import { answer, api, contract, patience } from "../api.ts";
import type { components } from "../contract.ts";
import { Problem } from "../errors.ts";
import { retryUntilAnswered } from "../retry.ts";

type Schemas = components["schemas"];
export type Recipe = Schemas["Recipe"];
export type RecipeRun = Schemas["RecipeRun"];
export type RunOutput = Schemas["RunOutput"];
export type RunRecipe = Schemas["RunRecipe"];
export type StartQuote = Schemas["StartQuote"];
export type ForkRecipe = Schemas["ForkRecipe"];
export type Workflow = Schemas["Workflow"];
export type CreateWorkflow = Schemas["CreateWorkflow"];
export type Visibility = Schemas["VisibilityFilter"];

/** What a run needs beside `canvas:read`. */
export const RUN_SCOPES = ["canvas:write", "asset:read", "image:generate"];

/** A stale revision is accepted when nothing that the start reads or writes has changed since. */
const lenient = { Prefer: "handling=lenient" as const };
/** How often something is tried on a newer revision. */
const MOST_CONFLICTS = 6;

export const recipes = {
  // A list is in full unless `view` asks for less.
  list: async (q: string, visibility: Visibility, cursor: string | undefined, signal: AbortSignal) =>
    (await answer(
      contract.GET("/api/canvas-agent/v1/recipes", { params: { query: { visibility, limit: 100, ...(q && { q }), ...(cursor && { cursor }) } }, signal }),
    )) as Schemas["RecipeList"],

  /** A version of a Recipe, or the newest. */
  read: async (recipeId: string, version: string | undefined, signal: AbortSignal) =>
    (await answer(contract.GET("/api/canvas-agent/v1/recipes/{recipeId}", { params: { path: { recipeId }, query: version === undefined ? {} : { version } }, signal }))).recipe,

  /** What a run would cost. */
  quote: async (recipeId: string, body: Omit<RunRecipe, "validateOnly">, signal: AbortSignal) =>
    (await answer(
      contract.POST("/api/canvas-agent/v1/recipes/{recipeId}/runs", { params: { path: { recipeId }, header: lenient }, body: { ...body, validateOnly: true }, signal }),
    )) as StartQuote,

  run: async (recipeId: string, body: RunRecipe) =>
    (await answer(
      contract.POST("/api/canvas-agent/v1/recipes/{recipeId}/runs", { params: { path: { recipeId }, header: lenient }, body, signal: patience() }),
    )) as RecipeRun,

  fork: async (recipeId: string, body: ForkRecipe) =>
    (await answer(
      contract.POST("/api/canvas-agent/v1/recipes/{recipeId}/fork", { params: { path: { recipeId }, header: lenient }, body, signal: patience() }),
    )) as Schemas["MutationResult"],

  create: async (canvasId: string, body: CreateWorkflow) =>
    (await answer(
      contract.POST("/api/canvas-agent/v1/canvases/{canvasId}/workflows", { params: { path: { canvasId } }, body, signal: patience() }),
    )) as Schemas["WorkflowResult"],

  async readRun(runId: string, signal: AbortSignal): Promise<RecipeRun> {
    const run = await answer(contract.GET("/api/canvas-agent/v1/runs/{runId}", { params: { path: { runId } }, signal }));
    if (run.kind !== "recipe") throw new Problem(404, "This is not the run of a Recipe.");
    return run as RecipeRun;
  },
};

/** Starts something on the newest revision of a canvas: again when others were faster. */
export async function onNewest<T>(canvasId: string, start: (common: { baseRevision: string; idempotencyKey: string }) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    const { canvas } = await api.review(canvasId, patience());
    const common = { baseRevision: canvas.revision, idempotencyKey: crypto.randomUUID() };
    try {
      return await retryUntilAnswered(() => start(common));
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 409 || attempt === MOST_CONFLICTS) throw error;
    }
  }
}
