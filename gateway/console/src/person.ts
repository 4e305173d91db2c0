/** What only a person who signed in by a link may do: tokens, apps, connections, sessions, members, deliveries, credit and the audit. */
import createClient from "openapi-fetch";
import { answer, patience, send } from "./api.ts";
import type { components, paths } from "./person-contract.ts";

type Schemas = components["schemas"];
export type Scope = Schemas["Scope"];
export type Surface = Schemas["Surface"];
export type AgentToken = Schemas["AgentToken"];
export type Budget = Schemas["Budget"];
export type BudgetState = Schemas["BudgetState"];
export type CreateToken = Schemas["CreateToken"];
export type TokenCreated = Schemas["TokenCreated"];
export type ProviderConnection = Schemas["ProviderConnection"];
export type SaveConnection = Schemas["SaveConnection"];
export type AuthorizedApp = Schemas["AuthorizedApp"];
export type RequestedAuthorization = Schemas["RequestedAuthorization"];
export type RequestedDevice = Schemas["RequestedDevice"];
export type DecideDevice = Schemas["DecideDevice"];
export type DecideAuthorization = Schemas["DecideAuthorization"];
export type OpenSession = Schemas["Session"];
export type Identity = Schemas["IdentitySummary"];
export type Member = Schemas["Member"];
export type MemberRole = Schemas["MemberRole"];
export type Delivery = Schemas["Delivery"];
export type DeliveryStatus = Schemas["DeliveryStatus"];
export type DeliveryError = Schemas["DeliveryError"];
export type AuditEntry = Schemas["AuditEntry"];
export type LedgerEntry = Schemas["LedgerEntry"];

/** What names a canvas in these routes. */
export interface CanvasName {
  ownerUid: string;
  id: string;
}

const routes = createClient<paths>({ fetch: send });

/** Resolves when a request without an answer has succeeded. */
async function done(call: Promise<unknown>): Promise<void> {
  await call;
}

/** The items of all pages. */
async function all<T>(page: (cursor: { cursor?: string }) => Promise<{ items: T[]; nextCursor: string | null }>): Promise<T[]> {
  const found: T[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { items, nextCursor } = await page(cursor === "" ? {} : { cursor });
    found.push(...items);
    cursor = nextCursor;
  }
  return found;
}

const pathOf = ({ ownerUid, id }: CanvasName) => ({ ownerUid, canvasId: id });
const after = (cursor: string | undefined) => (cursor === undefined ? {} : { cursor });

export const person = {
  tokens: (signal: AbortSignal) =>
    all(async (cursor) => {
      const { tokens, page } = await answer(routes.GET("/console/tokens", { params: { query: { limit: 100, ...cursor } }, signal }));
      return { items: tokens, nextCursor: page.nextCursor };
    }),

  /** The answer alone has the secret. */
  createToken: (body: CreateToken) => answer(routes.POST("/console/tokens", { body, signal: patience() })),

  /** Replaces what a token may spend. */
  setBudgets: (tokenId: string, budgets: Budget[]) =>
    answer(routes.PUT("/console/tokens/{tokenId}/budgets", { params: { path: { tokenId } }, body: { budgets }, signal: patience() })),

  revokeToken: (tokenId: string) => done(routes.DELETE("/console/tokens/{tokenId}", { params: { path: { tokenId } }, signal: patience() })),

  apps: (signal: AbortSignal) =>
    all(async (cursor) => {
      const { apps, page } = await answer(routes.GET("/console/apps", { params: { query: { limit: 100, ...cursor } }, signal }));
      return { items: apps, nextCursor: page.nextCursor };
    }),

  endApp: (appId: string) => done(routes.DELETE("/console/apps/{appId}", { params: { path: { appId } }, signal: patience() })),

  /** Replaces what an app may spend. */
  setAppBudgets: (appId: string, budgets: Budget[]) => answer(routes.PUT("/console/apps/{appId}/budgets", { params: { path: { appId } }, body: { budgets }, signal: patience() })),

  /** What a program asks for with the query of its request. */
  previewAuthorization: (query: string, signal: AbortSignal) => answer(routes.POST("/console/authorizations/preview", { body: { query }, signal })),

  /** The answer has the address that tells the program. */
  decideAuthorization: (body: DecideAuthorization) => answer(routes.POST("/console/authorizations", { body, signal: patience() })),

  /** What the program asks for that shows a code. */
  previewDevice: (userCode: string) => answer(routes.POST("/console/devices/preview", { body: { userCode }, signal: patience() })),

  decideDevice: (body: DecideDevice) => done(routes.POST("/console/devices", { body, signal: patience() })),

  connections: async (signal: AbortSignal) => (await answer(routes.GET("/console/connections", { signal }))).connections,

  /** Saves a connection, or a new key of the one with this provider and name. */
  saveConnection: async (body: SaveConnection) => (await answer(routes.POST("/console/connections", { body, signal: patience() }))).connection,

  deleteConnection: (connectionId: string) =>
    done(routes.DELETE("/console/connections/{connectionId}", { params: { path: { connectionId } }, signal: patience() })),

  sessions: async (signal: AbortSignal) => (await answer(routes.GET("/console/sessions", { signal }))).sessions,

  identities: async (signal: AbortSignal) => answer(routes.GET("/console/identities", { signal })),

  unlink: (identityId: string) => done(routes.DELETE("/console/identities/{identityId}", { params: { path: { identityId } }, signal: patience() })),

  /** Where the browser goes to prove an identity that is then linked. */
  link: async (providerId: string) =>
    (await answer(routes.POST("/console/oidc/{providerId}/link", { params: { path: { providerId } }, signal: patience() }))).url,

  /** Changes the name that others see; an empty one is the default. */
  rename: async (displayName: string) => (await answer(routes.PATCH("/console/account", { body: { displayName }, signal: patience() }))).account,

  endSession: (sessionId: string) => done(routes.DELETE("/console/sessions/{sessionId}", { params: { path: { sessionId } }, signal: patience() })),

  endAllSessions: () => done(routes.DELETE("/console/sessions", { signal: patience() })),

  members: (canvas: CanvasName, signal: AbortSignal) =>
    all(async (cursor) => {
      const call = routes.GET("/console/canvases/{ownerUid}/{canvasId}/members", {
        params: { path: pathOf(canvas), query: { limit: 100, ...cursor } },
        signal,
      });
      const { members, page } = await answer(call);
      return { items: members, nextCursor: page.nextCursor };
    }),

  setMember: (canvas: CanvasName, { email, role }: Member) =>
    answer(
      routes.PUT("/console/canvases/{ownerUid}/{canvasId}/members/{email}", {
        params: { path: { ...pathOf(canvas), email } },
        body: { role },
        signal: patience(),
      }),
    ),

  removeMember: (canvas: CanvasName, email: string) =>
    done(
      routes.DELETE("/console/canvases/{ownerUid}/{canvasId}/members/{email}", {
        params: { path: { ...pathOf(canvas), email } },
        signal: patience(),
      }),
    ),

  deleteCanvas: (canvas: CanvasName) =>
    answer(
      routes.DELETE("/console/canvases/{ownerUid}/{canvasId}", {
        params: { path: pathOf(canvas) },
        body: { confirm: true },
        signal: patience(),
      }),
    ),

  deliveries: (status: DeliveryStatus | undefined, cursor: string | undefined, signal: AbortSignal) =>
    answer(routes.GET("/console/deliveries", { params: { query: { limit: 25, ...(status && { status }), ...after(cursor) } }, signal })),

  replay: (deliveryId: string) =>
    answer(routes.POST("/console/deliveries/{deliveryId}/replay", { params: { path: { deliveryId } }, signal: patience() })),

  credit: (cursor: string | undefined, signal: AbortSignal) =>
    answer(routes.GET("/console/credit", { params: { query: { limit: 50, ...after(cursor) } }, signal })),

  audit: (filter: { event?: string; outcome?: AuditEntry["outcome"] }, cursor: string | undefined, signal: AbortSignal) =>
    answer(routes.GET("/console/audit", { params: { query: { limit: 50, ...filter, ...after(cursor) } }, signal })),
};
