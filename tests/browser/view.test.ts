/** The view of the board, and the colors of the console. */
import assert from "node:assert/strict";

import { box, drag, node, openBoard, plane, saved, text, titled, until } from "./board.ts";
import { becomes, NOBODY, scene } from "./browser.ts";
import { makeBoard, read, stranger } from "./service.ts";
import { signIn } from "./steps.ts";

scene("the view is moved by Space and a drag and by the small map, and its scale is told", async ({ page, expect, isAccessible }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("View", [text("Here", 0, 0), text("There", 6000, 4000)]);
  const { revision } = await read(canvas);
  await openBoard(page, url);
  const scale = page.getByRole("group", { name: "Zoom" }).getByRole("button", { name: /%: full size$/ });
  assert.notEqual(await scale.textContent(), "100 %");
  await scale.press("Enter");
  await becomes(() => scale.textContent(), "100 %");
  await page.getByRole("application", { name: "Board" }).focus();
  await page.keyboard.press("-");
  await becomes(() => scale.textContent(), "80 %");
  await isAccessible();

  await page.keyboard.press("Control+k");
  await page.keyboard.type("Here");
  await page.getByRole("option", { name: "Here text", exact: true }).click();
  const start = await box(node(page, "Here"));
  await page.keyboard.down(" ");
  await drag(page, { x: start.x + 20, y: start.y + 20 }, { x: start.x - 100, y: start.y + 70 });
  await page.keyboard.up(" ");
  const moved = await box(node(page, "Here"));
  const [right, down] = [moved.x - start.x, moved.y - start.y];
  assert(right <= -90 && right >= -121 && down >= 35 && down <= 51, `the view has moved by ${right}, ${down}`);
  await saved(page);
  assert.equal((await read(canvas)).revision, revision, "the node itself has not moved");

  const map = await box(page.locator("canvas[class*=minimap]"));
  await page.mouse.click(map.x + map.width * 0.95, map.y + map.height * 0.9);
  await node(page, "There").waitFor();
  await becomes(() => node(page, "Here").count(), 0);
  await page.mouse.click(map.x + map.width * 0.05, map.y + map.height * 0.1);
  await node(page, "Here").waitFor();
});

scene("the colors are those of the system until a person chooses, and the choice lasts", async ({ page, open, expect, isAccessible }) => {
  expect(NOBODY);
  const friend = await stranger();
  await signIn(page, friend.token);
  const ground = (one = page) => one.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: "light" });
  const light = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  const dark = await ground();
  assert.notEqual(light, dark);
  const choose = async (name: string) => {
    await page.getByRole("button", { name: /^Account of/ }).press("Enter");
    await page.getByRole("group", { name: "Colors" }).getByText(name, { exact: true }).click();
    await page.keyboard.press("Escape");
  };
  await choose("Light");
  await becomes(ground, light);
  await page.reload();
  await page.getByRole("button", { name: /^Account of/ }).waitFor();
  await becomes(ground, light, "after a reload");
  await isAccessible();
  await page.emulateMedia({ colorScheme: "light" });
  await choose("Dark");
  await becomes(ground, dark);
  const other = await open();
  await other.emulateMedia({ colorScheme: "light" });
  await other.goto("/runs");
  await becomes(() => ground(other), dark, "in another tab");
  await choose("System");
  await becomes(ground, light);
  await page.emulateMedia({ colorScheme: "dark" });
  await becomes(ground, dark, "it follows the system again");
});

scene("keys in the account menu are not for the board", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Menu", [text("Stays", 0, 0)]);
  await openBoard(page, url);
  await node(page, "Stays").click();
  await page.getByRole("button", { name: /^Account of/ }).press("Enter");
  const menu = page.locator("#account");
  await menu.waitFor();
  for (const key of ["n", "Tab", "Tab", "Delete", "Escape"]) await page.keyboard.press(key);
  await menu.waitFor({ state: "hidden" });
  await page.locator(".react-flow__node.selected").waitFor();
  assert.deepEqual((await read(canvas)).nodes.map(({ title }) => title), ["Stays"]);
  await becomes(() => page.locator(".react-flow__node").count(), 1);
});

scene("a finger selects what is drawn, and ends a selection", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Touched", [text("Here", 0, 0, { width: 2000, height: 1600 }), text("There", 30_000, 20_000)]);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Emulation.setTouchEmulationEnabled", { enabled: true });
  await openBoard(page, url);
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...touchPoints: { x: number; y: number }[]) => devtools.send("Input.dispatchTouchEvent", { type, touchPoints });
  const tap = async (at: { x: number; y: number }) => {
    await touch("touchStart", at);
    await touch("touchEnd");
  };
  const at = await plane(page);
  const { revision } = await read(canvas);
  const said = page.getByRole("status").getByText("1 thing selected");
  await tap(at(1000, 800));
  await said.waitFor();
  await tap(at(15_000, 10_000));
  await said.waitFor({ state: "detached" });
  const start = at(1000, 800);
  const slide = async () => {
    await touch("touchStart", start);
    for (const step of [10, 30, 60]) await touch("touchMove", { x: start.x + step, y: start.y + step });
    await touch("touchEnd");
    await page.waitForTimeout(500);
  };
  // A finger moves the view, and what is selected.
  await slide();
  assert.equal((await read(canvas)).revision, revision, "nothing has moved");
  const after = await plane(page);
  Object.assign(start, after(1000, 800));
  await tap(start);
  await said.waitFor();
  await slide();
  await said.waitFor();
  await until(canvas, "it has moved", (graph) => (titled(graph, "Here")?.position.x ?? 0) > 100);
});

scene("the small map fits a screen of another density", async ({ page, expect }) => {
  expect(NOBODY);
  const { url } = await makeBoard("Dense", [text("Here", 0, 0), text("There", 6000, 4000)]);
  await openBoard(page, url);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("Here");
  await page.getByRole("option", { name: "Here text", exact: true }).click();
  /** Whether something is drawn far to the right of the map. */
  const reaches = () =>
    page.locator("canvas[class*=minimap]").evaluate((element) => {
      const { width, height } = element as HTMLCanvasElement;
      const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
      copy?.drawImage(element as HTMLCanvasElement, 0, 0);
      const data = copy?.getImageData(0, 0, width, height).data ?? [];
      let most = 0;
      for (let at = 3; at < data.length; at += 4) if (data[at] === 255) most = Math.max(most, ((at - 3) / 4) % width);
      return most / width > 0.85;
    });
  await becomes(reaches, true);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Emulation.setDeviceMetricsOverride", { width: 1280, height: 800, deviceScaleFactor: 2, mobile: false });
  await page.keyboard.press("-");
  await becomes(reaches, true);
});
