/** Another attempt at work that failed: what it begins with on the board. */
import type { Node } from "../sync/graph.ts";
import { isOver } from "../work.ts";
import type { Board } from "./board.ts";
import { draftOf, isFailed } from "./making.ts";

/** Opens what starts the work of these nodes once more; undefined if nothing does, or the session may not. */
export function attemptAt(board: Board, nodes: Node[], scopes: string[]): (() => void) | undefined {
  const failed = nodes.filter(({ metadata: { job } }) => job && job.status !== "succeeded" && isOver(job.status));
  const ofRecipe = failed.find(({ metadata }) => metadata.recipe);
  if (!scopes.includes("image:generate") || !board.canChange) return undefined;
  if (ofRecipe) {
    return () => {
      board.select([ofRecipe.id]);
      board.set({ panel: "recipes", draft: undefined });
    };
  }
  const draft = failed.filter(isFailed).map((node) => draftOf(board.graph, node)).find((one) => one !== undefined);
  return draft && (() => board.set({ panel: "make", draft }));
}
