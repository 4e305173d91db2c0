/**
 * The page on which a change of the console is looked at: every screen in three widths, light and dark, with Latin and with Arabic titles,
 * before and after, and the faults that geometry.ts finds: tests/browser/run --review [NAME…]
 *
 * What was taken by the last run is what was before; in the first run, that is the screenshot of the documentation.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

import type { Browser, Page } from "playwright-core";

import { faultsOf } from "./geometry.ts";
import { send } from "./service.ts";

const ROOT = join(import.meta.dirname, "../..");
const REVIEW = join(ROOT, ".local/browser/review");
const WIDTHS = [1440, 1024, 390] as const;
const HEIGHT = 844;
const SCHEMES = ["light", "dark"] as const;
const SCRIPTS = ["latin", "arabic"] as const;
const ARABIC = "حملة الخريف لمقهى لومن أكواب وأوعية ودورق من الطين الداكن مع تزجيج بلون الطوب والشوفان";

interface Shot {
  screen: string;
  file: string;
  before: string | undefined;
  /** The share of pixels that differ; undefined without a shot of the same size from before. */
  share: number | undefined;
}

/** The names that the account has given: to canvases and their nodes, assets, Elements and Recipes. */
async function namesOf(token: string): Promise<string[]> {
  const get = <T>(path: string) => send<T>("GET", path, undefined, token);
  const { canvases } = await get<{ canvases: { handle: string; title: string }[] }>("/canvases?limit=100");
  const boards = await Promise.all(canvases.map(({ handle }) => get<{ canvas: { nodes: { title: string }[] } }>(`/canvases/${handle}`)));
  const { assets } = await get<{ assets: { name: string }[] }>("/assets?limit=100");
  const { elements } = await get<{ elements: { name: string }[] }>("/elements?limit=100");
  return [...canvases, ...boards.flatMap(({ canvas }) => canvas.nodes)].map(({ title }) => title).concat([...assets, ...elements].map(({ name }) => name)).filter(Boolean);
}

export interface Review {
  /** Takes a screen, and looks for faults. */
  take: (page: Page, screen: string) => Promise<void>;
  /** Writes the page. Resolves to whether no fault was found. */
  finish: () => Promise<boolean>;
}

export async function openReview(browser: Browser, token: string, isWhole: boolean): Promise<Review> {
  const [before, after] = [join(REVIEW, "before"), join(REVIEW, "after")];
  // A run of some screens is compared with the last run of all.
  if (existsSync(after) && (isWhole || !existsSync(before))) {
    rmSync(before, { recursive: true, force: true });
    renameSync(after, before);
  }
  rmSync(after, { recursive: true, force: true });
  mkdirSync(after, { recursive: true });
  const names = await namesOf(token);
  const comparing = await browser.newPage();
  const shots: Shot[] = [];
  const faults: string[] = [];

  async function shoot(page: Page, screen: string, script: string): Promise<void> {
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: HEIGHT });
      await page.waitForTimeout(400);
      for (const fault of await faultsOf(page)) faults.push(`${screen}, ${width}, ${script}: ${fault}`);
      for (const colorScheme of SCHEMES) {
        await page.emulateMedia({ colorScheme });
        await page.waitForTimeout(200);
        const name = `${screen}-${width}-${colorScheme}-${script}.jpg`;
        const image = await page.screenshot({ type: "jpeg", quality: 70 });
        writeFileSync(join(after, name), image);
        const [last, documented] = [join(before, name), join(ROOT, "docs/images/console", `${screen}-${colorScheme}.jpg`)];
        const known = [last, documented].find((file) => existsSync(file));
        shots.push({ screen, file: join(after, name), before: known, share: known === last ? await difference(comparing, readFileSync(last), image, join(after, `${name}.png`)) : undefined });
      }
    }
    await page.emulateMedia({ colorScheme: "light" });
  }

  return {
    take: async (page, screen) => {
      const size = page.viewportSize();
      for (const script of SCRIPTS) {
        if (script === "arabic") await page.evaluate(rename, [names, ARABIC] as const);
        await shoot(page, screen, script);
      }
      if (size) await page.setViewportSize(size);
    },
    finish: async () => {
      await comparing.close();
      writeFileSync(join(REVIEW, "index.html"), pageOf(shots.toSorted((a, b) => (b.share ?? 2) - (a.share ?? 2)), faults));
      console.log(`${shots.length} screenshots, ${shots.filter(({ share }) => share !== 0).length} differ: ${relative(ROOT, join(REVIEW, "index.html"))}`);
      for (const fault of faults) console.error(fault);
      return faults.length === 0;
    },
  };
}

/** In the page: shows other names of the same length. */
function rename([names, phrase]: readonly [string[], string]): void {
  const known = new Set(names);
  const other = (name: string) => `${phrase} `.repeat(Math.ceil(name.length / phrase.length)).slice(0, name.length).trim();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) if (known.has(text.nodeValue ?? "")) text.nodeValue = other(text.nodeValue ?? "");
  for (const field of document.querySelectorAll("input")) if (known.has(field.value)) field.value = other(field.value);
}

/** The share of pixels that differ between two images. They are marked in a third one. */
async function difference(page: Page, before: Buffer, after: Buffer, file: string): Promise<number | undefined> {
  if (before.equals(after)) return 0;
  const found = await page.evaluate(async (images) => {
    const [a, b] = await Promise.all(images.map(async (image) => createImageBitmap(await (await fetch(`data:image/jpeg;base64,${image}`)).blob())));
    if (!a || !b || a.width !== b.width || a.height !== b.height) return undefined;
    const canvas = Object.assign(document.createElement("canvas"), { width: a.width, height: a.height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    if (!context) return undefined;
    const pixels = (image: ImageBitmap) => (context.drawImage(image, 0, 0), context.getImageData(0, 0, image.width, image.height));
    const [from, to] = [pixels(a).data, pixels(b)];
    let count = 0;
    for (let at = 0; at < from.length; at += 4) {
      const isSame = [0, 1, 2].every((channel) => Math.abs((from[at + channel] ?? 0) - (to.data[at + channel] ?? 0)) < 24);
      if (isSame) to.data[at + 3] = 60;
      else to.data.set([255, 0, 80, 255], at);
      if (!isSame) count += 1;
    }
    context.putImageData(to, 0, 0);
    return { share: count / (a.width * a.height), image: canvas.toDataURL("image/png").split(",")[1] ?? "" };
  }, [before, after].map((image) => image.toString("base64")));
  if (found) writeFileSync(file, Buffer.from(found.image, "base64"));
  return found?.share;
}

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");

function pageOf(shots: Shot[], faults: string[]): string {
  const image = (file: string | undefined) => (file === undefined || !existsSync(file) ? "<td>none</td>" : `<td><a href="${relative(REVIEW, file)}"><img loading="lazy" src="${relative(REVIEW, file)}"></a></td>`);
  const row = ({ file, before, share }: Shot) =>
    `<tr><th>${relative(join(REVIEW, "after"), file)}<br>${share === undefined ? "new" : `${(share * 100).toFixed(2)} %`}</th>${image(before)}${image(file)}${image(share ? `${file}.png` : undefined)}</tr>`;
  return `<!doctype html><meta charset="utf-8"><title>Review of the console</title>
<style>body{font:14px system-ui;margin:24px}td,th{vertical-align:top;padding:8px;text-align:start;border-top:1px solid #ddd}img{width:100%;max-width:28vw}th{width:10vw;overflow-wrap:anywhere}</style>
<h1>Review of the console</h1><h2>${faults.length} faults of the layout</h2><ul>${faults.map((fault) => `<li>${escaped(fault)}</li>`).join("")}</ul>
<table><tr><th></th><th>before</th><th>after</th><th>difference</th></tr>${shots.map(row).join("\n")}</table>
`;
}
