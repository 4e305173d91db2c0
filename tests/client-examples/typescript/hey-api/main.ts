// Resizes an image on a canvas, with the client that @hey-api/openapi-ts generates.
//
//   CANVAS_BASE_URL=… CANVAS_TOKEN=… node main.ts image.png

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { openAsBlob } from "node:fs";
import { basename } from "node:path";
import { env, argv } from "node:process";

import { client } from "./generated/client.gen.ts";
import { applyOperations, createCanvas, getCanvas, getRun, runAction, uploadAsset } from "./generated/sdk.gen.ts";
import type { Run } from "./generated/types.gen.ts";

const [image] = argv.slice(2);
const { CANVAS_BASE_URL: baseUrl, CANVAS_TOKEN: token } = env;
assert(image && baseUrl && token, "usage: CANVAS_BASE_URL=… CANVAS_TOKEN=… node main.ts image.png");
client.setConfig({ baseUrl, auth: token });

// With `throwOnError` an error response is thrown as its body; without it, it is returned as `error`.
const throwOnError = true;

const { canvas } = (await createCanvas({ body: { title: "From TypeScript" }, throwOnError })).data;

const { asset } = (
  await uploadAsset({
    body: await openAsBlob(image),
    headers: { "Idempotency-Key": randomUUID(), "X-Service-File-Name": encodeURIComponent(basename(image)) },
    throwOnError,
  })
).data;

// An Action writes into an empty image node.
const batch = (
  await applyOperations({
    path: { canvasId: canvas.id },
    body: {
      baseRevision: canvas.revision,
      idempotencyKey: randomUUID(),
      operations: [
        {
          type: "node.create",
          clientId: "small",
          node: { type: "image", title: "32 pixels wide", position: { x: 0, y: 0 } },
        },
      ],
    },
    throwOnError,
  })
).data;
assert("resolvedIds" in batch, "a batch that is not a dry run is applied");
const target = batch.resolvedIds["small"];
assert(target, "the new node has an id");

const job = (
  await runAction({
    path: { actionKey: "resize" },
    body: {
      canvasId: canvas.id,
      baseRevision: batch.canvas.revision,
      idempotencyKey: randomUUID(),
      targetNodeId: target,
      inputs: [asset.handle],
      params: { width: 32 },
    },
    throwOnError,
  })
).data;
assert("run" in job, "a start that is not a dry run is started");

const run = await finished(job.run);
assert.equal(run.status, "succeeded");

const { nodes } = (await getCanvas({ path: { canvasId: canvas.id }, throwOnError })).data.canvas;
const node = nodes.find(({ id }) => id === target);
assert(node?.asset, "the target shows an asset");
console.log(`${node.handle} shows ${node.asset}`);

/** The run, once it has ended. Each request is answered when the run changes, after 30 seconds at the latest. */
async function finished(runId: string): Promise<Run> {
  for (let attempt = 0; attempt < 10; attempt++) {
    const { data } = await getRun({ path: { runId }, headers: { Prefer: "wait=30" }, throwOnError });
    if (["succeeded", "failed", "canceled", "expired"].includes(data.status)) return data;
  }
  throw new Error(`${runId} has not ended`);
}
