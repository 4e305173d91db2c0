/** Looks at one asset after the other: large, with what is known of it, where it is shown, and its deletion. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { showPath } from "../address.ts";
import { fileUrl } from "../api.ts";
import { type Asset, assets, shownBy, type Usage } from "../assets.ts";
import { useAsset } from "../board/images.ts";
import { Problem } from "../errors.ts";
import { bytes, count } from "../format.ts";
import { ASSETS } from "../library/listing.ts";
import { useSession } from "../session.ts";
import { Copy } from "../ui/copy.tsx";
import { Modal } from "../ui/dialog.tsx";
import { Button, Failure, Icon, Notice } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import { AiBadge } from "./ai-badge.tsx";
import { FileFacts } from "./asset-facts.tsx";
import styles from "./asset-look.module.css";
import { Compare } from "./compare.tsx";
import look from "./look.module.css";
import { Look } from "./look.tsx";
import { type Picture, pictureOf } from "./picture.ts";

interface Props {
  handle: string;
  /** Those that are listed, in their order. */
  among: Picture[];
  go: (handle: string) => void;
  close: () => void;
  /** The asset was deleted. */
  removed: (asset: Asset) => void;
  /** The address of a canvas that shows an asset. */
  placeOf?: (handle: string) => string | undefined;
}

export default function AssetLook({ handle, among, go, close, removed, placeOf }: Props) {
  const [, navigate] = useLocation();
  const { data: asset, error, refetch } = useAsset(handle);
  const [compared, setCompared] = useState<string[]>([]);
  const [isDeleting, setIsDeleting] = useState(false);
  const { account, session } = useSession();
  const isGone = error instanceof Problem && (error.status === 404 || error.status === 400);
  if (!asset && error) {
    return (
      <Modal title="Picture" close={close}>
        {isGone ? <p className={parts.text}>This picture was deleted, or belongs to somebody else.</p> : <Failure title="The picture cannot be loaded" error={error} retry={refetch} />}
      </Modal>
    );
  }
  const pictures = compared.flatMap((id) => among.find((one) => one.id === id) ?? []);
  if (pictures.length > 1) {
    const alone = (id: string) => (setCompared([]), go(id));
    return <Compare pictures={pictures} framed={handle} frame={go} set={(ids) => (ids.length > 1 ? setCompared(ids) : alone(ids[0] ?? handle))} deeds={[]} look={alone} close={close} />;
  }
  const isDeletable = asset !== undefined && asset.ownerUid === account.id && session.kind === "full";
  const listed = among.find(({ id }) => id === handle);
  const known = asset && { ...pictureOf(asset), ...(listed?.alt !== undefined && { alt: listed.alt }) };
  const place = placeOf?.(handle);
  const show = { label: "Show it on its canvas", icon: "section" as const, keys: ["Enter"], run: () => navigate(place ?? "") };
  const download = { label: "Download", icon: "download" as const, keys: ["D"], run: () => save(handle, asset?.name ?? "") };
  const remove = { label: "Delete…", icon: "trash" as const, keys: ["Delete", "Backspace"], run: () => setIsDeleting(true) };
  return (
    <>
      <Look
        picture={known ?? listed ?? { id: handle, asset: handle, title: "Picture", isVideo: false }}
        siblings={among}
        go={go}
        compare={(id) => setCompared([handle, id])}
        deeds={[...(place === undefined ? [] : [show]), download, ...(isDeletable ? [remove] : [])]}
        about={asset && <AboutAsset asset={asset} />}
        isAboutOpen={innerWidth >= 760}
        close={close}
      />
      {isDeleting && asset && <Deletion asset={asset} close={() => setIsDeleting(false)} removed={(asset) => (setIsDeleting(false), removed(asset))} />}
    </>
  );
}

/** Saves the file of an asset. */
function save(asset: string, name: string): void {
  const link = document.createElement("a");
  link.href = fileUrl(asset);
  link.download = name;
  link.click();
}

function AboutAsset({ asset }: { asset: Asset }) {
  const { account, session } = useSession();
  return (
    <>
      <AiBadge asset={asset} />
      <dl className={look.facts}>
        <FileFacts asset={asset} />
        <div>
          <dt>For programs</dt>
          <dd>
            <Copy text={asset.handle} label="the name for programs" />
          </dd>
        </div>
      </dl>
      <Usages key={asset.handle} asset={asset} />
      {asset.original && (
        <a className={`${parts.button} ${parts.plain}`} href={`${fileUrl(asset.handle)}?original=true`} download>
          <Icon name="download" size={16} />
          Original, {bytes(asset.original.bytes)}
        </a>
      )}
      {asset.ownerUid === account.id && session.kind === "narrow" && (
        <p className={styles.note}>You are signed in with a token. Only the owner of the account, signed in with a link, deletes pictures.</p>
      )}
    </>
  );
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
              ? "No canvas of yours shows it."
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
            , {count(nodes.length, "thing")}
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
    <Modal title={isShown ? "Delete it although it is shown?" : "Delete this picture?"} close={close}>
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
