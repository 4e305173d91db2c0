import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { Bitmaps } from "./bitmaps.ts";

/** Images whose requests are answered at once, and what was asked for. */
class Scene {
  asked: string[] = [];
  closed = 0;
  redraws = 0;
  isBroken = false;
  bitmaps = new Bitmaps(async (asset) => {
    this.asked.push(asset);
    if (this.isBroken) throw new Error("broken");
    return { close: () => (this.closed += 1) } as unknown as ImageBitmap;
  });

  /** Draws a frame, and returns what it shows. */
  draw(assets: string[]): string[] {
    this.bitmaps.begin();
    const shown = assets.filter((asset) => this.bitmaps.of(asset));
    this.bitmaps.end(() => (this.redraws += 1));
    return shown;
  }

  /** Draws frames until nothing asks for another one. */
  async settle(assets: string[]): Promise<string[]> {
    for (let frames = 0; ; frames += 1) {
      assert(frames < 5000, "the board comes to rest");
      this.redraws = 0;
      const shown = this.draw(assets);
      await new Promise((resolve) => setImmediate(resolve));
      if (this.redraws === 0) return shown;
    }
  }
}

const images = (from: number, count: number) => Array.from({ length: count }, (_, index) => `asset:${from + index}`);

test("of more images in view than are kept, the first are shown, each is asked for once, and the others stay boxes", async () => {
  const scene = new Scene();
  const inView = images(0, 3000);
  assert.deepEqual(await scene.settle(inView), inView.slice(0, 2000));
  for (let frame = 0; frame < 10; frame += 1) await scene.settle(inView);
  assert.deepEqual(scene.asked.toSorted(), inView.slice(0, 2000).toSorted());
  assert.equal(scene.closed, 0);
});

test("what is out of view makes room for what comes into view, in the first frame that shows it", async () => {
  const scene = new Scene();
  await scene.settle(images(0, 2000));
  assert.equal((await scene.settle(images(1500, 2000))).length, 2000);
  assert.equal(scene.asked.length, 3500);
  assert.equal(scene.closed, 1500);
});

test("what leaves the view before its turn is not loaded", async () => {
  const scene = new Scene();
  scene.draw(images(0, 1000));
  assert.equal((await scene.settle(images(5000, 10))).length, 10);
  assert.equal(scene.asked.length, 13, "three were under way");
});

test("an image that failed is asked for again after a while", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const scene = new Scene();
  scene.isBroken = true;
  await scene.settle(["asset:1"]);
  await scene.settle(["asset:1"]);
  assert.equal(scene.asked.length, 1);
  scene.isBroken = false;
  mock.timers.tick(15_000);
  assert.deepEqual(await scene.settle(["asset:1"]), ["asset:1"]);
  assert.equal(scene.asked.length, 2);
  mock.timers.reset();
});
