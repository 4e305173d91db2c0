/** How a node came to be: by what, from what, when. And making it again. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { api, fileUrl } from "../api.ts";
import { ago, count } from "../format.ts";
import { useSession } from "../session.ts";
import type { Node } from "../sync/graph.ts";
import { Button } from "../ui/parts.tsx";
import { sourceOf } from "./attempts.ts";
import type { Board } from "./board.ts";
import { kindOf } from "./gestures.ts";
import styles from "./inspector.module.css";
import { actionName, DRAFT } from "../words.ts";
import { draftOf, isFailed } from "./making.ts";
import { makeAgain } from "./prompting.ts";
import { videoJob } from "./videos.ts";

type Provenance = NonNullable<Node["metadata"]["provenance"]>;

const KINDS: Record<Provenance["kind"], string> = { generated: "Generated", action: "Made by an Action", import: "Imported", upload: "Uploaded", recipe: "Made by a Recipe" };
const OPERATIONS: Record<string, string> = { edit: "Edited", variations: "Varied" };

export function ProvenanceOf({ board, node }: { board: Board; node: Node }) {
  const { session } = useSession();
  const { provenance, prompt } = node.metadata;
  const draft = isFailed(node) ? undefined : draftOf(board.graph, node);
  if (!provenance && !prompt && node.asset === undefined) return null;
  return (
    <section className={styles.group} aria-label="How it was made">
      <HowMade node={node} className={styles.prompt} />
      {provenance && <Sources board={board} provenance={provenance} />}
      <p className={styles.links}>
        {draft && board.canChange && session.scopes.includes("image:generate") && (
          <Button onClick={() => makeAgain(board, draft)}>Make again</Button>
        )}
        {node.asset !== undefined && (
          <a className={styles.download} href={fileUrl(node.asset)} download={node.title || node.type}>
            Download
          </a>
        )}
        {provenance?.run && session.scopes.includes("job:manage") && (
          <Link className={styles.download} href={`/runs?run=${encodeURIComponent(node.type === "video" ? videoJob(provenance.run) : provenance.run)}`}>
            Its run
          </Link>
        )}
      </p>
    </section>
  );
}

/** What made a node, with which words and values. */
export function HowMade({ node: { metadata }, className }: { node: Node; className?: string | undefined }) {
  const { provenance, prompt } = metadata;
  const text = provenance?.prompt ?? prompt;
  return (
    <>
      {provenance && <Origin provenance={provenance} />}
      {text && (
        <blockquote className={className} dir="auto">
          {text}
        </blockquote>
      )}
      {provenance?.actionId && <Parameters action={provenance.actionId} params={provenance.params ?? {}} />}
    </>
  );
}

function Origin({ provenance }: { provenance: Provenance }) {
  const { kind, operation = "", model, provider, actionId, actionVersion, size, quality, standIn, sourceUrl, createdAt, elements, mask, maskNotApplied } = provenance;
  const what = [size, quality, mask && (maskNotApplied ? "its mask could not be applied" : "within a mask"), elements.length > 0 && `with ${count(elements.length, "Element")}`].filter(Boolean).join(" · ");
  return (
    <>
      <p>
        {(kind === "generated" && OPERATIONS[operation]) || KINDS[kind]}
        {model && (
          <>
            {" by "}
            <strong>{model}</strong>
            {provider && ` (${provider})`}
          </>
        )}
        {actionId && (
          <>
            {": "}
            <strong title={`Version ${actionVersion}`}>{actionName(actionId)}</strong>
          </>
        )}{" "}
        <time dateTime={createdAt} title={new Date(createdAt).toLocaleString("en")}>
          {ago(createdAt)}
        </time>
      </p>
      {standIn && <p className="hint">{DRAFT.sentence}</p>}
      {what !== "" && <p className="hint">{what}</p>}
      {sourceUrl && (
        <p className="hint" dir="auto">
          From {sourceUrl}
        </p>
      )}
    </>
  );
}

/** The parameters of an Action that are not as it has them by itself, by their titles. */
function Parameters({ action, params }: { action: string; params: Record<string, unknown> }) {
  const { data } = useQuery({ queryKey: ["action", action], queryFn: ({ signal }) => api.action(action, signal), staleTime: Infinity });
  const known = data?.parameters ?? [];
  const entries = Object.entries(params).filter(([id, value]) => String(value) !== String(known.find((one) => one.id === id)?.default));
  if (!data || entries.length === 0) return null;
  return (
    <dl className={styles.parameters}>
      {entries.map(([id, value]) => {
        const parameter = known.find((one) => one.id === id);
        const option = parameter?.options?.find((one) => String(one.value) === String(value));
        return (
          <div key={id}>
            <dt>{parameter?.title ?? id}</dt>
            <dd dir="auto">{option?.label ?? String(value)}</dd>
          </div>
        );
      })}
    </dl>
  );
}

function Sources({ board, provenance }: { board: Board; provenance: Provenance }) {
  if (provenance.references.length === 0) return null;
  return (
    <ul className={styles.sources} aria-label="Made from">
      {provenance.references.map(({ handle, role }) => {
        const source = sourceOf(board, handle);
        return (
          <li key={`${handle} ${role ?? ""}`}>
            {source ? (
              <Button
                onClick={() => {
                  board.select([source.id]);
                  board.surface?.show([source.id]);
                }}
              >
                From <bdi>{source.title || kindOf(source)}</bdi>
              </Button>
            ) : (
              <span>From an image that is not on this canvas any more</span>
            )}
            {role && <span className="hint">for {role}</span>}
          </li>
        );
      })}
    </ul>
  );
}
