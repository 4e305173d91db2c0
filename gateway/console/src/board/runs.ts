/** Starts work on the board: makes the empty node that receives the result, and starts on the newest revision. */
import { type Action, api } from "../api.ts";
import { Problem } from "../errors.ts";
import { backoff } from "../stream.ts";
import type { Change } from "../sync/change.ts";
import type { Engine } from "../sync/engine.ts";
import type { Node } from "../sync/graph.ts";
import type { Board } from "./board.ts";
import { connectionOf, newNode, removed } from "./gestures.ts";
import { SpatialIndex } from "./spatial.ts";

const GAP = 60;
/** How often a start is tried on a newer revision. */
const MOST_CONFLICTS = 6;
/** How often a start without an answer is sent again. */
const MOST_ATTEMPTS = 5;

/** Resolves when everything is saved. Throws when saving has stopped. */
function saved(engine: Engine): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = () => {
      const { state, problem } = engine.getSnapshot();
      if (state === "opening" || state === "saving") return;
      stop();
      if (state === "saved") resolve();
      else reject(problem ?? new Problem(0, "The service cannot be reached."));
    };
    const stop = engine.subscribe(look);
    look();
  });
}

/** A new image node beside `source`, where no other node is. */
function targetFor(board: Board, source: Node, title: string): Node {
  const { width, height } = source;
  const { x, y } = source.position;
  const index = new SpatialIndex(board.graph.nodes.values());
  let at = { x: x + width + GAP, y };
  for (let row = 0; row < 50; row += 1) {
    const taken = index.in({ ...at, width, height }).some((node) => node.metadata.section !== true);
    if (!taken) break;
    at = { x: at.x, y: at.y + height + GAP };
  }
  return newNode(board.graph, "image", board.newId(), at, { position: at, width, height, title });
}

/** Sends a start until there is an answer: under the same key, so it is accepted once. */
async function insist(start: () => Promise<unknown>): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      await start();
      return;
    } catch (error) {
      if (!(error instanceof Problem) || !error.isTemporary || attempt === MOST_ATTEMPTS) throw error;
      const pause = error.retryAfter === undefined ? backoff(attempt) : error.retryAfter * 1000;
      await new Promise((resume) => setTimeout(resume, pause));
    }
  }
}

/** Runs an Action on nodes into a new node. If it is refused, nothing is left of it. */
export async function runAction(board: Board, canvas: string, action: Action, sources: Node[], params: Record<string, string | number>): Promise<void> {
  const [source] = sources;
  if (!source) return;
  const { engine } = board;
  const target = targetFor(board, source, `${source.title || "Image"}, ${action.title.toLowerCase()}`.slice(0, 160));
  const links = [...new Set(sources)].map(({ id }): Change => ({ do: "connect", connection: connectionOf(board.newId(), id, target.id, "flow") }));
  engine.perform(action.title, [{ do: "create", node: target }, ...links]);
  for (let attempt = 1; ; attempt += 1) {
    await saved(engine);
    const request = {
      canvasId: canvas,
      baseRevision: engine.getSnapshot().revision ?? "",
      idempotencyKey: board.newId(),
      targetNodeId: `node:${engine.real(target.id)}`,
      inputs: sources.map(({ id }) => `node:${engine.real(id)}`),
      params: params as Record<string, never>,
    };
    try {
      await insist(() => api.startAction(action.slug, request));
      break;
    } catch (error) {
      const isRefused = error instanceof Problem && !error.isTemporary;
      if (isRefused && error.status === 409 && attempt < MOST_CONFLICTS) {
        await engine.refresh();
        continue;
      }
      // Without an answer it may have been accepted. Then its result comes into the node.
      if (isRefused) engine.perform(`Take back: ${action.title}`, removed(board.graph, [target.id]));
      throw error;
    }
  }
  await engine.refresh();
  board.select([target.id]);
}
