/** The nodes of the board, as React Flow renders them. */
import { Handle, type Node as FlowNode, type NodeProps, NodeResizer, Position } from "@xyflow/react";
import { type CSSProperties, memo, type ReactNode, useContext, useState, useSyncExternalStore } from "react";
import { altOf } from "../alt.ts";
import { formatOf } from "../assets.ts";
import { firstOf } from "../format.ts";
import { SessionContext } from "../session.ts";
import { isSection, type Node } from "../sync/graph.ts";
import type { Box } from "../view.ts";
import { Icon } from "../ui/parts.tsx";
import { useIsTouch } from "../ui/screen.ts";
import { explained, isOver, statusOf } from "../work.ts";
import { imageBefore } from "./attempts.ts";
import { noteColors, textColors } from "./colors.ts";
import { DetailContext, useBoard } from "./context.ts";
import { useFailure } from "./failure.ts";
import { isEmptySlot, letterSize, stateId, statusAt } from "./gestures.ts";
import { useAsset, useImage } from "./images.ts";
import { marksOf } from "./marks.ts";
import styles from "./nodes.module.css";
import { captionOf, ratioOf, resizedPicture } from "./shapes.ts";
import { TextField } from "./text.tsx";
import { StoredVideo, VideoArea } from "./video.tsx";
import { videoOf } from "./videos.ts";
import { NodeStatus } from "./waiting.tsx";

/** `number`: which of the variants of a run it is. */
export type BoardNode = FlowNode<{ node: Node; editing: "content" | "title" | undefined; isResizable: boolean; number: number | undefined }>;
type Props = NodeProps<BoardNode>;

/** Of the prompt of an empty slot, this many characters are shown. */
const MOST_PROMPT = 80;

function Handles() {
  return (
    <>
      <Handle type="target" position={Position.Left} className={styles.handle} />
      <Handle type="source" position={Position.Right} className={styles.handle} />
    </>
  );
}

/** A node that shows a picture is resized by its width: its height is what shows the picture whole. */
function PictureResizer({ node, asset }: { node: Node; asset: string }) {
  const { data } = useAsset(asset);
  return <Resizer node={node} fit={(box) => resizedPicture(node, box, data)} />;
}

function Resizer({ node, fit }: { node: Node; fit?: (box: Box) => Box }) {
  const board = useBoard();
  return (
    <NodeResizer
      isVisible
      autoScale={false}
      keepAspectRatio={fit !== undefined}
      minWidth={24}
      minHeight={24}
      handleClassName={styles.corner ?? ""}
      lineClassName={styles.edge ?? ""}
      onResizeStart={(_, box) => board.set({ resize: { id: node.id, box } })}
      // Escape ends a resize before the pointer does.
      onResize={(_, { x, y, width, height }) => board.resizeTo(node.id, { x, y, width, height }, fit)}
      onResizeEnd={() => board.endResize()}
    />
  );
}

/** What a picture is. */
function Facts({ asset }: { asset: string }) {
  const { data } = useAsset(asset);
  return data && <span className={styles.facts}>{` · ${data.width} × ${data.height} · ${ratioOf(data)} · ${formatOf(data.mimeType)}`}</span>;
}

/** The title of a picture, as a label of the screen: its letters have one size at every scale. */
function Caption({ node, isEditing, number, isHovered }: { node: Node; isEditing: boolean; number: number | undefined; isHovered: boolean }) {
  const board = useBoard();
  return (
    <div className={styles.caption} style={{ top: `calc(100% - ${captionOf(node)}px)` }}>
      {isEditing ? (
        <TextField id={node.id} field="title" value={node.title} label="Title" className={styles.field} />
      ) : (
        <span className={styles.title} dir="auto" onDoubleClick={(event) => (event.stopPropagation(), board.edit(node.id, "title"))}>
          {node.title}
          {number !== undefined && ` · ${number}`}
          {isHovered && node.asset !== undefined && <Facts asset={node.asset} />}
          {isHovered && node.ref !== undefined && <span className={styles.facts}>{` · ${node.ref}`}</span>}
        </span>
      )}
      {node.metadata.createdBy === "agent" && (
        <span className={styles.agent} data-mark title="Made by an agent">
          <Icon name="agent" size={13} />
        </span>
      )}
    </div>
  );
}

/** The status of work that is under way or has ended without a result. */
function openStatus(node: Node): string | undefined {
  const status = statusAt(node);
  return status === "succeeded" ? undefined : status;
}

/** What fills an image's place while there is no image. */
function Slot({ node, icon }: { node: Node; icon: "image" | "video" }) {
  const [isTarget, setIsTarget] = useState(false);
  const isOpen = useBoard().canChange && isEmptySlot(node);
  const failure = useFailure(node);
  const reason = failure && explained(failure);
  const status = openStatus(node);
  const isWorking = status !== undefined && !isOver(status);
  const empty = node.metadata.placeholder ? "Placeholder" : icon === "video" ? "Place for a video" : "Place for an image";
  const label = isWorking ? <NodeStatus node={node} status={status} /> : status !== undefined ? statusOf(status) : empty;
  return (
    <div
      className={styles.slot}
      data-status={isWorking ? "working" : status}
      data-placeholder={node.metadata.placeholder || undefined}
      data-target={(isTarget && isOpen) || undefined}
      onDragEnter={() => setIsTarget(true)}
      onDragLeave={() => setIsTarget(false)}
      onDrop={() => setIsTarget(false)}
    >
      {!isWorking && <Icon name={status === "failed" ? "finding" : icon} size={28} />}
      <span>{isTarget && isOpen ? "Drop to fill it" : label}</span>
      {reason && (
        <span id={stateId(node.id)} className={styles.reason}>
          {reason.happened}
        </span>
      )}
      {node.metadata.prompt && (
        <span className={styles.prompt} dir="auto">
          {firstOf(node.metadata.prompt, MOST_PROMPT)}
        </span>
      )}
    </div>
  );
}

function ImageArea({ node }: { node: Node }) {
  const detail = useContext(DetailContext);
  const account = useContext(SessionContext)?.account.id;
  const isOwn = node.asset?.startsWith(`asset:${account}:`);
  const { url, hasFailed } = useImage(node.asset, node.width * detail);
  const board = useBoard();
  const isBefore = useSyncExternalStore(board.subscribe, () => board.getUi().before === node.id);
  const { url: before } = useImage(isBefore ? imageBefore(board, node) : undefined, node.width * detail);
  const alt = altOf(node);
  if (url !== undefined) {
    return (
      <>
        <img className={styles.image} src={before ?? url} alt={before === undefined ? alt : "Before"} aria-hidden={alt === "" && before === undefined} decoding="async" draggable={false} />
        {before !== undefined && <span className={styles.before}>Before</span>}
      </>
    );
  }
  return (
    <div className={styles.slot}>
      <Icon name="image" size={28} />
      {hasFailed && <span>{isOwn ? "This image cannot be shown" : "Only its owner can see this image"}</span>}
    </div>
  );
}

/** What people think of an image. The name of the node says it, too. */
function MarksAt({ node }: { node: Node }) {
  const { isFavorite, rating, label } = marksOf(node);
  if (!isFavorite && rating === 0 && !label) return null;
  return (
    <span className={styles.marks} data-mark aria-hidden="true" title="Everybody on this canvas sees this">
      {isFavorite && <Icon name="heart" size={14} />}
      {rating > 0 && "★".repeat(rating)}
      {label && <i data-label={label} />}
    </span>
  );
}

/** A picture on the board, and its title below. Its outline and handles are those of the picture. */
function Card({ data: { node, editing, isResizable, number }, selected, children }: Pick<Props, "data" | "selected"> & { children: ReactNode }) {
  const [isHovered, setIsHovered] = useState(false);
  const status = openStatus(node);
  const isWorking = node.asset !== undefined && status !== undefined && !isOver(status);
  return (
    <div className={styles.card} data-kind={node.type} data-empty={node.asset === undefined || undefined} data-selected={selected || undefined} onMouseEnter={() => setIsHovered(true)} onMouseLeave={() => setIsHovered(false)}>
      <div className={styles.picture} style={{ bottom: captionOf(node) }}>
        <div className={styles.area}>{children}</div>
        {node.asset !== undefined && <MarksAt node={node} />}
        {isWorking && (
          <span className={styles.pill}>
            <span className={styles.spinner} />
            <NodeStatus node={node} status={status} />
          </span>
        )}
        {isResizable && (node.asset === undefined ? <Resizer node={node} /> : <PictureResizer node={node} asset={node.asset} />)}
        <Handles />
      </div>
      <Caption node={node} isEditing={editing === "title"} number={number} isHovered={isHovered} />
    </div>
  );
}

const ImageNode = memo(({ data, selected }: Props) => (
  <Card data={data} selected={selected}>
    {data.node.asset === undefined ? <Slot node={data.node} icon="image" /> : <ImageArea node={data.node} />}
  </Card>
));

const VideoNode = memo(({ data, selected }: Props) => (
  <Card data={data} selected={selected}>
    <VideoContent node={data.node} />
  </Card>
));

function VideoContent({ node }: { node: Node }) {
  const detail = useContext(DetailContext);
  const video = videoOf(node);
  const slot = <Slot node={node} icon="video" />;
  if (node.asset !== undefined) return <StoredVideo node={node} asset={node.asset} pixels={node.width * detail} />;
  return video ? <VideoArea node={node} video={video} others={slot} /> : slot;
}

const WritingHint = () => <span className={styles.hint}>{useIsTouch() ? "Tap twice to write" : "Double-click to write"}</span>;

const NoteNode = memo(({ data: { node, editing, isResizable }, selected }: Props) => {
  const { canChange } = useBoard();
  const { content = "", color, textAlign } = node.metadata;
  const isSticky = node.type === "sticky";
  const size = letterSize(node);
  const hasTitle = editing === "title" || (node.title !== "" && !/^(text|sticky|note)$/i.test(node.title));
  return (
    <div
      className={styles.note}
      title={node.ref}
      data-kind={node.type}
      data-colored={color !== undefined || undefined}
      data-selected={selected || undefined}
      style={{ ...(color && (isSticky ? noteColors : textColors)(color)), textAlign: textAlign ?? "start", "--size": size } as CSSProperties}
    >
      {isResizable && <Resizer node={node} />}
      {hasTitle && (
        <div className={styles.noteTitle} dir="auto" data-yields={(content !== "" && editing !== "title") || undefined}>
          {editing === "title" ? <TextField id={node.id} field="title" value={node.title} label="Title" className={styles.field} /> : node.title}
        </div>
      )}
      {editing === "content" ? (
        <TextField id={node.id} field="content" value={content} label={`Text of ${node.title || "the node"}`} className={styles.text} lettersOf={letterSize} />
      ) : (
        <p className={styles.content} dir="auto">
          {content || (canChange && <WritingHint />)}
        </p>
      )}
      {node.metadata.createdBy === "agent" && (
        <span className={styles.mark} data-mark style={color ? { color: "inherit" } : undefined} title="Made by an agent">
          <Icon name="agent" size={13} />
        </span>
      )}
      <Handles />
    </div>
  );
});

const SectionNode = memo(({ data: { node, editing, isResizable }, selected }: Props) => {
  const board = useBoard();
  return (
    <div className={styles.section} data-selected={selected || undefined} style={node.metadata.color ? { borderColor: node.metadata.color } : undefined}>
      {isResizable && <Resizer node={node} />}
      <div
        className={styles.sectionHead}
        data-title
        title={node.ref}
        dir="auto"
        style={{ "--size": Math.min(node.metadata.fontSize ?? 0, node.height / 2) } as CSSProperties}
        onDoubleClick={(event) => (event.stopPropagation(), board.edit(node.id, "title"))}
      >
        {editing === "title" ? (
          <TextField id={node.id} field="title" value={node.title} label="Title of the Section" className={styles.field} />
        ) : (
          node.title || "Section"
        )}
      </div>
      {node.metadata.content && (
        <p className={styles.sectionText} dir="auto">
          {node.metadata.content}
        </p>
      )}
      <Handles />
    </div>
  );
});

export const nodeTypes = { image: ImageNode, video: VideoNode, text: NoteNode, sticky: NoteNode, section: SectionNode };
export const typeOf = (node: Node): keyof typeof nodeTypes => (isSection(node) ? "section" : node.type);
