/** Images that the service does not give. */
import { openBoard, ROOT } from "./board.ts";
import { NOBODY, scene } from "./browser.ts";
import { makeBoard, png, send, TOKEN } from "./service.ts";
import { field, isLive } from "./steps.ts";

scene("an image that was refused is asked for again after a while, and at once after the next sign-in", async ({ page, expect }) => {
  expect(NOBODY);
  const { canvas, url } = await makeBoard("Refused image", []);
  const { asset } = await send<{ asset: { handle: string } }>("POST", `/assets?canvasId=${canvas.handle}`, png(96, 96));
  expect(`404 GET ${ROOT}/assets/${encodeURIComponent(asset.handle)}/content`);
  const refuse = () => page.route("**/content?w=*", (route) => route.fulfill({ status: 404, json: { error: { code: "not_found", message: "There is no such asset." } } }));
  const [refused, shown] = [page.getByText("This image cannot be shown"), page.locator(".react-flow__node img")];
  await page.clock.install();
  await refuse();
  await openBoard(page, url);
  await refused.waitFor();
  await page.unroute("**/content?w=*");
  await page.clock.fastForward(31_000);
  await shown.waitFor();

  await refuse();
  await page.reload();
  await refused.waitFor();
  await page.unroute("**/content?w=*");
  await page.getByRole("button", { name: /^Account of/ }).click();
  await page.getByRole("button", { name: "Sign out" }).click();
  await field(page).fill(TOKEN);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("link", { name: "Refused image" }).first().click();
  await isLive(page);
  await shown.waitFor({ timeout: 10_000 });
});
