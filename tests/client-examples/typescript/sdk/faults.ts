// Behavior of @canvas-service/client against a service, through a proxy that breaks requests (proxy.py).
//
//   CANVAS_BASE_URL=<address of the proxy> CANVAS_TOKEN=… node --test faults.ts

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { openAsBlob } from "node:fs";
import { test } from "node:test";

import { ApiError, CanvasClient, ConnectionError, verifyWebhook, WaitTimeoutError, WebhookError, WorkFailedError } from "@canvas-service/client";
import type { NodeCreate, StreamEvent } from "@canvas-service/client";

const { CANVAS_BASE_URL: baseUrl = "", CANVAS_TOKEN: token = "" } = process.env;
const client = new CanvasClient({ baseUrl, token });

interface Fault {
  match: string;
  times?: number;
  status?: number;
  code?: string;
  headers?: Record<string, string>;
  drop?: "before" | "after";
  cut?: number;
  strip?: string;
}

interface Seen {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

async function plan(...faults: Fault[]): Promise<void> {
  await fetch(`${baseUrl}/-/faults`, { method: "POST", body: JSON.stringify(faults) });
}

async function seen(): Promise<Seen[]> {
  return (await (await fetch(`${baseUrl}/-/requests`)).json()) as Seen[];
}

function sticky(title: string): NodeCreate {
  return { type: "node.create", clientId: "note", node: { type: "sticky", title } };
}

/** A canvas with a picture. */
async function board(): Promise<{ id: string; photo: string }> {
  await plan();
  const { canvas } = await client.createCanvas({ title: "Faults" });
  const photo = await client.uploadFile(await openAsBlob("shoe.png"), { canvasId: canvas.handle });
  return { id: canvas.handle, photo: photo.handle };
}

function resize({ id, photo }: { id: string; photo: string }, width = 32) {
  return client.withRevision(id, ({ revision }) =>
    client.runAction("resize", { canvasId: id, baseRevision: revision, inputs: [photo], params: { width }, place: {} }),
  );
}

async function failure<E extends Error>(kind: new (...parameters: never[]) => E, run: Promise<unknown>): Promise<E> {
  const error: unknown = await run.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert(error instanceof kind, `${kind.name}, not ${String(error)}`);
  return error;
}

test("a read is repeated after 503, 429 and a lost connection, and Retry-After is honoured", async () => {
  await plan(
    { match: "GET /canvases", status: 503, headers: { "Retry-After": "1" } },
    { match: "GET /canvases", drop: "before" },
    { match: "GET /canvases", status: 429, code: "rate_limited" },
  );
  const began = Date.now();
  await client.listCanvases({ limit: 1 });
  assert(Date.now() - began >= 1000);
  assert.equal((await seen()).length, 4);
});

test("a pause of more than 30 seconds, too many attempts and a refusal are final", async () => {
  await plan({ match: "GET", status: 429, code: "rate_limited", headers: { "Retry-After": "31" } });
  const busy = await failure(ApiError, client.getAuthStatus());
  assert.deepEqual([busy.status, busy.code, busy.retryAfterMs], [429, "rate_limited", 31_000]);
  assert.equal((await seen()).length, 1);

  await plan({ match: "GET", status: 500, times: 9 });
  await failure(ApiError, new CanvasClient({ baseUrl, token, retries: 1 }).getAuthStatus());
  assert.equal((await seen()).length, 2);

  await plan();
  const absent = await failure(ApiError, client.getCanvas("absent"));
  assert.equal(absent.code, "not_found");
  assert.match(absent.requestId, /^[0-9a-f-]{36}$/);
  assert(absent.message.includes(absent.requestId));
  assert.equal((await seen()).length, 1);

  const invalid = await failure(ApiError, client.createCanvas({ title: "x".repeat(161) }));
  assert.deepEqual([invalid.status, invalid.fields.map(({ field }) => field)], [400, ["title"]]);
  const stranger = await failure(ApiError, new CanvasClient({ baseUrl, token: `${token}x` }).getAuthStatus());
  assert.equal(stranger.code, "unauthorized");
});

test("a batch whose answer was lost is sent again with its key, and has one effect", async () => {
  const { id } = await board();
  await plan({ match: "POST /canvases/.*/operations", drop: "after" });
  const result = await client.withRevision(id, ({ revision }) =>
    client.applyOperations(id, { baseRevision: revision, operations: [sticky("Once")] }),
  );
  assert.equal(result.replayed, true);
  const batches = (await seen()).filter(({ method }) => method === "POST");
  assert.equal(batches.length, 2);
  assert.equal(batches[0]?.body, batches[1]?.body);
  const { canvas } = await client.getCanvas(id);
  assert.equal(canvas.nodes.filter(({ title }) => title === "Once").length, 1);
});

test("an upload whose answer was lost stores one asset", async () => {
  const { canvas } = await client.createCanvas();
  await plan({ match: "POST /assets", drop: "after" });
  await client.uploadFile(await openAsBlob("shoe.png"), { canvasId: canvas.handle, fileName: "Schuh – rot.png" });
  const keys = (await seen()).map(({ headers }) => headers["idempotency-key"]);
  assert.equal(keys.length, 2);
  assert(keys[0] && keys[0] === keys[1]);
  const { assets } = await client.listAssets({ canvasId: canvas.handle });
  assert.deepEqual(assets.map(({ name }) => name), ["Schuh – rot.png"]);
});

test("a mutation without a key, and work that costs credit, is sent once", async () => {
  await plan({ match: "POST", drop: "before" });
  const lost = await failure(ConnectionError, client.createCanvas());
  assert.match(lost.requestId, /^[0-9a-f-]{36}$/);
  assert.deepEqual((await seen()).map(({ headers }) => headers["x-request-id"]), [lost.requestId]);

  const { id } = await board();
  const { revision } = (await client.getCanvas(id)).canvas;
  const start = { canvasId: id, baseRevision: revision, prompt: "a shoe", model: "sketch", place: {}, idempotencyKey: "a-key-of-mine" + id };
  await plan({ match: "POST /images", drop: "after" });
  await failure(ConnectionError, client.generateImages(start));
  assert.equal((await seen()).length, 1);
  // The same key again, by the caller's decision: the work that was started.
  const job = await client.generateImages(start);
  assert.equal(job.replayed, true);
  await client.waitForRun(job);

  // A dry run starts nothing and is repeated.
  const present = (await client.getCanvas(id)).canvas.revision;
  await plan({ match: "POST /images", status: 503 });
  const quote = await client.quoteGenerateImages({ ...start, baseRevision: present });
  assert.equal(quote.creditCost, 1);
  assert.equal((await seen()).length, 2);
});

test("a change is made anew when somebody else wrote in between, five times at most", async () => {
  const { id } = await board();
  const write = (revision: string, title: string) => client.applyOperations(id, { baseRevision: revision, operations: [sticky(title)] });
  let calls = 0;
  await client.withRevision(id, async ({ revision }) => {
    calls++;
    if (calls === 1) await write(revision, "Theirs");
    return write(revision, "Mine");
  });
  assert.equal(calls, 2);
  const { canvas } = await client.getCanvas(id);
  const titles = canvas.nodes.map(({ title }) => title);
  assert(titles.includes("Theirs") && titles.includes("Mine"));

  calls = 0;
  const conflict = await failure(
    ApiError,
    client.withRevision(id, () => {
      calls++;
      return write("stale", "Never");
    }),
  );
  assert(conflict.isRevisionConflict);
  assert.equal(calls, 5);

  // Another conflict is no reason to make the change again.
  calls = 0;
  const taken = (revision: string, title: string) =>
    client.applyOperations(id, { baseRevision: revision, idempotencyKey: "taken" + id, operations: [sticky(title)] });
  await client.withRevision(id, ({ revision }) => taken(revision, "First"));
  const reused = client.withRevision(id, ({ revision }) => {
    calls++;
    return taken(revision, "Second");
  });
  assert.equal((await failure(ApiError, reused)).isRevisionConflict, false);
  assert.equal(calls, 1);
});

test("a wait ends with the record, the failure or the time", async () => {
  const canvas = await board();
  const states: string[] = [];
  const done = await client.waitForRun(await resize(canvas), { onChange: ({ status }) => states.push(status) });
  assert.equal(done.images?.[0]?.width, 32);
  assert.equal(states.at(-1), "succeeded");
  assert.equal((await client.waitForRun(done.run)).status, "succeeded");

  const [model] = (await client.listModels({ provider: "openai", capability: "image.generate" })).models;
  const { revision } = (await client.getCanvas(canvas.id)).canvas;
  const refused = await client.generateImages({
    canvasId: canvas.id,
    baseRevision: revision,
    prompt: "[[sim:content]]",
    model: model?.handle ?? "",
    place: {},
  });
  const { work, message } = await failure(WorkFailedError, client.waitForRun(refused));
  assert.equal(work.status, "failed");
  assert.match(message, /provider_rejected/);

  const video = await client.generateVideo({ model: "animatic", prompt: "a kite over the sea" });
  const early = await failure(WaitTimeoutError, client.waitForRun(video, { timeoutMs: 0 }));
  assert.equal(early.work.id, video.id);
  const film = await client.waitForRun(video);
  assert.equal((await client.getJobOutput(film.id)).type, "video/mp4");
});

test("a service that does not wait is asked once a second", async () => {
  const canvas = await board();
  const [model] = (await client.listModels({ provider: "openai", capability: "image.generate" })).models;
  const { revision } = (await client.getCanvas(canvas.id)).canvas;
  const handle = model?.handle ?? "";
  const hanging = await client.generateImages({ canvasId: canvas.id, baseRevision: revision, prompt: "[[sim:hang]]", model: handle, place: {} });
  await plan({ match: "GET /runs", strip: "prefer", times: 99 });
  await failure(WaitTimeoutError, client.waitForRun(hanging, { timeoutMs: 3000 }));
  const reads = (await seen()).length;
  assert(reads >= 4 && reads <= 8, `${reads} reads in 3 s`);
  await plan();
  await client.cancelRun(hanging.run);
});

test("a wait ends with its signal", async () => {
  const canvas = await board();
  const abort = new AbortController();
  abort.abort(new Error("enough"));
  await assert.rejects(client.waitForRun(await resize(canvas), { signal: abort.signal }), /enough/);
});

test("a stream of a run that breaks off goes on without repeated states", async () => {
  const canvas = await board();
  const { run } = await resize(canvas, 40);
  await plan({ match: "GET /runs/.*/events", cut: 1 }, { match: "GET /runs/.*/events", status: 503 });
  const states: string[] = [];
  for await (const { status } of client.followRun(run)) states.push(status);
  assert.equal(states.at(-1), "succeeded");
  assert.equal(new Set(states).size, states.length);
  await failure(ApiError, client.followRun("run:absent").next());
});

test("a stream of a canvas that breaks off goes on with what is new", async () => {
  const { id } = await board();
  await plan({ match: "GET /events", cut: 3 });
  const events: StreamEvent[] = [];
  for await (const event of client.followEvents({ canvases: [id] })) {
    events.push(event);
    if (events.length === 3) {
      await client.withRevision(id, ({ revision }) => client.applyOperations(id, { baseRevision: revision, operations: [sticky("New")] }));
    }
    if (events.filter((each) => each.event === "canvas").length === 2) break;
  }
  assert.deepEqual(events.slice(0, 3).map(({ event }) => event), ["role", "canvas", "presence"]);
  assert.equal(events.filter(({ event }) => event === "role").length, 1, "the role was not sent again");
  assert((await seen()).filter(({ path }) => path.startsWith("/events")).length >= 2);
});

test("a list is read to its end, each item once", async () => {
  await plan();
  const { canvas } = await client.createCanvas();
  const made = [];
  for (const name of ["a", "b", "c"]) {
    made.push((await client.uploadFile(await openAsBlob("shoe.png"), { canvasId: canvas.handle, fileName: `${name}.png` })).handle);
  }
  const read: string[] = [];
  for await (const asset of client.paginate((cursor) => client.listAssets({ canvasId: canvas.handle, limit: 2, cursor }))) read.push(asset.handle);
  assert.deepEqual(read.sort(), made.sort());
});

test("an id that would address another resource is refused", async () => {
  await plan();
  for (const id of ["", ".", ".."]) await failure(TypeError, client.getCanvas(id));
  assert.equal((await seen()).length, 0);
});

test("webhooks are verified", async () => {
  const secret = "0123456789abcdef0123456789abcdef";
  const now = new Date(1755682200_000);
  const body = JSON.stringify({ id: "event:1", type: "image_job.succeeded" });
  const sign = (timestamp: string, by = secret) => ({
    "Service-Webhook-Timestamp": timestamp,
    "Service-Webhook-Signature": `v1=${createHmac("sha256", by).update(`${timestamp}.${body}`).digest("hex")}`,
  });
  const other = "another secret of the same length";
  const headers = sign("1755682200");
  assert.equal((await verifyWebhook({ headers, body }, secret, { now })).type, "image_job.succeeded");
  const bytes = { headers: new Headers(headers), body: new TextEncoder().encode(body) };
  assert.equal((await verifyWebhook(bytes, [other, secret], { now })).id, "event:1");
  await verifyWebhook({ headers: sign("1755682200000"), body }, secret, { now });
  for (const seconds of [1755682200 - 300, 1755682200 + 300]) await verifyWebhook({ headers: sign(String(seconds)), body }, secret, { now });
  const signature = headers["Service-Webhook-Signature"];
  const refused: [Record<string, string>, string, string][] = [
    [headers, body + "\n", secret],
    [headers, body, other],
    [sign("1755681899"), body, secret],
    [sign("1755682501"), body, secret],
    [{ ...headers, "Service-Webhook-Timestamp": "1755682201" }, body, secret],
    [{ ...headers, "Service-Webhook-Signature": signature.slice(0, -1) }, body, secret],
    [{ ...headers, "Service-Webhook-Signature": signature.replace("v1", "v2") }, body, secret],
    [{}, body, secret],
  ];
  for (const [headers, body, secret] of refused) await failure(WebhookError, verifyWebhook({ headers, body }, secret, { now }));
  await failure(TypeError, verifyWebhook({ headers, body }, [], { now }));
});
