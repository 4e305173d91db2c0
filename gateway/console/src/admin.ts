/** What administrators do. */
import createClient from "openapi-fetch";
import type { components, paths } from "./admin-contract.ts";
import { answer, patience, send } from "./api.ts";

type Schemas = components["schemas"];
export type Account = Schemas["Account"];
export type ChangeAccount = Schemas["ChangeAccount"];
export type CreateAccount = Schemas["CreateAccount"];
export type Role = Schemas["Role"];
export type Work = Schemas["Work"];
export type WorkStatus = NonNullable<NonNullable<paths["/console/admin/jobs"]["get"]["parameters"]["query"]>["status"]>;
export type AccountDelivery = Schemas["AccountDelivery"];
export type DeliveryStatus = Schemas["DeliveryStatus"];
export type AccountToken = Schemas["AgentToken"];

const routes = createClient<paths>({ fetch: send });

const after = (cursor: string | undefined) => (cursor === undefined ? {} : { cursor });
const uidOf = (accountUid: string) => ({ params: { path: { accountUid } } });

export const admin = {
  accounts: (filter: { q?: string; status?: "enabled" | "disabled"; role?: Role }, cursor: string | undefined, signal: AbortSignal) =>
    answer(routes.GET("/console/admin/accounts", { params: { query: { limit: 25, ...filter, ...after(cursor) } }, signal })),

  account: async (uid: string, signal: AbortSignal) => (await answer(routes.GET("/console/admin/accounts/{accountUid}", { ...uidOf(uid), signal }))).account,

  /** The answer alone has the invitation. */
  createAccount: (body: CreateAccount) => answer(routes.POST("/console/admin/accounts", { body, signal: patience() })),

  changeAccount: async (uid: string, body: ChangeAccount) =>
    (await answer(routes.PATCH("/console/admin/accounts/{accountUid}", { ...uidOf(uid), body, signal: patience() }))).account,

  moveCredit: (uid: string, body: Schemas["MoveCredit"]) =>
    answer(routes.POST("/console/admin/accounts/{accountUid}/credits", { ...uidOf(uid), body, signal: patience() })),

  endSessions: async (uid: string): Promise<void> => {
    await routes.DELETE("/console/admin/accounts/{accountUid}/sessions", { ...uidOf(uid), signal: patience() });
  },

  tokens: (uid: string, signal: AbortSignal) =>
    answer(routes.GET("/console/admin/accounts/{accountUid}/tokens", { params: { path: { accountUid: uid }, query: { limit: 100 } }, signal })),

  revokeToken: async (accountUid: string, tokenId: string): Promise<void> => {
    await routes.DELETE("/console/admin/accounts/{accountUid}/tokens/{tokenId}", { params: { path: { accountUid, tokenId } }, signal: patience() });
  },

  work: (status: WorkStatus | undefined, cursor: string | undefined, signal: AbortSignal) =>
    answer(routes.GET("/console/admin/jobs", { params: { query: { limit: 25, ...(status && { status }), ...after(cursor) } }, signal })),

  cancel: (jobId: string) => answer(routes.POST("/console/admin/jobs/{jobId}/cancel", { params: { path: { jobId } }, signal: patience() })),

  deliveries: (status: DeliveryStatus | undefined, cursor: string | undefined, signal: AbortSignal) =>
    answer(routes.GET("/console/admin/deliveries", { params: { query: { limit: 25, ...(status && { status }), ...after(cursor) } }, signal })),

  replay: (body: Schemas["ReplayDeliveries"]) => answer(routes.POST("/console/admin/deliveries/replay", { body, signal: patience() })),

  recipes: (cursor: string | undefined, signal: AbortSignal) =>
    answer(routes.GET("/console/admin/recipes", { params: { query: { limit: 50, ...after(cursor) } }, signal })),

  publish: (body: Schemas["RecipeFile"]) => answer(routes.POST("/console/admin/recipes", { body, signal: patience() })),

  /** The type of the answer is that of JSON, which is asked for; lines are the other one. */
  audit: (filter: { event?: string; account?: string; outcome?: "ok" | "refused" }, cursor: string | undefined, signal: AbortSignal) =>
    answer(
      routes.GET("/console/admin/audit", { params: { query: { limit: 50, ...filter, ...after(cursor) } }, headers: { Accept: "application/json" }, signal }),
    ) as Promise<Schemas["AuditPage"]>,

  health: (signal: AbortSignal) => answer(routes.GET("/console/admin/health", { signal })),
};
