/** Another attempt at work that failed: what it begins with on the board. */
import type { Node } from "../sync/graph.ts";
import { isOver } from "../work.ts";
import type { Board } from "./board.ts";
import { draftOf, failedAction, isFailed } from "./making.ts";
import { makeAgain } from "./prompting.ts";

/** The node that a handle of a source names: its own, or that of the image that it shows. */
export function sourceOf(board: Board, handle: string): Node | undefined {
  if (handle.startsWith("node:")) return board.graph.nodes.get(board.engine.local(handle.slice("node:".length)));
  return [...board.graph.nodes.values()].find(({ asset }) => asset === handle);
}

/** The image that another one was made from by an Action, an edit or a variation: the first, if there are several. */
export function imageBefore(board: Board, { asset, metadata: { provenance } }: Node): string | undefined {
  const isChanged = provenance?.kind === "action" || (provenance?.kind === "generated" && provenance.operation !== "generate");
  const handle = asset !== undefined && isChanged ? provenance?.references[0]?.handle : undefined;
  return handle === undefined ? undefined : (sourceOf(board, handle)?.asset ?? (handle.startsWith("asset:") ? handle : undefined));
}

/** Opens what starts the work of these nodes once more; undefined if nothing does, or the session may not. */
export function attemptAt(board: Board, nodes: Node[], scopes: string[]): (() => void) | undefined {
  if (!board.canChange) return undefined;
  const failed = nodes.filter(({ metadata: { job } }) => job && job.status !== "succeeded" && isOver(job.status));
  const ofRecipe = failed.find(({ metadata }) => metadata.recipe);
  const ofAction = failed.map((node) => failedAction(board.graph, node)).find((one) => one !== undefined);
  if (ofAction && !ofRecipe) {
    const sources = ofAction.inputs.flatMap((handle) => sourceOf(board, handle) ?? []).filter(({ asset }) => asset !== undefined);
    if (sources.length === 0) return undefined;
    return () => {
      board.select(sources.map(({ id }) => id));
      board.set({ panel: "inspect", attempt: ofAction.attempt });
    };
  }
  if (!scopes.includes("image:generate")) return undefined;
  if (ofRecipe) {
    return () => {
      board.select([ofRecipe.id]);
      board.set({ panel: "recipes", prompt: undefined });
    };
  }
  const draft = failed.filter(isFailed).map((node) => draftOf(board.graph, node)).find((one) => one !== undefined);
  return draft && (() => makeAgain(board, draft));
}

/** Opens what starts the work of these nodes once more, whether it failed or not. */
export function againAt(board: Board, nodes: Node[], scopes: string[]): (() => void) | undefined {
  const attempt = attemptAt(board, nodes, scopes);
  if (attempt || !board.canChange || !scopes.includes("image:generate")) return attempt;
  const draft = nodes.map((node) => draftOf(board.graph, node)).find((one) => one !== undefined);
  return draft && (() => makeAgain(board, draft));
}
