/** Starts work on the board: makes the empty nodes that receive the results, and starts on the newest revision. */
import { type Action, api, type ImageOperation, type Model } from "../api.ts";
import { CAPTION } from "../assets.ts";
import { Problem } from "../errors.ts";
import { firstOf } from "../format.ts";
import { retryUntilAnswered } from "../retry.ts";
import { type Change, update } from "../sync/change.ts";
import type { Engine } from "../sync/engine.ts";
import { type Fields, type Node, type Purpose, type Role, withFields } from "../sync/graph.ts";
import type { Size } from "../view.ts";
import { work } from "../work.ts";
import type { Board } from "./board.ts";
import { keep } from "./engines.ts";
import { connectionOf, isEmptySlot, newNode, TITLES } from "./gestures.ts";
import { type FrameUse, isFailed, keptAction, keptOf, type Reference } from "./making.ts";
import { placesFor } from "./places.ts";
import { selectResults } from "./prompting.ts";
import { shapeOfImage, sizeOfResult } from "./shapes.ts";

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

/** New nodes of one size beside `sources`, or where a person looks, on nothing. */
function targetsFor(board: Board, count: number, sources: Node[], title: string, size: Size, kind: "image" | "video" = "image"): Node[] {
  const places = placesFor(board.graph, Array.from({ length: count }, () => size), board.where(undefined, sources));
  return places.map((position) => newNode(board.graph, kind, board.newId(), position, { position, ...size, title }));
}

/** A result of another ratio than was expected gives its node that ratio. */
export const FIT = { fit: true };

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
      return await retryUntilAnswered(() => start(common));
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 409 || attempt === MOST_CONFLICTS) throw error;
      await engine.refresh();
    }
  }
}

/** The selections that starts have made, not a person. */
const selectedByStarts = new WeakSet<ReadonlySet<string>>();

/**
 * Makes the targets of a start and starts on the newest revision. If the start is refused, or was never sent, nothing is left of it.
 * `kept`: nodes that are there already and are filled first. `show`: selects what receives the results, unless a person has
 * selected something else since.
 */
export async function startInto<T>(board: Board, label: string, targets: Node[], links: Change[], start: (common: Start, targets: string[]) => Promise<T>, kept: Node[] = [], show = (ids: string[]) => board.select(ids)): Promise<T> {
  const { engine } = board;
  const ids = [...kept, ...targets].map(({ id }) => id);
  // The board may be left before there is an answer.
  const release = keep(engine);
  const step = engine.perform(label, [...targets.map((node): Change => ({ do: "create", node })), ...links]);
  board.bring(ids, sourcesOf(links));
  const { selection } = board.getUi();
  let isUnknown = false;
  try {
    const started = await startOn(board, async (common) => {
      try {
        return await start(common, ids.map((id) => `node:${engine.real(id)}`));
      } catch (error) {
        isUnknown = !(error instanceof Problem) || (error.isTemporary && (isUnknown || error.status !== 429));
        throw error;
      }
    });
    await engine.refresh();
    // What a person has selected meanwhile stays selected.
    const now = board.getUi().selection;
    if (now === selection || selectedByStarts.has(now)) {
      show(ids);
      selectedByStarts.add(board.getUi().selection);
    }
    return started;
  } catch (error) {
    // Without an answer it may have been accepted. Then its results come into the nodes.
    if (!isUnknown && step !== undefined) engine.takeBack(step);
    throw error;
  } finally {
    release();
  }
}

/** The nodes that connections to targets come from. */
const sourcesOf = (links: Change[]): string[] => links.flatMap((link) => (link.do === "connect" ? link.connection.fromNodeId : []));

/** Runs an Action on nodes into a new node of the size of its result, or into the empty one of an earlier attempt. `shape`: about the result in pixels. */
export async function runAction(board: Board, canvas: string, action: Action, sources: Node[], params: Record<string, string | number>, shape?: Size, into = ""): Promise<void> {
  const [source] = sources;
  const inputs = sources.map(({ id }) => `node:${board.engine.real(id)}`);
  const before = [board.graph.nodes.get(into)].flatMap((node) => (node && isFailed(node) ? node : []));
  const title = firstOf(`${source?.title || "Image"}, ${action.title.toLowerCase()}`, 160);
  const kept = (node: Node) => keptAction(node, action.slug, params, inputs);
  const targets = targetsFor(board, 1 - before.length, sources, title, sizeOfResult(shape, source, title)).map((node) => withFields(node, kept(node)));
  const links = [
    ...before.map((node) => update("node", node, kept(node))),
    ...[...new Set(sources)].flatMap((node) => linksTo(board, node, [...targets, ...before.filter((to) => !isLinked(board, node, to, "flow"))], "flow")),
  ];
  await startInto(
    board,
    action.title,
    targets,
    links,
    (common, [targetNodeId = ""]) =>
      api.startAction(action.slug, {
        ...common,
        canvasId: canvas,
        targetNodeId,
        ...FIT,
        inputs: sources.map(({ id }) => `node:${board.engine.real(id)}`),
        params: params as Record<string, never>,
      }),
    before,
  );
}

export interface Making {
  operation: ImageOperation;
  model: Model;
  prompt: string;
  references: Reference[];
  /** The mask of an edit of the first reference, and its feather in pixels. */
  mask?: { handle: string; feather: number } | undefined;
  /** Nodes that the results follow from, beside the references. */
  sources: Node[];
  /** Handles of versions of Elements. */
  elements: string[];
  size: string;
  quality: string;
  count: number;
  /** Ids of empty nodes that are filled before new ones are made. */
  into: string[];
  /** What new ones are made beside, if they are made from no image. */
  beside: Node | undefined;
  /** The spending cap, if it is not the price. */
  maxCredits: number | undefined;
}

/** Generates images into empty nodes of an earlier attempt and into new ones, for at most the price that was shown or the cap. */
export async function makeImages(board: Board, canvas: string, making: Making): Promise<void> {
  const { operation, model, prompt, references, mask, elements, sources, size, quality, count } = making;
  const [source] = mask ? references : [];
  const guides = references.filter((reference) => reference !== source);
  const title = titleOf(prompt) || references[0]?.node?.title || "Image";
  const before = making.into.flatMap((id) => board.graph.nodes.get(id) ?? []).filter(isEmptySlot).slice(0, count);
  const beside = references[0]?.node ?? sources[0] ?? before[0] ?? making.beside;
  const nodeSize = sizeOfResult(shapeOfImage(size, operation === "generate" ? undefined : references[0]?.node), beside, title);
  const targets = targetsFor(board, count - before.length, beside ? [beside] : [], title, nodeSize).map((node) => withFields(node, keptOf(node, making)));
  const linked = (from: Node, purpose: Purpose, role?: Role) => {
    const lacking = before.filter((to) => !isLinked(board, from, to, purpose));
    return linksTo(board, from, [...lacking, ...targets], purpose, role);
  };
  const links = [
    ...before.map((node) => update("node", node, { ...keptOf(node, making), ...entitled(node, title) })),
    ...references.flatMap(({ node, role }) => (node ? linked(node, "reference", role) : [])),
    ...sources.flatMap((node) => linked(node, "flow")),
  ];
  const start = (common: Start, targetNodeIds: string[]) =>
    api.startImages(operation, {
      ...common,
      canvasId: canvas,
      targetNodeIds,
      ...FIT,
      model: model.handle,
      maxCredits: making.maxCredits ?? model.creditCost * count,
      ...(prompt.trim() !== "" && { prompt }),
      ...(guides.length > 0 && { references: guides.map((reference) => referenceOf(board, reference)) }),
      ...(mask && source && { source: referenceOf(board, source).handle, mask: mask.handle, maskFeather: mask.feather }),
      ...(elements.length > 0 && { elements }),
      ...(size !== "" && { size }),
      ...(quality !== "" && { quality }),
    });
  await startInto(board, `Make ${count === 1 ? "an image" : `${count} images`}`, targets, links, start, before, (ids) => selectResults(board, ids));
}

/** A place that nobody has named has the title of what is made in it. */
const entitled = ({ type, title }: Node, next: string): Fields => (title === TITLES[type] ? { title: next } : {});

const titleOf = (prompt: string): string => firstOf(prompt.trim().split("\n")[0] ?? "", 60);

function referenceOf(board: Board, { asset, node, role }: Reference) {
  const handle = node ? `node:${board.engine.real(node.id)}` : asset;
  return role ? { handle, role } : { handle };
}

export interface VideoRequest {
  model: Model;
  prompt: string;
  /** Images, and what each is used for. */
  frames: { reference: Reference; use: FrameUse }[];
  /** The selected text, which the result follows from. */
  source: Node | undefined;
  /** The video node that is filled, if not a new one. */
  target: Node | undefined;
  /** What a new one is made beside, if it is made from no image. */
  beside: Node | undefined;
  seconds: number | undefined;
  ratio: string;
  resolution: string;
  hasAudio: boolean | undefined;
  /** The spending cap, if it is not the price. */
  maxCredits: number | undefined;
}

/** The longer side of a new video node. */
const VIDEO_SIDE = 480;

/** The size of a node that shows a video of this aspect ratio whole. */
function videoSize(ratio: string): Size {
  const [across = 16, down = 9] = /^\d+:\d+$/.test(ratio) ? ratio.split(":").map(Number) : [];
  const scale = VIDEO_SIDE / Math.max(across, down, 1);
  return { width: Math.max(Math.round(across * scale), 60), height: Math.max(Math.round(down * scale), 60) + CAPTION };
}

/** Generates a video into the node that is selected or into a new one, for at most the price that was shown. */
export async function makeVideo(board: Board, canvas: string, request: VideoRequest): Promise<void> {
  const { model, prompt, frames, source, target, seconds, ratio, resolution, hasAudio } = request;
  const frame = (use: FrameUse) => frames.find((one) => one.use === use)?.reference.asset;
  const [first, last] = [frame("first"), frame("last")];
  const references = frames.filter(({ use }) => use === "reference").map(({ reference: { asset, role } }) => (role ? { handle: asset, role } : asset));
  const fields = {
    "metadata.prompt": prompt,
    "metadata.model": model.modelId,
    "metadata.durationSeconds": seconds ?? null,
    "metadata.aspectRatio": ratio || null,
  };
  // What was there when the form was filled in may have gone since.
  const before = [target && board.graph.nodes.get(target.id)].flatMap((node) => node ?? []);
  const beside = frames[0]?.reference.node ?? source ?? request.beside;
  const title = titleOf(prompt) || "Video";
  const targets = targetsFor(board, 1 - before.length, beside ? [beside] : [], title, videoSize(ratio), "video").map((node) => withFields(node, fields));
  const wanted = [
    ...frames.map(({ reference: { node, role }, use }) => ({ from: node, purpose: PURPOSES[use], role: use === "reference" ? role : undefined })),
    { from: source, purpose: "flow" as const, role: undefined },
  ];
  const links = wanted.flatMap(({ from, purpose, role }) => (from ? linksTo(board, from, [...before, ...targets].filter((to) => !isLinked(board, from, to, purpose)), purpose, role) : []));
  const start = (common: Start, [targetNodeId = ""]: string[]) =>
    work.startVideo({
      ...common,
      canvasId: canvas,
      targetNodeId,
      ...FIT,
      model: model.handle,
      prompt,
      maxCredits: request.maxCredits ?? model.creditCost,
      ...(first !== undefined && { firstFrame: first }),
      ...(last !== undefined && { lastFrame: last }),
      ...(references.length > 0 && { references }),
      ...(seconds !== undefined && { durationSeconds: seconds }),
      ...(ratio !== "" && { aspectRatio: ratio }),
      ...(resolution !== "" && { resolution }),
      ...(hasAudio !== undefined && { generateAudio: hasAudio }),
    });
  await startInto(board, "Make a video", targets, [...before.map((node) => update("node", node, { ...fields, ...entitled(node, title) })), ...links], start, before, (ids) => selectResults(board, ids));
}

/** Keeps the video of a job on the canvas, in the node that has the job in its data. */
export async function keepVideo(board: Board, canvas: string, node: Node, job: string): Promise<void> {
  const release = keep(board.engine);
  try {
    const targetNodeId = `node:${board.engine.real(node.id)}`;
    await startOn(board, ({ baseRevision }) => work.keepVideo(job, { canvasId: canvas, targetNodeId, baseRevision }));
    await board.engine.refresh();
  } finally {
    release();
  }
}

const PURPOSES = { first: "first-frame", last: "last-frame", reference: "reference" } as const satisfies Record<FrameUse, Purpose>;

/** Whether this connection is there, or cannot be. A video node has one connection for each of its frames. */
function isLinked(board: Board, from: Node, to: Node, purpose: Purpose): boolean {
  if (!board.graph.nodes.has(from.id) || from.id === to.id) return true;
  const isFrame = purpose === "first-frame" || purpose === "last-frame";
  return [...board.graph.connections.values()].some((one) => one.toNodeId === to.id && one.purpose === purpose && (isFrame || one.fromNodeId === from.id));
}

const linksTo = (board: Board, from: Node, targets: Node[], purpose: Purpose, role?: Role): Change[] =>
  targets.map((target) => ({ do: "connect", connection: connectionOf(board.newId(), from.id, target.id, purpose, role) }));
