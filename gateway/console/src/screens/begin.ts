/**
 * Makes a canvas from a template, with calls that any client could make. Each has a key or an id of its own attempt, so one that is sent
 * again makes nothing twice; an image of the service is stored once for an account, however often it is used.
 */
import { answer, api, CONTRACT, contract, patience, send, transportOf } from "../api.ts";
import type { components } from "../contract.ts";
import { Problem } from "../errors.ts";
import { retryUntilAnswered } from "../retry.ts";
import type { Template, TemplateAction } from "./templates.ts";

export interface Attempt {
  /** The id of the canvas. */
  id: string;
  ownerUid: string;
  /** The revision that the canvas was made with, once it is known: the batch is the same request when it is sent again. */
  revision?: string;
}

/** `urlOf`: the address of an image of the service, which has a hash of its content, by its name. */
export async function begin(attempt: Attempt, { title, images, operations, actions = [] }: Template, urlOf: (image: string) => string): Promise<void> {
  const { id, ownerUid } = attempt;
  const stored = new Map(await Promise.all(images.map(async (image) => [image, await store(image, urlOf(image))] as const)));
  const assetOf = (image: string) => stored.get(image) ?? "";
  const handle = `canvas:${ownerUid}:${id}`;
  const batch = operations(assetOf);
  attempt.revision ??= (await retryUntilAnswered(() => made(id, handle, batch.length === 0 ? "Untitled" : title))).revision;
  if (batch.length === 0) return;
  const baseRevision = attempt.revision;
  const { canvas, resolvedIds } = await retryUntilAnswered(() => transportOf(handle).apply({ baseRevision, idempotencyKey: `template:${id}`, operations: batch }));
  // One after the other: each gives the canvas another revision.
  for (const one of actions) await retryUntilAnswered(() => start(handle, `${id}:${one.into}`, canvas.revision, assetOf(one.from), resolvedIds[one.into] ?? "", one));
}

/** An attempt without an answer may have made the canvas. */
async function made(id: string, handle: string, title: string): Promise<{ revision: string }> {
  try {
    return await api.createCanvas(id, title);
  } catch (error) {
    if (error instanceof Problem && error.status === 409) return transportOf(handle).read();
    throw error;
  }
}

async function store(image: string, url: string): Promise<string> {
  const file = await (await send(new Request(url, { signal: patience() }))).blob();
  const headers = { "Content-Type": "image/jpeg", "Idempotency-Key": `sample:${url.replace(/^.*\//, "")}`, "X-Service-File-Name": `${image}.jpg` };
  const stored = await retryUntilAnswered(() => send(new Request(`${CONTRACT}/assets`, { method: "POST", headers, body: file, signal: patience() })));
  return ((await stored.json()) as components["schemas"]["AssetRead"]).asset.handle;
}

function start(canvasId: string, idempotencyKey: string, baseRevision: string, input: string, targetNodeId: string, { action, params }: TemplateAction): Promise<unknown> {
  const body = { canvasId, baseRevision, idempotencyKey, inputs: [input], targetNodeId, fit: true, params: params as never };
  return answer(contract.POST("/api/canvas-agent/v1/actions/{actionKey}/runs", { params: { path: { actionKey: action }, header: { Prefer: "handling=lenient" } }, body, signal: patience() }));
}
