import assert from "node:assert/strict";
import { test } from "node:test";
import { fit, LEAST_SCALE, MOST_SCALE, pan, type View, zoom } from "./view.ts";

const screen = { width: 1000, height: 600 };
const box = { x: -40, y: -40, width: 4000, height: 1000 };

const near = (actual: number, expected: number) => assert.ok(Math.abs(actual - expected) < 1e-6, `${actual}, not ${expected}`);

test("a fitted image is centered and whole", () => {
  const view = fit(box, screen);
  near(view.x + (box.x + 2000) * view.scale, 500);
  near(view.y + (box.y + 500) * view.scale, 300);
  near(box.width * view.scale, 1000 - 48);
});

test("a small image is not enlarged, and a screen without room is no error", () => {
  assert.equal(fit({ x: 0, y: 0, width: 10, height: 10 }, screen).scale, 1);
  assert.equal(fit(box, { width: 0, height: 0 }).scale, LEAST_SCALE);
});

test("zooming keeps the point under the pointer, and its limits", () => {
  const before: View = { x: 12, y: -30, scale: 0.5 };
  const point = { x: 700, y: 80 };
  const after = zoom(before, point, 1.7);
  near((point.x - after.x) / after.scale, (point.x - before.x) / before.scale);
  near((point.y - after.y) / after.scale, (point.y - before.y) / before.scale);
  assert.equal(zoom(before, point, 1e9).scale, MOST_SCALE);
  assert.equal(zoom(before, point, 1e-9).scale, LEAST_SCALE);
});

test("panning leaves a part of the image in view", () => {
  const view = fit(box, screen);
  const far = pan(view, { x: 1e6, y: -1e6 }, box, screen);
  near(far.x + box.x * view.scale, screen.width - 64);
  near(far.y + (box.y + box.height) * view.scale, 64);
  assert.deepEqual(pan(view, { x: 5, y: 5 }, box, screen), { x: view.x + 5, y: view.y + 5, scale: view.scale });
});
