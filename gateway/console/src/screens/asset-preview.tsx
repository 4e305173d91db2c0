/** One asset: the large image or the video, what is known of it, where it is shown, and its deletion. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link } from "wouter";
import { showPath } from "../address.ts";
import { fileUrl } from "../api.ts";
import { type Asset, assets, formatOf, removedOf, shownBy, sizeOf, type Usage } from "../assets.ts";
import { useImage } from "../board/images.ts";
import { Problem } from "../errors.ts";
import { bytes, count } from "../format.ts";
import { ASSETS } from "../library/listing.ts";
import { useSession } from "../session.ts";
import { Modal } from "../ui/dialog.tsx";
import { Button, Failure, Icon, Notice, Waiting } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import { Copy } from "../ui/copy.tsx";
import { AiBadge } from "./ai-badge.tsx";
import styles from "./asset-preview.module.css";

interface Props {
  handle: string;
  close: () => void;
  /** The asset was deleted. */
  removed: (asset: Asset) => void;
}

export function AssetPreview({ handle, close, removed }: Props) {
  const { data: asset, error, refetch } = useQuery({ queryKey: ["asset", handle], queryFn: ({ signal }) => assets.read(handle, signal) });
  const isGone = error instanceof Problem && (error.status === 404 || error.status === 400);
  return (
    <Modal title={asset?.name ?? "Asset"} isWide close={close}>
      {asset ? (
        <Preview asset={asset} removed={removed} />
      ) : isGone ? (
        <p className={parts.text}>This asset was deleted, or belongs to somebody else.</p>
      ) : error ? (
        <Failure title="The asset cannot be loaded" error={error} retry={refetch} />
      ) : (
        <Waiting label="Loading the asset" />
      )}
    </Modal>
  );
}

function Preview({ asset, removed }: { asset: Asset; removed: (asset: Asset) => void }) {
  const { account, session } = useSession();
  const [isDeleting, setIsDeleting] = useState(false);
  const isVideo = asset.kind === "video";
  const { url, hasFailed } = useImage(isVideo ? undefined : asset.handle, 1024);
  const isOwn = asset.ownerUid === account.id;
  const cleaned = removedOf([asset]);
  return (
    <div className={styles.preview}>
      <div className={styles.image}>
        <div className={styles.corner}>
          <AiBadge asset={asset} />
        </div>
        {isVideo ? <Video asset={asset} /> : url ? <img src={url} alt={asset.name} /> : <span>{hasFailed ? "This image cannot be shown. Its file may be damaged." : "Loading the image…"}</span>}
      </div>
      <div className={styles.side}>
        <dl className={styles.facts}>
          <div>
            <dt>Size</dt>
            <dd>
              {isVideo ? sizeOf(asset) : `${asset.width} × ${asset.height} pixels`}
            </dd>
          </div>
          <div>
            <dt>File</dt>
            <dd>
              {formatOf(asset.mimeType)}, {bytes(asset.bytes)}
              {asset.animated && ", animated"}
            </dd>
          </div>
          {cleaned !== undefined && (
            <div>
              <dt>Removed</dt>
              <dd>{cleaned}</dd>
            </div>
          )}
          <div>
            <dt>Handle</dt>
            <dd>
              <Copy text={asset.handle} label="the handle" />
            </dd>
          </div>
        </dl>
        <Usages asset={asset} />
        <div className={styles.buttons}>
          <a className={`${parts.button} ${parts.plain}`} href={fileUrl(asset.handle)} download={asset.name}>
            <Icon name="download" size={16} />
            Download
          </a>
          {asset.original && (
            <a className={`${parts.button} ${parts.plain}`} href={`${fileUrl(asset.handle)}?original=true`} download>
              <Icon name="download" size={16} />
              Original, {bytes(asset.original.bytes)}
            </a>
          )}
          {isOwn && session.kind === "full" && <Button onClick={() => setIsDeleting(true)}>Delete…</Button>}
        </div>
        {isOwn && session.kind === "narrow" && (
          <p className={styles.note}>You are signed in with a token. Only the owner of the account, signed in with a link, deletes assets.</p>
        )}
      </div>
      {isDeleting && <Deletion asset={asset} close={() => setIsDeleting(false)} removed={removed} />}
    </div>
  );
}

function Video({ asset }: { asset: Asset }) {
  // oxlint-disable-next-line jsx-a11y/media-has-caption -- the service makes no captions
  return <video src={fileUrl(asset.handle)} controls preload="metadata" playsInline aria-label={asset.name} />;
}

/** Looks through the canvases for nodes that show the asset, when a person asks. The service keeps no such list. */
function Usages({ asset }: { asset: Asset }) {
  const [found, setFound] = useState<{ usages: Usage[]; seen: number; all: number; isOver: boolean }>();
  const [error, setError] = useState<unknown>();
  const stop = useRef(new AbortController());
  useEffect(() => () => stop.current.abort(), []);

  async function look() {
    setError(undefined);
    setFound({ usages: [], seen: 0, all: 0, isOver: false });
    stop.current = new AbortController();
    const { signal } = stop.current;
    try {
      for await (const progress of shownBy(asset.handle, signal)) setFound({ ...progress, isOver: false });
      setFound((found) => found && { ...found, isOver: true });
    } catch (error) {
      if (!signal.aborted) setError(error);
      setFound(undefined);
    }
  }

  return (
    <section className={styles.usages} aria-label="Where it is shown">
      {!found && <Button onClick={() => void look()}>Find where it is shown</Button>}
      {found && (
        <p role="status">
          {found.isOver
            ? found.usages.length === 0
              ? "No node of your canvases shows it."
              : `Shown on ${count(found.usages.length, "canvas", "canvases")}:`
            : `Looked at ${found.seen} of ${count(found.all, "canvas", "canvases")}…`}
        </p>
      )}
      <ul>
        {found?.usages.map(({ canvas, nodes }) => (
          <li key={canvas.handle}>
            <Link href={showPath(canvas, nodes)}>
              <bdi>{canvas.title || "Untitled"}</bdi>
            </Link>
            , {count(nodes.length, "node")}
          </li>
        ))}
      </ul>
      {error !== undefined && <Notice error={error} />}
    </section>
  );
}

function Deletion({ asset, close, removed }: { asset: Asset; close: () => void; removed: (asset: Asset) => void }) {
  const queries = useQueryClient();
  const [isShown, setIsShown] = useState(false);
  const [isRunning, setIsRunning] = useState(false);
  const [error, setError] = useState<unknown>();

  async function remove() {
    setIsRunning(true);
    setError(undefined);
    try {
      await assets.remove(asset, isShown);
      void queries.invalidateQueries({ queryKey: [ASSETS] });
      removed(asset);
    } catch (error) {
      if (error instanceof Problem && error.status === 409 && !isShown) setIsShown(true);
      else setError(error);
      setIsRunning(false);
    }
  }

  return (
    <Modal title={isShown ? "Delete it although it is shown?" : "Delete this asset?"} close={close}>
      <p role={isShown ? "alert" : undefined}>
        {isShown ? (
          <>
            Nothing was deleted yet: a node of a canvas shows <bdi>{asset.name}</bdi>. If you delete it anyway, the node stays and has no image.
          </>
        ) : (
          <>
            <bdi>{asset.name}</bdi> is deleted for good, for everybody. Elements and the history of nodes keep its handle, without an image.
          </>
        )}
      </p>
      {isShown && <Usages asset={asset} />}
      {error !== undefined && <Notice error={error} />}
      <div className={styles.buttons}>
        <Button onClick={close}>Keep it</Button>
        <Button look="primary" className={styles.danger} isBusy={isRunning} onClick={() => void remove()}>
          {isRunning ? "Deleting…" : isShown ? "Delete anyway" : "Delete"}
        </Button>
      </div>
    </Modal>
  );
}
