/** The Prompt: makes, edits and varies images, and makes videos, where they will be. In the panel Make, the same with all settings. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type KeyboardEvent, type ReactNode, useEffect, useEffectEvent, useId, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { Link } from "wouter";
import { api, type Model } from "../api.ts";
import type { Asset } from "../assets.ts";
import { Problem } from "../errors.ts";
import { count as counted, number, priceOf } from "../format.ts";
import { upload } from "../library/upload.ts";
import { Unanswered } from "../library/unanswered.tsx";
import { useSession } from "../session.ts";
import { type Graph, isSection, type Node } from "../sync/graph.ts";
import { Button, Icon, messageOf } from "../ui/parts.tsx";
import { QueueHint } from "../ui/queues.tsx";
import { isNarrow, useIsNarrow, useIsTouch } from "../ui/screen.ts";
import type { Box } from "../view.ts";
import { payerOf, termsOf } from "../words.ts";
import { explained, isOver, statusOf } from "../work.ts";
import { ASSET, draggedAsset } from "./dragged.ts";
import { itemsOf } from "./bar.ts";
import { MOST_RESULTS, startBatch, TOO_MANY } from "./batch.ts";
import type { Board, Ui } from "./board.ts";
import type { Camera } from "./camera.ts";
import { useFailure } from "./failure.ts";
import { statusAt } from "./gestures.ts";
import { referencesTo, takesMask } from "./making.ts";
import { saveMask, shareOf } from "./masking.ts";
import { Chips, Select } from "./prompt-chips.tsx";
import { Field } from "./prompt-field.tsx";
import styles from "./prompt.module.css";
import {
  BAR,
  type Chip,
  choose,
  closePrompt,
  currentSubject,
  followSelection,
  type Form,
  formOf,
  GAP,
  isPlace,
  keyOf,
  type Mode,
  MODES,
  panelSubject,
  placePrompt,
  referencesOf,
  shownSubject,
  store,
  stored,
  type Subject,
  write,
} from "./prompting.ts";
import { makeImages, makeVideo, planImages } from "./runs.ts";
import { captionOf } from "./shapes.ts";
import { boundsOf, boxOf, touches } from "./spatial.ts";
import { closeStage, forgetStage, openStage } from "./stage.ts";
import { NodeStatus } from "./waiting.tsx";

/** The width of the transition at the edge of a mask, in pixels of the image. */
const FEATHER = 8;
const MOST_FEATHER = 64;
const NO_SCOPE = "This session cannot make images or videos: its token does not allow it.";

interface Props {
  board: Board;
  canvas: string;
  graph: Graph;
  ui: Ui;
}

const onLine = (listener: () => void): (() => void) => {
  const stop = new AbortController();
  for (const type of ["online", "offline"]) addEventListener(type, listener, { signal: stop.signal });
  return () => stop.abort();
};
const useIsOnline = (): boolean => useSyncExternalStore(onLine, () => navigator.onLine);

function useKinds(): { image: boolean; video: boolean } {
  const { scopes } = useSession().session;
  return { image: scopes.includes("image:generate"), video: scopes.includes("video:generate") };
}

/** The Prompt on the board. */
export function PromptLayer({ camera, ...props }: Props & { camera: Camera }) {
  const { board, canvas, graph, ui } = props;
  const { image, video } = useKinds();
  const isPhone = useIsNarrow();
  const subject = shownSubject(graph, ui);
  useLayoutEffect(() => board.set({ written: { ...stored(canvas), ...board.getUi().written } }), [board, canvas]);
  const { written } = ui;
  useEffect(() => store(canvas, written, board.engine.real), [board, canvas, written]);
  const opened = ui.panel === "make" ? undefined : ui.prompt?.opened;
  // If there is no field, nothing takes the keyboard.
  useEffect(() => {
    const { prompt } = board.getUi();
    if (opened !== undefined && prompt?.opened === opened) board.set({ prompt: { ...prompt, opened: undefined } });
  }, [board, opened]);
  // There, it is a sheet. On the Stage, it is below the image.
  if (isPhone || ui.stage || !subject || (!image && !video && subject.ids.length === 0 && !ui.prompt)) return null;
  return <OnBoard key={keyOf(subject)} {...props} camera={camera} subject={subject} />;
}

function OnBoard({ camera, subject, ...props }: Props & { camera: Camera; subject: Subject }) {
  const { board, graph, ui } = props;
  const frame = useRef<HTMLDivElement>(null);
  const [isOver, setIsOver] = useState(false);
  const anchors = [...ui.selection].flatMap((id) => graph.nodes.get(id) ?? []);
  const [node] = anchors.length === 1 ? anchors : [];
  const add = useAdding(props);
  const isTouch = useIsTouch();
  const hasBar = itemsOf(board).length > 0;

  const onBoard = (box: Box): Box => {
    const { left, top, width, height } = camera.toBoard(box);
    return { x: left, y: top, width, height };
  };
  // Without a render: the view moves in each frame.
  useLayoutEffect(() => {
    const element = frame.current as HTMLDivElement;
    const others = [...graph.nodes.values()].filter((one) => !ui.selection.has(one.id) && !isSection(one)).map(boxOf);
    const heights = new Map<number, number>();
    const heightAt = (width: number) => {
      const known = heights.get(width);
      if (known !== undefined) return known;
      element.style.width = `${width}px`;
      heights.set(width, element.offsetHeight);
      return element.offsetHeight;
    };
    const place = () => {
      const bounds = boundsOf(anchors);
      const bar = hasBar ? (isTouch ? "bottom" : "above") : undefined;
      const caption = node && isPlace(node) ? captionOf(node) * camera.view.zoom : undefined;
      const covers = (own: Box) => others.some((other) => touches(own, onBoard(other)));
      const at = placePrompt(camera.screen, heightAt, bounds && onBoard(bounds), caption, bar, covers);
      element.style.width = `${at.width}px`;
      element.style.transform = `translate(${Math.round(at.left)}px, ${Math.round(at.top)}px)`;
      camera.placePrompt({ x: at.left, y: at.top, width: at.width, height: heightAt(at.width) });
    };
    place();
    const stop = camera.subscribe(place);
    const observer = new ResizeObserver(() => {
      if (element.offsetHeight === heights.get(Number.parseFloat(element.style.width))) return;
      heights.clear();
      place();
    });
    observer.observe(element);
    return () => {
      stop();
      observer.disconnect();
      camera.placePrompt(undefined);
    };
  });

  // It does not cover what it was opened for.
  const makeRoom = useEffectEvent(() => {
    const [box, own] = [boundsOf(anchors), camera.prompt];
    if (!box || !own || !ui.prompt || !touches(own, onBoard(box)) || (node && isPlace(node))) return;
    camera.makeRoom(box, hasBar && !isTouch ? BAR : 0, own.height + GAP);
  });
  useEffect(() => makeRoom(), []);

  /** Whether nodes are dragged over it. */
  const isUnder = (event: { clientX: number; clientY: number }) => {
    const { left, right, top, bottom } = (frame.current as HTMLDivElement).getBoundingClientRect();
    return event.clientX > left && event.clientX < right && event.clientY > top && event.clientY < bottom;
  };
  useEffect(() => {
    const stop = new AbortController();
    const dropped = (event: PointerEvent) => {
      const { drag } = board.getUi();
      if (!drag || !board.isDragging || !isUnder(event)) return;
      // They stay where they were.
      board.set({ drag: undefined });
      add(referencesTo([...drag.from.keys()].flatMap((id) => board.graph.nodes.get(id) ?? [])).map(({ asset, title, node }) => ({ asset, title, of: node?.id })));
    };
    addEventListener("pointerup", dropped, { capture: true, signal: stop.signal });
    return () => stop.abort();
  });

  return (
    <div
      ref={frame}
      className={styles.frame}
      data-prompt
      data-over={isOver || undefined}
      onDragOver={(event) => {
        event.preventDefault();
        setIsOver(true);
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        event.stopPropagation();
        setIsOver(false);
        const asset = draggedAsset(event.dataTransfer.getData(ASSET));
        if (asset) add([{ asset: asset.handle, title: asset.name }]);
        else void add.files([...event.dataTransfer.files]);
      }}
    >
      <Prompt {...props} subject={subject} node={node} />
    </div>
  );
}

/** The panel Make: the Prompt with all settings. */
export function Make(props: Omit<Props, "graph">) {
  const subject = panelSubject(props.ui);
  const [node] = subject.ids.length === 1 ? props.board.selected : [];
  return <Prompt key={keyOf(subject)} {...props} graph={props.board.graph} subject={subject} node={node} isPanel />;
}

/** The Prompt below a mask on the Stage. */
export function StagePrompt(props: Props) {
  const subject = currentSubject(props.board);
  return <Prompt key={keyOf(subject)} {...props} subject={subject} node={undefined} />;
}

/** Adds images to the Prompt that is shown. */
function useAdding({ board }: Pick<Props, "board">) {
  const queries = useQueryClient();
  const kinds = useKinds();
  const add = (more: Chip[]) => {
    const models = queries.getQueryData<Model[]>(["models", "all"]) ?? [];
    const { entries } = formOf(board.graph, currentSubject(board), board.getUi(), models, kinds);
    write(board, { chips: [...entries, ...more.filter(({ asset }) => !entries.some((one) => one.asset === asset))] });
  };
  const files = async (chosen: File[]) => {
    for (const file of chosen) {
      const asset = await upload(file).catch((error: unknown) => board.notify(messageOf(error)));
      if (asset) add([{ asset: asset.handle, title: asset.name }]);
    }
  };
  return Object.assign(add, { files });
}

interface PromptProps extends Props {
  subject: Subject;
  /** The node that is selected alone. */
  node: Node | undefined;
  isPanel?: boolean;
}

function Prompt(props: PromptProps) {
  const { board, node, isPanel = false, subject, ui } = props;
  const kinds = useKinds();
  const recipe = node && isPlace(node) ? node.metadata.recipe : undefined;
  const isWorking = node !== undefined && node.asset === undefined && statusAt(node) !== undefined && !isOver(statusAt(node) ?? "");
  // What was only clicked says how far it is. Where something is written, it goes on.
  const isAlone = isWorking && !isPanel && subject !== ui.prompt;
  if (!kinds.image && !kinds.video) return <p className={styles.sentence}>{NO_SCOPE}</p>;
  if (recipe && node) {
    return (
      <div className={styles.sentence}>
        <p>
          This place belongs to <bdi>“{recipe.name}”</bdi>.
        </p>
        <Button onClick={() => board.set({ panel: "recipes", prompt: undefined })}>Run it again…</Button>
      </div>
    );
  }
  return (
    <>
      {isWorking && <WorkRow node={node} />}
      {!isAlone && <PromptForm {...props} kinds={kinds} />}
    </>
  );
}

/** How far the work at a place is. The bar of the selection ends it. */
function WorkRow({ node }: { node: Node }) {
  const { job } = node.metadata;
  return (
    job && (
      <p className={styles.work} role="status">
        <NodeStatus node={node} status={job.status} />
      </p>
    )
  );
}

function PromptForm({ board, canvas, graph, ui, subject, node, isPanel = false, kinds }: PromptProps & { kinds: { image: boolean; video: boolean } }) {
  const queries = useQueryClient();
  const ids = useId();
  const models = useQuery({ queryKey: ["models", "all"], queryFn: ({ signal }) => api.allModels(signal), staleTime: 60_000 });
  const balance = useQuery({ queryKey: ["balance"], queryFn: ({ signal }) => api.balance(signal) });
  const [error, setError] = useState<unknown>();
  const end = useRef<HTMLDivElement>(null);
  // What is said moves the button that has the keyboard.
  useLayoutEffect(() => {
    if (isPanel && error !== undefined) end.current?.scrollIntoView({ block: "nearest" });
  }, [isPanel, error]);
  const [isStarting, setIsStarting] = useState(false);
  const isOnline = useIsOnline() && board.engine.getSnapshot().state !== "waiting";
  const failure = useFailure(node ?? NO_NODE);
  const form = useRef<HTMLFormElement>(null);
  const add = useAdding({ board });

  const stage = ui.stage?.tool === "mask" ? ui.stage : undefined;
  const shown = formOf(graph, subject, ui, (models.data ?? []).filter((one) => !stage || takesMask(one)), kinds);
  const { mode, modes, model, settings, price, draft, text, into, each, isEach, total, masked } = shown;
  const pixels = stage && queries.getQueryData<Asset>(["asset", stage.asset]);
  const isPainted = useMemo(() => stage !== undefined && pixels !== undefined && shareOf(stage.marks, pixels) > 0, [stage, pixels]);
  const isElsewhere = stage !== undefined && model !== undefined && masked !== stage.asset;
  const problem = isElsewhere ? "The mask is of another image: make it the first one" : shown.problem;
  const first = shown.chips[0]?.node ?? board.selected[0];
  const status = node && node.asset === undefined ? statusAt(node) : undefined;
  const hasFailed = status !== undefined && status !== "succeeded" && isOver(status);
  const isPoor = price > 0 && balance.data !== undefined && balance.data < price && (settings.cap ?? "").trim() === "";
  const lasting = isPanel && (subject.isKept === true || draft !== undefined);

  async function start(most?: number) {
    if (isStarting || !model) return;
    setIsStarting(true);
    setError(undefined);
    // What it is made from stays for the next ones.
    write(board, { chips: shown.entries });
    const cap = (settings.cap ?? "").trim();
    const maxCredits = most ?? (cap === "" ? undefined : Number(cap));
    const among = (name: string, value = "") => (shown.options(name).includes(value) ? value : "");
    const references = referencesOf(shown);
    try {
      if (mode === "video") {
        await makeVideo(board, canvas, {
          model,
          prompt: shown.prompt,
          frames: references.flatMap(({ use, ...reference }) => (use ? [{ use, reference }] : [])),
          source: text,
          target: into[0],
          beside: shown.beside,
          seconds: Number(among("durationSeconds", settings.seconds)) || undefined,
          ratio: among("aspectRatio", settings.ratio),
          resolution: among("resolution", settings.resolution),
          hasAudio: shown.hasAudio && settings.audio ? settings.audio === "true" : undefined,
          maxCredits,
        });
      } else {
        const made = {
          operation: mode,
          model,
          prompt: shown.prompt,
          elements: [...new Set([...shown.earlier, ...shown.elements.map(({ versionHandle }) => versionHandle)])],
          sources: text ? [text] : [],
          size: among("size", settings.size),
          quality: among("quality", settings.quality),
          count: settings.count ?? 1,
          beside: shown.beside,
        };
        const guides = references.map(({ use: _, ...reference }) => reference);
        if (isEach) {
          const shared = guides.filter(({ asset }) => !each.includes(asset));
          const most = maxCredits === undefined ? undefined : Math.floor(maxCredits / each.length);
          const plans = guides.filter(({ asset }) => each.includes(asset)).map((own) => planImages(board, canvas, { ...made, references: [own, ...shared], into: [], maxCredits: most }));
          startBatch(board, `${MODES.find(([name]) => name === mode)?.[1]}: ${counted(each.length, "image")}`, plans);
          setIsStarting(false);
          return;
        }
        const mask = stage && pixels ? await saveMask(canvas, stage.marks, pixels) : shown.earlierMask;
        if (stage) closeStage(board);
        await makeImages(board, canvas, {
          mask: mask === undefined ? undefined : { handle: mask, feather: settings.feather ?? FEATHER, isExact: !settings.isLoose },
          ...made,
          references: guides,
          into,
          maxCredits,
        });
        if (stage) forgetStage(stage);
      }
      // The sheet covers the place where the result is made.
      if (isNarrow()) board.closePanel();
    } catch (error) {
      const reopen = () => {
        board.select(subject.selection);
        board.set({ stage, prompt: subject });
      };
      if (stage && !isPanel && !board.getUi().stage) board.notify(`Edit: ${whyOf(error)}`, { label: "Open it again", run: reopen });
      else setError(error);
      if (error instanceof Problem && error.creditCost !== undefined) void queries.invalidateQueries({ queryKey: ["models"] });
    }
    setIsStarting(false);
    void queries.invalidateQueries({ queryKey: ["balance"] });
  }

  function type(event: KeyboardEvent) {
    const { key, nativeEvent } = event;
    if (isPanel) return;
    // The keys of the board are for the board.
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
    if (key !== "Escape" || nativeEvent.isComposing || event.defaultPrevented) return;
    event.preventDefault();
    if (stage) return closeStage(board);
    closePrompt(board);
    board.surface?.focus(node?.id ?? subject.ids[0]);
  }

  return (
    <form
      ref={form}
      className={styles.prompt}
      data-panel-form={isPanel || undefined}
      aria-label={node ? `Make for ${node.title || "the selection"}` : "Make"}
      onKeyDown={type}
      onSubmit={(event) => {
        event.preventDefault();
        if (!isPoor && isOnline && total <= MOST_RESULTS && !problem && (!stage || isPainted)) void start();
      }}
    >
      {draft && isPanel && (
        <Row>
          <p>
            {draft.into.length > 0 ? "Another attempt at" : "Again, like"} <bdi>“{draft.of}”</bdi>
            {shown.isModelGone && `. Its model, ${draft.model}, is not offered now: choose another one`}.
          </p>
          <Button onClick={() => board.set({ prompt: undefined })}>Start afresh</Button>
        </Row>
      )}
      {hasFailed && !isPanel && (
        <Row isBad>
          <p>{(failure && explained(failure)?.happened) ?? statusOf(status)}</p>
          <Button type="submit">Try again</Button>
        </Row>
      )}
      <Chips board={board} canvas={canvas} form={shown} add={add} selected={isPanel ? referencesTo(board.selected).map(({ asset, title, node }) => ({ asset, title, of: node?.id })) : []} />
      <Field {...{ board, graph, ui, subject, form: shown, isPanel, add }} describedBy={`${ids}-price`} />
      {isPanel && !stage && masked !== undefined && first && (
        <Row>
          <p>{shown.earlierMask === undefined ? "The whole image may change." : "With its mask, as before."}</p>
          <Button onClick={() => paint(board, first.id, masked)}>Paint what may change</Button>
        </Row>
      )}
      {lasting && !draft && (
        <Row>
          <p>This stays, whatever is selected.</p>
          <Button onClick={() => followSelection(board)}>Use the selection</Button>
        </Row>
      )}
      {isPanel && shown.earlier.length > 0 && <p className={styles.hint}>With {counted(shown.earlier.length, "Element")}, as before.</p>}
      <div className={styles.line}>
        {modes.length > 1 && !stage && (
          <Select label="What to make" value={mode} set={(mode) => write(board, { mode: mode as Mode })}>
            {MODES.filter(([name]) => modes.includes(name)).map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </Select>
        )}
        <ModelChoice board={board} form={shown} query={models} />
        {mode === "video" ? (
          <>
            <Choice label="Seconds" unit=" s" value={settings.seconds} options={shown.options("durationSeconds")} set={(seconds) => choose(board, { seconds })} />
            <Choice label="Aspect ratio" value={settings.ratio} options={shown.options("aspectRatio")} set={(ratio) => choose(board, { ratio })} />
            {isPanel && <Choice label="Resolution" value={settings.resolution} options={shown.options("resolution")} set={(resolution) => choose(board, { resolution })} />}
            {isPanel && shown.hasAudio && (
              <Select label="Sound" value={settings.audio ?? ""} set={(audio) => choose(board, { audio })}>
                <option value="">Sound: auto</option>
                <option value="true">with sound</option>
                <option value="false">without sound</option>
              </Select>
            )}
          </>
        ) : (
          <>
            <Choice label="Size" value={settings.size} options={shown.options("size")} set={(size) => choose(board, { size })} />
            {isPanel && <Choice label="Quality" value={settings.quality} options={shown.options("quality")} set={(quality) => choose(board, { quality })} />}
            <fieldset className={styles.counts}>
              <legend className="unseen">How many</legend>
              {[1, 2, 3, 4].map((one) => (
                <label key={one}>
                  <input type="radio" name={`${ids}-count`} aria-label={String(one)} checked={settings.count === one} onChange={() => choose(board, { count: one })} />
                  <span aria-hidden="true">×{one}</span>
                </label>
              ))}
            </fieldset>
          </>
        )}
        {stage && (
          <>
            <label className={styles.cap}>
              <span>Feather</span>
              <input type="number" min={0} max={MOST_FEATHER} title="The width of the transition at the edge of the mask, in pixels" value={settings.feather ?? FEATHER} onChange={({ target }) => choose(board, { feather: Math.min(Math.max(Math.round(target.valueAsNumber || 0), 0), MOST_FEATHER) })} />
            </label>
            <label className={styles.cap}>
              <input type="checkbox" checked={!settings.isLoose} onChange={({ target }) => choose(board, { isLoose: !target.checked })} />
              <span>Keep the rest exactly</span>
            </label>
          </>
        )}
        {!isPanel && (
          <Button look="quiet" className={styles.more} aria-label="All settings" title="All settings" onClick={() => board.set({ panel: "make", prompt: { ...subject, opened: performance.now() } })}>
            <Icon name="sliders" size={16} />
          </Button>
        )}
      </div>
      {isPanel && (
        <label className={styles.cap}>
          <span>Spend at most</span>
          <input type="number" min={0} step={1} inputMode="numeric" placeholder={String(price)} value={settings.cap ?? ""} onChange={({ target }) => choose(board, { cap: target.value })} />
          <span>credits</span>
        </label>
      )}
      {isPanel && shown.prompt !== shown.typed.trim() && shown.typed.trim() !== "" && (
        <p className={styles.hint} dir="auto">
          Sent as: {shown.prompt}
        </p>
      )}
      {each.length > 0 && (
        <fieldset className={`${styles.counts} ${styles.each}`}>
          <legend className="unseen">What is made of {counted(each.length, "image")}</legend>
          {([["All together", false], [`One for each (×${each.length})`, true]] as const).map(([label, value]) => (
            <label key={label}>
              <input type="radio" name={`${ids}-each`} checked={isEach === value} onChange={() => write(board, { isEach: value })} />
              <span>{label}</span>
            </label>
          ))}
        </fieldset>
      )}
      {total > MOST_RESULTS && <p className={styles.problem}>{TOO_MANY}.</p>}
      {problem !== undefined && <p className={styles.problem}>{problem}{problem.endsWith(".") ? "" : "."}</p>}
      {error !== undefined && (
        <div className={styles.problem} role="alert">
          <p>{whyOf(error)}</p>
          {error instanceof Problem && error.creditCost !== undefined && !isPoor && (
            <Button onClick={() => void start((error as Problem).creditCost)}>Make for {priceOf(error.creditCost)}</Button>
          )}
        </div>
      )}
      <Unanswered />
      <QueueHint queues={[mode === "video" ? "video" : "generation"]} />
      <div ref={end} className={styles.end}>
        <p id={`${ids}-price`} className={styles.hint}>
          {isPoor ? (
            <>
              Needs {priceOf(price)}, you have {number(balance.data ?? 0)}. <Link href="/settings/credit">Credit</Link>
            </>
          ) : stage && !isPainted ? (
            "Paint what may change first."
          ) : price > 0 && balance.data !== undefined ? (
            `${counted(balance.data, "credit")} left`
          ) : (
            model?.connectionId && `Paid with ${payerOf(model)}.`
          )}
        </p>
        <Button look="primary" type="submit" isBusy={isStarting} disabled={!model || isPoor || !isOnline || total > MOST_RESULTS || problem !== undefined || (stage && !isPainted)}>
          {isStarting ? "Starting…" : !isOnline ? "Waits for the connection" : `Make${total === 1 ? "" : ` ${total}`}${model ? ` · ${priceOf(price)}` : ""}`}
        </Button>
      </div>
      {isPanel && mode === "video" && (
        <p className={styles.hint}>
          {into[0] ? (
            <>
              Into <bdi>{into[0].title || "the selected video"}</bdi>.{into[0].asset !== undefined && " Its present video moves to its history."}
            </>
          ) : (
            "As a new video."
          )}{" "}
          The video stays on the canvas, and everybody who can see the canvas can play it.
        </p>
      )}
    </form>
  );
}

const whyOf = (error: unknown): string => (error instanceof Problem && error.fields[0] ? `${error.fields[0].field} ${error.fields[0].message}` : messageOf(error));

/** Opens the mask of an image on the Stage. A sheet would cover it. */
function paint(board: Board, id: string, asset: string): void {
  if (isNarrow()) board.set({ panel: undefined });
  openStage(board, "mask", { id, asset });
}

const NO_NODE = { type: "image", metadata: {} } as Node;

const Row = ({ isBad = false, children }: { isBad?: boolean; children: ReactNode }) => (
  <div className={styles.row} data-bad={isBad || undefined}>
    {children}
  </div>
);

/** One of the values that a model offers, or its default. */
function Choice({ label, value = "", unit = "", options, set }: { label: string; value?: string | undefined; unit?: string; options: string[]; set: (value: string) => void }) {
  if (options.length === 0) return null;
  const sorted = options.every((option) => Number.isFinite(Number(option))) ? options.toSorted((a, b) => Number(a) - Number(b)) : options;
  return (
    <Select label={label} value={options.includes(value) ? value : ""} set={set}>
      <option value="">{label}: auto</option>
      {sorted.map((option) => (
        <option key={option} value={option}>
          {option}
          {unit}
        </option>
      ))}
    </Select>
  );
}

function ModelChoice({ board, form, query }: { board: Board; form: Form; query: { data: Model[] | undefined; isError: boolean; refetch: () => unknown } }) {
  const { model, models, mode } = form;
  if (!query.data && query.isError) {
    return (
      <span className={styles.models} role="alert">
        The models cannot be loaded. <Button onClick={() => void query.refetch()}>Try again</Button>
      </span>
    );
  }
  if (!query.data) return <span className={styles.models}>Loading the models…</span>;
  if (!model) return <span className={styles.models}>{form.modes.length === 0 ? "No model that you can use does this." : "No model can be used with this session."}</span>;
  function set(id: string) {
    const next = models.find((one) => one.id === id);
    choose(board, mode === "video" ? { videoModel: id } : { imageModel: id });
    const able = next && mode !== "video" && !next.capabilities.some((one) => one === `image.${mode}`) ? MODES.find(([name]) => next.capabilities.some((one) => one === `image.${name}`)) : undefined;
    if (able) write(board, { mode: able[0] });
  }
  return (
    <Select label="Model" value={model.id} set={set}>
      {models.map(({ id, name, estimatedSeconds, beta, standIn, ...terms }) => (
        <option key={id} value={id}>
          {name} · {termsOf(terms)}
          {estimatedSeconds !== undefined && ` · ${estimatedSeconds} s`}
          {beta && " · beta"}
          {standIn && " · draft model"}
        </option>
      ))}
    </Select>
  );
}
