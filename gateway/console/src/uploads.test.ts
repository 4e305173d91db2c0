import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { countUploads, endUploads, Uploads, uploadsTo } from "./uploads.ts";

/** A request that is answered when a test says so. */
class FakeRequest extends EventTarget {
  static sent: FakeRequest[] = [];
  readonly upload = new EventTarget();
  readonly headers = new Map<string, string>();
  status = 0;
  responseText = "";
  isAborted = false;

  open(): void {}

  setRequestHeader(name: string, value: string): void {
    this.headers.set(name, value);
  }

  getResponseHeader(): null {
    return null;
  }

  send(): void {
    FakeRequest.sent.push(this);
  }

  abort(): void {
    this.isAborted = true;
  }

  answer(status: number, body: object): Promise<void> {
    Object.assign(this, { status, responseText: JSON.stringify(body) });
    this.dispatchEvent(new Event("load"));
    return settle();
  }
}

Object.assign(globalThis, { XMLHttpRequest: FakeRequest });

const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
const newest = () => FakeRequest.sent.at(-1) ?? assert.fail("nothing was sent");
const image = () => new File(["x"], "harbor.png", { type: "image/png" });
const photo = () => new File(["x"], "IMG_1.HEIC", { type: "" });
const refusal = { error: { message: "no" } };

afterEach(endUploads);

test("an upload goes on and stays listed when its screen is left, and another attempt has the same key", async () => {
  const stored: string[] = [];
  const visit = () => uploadsTo("canvas:a:1", () => new Uploads("canvas:a:1", ({ handle }) => void stored.push(handle)));
  const key = visit().add([image()]).added[0]?.key;
  await settle();
  assert.equal(countUploads(), 1);
  await newest().answer(401, refusal);
  assert.equal(visit().getList()[0]?.problem?.status, 401);
  assert.equal(countUploads(), 1, "after the next sign-in it can be tried again");
  visit().retry(key ?? "");
  assert.equal(newest().headers.get("Idempotency-Key"), key);
  await newest().answer(201, { asset: { handle: "asset:a:1" } });
  assert.deepEqual([stored, visit().getList(), countUploads()], [["asset:a:1"], [], 0]);
});

test("a file that the service does not take is listed, and does not count as one that would be lost", async () => {
  const uploads = uploadsTo("assets", () => new Uploads(undefined, () => {}));
  uploads.add([image()]);
  await settle();
  await newest().answer(422, refusal);
  assert.deepEqual([uploads.getList().length, countUploads()], [1, 0]);
});

test("uploads that are ended are aborted, and no other one begins", async () => {
  const stored: string[] = [];
  const uploads = uploadsTo("assets", () => new Uploads(undefined, ({ handle }) => void stored.push(handle)));
  const before = FakeRequest.sent.length;
  uploads.add(Array.from({ length: 6 }, image));
  await settle();
  const sent = FakeRequest.sent.slice(before);
  assert.equal(sent.length, 4);
  endUploads();
  await settle();
  assert(sent.every(({ isAborted }) => isAborted));
  assert.deepEqual([FakeRequest.sent.length - before, uploads.getList(), countUploads(), stored], [4, [], 0, []]);
  assert.notEqual(uploadsTo("assets", () => new Uploads(undefined, () => {})), uploads);
});

test("a HEIC is converted once where the browser reads it, and sent as it is where it does not", async () => {
  const uploads = uploadsTo("assets", () => new Uploads(undefined, () => {}));
  const before = FakeRequest.sent.length;
  assert.deepEqual(uploads.add([photo(), new File(["x"], "notes.txt", { type: "text/plain" })]).refused, ["notes.txt"]);
  await settle();
  await settle();
  const headers = () => [newest().headers.get("Content-Type"), newest().headers.get("X-Service-File-Name")];
  assert.deepEqual([FakeRequest.sent.length - before, ...headers()], [1, "image/heic", "IMG_1.HEIC"]);
  await newest().answer(415, refusal);
  uploads.dismiss(uploads.getList()[0]?.key ?? "");

  let conversions = 0;
  class FakeCanvas {
    getContext(): undefined {}
    convertToBlob(): Promise<Blob> {
      conversions += 1;
      return Promise.resolve(new Blob(["j"], { type: "image/jpeg" }));
    }
  }
  Object.assign(globalThis, { createImageBitmap: () => Promise.resolve({ width: 4, height: 3, close: () => {} }), OffscreenCanvas: FakeCanvas });
  const key = uploads.add([photo()]).added[0]?.key ?? "";
  await settle();
  await settle();
  assert.deepEqual(headers(), ["image/jpeg", "IMG_1.jpg"]);
  await newest().answer(401, refusal);
  uploads.retry(key);
  await settle();
  assert.deepEqual([...headers(), conversions], ["image/jpeg", "IMG_1.jpg", 1]);
  Reflect.deleteProperty(globalThis, "createImageBitmap");
});
