/** Alternative text of nodes. The rule is that of the service (shared/domain/src/alt.rs): it is needed here before the service has answered. */
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
