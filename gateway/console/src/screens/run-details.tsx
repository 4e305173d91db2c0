/** What became of a run: when, its outputs, why it failed, and its webhook. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { altOf, playerName } from "../alt.ts";
import { attemptPath, canvasOf, showPath } from "../address.ts";
import { Problem } from "../errors.ts";
import { count, lasted, priceOf } from "../format.ts";
import { isNamed } from "../board/videos.ts";
import { madeImage, useAltsOf } from "../library/outputs.ts";
import { Thumb } from "../library/thumb.tsx";
import { useSession } from "../session.ts";
import { Copy } from "../ui/copy.tsx";
import { laterDialog } from "../ui/later.tsx";
import { Button, Icon, intoView, Notice } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import { DRAFT } from "../words.ts";
import { deliveryOf, type ImageJob, isOver, type RecipeRun, stateOf, statusOf, type VideoJob, videoUrl, type Work, work } from "../work.ts";
import { Reason } from "./reason.tsx";
import styles from "./run-details.module.css";

interface Props {
  handle: string;
  /** It changes whenever the record may have changed. */
  state: string;
  /** What is said of outputs of which no node says more. */
  alt?: string;
}

export function RunDetails({ handle, state, alt = altOf({ type: "image", title: "", metadata: {} }) }: Props) {
  const { data, error, refetch } = useQuery({
    queryKey: ["work", "record", handle, state],
    queryFn: ({ signal }) => work.read(handle, signal),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  });
  if (error instanceof Problem && error.status === 404) return <p className={styles.empty}>This run has no record any more. Its results stay on the canvas.</p>;
  if (error && !data) {
    return (
      <div className={styles.empty}>
        <Notice error={error} />
        <Button onClick={() => void refetch()}>Try again</Button>
      </div>
    );
  }
  if (!data) return <p className={styles.empty}>Loading…</p>;
  return (
    <div ref={intoView} className={styles.details}>
      {data.failure && <Reason failure={data.failure} />}
      {data.status === "expired" && <p>The record of this run has expired. What it made stays on the canvas.</p>}
      <Attempt data={data} />
      <Outputs data={data} alt={alt} />
      <div className={styles.columns}>
        <Timeline data={data} />
        <Facts data={data} handle={handle} />
      </div>
    </div>
  );
}

/** Where work that failed is started once more. A video and an Action are started at their nodes alone. */
function Attempt({ data }: { data: Work }) {
  const { scopes } = useSession().session;
  if (data.status !== "failed" || !scopes.includes("image:generate")) return null;
  const to = attemptAddress(data);
  if (to === undefined) return null;
  return (
    <Link href={to} className={`${parts.button} ${parts.plain} ${styles.attempt}`}>
      New attempt…
    </Link>
  );
}

/** Nodes name the run, also where the address names its job. */
function attemptAddress(data: Work): string | undefined {
  if (data.kind === "recipe") return `/recipes?recipe=${encodeURIComponent(data.recipeId)}`;
  return (data.kind === "image" || data.kind === "action") && data.canvasId !== undefined ? attemptPath(canvasOf(data.canvasId), data.run) : undefined;
}

const AssetLook = laterDialog("Output", () => import("./asset-look.tsx"));

/** One output large, with the others beside it. */
function LookAtOutputs({ outputs, canvasId, at, go }: { outputs: { asset: string; node: string; title: string; alt: string }[]; canvasId: string | undefined; at: string | undefined; go: (asset: string | undefined) => void }) {
  if (at === undefined) return null;
  const placeOf = (handle: string) => {
    const node = outputs.find(({ asset }) => asset === handle)?.node;
    return canvasId === undefined || node === undefined ? undefined : showPath(canvasOf(canvasId), [node]);
  };
  const among = outputs.map(({ asset, title, alt }) => ({ id: asset, asset, title, alt, isVideo: false }));
  return <AssetLook handle={at} among={among} go={go} close={() => go(undefined)} removed={() => go(undefined)} placeOf={placeOf} />;
}

function Outputs({ data, alt }: { data: Work; alt: string }) {
  if (data.kind === "video") return data.status === "succeeded" ? <Video job={data} alt={alt} /> : null;
  return data.kind === "recipe" ? <Steps run={data} /> : <Images job={data} alt={alt} />;
}

function Images({ job, alt }: { job: ImageJob; alt: string }) {
  const { targets, canvasId, status } = job;
  const images = job.images ?? [];
  const [at, go] = useState<string>();
  const alts = useAltsOf(canvasId, images.map(({ assetId, nodeId }) => madeImage(assetId, nodeId, alt)));
  const outputs = images.map(({ assetId, nodeId }, index) => ({ asset: assetId, node: nodeId, title: `Output ${index + 1}`, alt: alts[index] ?? alt }));
  if (images.length === 0 && isOver(status)) return null;
  const missing = targets.length - images.length;
  return (
    <ul className={styles.outputs} aria-label="Outputs">
      {images.map(({ assetId, width, height }, index) => (
        <li key={assetId}>
          <Output asset={assetId} label={`output ${index + 1}`} alt={outputs[index]?.alt ?? alt} look={go} />
          <span className={styles.size}>
            {width} × {height}
          </span>
        </li>
      ))}
      {missing > 0 && !isOver(status) && <li className={styles.missing}>{count(missing, "output")} to come</li>}
      <LookAtOutputs outputs={outputs} canvasId={canvasId} at={at} go={go} />
    </ul>
  );
}

function Output({ asset, label, alt, look }: { asset: string; label: string; alt: string; look: (asset: string) => void }) {
  return (
    <button type="button" className={styles.output} aria-label={[`Look at ${label}`, alt].filter(Boolean).join(": ")} onClick={() => look(asset)}>
      <Thumb asset={asset} alt={alt} />
    </button>
  );
}

function Video({ job, alt }: { job: VideoJob; alt: string }) {
  const [shown = alt] = useAltsOf(job.canvasId, [{ node: job.targets?.[0], isShownBy: (node) => isNamed(node, new Set([job.id])), alt }]);
  return (
    <div className={styles.video}>
      {/* oxlint-disable-next-line jsx-a11y/media-has-caption -- the service makes no captions */}
      <video src={videoUrl(job.id)} controls preload="metadata" playsInline aria-label={playerName(shown)} />
      <a href={videoUrl(job.id)} download>
        <Icon name="download" size={15} /> Download
      </a>
    </div>
  );
}

function Steps({ run }: { run: RecipeRun }) {
  const canvas = canvasOf(run.canvasHandle);
  const [at, go] = useState<string>();
  const made = run.outputs.flatMap(({ assetId, nodeHandle, label }) => (assetId ? { asset: assetId, node: nodeHandle, title: label } : []));
  const alts = useAltsOf(run.canvasHandle, made.map(({ asset, node, title }) => madeImage(asset, node, altOf({ type: "image", title, metadata: {} }))));
  const outputs = made.map(({ asset, node, title }, index) => ({ asset, node, title, alt: alts[index] ?? "" }));
  return (
    <ol className={styles.steps} aria-label="Outputs">
      {run.outputs.map(({ key, label, status, assetId, value, failure, nodeHandle, startedAt, completedAt }) => (
        <li key={key}>
          <p className={styles.step}>
            <Link href={showPath(canvas, [nodeHandle])}>
              <bdi>{label}</bdi>
            </Link>
            <span data-status={status}>{statusOf(status)}</span>
            {startedAt && completedAt && <span>{lasted(Date.parse(completedAt) - Date.parse(startedAt))}</span>}
          </p>
          {assetId && <Output asset={assetId} label={label} alt={outputs.find(({ asset }) => asset === assetId)?.alt ?? ""} look={go} />}
          {value && (
            <blockquote className={styles.text} dir="auto">
              {value}
            </blockquote>
          )}
          {failure && <Reason failure={failure} />}
        </li>
      ))}
      <LookAtOutputs outputs={outputs} canvasId={run.canvasHandle} at={at} go={go} />
    </ol>
  );
}

const TIME = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "medium" });

/** The moments of a run that are known, in order, each with how long it took to get there. */
function momentsOf(data: Work): { name: string; at: string; took?: string }[] {
  if (data.kind === "video") {
    const end = isOver(data.status) ? [{ name: statusOf(data.status), at: data.updatedAt, took: lasted(Date.parse(data.updatedAt) - Date.parse(data.createdAt)) }] : [];
    return [{ name: "Accepted", at: data.createdAt }, ...end];
  }
  const { createdAt, queuedAt, startedAt, completedAt, queueDurationMs, executionDurationMs, totalDurationMs } = data.timing;
  const took = executionDurationMs ?? totalDurationMs;
  return [
    { name: "Accepted", at: createdAt },
    ...(startedAt ? [{ name: "Started", at: startedAt, ...(queuedAt && queueDurationMs !== undefined && { took: `waited ${lasted(queueDurationMs)}` }) }] : []),
    ...(completedAt ? [{ name: data.status === "expired" ? "Succeeded" : statusOf(data.status), at: completedAt, ...(took !== undefined && { took: `took ${lasted(took)}` }) }] : []),
  ];
}

function Timeline({ data }: { data: Work }) {
  return (
    <ol className={styles.timeline} aria-label="Timeline">
      {momentsOf(data).map(({ name, at, took }) => (
        <li key={name}>
          <span>{name}</span>
          <time dateTime={at}>{TIME.format(new Date(at))}</time>
          {took && <span className={styles.took}>{took}</span>}
        </li>
      ))}
      {!isOver(data.status) && (
        <li data-now>
          <span>{stateOf(data)}</span>
          <span className={styles.took}>about {lasted(data.estimatedSeconds * 1000)} in all</span>
        </li>
      )}
    </ol>
  );
}

function Facts({ data, handle }: { data: Work; handle: string }) {
  const webhook = data.kind === "video" ? undefined : data.webhook;
  const what = whatOf(data);
  return (
    <dl className={styles.facts}>
      {what && (
        <div>
          <dt>{what.name}</dt>
          <dd>
            <bdi>{what.value}</bdi>
          </dd>
        </div>
      )}
      <div>
        <dt>Price</dt>
        <dd>
          {priceOf(data.creditCost)}
          {data.creditCost > 0 && (isOver(data.status) ? " charged" : " reserved")}
        </dd>
      </div>
      {data.standIn && (
        <div>
          <dt>Draft</dt>
          <dd>{DRAFT.sentence}</dd>
        </div>
      )}
      {webhook && (
        <div>
          <dt>Webhook</dt>
          <dd>
            {deliveryOf(webhook)} <Copy text={webhook.id} label="the id of the delivery" />
          </dd>
        </div>
      )}
      <div>
        <dt>For programs</dt>
        <dd>
          <Copy text={handle} label="the name for programs" />
        </dd>
      </div>
      {data.kind === "video" && data.providerRunId && (
        <div>
          <dt>Run at the provider</dt>
          <dd>
            <Copy text={data.providerRunId} label="the id at the provider" />
          </dd>
        </div>
      )}
    </dl>
  );
}

function whatOf(data: Work): { name: string; value: string } | undefined {
  if (data.kind === "video") return { name: "Model", value: data.model.name };
  if (data.kind === "recipe") return { name: "Recipe", value: `${data.recipeId} ${data.recipeVersion}` };
  const { actionId, actionVersion, references } = data as ImageJob;
  if (actionId) return { name: "Action", value: `${actionId.replace("action:", "")} ${actionVersion ?? ""}` };
  return references.length > 0 ? { name: "References", value: String(references.length) } : undefined;
}
