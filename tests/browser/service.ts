/** The service under test: its address, a person of it, and what agents and operators do. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { env } from "node:process";
import { promisify } from "node:util";
import { crc32, deflateSync } from "node:zlib";

function needed(name: string): string {
  const value = env[name];
  assert(value, `${name} is not set: tests/browser/run and tests/mcp/run set it`);
  return value;
}

/** The variables of the service's processes. */
export const processEnvironment = () => ({ ...env, ...ENVIRONMENT });
export const GATEWAY = needed("CANVAS_GATEWAY_BIN");

export const BASE_URL = needed("CANVAS_BASE_URL");
export const TOKEN = needed("CANVAS_TOKEN");
/** A receiver that answers `/hook` with 204 or the like, and other paths with 404. */
export const SHOP_URL = needed("CANVAS_SHOP_URL");
const ENVIRONMENT = JSON.parse(needed("CANVAS_ENVIRONMENT")) as Record<string, string>;

/** Runs `canvas-gateway admin …` and returns what it prints. */
export async function admin<T>(...command: string[]): Promise<T> {
  const { stdout } = await promisify(execFile)(GATEWAY, ["admin", ...command], { env: processEnvironment() });
  return JSON.parse(stdout) as T;
}

/** Connects an account to a simulated provider at an address. */
export async function connect(account: string, provider: string, name: string, baseUrl: string): Promise<void> {
  const command = ["admin", "connection", "create", "--account", account, "--provider", provider, "--name", name, "--api-key-stdin", "--base-url", baseUrl];
  await new Promise<void>((resolve, reject) => {
    const child = execFile(GATEWAY, command, { env: processEnvironment() }, (error) => (error ? reject(error) : resolve()));
    child.stdin?.end("sim-key-0123456789abcdef");
  });
}

/** Sends a request of an agent. Its answer has to be a success. */
export async function send<T>(method: string, path: string, body?: object | Uint8Array<ArrayBuffer>, token = TOKEN): Promise<T> {
  const isFile = body instanceof Uint8Array;
  const response = await fetch(`${BASE_URL}/api/canvas-agent/v1${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      // A read of a run is answered when the run changes.
      ...(path.startsWith("/runs/") && { Prefer: "wait=30" }),
      ...(body && { "Content-Type": isFile ? (body[0] === 0xff ? "image/jpeg" : "image/png") : "application/json" }),
      ...(isFile && { "Idempotency-Key": randomUUID() }),
    },
    ...(body && { body: isFile ? body : JSON.stringify(body) }),
  });
  assert(response.ok, `${method} ${path}: ${response.status} ${response.ok ? "" : await response.text()}`);
  return (await response.json()) as T;
}

/** The account of the token. */
export const person = await send<{ uid: string; email: string }>("GET", "/auth/status");

let reading: Promise<{ token: string }> | undefined;

/** A token of the same account that may only read. */
export async function reader(): Promise<string> {
  reading ??= admin("token", "create", "--account", person.uid, "--label", "reader", "--scopes", "canvas:read");
  return (await reading).token;
}

/** A new one-time link for an account. */
export async function signInLink(account = person.uid): Promise<string> {
  return (await admin<{ url: string }>("session", "link", "--account", account)).url;
}

export interface Node {
  id: string;
  type: string;
  title: string;
  position: { x: number; y: number };
  width: number;
  height: number;
  asset?: string;
  metadata: { content?: string; section?: boolean; sectionId?: string; provenance?: object };
}

export interface Graph extends Canvas {
  title: string;
  nodes: Node[];
  connections: { id: string; fromNodeId: string; toNodeId: string; purpose: string; role?: string }[];
}

/** The whole canvas, and the revisions of the newest batches. */
export async function read(canvas: Canvas, token = TOKEN): Promise<Graph & { batches: string[] }> {
  type Answer = { canvas: Graph; activity: { type: string; revision: string }[] };
  const { canvas: graph, activity } = await send<Answer>("GET", `/canvases/${canvas.handle}`, undefined, token);
  return { ...graph, batches: activity.filter(({ type }) => type === "operations.applied").map(({ revision }) => revision) };
}

/** Applies a batch of an agent on the newest revision, and again if somebody else was faster or the service asks to come later. */
export async function apply(canvas: Canvas, operations: object[], token = TOKEN, base = BASE_URL): Promise<Record<string, string>> {
  for (;;) {
    const { revision } = await read(canvas, token);
    const response = await fetch(`${base}/api/canvas-agent/v1/canvases/${canvas.handle}/operations`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", Prefer: "return=minimal" },
      body: JSON.stringify({ baseRevision: revision, idempotencyKey: randomUUID(), force: true, operations }),
    });
    if (response.ok) return ((await response.json()) as { resolvedIds: Record<string, string> }).resolvedIds;
    assert(response.status === 409 || response.status === 503, `${response.status} ${await response.text()}`);
    if (response.status === 503) await new Promise((resume) => setTimeout(resume, 200));
  }
}

/** A canvas with these nodes, and their ids by their titles. A node names its Section by the title of that. */
export async function makeBoard(title: string, nodes: (Partial<Node> & { title: string })[], token = TOKEN): Promise<{ canvas: Canvas; ids: Record<string, string>; url: string }> {
  const { canvas } = await send<{ canvas: Canvas }>("POST", "/canvases", { title }, token);
  const ids: Record<string, string> = {};
  const clientIds = Object.fromEntries(nodes.map(({ title }, index) => [title, `n${index}`]));
  for (let at = 0; at < nodes.length; at += 200) {
    const part = nodes.slice(at, at + 200);
    const operations = part.map((node) => {
      const { sectionId, ...metadata } = node.metadata ?? {};
      const home = sectionId === undefined ? {} : { sectionId: ids[sectionId] ?? clientIds[sectionId] ?? sectionId };
      return { type: "node.create", clientId: clientIds[node.title], node: { type: "text", ...node, metadata: { ...metadata, ...home } } };
    });
    const made = await apply(canvas, operations, token);
    for (const { title } of part) ids[title] = made[clientIds[title] ?? ""] ?? "";
  }
  return { canvas, ids, url: `${BASE_URL}/c/${canvas.ownerUid}/${canvas.id}` };
}

export interface Canvas {
  id: string;
  handle: string;
  ownerUid: string;
  revision: string;
  canvasUrl?: string;
}

/** A canvas with one text node and one empty image node, and where it is in the browser. */
export async function makeCanvas(title: string, token = TOKEN): Promise<{ canvas: Canvas; target: string; url: string }> {
  const made = await send<{ canvas: Canvas }>("POST", "/canvases", { title }, token);
  const node = (clientId: string, x: number, rest: object) => ({
    type: "node.create",
    clientId,
    node: { title: clientId, position: { x, y: 0 }, ...rest },
  });
  const batch = await send<{ canvas: Canvas; resolvedIds: Record<string, string>; canvasUrl?: string }>(
    "POST",
    `/canvases/${made.canvas.id}/operations`,
    {
      baseRevision: made.canvas.revision,
      idempotencyKey: randomUUID(),
      operations: [
        node("Brief", 0, { type: "text", metadata: { content: "A quiet harbor at dawn. <b>Not bold.</b>" } }),
        node("Result", 400, { type: "image" }),
      ],
    },
    token,
  );
  const target = batch.resolvedIds["Result"];
  assert(target, "the new node has an id");
  return { canvas: batch.canvas, target, url: `${BASE_URL}/c/${batch.canvas.ownerUid}/${batch.canvas.id}` };
}

/** Waits until a run has succeeded. */
export async function succeeded(run: string, token = TOKEN): Promise<void> {
  for (let status = ""; status !== "succeeded"; ) {
    assert(["", "preparing", "queued", "running", "finalizing"].includes(status), `the run has ended as ${status}`);
    ({ status } = await send<{ status: string }>("GET", `/runs/${run}`, undefined, token));
  }
}

/** Runs an Action into `target` and waits for its end. `rest`: further members of the start, such as a webhook. */
export async function runAction(canvas: Canvas, target: string, rest: object = {}, token = TOKEN): Promise<void> {
  const { asset } = await send<{ asset: { handle: string } }>("POST", "/assets", png(96, 64), token);
  const job = await send<{ run: string }>(
    "POST",
    "/actions/resize/runs",
    {
      canvasId: canvas.id,
      baseRevision: canvas.revision,
      idempotencyKey: randomUUID(),
      targetNodeId: target,
      inputs: [asset.handle],
      params: { width: 64 },
      ...rest,
    },
    token,
  );
  await succeeded(job.run, token);
}

/** A new account with a token of some scopes. */
export async function stranger(scopes = "all"): Promise<{ uid: string; email: string; token: string }> {
  const uid = `u-${randomUUID()}`;
  const email = `${uid}@example.com`;
  await admin("account", "create", "--email", email, "--uid", uid);
  const { token } = await admin<{ token: string }>("token", "create", "--account", uid, "--label", "browser test", "--scopes", scopes);
  return { uid, email, token };
}

/** An image. */
export function png(width: number, height: number): Uint8Array<ArrayBuffer> {
  const chunk = (kind: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const frame = Buffer.alloc(body.length + 8);
    frame.writeUInt32BE(data.length, 0);
    body.copy(frame, 4);
    frame.writeUInt32BE(crc32(body), body.length + 4);
    return frame;
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2], 8);
  const rows = Buffer.alloc(height * (1 + width * 3));
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) rows.set([(4 * x) % 256, (4 * y) % 256, 128], y * (1 + width * 3) + 1 + 3 * x);
  }
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const parts = [signature, chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))];
  return new Uint8Array(Buffer.concat(parts));
}
