/** The nodes of the board, as React Flow renders them. */
import { Handle, type Node as FlowNode, type NodeProps, NodeResizer, Position } from "@xyflow/react";
import { memo, type ReactNode, useContext, useState } from "react";
import { altOf } from "../alt.ts";
import { SessionContext } from "../session.ts";
import { isSection, type Node } from "../sync/graph.ts";
import { Icon } from "../ui/parts.tsx";
import { explained, isOver, statusOf } from "../work.ts";
import { noteColors, textColors } from "./colors.ts";
import { DetailContext, useBoard } from "./context.ts";
import { useFailure } from "./failure.ts";
import { isEmptySlot, stateId, statusAt } from "./gestures.ts";
import { useImage } from "./images.ts";
import { marksOf } from "./marks.ts";
import styles from "./nodes.module.css";
import { TextField } from "./text.tsx";
import { StoredVideo, VideoArea } from "./video.tsx";
import { videoOf } from "./videos.ts";
import { NodeStatus } from "./waiting.tsx";

export type BoardNode = FlowNode<{ node: Node; editing: "content" | "title" | undefined; isResizable: boolean }>;
type Props = NodeProps<BoardNode>;

function Handles() {
  return (
    <>
      <Handle type="target" position={Position.Left} className={styles.handle} />
      <Handle type="source" position={Position.Right} className={styles.handle} />
    </>
  );
}

function Resizer({ node, keepsRatio = false }: { node: Node; keepsRatio?: boolean }) {
  const board = useBoard();
  return (
    <NodeResizer
      isVisible
      keepAspectRatio={keepsRatio}
      minWidth={24}
      minHeight={24}
      handleClassName={styles.corner ?? ""}
      lineClassName={styles.edge ?? ""}
      onResizeStart={(_, box) => board.set({ resize: { id: node.id, box } })}
      // Escape ends a resize before the pointer does.
      onResize={(_, { x, y, width, height }) => board.getUi().resize && board.set({ resize: { id: node.id, box: { x, y, width, height } } })}
      onResizeEnd={(_, box) => board.getUi().resize && board.resize(node.id, box)}
    />
  );
}

function Caption({ node, isEditing }: { node: Node; isEditing: boolean }) {
  const board = useBoard();
  return (
    <div className={styles.caption}>
      {isEditing ? (
        <TextField id={node.id} field="title" value={node.title} label="Title" className={styles.field} />
      ) : (
        <span className={styles.title} dir="auto" onDoubleClick={(event) => (event.stopPropagation(), board.edit(node.id, "title"))}>
          {node.title}
        </span>
      )}
      {node.metadata.createdBy === "agent" && (
        <span className={styles.agent} title="Made by an agent">
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
  const empty = node.metadata.placeholder ? "Placeholder" : icon === "video" ? "Empty video" : "Empty slot";
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
      {isWorking ? <span className={styles.spinner} /> : <Icon name={status === "failed" ? "finding" : icon} size={28} />}
      <span>{isTarget && isOpen ? "Drop to fill it" : label}</span>
      {reason && (
        <span id={stateId(node.id)} className={styles.reason}>
          {reason.happened}
        </span>
      )}
      {node.metadata.prompt && (
        <span className={styles.prompt} dir="auto">
          {node.metadata.prompt}
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
  const alt = altOf(node);
  if (url !== undefined) return <img className={styles.image} src={url} alt={alt} aria-hidden={alt === ""} decoding="async" draggable={false} />;
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
    <span className={styles.marks} aria-hidden="true" title="Everybody on this canvas sees this">
      {isFavorite && <Icon name="heart" size={14} />}
      {rating > 0 && "★".repeat(rating)}
      {label && <i data-label={label} />}
    </span>
  );
}

function Card({ node, editing, selected, isResizable, children }: { node: Node; editing: Props["data"]["editing"]; selected: boolean; isResizable: boolean; children: ReactNode }) {
  const status = openStatus(node);
  const isWorking = node.asset !== undefined && status !== undefined && !isOver(status);
  return (
    <div className={styles.card} data-kind={node.type} data-selected={selected || undefined}>
      {isResizable && <Resizer node={node} keepsRatio={node.asset !== undefined} />}
      <div className={styles.area}>{children}</div>
      {node.asset !== undefined && <MarksAt node={node} />}
      {isWorking && (
        <span className={styles.pill}>
          <span className={styles.spinner} />
          <NodeStatus node={node} status={status} />
        </span>
      )}
      <Caption node={node} isEditing={editing === "title"} />
      <Handles />
    </div>
  );
}

const ImageNode = memo(({ data: { node, editing, isResizable }, selected }: Props) => (
  <Card node={node} editing={editing} selected={selected} isResizable={isResizable}>
    {node.asset === undefined ? <Slot node={node} icon="image" /> : <ImageArea node={node} />}
  </Card>
));

const VideoNode = memo(({ data: { node, editing, isResizable }, selected }: Props) => (
  <Card node={node} editing={editing} selected={selected} isResizable={isResizable}>
    <VideoContent node={node} />
  </Card>
));

function VideoContent({ node }: { node: Node }) {
  const detail = useContext(DetailContext);
  const video = videoOf(node);
  const slot = <Slot node={node} icon="video" />;
  if (node.asset !== undefined) return <StoredVideo node={node} asset={node.asset} pixels={node.width * detail} />;
  return video ? <VideoArea node={node} video={video} others={slot} /> : slot;
}

/** The largest size at which a note's text fits, as the service draws it. */
export function noteSize({ width, height, metadata: { content = "", fontSize } }: Node): number {
  if (fontSize !== undefined) return fontSize;
  const area = (width - 36) * (height - 60);
  const lines = content.split("\n").length;
  return [26, 21, 17, 14].find((size) => content.length * size * size * 0.8 <= area && lines * size * 1.42 <= height - 60) ?? 12;
}

const NoteNode = memo(({ data: { node, editing, isResizable }, selected }: Props) => {
  const { canChange } = useBoard();
  const { content = "", color, textAlign, fontSize } = node.metadata;
  const isSticky = node.type === "sticky";
  const size = isSticky ? noteSize(node) : (fontSize ?? 15);
  const hasTitle = editing === "title" || (node.title !== "" && !/^(text|sticky|note)$/i.test(node.title));
  return (
    <div
      className={styles.note}
      data-kind={node.type}
      data-colored={color !== undefined || undefined}
      data-selected={selected || undefined}
      style={{ ...(color && (isSticky ? noteColors : textColors)(color)), textAlign: textAlign ?? "start" }}
    >
      {isResizable && <Resizer node={node} />}
      {hasTitle && (
        <div className={styles.noteTitle}>
          {editing === "title" ? <TextField id={node.id} field="title" value={node.title} label="Title" className={styles.field} /> : <span dir="auto">{node.title}</span>}
        </div>
      )}
      {editing === "content" ? (
        <TextField id={node.id} field="content" value={content} label={`Text of ${node.title || "the node"}`} className={styles.text} fontSize={size} />
      ) : (
        <p className={styles.content} dir="auto" style={{ fontSize: size }}>
          {content || (canChange && <span className={styles.hint}>Double-click to write</span>)}
        </p>
      )}
      {node.metadata.createdBy === "agent" && (
        <span className={styles.mark} style={color ? { color: "inherit" } : undefined} title="Made by an agent">
          <Icon name="agent" size={13} />
        </span>
      )}
      <Handles />
    </div>
  );
});

const SectionNode = memo(({ data: { node, editing, isResizable }, selected }: Props) => {
  const board = useBoard();
  const size = Math.min(node.metadata.fontSize ?? 28, node.height / 2);
  return (
    <div className={styles.section} data-selected={selected || undefined} style={node.metadata.color ? { borderColor: node.metadata.color } : undefined}>
      {isResizable && <Resizer node={node} />}
      <div className={styles.sectionHead} style={{ fontSize: size }} onDoubleClick={(event) => (event.stopPropagation(), board.edit(node.id, "title"))}>
        {editing === "title" ? (
          <TextField id={node.id} field="title" value={node.title} label="Title of the Section" className={styles.field} fontSize={size} />
        ) : (
          <span dir="auto">{node.title || "Section"}</span>
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
