/** Takes work out of the service: images and videos as a ZIP, and what the board shows as a PNG. */
import { downloadZip } from "client-zip";
import { api, fileUrl, type Part } from "../api.ts";
import { Problem } from "../errors.ts";
import { count } from "../format.ts";
import type { Node } from "../sync/graph.ts";
import type { Board } from "./board.ts";

/** The most files, and bytes, of a ZIP. */
const MOST_FILES = 500;
const MOST_BYTES = 2e9;
/** How many files are fetched at a time. */
const WIDTH = 2;
/** How often a file that cannot be fetched now is asked for again, and a drawing whose images are not ready, and after how long in milliseconds. */
const MOST_TRIES = 5;
const PAUSE = 1000;
/** How long the address of a file that was saved is kept, in milliseconds. */
const KEPT = 60_000;
const ENDINGS: Record<string, string> = { "image/jpeg": "jpg", "image/png": "png", "image/webp": "webp", "image/gif": "gif", "video/mp4": "mp4" };
const NOT_INCLUDED = "NOT INCLUDED.txt";

// Files

interface FileHandle {
  createWritable: () => Promise<WritableStream<Uint8Array>>;
}
type Picker = (options: { suggestedName: string }) => Promise<FileHandle>;

const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";

/** Saves a file without asking where. */
function save(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT);
}

const pause = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, PAUSE);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });

/** Calls again what fails for now, or is not `isDone`. */
async function patiently<Answer>(call: () => Promise<Answer>, signal: AbortSignal, isDone: (answer: Answer) => boolean = () => true): Promise<Answer> {
  for (let tries = 1; ; tries += 1) {
    try {
      const answer = await call();
      if (isDone(answer) || tries === MOST_TRIES) return answer;
    } catch (error) {
      if (tries === MOST_TRIES || !(error instanceof Problem) || !error.isTemporary) throw error;
    }
    await pause(signal);
    signal.throwIfAborted();
  }
}

/** The answers of calls that are made in order, some of them at a time. None of them may fail. */
export async function* ahead<Value, Answer>(values: readonly Value[], call: (value: Value) => Promise<Answer>, width = WIDTH): AsyncGenerator<Answer> {
  const begun: Promise<Answer>[] = [];
  for (const at of values.keys()) {
    while (begun.length < width && at + begun.length < values.length) begun.push(call(values[at + begun.length] as Value));
    yield (await begun.shift()) as Answer;
  }
}

const reasonOf = (error: unknown): string => (error instanceof Problem ? (error.status === 404 || error.status === 403 ? "You may not read it." : error.message) : "It could not be read.");

type Found = { node: Node } & ({ ending: string; bytes: number } | { reason: string });

/**
 * Saves the files of these nodes as they are stored. `paths`: their names in the ZIP, without endings. Where the browser permits it, the ZIP
 * is written while it is fetched, so two files are in memory; else all of it is.
 */
export async function saveZip(board: Board, nodes: Node[], paths: ReadonlyMap<string, string>, title: string): Promise<void> {
  if (nodes.length > MOST_FILES) return board.notify(`A ZIP has at most ${MOST_FILES} files, and these are ${nodes.length}. Select fewer.`);
  if (board.getUi().handover) return board.notify("Another export is under way.");
  const name = `${title}.zip`;
  const stop = new AbortController();
  const { signal } = stop;
  const show = (text: string, done: number) => board.set({ handover: { text, done, of: nodes.length, cancel: () => stop.abort() } });
  try {
    const picker = (globalThis as unknown as { showSaveFilePicker?: Picker }).showSaveFilePicker;
    const target = await picker?.({ suggestedName: name });
    show("Looking at the files", 0);
    const found: Found[] = [];
    for await (const one of ahead(nodes, (node) => look(node, signal), 4)) found.push(one);
    signal.throwIfAborted();
    const readable = found.filter((one) => "bytes" in one);
    const left = found.flatMap(({ node, ...one }) => ("reason" in one ? [`${node.title || node.type}: ${one.reason}`] : []));
    if (readable.reduce((sum, { bytes }) => sum + bytes, 0) > MOST_BYTES) return board.notify("A ZIP has at most 2 GB, and these files are larger. Select fewer.");
    if (left.length > 0) board.notify(`${left.length} of ${count(nodes.length, "file")} ${left.length === 1 ? "is" : "are"} left out: you may not read ${left.length === 1 ? "it" : "them"}.`);

    async function* files() {
      let done = 0;
      for await (const { node, ending, file } of ahead(readable, (one) => fetched(one, signal))) {
        signal.throwIfAborted();
        show("Saving", (done += 1));
        if (typeof file === "string") left.push(`${node.title || node.type}: ${file}`);
        else yield { name: `${paths.get(node.id)}.${ending}`, input: file, lastModified: new Date() };
      }
      if (left.length > 0) yield { name: NOT_INCLUDED, input: `${left.join("\n")}\n`, lastModified: new Date() };
    }
    const zip = downloadZip(files());
    if (target) await (zip.body as ReadableStream<Uint8Array>).pipeTo(await target.createWritable(), { signal });
    else save(await zip.blob(), name);
    const all = count(nodes.length, "file");
    board.notify(left.length === 0 ? `${all} saved as “${name}”.` : `${nodes.length - left.length} of ${all} saved as “${name}”. ${NOT_INCLUDED} in it names the others.`);
  } catch (error) {
    if (signal.aborted) board.notify("The export is canceled.");
    else if (!isAbort(error)) board.notify(`The export has failed: ${error instanceof Problem ? error.message : "the file could not be written."}`);
  } finally {
    board.set({ handover: undefined });
  }
}

async function look(node: Node, signal: AbortSignal): Promise<Found> {
  try {
    const { mimeType, bytes } = await patiently(() => api.asset(node.asset as string, signal), signal);
    return { node, ending: ENDINGS[mimeType] ?? mimeType.replace(/^.*\//, ""), bytes };
  } catch (error) {
    return { node, reason: reasonOf(error) };
  }
}

async function fetched({ node, ending }: { node: Node; ending: string }, signal: AbortSignal): Promise<{ node: Node; ending: string; file: Blob | string }> {
  const file = await patiently(() => api.image(fileUrl(node.asset as string), signal), signal).catch(reasonOf);
  return { node, ending, file };
}

// Drawings

/** A drawing by the service, once the images in it are ready. */
async function pngOf({ canvas }: Board, part: Part): Promise<Blob> {
  const signal = AbortSignal.timeout(60_000);
  const { image } = await patiently(() => api.picture(canvas, signal, part), signal, ({ isComplete }) => isComplete);
  return image;
}

/** The drawing of a slide for paper. */
export async function drawingOf({ canvas }: Board, part: Part, signal: AbortSignal): Promise<Blob> {
  const { image } = await patiently(() => api.drawing(canvas, signal, part), signal, ({ isComplete }) => isComplete);
  return image;
}

async function attempt(board: Board, what: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    board.notify(`${what} has failed: ${error instanceof Problem ? error.message : "the browser did not permit it."}`);
  }
}

export const savePng = (board: Board, part: Part, title: string): Promise<void> => attempt(board, "The export", async () => save(await pngOf(board, part), `${title}.png`));

/** An image as a PNG of all of its pixels. */
async function convertedToPng(file: Blob): Promise<Blob> {
  if (file.type === "image/png") return file;
  const image = await createImageBitmap(file);
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d")?.drawImage(image, 0, 0);
  image.close();
  return canvas.convertToBlob({ type: "image/png" });
}

/** Copies an image itself, or a drawing of a part of the canvas. */
export const copyPng = (board: Board, part: Part, image?: string): Promise<void> =>
  attempt(board, "Copying", async () => {
    const png = image === undefined ? pngOf(board, part) : api.image(fileUrl(image), AbortSignal.timeout(60_000)).then(convertedToPng);
    // The browser waits for the promise: what it permits for a click would be over by then.
    await navigator.clipboard.write([new ClipboardItem({ "image/png": png })]);
    board.notify("Copied as PNG.");
  });
