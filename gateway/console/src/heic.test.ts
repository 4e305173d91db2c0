import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { isHeic, jpegOrHeic } from "./heic.ts";
import { ACCEPTED } from "./uploads.ts";

const photo = (name: string, type = "") => new File(["heic"], name, { type });

afterEach(() => ["createImageBitmap", "OffscreenCanvas"].forEach((name) => Reflect.deleteProperty(globalThis, name)));

/** A browser that reads HEIC, or one whose canvas gives no file. Returns what it was asked to do. */
function decoder(fails = false): unknown[] {
  const done: unknown[] = [];
  const bitmap = { width: 40, height: 30, close: () => void done.push("close") };
  class FakeCanvas {
    constructor(width: number, height: number) {
      done.push([width, height]);
    }

    getContext(kind: string) {
      return { drawImage: (...what: unknown[]) => void done.push([kind, ...what]) };
    }

    convertToBlob(options: { type: string; quality: number }): Promise<Blob> {
      done.push(options);
      return fails ? Promise.reject(new Error("too large")) : Promise.resolve(new Blob(["jpeg"], { type: options.type }));
    }
  }
  Object.assign(globalThis, { createImageBitmap: () => Promise.resolve(bitmap), OffscreenCanvas: FakeCanvas });
  return Object.assign(done, { bitmap });
}

test("a HEIC is known by its type, or by its name if it has none", () => {
  for (const file of [photo("a", "image/heic"), photo("a", "image/heif"), photo("IMG_1.HEIC"), photo("a.heif")]) assert(isHeic(file), file.name);
  for (const file of [photo("a.heic", "image/jpeg"), photo("heic"), photo("a.heic.png"), photo("a.heix")]) assert(!isHeic(file), file.name);
});

test("where the browser reads HEIC, a JPEG of the same size and name is made, and the image is let go", async () => {
  const done = decoder();
  const { bitmap } = done as unknown as { bitmap: object };
  const file = await jpegOrHeic(photo("IMG 1.HEIC"));
  assert.deepEqual([file.name, file.type, await file.text()], ["IMG 1.jpg", "image/jpeg", "jpeg"]);
  assert.deepEqual([...done], [[40, 30], ["2d", bitmap, 0, 0], { type: "image/jpeg", quality: 0.92 }, "close"]);
  assert.equal((await jpegOrHeic(photo("heif", "image/heif"))).name, "heif");
});

test("where it does not, the bytes stay as they are and have the type by which the service knows them", async () => {
  Object.assign(globalThis, { createImageBitmap: () => Promise.reject(new DOMException("no decoder", "InvalidStateError")) });
  for (const type of ["", "image/heif"]) {
    const file = await jpegOrHeic(photo("IMG_1.HEIC", type));
    assert.deepEqual([file.name, file.type, await file.text()], ["IMG_1.HEIC", "image/heic", "heic"]);
  }
});

test("an image that was read but could not be written is let go, and the failure is not hidden", async () => {
  const done = decoder(true);
  await assert.rejects(jpegOrHeic(photo("IMG_1.heic")), /too large/);
  assert.equal(done.at(-1), "close");
});

test("file inputs ask for JPEG first and not for HEIC, so that Safari converts", () => {
  const types = ACCEPTED.split(",");
  assert.equal(types[0], "image/jpeg");
  assert.deepEqual(types.filter((type) => /hei[cf]/.test(type)), []);
});
