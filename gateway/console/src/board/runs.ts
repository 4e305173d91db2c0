/** Starts work on the board: makes the empty nodes that receive the results, and starts on the newest revision. */
import { type Action, api, type ImageOperation, type Model } from "../api.ts";
import { Problem } from "../errors.ts";
import { insist } from "../insist.ts";
import type { Change } from "../sync/change.ts";
import type { Engine } from "../sync/engine.ts";
import { isSection, type Node, type Purpose, type Role } from "../sync/graph.ts";
import type { Board } from "./board.ts";
import { connectionOf, newNode, removed, sizeOf } from "./gestures.ts";
import { SpatialIndex } from "./spatial.ts";

const GAP = 60;
/** How many places are looked at before a target covers another node. */
const MOST_ROWS = 60;
/** How often a start is tried on a newer revision. */
const MOST_CONFLICTS = 6;

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

/** New image nodes of one size, below each other beside `source` or else in the middle of the view, where no other nodes are. */
function targetsFor(board: Board, count: number, source: Node | undefined, title: string): Node[] {
  const size = source && source.type !== "text" && source.type !== "sticky" ? { width: source.width, height: source.height } : sizeOf("image");
  const middle = board.surface?.middle() ?? { x: 0, y: 0 };
  const begin = source
    ? { x: source.position.x + source.width + GAP, y: source.position.y }
    : { x: Math.round(middle.x - size.width / 2), y: Math.round(middle.y - size.height / 2) };
  const index = new SpatialIndex(board.graph.nodes.values());
  const targets: Node[] = [];
  for (let row = 0; targets.length < count; row += 1) {
    const position = { x: begin.x, y: begin.y + row * (size.height + GAP) };
    const isTaken = index.in({ ...position, ...size }).some((node) => !isSection(node));
    if (!isTaken || row > MOST_ROWS) targets.push(newNode(board.graph, "image", board.newId(), position, { position, ...size, title }));
  }
  return targets;
}

/** What every start has in common. */
export interface Start {
  baseRevision: string;
  idempotencyKey: string;
}

/** Starts work on the newest revision, once everything is saved: again when others were faster. */
export async function startOn<T>({ engine, newId }: Board, start: (common: Start) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    await saved(engine);
    const common = { baseRevision: engine.getSnapshot().revision ?? "", idempotencyKey: newId() };
    try {
      return await insist(() => start(common));
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 409 || attempt === MOST_CONFLICTS) throw error;
      await engine.refresh();
    }
  }
}

/** Makes the targets of a start and starts on the newest revision. If the start is refused, nothing is left of it. */
export async function startInto<T>(board: Board, label: string, targets: Node[], links: Change[], start: (common: Start, targets: string[]) => Promise<T>): Promise<T> {
  const { engine } = board;
  const ids = targets.map(({ id }) => id);
  engine.perform(label, [...targets.map((node): Change => ({ do: "create", node })), ...links]);
  try {
    const started = await startOn(board, (common) => start(common, ids.map((id) => `node:${engine.real(id)}`)));
    await engine.refresh();
    board.select(ids);
    return started;
  } catch (error) {
    // Without an answer it may have been accepted. Then its results come into the nodes.
    if (error instanceof Problem && !error.isTemporary) engine.perform(`Take back: ${label}`, removed(board.graph, ids));
    throw error;
  }
}

/** Runs an Action on nodes into a new node. */
export async function runAction(board: Board, canvas: string, action: Action, sources: Node[], params: Record<string, string | number>): Promise<void> {
  const [source] = sources;
  const title = `${source?.title || "Image"}, ${action.title.toLowerCase()}`.slice(0, 160);
  const targets = targetsFor(board, 1, source, title);
  const links = [...new Set(sources)].flatMap((node) => linksTo(board, node, targets, "flow"));
  await startInto(board, action.title, targets, links, (common, [targetNodeId = ""]) =>
    api.startAction(action.slug, {
      ...common,
      canvasId: canvas,
      targetNodeId,
      inputs: sources.map(({ id }) => `node:${board.engine.real(id)}`),
      params: params as Record<string, never>,
    }),
  );
}

export interface Making {
  operation: ImageOperation;
  model: Model;
  prompt: string;
  references: { node: Node; role?: Role }[];
  /** Nodes that the results follow from, beside the references. */
  sources: Node[];
  size: string;
  quality: string;
  count: number;
}

/** Generates pictures into new nodes, for at most the price that was shown. */
export async function makeImages(board: Board, canvas: string, making: Making): Promise<void> {
  const { operation, model, prompt, references, sources, size, quality, count } = making;
  const title = (prompt.trim().split("\n")[0] || references[0]?.node.title || "Image").slice(0, 60);
  const targets = targetsFor(board, count, references[0]?.node ?? sources[0], title);
  const links = [
    ...references.flatMap(({ node, role }) => linksTo(board, node, targets, "reference", role)),
    ...sources.flatMap((node) => linksTo(board, node, targets, "flow")),
  ];
  await startInto(board, `Make ${count === 1 ? "a picture" : `${count} pictures`}`, targets, links, (common, targetNodeIds) =>
    api.startImages(operation, {
      ...common,
      canvasId: canvas,
      targetNodeIds,
      model: model.handle,
      maxCredits: model.creditCost * count,
      ...(prompt.trim() !== "" && { prompt }),
      ...(references.length > 0 && { references: references.map(({ node, role }) => referenceOf(board, node, role)) }),
      ...(size !== "" && { size }),
      ...(quality !== "" && { quality }),
    }),
  );
}

function referenceOf(board: Board, { id }: Node, role: Role | undefined) {
  const handle = `node:${board.engine.real(id)}`;
  return role ? { handle, role } : { handle };
}

const ACTIVE = new Set(["preparing", "queued", "running", "finalizing"]);

/** Whether work in this status can be canceled. */
export const isActive = (status: string): boolean => ACTIVE.has(status);

const linksTo = (board: Board, from: Node, targets: Node[], purpose: Purpose, role?: Role): Change[] =>
  targets.map((target) => ({ do: "connect", connection: connectionOf(board.newId(), from.id, target.id, purpose, role) }));
