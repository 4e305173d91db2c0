/** Images that are stored without a canvas. */
import { CONTRACT, send } from "../api.ts";
import type { Asset } from "../assets.ts";
import { isHeic, jpegOrHeic } from "../heic.ts";
import { retryUntilAnswered } from "../retry.ts";

/** Stores an image without a canvas. */
export async function upload(chosen: File): Promise<Asset> {
  const file = isHeic(chosen) ? await jpegOrHeic(chosen) : chosen;
  const headers = { "Content-Type": file.type, "Idempotency-Key": crypto.randomUUID(), "X-Service-File-Name": encodeURIComponent(file.name) };
  const response = await retryUntilAnswered(() => send(new Request(`${CONTRACT}/assets`, { method: "POST", headers, body: file })));
  return ((await response.json()) as { asset: Asset }).asset;
}
