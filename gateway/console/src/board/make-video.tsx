/** Makes a video with a model: from a prompt, and from frames or references among the selected images. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, type Model } from "../api.ts";
import { firstOf } from "../format.ts";
import type { Graph, Node, Purpose, Role } from "../sync/graph.ts";
import { Failure, Waiting } from "../ui/parts.tsx";
import type { Board, Ui } from "./board.ts";
import { Choice, ModelField, PromptField, Start, Stays } from "./fields.tsx";
import styles from "./inspector.module.css";
import { type FrameUse, frameProblem, MOST_PROMPT, optionsOf, promptNode, type Reference, referencesTo, ROLES, type VideoEntries, videoCapability, withRole } from "./making.ts";
import { makeVideo } from "./runs.ts";
import { statusAt } from "./gestures.ts";
import { isOver } from "../work.ts";

const MOST_IMAGES = 9;
const USES: Partial<Record<Purpose, FrameUse>> = { "first-frame": "first", "last-frame": "last", reference: "reference" };

export function MakeVideo({ board, canvas, nodes, ui }: { board: Board; canvas: string; nodes: Node[]; ui: Ui }) {
  const { data, error, refetch } = useQuery({ queryKey: ["models", "video"], queryFn: ({ signal }) => api.models(signal, "video"), staleTime: 60_000 });
  const target = nodes.find(({ type }) => type === "video");
  if (error && !data) return <Failure title="The models cannot be loaded" error={error} retry={refetch} />;
  if (!data) return <Waiting label="Loading the models" />;
  if (data.length === 0) return <p className={styles.hint}>No model can make videos with this session.</p>;
  return <VideoForm board={board} canvas={canvas} nodes={nodes} entered={ui.entered.video} target={target} models={data} />;
}

/** An image, and what it is used for as long as a person chooses nothing else. */
interface VideoInput extends Reference {
  use?: FrameUse | undefined;
}

/** The selected images, and those that are connected to the video node. */
function imagesFor(graph: Graph, nodes: Node[], target: Node | undefined): VideoInput[] {
  const links = [...graph.connections.values()].filter((one) => one.toNodeId === target?.id && USES[one.purpose] !== undefined);
  const linked = links.flatMap(({ fromNodeId, purpose, role }) => {
    const [reference] = referencesTo([graph.nodes.get(fromNodeId)].filter((node) => node !== undefined));
    return reference ? [{ ...reference, ...(role && { role }), use: USES[purpose] }] : [];
  });
  const known = new Set(linked.map(({ asset }) => asset));
  const selected = referencesTo(nodes).filter(({ asset }) => !known.has(asset));
  return [...linked, ...selected].slice(0, MOST_IMAGES);
}

type Setting = "seconds" | "ratio" | "resolution" | "audio";

interface FormProps {
  board: Board;
  canvas: string;
  nodes: Node[];
  /** What a person chooses stays; until then the form follows the video node. */
  entered: VideoEntries;
  /** The video node that is selected. */
  target: Node | undefined;
  models: Model[];
}

function VideoForm({ board, canvas, nodes, entered, target, models }: FormProps) {
  const queries = useQueryClient();
  const balance = useQuery({ queryKey: ["balance"], queryFn: ({ signal }) => api.balance(signal) });
  const status = target && statusAt(target);
  const made = target?.metadata;
  const enter = (change: VideoEntries) => board.enter("video", change);
  const { model: key, prompt: typed, uses = {}, cap = "" } = entered;
  const [error, setError] = useState<unknown>();
  const [isStarting, setIsStarting] = useState(false);

  const model = models.find(({ id, modelId }) => (key === undefined ? modelId === made?.model : id === key)) ?? (models[0] as Model);
  const text = promptNode(nodes);
  const prompt = typed ?? (text ? firstOf(text.metadata.content ?? "", MOST_PROMPT) : (made?.prompt ?? ""));
  const known: Record<Setting, string | undefined> = { seconds: made?.durationSeconds?.toString(), ratio: made?.aspectRatio, resolution: undefined, audio: undefined };
  const setting = (name: Setting) => entered[name] ?? known[name] ?? "";
  const set = (name: Setting) => (value: string) => enter({ [name]: value });
  const images = imagesFor(board.graph, nodes, target);
  const choice = (image: VideoInput, index: number): string => uses[image.asset] ?? entryOf(image.use ?? defaultUse(model, images, index), image.role);
  const frames = images.flatMap((image, index) => {
    const { use, role } = chosen(choice(image, index));
    return use ? [{ use, reference: withRole(image, role) }] : [];
  });
  const capability = videoCapability(frames.map(({ use }) => use));
  const problem = frameProblem(model, frames.map(({ use }) => use));
  const options = (name: string) => optionsOf(model, name, capability);
  const among = (name: Setting, parameter: string) => (options(parameter).includes(setting(name)) ? setting(name) : "");
  const hasAudio = model.parameters.some(({ name, capabilities }) => name === "generateAudio" && capabilities.some((one) => one === capability));
  const isMaking = status !== undefined && !isOver(status);

  async function start(event: FormEvent) {
    event.preventDefault();
    if (isStarting) return;
    setIsStarting(true);
    setError(undefined);
    try {
      await makeVideo(board, canvas, {
        model,
        prompt,
        frames,
        source: text,
        target: isMaking ? undefined : target,
        seconds: Number(among("seconds", "durationSeconds")) || undefined,
        ratio: among("ratio", "aspectRatio"),
        resolution: among("resolution", "resolution"),
        hasAudio: hasAudio && setting("audio") !== "" ? setting("audio") === "true" : undefined,
        maxCredits: cap.trim() === "" ? undefined : Number(cap),
      });
    } catch (error) {
      setError(error);
    }
    setIsStarting(false);
    void queries.invalidateQueries({ queryKey: ["balance"] });
  }

  return (
    <form className={styles.form} onSubmit={(event) => void start(event)}>
      <ModelField models={models} model={model} set={(model) => enter({ model })} />
      <PromptField label={text && typed === undefined ? `Prompt, from “${text.title}”` : "Prompt"} value={prompt} isRequired set={(prompt) => enter({ prompt })} />
      {typed !== undefined && <Stays what="This prompt stays" end={() => board.followSelection("video")} />}
      {images.length > 0 ? (
        <fieldset className={styles.references}>
          <legend>Images</legend>
          {images.map((image, index) => (
            <label key={image.asset}>
              <bdi>{image.title}</bdi>
              <select value={choice(image, index)} onChange={({ target }) => enter({ uses: { ...uses, [image.asset]: target.value } })}>
                <option value="">not used</option>
                <option value="first">first frame</option>
                <option value="last">last frame</option>
                <option value="reference">reference</option>
                {ROLES.map((role) => (
                  <option key={role} value={`reference ${role}`}>
                    reference: {role}
                  </option>
                ))}
              </select>
            </label>
          ))}
          {problem !== undefined && <p className={styles.problem}>{problem}</p>}
        </fieldset>
      ) : (
        <p className={styles.hint}>Select images for the first and last frame, or a text to use it as the prompt.</p>
      )}
      <Choice label="Seconds" value={setting("seconds")} options={options("durationSeconds")} set={set("seconds")} />
      <Choice label="Aspect ratio" value={setting("ratio")} options={options("aspectRatio")} set={set("ratio")} />
      <Choice label="Resolution" value={setting("resolution")} options={options("resolution")} set={set("resolution")} />
      {hasAudio && (
        <label className={styles.field}>
          <span>Sound</span>
          <select value={setting("audio")} onChange={({ target }) => set("audio")(target.value)}>
            <option value="">the model's default</option>
            <option value="true">with sound</option>
            <option value="false">without sound</option>
          </select>
        </label>
      )}
      {images.length === 0 && problem !== undefined && <p className={styles.problem}>{problem}</p>}
      <Start queue="video" price={model.creditCost} cap={cap} setCap={(cap) => enter({ cap })} balance={balance.data} isStarting={isStarting} isPossible={problem === undefined} error={error} />
      <p className={styles.hint}>
        {target && !isMaking ? (
          <>
            Into <bdi>{target.title || "the selected video"}</bdi>.{target.asset !== undefined && " Its present video moves to its history."}
          </>
        ) : (
          "Into a new node."
        )}{" "}
        The video stays on the canvas, and everybody who can see the canvas can play it.
      </p>
    </form>
  );
}

/** The first image begins the video and the second ends it, where the model can do so. */
function defaultUse(model: Model, images: VideoInput[], index: number): FrameUse | undefined {
  if (images.some(({ use }) => use !== undefined)) return undefined;
  const can = (capability: string) => model.capabilities.some((one) => one === capability);
  if (index === 0 && can("video.generate.fromImage")) return "first";
  if (index === 1 && images.length === 2 && can("video.generate.fromFrames")) return "last";
  return can("video.generate.fromReferences") && !can("video.generate.fromImage") ? "reference" : undefined;
}

const entryOf = (use: FrameUse | undefined, role: Role | undefined): string => (use === "reference" && role ? `reference ${role}` : (use ?? ""));

function chosen(entry: string): { use?: FrameUse; role?: Role } {
  const [use, role] = entry.split(" ") as [FrameUse | "", Role | undefined];
  return use === "" ? {} : { use, ...(role && { role }) };
}
