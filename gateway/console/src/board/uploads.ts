/** Uploads onto the board: where each image goes. */
import { remove } from "../sync/change.ts";
import type { Engine } from "../sync/engine.ts";
import { Uploads, uploadsTo } from "../uploads.ts";
import type { Point } from "../view.ts";
import { withEngine } from "./engines.ts";
import { filled, isEmptySlot, moved } from "./gestures.ts";
import { boxOf, middleOf } from "./spatial.ts";

const GAP = 360;

interface Place {
  middle: Point;
  /** The slot that the upload fills, by the id that it has in the engine `from`. */
  slot: string | undefined;
  from: Engine;
}

export class BoardUploads extends Uploads {
  /** Where each goes, by its key. */
  #places = new Map<string, Place>();

  constructor(account: string, canvas: string) {
    super(canvas, async ({ node = "" }, key) => {
      const place = this.#places.get(key);
      // The board may have been left, and its engine have ended.
      if (place) await withEngine(account, canvas, (engine) => put(engine, node, place));
      this.#places.delete(key);
    });
  }

  /** Begins uploads, the first into `slot` or at `point`, the others beside it. Files that are no images are named in the result. */
  addAt(from: Engine, files: Iterable<File>, point: Point, slot?: string): string[] {
    const { added, refused } = this.add(files);
    const columns = Math.ceil(Math.sqrt(added.length));
    for (const [index, { key }] of added.entries()) {
      const middle = { x: point.x + (index % columns) * GAP, y: point.y + Math.floor(index / columns) * GAP };
      this.#places.set(key, { middle, slot: index === 0 ? slot : undefined, from });
    }
    return refused;
  }
}

/** The uploads onto a canvas. */
export const boardUploads = (account: string, canvas: string): BoardUploads => uploadsTo(canvas, () => new BoardUploads(account, canvas));

/**
 * Moves the node from where the service put it to where the file was dropped, or into the slot if that is still empty. One undo takes it
 * away again.
 */
async function put(engine: Engine, handle: string, { middle, slot, from }: Place): Promise<void> {
  await engine.refresh();
  const { graph } = engine.getSnapshot();
  const id = engine.local(handle.replace(/^node:/, ""));
  const node = graph?.nodes.get(id);
  if (!graph || !node) return;
  const { x, y } = middleOf(boxOf(node));
  const empty = slot === undefined ? undefined : graph.nodes.get(engine.local(from.real(slot)));
  // A video does not take the place of an image.
  const changes = empty && isEmptySlot(empty) && node.type === empty.type ? filled(graph, empty, node, () => crypto.randomUUID()) : moved(graph, [id], { x: middle.x - x, y: middle.y - y });
  engine.perform(`Upload ${node.title}`, changes, { undoToo: [remove(node)] });
}
