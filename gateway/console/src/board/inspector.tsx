/** What is known of the selection, and what can be made of it. */
import { useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { altOf } from "../alt.ts";
import type { Asset } from "../assets.ts";
import { type Action, api, fileUrl } from "../api.ts";
import { Problem } from "../errors.ts";
import { count, lowered, percent, priceOf } from "../format.ts";
import { Unanswered } from "../library/unanswered.tsx";
import { AiBadgeOf } from "../screens/ai-badge.tsx";
import { CancelDialog } from "../screens/cancel.tsx";
import { Reason } from "../screens/reason.tsx";
import { useSession } from "../session.ts";
import type { Node } from "../sync/graph.ts";
import { useDraft } from "../ui/hooks.ts";
import { Button, Failure, messageOf, Waiting } from "../ui/parts.tsx";
import { QueueHint } from "../ui/queues.tsx";
import { DRAFT } from "../words.ts";
import { isActive, isOver, nameOf, stateOf, statusOf, videoUrl } from "../work.ts";
import { attemptAt } from "./attempts.ts";
import { MOST_RESULTS, runOnEach, TOO_MANY, verbOf } from "./batch.ts";
import type { Board } from "./board.ts";
import { useFailure } from "./failure.ts";
import { type NodeVideo, videoOf } from "./videos.ts";
import { ActionPreview } from "./comparison.tsx";
import { Each } from "./each.tsx";
import { type Entries, entryOf, paramsOf, problemsOf } from "./forms.ts";
import { kindOf, statusAt } from "./gestures.ts";
import { InputField, LACKING } from "./input-field.tsx";
import styles from "./inspector.module.css";
import { MOST_ALT_TEXT } from "./limits.ts";
import { PALETTE, YELLOW } from "./colors.ts";
import type { ActionAttempt } from "./making.ts";
import { ParameterField } from "./parameter-field.tsx";
import { ProvenanceOf } from "./provenance.tsx";
import { needsPixels, relatedParams } from "./related.ts";
import { keepVideo, planAction, runAction } from "./runs.ts";
import { allParams, captionOf, pictureOf, resizedPicture, shapeOfAction } from "./shapes.ts";
import { useAsset } from "./images.ts";
import { entered, SLUGS } from "./stage.ts";
import { applyStage } from "./stage-run.ts";
import { useVideo, VideoPlayer } from "./video.tsx";
import { NodeStatus } from "./waiting.tsx";

interface InspectorProps {
  board: Board;
  canvas: string;
  nodes: Node[];
  /** The Action to begin with. */
  attempt: ActionAttempt | undefined;
}

export function Inspector({ board, canvas, nodes, attempt }: InspectorProps) {
  const [node] = nodes;
  const { action } = board.getUi();
  if (!node) return <p className="hint">Select something to see what it is and what can be made of it.</p>;
  const images = nodes.filter(({ asset, type }) => asset !== undefined && type !== "video");
  const video = videoOf(node);
  // An Action reads images, or one video.
  const videos = nodes.length === 1 ? nodes.filter(({ asset, type }) => asset !== undefined && type === "video") : [];
  return (
    <>
      {nodes.length === 1 ? board.canChange ? <Properties key={node.id} board={board} node={node} /> : <Facts node={node} /> : <p className="hint">{count(nodes.length, "thing")} selected</p>}
      {nodes.length === 1 && node.asset !== undefined && <AiBadgeOf key={node.asset} handle={node.asset} />}
      {board.canChange && <Colors board={board} nodes={nodes} />}
      {nodes.length === 1 && <Work board={board} node={node} />}
      {nodes.length === 1 && video && <Video key={video.job} board={board} canvas={canvas} node={node} video={video} />}
      {nodes.length === 1 && node.type === "video" && node.asset !== undefined && <StoredVideo key={node.asset} node={node} asset={node.asset} />}
      {nodes.length === 1 && <ProvenanceOf node={node} board={board} />}
      {board.canChange && images.length > 0 && <Actions key={attempt?.into ?? action} medium="image" board={board} canvas={canvas} sources={images} attempt={attempt} />}
      {board.canChange && videos.length > 0 && <Actions key={attempt?.into ?? action} medium="video" board={board} canvas={canvas} sources={videos} attempt={attempt} />}
    </>
  );
}

const NUMBERS = [
  ["X", "x"],
  ["Y", "y"],
  ["Width", "width"],
  ["Height", "height"],
] as const;

interface FieldProps {
  label: string;
  value: string;
  type: "text" | "number";
  /** `was`: the value that the text was typed on. */
  apply: (text: string, was: string) => void;
}

/** A field that is applied when it is left or on Enter. */
function Field({ label, value, type, apply }: FieldProps) {
  const draft = useDraft(value, apply);
  return (
    <label className={styles.field}>
      <span>{label}</span>
      <input
        type={type}
        dir="auto"
        maxLength={160}
        value={draft.text}
        onChange={({ target }) => draft.type(target.value)}
        onBlur={draft.end}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.nativeEvent.isComposing) draft.end();
          if (event.key !== "Escape" || !draft.isTyped) return;
          // It takes back what was typed, and does not also close the panel.
          event.stopPropagation();
          draft.cancel();
        }}
      />
    </label>
  );
}

function Properties({ board, node }: { board: Board; node: Node }) {
  const queries = useQueryClient();
  const { x, y } = node.position;
  const box = { x, y, width: node.width, height: node.height };
  const resize = (side: keyof typeof box, text: string) => {
    const number = Number(text);
    if (text.trim() === "" || !Number.isFinite(number) || Math.abs(number) > 1e7) return;
    if (side === "x" || side === "y") return board.move([node.id], { x: 0, y: 0, [side]: number - box[side] });
    if (node.asset === undefined) return board.resize(node.id, { ...box, [side]: number });
    // A picture is as high as shows it whole.
    const picture = queries.getQueryData<Asset>(["asset", node.asset]) ?? pictureOf(node);
    const across = side === "width" ? number : ((number - captionOf(node)) * picture.width) / picture.height;
    board.resize(node.id, resizedPicture(node, { ...box, width: across }, picture));
  };
  return (
    <section className={styles.group}>
      <Kind node={node} />
      <Field label="Title" type="text" value={node.title} apply={(text, was) => board.write(node.id, "title", text.slice(0, 160), was, board.newId())} />
      <div className={styles.numbers}>
        {NUMBERS.map(([label, side]) => (
          <Field key={side} label={label} type="number" value={String(box[side])} apply={(text) => resize(side, text)} />
        ))}
      </div>
      {isPicture(node) && <AltText board={board} node={node} />}
      {isPicture(node) && node.asset === undefined && <Placeholder board={board} node={node} />}
      <Content node={node} />
    </section>
  );
}

/** Its kind, who made it, and the ref by which agents and the command line name it. */
function Kind({ node }: { node: Node }) {
  const kind = kindOf(node);
  return (
    <h3>
      {kind[0]?.toUpperCase() + kind.slice(1)}
      {node.metadata.createdBy === "agent" && " by an agent"}
      {node.ref !== undefined && <code> {node.ref}</code>}
    </h3>
  );
}

const isPicture = ({ type }: Node): boolean => type === "image" || type === "video";

/** What a picture shows, for those who cannot see it. */
function AltText({ board, node }: { board: Board; node: Node }) {
  const { altText } = node.metadata;
  const isDecorative = altText === "";
  const draft = useDraft(altText ?? "", (text, was) => board.write(node.id, "altText", text.slice(0, MOST_ALT_TEXT), was, board.newId()));
  return (
    <>
      <label className={styles.field}>
        <span>Description, for those who cannot see it</span>
        <textarea
          rows={2}
          dir="auto"
          maxLength={MOST_ALT_TEXT}
          disabled={isDecorative}
          placeholder={isDecorative ? "" : altOf(node)}
          value={draft.text}
          onChange={({ target }) => draft.type(target.value)}
          onBlur={draft.end}
          onKeyDown={(event) => {
            if (event.key !== "Escape" || !draft.isTyped) return;
            event.stopPropagation();
            draft.cancel();
          }}
        />
      </label>
      <label className={styles.decorative}>
        <input
          type="checkbox"
          checked={isDecorative}
          onChange={({ target }) => {
            draft.cancel();
            board.setFields("Describe a picture", [node], { "metadata.altText": target.checked ? "" : null });
          }}
        />
        <span>It is decorative: it says nothing</span>
      </label>
    </>
  );
}

/** Whether a picture that shows nothing is to stay empty. A review asks for every other one. */
function Placeholder({ board, node }: { board: Board; node: Node }) {
  return (
    <label className={styles.decorative}>
      <input
        type="checkbox"
        checked={node.metadata.placeholder === true}
        onChange={({ target }) => board.setFields("Mark a placeholder", [node], { "metadata.placeholder": target.checked ? true : null })}
      />
      <span>It is a placeholder: it stays empty for now</span>
    </label>
  );
}

/** What those may read who may not change it. The text can be marked and copied. */
function Facts({ node }: { node: Node }) {
  const { title, position, width, height, metadata } = node;
  return (
    <section className={styles.group}>
      <Kind node={node} />
      <p dir="auto">{title || "Untitled"}</p>
      <p className="hint">
        {Math.round(width)} × {Math.round(height)} at {Math.round(position.x)}, {Math.round(position.y)}
      </p>
      {isPicture(node) && metadata.altText && <p dir="auto">{metadata.altText}</p>}
      <Content node={node} />
    </section>
  );
}

/** The whole text of a node. On the board it may be cut off. */
function Content({ node }: { node: Node }) {
  const { content } = node.metadata;
  return content ? (
    <blockquote className={styles.prompt} dir="auto">
      {content}
    </blockquote>
  ) : null;
}

function Colors({ board, nodes }: { board: Board; nodes: Node[] }) {
  const colored = nodes.filter((node) => node.type === "sticky");
  if (colored.length === 0) return null;
  return (
    <fieldset className={styles.colors}>
      <legend>Color</legend>
      {PALETTE.map(([name, color]) => (
        <button
          key={color}
          type="button"
          aria-label={name}
          title={name}
          aria-pressed={colored.every(({ metadata }) => (metadata.color ?? YELLOW) === color)}
          style={{ background: color }}
          onClick={() => board.setFields("Color a note", colored, { "metadata.color": color === YELLOW ? null : color })}
        />
      ))}
    </fieldset>
  );
}

/** The work that fills the node. */
function Work({ board, node }: { board: Board; node: Node }) {
  const { scopes } = useSession().session;
  const { job } = node.metadata;
  const failure = useFailure(node);
  // Of a video, who started it sees more.
  if (!job || statusAt(node) === "succeeded" || node.type === "video") return null;
  const attempt = attemptAt(board, [node], scopes);
  return (
    <section className={styles.group} aria-label="Work">
      <p className={styles.work}>
        <span>
          {nameOf({ kind: "image", operation: job.operation })}: {isOver(job.status) ? statusOf(job.status).toLowerCase() : <NodeStatus node={node} status={job.status} />}
        </span>
        {board.canChange && isActive(job.status) && <Button onClick={() => board.set({ dialog: "cancel" })}>Cancel</Button>}
      </p>
      {failure && <Reason failure={failure} />}
      {attempt && <Button onClick={attempt}>New attempt…</Button>}
    </section>
  );
}

/** The video of a video node: played, or how far it is. */
function Video({ board, canvas, node, video }: { board: Board; canvas: string; node: Node; video: NodeVideo }) {
  const { account, session } = useSession();
  const queries = useQueryClient();
  const [isCanceling, setIsCanceling] = useState(false);
  const [error, setError] = useState<unknown>();
  const isOwn = video.by === undefined || video.by === account.id;
  const found = useVideo(video);
  if (!found || found.state === "loading") return null;
  if (found.state === "hidden") return <p className="hint">{found.why}.</p>;
  const { job } = found;
  if (!job) return null;
  return (
    <section className={styles.group} aria-label="Video">
      <p className={styles.work}>
        <span>
          {job.model.name}: {lowered(stateOf(job))}
          {found.state === "making" && job.progress > 0 && `, ${percent(job.progress / 100)}`}
        </span>
        {board.canChange && found.state === "making" && <Button onClick={() => setIsCanceling(true)}>Cancel</Button>}
      </p>
      {found.state === "making" && job.progress > 0 && <progress aria-label="Progress of the video" max={100} value={job.progress} />}
      {found.state === "ready" && <VideoPlayer key={job.id} source={videoUrl(job.id)} alt={altOf(node)} className={styles.video} />}
      {job.failure && <Reason failure={job.failure} />}
      {board.canChange && found.state === "ended" && isOwn && session.scopes.includes("video:generate") && (
        <Button
          onClick={() => {
            board.set({ panel: "make", prompt: undefined });
          }}
        >
          New attempt…
        </Button>
      )}
      {board.canChange && found.state === "ready" && video.by !== undefined && (
        <>
          <p className="hint">Only you can play it, for 30 days after it was made. Kept on the canvas, it stays, and everybody who can see the canvas can play it.</p>
          <Button onClick={() => void keepVideo(board, canvas, node, job.id).catch(setError)}>Keep on the canvas</Button>
          {error !== undefined && <p className="hint">{messageOf(error)}</p>}
        </>
      )}
      <p className="hint">
        {priceOf(job.creditCost)}
        {job.standIn && ` · ${DRAFT.sentence}`}
      </p>
      <p className={styles.links}>
        {found.state === "ready" && (
          <a className={styles.download} href={videoUrl(job.id)} download>
            Download
          </a>
        )}
        <Link className={styles.download} href={`/runs?run=${encodeURIComponent(job.id)}`}>
          Its run
        </Link>
      </p>
      {isCanceling && (
        <CancelDialog
          runs={[{ handle: job.id, kind: "video", operation: "generate", creditCost: job.creditCost }]}
          hasTargets={video.by === undefined}
          close={() => setIsCanceling(false)}
          canceled={() => void queries.invalidateQueries({ queryKey: ["video", job.id] })}
        />
      )}
    </section>
  );
}

/** The video that a node shows, for everybody who can see the canvas. */
function StoredVideo({ node, asset }: { node: Node; asset: string }) {
  const { data } = useAsset(asset);
  return (
    <section className={styles.group} aria-label="Video">
      <VideoPlayer source={fileUrl(asset)} alt={altOf(node)} className={styles.video} />
      {data?.durationSeconds !== undefined && (
        <p className="hint">
          {data.durationSeconds} s{data.hasAudio === true && ", with sound"}
        </p>
      )}
    </section>
  );
}

interface ActionsProps {
  board: Board;
  canvas: string;
  sources: Node[];
  attempt: ActionAttempt | undefined;
}

function Actions({ medium, board, canvas, sources, attempt }: ActionsProps & { medium: "image" | "video" }) {
  const { stage, action: asked } = board.getUi();
  const [chosen, choose] = useState(attempt?.slug ?? asked ?? "");
  const slug = stage ? (SLUGS[stage.tool] ?? "") : chosen;
  const { data, error, refetch } = useQuery({ queryKey: ["actions", medium], queryFn: ({ signal }) => api.actions(medium, signal), staleTime: Infinity });
  if (error && !data) return <Failure title="The Actions cannot be loaded" error={error} retry={refetch} />;
  if (!data) return <Waiting label="Loading the Actions" />;
  const action = data.find((one) => one.slug === slug);
  return (
    <section className={styles.group}>
      <h3>Actions</h3>
      {attempt && (
        <div className={styles.draft}>
          <p>
            Another attempt at <bdi>“{attempt.of}”</bdi>.
          </p>
          <Button onClick={() => board.set({ attempt: undefined })}>Start afresh</Button>
        </div>
      )}
      <label className={styles.field}>
        <span>Make a new image</span>
        <select value={slug} disabled={stage !== undefined} onChange={({ target }) => choose(target.value)}>
          <option value="">Choose an Action…</option>
          {data.map(({ slug, title }) => (
            <option key={slug} value={slug}>
              {title}
            </option>
          ))}
        </select>
      </label>
      {action && <ActionForm key={action.slug} board={board} canvas={canvas} action={action} sources={sources} attempt={attempt} />}
    </section>
  );
}

/** The form of an Action. It runs on all images that are selected: each is the first input once, and what was chosen as the second one is it for all. */
function ActionForm({ board, canvas, action, sources: selected, attempt }: ActionsProps & { action: Action }) {
  // What is on the Stage has its entries there.
  const { stage } = board.getUi();
  const [own, setEntries] = useState<Entries>(attempt?.slug === action.slug ? attempt.entries : {});
  const entries = stage?.entries ?? own;
  const [second, setSecond] = useState("");
  const [shownAt, showAt] = useState(0);
  const [error, setError] = useState<unknown>();
  const [isStarting, setIsStarting] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const queries = useQueryClient();
  const { slug } = action;
  const needsSecond = action.inputs.length > 1;
  const others = needsSecond ? [...board.graph.nodes.values()].filter(({ id, asset, type }) => asset !== undefined && type !== "video" && (selected.length > 1 || id !== selected[0]?.id)) : [];
  const other = others.find(({ id }) => id === second) ?? (selected.length > 2 ? undefined : (selected[1] ?? others[0]));
  const nodes = needsSecond ? selected.filter(({ id }) => id !== other?.id) : selected;
  const isBatch = nodes.length > 1;
  const pixels = useQueries({
    queries: nodes.map(({ asset = "" }) => ({ queryKey: ["asset", asset], queryFn: ({ signal }: { signal: AbortSignal }) => api.asset(asset, signal), staleTime: Infinity, enabled: isBatch && needsPixels(slug) })),
  });
  const isReading = pixels.some(({ isLoading }) => isLoading);
  const sizeOf = (node: Node) => queries.getQueryData<Asset>(["asset", node.asset]) ?? pictureOf(node);
  const related = relatedParams(action, entries, nodes.map((node, index) => (pixels[index]?.isError ? undefined : sizeOf(node))), other ? [sizeOf(other)] : []);
  const possible = nodes.filter((_, index) => !related[index]?.isImpossible);
  const at = Math.min(shownAt, nodes.length - 1);
  const shown = nodes[at];
  const problems = error instanceof Problem ? problemsOf(error.fields) : {};

  // Opened for this Action, it begins at what has to be entered; after the panel has taken the keyboard.
  useEffect(() => {
    const isWanted = board.getUi().action === slug && !attempt;
    const timer = setTimeout(() => isWanted && form.current?.querySelector<HTMLElement>("textarea:required, input:required:not([type=radio])")?.focus());
    return () => clearTimeout(timer);
  }, [board, slug, attempt]);

  const sourcesOf = (node: Node) => [node, ...(needsSecond && other ? [other] : [])];

  async function start(event: FormEvent) {
    event.preventDefault();
    const lacking = event.currentTarget.querySelector<HTMLElement>(LACKING);
    if (lacking) return lacking.focus();
    const pixelsOnStage = stage && queries.getQueryData<Asset>(["asset", stage.asset]);
    if (pixelsOnStage) return applyStage(board, canvas, queries.getQueryData<Action[]>(["actions", "image"]) ?? [], pixelsOnStage);
    setError(undefined);
    if (isBatch) {
      const each = nodes.flatMap((node, index) => {
        const one = related[index];
        return one && !one.isImpossible ? [{ sources: sourcesOf(node), params: one.params, shape: one.shape }] : [];
      });
      if (runOnEach(board, canvas, action, action.title, each) !== undefined) board.set({ action: undefined });
      return;
    }
    setIsStarting(true);
    try {
      const sources = nodes.flatMap(sourcesOf);
      const shape = shapeOfAction(slug, allParams(action, entries), sources.map(sizeOf));
      await runAction(board, action.title, planAction(board, canvas, action, sources, paramsOf(action, entries), shape), attempt?.into);
      board.set({ attempt: undefined, action: undefined });
    } catch (error) {
      setError(error);
    }
    setIsStarting(false);
  }

  const entriesAt = isBatch && related[at]?.isRelated ? { ...entries, ...Object.fromEntries(Object.entries(related[at].params).map(([name, value]) => [name, String(value)])) } : entries;
  const what = possible.length < nodes.length && possible.length > 0 ? `${possible.length} of ${nodes.length}` : count(nodes.length, "image");
  return (
    <form ref={form} className={styles.form} onSubmit={(event) => void start(event)}>
      <p className="hint">{action.summary}</p>
      {!stage && shown?.asset !== undefined && action.medium === "image" && <ActionPreview key={shown.asset} action={action} entries={entriesAt} asset={shown.asset} />}
      {isBatch && <Each nodes={nodes} related={isReading ? [] : related} at={at} show={showAt} />}
      {needsSecond && !stage && <InputField label={action.inputs[1]?.title ?? "Image"} choices={others} hint={selected.length > 2 ? "Choose one…" : undefined} value={other?.id ?? ""} set={setSecond} />}
      {action.parameters.map((parameter) => (
        <ParameterField
          key={parameter.id}
          parameter={parameter}
          value={entries[parameter.id] ?? entryOf(parameter)}
          problem={problems[parameter.id]}
          set={(value) => (stage ? board.set({ stage: entered(stage, parameter.id, value) }) : setEntries((entries) => ({ ...entries, [parameter.id]: value })))}
        />
      ))}
      {nodes.length > MOST_RESULTS && <p className="problem">{TOO_MANY}.</p>}
      <Unanswered />
      <QueueHint queues={["image"]} />
      <Button
        look="primary"
        type="submit"
        isBusy={isStarting}
        disabled={(needsSecond && !stage && others.length === 0) || nodes.length > MOST_RESULTS || (isBatch && (isReading || possible.length === 0))}
      >
        {isStarting ? "Starting…" : stage ? "Apply" : isBatch ? `${verbOf(slug)} ${what}` : attempt ? "Run again" : "Apply"}
      </Button>
      {/* Below the button, which has the keyboard and stays in view. */}
      {error !== undefined && (
        <p className="problem" role="alert">
          {problems[""] ?? (Object.keys(problems).length > 0 ? "Some values are not possible." : messageOf(error))}
        </p>
      )}
    </form>
  );
}
