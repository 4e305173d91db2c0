/** A dialog that chooses images: of a canvas, of those that are stored without one, or new ones from this machine. */
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import { answer, CONTRACT, contract, send } from "../api.ts";
import type { components } from "../contract.ts";
import { isHeic, jpegOrHeic } from "../heic.ts";
import { retryUntilAnswered } from "../retry.ts";
import { useSession } from "../session.ts";
import { Modal } from "../ui/dialog.tsx";
import { Button, Failure, Icon, Notice, Waiting } from "../ui/parts.tsx";
import { ACCEPTED } from "../uploads.ts";
import { isEditable, isOwned, useCanvases } from "./canvases.ts";
import styles from "./library.module.css";
import { Thumb } from "./thumb.tsx";
import { Unanswered } from "./unanswered.tsx";

export type Asset = components["schemas"]["Asset"];

interface Props {
  title: string;
  /** The canvas whose images are shown first. */
  canvas?: string | undefined;
  /** Only images that belong to this account. */
  isOwn?: boolean;
  /** Handles of images that are chosen already. Choosing one of them again takes it back. */
  chosen?: readonly string[];
  /** How many can be chosen. With one, choosing closes the dialog. */
  most?: number;
  choose: (asset: Asset) => void;
  close: () => void;
}

const NOTHING: string[] = [];

/** Stores an image without a canvas. */
export async function upload(chosen: File): Promise<Asset> {
  const file = isHeic(chosen) ? await jpegOrHeic(chosen) : chosen;
  const headers = { "Content-Type": file.type, "Idempotency-Key": crypto.randomUUID(), "X-Service-File-Name": encodeURIComponent(file.name) };
  const response = await retryUntilAnswered(() => send(new Request(`${CONTRACT}/assets`, { method: "POST", headers, body: file })));
  return ((await response.json()) as { asset: Asset }).asset;
}

export function Picker({ title, canvas = "", isOwn = false, chosen = NOTHING, most = 1, choose, close }: Props) {
  const { session } = useSession();
  const queries = useQueryClient();
  const [place, setPlace] = useState(canvas);
  const [error, setError] = useState<unknown>();
  const [isSending, setIsSending] = useState(false);
  const files = useRef<HTMLInputElement>(null);
  const canvases = useCanvases(isOwn ? isOwned : isEditable) ?? [];
  const list = useInfiniteQuery({
    queryKey: ["assets", "of", place],
    queryFn: ({ pageParam, signal }) =>
      answer(contract.GET("/api/canvas-agent/v1/assets", { params: { query: { limit: 48, ...(place && { canvasId: place }), ...(pageParam && { cursor: pageParam }) } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ page }) => page.nextCursor ?? undefined,
  });
  const assets = list.data?.pages.flatMap((page) => page.assets).filter(({ kind }) => kind === "image");
  const canUpload = session.scopes.includes("image:generate") || session.scopes.includes("video:generate");

  function take(asset: Asset) {
    choose(asset);
    if (most === 1) close();
  }

  async function add(file: File | undefined) {
    if (!file) return;
    setIsSending(true);
    setError(undefined);
    try {
      const asset = await upload(file);
      void queries.invalidateQueries({ queryKey: ["assets"] });
      setPlace("");
      take(asset);
    } catch (error) {
      setError(error);
    }
    setIsSending(false);
  }

  return (
    <Modal title={title} isWide close={close}>
      <div className={styles.tools}>
        <label className={styles.place}>
          <span>From</span>
          <select value={place} onChange={({ target }) => setPlace(target.value)}>
            <option value="">Uploads without a canvas</option>
            {place !== "" && !canvases.some(({ handle }) => handle === place) && <option value={place}>This canvas</option>}
            {canvases.map(({ handle, title }) => (
              <option key={handle} value={handle}>
                {title || "Untitled"}
              </option>
            ))}
          </select>
        </label>
        {canUpload && (
          <>
            <Button isBusy={isSending} disabled={most > 1 && chosen.length >= most} onClick={() => files.current?.click()}>
              <Icon name="upload" size={16} />
              {isSending ? "Uploading…" : "Upload an image"}
            </Button>
            <input
              ref={files}
              hidden
              type="file"
              accept={ACCEPTED}
              aria-label="Image to upload"
              onChange={({ target }) => {
                void add(target.files?.[0]);
                target.value = "";
              }}
            />
          </>
        )}
        {most > 1 && (
          <Button look="primary" className={styles.done} onClick={close}>
            Done
          </Button>
        )}
      </div>
      {most > 1 && (
        <p className={styles.hint} role="status">
          {chosen.length} of {most} chosen
        </p>
      )}
      <Unanswered />
      {error !== undefined && <Notice error={error} />}
      {list.isLoadingError && <Failure title="The images cannot be loaded" error={list.error} retry={list.refetch} />}
      {list.isPending && <Waiting label="Loading the images" />}
      {assets?.length === 0 && (
        <p className={styles.nothing}>{place === "" ? "Nothing is stored without a canvas. Upload an image, or choose a canvas above." : "This canvas has no images."}</p>
      )}
      {assets && assets.length > 0 && (
        <ul className={styles.choices}>
          {assets.map((asset) => {
            const isChosen = chosen.includes(asset.handle);
            return (
              <li key={asset.handle}>
                <button type="button" aria-pressed={most > 1 ? isChosen : undefined} disabled={most > 1 && !isChosen && chosen.length >= most} onClick={() => take(asset)}>
                  <Thumb asset={asset.handle} alt={asset.name} />
                  <bdi>{asset.name}</bdi>
                  {isChosen && (
                    <span className={styles.tick}>
                      <Icon name="check" size={14} />
                    </span>
                  )}
                </button>
              </li>
            );
          })}
        </ul>
      )}
      {list.isFetchNextPageError && <Notice error={list.error} />}
      {list.hasNextPage && (
        <Button isBusy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Show more
        </Button>
      )}
    </Modal>
  );
}
