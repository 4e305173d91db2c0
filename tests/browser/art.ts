/** Images of a studio for ceramics: still lifes, swatches and patterns, drawn as SVG. */
import type { Browser } from "playwright-core";

/** A vessel: its outline in units around the middle of its foot, and its mouth. */
interface Shape {
  path: string;
  mouth: { y: number; rx: number; ry: number };
  /** The handle of a cup. */
  handle?: string;
}

const SHAPES = {
  cup: { path: "M-30-58-27-8Q-26 0-16 0H16Q26 0 27-8L30-58Z", mouth: { y: -58, rx: 30, ry: 6.5 }, handle: "M29-48C54-50 54-14 27-14" },
  bowl: { path: "M-50-42C-48-12-22 0-18 0H18C22 0 48-12 50-42Z", mouth: { y: -42, rx: 50, ry: 9 } },
  plate: { path: "M-66-10C-52-2-28 0-22 0H22C28 0 52-2 66-10Z", mouth: { y: -10, rx: 66, ry: 7 } },
  vase: { path: "M-15-118C-15-92-42-82-42-44-42-14-26 0-22 0H22C26 0 42-14 42-44 42-82 15-92 15-118Z", mouth: { y: -118, rx: 15, ry: 3.6 } },
  bottle: { path: "M-9-130C-9-84-30-84-30-52V-10Q-30 0-20 0H20Q30 0 30-10V-52C30-84 9-84 9-130Z", mouth: { y: -130, rx: 9, ry: 2.4 } },
} satisfies Record<string, Shape>;

interface Thing {
  is: keyof typeof SHAPES;
  x: number;
  /** Where it stands, from the top. */
  y: number;
  size: number;
  clay: string;
  /** The glaze of its upper part. */
  glaze?: string;
  hasBranch?: boolean;
}

export interface StillLife {
  name: string;
  width: number;
  height: number;
  wall: [string, string];
  table: string;
  /** The light of a window on the wall. */
  light?: string;
  things: Thing[];
}

const BRANCH = Array.from({ length: 9 }, (_, index) => {
  const [x, y] = [index * 5 - 8 + (index % 2) * 4, -122 - index * 14];
  const turn = index % 2 === 0 ? -38 : 36;
  return `<ellipse cx="${x + (turn > 0 ? 13 : -13)}" cy="${y}" rx="13" ry="5" transform="rotate(${turn} ${x} ${y})"/>`;
}).join("");

function thing({ is, x, y, size, clay, glaze, hasBranch }: Thing, index: number): string {
  const { path, mouth, handle }: Shape = SHAPES[is];
  const top = mouth.y;
  const rim = `<ellipse cy="${top}" rx="${mouth.rx}" ry="${mouth.ry}"`;
  const wave = `M-80-160H80V${top * 0.42}Q60 ${top * 0.3} 40 ${top * 0.44}T0 ${top * 0.38}T-40 ${top * 0.46}T-80 ${top * 0.4}Z`;
  return `<g transform="translate(${x} ${y}) scale(${size})">
    <ellipse cx="14" cy="1" rx="${mouth.rx + 26}" ry="7" fill="#000" opacity=".38" filter="url(#soft)"/>
    ${handle ? `<path d="${handle}" fill="none" stroke="${glaze ?? clay}" stroke-width="7"/><path d="${handle}" fill="none" stroke="#000" stroke-opacity=".22" stroke-width="7"/>` : ""}
    ${hasBranch ? `<g fill="#6d7a52" stroke="#57503c" stroke-width="0"><path d="M0-112C4-160 14-200 34-240" fill="none" stroke-width="2.4"/>${BRANCH}</g>` : ""}
    <clipPath id="body${index}"><path d="${path}"/></clipPath>
    <path d="${path}" fill="${clay}"/>
    ${glaze ? `<path d="${wave}" fill="${glaze}" clip-path="url(#body${index})"/>` : ""}
    <path d="${path}" fill="url(#round)"/>
    ${hasBranch ? "" : `${rim} fill="${glaze ?? clay}"/>${rim} fill="url(#inside)"/>`}
  </g>`;
}

function stillLife({ width, height, wall, table, light, things }: StillLife): string {
  const edge = height * 0.7;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
  <defs>
    <linearGradient id="wall" x2="1" y2="1"><stop stop-color="${wall[0]}"/><stop offset="1" stop-color="${wall[1]}"/></linearGradient>
    <linearGradient id="table" x2="0" y2="1"><stop stop-color="#000" stop-opacity=".3"/><stop offset=".3" stop-color="#000" stop-opacity=".04"/><stop offset="1" stop-color="#000" stop-opacity=".28"/></linearGradient>
    <linearGradient id="round"><stop stop-color="#000" stop-opacity=".3"/><stop offset=".3" stop-color="#fff" stop-opacity=".26"/><stop offset=".6" stop-color="#000" stop-opacity=".04"/><stop offset="1" stop-color="#000" stop-opacity=".5"/></linearGradient>
    <linearGradient id="inside"><stop stop-color="#000" stop-opacity=".55"/><stop offset="1" stop-color="#000" stop-opacity=".18"/></linearGradient>
    <filter id="soft" x="-50%" y="-150%" width="200%" height="400%"><feGaussianBlur stdDeviation="5"/></filter>
    <filter id="haze" x="-50%" y="-50%" width="200%" height="200%"><feGaussianBlur stdDeviation="${width / 40}"/></filter>
    <filter id="grain"><feTurbulence type="fractalNoise" baseFrequency=".8" numOctaves="2" seed="7"/><feColorMatrix values="0 0 0 0 .5 0 0 0 0 .5 0 0 0 0 .5 0 0 0 .5 0"/></filter>
  </defs>
  <rect width="${width}" height="${height}" fill="url(#wall)"/>
  ${light ? `<g fill="${light}" opacity=".5" filter="url(#haze)" transform="skewX(-14)">${[0.3, 0.56].map((x) => `<rect x="${x * width}" y="${height * 0.06}" width="${width * 0.2}" height="${height * 0.5}"/>`).join("")}</g>` : ""}
  <rect y="${edge}" width="${width}" height="${height - edge}" fill="${table}"/>
  <rect y="${edge}" width="${width}" height="${height - edge}" fill="url(#table)"/>
  ${things.map(thing).join("")}
  <rect width="${width}" height="${height}" filter="url(#grain)" opacity=".16" style="mix-blend-mode:overlay"/>
</svg>`;
}

export interface Swatches {
  name: string;
  width: number;
  height: number;
  colors: string[];
}

/** Fired tiles in rows of three. */
function swatches({ width, height, colors }: Swatches): string {
  const rows = Math.ceil(colors.length / 3);
  const [w, h] = [width / 3, height / rows];
  const tiles = colors.map((color, index) => {
    const [x, y] = [(index % 3) * w, Math.floor(index / 3) * h];
    return `<g transform="translate(${x + 16} ${y + 16})"><rect width="${w - 32}" height="${h - 32}" rx="10" fill="${color}"/><rect width="${w - 32}" height="${h - 32}" rx="10" filter="url(#fire)" opacity=".34" style="mix-blend-mode:soft-light"/><rect width="${w - 32}" height="${h - 32}" rx="10" fill="url(#sheen)"/></g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><defs><linearGradient id="sheen" x2="1" y2="1"><stop stop-color="#fff" stop-opacity=".28"/><stop offset=".5" stop-color="#fff" stop-opacity="0"/><stop offset="1" stop-color="#000" stop-opacity=".2"/></linearGradient><filter id="fire"><feTurbulence type="fractalNoise" baseFrequency=".04" numOctaves="4" seed="3"/></filter></defs><rect width="${width}" height="${height}" fill="#efe8de"/>${tiles.join("")}</svg>`;
}

/** The files of these images, as JPEG, by their names. */
export async function draw(browser: Browser, images: (StillLife | Swatches)[]): Promise<Record<string, Uint8Array<ArrayBuffer>>> {
  const page = await browser.newPage();
  const files: Record<string, Uint8Array<ArrayBuffer>> = {};
  for (const image of images) {
    const { name, width, height } = image;
    await page.setViewportSize({ width, height });
    await page.setContent(`<style>body{margin:0}svg{display:block}</style>${"colors" in image ? swatches(image) : stillLife(image)}`);
    files[name] = new Uint8Array(await page.screenshot({ type: "jpeg", quality: 90 }));
  }
  await page.close();
  return files;
}

const [BRICK, RUST, CREAM, OAT, SLATE, MOSS, INK] = ["#8f4630", "#b9623a", "#efe3cf", "#d8c6aa", "#5d6b76", "#7d8460", "#33343a"] as const;

/** What the studio has photographed. */
export const IMAGES: (StillLife | Swatches)[] = [
  {
    name: "Two cups at the window",
    width: 1200,
    height: 900,
    wall: ["#e9d8bf", "#c59a72"],
    table: "#7b4a30",
    light: "#fff3d6",
    things: [
      { is: "cup", x: 470, y: 760, size: 4.4, clay: OAT, glaze: BRICK },
      { is: "cup", x: 800, y: 800, size: 4, clay: OAT, glaze: CREAM },
    ],
  },
  {
    name: "Bowls, oat and slate",
    width: 1000,
    height: 1000,
    wall: ["#d9d6cf", "#a3a39d"],
    table: "#8c8276",
    things: [
      { is: "plate", x: 500, y: 850, size: 5.4, clay: SLATE },
      { is: "bowl", x: 500, y: 815, size: 4.6, clay: OAT, glaze: SLATE },
      { is: "bowl", x: 500, y: 655, size: 3.7, clay: OAT, glaze: CREAM },
    ],
  },
  {
    name: "Vase with an olive branch",
    width: 900,
    height: 1200,
    wall: ["#dfe0d2", "#a9ad92"],
    table: "#6f6650",
    light: "#fffbe6",
    things: [
      { is: "vase", x: 430, y: 1020, size: 4.4, clay: CREAM, hasBranch: true },
      { is: "cup", x: 690, y: 1060, size: 2.7, clay: OAT, glaze: MOSS },
    ],
  },
  {
    name: "Carafe and cup",
    width: 1200,
    height: 900,
    wall: ["#4d4640", "#2b2725"],
    table: "#3b2a20",
    light: "#c98852",
    things: [
      { is: "bottle", x: 500, y: 770, size: 4.6, clay: INK, glaze: RUST },
      { is: "cup", x: 790, y: 795, size: 3.8, clay: INK, glaze: CREAM },
    ],
  },
  { name: "Glaze tests, kiln 14", width: 1200, height: 900, colors: [BRICK, RUST, "#d08a55", CREAM, OAT, "#a99a83", SLATE, MOSS, INK] },
  {
    name: "Table for two",
    width: 1400,
    height: 900,
    wall: ["#e7c9ae", "#b37a5b"],
    table: "#5f3726",
    light: "#ffe7c4",
    things: [
      { is: "vase", x: 700, y: 740, size: 3.1, clay: RUST, hasBranch: true },
      { is: "plate", x: 360, y: 800, size: 3.7, clay: CREAM },
      { is: "cup", x: 350, y: 780, size: 2.5, clay: OAT, glaze: BRICK },
      { is: "plate", x: 1050, y: 815, size: 3.7, clay: CREAM },
      { is: "bowl", x: 1050, y: 796, size: 2.3, clay: OAT, glaze: SLATE },
    ],
  },
];
