/**
 * Requests to the service. The contract is served once more below `/console`, where the session cookie is the credential, so no
 * credential is ever in the hands of JavaScript.
 */
import createClient from "openapi-fetch";
import type { components, paths } from "./contract.ts";
import { Problem, problemOf } from "./errors.ts";
import { fetchLarge, takePrefetched } from "./prefetch.ts";
import type { Transport } from "./sync/types.ts";
import type { Box } from "./view.ts";

export type CanvasSummary = components["schemas"]["CanvasSummary"];
export type CanvasReview = components["schemas"]["CanvasReview"];
export type Action = components["schemas"]["Action"];
export type RunSummary = components["schemas"]["RunSummary"];
export type Model = components["schemas"]["Model"];
export type ImageOperation = "generate" | "edit" | "variations";
export type Parameter = components["schemas"]["Parameter"];
export type Finding = components["schemas"]["Finding"];

export interface Account {
  id: string;
  email: string;
  /** What others see. */
  displayName: string;
  /** Who manages the installation. */
  role?: "admin" | "member";
}

export interface Session {
  session: {
    id: string;
    /** A narrow session was opened with a token: it has the token's scopes and ends with it. */
    kind: "full" | "narrow";
    label: string;
    scopes: string[];
    expiresAt: string;
  };
  account: Account;
}

/** Somebody else's sign-in page that signs people in here. */
export interface SignInProvider {
  id: string;
  name: string;
}

/** What a person signs in with: a one-time link, or an agent's token. */
export type Credential = { link: string } | { token: string };

const ROOT = "/console";
export const CONTRACT = `${ROOT}/api/canvas-agent/v1`;

const isTimeout = (error: unknown) => error instanceof DOMException && error.name === "TimeoutError";
const unreachable = () => new Problem(0, "The service cannot be reached.");

/**
 * The account that this page serves, from the first sign-in that it knows of until it ends. Its requests name the account, and the service
 * refuses them when another tab has signed the browser in to another one: nothing that a page began is done or paid for by another account.
 */
export let served: string | undefined;

/** Whether this page serves `account`, as one that served nobody does from now on. */
export const serves = (account: string): boolean => (served ??= account) === account;

/** Sends a request for the account that this page serves, and turns every failure into a `Problem`. */
export function send(request: Request, get: typeof fetchLarge = fetch): Promise<Response> {
  if (served !== undefined) request.headers.set("X-Canvas-Account", served);
  return exchange(request, get);
}

async function exchange(request: Request, get: typeof fetchLarge = fetch): Promise<Response> {
  if (request.method !== "GET") request.headers.set("X-Canvas-Console", "1");
  let response: Response;
  try {
    response = await (takePrefetched(request) ?? get(request));
  } catch (error) {
    throw request.signal.aborted && !isTimeout(request.signal.reason) ? error : unreachable();
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

/** Typed calls of the contract. Each resolves to a success or throws a `Problem`. */
export const contract = createClient<paths>({ baseUrl: ROOT, fetch: (request) => send(request) });

/** The content of an answer. A connection that is lost within it, and content that is not JSON, is a `Problem` too. */
export async function answer<T>(call: Promise<{ data?: T }>): Promise<T> {
  const { data } = await call.catch((error: unknown) => {
    if (error instanceof SyntaxError) throw new Problem(502, "The service sent an answer that cannot be read.");
    throw error instanceof TypeError || isTimeout(error) ? unreachable() : error;
  });
  if (data === undefined) throw new Problem(502, "The service sent an empty answer.");
  return data;
}

async function session<T>(method: string, body?: object): Promise<T> {
  // A page that is left at once still signs out.
  const init: RequestInit = { method, keepalive: method === "DELETE" };
  if (body) Object.assign(init, { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  // Who is signed in, and who signs in, may be another account.
  const response = await (method === "DELETE" ? send : exchange)(new Request(`${ROOT}/session`, init));
  return (response.status === 204 ? undefined : await response.json()) as T;
}

export const api = {
  /** The session of this browser, or null. */
  async session(): Promise<Session | null> {
    try {
      return await session<Session>("GET");
    } catch (error) {
      if (error instanceof Problem && error.status === 401) return null;
      throw error;
    }
  },

  providers: async (signal: AbortSignal) =>
    ((await (await send(new Request(`${ROOT}/oidc`, { signal }))).json()) as { providers: SignInProvider[] }).providers,

  /** Whom a link signs in. It stays redeemable. */
  preview: (link: string) => session<{ account: Omit<Account, "id"> }>("POST", { link, preview: true }),

  signIn: (credential: Credential) => session<Session>("POST", credential),

  async signOut(): Promise<void> {
    try {
      await session("DELETE");
    } catch (error) {
      // The session has ended already.
      if (!(error instanceof Problem && error.status === 401)) throw error;
    }
  },

  canvases: (cursor: string | undefined, signal: AbortSignal) =>
    answer(
      contract.GET("/api/canvas-agent/v1/canvases", { params: { query: { limit: 25, ...(cursor && { cursor }) } }, signal }),
    ),

  /** Makes a canvas. Its id is chosen by the caller, so another attempt makes no second one. */
  createCanvas: async (id: string, title: string) =>
    (await answer(contract.POST("/api/canvas-agent/v1/canvases", { body: { id, title }, signal: patience() }))).canvas,

  /** Shows others on a canvas what the person points at. */
  point(canvas: string, body: string): Promise<unknown> {
    const [, owner, id] = canvas.split(":");
    const headers = { "Content-Type": "application/json" };
    return send(new Request(`${ROOT}/canvases/${owner}/${id}/pointer`, { method: "POST", headers, body, signal: patience() }));
  },

  review: (canvasId: string, signal: AbortSignal) =>
    answer(contract.GET("/api/canvas-agent/v1/canvases/{canvasId}/review", { params: { path: { canvasId } }, signal })),

  /** What the canvas would be like after these operations. */
  dryRun: (canvasId: string, operations: components["schemas"]["Operation"][]) => {
    const init = { params: { path: { canvasId } }, body: { operations, validateOnly: true as const }, signal: patience() };
    return answer(contract.POST("/api/canvas-agent/v1/canvases/{canvasId}/operations", init)) as Promise<components["schemas"]["DryRun"]>;
  },

  outline: (canvasId: string, signal: AbortSignal) =>
    answer(
      contract.GET("/api/canvas-agent/v1/canvases/{canvasId}/outline", {
        params: { path: { canvasId } },
        parseAs: "text",
        signal,
      }),
    ),

  /** The handle of the canvas that a slug names: the first line of an outline begins with it. */
  handleOf: async (slug: string, signal: AbortSignal) => {
    const query = { maxBytes: 1024, text: "none" } as const;
    const call = contract.GET("/api/canvas-agent/v1/canvases/{canvasId}/outline", { params: { path: { canvasId: slug }, query }, parseAs: "text", signal });
    const [handle = ""] = (await answer(call)).split(" ");
    return handle;
  },

  /** A drawing of a canvas, or of a part of it: `section` or `nodes` of the query. */
  drawing: async (canvas: string, signal: AbortSignal, part: Part = {}) => drawingOf(await render(canvas, "image/svg+xml", signal, part)),

  /** The same as a PNG, at most 2048 pixels wide and high. */
  picture: async (canvas: string, signal: AbortSignal, part: Part = {}) => {
    const response = await render(canvas, "image/png", signal, { ...part, width: "2048" });
    return { image: await response.blob(), isComplete: revisionOf(response) !== undefined };
  },

  // A list is in full unless `view` asks for less.
  actions: async (medium: "image" | "video", signal: AbortSignal) =>
    ((await answer(contract.GET("/api/canvas-agent/v1/actions", { params: { query: { medium, limit: 100 } }, signal }))) as components["schemas"]["ActionList"]).actions,

  action: async (actionKey: string, signal: AbortSignal) =>
    (await answer(contract.GET("/api/canvas-agent/v1/actions/{actionKey}", { params: { path: { actionKey } }, signal }))).action,

  /** Starts an Action. The target is an empty image node. */
  /** Runs Actions in a row. */
  startActions: (body: components["schemas"]["RunActions"]) => answer(contract.POST("/api/canvas-agent/v1/actions/runs", { params: { header: LENIENT }, body, signal: patience() })),
  startAction: async (actionKey: string, body: components["schemas"]["RunAction"]) =>
    (await answer<unknown>(contract.POST("/api/canvas-agent/v1/actions/{actionKey}/runs", { params: { path: { actionKey }, header: LENIENT }, body, signal: patience() }))) as Started,

  allModels: async (signal: AbortSignal) =>
    ((await answer(contract.GET("/api/canvas-agent/v1/models", { params: { query: { limit: 100 } }, signal }))) as components["schemas"]["ModelList"]).models,

  /** The models that can make images, or videos. */
  models: async (signal: AbortSignal, kind: "image" | "video" = "image") => (await api.allModels(signal)).filter(({ type }) => type === kind),

  /** Credits that are left. */
  storage: async (signal: AbortSignal) => (await answer(contract.GET("/api/canvas-agent/v1/auth/status", { signal }))).storage,
  balance: async (signal: AbortSignal) => (await answer(contract.GET("/api/canvas-agent/v1/auth/status", { signal }))).creditBalance,

  /** The queues, and whether workers are seen. */
  status: async (signal: AbortSignal) => (await answer(contract.GET("/api/canvas-agent/v1/status", { signal }))).queues,

  startImages: async (operation: ImageOperation, body: components["schemas"]["ImageStart"]) => {
    const init = { params: { header: LENIENT }, body, signal: patience() };
    const call = () => {
      if (operation === "edit") return contract.POST("/api/canvas-agent/v1/images/edit", init);
      return operation === "variations" ? contract.POST("/api/canvas-agent/v1/images/variations", init) : contract.POST("/api/canvas-agent/v1/images/generate", init);
    };
    return (await answer<unknown>(call())) as Started;
  },

  /** The newest work of this account on a canvas. */
  runs: async (canvasId: string, signal: AbortSignal) =>
    (await answer(contract.GET("/api/canvas-agent/v1/runs", { params: { query: { canvasId, limit: 50 } }, signal }))).runs,

  asset: async (assetId: string, signal: AbortSignal) =>
    (await answer(contract.GET("/api/canvas-agent/v1/assets/{assetId}", { params: { path: { assetId } }, signal }))).asset,

  /** An asset, how it was made, and the nodes that show it. */
  assetOrigin: (assetId: string, signal: AbortSignal) =>
    answer(contract.GET("/api/canvas-agent/v1/assets/{assetId}", { params: { path: { assetId }, query: { include: "usedIn" } }, signal })),

  node: async (canvasId: string, nodeId: string, signal: AbortSignal) =>
    (await answer(contract.GET("/api/canvas-agent/v1/canvases/{canvasId}/nodes/{nodeId}", { params: { path: { canvasId, nodeId } }, signal }))).node,

  /** Makes sure that an image is ready, and that the browser has it. */
  image: async (url: string, signal: AbortSignal) => (await send(new Request(url, { signal }))).blob(),

  /** Gives a canvas another title, whatever else is changed meanwhile. */
  async renameCanvas({ handle, revision }: CanvasSummary, title: string): Promise<void> {
    const transport = transportOf(handle);
    for (let [baseRevision, attempt] = [revision, 1]; ; attempt += 1) {
      try {
        await transport.apply({ baseRevision, idempotencyKey: crypto.randomUUID(), operations: [{ type: "canvas.update", title }] });
        return;
      } catch (error) {
        if (!(error instanceof Problem) || error.status !== 409 || attempt === MOST_CONFLICTS) throw error;
        baseRevision = (await transport.changes(baseRevision)).revision;
      }
    }
  },

  thumbnail: (canvas: string, isDark: boolean, signal: AbortSignal) =>
    thumbnails(async () => {
      const response = await render(canvas, "image/png", signal, { width: "512", ...(isDark && { theme: "dark" }) });
      return { image: await response.blob(), isComplete: revisionOf(response) !== undefined };
    }),
};

/** The address of the file of an asset; of a video, players read it in ranges. */
export const fileUrl = (asset: string): string => `${CONTRACT}/assets/${encodeURIComponent(asset)}/content`;

/** The address of an image that is at most `width` pixels wide. */
export const imageUrl = (asset: string, width: number): string => `${CONTRACT}/assets/${encodeURIComponent(asset)}/content?w=${width}`;

/** How often a title is sent on a newer revision. */
const MOST_CONFLICTS = 4;

/** After this long without an answer, a request counts as lost, in milliseconds. */
const PATIENCE = 30_000;

/** What is answered to a start that is no dry run. */
type Started = components["schemas"]["ImageJob"];

/** A start is accepted on an earlier revision if nothing that it reads has changed since: many can be started at a time. */
const LENIENT = { Prefer: "handling=lenient" } as const;

export const patience = () => AbortSignal.timeout(PATIENCE);

/** The requests that keep a canvas in step with the service's. */
export function transportOf(canvasId: string): Transport {
  const path = { canvasId };
  return {
    read: async () => {
      const request = new Request(`${CONTRACT}/canvases/${encodeURIComponent(canvasId)}`, { signal: patience() });
      const read = async () => ({ data: (await (await send(request, fetchLarge)).json()) as { canvas: components["schemas"]["Canvas"] } });
      return (await answer(read())).canvas;
    },
    changes: (since) =>
      answer(
        contract.GET("/api/canvas-agent/v1/canvases/{canvasId}/changes", {
          params: { path, query: { since, include: "graph" } },
          signal: patience(),
        }),
      ),
    apply: async (body) => {
      const call = contract.POST("/api/canvas-agent/v1/canvases/{canvasId}/operations", {
        params: { path, header: { Prefer: "return=minimal" } },
        body,
        signal: patience(),
      });
      return (await answer(call)) as components["schemas"]["MutationResult"];
    },
  };
}

/** An image of a whole canvas and the part of the canvas's plane that it covers. */
export interface Drawing {
  image: Blob;
  box: Box;
  /** The revision that it shows, if it is complete. */
  revision: string | undefined;
  /** Whether every image is in it. The service makes the missing ones, and a later drawing shows them. */
  isComplete: boolean;
}

/** What is drawn of a canvas: a Section with its members, or these nodes, separated by commas. Without both, all of it. */
export interface Part {
  section?: string;
  nodes?: string;
}

function render(canvas: string, accept: string, signal: AbortSignal, query: Part & { width?: string; theme?: "dark" } = {}): Promise<Response> {
  const url = `${CONTRACT}/canvases/${encodeURIComponent(canvas)}/render?${new URLSearchParams(query as Record<string, string>).toString()}`;
  return send(new Request(url, { headers: { Accept: accept }, signal }));
}

/** A drawing that can change without a new revision has no entity tag. */
const revisionOf = (response: Response): string | undefined => /^W\/"(.*)-\w+"$/.exec(response.headers.get("etag") ?? "")?.[1];

async function drawingOf(response: Response): Promise<Drawing> {
  const text = await response.text();
  const [x, y, width, height] = (/viewBox="([^"]+)"/.exec(text.slice(0, 1000))?.[1] ?? "").split(/[ ,]+/).map(Number);
  if (!width || !height) throw new Problem(502, "The drawing of this canvas cannot be read.");
  const image = new Blob([text], { type: "image/svg+xml" });
  const revision = revisionOf(response);
  return { image, box: { x: x ?? 0, y: y ?? 0, width, height }, revision, isComplete: revision !== undefined };
}

/** A queue: at most `width` calls run at a time, the others wait. */
function queue(width: number): <T>(call: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let free = width;
  return async (call) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resume) => void waiting.push(resume));
    try {
      return await call();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}

/** The service draws two canvases of an account at once, and a browser has six connections to it. */
const thumbnails = queue(2);
