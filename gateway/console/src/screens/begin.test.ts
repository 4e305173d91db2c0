import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import type { Attempt } from "./begin.ts";
import { SAMPLE, type Template } from "./templates.ts";

interface Sent {
  method: string;
  path: string;
  key: string | null;
  body: string;
}

let sent: Sent[] = [];
/** Which requests get no answer, by their numbers; the service does what they ask all the same. */
let lost = new Set<number>();
const { fetch, Request } = globalThis;
// A page has an address. What sends requests keeps the class that it finds first.
globalThis.Request = class extends Request {
  constructor(input: RequestInfo | URL, init?: RequestInit) {
    super(typeof input === "string" ? new URL(input, "http://console.test") : input, init);
  }
};
const { begin } = await import("./begin.ts");

const json = (value: unknown, status = 200): Response => new Response(JSON.stringify(value), { status, headers: { "Content-Type": "application/json" } });

/** A service that makes a canvas once, and answers equal requests of one key alike. */
beforeEach(() => {
  sent = [];
  lost = new Set();
  let isMade = false;
  globalThis.fetch = async (input) => {
    const request = input as Request;
    const path = new URL(request.url).pathname.replace(/^.*\/v1/, "");
    const body = request.method === "GET" || path === "/assets" ? "" : await request.text();
    const key = request.headers.get("Idempotency-Key") ?? ((body ? (JSON.parse(body) as { idempotencyKey?: string }).idempotencyKey : undefined) ?? null);
    sent.push({ method: request.method, path, key, body });
    const number = sent.length;
    let answer: Response;
    if (path.startsWith("/static/")) answer = new Response("image");
    else if (path === "/assets") answer = json({ asset: { handle: `asset:u:${key}` } }, 201);
    else if (path === "/canvases") answer = isMade ? json({ error: { code: "conflict", message: "in use" } }, 409) : json({ canvas: { revision: "r0" } }, 201);
    else if (path.endsWith("/operations")) answer = json({ canvas: { revision: "r1" }, resolvedIds: { Square: "n1", Story: "n2", Card: "n3" } });
    else if (path.endsWith("/runs")) answer = json({ run: "run:1" }, 202);
    else answer = json({ canvas: { revision: "r0", nodes: [] } });
    if (path === "/canvases") isMade = true;
    if (lost.has(number)) throw new TypeError("no answer");
    return answer;
  };
});
afterEach(() => Object.assign(globalThis, { fetch }));

const urlOf = (image: string) => `/static/${image}-hash.jpg`;
const attempt = (): Attempt => ({ id: "c1", ownerUid: "u" });

test("the sample is made by calls of its own keys", async () => {
  await begin(attempt(), SAMPLE, urlOf);
  assert.deepEqual(sent.filter(({ path }) => path === "/assets").map(({ key }) => key).toSorted(), SAMPLE.images.map((image) => `sample:${image}-hash.jpg`).toSorted());
  const batch = sent.find(({ path }) => path.endsWith("/operations"));
  assert.equal(batch?.key, "template:c1");
  assert.match(batch?.body ?? "", /"baseRevision":"r0"/);
  const starts = sent.filter(({ path }) => path.endsWith("/runs"));
  assert.deepEqual(starts.map(({ key }) => key), ["c1:Square", "c1:Story", "c1:Card"]);
  assert.deepEqual(starts.map(({ body }) => (JSON.parse(body) as { inputs: string[] }).inputs[0]), ["two-cups", "vase", "two-cups"].map((image) => `asset:u:sample:${image}-hash.jpg`));
});

test("an attempt that is made again sends what it has sent before", async () => {
  const again = attempt();
  await begin(again, SAMPLE, urlOf);
  const first = sent.filter(({ path, method }) => method === "POST" && path !== "/canvases");
  sent = [];
  await begin(again, SAMPLE, urlOf);
  assert.deepEqual(sent.filter(({ method }) => method === "POST").map(({ key, body }) => [key, body]).toSorted(), first.map(({ key, body }) => [key, body]).toSorted());
});

test("a canvas whose making got no answer is used", async () => {
  const blank: Template = { ...SAMPLE, images: [], actions: [], operations: () => [] };
  lost = new Set([1]);
  await begin(attempt(), blank, urlOf);
  assert.deepEqual(sent.map(({ method, path }) => `${method} ${path}`), ["POST /canvases", "POST /canvases", "GET /canvases/canvas%3Au%3Ac1"]);
});
