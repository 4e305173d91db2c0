/**
 * Videos of video nodes. A node shows its video as an asset, as an image node shows an image. Before that, a node had no more than the
 * handle of a job, in its own data: such a video stays with its job until it is kept.
 */
import type { Graph, Node } from "../sync/graph.ts";
import { isOver } from "../work.ts";

export interface NodeVideo {
  /** Handle of the job. Only the account that started it can read it. */
  job: string;
  /** That account, for a video that the job alone has. */
  by?: string;
}

const JOB = /^job:[0-9a-f-]{36}$/;
export const record = (value: unknown): Record<string, unknown> => (typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {});

/** The job of a video node that shows no asset: the one that fills it, or the one in its data. Any client can write this data, so it can be anything. */
export function videoOf(node: Node): NodeVideo | undefined {
  if (node.type !== "video" || node.asset !== undefined) return undefined;
  const filling = node.metadata.job;
  const { job, by } = record(record(record(node.metadata.custom)["console"])["video"]);
  const own = typeof job === "string" && JOB.test(job) && typeof by === "string" ? { job, by } : undefined;
  return filling?.id !== undefined && (!own || !isOver(filling.status)) ? { job: filling.id } : own;
}

/** The handle of the job that made a video, by that of its run. */
export const videoJob = (run: string): string => run.replace(/^run:/, "job:");

/** The nodes that these handles name: of nodes, and of the runs and jobs that filled nodes. */
export function nodesOf(graph: Graph, handles: string[]): Node[] {
  const wanted = new Set(handles);
  return [...graph.nodes.values()].filter((node) => isNamed(node, wanted));
}

/** Whether one of these handles is that of the node, or of a run or job that filled it. */
export function isNamed(node: Node, wanted: ReadonlySet<string>): boolean {
  const { job, provenance } = node.metadata;
  const made = node.type === "video" && provenance?.run !== undefined ? videoJob(provenance.run) : undefined;
  return [node.handle, job?.run, job?.id, provenance?.run, made, videoOf(node)?.job].some((handle) => handle !== undefined && wanted.has(handle));
}

// First frames

const WIDTH = 640;
/** After this long without a frame, a video has none, in milliseconds. */
const PATIENCE = 20_000;
const MOST_FRAMES = 100;
const frames = new Map<string, Promise<string | undefined>>();
let last: Promise<unknown> = Promise.resolve();

/** The first frame of the video at this address as an image. Videos are read one after another, because a browser has six connections to the service. */
export function frameOf(source: string): Promise<string | undefined> {
  const known = frames.get(source);
  if (known) return known;
  const frame = last
    .then(() => grab(source))
    .catch(() => {
      // It is tried again when the node is seen again.
      frames.delete(source);
      return undefined;
    });
  frames.set(source, frame);
  last = frame;
  for (const [old, image] of frames) {
    if (frames.size <= MOST_FRAMES) break;
    frames.delete(old);
    void image.then((url) => url !== undefined && URL.revokeObjectURL(url));
  }
  return frame;
}

async function grab(source: string): Promise<string | undefined> {
  const video = document.createElement("video");
  video.muted = true;
  video.preload = "auto";
  try {
    await new Promise((resolve, reject) => {
      video.addEventListener("loadeddata", resolve, { once: true });
      video.addEventListener("error", reject, { once: true });
      setTimeout(reject, PATIENCE);
      video.src = source;
    });
    const scale = Math.min(WIDTH / video.videoWidth, 1);
    const canvas = new OffscreenCanvas(Math.round(video.videoWidth * scale), Math.round(video.videoHeight * scale));
    canvas.getContext("2d")?.drawImage(video, 0, 0, canvas.width, canvas.height);
    return URL.createObjectURL(await canvas.convertToBlob({ type: "image/jpeg", quality: 0.86 }));
  } finally {
    // The connection is free again.
    video.removeAttribute("src");
    video.load();
  }
}
