/** What the Stage starts, and what becomes of a picture that its result replaces. */
import { type Action, api } from "../api.ts";
import { nodeSizeAt } from "../assets.ts";
import { Problem } from "../errors.ts";
import { firstOf } from "../format.ts";
import type { Change } from "../sync/change.ts";
import { type Node, withFields } from "../sync/graph.ts";
import { messageOf } from "../ui/parts.tsx";
import type { Size } from "../view.ts";
import { isOver } from "../work.ts";
import type { Board } from "./board.ts";
import { paramsOf } from "./forms.ts";
import { connectionOf, filled, newNode } from "./gestures.ts";
import { MOST_TITLE } from "./limits.ts";
import { keptAction } from "./making.ts";
import { placesFor } from "./places.ts";
import { FIT, startInto } from "./runs.ts";
import { sizeOfResult } from "./shapes.ts";
import { actionsOf, closeStage, forgetStage, refusalOf, sizeMade, type Stage, stepsOf } from "./stage.ts";

/** Closes the Stage and starts what was entered. A refusal is said, and opens it again as it was. */
export async function applyStage(board: Board, canvas: string, actions: readonly Action[], size: Size): Promise<void> {
  const { stage } = board.getUi();
  if (!stage || refusalOf(stage, size, board.canChange) !== undefined) return;
  const steps = actionsOf(stepsOf(stage, size), actions).map(({ action, entries }) => ({ action, params: paramsOf(action, entries) }));
  const last = steps.at(-1);
  if (!last) return;
  const source = board.graph.nodes.get(stage.source ?? "");
  const shape = sizeMade(stage, size);
  closeStage(board);
  try {
    const made = await start(board, canvas, stage, steps, source, shape);
    forgetStage(stage);
    if (stage.replaces) replaceWhenReady(board, stage.id, made, shape);
  } catch (error) {
    const why = error instanceof Problem ? (error.fields[0]?.message ?? error.message) : messageOf(error);
    board.notify(`${last.action.title}: ${why}`, { label: "Open it again", run: () => board.set({ stage }) });
  }
}

/** Starts Actions in a row on the image of a node, or on one that no node shows, into a new node, whose id it returns. */
async function start(board: Board, canvas: string, stage: Stage, steps: { action: Action; params: Record<string, string | number> }[], source: Node | undefined, shape: Size): Promise<string> {
  const { action, params } = steps.at(-1) as (typeof steps)[number];
  const beside = source ?? board.graph.nodes.get(stage.id);
  const title = firstOf(`${beside?.title || "Image"}, ${action.title.toLowerCase()}`, MOST_TITLE);
  const size = sizeOfResult(shape, beside, title);
  const [position] = placesFor(board.graph, [size], board.where(undefined, beside ? [beside] : []));
  const node = newNode(board.graph, "image", board.newId(), { x: 0, y: 0 }, { ...(position && { position }), ...size, title });
  const over = board.graph.nodes.get(stage.second?.id ?? "");
  const inputs = () => [[source, stage.asset] as const, ...(stage.second ? [[over, stage.second.asset] as const] : [])].map(([node, asset]) => (node ? `node:${board.engine.real(node.id)}` : asset));
  // Another attempt is at one Action on nodes.
  const target = steps.length === 1 && source && (over || !stage.second) ? withFields(node, keptAction(node, action.slug, params, inputs())) : node;
  const links = [...new Set([source, over])].flatMap((node): Change[] => (node ? [{ do: "connect", connection: connectionOf(board.newId(), node.id, target.id, "flow") }] : []));
  await startInto(board, action.title, [target], links, (common, [targetNodeId = ""]): Promise<unknown> => {
    const shared = { ...common, canvasId: canvas, ...FIT, inputs: inputs() };
    if (steps.length === 1) return api.startAction(action.slug, { ...shared, targetNodeId, params: params as Record<string, never> });
    return api.startActions({ ...shared, targetNodeIds: [targetNodeId], steps: steps.map(({ action: { slug }, params }) => ({ action: slug, params: params as Record<string, never> })) });
  });
  return target.id;
}

/**
 * Puts the image of a node in the place of another node once it is there: with its box, title, Section, order and connections. One step,
 * which an undo takes back. If the work fails, or the page is left before, both stay.
 */
function replaceWhenReady(board: Board, old: string, made: string, shape: Size): void {
  const { engine } = board;
  const look = () => {
    const [slot, image] = [board.graph.nodes.get(old), board.graph.nodes.get(made)];
    const job = image?.metadata.job;
    if (!slot || !image || (image.asset === undefined && job && isOver(job.status))) return stop();
    if (image.asset === undefined) return;
    stop();
    const isThere = (change: Change) =>
      change.do === "connect" && [...board.graph.connections.values()].some(({ fromNodeId, toNodeId, purpose }) => fromNodeId === change.connection.fromNodeId && toNodeId === change.connection.toNodeId && purpose === change.connection.purpose);
    const changes = filled(board.graph, slot, image, board.newId).filter((change) => !isThere(change));
    const { height } = nodeSizeAt(slot.width, shape, slot.title);
    engine.perform("Replace an image", [...changes, { do: "update", on: "node", id: made, set: { height }, was: { height: slot.height } }]);
    board.select([made]);
  };
  const stop = engine.subscribe(look);
  look();
}
