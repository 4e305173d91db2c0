/** The assets beside the board: a click or Enter puts one on it, and so does dragging one onto it. */
import { useState } from "react";
import type { Placed, Where } from "../assets.ts";
import { AssetGrid } from "../screens/asset-grid.tsx";
import { useSession } from "../session.ts";
import { Search } from "../ui/search.tsx";
import styles from "./asset-panel.module.css";
import type { Board } from "./board.ts";

/** The type of an asset that is dragged. */
export const ASSET = "application/x-canvas-asset";

/** The asset that was dragged here. Another page can drag something of this type, so the data can be anything. */
export function draggedAsset(data: string): Placed | undefined {
  try {
    const { handle, name, width, height } = JSON.parse(data) as Record<string, unknown>;
    const isAsset = typeof handle === "string" && handle.startsWith("asset:") && typeof name === "string" && typeof width === "number" && typeof height === "number";
    return isAsset ? { handle, name, width, height } : undefined;
  } catch {
    return undefined;
  }
}

/** The service shows in a canvas what is stored there, and to its owner everything that is the owner's. */
export function AssetPanel({ board, canvas, isOwner }: { board: Board; canvas: string; isOwner: boolean }) {
  const [wanted, setWanted] = useState("");
  const { scopes } = useSession().session;
  const here = canvas as Where;
  const [where, setWhere] = useState<Where>(isOwner ? "all" : here);
  if (!scopes.includes("asset:read")) return <p className={styles.hint}>This session may not see assets: its token does not have the scope asset:read.</p>;
  return (
    <>
      <div className={styles.tools}>
        <Search isSmall className={styles.search ?? ""} label="Search assets by name" value={wanted} set={setWanted} />
        {isOwner && (
          <span className={styles.where}>
            <select aria-label="Which assets" value={where} onChange={({ target }) => setWhere(target.value as Where)}>
              <option value="all">All of mine</option>
              <option value="none">In no canvas</option>
              <option value={here}>In this canvas</option>
            </select>
          </span>
        )}
      </div>
      <p className={styles.hint}>Click an asset to put it on the board, or drag it there.{!isOwner && " On a canvas of somebody else, these are the images that are stored in it."}</p>
      <AssetGrid
        where={where}
        wanted={wanted}
        isSmall
        action="Put on the board:"
        choose={(asset) => {
          board.place(asset);
          board.notify(`${asset.name} is on the board.`);
        }}
        drag={(asset, event) => {
          const { handle, name, width, height } = asset;
          event.dataTransfer.setData(ASSET, JSON.stringify({ handle, name, width, height } satisfies Placed));
          event.dataTransfer.effectAllowed = "copy";
        }}
        empty={<p className={styles.hint}>There are no assets yet. Drop images on the board to upload them.</p>}
      />
    </>
  );
}
