/** Makes a video with a model: from a prompt, and from frames or references among the selected pictures. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, type Model } from "../api.ts";
import { useSession } from "../session.ts";
import type { Graph, Node, Purpose, Role } from "../sync/graph.ts";
import { Failure, Waiting } from "../ui/parts.tsx";
import type { Board } from "./board.ts";
import { Choice, ModelField, PromptField, Start } from "./fields.tsx";
import { filmOf } from "./films.ts";
import styles from "./inspector.module.css";
import { type FrameUse, frameProblem, optionsOf, promptNode, type Reference, referencesTo, ROLES, videoCapability, withRole } from "./making.ts";
import { makeVideo } from "./runs.ts";
import { useFilm } from "./video.tsx";

const MOST_PICTURES = 9;
const USES: Partial<Record<Purpose, FrameUse>> = { "first-frame": "first", "last-frame": "last", reference: "reference" };

export function MakeVideo({ board, nodes }: { board: Board; nodes: Node[] }) {
  const { data, error, refetch } = useQuery({ queryKey: ["models", "video"], queryFn: ({ signal }) => api.models(signal, "video"), staleTime: 60_000 });
  const target = nodes.find(({ type }) => type === "video");
  if (error) return <Failure title="The models cannot be loaded" error={error} retry={refetch} />;
  if (!data) return <Waiting label="Loading the models" />;
  if (data.length === 0) return <p className={styles.hint}>No model can make videos with this session.</p>;
  return <VideoForm key={target?.id ?? ""} board={board} nodes={nodes} target={target} models={data} />;
}

/** A picture, and what it is used for as long as a person chooses nothing else. */
interface Picture extends Reference {
  use?: FrameUse | undefined;
}

/** The selected pictures, and those that are connected to the video node. */
function picturesFor(graph: Graph, nodes: Node[], target: Node | undefined): Picture[] {
  const links = [...graph.connections.values()].filter((one) => one.toNodeId === target?.id && USES[one.purpose] !== undefined);
  const linked = links.flatMap(({ fromNodeId, purpose, role }) => {
    const [reference] = referencesTo([graph.nodes.get(fromNodeId)].filter((node) => node !== undefined));
    return reference ? [{ ...reference, ...(role && { role }), use: USES[purpose] }] : [];
  });
  const known = new Set(linked.map(({ asset }) => asset));
  const selected = referencesTo(nodes).filter(({ asset }) => !known.has(asset));
  return [...linked, ...selected].slice(0, MOST_PICTURES);
}

interface FormProps {
  board: Board;
  nodes: Node[];
  /** The video node that is selected. */
  target: Node | undefined;
  models: Model[];
}

function VideoForm({ board, nodes, target, models }: FormProps) {
  const queries = useQueryClient();
  const { account } = useSession();
  const balance = useQuery({ queryKey: ["balance"], queryFn: ({ signal }) => api.balance(signal) });
  const before = target && filmOf(target);
  const film = useFilm(before);
  const made = target?.metadata;
  const [key, setKey] = useState((models.find(({ modelId }) => modelId === made?.model) ?? models[0])?.id);
  const [typed, setTyped] = useState(made?.prompt);
  const [uses, setUses] = useState<Record<string, string>>({});
  const [seconds, setSeconds] = useState(String(made?.durationSeconds ?? ""));
  const [ratio, setRatio] = useState(made?.aspectRatio ?? "");
  const [resolution, setResolution] = useState(before?.resolution ?? "");
  const [audio, setAudio] = useState(before?.hasAudio === undefined ? "" : String(before.hasAudio));
  const [error, setError] = useState<unknown>();
  const [isStarting, setIsStarting] = useState(false);

  const model = models.find(({ id }) => id === key) ?? (models[0] as Model);
  const text = promptNode(nodes);
  const prompt = typed ?? text?.metadata.content?.slice(0, 8000) ?? "";
  const pictures = picturesFor(board.graph, nodes, target);
  const choice = (picture: Picture, index: number): string => uses[picture.asset] ?? entryOf(picture.use ?? defaultUse(model, pictures, index), picture.role);
  const frames = pictures.flatMap((picture, index) => {
    const { use, role } = chosen(choice(picture, index));
    return use ? [{ use, reference: withRole(picture, role) }] : [];
  });
  const capability = videoCapability(frames.map(({ use }) => use));
  const problem = frameProblem(model, frames.map(({ use }) => use));
  const options = (name: string) => optionsOf(model, name, capability);
  const among = (value: string, name: string) => (options(name).includes(value) ? value : "");
  const hasAudio = model.parameters.some(({ name, capabilities }) => name === "generateAudio" && capabilities.some((one) => one === capability));
  const isMaking = film?.state === "making";

  async function start(event: FormEvent) {
    event.preventDefault();
    setIsStarting(true);
    setError(undefined);
    try {
      await makeVideo(board, {
        model,
        prompt,
        frames,
        source: text,
        target: isMaking ? undefined : target,
        seconds: Number(among(seconds, "durationSeconds")) || undefined,
        ratio: among(ratio, "aspectRatio"),
        resolution: among(resolution, "resolution"),
        hasAudio: hasAudio && audio !== "" ? audio === "true" : undefined,
        by: account.id,
      });
    } catch (error) {
      setError(error);
    }
    setIsStarting(false);
    void queries.invalidateQueries({ queryKey: ["balance"] });
  }

  return (
    <form className={styles.form} onSubmit={(event) => void start(event)}>
      <ModelField models={models} model={model} set={setKey} />
      <PromptField label={text && typed === undefined ? `Prompt, from “${text.title}”` : "Prompt"} value={prompt} isRequired set={setTyped} />
      {pictures.length > 0 ? (
        <fieldset className={styles.references}>
          <legend>Pictures</legend>
          {pictures.map((picture, index) => (
            <label key={picture.asset}>
              <bdi>{picture.title}</bdi>
              <select value={choice(picture, index)} onChange={({ target }) => setUses((uses) => ({ ...uses, [picture.asset]: target.value }))}>
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
        <p className={styles.hint}>Select pictures for the first and last frame, or a text to use it as the prompt.</p>
      )}
      <Choice label="Seconds" value={seconds} options={options("durationSeconds")} set={setSeconds} />
      <Choice label="Aspect ratio" value={ratio} options={options("aspectRatio")} set={setRatio} />
      <Choice label="Resolution" value={resolution} options={options("resolution")} set={setResolution} />
      {hasAudio && (
        <label className={styles.field}>
          <span>Sound</span>
          <select value={audio} onChange={({ target }) => setAudio(target.value)}>
            <option value="">the model's default</option>
            <option value="true">with sound</option>
            <option value="false">without sound</option>
          </select>
        </label>
      )}
      {pictures.length === 0 && problem !== undefined && <p className={styles.problem}>{problem}</p>}
      <Start price={model.creditCost} balance={balance.data} isStarting={isStarting} isPossible={problem === undefined} error={error} />
      <p className={styles.hint}>
        {target && !isMaking ? (
          <>
            Into <bdi>{target.title || "the selected video"}</bdi>.{before && " Its present film is replaced."}
          </>
        ) : (
          "Into a new node."
        )}{" "}
        The service keeps a video for 30 days. Only you can play it: download it to share it.
      </p>
    </form>
  );
}

/** The first picture begins the video and the second ends it, where the model can do so. */
function defaultUse(model: Model, pictures: Picture[], index: number): FrameUse | undefined {
  if (pictures.some(({ use }) => use !== undefined)) return undefined;
  const can = (capability: string) => model.capabilities.some((one) => one === capability);
  if (index === 0 && can("video.generate.fromImage")) return "first";
  if (index === 1 && pictures.length === 2 && can("video.generate.fromFrames")) return "last";
  return can("video.generate.fromReferences") && !can("video.generate.fromImage") ? "reference" : undefined;
}

const entryOf = (use: FrameUse | undefined, role: Role | undefined): string => (use === "reference" && role ? `reference ${role}` : (use ?? ""));

function chosen(entry: string): { use?: FrameUse; role?: Role } {
  const [use, role] = entry.split(" ") as [FrameUse | "", Role | undefined];
  return use === "" ? {} : { use, ...(role && { role }) };
}
