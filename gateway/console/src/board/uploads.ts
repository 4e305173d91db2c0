/** Uploads onto the board: where each picture goes. */
import { remove } from "../sync/change.ts";
import { Uploads } from "../uploads.ts";
import type { Point } from "../view.ts";
import type { Board } from "./board.ts";
import { filled, isEmptySlot, moved } from "./gestures.ts";
import { boxOf, middleOf } from "./spatial.ts";

const GAP = 360;

export class BoardUploads extends Uploads {
  /** Where the middle of each goes, by its key. */
  #points = new Map<string, Point>();
  /** The slots that uploads fill, by their keys. */
  #slots = new Map<string, string>();

  constructor(canvas: string, board: Board) {
    super(canvas, async ({ node = "" }, key) => {
      await place(board, node, this.#points.get(key), this.#slots.get(key));
      this.#points.delete(key);
      this.#slots.delete(key);
    });
  }

  /** Begins uploads, the first into `slot` or at `point`, the others beside it. Files that are no pictures are named in the result. */
  addAt(files: Iterable<File>, point: Point, slot?: string): string[] {
    const { added, refused } = this.add(files);
    const columns = Math.ceil(Math.sqrt(added.length));
    for (const [index, { key }] of added.entries()) {
      if (slot !== undefined && index === 0) this.#slots.set(key, slot);
      this.#points.set(key, { x: point.x + (index % columns) * GAP, y: point.y + Math.floor(index / columns) * GAP });
    }
    return refused;
  }
}

/**
 * Moves the node from where the service put it to where the file was dropped, or into the slot if that is still empty. One undo takes it
 * away again.
 */
async function place(board: Board, handle: string, point: Point | undefined, into: string | undefined): Promise<void> {
  const { engine } = board;
  await engine.refresh();
  const id = engine.local(handle.replace(/^node:/, ""));
  const node = board.graph.nodes.get(id);
  if (!node || !point) return;
  const middle = middleOf(boxOf(node));
  const slot = board.graph.nodes.get(into ?? "");
  const changes = slot && isEmptySlot(slot) ? filled(board.graph, slot, node, board.newId) : moved(board.graph, [id], { x: point.x - middle.x, y: point.y - middle.y });
  engine.perform(`Upload ${node.title}`, changes, { undoToo: [remove(node)] });
}
