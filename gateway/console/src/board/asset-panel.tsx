/** The assets beside the board: a click or Enter puts one on it, and so does dragging one onto it. */
import type { Placed } from "../assets.ts";
import { Pictures } from "../library/pictures.tsx";
import { useSession } from "../session.ts";
import type { Board } from "./board.ts";
import { ASSET } from "./dragged.ts";

/** The service shows in a canvas what is stored there, and to its owner everything that is the owner's. */
export function AssetPanel({ board, canvas, isOwner }: { board: Board; canvas: string; isOwner: boolean }) {
  const { scopes } = useSession().session;
  if (!scopes.includes("asset:read")) return <p>This session may not see pictures: its token does not have the scope asset:read.</p>;
  return (
    <Pictures
      isSmall
      source={{ canvas, isBoardAlone: !isOwner, isOwn: true }}
      first="mine"
      canUpload={isOwner}
      action="Put on the board:"
      choose={(asset) => {
        board.place({ ...asset, name: asset.title || asset.name });
        board.notify(`${asset.title || asset.name} is on the board.`);
      }}
      drag={({ handle, name, title, width, height }, event) => {
        event.dataTransfer.setData(ASSET, JSON.stringify({ handle, name: title || name, width, height } satisfies Placed));
        event.dataTransfer.effectAllowed = "copy";
      }}
      empty={<p>There are no images yet. Drop some on the board to upload them.</p>}
    />
  );
}
