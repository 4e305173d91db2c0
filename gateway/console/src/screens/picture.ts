/** What Look shows, wherever it is from. */
import { useQuery } from "@tanstack/react-query";
import { altOf, altOfAsset } from "../alt.ts";
import { api } from "../api.ts";
import type { Asset } from "../assets.ts";
import { useSession } from "../session.ts";

export interface Picture {
  /** What names it among the others: a node, or an asset. */
  id: string;
  asset: string;
  title: string;
  /** The alternative text of its node, where one is known. Empty if it is decorative. */
  alt?: string;
  isVideo: boolean;
}

export const pictureOf = ({ handle, name, kind }: Asset): Picture => ({ id: handle, asset: handle, title: name, isVideo: kind === "video" });

/** The alternative text of a picture: that of its node, or else of the newest node that shows its asset. */
export function useAltOf({ asset, alt, title, isVideo }: Picture): string {
  const mayReadNodes = useSession().session.scopes.includes("canvas:read");
  const { data } = useQuery({
    queryKey: ["alt", asset],
    queryFn: async ({ signal }) => {
      const { asset: known, made, usedIn } = await api.assetOrigin(asset, signal);
      const place = mayReadNodes ? usedIn?.[0] : undefined;
      const node = place && (await api.node(place.canvas, place.node, signal));
      return node?.asset === asset ? altOf(node) : altOfAsset(known, made?.prompt);
    },
    enabled: alt === undefined,
  });
  return alt ?? data ?? altOf({ type: isVideo ? "video" : "image", title, metadata: {} });
}
