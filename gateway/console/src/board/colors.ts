/** Colors that a person or an agent chose for a node, and what is legible with them. The service chooses the same grounds in renders. */

/** The colors of notes that are offered. Without one, a note is yellow. */
export const YELLOW = "#ffe48a";
export const PALETTE = [
  ["Yellow", YELLOW],
  ["Orange", "#ffc9a3"],
  ["Pink", "#ffb8c4"],
  ["Violet", "#d9c8ff"],
  ["Blue", "#bfdcff"],
  ["Green", "#c7e9d4"],
  ["Gray", "#e3e8ee"],
] as const;

const INK = "#1f242b";
const WHITE = "#ffffff";
const BLACK = "#000000";
/** The ground of a node in the dark theme. */
const NIGHT = "#1d222a";
/** The least contrast of a text with its ground (WCAG 2.2, level AA). On every color, black or white has it. */
const LEAST_CONTRAST = 4.5;
/** A color with less contrast than this changes the ground. Others are made a little darker or lighter. */
const GROUND_CONTRAST = 3;
/** The part of black or white that is added to a color at a time. */
const STEP = 0.05;

/** The red, green and blue of `#rrggbb`, from 0 to 255. */
const partsOf = (color: string): number[] => [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));

/** The relative luminance of `#rrggbb`: https://www.w3.org/TR/WCAG22/#dfn-relative-luminance */
function luminanceOf(color: string): number {
  const [red = 0, green = 0, blue = 0] = partsOf(color).map((byte) => {
    const part = byte / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

export function contrastOf(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminanceOf(one), luminanceOf(other)].toSorted((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const isLegible = (color: string, ground: string) => contrastOf(color, ground) >= LEAST_CONTRAST;

/** `color` with as much black or white as it needs to be legible on `ground`. */
function legible(color: string, ground: string): string {
  const end = ground === WHITE ? 0 : 255;
  const mixed = (share: number) => `#${partsOf(color).map((part) => Math.round(part + (end - part) * share).toString(16).padStart(2, "0")).join("")}`;
  let share = 0;
  while (share < 1 && !isLegible(mixed(share), ground)) share += STEP;
  return mixed(Math.min(share, 1));
}

/** A note of this color, with letters that are legible on it. */
export const noteColors = (color: string) => ({ background: color, color: [INK, WHITE].find((ink) => isLegible(ink, color)) ?? BLACK });

/** Letters of about this color, on the ground of the theme if they can be seen there, else on that of the other. */
export function textColors(color: string): { background: string; color: string } {
  const isSeenOn = (ground: string) => contrastOf(color, ground) >= GROUND_CONTRAST;
  const [day, night] = [isSeenOn(WHITE) ? WHITE : NIGHT, isSeenOn(NIGHT) ? NIGHT : WHITE];
  return { background: `light-dark(${day}, ${night})`, color: `light-dark(${legible(color, day)}, ${legible(color, night)})` };
}
