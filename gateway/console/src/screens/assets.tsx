/** The images that the account has stored. */
import { useQueryClient } from "@tanstack/react-query";
import { useMemo, useRef, useState, useSyncExternalStore } from "react";
import type { Asset } from "../assets.ts";
import { ASSETS } from "../library/listing.ts";
import { Pictures } from "../library/pictures.tsx";
import { useSession } from "../session.ts";
import { FileInput } from "../ui/file-input.tsx";
import { useAddress, useTitle } from "../ui/hooks.ts";
import { Button, Empty, Icon } from "../ui/parts.tsx";
import parts from "../ui/parts.module.css";
import { laterDialog } from "../ui/later.tsx";
import { Shell } from "../ui/shell.tsx";
import { UploadList } from "../ui/upload-list.tsx";
import { refusalOf, Uploads, uploadsTo } from "../uploads.ts";
import styles from "./assets.module.css";
import list from "./list.module.css";
import { type Picture, pictureOf } from "./picture.ts";

const AssetLook = laterDialog("Asset", () => import("./asset-look.tsx"));

export function Assets() {
  useTitle("Pictures");
  const { session } = useSession();
  return (
    <Shell>
      {session.scopes.includes("asset:read") ? (
        <AssetList canUpload={session.scopes.some((scope) => scope === "image:generate" || scope === "video:generate")} />
      ) : (
        <Empty title="This session may not see pictures">
          <p className={parts.text}>The token that you signed in with does not have the scope asset:read.</p>
        </Empty>
      )}
    </Shell>
  );
}

function AssetList({ canUpload }: { canUpload: boolean }) {
  const queries = useQueryClient();
  const { params, set } = useAddress();
  const [notice, setNotice] = useState("");
  const [isOver, setIsOver] = useState(false);
  const uploads = useMemo(() => uploadsTo(ASSETS, () => new Uploads(undefined, () => queries.invalidateQueries({ queryKey: [ASSETS] }))), [queries]);
  const uploading = useSyncExternalStore(uploads.subscribe, uploads.getList);
  const canvas = params.get("canvas") ?? undefined;
  const open = params.get("asset");
  /** What was listed when one was opened. */
  const [among, setAmong] = useState<Picture[]>([]);

  function add(files: Iterable<File>) {
    const { refused } = uploads.add(files);
    setNotice(refused.length > 0 ? refusalOf(refused) : "");
  }

  function removed({ name, handle }: Asset) {
    // The next one gives its place.
    const at = among.findIndex((one) => one.id === handle);
    const rest = among.filter((one) => one.id !== handle);
    setAmong(rest);
    set("asset", rest[Math.min(at, rest.length - 1)]?.id);
    setNotice(`${name} was deleted.`);
  }

  const empty =
    canvas === undefined ? (
      <Empty title="No pictures yet">
        <p className={parts.text}>
          Images that are uploaded, imported or made with a model are kept here. {canUpload && "Drop some on this page, or upload them."}
        </p>
        {canUpload && <UploadButton add={add} />}
      </Empty>
    ) : (
      <Empty title={canvas === "none" ? "No pictures outside of canvases" : "No pictures in this canvas"}>
        <Button onClick={() => set("canvas", undefined)}>Show all pictures</Button>
      </Empty>
    );

  return (
    <div
      className={list.page}
      data-over={isOver || undefined}
      {...(canUpload && {
        onDragOver: (event) => {
          if (!event.dataTransfer.types.includes("Files")) return;
          event.preventDefault();
          setIsOver(true);
        },
        onDragLeave: (event) => event.currentTarget.contains(event.relatedTarget as Element | null) || setIsOver(false),
        onDrop: (event) => {
          event.preventDefault();
          setIsOver(false);
          add(event.dataTransfer.files);
        },
      })}
    >
      <div className={list.head}>
        <h1>Pictures</h1>
        <div className={list.tools}>
          {canUpload && <UploadButton add={add} />}
        </div>
      </div>
      {!canUpload && <p className={list.note}>Uploading needs the scope image:generate or video:generate, which this session does not have.</p>}
      <p className={notice === "" ? "unseen" : list.notice} role="status" dir="auto">
        {notice}
      </p>
      {uploading.length > 0 && (
        <div className={styles.uploads}>
          <UploadList uploads={uploads} list={uploading} dismissed={() => document.getElementById("content")?.focus({ preventScroll: true })} />
        </div>
      )}
      <Pictures source={{ kind: "all" }} kept={{ params, set }} canUpload={false} action="Open" choose={({ handle }, listed) => (setAmong(listed.map(pictureOf)), set("asset", handle))} empty={empty} />
      {open !== null && <AssetLook handle={open} among={among} go={(handle) => set("asset", handle)} close={() => set("asset", undefined)} removed={removed} />}
      <div className={styles.drop} aria-hidden="true">
        Drop images to upload them
      </div>
    </div>
  );
}

function UploadButton({ add }: { add: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button look="primary" onClick={() => input.current?.click()}>
        <Icon name="upload" size={16} />
        Upload
      </Button>
      <FileInput ref={input} multiple onFiles={add} />
    </>
  );
}
