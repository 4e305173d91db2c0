/** Starts work on the board: makes the empty nodes that receive the results, and starts on the newest revision. */
import { api, type ImageOperation, type Model } from "../api.ts";
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

/** What new nodes are, before they have a place. */
type Outline = Size & { title: string };

/** New nodes beside `sources`, or where a person looks, on nothing: in a row or a grid, or in rows of so many. */
export function targetsFor(board: Board, outlines: Outline[], sources: Node[], kind: "image" | "video" = "image", columns?: number): Node[] {
  const places = placesFor(board.graph, outlines, board.where(undefined, sources), columns);
  return places.map((position, index) => newNode(board.graph, kind, board.newId(), position, { position, ...(outlines[index] as Outline) }));
}

/** Work that can be started: everything but the nodes that receive the results. */
export interface Plan {
  /** What its results are called, and their size. */
  outline: Outline;
  count: number;
  /** What its results are made beside. */
  sources: Node[];
  /** What a result keeps of it, for another attempt. */
  keptBy: (target: Node) => Fields;
  /** Connects the results with what they are made from, unless that is so. */
  links: (targets: Node[]) => Change[];
  start: (common: Start, targets: string[]) => Promise<{ run: string }>;
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

/**
 * Starts work that fills these nodes. `refused` is called if it was refused, or never sent; not if it may have been accepted, for then its
 * results come into the nodes.
 */
export async function startFor<T>(board: Board, ids: string[], start: (common: Start, targets: string[]) => Promise<T>, refused: () => void): Promise<T> {
  let isUnknown = false;
  try {
    return await startOn(board, async (common) => {
      try {
        return await start(common, ids.map((id) => `node:${board.engine.real(id)}`));
      } catch (error) {
        isUnknown = !(error instanceof Problem) || (error.isTemporary && (isUnknown || error.status !== 429));
        throw error;
      }
    });
  } catch (error) {
    if (!isUnknown) refused();
    throw error;
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
  try {
    const started = await startFor(board, ids, start, () => step !== undefined && engine.takeBack(step));
    await engine.refresh();
    // What a person has selected meanwhile stays selected.
    const now = board.getUi().selection;
    if (now === selection || selectedByStarts.has(now)) {
      show(ids);
      selectedByStarts.add(board.getUi().selection);
    }
    return started;
  } finally {
    release();
  }
}

/** Starts work into empty nodes that are there, and into new ones. */
async function startPlan(board: Board, label: string, plan: Plan, before: Node[], show?: (ids: string[]) => void): Promise<void> {
  const { outline, keptBy } = plan;
  const fresh = Array.from({ length: plan.count - before.length }, () => outline);
  const targets = targetsFor(board, fresh, plan.sources).map((node) => withFields(node, keptBy(node)));
  const kept = before.map((node) => update("node", node, { ...keptBy(node), ...entitled(node, outline.title) }));
  await startInto(board, label, targets, [...kept, ...plan.links([...before, ...targets])], plan.start, before, show);
}

/** The nodes that connections to targets come from. */
export const sourcesOf = (links: Change[]): string[] => links.flatMap((link) => (link.do === "connect" ? link.connection.fromNodeId : []));

type Params = Record<string, string | number>;

/** What is added to the title of a source, where the name of the Action says less. */
const SUFFIXES: Record<string, (params: Params) => string> = {
  "change-aspect-ratio": ({ ratio }) => String(ratio),
  "add-text-to-image": () => "text",
};

/** An Action on these nodes, into one of the size of its result. `shape`: about the result in pixels. */
export function planAction(board: Board, canvas: string, { slug, title: name }: { slug: string; title: string }, sources: Node[], params: Params, shape?: Size): Plan {
  const [source] = sources;
  const title = firstOf(`${source?.title || "Image"}, ${SUFFIXES[slug]?.(params) ?? name.toLowerCase()}`, 160);
  const inputs = () => sources.map(({ id }) => `node:${board.engine.real(id)}`);
  return {
    outline: { title, ...sizeOfResult(shape, source, title) },
    count: 1,
    sources,
    keptBy: (node) => keptAction(node, slug, params, inputs()),
    links: (targets) => [...new Set(sources)].flatMap((node) => linksTo(board, node, targets, "flow")),
    start: (common, [targetNodeId = ""]) => api.startAction(slug, { ...common, canvasId: canvas, targetNodeId, ...FIT, inputs: inputs(), params: params as Record<string, never> }),
  };
}

/** Runs an Action into a new node, or into the empty one of an earlier attempt. */
export async function runAction(board: Board, title: string, plan: Plan, into = ""): Promise<void> {
  const before = [board.graph.nodes.get(into)].flatMap((node) => (node && isFailed(node) ? node : []));
  await startPlan(board, title, plan, before);
}

export interface Making {
  operation: ImageOperation;
  model: Model;
  prompt: string;
  references: Reference[];
  /** The mask of an edit of the first reference, its feather in pixels, and whether what it keeps stays exactly as it is. */
  mask?: { handle: string; feather: number; isExact: boolean } | undefined;
  /** Nodes that the results follow from, beside the references. */
  sources: Node[];
  /** Handles of versions of Elements. */
  elements: string[];
  size: string;
  quality: string;
  count: number;
  /** Empty nodes that are filled before new ones are made. */
  into: Node[];
  /** What new ones are made beside, if they are made from no image. */
  beside: Node | undefined;
  /** The spending cap, if it is not the price. */
  maxCredits: number | undefined;
}

/** Images that a model makes, for at most the price that was shown or the cap. */
export function planImages(board: Board, canvas: string, making: Making): Plan {
  const { operation, model, prompt, references, mask, elements, sources, size, quality, count, into } = making;
  const [source] = mask ? references : [];
  const guides = references.filter((reference) => reference !== source);
  const title = titleOf(prompt) || references[0]?.node?.title || "Image";
  const beside = references[0]?.node ?? sources[0] ?? into[0] ?? making.beside;
  return {
    outline: { title, ...sizeOfResult(shapeOfImage(size, operation === "generate" ? undefined : references[0]?.node), beside, title) },
    count,
    sources: beside ? [beside] : [],
    keptBy: (node) => keptOf(node, making),
    links: (targets) => [
      ...references.flatMap(({ node, role }) => (node ? linksTo(board, node, targets, "reference", role) : [])),
      ...sources.flatMap((node) => linksTo(board, node, targets, "flow")),
    ],
    start: (common, targetNodeIds) =>
      api.startImages(operation, {
        ...common,
        canvasId: canvas,
        targetNodeIds,
        ...FIT,
        model: model.handle,
        maxCredits: making.maxCredits ?? model.creditCost * targetNodeIds.length,
        ...(prompt.trim() !== "" && { prompt }),
        ...(guides.length > 0 && { references: guides.map((reference) => referenceOf(board, reference)) }),
        ...(mask && source && { source: referenceOf(board, source).handle, mask: mask.handle, maskFeather: mask.feather, maskComposite: mask.isExact }),
        ...(elements.length > 0 && { elements }),
        ...(size !== "" && { size }),
        ...(quality !== "" && { quality }),
      }),
  };
}

/** Generates images into empty nodes and into new ones. */
export async function makeImages(board: Board, canvas: string, making: Making): Promise<void> {
  const { count } = making;
  // What was there when the form was filled in may have gone since.
  const into = making.into.flatMap(({ id }) => board.graph.nodes.get(id) ?? []).filter(isEmptySlot).slice(0, count);
  await startPlan(board, `Make ${count === 1 ? "an image" : `${count} images`}`, planImages(board, canvas, { ...making, into }), into, (ids) => selectResults(board, ids));
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
  const targets = targetsFor(board, before.length > 0 ? [] : [{ title, ...videoSize(ratio) }], beside ? [beside] : [], "video").map((node) => withFields(node, fields));
  const wanted = [
    ...frames.map(({ reference: { node, role }, use }) => ({ from: node, purpose: PURPOSES[use], role: use === "reference" ? role : undefined })),
    { from: source, purpose: "flow" as const, role: undefined },
  ];
  const links = wanted.flatMap(({ from, purpose, role }) => (from ? linksTo(board, from, [...before, ...targets], purpose, role) : []));
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
  targets.filter((to) => !isLinked(board, from, to, purpose)).map((target) => ({ do: "connect", connection: connectionOf(board.newId(), from.id, target.id, purpose, role) }));
