/** Uploads onto the board: where each image goes. */
import { nodeSizeOf } from "../assets.ts";
import { remove } from "../sync/change.ts";
import type { Engine } from "../sync/engine.ts";
import type { Graph, Node } from "../sync/graph.ts";
import { Uploads, uploadsTo } from "../uploads.ts";
import type { Point, Size } from "../view.ts";
import type { Board } from "./board.ts";
import { withEngine } from "./engines.ts";
import { filled, isEmptySlot, moved, sizeOf } from "./gestures.ts";
import { placeFor, placesFor, type Where } from "./places.ts";

interface Place {
  /** Where the upload goes: its upper left corner, as far as that is still free. */
  corner: Point;
  where: Where;
  /** The board when the files were dropped. */
  before: Graph;
  /** The slot that the upload fills, by the id that it has in the engine `from`. */
  slot: string | undefined;
  from: Engine;
}

export class BoardUploads extends Uploads {
  /** Where each goes, by its key. */
  #places = new Map<string, Promise<Place>>();
  /** The nodes that are where they belong. */
  #put = new Set<string>();

  constructor(account: string, canvas: string) {
    super(canvas, async ({ node = "" }, key) => {
      const place = await this.#places.get(key);
      // The board may have been left, and its engine have ended.
      if (place) await withEngine(account, canvas, (engine) => put(engine, node, place, this.#put));
      this.#places.delete(key);
    });
  }

  /** Begins uploads, the first into `slot`, the others beside it, or all at `point`. Files that are no images are named in the result. */
  addAt(board: Board, files: Iterable<File>, point: Point | undefined, slot?: string): string[] {
    const { added, refused } = this.add(files);
    const node = board.graph.nodes.get(slot ?? "");
    const where = board.where(node ? undefined : point, node ? [node] : []);
    const common = { where, before: board.graph, from: board.engine };
    const placed = node ? added.slice(1) : added;
    const corners = Promise.all(placed.map(({ file }) => sizeOfFile(file))).then((sizes) => placesFor(board.graph, sizes, where));
    if (node && added[0]) this.#places.set(added[0].key, Promise.resolve({ ...common, corner: node.position, slot }));
    for (const [index, { key }] of placed.entries()) this.#places.set(key, corners.then((all) => ({ ...common, corner: all[index] as Point, slot: undefined })));
    return refused;
  }
}

/** The uploads onto a canvas. */
export const boardUploads = (account: string, canvas: string): BoardUploads => uploadsTo(canvas, () => new BoardUploads(account, canvas));

/** The size of the node of a file, as the service will make it. One that the browser cannot read is square until it has arrived. */
function sizeOfFile(file: File): Promise<Size> {
  const url = URL.createObjectURL(file);
  const image = new Image();
  return new Promise<Size>((resolve) => {
    image.addEventListener("load", () => resolve(nodeSizeOf({ width: image.naturalWidth, height: image.naturalHeight }, file.name)));
    image.addEventListener("error", () => resolve(sizeOf("image")));
    image.src = url;
  }).finally(() => URL.revokeObjectURL(url));
}

/**
 * Moves the node from where the service put it to its place, or to the nearest one if something was put there meanwhile, or into the slot
 * if that is still empty. One undo takes it away again.
 */
async function put(engine: Engine, handle: string, { corner, where, before, slot, from }: Place, done: Set<string>): Promise<void> {
  await engine.refresh();
  const { graph } = engine.getSnapshot();
  const id = engine.local(handle.replace(/^node:/, ""));
  const node = graph?.nodes.get(id);
  if (!graph || !node) return;
  const empty = slot === undefined ? undefined : graph.nodes.get(engine.local(from.real(slot)));
  done.add(id);
  // Other uploads are where the service put them until they are moved, too.
  const isComing = ({ id: other, metadata: { provenance } }: Node) => other === id || (provenance?.kind === "upload" && !before.nodes.has(other) && !done.has(other));
  const others = new Map([...graph.nodes].filter(([, node]) => !isComing(node)));
  const at = { x: corner.x + node.width / 2, y: corner.y + node.height / 2 };
  const { x, y } = placeFor({ ...graph, nodes: others }, node, { at, free: where.free });
  const { position } = node;
  // A video does not take the place of an image.
  const changes = empty && isEmptySlot(empty) && node.type === empty.type ? filled(graph, empty, node, () => crypto.randomUUID()) : moved(graph, [id], { x: x - position.x, y: y - position.y });
  engine.perform(`Upload ${node.title}`, changes, { undoToo: [remove(node)] });
}
