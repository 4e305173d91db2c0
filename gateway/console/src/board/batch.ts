/**
 * Many starts as one: one change makes all their targets, which is one step that an undo takes back, and then they are started, some at a
 * time. Each target says which batch it belongs to, so how far a batch is can be read from the canvas, also after a reload.
 */
import type { Action } from "../api.ts";
import { sessionEnd } from "../session-end.ts";
import type { Change } from "../sync/change.ts";
import type { Engine } from "../sync/engine.ts";
import { type Graph, type Node, withFields } from "../sync/graph.ts";
import type { Size } from "../view.ts";
import { isOver, work } from "../work.ts";
import type { Board } from "./board.ts";
import { keep } from "./engines.ts";
import { removed, runsAt, statusAt } from "./gestures.ts";
import { actionKeptBy, batchOf, keptBatch } from "./making.ts";
import { selectResults } from "./prompting.ts";
import { type Plan, planAction, sourcesOf, startFor, targetsFor } from "./runs.ts";

/** The most results of one batch. */
export const MOST_RESULTS = 100;
export const TOO_MANY = `At most ${MOST_RESULTS} images at a time`;
/** How many starts are sent at a time. */
const AT_ONCE = 4;

export interface Refusal {
  plan: Plan;
  error: unknown;
}

/** What this page knows of a batch that it has started. */
interface Batch {
  /** The steps that an undo takes back. After a reload there are none. */
  steps: string[];
  /** By the ids of targets. */
  plans: Map<string, Plan>;
  /** Targets whose start has no answer yet. */
  waiting: Set<string>;
  refused: Refusal[];
}

const newBatch = (): Batch => ({ steps: [], plans: new Map(), waiting: new Set(), refused: [] });

const STORED = "canvas.batches ";
sessionEnd.add(() => {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(STORED)) sessionStorage.removeItem(key);
});

/** The batches that this tab has started on a canvas and still shows. */
class Batches {
  #listeners = new Set<() => void>();
  #key: string;
  #ids: readonly string[];
  readonly known = new Map<string, Batch>();

  constructor(canvas: string) {
    this.#key = STORED + canvas;
    this.#ids = JSON.parse(globalThis.sessionStorage?.getItem(this.#key) ?? "[]") as string[];
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** The newest is the last. It is another list whenever something has changed. */
  readonly getIds = (): readonly string[] => this.#ids;

  set(ids: readonly string[]): void {
    this.#ids = [...ids];
    globalThis.sessionStorage?.setItem(this.#key, JSON.stringify(ids));
    for (const listener of this.#listeners) listener();
  }

  changed(): void {
    this.set(this.#ids);
  }
}

const lists = new WeakMap<Engine, Batches>();

export function batchesOf({ engine, canvas }: Board): Batches {
  const list = lists.get(engine) ?? new Batches(canvas);
  lists.set(engine, list);
  return list;
}

/** How far a batch is. Every target of it is in one of the lists. */
export interface Progress {
  label: string;
  /** What the Action is, if it is one. */
  slug: string | undefined;
  nodes: Node[];
  made: Node[];
  working: Node[];
  /** Those whose work has failed, and those that were never started. */
  failed: Node[];
  refused: readonly Refusal[];
  total: number;
}

/** Undefined if nothing is left of it. */
export function progressOf(graph: Graph, list: Batches, id: string): Progress | undefined {
  const batch = list.known.get(id);
  const nodes = [...graph.nodes.values()].filter((node) => batchOf(node)?.id === id);
  const refused = batch?.refused ?? [];
  const [first] = nodes;
  if (!first && refused.length === 0) return undefined;
  const isWorking = (node: Node) => node.asset === undefined && (batch?.waiting.has(node.id) || !isOver(statusAt(node) ?? "canceled"));
  const made = nodes.filter(({ asset }) => asset !== undefined);
  const working = nodes.filter(isWorking);
  const failed = nodes.filter((node) => node.asset === undefined && !working.includes(node));
  const label = (first && batchOf(first)?.label) ?? refused[0]?.plan.outline.title ?? "";
  return { label, slug: first && actionKeptBy(first)?.slug, nodes, made, working, failed, refused, total: nodes.length + refused.reduce((sum, { plan }) => sum + plan.count, 0) };
}

/** What a batch starts: into new targets, or into those of a start that failed. */
interface Item {
  plan: Plan;
  ids: string[];
}

/**
 * Starts plans as one batch: in rows of one source each if every source has several results. More than 100 results are refused in words.
 * Returns the id of the batch.
 */
export function startBatch(board: Board, label: string, plans: Plan[]): string | undefined {
  if (plans.reduce((sum, { count }) => sum + count, 0) > MOST_RESULTS) {
    board.notify(`${TOO_MANY}.`);
    return undefined;
  }
  const id = board.newId();
  const list = batchesOf(board);
  list.known.set(id, newBatch());
  const isWorking = (one: string) => (progressOf(board.graph, list, one)?.working.length ?? 0) > 0;
  list.set([...list.getIds().filter(isWorking), id]);
  begin(board, id, label, plans);
  return id;
}

/** What an Action does to several images, and what they are then. */
const WORDS: Record<string, readonly [verb: string, done: string]> = {
  crop: ["Crop", "cropped"],
  resize: ["Resize", "resized"],
  "change-aspect-ratio": ["Change the format of", "in their new format"],
  rotate: ["Turn", "turned"],
  "add-text-to-image": ["Put text on", "ready, with their text"],
  "color-grade": ["Grade", "graded"],
  "overlay-image": ["Overlay", "ready, with their overlay"],
  "side-by-side-composite": ["Join", "joined"],
};
export const verbOf = (slug: string): string => WORDS[slug]?.[0] ?? "Make";
export const doneOf = (slug: string | undefined): string => WORDS[slug ?? ""]?.[1] ?? "ready";

/** Runs an Action on each of these images, with its own parameters. The second input, if there is one, is the same for all. */
export function runOnEach(board: Board, canvas: string, action: Action, label: string, each: { sources: Node[]; params: Record<string, string | number>; shape: Size | undefined }[]): string | undefined {
  return startBatch(board, label, each.map(({ sources, params, shape }) => planAction(board, canvas, action, sources, params, shape)));
}

/** How many results each source has, if that is the same number for all and more than one. */
function columnsOf(plans: Plan[]): number | undefined {
  const counts = new Map<string, number>();
  for (const { sources, count } of plans) counts.set(sources[0]?.id ?? "", (counts.get(sources[0]?.id ?? "") ?? 0) + count);
  const [most = 1, ...others] = new Set(counts.values());
  return counts.size > 1 && others.length === 0 && most > 1 ? most : undefined;
}

/** Makes the targets of plans as one step, shows them, and starts. */
function begin(board: Board, id: string, label: string, plans: Plan[]): void {
  const batch = batchesOf(board).known.get(id) as Batch;
  const outlines = plans.flatMap(({ outline, count }) => Array.from({ length: count }, () => outline));
  const sources = [...new Set(plans.flatMap((plan) => plan.sources.slice(0, 1)))];
  const fresh = targetsFor(board, outlines, sources, "image", columnsOf(plans));
  const changes: Change[] = [];
  const links: Change[] = [];
  const items = plans.map((plan): Item => {
    const targets = fresh.splice(0, plan.count).map((node) => withFields(node, plan.keptBy(node))).map((node) => withFields(node, keptBatch(node, { id, label })));
    changes.push(...targets.map((node): Change => ({ do: "create", node })));
    links.push(...plan.links(targets));
    for (const node of targets) batch.plans.set(node.id, plan);
    return { plan, ids: targets.map((node) => node.id) };
  });
  const ids = items.flatMap((item) => item.ids);
  // The work of what is taken back is ended.
  const step = board.engine.perform(label, [...changes, ...links], { undone: () => end(board, ids) });
  if (step !== undefined) batch.steps.push(step);
  board.bring(ids, [...new Set(sourcesOf(links))]);
  selectResults(board, ids);
  void start(board, id, items);
}

/** Starts some at a time. A refused start deletes its own targets, and counts as failed. */
async function start(board: Board, id: string, items: Item[]): Promise<void> {
  const list = batchesOf(board);
  const batch = list.known.get(id) as Batch;
  for (const item of items) for (const one of item.ids) batch.waiting.add(one);
  list.changed();
  // The board may be left before there is an answer.
  const release = keep(board.engine);
  const left = [...items];
  const startNext = async (): Promise<void> => {
    for (let item = left.shift(); item; item = left.shift()) {
      await startItem(board, batch, item);
      for (const one of item.ids) batch.waiting.delete(one);
      list.changed();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, startNext));
  await board.engine.refresh().catch(() => {});
  release();
}

async function startItem(board: Board, batch: Batch, { plan, ids }: Item): Promise<void> {
  const present = () => ids.filter((id) => board.graph.nodes.has(id));
  const targets = present();
  // They were taken back.
  if (targets.length === 0) return;
  let isRefused = false;
  const refuse = () => {
    isRefused = present().length > 0;
    remove(board, batch, targets);
  };
  try {
    const { run } = await startFor(board, targets, plan.start, refuse);
    // Somebody has taken them back in the meantime.
    if (present().length === 0) await work.cancel(run, false);
  } catch (error) {
    // Places that have failed before are still there, and say so.
    if (isRefused && present().length === 0) batch.refused.push({ plan, error });
  }
}

/** Takes back targets that show nothing. What has failed before stays. */
function remove(board: Board, batch: Batch, ids: string[]): void {
  const nodes = ids.flatMap((id) => board.graph.nodes.get(id) ?? []).filter((node) => node.asset === undefined && statusAt(node) === undefined);
  take(board, batch, nodes);
}

function take({ engine, graph }: Board, batch: Batch | undefined, nodes: Node[]): void {
  const ids = new Set(nodes.map(({ id }) => id));
  if (!batch || batch.steps.length === 0) engine.perform("Take back", removed(graph, ids));
  else for (const step of batch.steps) engine.takeBack(step, ids);
}

/** Ends the work that fills these nodes, as far as it has begun. */
function end({ graph }: Board, ids: string[]): void {
  const nodes = ids.flatMap((id) => graph.nodes.get(id) ?? []);
  for (const { handle } of runsAt(nodes)) void work.cancel(handle, false).catch(() => {});
}

/** Ends what is not made yet, and deletes its targets. */
export function cancelRest(board: Board, id: string): void {
  const list = batchesOf(board);
  const { working = [] } = progressOf(board.graph, list, id) ?? {};
  end(board, working.map((node) => node.id));
  take(board, list.known.get(id), working);
}

/** Takes a batch back with what it has made. */
export function undoBatch(board: Board, id: string): void {
  const list = batchesOf(board);
  const { steps = [] } = list.known.get(id) ?? {};
  const nodes = progressOf(board.graph, list, id)?.nodes ?? [];
  for (const step of steps) board.undo(step);
  if (steps.length === 0) {
    end(board, nodes.map((node) => node.id));
    board.delete(nodes);
  }
  dismiss(board, id);
}

export function dismiss(board: Board, id: string): void {
  const list = batchesOf(board);
  list.set(list.getIds().filter((one) => one !== id));
}

/** What a failed target can be started with again: as this page knows it, or as the target keeps it. */
function planOf(board: Board, node: Node, batch: Batch | undefined): Plan | undefined {
  const known = batch?.plans.get(node.id);
  const kept = actionKeptBy(node);
  if (known || !kept) return known;
  const sources = kept.inputs.flatMap((handle) => board.graph.nodes.get(board.engine.local(handle.replace(/^node:/, ""))) ?? []);
  return sources.length === kept.inputs.length ? planAction(board, board.canvas, { slug: kept.slug, title: kept.slug }, sources, kept.params) : undefined;
}

/** Whether what has failed can be tried again. */
export const canRetry = (board: Board, { failed, refused }: Progress, id: string): boolean =>
  refused.length > 0 || failed.some((node) => planOf(board, node, batchesOf(board).known.get(id)) !== undefined);

/** Starts what has failed once more: in the same places, and in new ones where a refusal has left none. */
export function retryFailed(board: Board, id: string): void {
  const list = batchesOf(board);
  const progress = progressOf(board.graph, list, id);
  if (!progress) return;
  const batch: Batch = list.known.get(id) ?? newBatch();
  list.known.set(id, batch);
  const items = new Map<Plan, string[]>();
  for (const node of progress.failed) {
    const plan = planOf(board, node, batch);
    if (!plan) continue;
    batch.plans.set(node.id, plan);
    items.set(plan, [...(items.get(plan) ?? []), node.id]);
  }
  void start(board, id, [...items].map(([plan, ids]) => ({ plan, ids })));
  const plans = batch.refused.splice(0).map(({ plan }) => plan);
  if (plans.length > 0) begin(board, id, progress.label, plans);
}
