/** Uploads onto the board: where each picture goes. */
import { remove } from "../sync/change.ts";
import { Uploads } from "../uploads.ts";
import type { Point } from "../view.ts";
import type { Board } from "./board.ts";
import { moved } from "./gestures.ts";
import { boxOf, middleOf } from "./spatial.ts";

const GAP = 360;

export class BoardUploads extends Uploads {
  /** Where the middle of each goes, by its key. */
  #points = new Map<string, Point>();

  constructor(canvas: string, board: Board) {
    super(canvas, async ({ node = "" }, key) => {
      await place(board, node, this.#points.get(key));
      this.#points.delete(key);
    });
  }

  /** Begins uploads, the first at `point` and the others beside it. Files that are no pictures are named in the result. */
  addAt(files: Iterable<File>, point: Point): string[] {
    const { added, refused } = this.add(files);
    const columns = Math.ceil(Math.sqrt(added.length));
    for (const [index, { key }] of added.entries()) {
      this.#points.set(key, { x: point.x + (index % columns) * GAP, y: point.y + Math.floor(index / columns) * GAP });
    }
    return refused;
  }
}

/** Moves the node from where the service put it to where the file was dropped. One undo takes it away again. */
async function place(board: Board, handle: string, point: Point | undefined): Promise<void> {
  const { engine } = board;
  await engine.refresh();
  const id = engine.local(handle.replace(/^node:/, ""));
  const node = board.graph.nodes.get(id);
  if (!node || !point) return;
  const middle = middleOf(boxOf(node));
  const changes = moved(board.graph, [id], { x: point.x - middle.x, y: point.y - middle.y });
  engine.perform(`Upload ${node.title}`, changes, { undoToo: [remove(node)] });
}
