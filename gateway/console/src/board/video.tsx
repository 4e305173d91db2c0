/** A video node: its video, or what becomes of the job that makes it. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useContext, useEffect, useEffectEvent, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { altOf, playerName } from "../alt.ts";
import { fileUrl } from "../api.ts";
import { Problem } from "../errors.ts";
import { percent } from "../format.ts";
import { SessionContext } from "../session.ts";
import type { Node } from "../sync/graph.ts";
import { Icon, messageOf } from "../ui/parts.tsx";
import { useWatch } from "../ui/queues.tsx";
import { explained, isOver, stateOf, statusOf, type VideoJob, videoUrl, work } from "../work.ts";
import { useBoard } from "./context.ts";
import { endingOf } from "./endings.ts";
import { stateId } from "./gestures.ts";
import { useAsset, useImage } from "./images.ts";
import styles from "./video.module.css";
import { frameOf, type NodeVideo } from "./videos.ts";

/** How often a job that is under way is read, in milliseconds. */
const PACE = 1500;

export type VideoState =
  | { state: "loading" | "making" | "ready" | "ended"; job?: VideoJob }
  /** Why there is no video for this person. */
  | { state: "hidden"; why: string };

const isMissing = (error: unknown): boolean => error instanceof Problem && error.status === 404;

export function useVideo(video: NodeVideo | undefined): VideoState | undefined {
  const session = useContext(SessionContext);
  const isAllowed = session?.session.scopes.includes("job:manage") ?? false;
  const { data, error } = useQuery({
    queryKey: ["video", video?.job],
    queryFn: ({ signal }) => work.video(video?.job ?? "", signal),
    enabled: video !== undefined && isAllowed,
    staleTime: Infinity,
    // A job that this person may not read, or that is kept no longer, stays so.
    refetchInterval: ({ state }) => ((state.data && isOver(state.data.status)) || isMissing(state.error) ? false : state.error ? 10_000 : PACE),
  });
  if (!video) return undefined;
  if (!isAllowed) return { state: "hidden", why: "This session may not see videos" };
  if (data) return { state: data.status === "succeeded" ? "ready" : isOver(data.status) ? "ended" : "making", job: data };
  if (isMissing(error)) {
    return { state: "hidden", why: video.by === session?.account.id ? "This video is not kept any more" : "Only who made this video can play it" };
  }
  return error ? { state: "hidden", why: messageOf(error) } : { state: "loading" };
}

/** The video that a node shows as an asset, for every member of the canvas. */
export function StoredVideo({ node, asset, pixels }: { node: Node; asset: string; pixels: number }) {
  const { data, isError } = useAsset(asset);
  const hasPoster = data?.previewUrl !== undefined;
  const { url } = useImage(hasPoster ? asset : undefined, pixels);
  if (isError) {
    return (
      <div className={styles.slot}>
        <Icon name="video" size={28} />
        <span>This video cannot be shown</span>
      </div>
    );
  }
  if (!data) return <div className={styles.slot} />;
  return <Player key={asset} source={fileUrl(asset)} title={node.title} alt={altOf(node)} {...(hasPoster && { poster: url ?? "" })} />;
}

/** The video of a job that a node waits for, or has in its own data. `others`: what those see who may not read the job that fills the node. */
export function VideoArea({ node, video, others }: { node: Node; video: NodeVideo; others: ReactNode }) {
  const found = useVideo(video);
  // The end of a job that fills the node is in the graph.
  useEnd(node, video.by === undefined ? undefined : found);
  useWatch(found?.state === "making" ? ["video"] : []);
  const id = stateId(node.id);
  if (!found || found.state === "loading") return <div className={styles.slot} />;
  if (found.state === "hidden" && video.by === undefined) return others;
  if (found.state === "hidden") {
    return (
      <div className={styles.slot}>
        <Icon name="video" size={28} />
        <span id={id}>{found.why}</span>
      </div>
    );
  }
  if (found.state === "ready") return <Player key={video.job} source={videoUrl(video.job)} title={node.title} alt={altOf(node)} />;
  const { status = "", progress = 0, failure } = found.job ?? {};
  return (
    <div className={styles.slot} data-status={found.state === "making" ? "making" : status}>
      {found.state === "making" ? (
        <>
          {progress > 0 && <progress aria-label={`Progress of ${node.title || "the video"}`} max={100} value={progress} />}
          <span id={id}>
            {found.job ? stateOf(found.job) : statusOf(status)}
            {progress > 0 && `, ${percent(progress / 100)}`}
          </span>
        </>
      ) : (
        <>
          <Icon name={status === "failed" ? "finding" : "video"} size={28} />
          <span id={id}>{(failure && explained(failure)?.happened) ?? statusOf(status)}</span>
        </>
      )}
    </div>
  );
}

/** Says that a video which was being made is ready, or how its job ended. */
function useEnd(node: Node, found: VideoState | undefined): void {
  const board = useBoard();
  const state = found?.state;
  const before = useRef(state);
  const notify = useEffectEvent(() => found && "job" in found && found.job && board.announce(endingOf([node], [found.job.status]), () => Promise.resolve(found.job?.failure && explained(found.job.failure)?.happened)));
  useEffect(() => {
    if (before.current === "making" && (state === "ready" || state === "ended")) notify();
    before.current = state;
  }, [state]);
}

interface PlayerProps {
  /** The address of the video. */
  source: string;
  title: string;
  /** What the video shows. */
  alt: string;
  /** The address of its poster, empty while it is loaded. Without one, the first frame is read from the video. */
  poster?: string;
}

/** The poster, and the video once it is played: until then it costs no connection. */
function Player({ source, title, alt, poster }: PlayerProps) {
  const [isOpen, setIsOpen] = useState(false);
  const [first, setFirst] = useState<string>();
  const hasPoster = poster !== undefined;
  useEffect(() => {
    if (hasPoster) return undefined;
    let isShown = true;
    void frameOf(source).then((url) => isShown && setFirst(url));
    return () => {
      isShown = false;
    };
  }, [source, hasPoster]);
  const frame = poster ?? first;
  const button = useRef<HTMLButtonElement>(null);
  const close = () => {
    flushSync(() => setIsOpen(false));
    button.current?.focus();
  };
  if (isOpen) return <VideoPlayer source={source} alt={alt} isPlaying className={`nodrag nowheel ${styles.video}`} close={close} />;
  return (
    <div className={styles.frame}>
      {frame !== undefined && frame !== "" && <img src={frame} alt={alt} aria-hidden={alt === ""} draggable={false} />}
      <button ref={button} type="button" className={`nodrag ${styles.play}`} aria-label={`Play ${title || "the video"}`} onClick={() => setIsOpen(true)}>
        <Icon name="play" size={24} />
      </button>
    </div>
  );
}

interface VideoPlayerProps {
  /** The address of the video. */
  source: string;
  /** What the video shows. */
  alt: string;
  /** Whether it plays at once, and takes the keyboard. */
  isPlaying?: boolean;
  className?: string | undefined;
  /** What Escape does. */
  close?: () => void;
}

/** A video with the browser's controls. It reads ranges, so one can go to any place in it. */
export function VideoPlayer({ source, alt, isPlaying = false, className, close }: VideoPlayerProps) {
  const video = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    if (isPlaying) video.current?.focus({ preventScroll: true });
  }, [isPlaying]);
  return (
    // oxlint-disable-next-line jsx-a11y/media-has-caption -- the service makes no captions
    <video
      ref={video}
      src={source}
      controls
      autoPlay={isPlaying}
      preload={isPlaying ? "auto" : "metadata"}
      playsInline
      tabIndex={0}
      className={className}
      aria-label={playerName(alt)}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !close) return;
        event.preventDefault();
        close();
      }}
    />
  );
}
