// Resizes an image on a canvas, with openapi-fetch and the types that openapi-typescript generates.
//
//   CANVAS_BASE_URL=… CANVAS_TOKEN=… node main.ts image.png

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { env, argv } from "node:process";

import createClient from "openapi-fetch";

import type { components, paths } from "./generated/schema.d.ts";

const [image] = argv.slice(2);
const { CANVAS_BASE_URL: baseUrl, CANVAS_TOKEN: token } = env;
assert(image && baseUrl && token, "usage: CANVAS_BASE_URL=… CANVAS_TOKEN=… node main.ts image.png");

const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

/** The body of a successful response; an error response is thrown. */
function data<T>(result: { data?: T; error?: components["schemas"]["ErrorEnvelope"]; response: Response }): T {
  if (result.data === undefined) {
    throw new Error(`${result.response.status}: ${result.error?.error.message ?? "no body"}`);
  }
  return result.data;
}

const { canvas } = data(await api.POST("/api/canvas-agent/v1/canvases", { body: { title: "From TypeScript" } }));

// A file is sent as it is: the type of a binary body is a string, and no serializer may touch the bytes.
const file = new Blob([await readFile(image)], { type: "image/png" });
const { asset } = data(
  await api.POST("/api/canvas-agent/v1/assets", {
    params: { header: { "Idempotency-Key": randomUUID() } },
    headers: { "Content-Type": file.type },
    body: file as unknown as string,
    bodySerializer: () => file,
  }),
);

// An Action writes into an empty image node.
const batch = data(
  await api.POST("/api/canvas-agent/v1/canvases/{canvasId}/operations", {
    params: { path: { canvasId: canvas.id } },
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
  }),
);
assert("resolvedIds" in batch, "a batch that is not a dry run is applied");
const target = batch.resolvedIds["small"];
assert(target, "the new node has an id");

const job = data(
  await api.POST("/api/canvas-agent/v1/actions/{actionKey}/runs", {
    params: { path: { actionKey: "resize" } },
    body: {
      canvasId: canvas.id,
      baseRevision: batch.canvas.revision,
      idempotencyKey: randomUUID(),
      targetNodeId: target,
      inputs: [asset.handle],
      params: { width: 32 },
    },
  }),
);
assert("run" in job, "a start that is not a dry run is started");

const run = await finished(job.run);
assert.equal(run.status, "succeeded");

const read = await api.GET("/api/canvas-agent/v1/canvases/{canvasId}", { params: { path: { canvasId: canvas.id } } });
const node = data(read).canvas.nodes.find(({ id }) => id === target);
assert(node?.asset, "the target shows an asset");
console.log(`${node.handle} shows ${node.asset}`);

/** The run, once it has ended. Each request is answered when the run changes, after 30 seconds at the latest. */
async function finished(runId: string): Promise<components["schemas"]["Run"]> {
  for (let attempt = 0; attempt < 10; attempt++) {
    const run = data(
      await api.GET("/api/canvas-agent/v1/runs/{runId}", {
        params: { path: { runId }, header: { Prefer: "wait=30" } },
      }),
    );
    if (["succeeded", "failed", "canceled", "expired"].includes(run.status)) return run;
  }
  throw new Error(`${runId} has not ended`);
}
