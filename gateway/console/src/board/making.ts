/** What is made with a model, and where it comes from. */
import type { ImageOperation, Model } from "../api.ts";
import { firstOf } from "../format.ts";
import type { Fields, Graph, Node, Role } from "../sync/graph.ts";
import { ROLE_WORDS } from "../words.ts";
import { isOver } from "../work.ts";

/** An image that guides a result: that of a node, or one that is on no node any more. */
export interface Reference {
  /** Handle of the asset. */
  asset: string;
  title: string;
  role?: Role;
  node?: Node;
}

/** What was chosen for an image that is made again, or that was to be made. */
export interface Draft {
  /** The title of the node. */
  of: string;
  /** The nodes that another attempt fills, because they are still empty. */
  into: string[];
  operation: ImageOperation;
  /** The provider's id of the model, as far as it is known, and the provider. */
  model: string | undefined;
  provider: string | undefined;
  prompt: string;
  references: Reference[];
  /** The handle of the mask, of the first reference. */
  mask?: string;
  elements: string[];
  size: string;
  quality: string;
  count: number;
}

/** Another attempt at an Action. */
export interface ActionAttempt {
  /** The title of the node. */
  of: string;
  /** The empty node that it fills. */
  into: string;
  /** The Action, as far as it is known, and what was entered. */
  slug: string;
  entries: Record<string, string>;
}

const OPERATIONS = new Set(["generate", "edit", "variations"]);
/** What an image can guide a result to, in words. */
export const ROLES = Object.keys(ROLE_WORDS) as Role[];
export const MOST_REFERENCES = 16;
export const MOST_PROMPT = 8000;
const MOST_IMAGES = 4;

/** How an image was made with a model, or was to be made before that failed; undefined for one that was not. */
export function draftOf(graph: Graph, node: Node): Draft | undefined {
  if (isFailed(node)) return failedDraft(graph, node);
  const { provenance } = node.metadata;
  if (node.type !== "image" || provenance?.kind !== "generated" || !provenance.model || !OPERATIONS.has(provenance.operation ?? "")) return undefined;
  const { operation, model, provider, prompt = "", references, mask, elements, size = "", quality = "", run } = provenance;
  const nodes = [...graph.nodes.values()];
  const siblings = nodes.filter(({ metadata }) => run !== undefined && metadata.provenance?.run === run);
  return {
    of: node.title || "the image",
    into: [],
    operation: operation as ImageOperation,
    model,
    provider,
    prompt,
    references: references.flatMap(({ handle, role }) => referenceTo(nodes, handle, role) ?? []),
    ...(mask && { mask }),
    elements,
    size,
    quality,
    count: Math.min(Math.max(siblings.length, 1), MOST_IMAGES),
  };
}

/** Whether the node is empty because the work that was to fill it has ended without a result. */
export const isFailed = ({ type, asset, metadata: { job } }: Node): boolean =>
  type === "image" && asset === undefined && job !== undefined && job.status !== "succeeded" && isOver(job.status);

const record = (value: unknown): Record<string, unknown> => (typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {});
const texts = (value: unknown): string[] => (Array.isArray(value) ? value.filter((one) => typeof one === "string") : []);

type Making = Pick<Draft, "operation" | "prompt" | "references" | "elements" | "size" | "quality"> & { model: Model };

/** What a node keeps of the start that is to fill it, for another attempt. What other clients keep there stays. */
export function keptOf(node: Node, { operation, model, prompt, references, elements, size, quality }: Making): Fields {
  const custom = record(node.metadata.custom);
  const sources = references.map(({ asset, role }) => (role ? { handle: asset, role } : { handle: asset }));
  return {
    "metadata.prompt": prompt.trim() === "" ? null : prompt,
    "metadata.model": model.modelId,
    "metadata.size": size || null,
    "metadata.quality": quality || null,
    "metadata.custom": { ...custom, console: { ...record(custom["console"]), image: { operation, provider: model.provider, references: sources, elements } } },
  };
}

/** What a node keeps of the Action that is to fill it. */
export function keptAction(node: Node, slug: string, params: Record<string, string | number>, inputs: string[]): Fields {
  const custom = record(node.metadata.custom);
  return { "metadata.custom": { ...custom, console: { ...record(custom["console"]), action: { slug, params, inputs } } } };
}

/** The Action that a node keeps. Any client can write that, so it can be anything, or nothing. */
export function actionKeptBy({ metadata: { custom } }: Node): { slug: string; params: Record<string, string | number>; inputs: string[] } | undefined {
  const { slug, params, inputs } = record(record(record(custom)["console"])["action"]);
  const values = Object.entries(record(params)).filter((entry): entry is [string, string | number] => typeof entry[1] === "string" || typeof entry[1] === "number");
  return typeof slug === "string" ? { slug, params: Object.fromEntries(values), inputs: texts(inputs) } : undefined;
}

/** What a node keeps of the batch that its start belongs to. */
export function keptBatch(node: Node, batch: { id: string; label: string }): Fields {
  const custom = record(node.metadata.custom);
  return { "metadata.custom": { ...custom, console: { ...record(custom["console"]), batch } } };
}

/** The batch that a node belongs to. */
export function batchOf({ metadata: { custom } }: Node): { id: string; label: string } | undefined {
  if (custom === undefined) return undefined;
  const { id, label } = record(record(record(custom)["console"])["batch"]);
  return typeof id === "string" && typeof label === "string" ? { id, label } : undefined;
}

/** The Action that was to fill a node, and the handles of its inputs: as the node keeps them, or else from its connections. */
export function failedAction(graph: Graph, node: Node): { attempt: ActionAttempt; inputs: string[] } | undefined {
  if (!isFailed(node) || node.metadata.job?.operation !== "action") return undefined;
  const kept = actionKeptBy(node);
  const linked = [...graph.connections.values()].flatMap(({ fromNodeId, toNodeId }) => (toNodeId === node.id ? (graph.nodes.get(fromNodeId)?.handle ?? []) : []));
  const entries = Object.entries(kept?.params ?? {}).map(([name, value]) => [name, String(value)]);
  const attempt = { of: node.title || "the image", into: node.id, slug: kept?.slug ?? "", entries: Object.fromEntries(entries) as Record<string, string> };
  return { attempt, inputs: kept && kept.inputs.length > 0 ? kept.inputs : linked };
}

/** The draft of a slot whose work failed. Any client can write what it keeps, so that can be anything, or nothing. */
function failedDraft(graph: Graph, node: Node): Draft | undefined {
  const { job, prompt, model, size = "", quality = "", custom } = node.metadata;
  if (!job || !OPERATIONS.has(job.operation)) return undefined;
  const nodes = [...graph.nodes.values()];
  const kept = record(record(record(custom)["console"])["image"]);
  const sources = Array.isArray(kept["references"]) ? kept["references"].map(record) : undefined;
  const leading = [...graph.connections.values()].filter(({ toNodeId }) => toNodeId === node.id);
  const from = (purpose: string) => leading.filter((one) => one.purpose === purpose).flatMap(({ fromNodeId, role }) => ({ node: graph.nodes.get(fromNodeId), role }));
  const linked = from("reference").flatMap(({ node, role }) => (node?.asset === undefined ? [] : (referenceTo(nodes, node.handle, role) ?? [])));
  const text = promptNode(from("flow").flatMap(({ node }) => node ?? []));
  const into = nodes.filter((one) => isFailed(one) && one.metadata.job?.run === job.run).map(({ id }) => id);
  return {
    of: node.title || "the image",
    into,
    operation: job.operation as ImageOperation,
    model,
    provider: typeof kept["provider"] === "string" ? kept["provider"] : undefined,
    prompt: prompt ?? firstOf(text?.metadata.content ?? "", MOST_PROMPT),
    references: sources?.flatMap(({ handle, role }) => referenceTo(nodes, String(handle), ROLES.find((one) => one === role)) ?? []) ?? linked,
    elements: texts(kept["elements"]),
    size,
    quality,
    count: Math.min(into.length, MOST_IMAGES),
  };
}

function referenceTo(nodes: Node[], handle: string, role: Role | undefined): Reference | undefined {
  const node = nodes.find((one) => one.asset === handle || one.handle === handle);
  const asset = handle.startsWith("asset:") ? handle : node?.asset;
  if (asset === undefined) return undefined;
  return { asset, title: node?.title || "An image that is not on the board", ...(role && { role }), ...(node && { node }) };
}

/** The images of nodes as references, each once. */
export function referencesTo(nodes: Node[], most = MOST_REFERENCES): Reference[] {
  const references = nodes.flatMap((node): [string, Reference][] => (node.asset === undefined || node.type === "video" ? [] : [[node.asset, { asset: node.asset, title: node.title || "Image", node }]]));
  return [...new Map(references.toReversed()).values()].toReversed().slice(0, most);
}

export function withRole({ role: _, ...reference }: Reference, role: Role | "" | undefined): Reference {
  return { ...reference, ...(role && { role }) };
}

/** The selected text that is used as the prompt. */
export const promptNode = (nodes: Node[]): Node | undefined =>
  nodes.find(({ type, metadata }) => (type === "text" || type === "sticky") && metadata.content && !metadata.section);

/** The model of a draft among those that can be used now. */
export const modelOf = (models: Model[], { model, provider }: Pick<Draft, "model" | "provider">): Model | undefined =>
  models.find((one) => one.modelId === model && one.provider === provider) ?? models.find((one) => one.modelId === model);

/** What a model offers for a parameter that applies to a capability. */
export function optionsOf(model: Model, name: string, capability: string): string[] {
  const parameter = model.parameters.find((one) => one.name === name);
  return parameter?.capabilities.some((one) => one === capability) ? (parameter.options ?? []).map(({ value }) => String(value)) : [];
}

/** Whether a model edits within a mask. */
export const takesMask = (model: Model): boolean => model.parameters.some(({ name }) => name === "mask");

// Videos

/** What an image is used for in a video. */
export type FrameUse = "first" | "last" | "reference";

/** The capability that a video needs, by what its images are used for. */
export function videoCapability(uses: FrameUse[]): string {
  if (uses.includes("last")) return "video.generate.fromFrames";
  if (uses.includes("first")) return "video.generate.fromImage";
  return uses.length > 0 ? "video.generate.fromReferences" : "video.generate";
}

/** Why images cannot be used in this way, or undefined. */
export function frameProblem(model: Model, uses: FrameUse[]): string | undefined {
  for (const [use, name] of [["first", "first frame"], ["last", "last frame"]] as const) {
    if (uses.filter((one) => one === use).length > 1) return `A video has one ${name}.`;
  }
  if (uses.includes("last") && !uses.includes("first")) return "A last frame needs a first frame.";
  const needed = videoCapability(uses);
  if (!model.capabilities.some((one) => one === needed)) {
    const what = { "video.generate": "without images", "video.generate.fromImage": "from a first frame", "video.generate.fromFrames": "to a last frame" }[needed] ?? "from references";
    return `${model.name} makes no videos ${what}.`;
  }
  // Only the embedded runtime takes both.
  if (uses.includes("reference") && uses.includes("first") && !model.standIn) return `${model.name} takes frames or references, not both.`;
  return undefined;
}
