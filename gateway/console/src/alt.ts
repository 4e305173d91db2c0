/** Alternative text of nodes, and of assets and runs where no node says more. The rule is that of the service (shared/domain/src/alt.rs): it is needed here before the service has answered. */
import type { RunSummary } from "./api.ts";
import type { Asset } from "./assets.ts";
import type { Node } from "./sync/graph.ts";

const FILE = /\.(avif|bmp|gif|heic|heif|jpeg|jpg|mov|mp4|png|svg|tif|tiff|webp)$/i;

/** The alternative text of what a node shows. Empty if it is decorative. */
export function altOf({ type, title, metadata: { altText, prompt, provenance } }: Pick<Node, "type" | "title" | "metadata">): string {
  if (altText !== undefined) return altText;
  const given = title.trim();
  if (given !== "" && given.toLowerCase() !== type && !FILE.test(given)) return given;
  const words = [...((provenance ? provenance.prompt : prompt)?.trim() ?? "")].slice(0, 120).join("");
  return words === "" ? "Picture without description" : `Generated ${type === "video" ? "video" : "picture"}: ${words}`;
}

/** The alternative text of an asset that no node shows, and the prompt that it was made from. */
export const altOfAsset = ({ kind, title, name }: Pick<Asset, "kind" | "title" | "name">, prompt?: string): string =>
  altOf({ type: kind === "video" ? "video" : "image", title: title ?? name, metadata: prompt === undefined ? {} : { prompt } });

/** The alternative text of what a run made. The title of a run is the beginning of its prompt, or else the name of what was started. */
export function altOfRun({ kind, operation, title }: Pick<RunSummary, "kind" | "operation" | "title">): string {
  const type = kind === "video" ? "video" : "image";
  if (title === operation) return altOf({ type, title: "", metadata: {} });
  return kind === "image" || kind === "video" ? altOf({ type, title: "", metadata: { prompt: title } }) : altOf({ type, title, metadata: {} });
}

/** The name of a player. The controls of a decorative video have one, too. */
export const playerName = (alt: string): string => alt || "Video";
