/** Makes images and videos with a model: from a prompt, from the selected images, or from both. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { api, type ImageOperation, type Model } from "../api.ts";
import { ElementChooser } from "../elements/chooser.tsx";
import { count as counted, firstOf } from "../format.ts";
import { useSession } from "../session.ts";
import type { Node } from "../sync/graph.ts";
import { Button, Failure, Waiting } from "../ui/parts.tsx";
import type { Board, Ui } from "./board.ts";
import { Choice, ModelField, PromptField, Start, Stays } from "./fields.tsx";
import styles from "./inspector.module.css";
import { MakeVideo } from "./make-video.tsx";
import { FEATHER, MaskField, type Painting, saveMask } from "./mask.tsx";
import { type ImageEntries, modelOf, MOST_PROMPT, MOST_REFERENCES, optionsOf, promptNode, type Reference, referencesTo, takesMask, withRole } from "./making.ts";
import { References } from "./references.tsx";
import { makeImages } from "./runs.ts";

const OPERATIONS: [ImageOperation, string][] = [
  ["generate", "Generate"],
  ["edit", "Edit the first image"],
  ["variations", "Variations"],
];

interface Props {
  board: Board;
  canvas: string;
  nodes: Node[];
  ui: Ui;
}

export function Make({ board, canvas, nodes, ui }: Props) {
  const { scopes } = useSession().session;
  const canMake = { image: scopes.includes("image:generate"), video: scopes.includes("video:generate") };
  const { draft, making } = ui;
  const fitting = nodes.length === 1 && nodes[0]?.type === "video" ? "video" : "image";
  const wanted = draft ? "image" : (making ?? fitting);
  const kind = canMake[wanted] ? wanted : canMake.image ? "image" : "video";
  if (!canMake[kind]) return <p className={styles.hint}>This session may make neither images nor videos: its token does not have the scopes for it.</p>;
  return (
    <>
      {canMake.image && canMake.video && (
        <fieldset className={styles.kinds}>
          <legend className="unseen">What to make</legend>
          {(["image", "video"] as const).map((one) => (
            <label key={one}>
              <input type="radio" name="kind" checked={kind === one} onChange={() => board.set({ making: one, draft: undefined })} />
              <span>{one === "image" ? "Images" : "Video"}</span>
            </label>
          ))}
        </fieldset>
      )}
      {kind === "image" ? <MakeImages key={draft ? JSON.stringify([draft.of, draft.into]) : ""} board={board} canvas={canvas} nodes={nodes} ui={ui} /> : <MakeVideo board={board} canvas={canvas} nodes={nodes} ui={ui} />}
    </>
  );
}

function MakeImages(props: Props) {
  const { data, error, refetch } = useQuery({ queryKey: ["models"], queryFn: ({ signal }) => api.models(signal), staleTime: 60_000 });
  if (error && !data) return <Failure title="The models cannot be loaded" error={error} retry={refetch} />;
  if (!data) return <Waiting label="Loading the models" />;
  if (data.length === 0) return <p className={styles.hint}>No model can make images with this session.</p>;
  return <MakeForm {...props} models={data} />;
}

function MakeForm({ board, canvas, nodes, ui, models }: Props & { models: Model[] }) {
  const { session } = useSession();
  const queries = useQueryClient();
  const balance = useQuery({ queryKey: ["balance"], queryFn: ({ signal }) => api.balance(signal) });
  const { draft } = ui;
  const form = draft ? "again" : "image";
  const entered = ui.entered[form];
  const enter = (change: ImageEntries) => board.enter(form, change);
  const { kept, roles = {}, elements: chosen = [], cap = "" } = entered;
  const { prompt: typed, operation: wanted = "generate", size = "", quality = "", count = 1, feather = FEATHER } = { ...draft, ...entered };
  const [painting, setPainting] = useState<Painting>();
  const [error, setError] = useState<unknown>();
  const [isStarting, setIsStarting] = useState(false);

  const known = draft && modelOf(models, draft);
  const model = models.find(({ id }) => id === entered.model) ?? known ?? (models[0] as Model);
  const selected = referencesTo(nodes);
  const references = (kept?.references ?? draft?.references ?? selected).slice(0, MOST_REFERENCES).map((reference) => withRole(present(board, reference), roles[reference.asset] ?? reference.role));
  const before = draft?.elements ?? [];
  const text = kept ? board.graph.nodes.get(kept.text ?? "") : draft ? undefined : promptNode(nodes);
  const prompt = typed ?? firstOf(text?.metadata.content ?? "", MOST_PROMPT);
  const possible = OPERATIONS.filter(([name]) => model.capabilities.includes(`image.${name}`) && (name === "generate" || references.length > 0));
  const operation = possible.find(([name]) => name === wanted)?.[0] ?? possible[0]?.[0] ?? "generate";
  const source = operation === "edit" && takesMask(model) ? references[0]?.asset : undefined;
  // The mask of before is that of the source of before.
  const earlierMask = draft?.mask !== undefined && draft.references[0]?.asset === source ? draft.mask : undefined;
  const sizes = optionsOf(model, "size", `image.${operation}`);
  const qualities = optionsOf(model, "quality", `image.${operation}`);

  async function start(event: FormEvent) {
    event.preventDefault();
    if (isStarting) return;
    setIsStarting(true);
    setError(undefined);
    enter({ kept: { references, text: text?.id } });
    try {
      const painted = painting?.asset === source ? painting : undefined;
      const mask = source === undefined ? undefined : painted ? await saveMask(canvas, painted) : earlierMask;
      await makeImages(board, canvas, {
        mask: mask === undefined ? undefined : { handle: mask, feather },
        operation,
        model,
        prompt,
        references,
        elements: [...new Set([...before, ...chosen.map(({ versionHandle }) => versionHandle)])],
        sources: text ? [text] : [],
        size: sizes.includes(size) ? size : "",
        quality: qualities.includes(quality) ? quality : "",
        count,
        into: draft?.into ?? [],
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
      {draft && (
        <div className={styles.draft}>
          <p>
            {draft.into.length > 0 ? "Another attempt at" : "Again, like"} <bdi>“{draft.of}”</bdi>
            {!known && draft.model !== undefined && `. Its model, ${draft.model}, is not offered now: choose another one`}.
          </p>
          <Button onClick={() => board.set({ draft: undefined })}>Start afresh</Button>
        </div>
      )}
      <ModelField models={models} model={model} set={(model) => enter({ model })} />
      {possible.length > 1 && (
        <label className={styles.field}>
          <span>How</span>
          <select value={operation} onChange={({ target }) => enter({ operation: target.value as ImageOperation })}>
            {possible.map(([name, label]) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
      )}
      <PromptField label={text && typed === undefined ? `Prompt, from “${text.title}”` : "Prompt"} value={prompt} isRequired={operation !== "variations"} set={(prompt) => enter({ prompt })} />
      <References
        canvas={canvas}
        references={references}
        selected={selected.filter(({ asset }) => !references.some((one) => one.asset === asset))}
        set={(references) => enter({ kept: { references, text: text?.id } })}
        setRole={(asset, role) => enter({ roles: { ...roles, [asset]: role } })}
      />
      {source !== undefined && <MaskField key={source} asset={source} painting={painting?.asset === source ? painting : undefined} setPainting={setPainting} feather={feather} setFeather={(feather) => enter({ feather })} hasEarlier={earlierMask !== undefined} />}
      {!draft && (kept || typed !== undefined) && <Stays what={kept ? "These references and this prompt stay" : "This prompt stays"} end={() => board.followSelection("image")} />}
      {!draft && !kept && references.length === 0 && <p className={styles.hint}>Select images to use them as references, or a text to use it as the prompt.</p>}
      {before.length > 0 && <p className={styles.hint}>With {counted(before.length, "Element")}, as before.</p>}
      {session.scopes.includes("element:read") && <ElementChooser chosen={chosen} set={(elements) => enter({ elements })} />}
      <Choice label="Size" value={size} options={sizes} set={(size) => enter({ size })} />
      <Choice label="Quality" value={quality} options={qualities} set={(quality) => enter({ quality })} />
      <fieldset className={styles.counts}>
        <legend>Images</legend>
        {[1, 2, 3, 4].map((number) => (
          <label key={number}>
            <input type="radio" name="count" checked={count === number} onChange={() => enter({ count: number })} />
            <span>{number}</span>
          </label>
        ))}
      </fieldset>
      <Start queue="generation" price={model.creditCost * count} cap={cap} setCap={(cap) => enter({ cap })} balance={balance.data} isStarting={isStarting} isPossible={possible.length > 0} error={error} />
    </form>
  );
}

/** A reference whose node was deleted is its image alone. */
function present(board: Board, { node, ...reference }: Reference): Reference {
  const now = node && board.graph.nodes.get(node.id);
  return now?.asset === reference.asset ? { ...reference, node: now } : reference;
}
