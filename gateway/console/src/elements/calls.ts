/** Requests about Elements and their collections. */
import { answer, contract, patience } from "../api.ts";
import type { components } from "../contract.ts";

type Schemas = components["schemas"];
export type Element = Schemas["Element"];
export type ElementType = Schemas["ElementType"];
export type ElementVersion = Schemas["ElementVersion"];
export type ElementContent = Schemas["ElementContent"];
export type Collection = Schemas["ElementCollection"];
export type Lifecycle = Schemas["Lifecycle"];
export type SourceHealth = Schemas["SourceHealth"];

export const TYPES: ElementType[] = ["character", "product/object", "environment", "style", "material/texture", "lighting"];
export const MOST_SOURCES = 8;

/** What a type is called. */
export const typeName = (type: ElementType): string => `${type[0]?.toUpperCase()}${type.slice(1).replace("/", " or ")}`;

/** The handle of a source, which belongs to the owner of the Element. */
export const sourceOf = (ownerUid: string, assetId: string): string => `asset:${ownerUid}:${assetId}`;

const PATH = "/api/canvas-agent/v1/elements/{elementId}";
const COLLECTION = "/api/canvas-agent/v1/element-collections/{collectionId}";

const patch = async (elementId: string, body: Schemas["ElementPatch"]): Promise<Element> =>
  (await answer(contract.PATCH(PATH, { params: { path: { elementId } }, body, signal: patience() }))).element;

export const elements = {
  list: (state: Lifecycle, search: string, cursor: string | undefined, signal: AbortSignal) =>
    answer(
      contract.GET("/api/canvas-agent/v1/elements", { params: { query: { state, limit: 100, ...(search && { search }), ...(cursor && { cursor }) } }, signal }),
    ),

  read: async (elementId: string, signal: AbortSignal) =>
    ((await answer(contract.GET(PATH, { params: { path: { elementId } }, signal }))) as Schemas["ElementRead"]).element,

  versions: (elementId: string, cursor: string | undefined, signal: AbortSignal) =>
    answer(contract.GET("/api/canvas-agent/v1/elements/{elementId}/versions", { params: { path: { elementId }, query: { limit: 50, ...(cursor && { cursor }) } }, signal })),

  create: async (body: Schemas["CreateElement"]) => (await answer(contract.POST("/api/canvas-agent/v1/elements", { body, signal: patience() }))).element,

  /** Appends a version. */
  update: (elementId: string, element: ElementContent) => patch(elementId, { operation: "update", element }),
  setCollections: (elementId: string, collectionIds: string[]) => patch(elementId, { operation: "collections", collectionIds }),
  archive: (elementId: string) => patch(elementId, { operation: "archive", confirm: true }),
  restore: (elementId: string) => patch(elementId, { operation: "restore" }),
};

export const collections = {
  /** All of them. */
  async list(signal: AbortSignal): Promise<Collection[]> {
    const all = new Map<string, Collection>();
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const query = { limit: 100, ...(cursor && { cursor }) };
      const list = await answer(contract.GET("/api/canvas-agent/v1/element-collections", { params: { query }, signal }));
      for (const collection of list.collections) all.set(collection.id, collection);
      cursor = list.page.nextCursor ?? null;
    }
    return [...all.values()];
  },

  create: (name: string) => answer(contract.POST("/api/canvas-agent/v1/element-collections", { body: { name }, signal: patience() })),
  rename: (collectionId: string, name: string) => answer(contract.PATCH(COLLECTION, { params: { path: { collectionId } }, body: { name }, signal: patience() })),
  delete: (collectionId: string) => answer(contract.DELETE(COLLECTION, { params: { path: { collectionId } }, body: { confirm: true }, signal: patience() })),
};
