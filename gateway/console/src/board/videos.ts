/** Videos of video nodes. The service keeps a video as a job alone, so a node has the handle of its job in its own data. */
import { type Graph, type Node, valueOf } from "../sync/graph.ts";
import { videoUrl } from "../work.ts";

export interface NodeVideo {
  /** Handle of the job. */
  job: string;
  /** The account that started it. Only that account can read the job. */
  by: string;
  resolution?: string;
  hasAudio?: boolean;
}

const JOB = /^job:[0-9a-f-]{36}$/;
export const record = (value: unknown): Record<string, unknown> => (typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {});

/** The video of a node. Any client can write this data, so it can be anything. */
export function videoOf(node: Node): NodeVideo | undefined {
  const { job, by, resolution, hasAudio } = record(record(record(node.metadata.custom)["console"])["video"]);
  if (node.type !== "video" || typeof job !== "string" || !JOB.test(job) || typeof by !== "string") return undefined;
  return { job, by, ...(typeof resolution === "string" && { resolution }), ...(typeof hasAudio === "boolean" && { hasAudio }) };
}

/** A node's own data with a video in it. What other clients keep there stays. */
export function customWith(node: Node | undefined, video: NodeVideo): Record<string, unknown> {
  const custom = record(node && valueOf(node, "metadata.custom"));
  return { ...custom, console: { ...record(custom["console"]), video } };
}

/** The nodes that these handles name: of nodes, and of the runs and jobs that filled nodes. */
export function nodesOf(graph: Graph, handles: string[]): Node[] {
  const wanted = new Set(handles);
  return [...graph.nodes.values()].filter((node) => {
    const { job, provenance } = node.metadata;
    return [node.handle, job?.run, provenance?.run, videoOf(node)?.job].some((handle) => handle !== undefined && wanted.has(handle));
  });
}

// First frames

const WIDTH = 640;
/** After this long without a frame, a video has none, in milliseconds. */
const PATIENCE = 20_000;
const MOST_FRAMES = 100;
const frames = new Map<string, Promise<string | undefined>>();
let last: Promise<unknown> = Promise.resolve();

/** The first frame of a video as an image. Videos are read one after another, because a browser has six connections to the service. */
export function frameOf(job: string): Promise<string | undefined> {
  const known = frames.get(job);
  if (known) return known;
  const frame = last
    .then(() => grab(job))
    .catch(() => {
      // It is tried again when the node is seen again.
      frames.delete(job);
      return undefined;
    });
  frames.set(job, frame);
  last = frame;
  for (const [old, image] of frames) {
    if (frames.size <= MOST_FRAMES) break;
    frames.delete(old);
    void image.then((url) => url !== undefined && URL.revokeObjectURL(url));
  }
  return frame;
}

async function grab(job: string): Promise<string | undefined> {
  const video = document.createElement("video");
  video.muted = true;
  video.preload = "auto";
  try {
    await new Promise((resolve, reject) => {
      video.addEventListener("loadeddata", resolve, { once: true });
      video.addEventListener("error", reject, { once: true });
      setTimeout(reject, PATIENCE);
      video.src = videoUrl(job);
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
