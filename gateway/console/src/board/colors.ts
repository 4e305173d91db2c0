/** Colors that a person or an agent chose for a node, and what is legible with them. The service has the same rules for renders. */

const INK = "#1f242b";
const WHITE = "#ffffff";
/** The ground of a node in the dark theme. */
const NIGHT = "#1d222a";
/** The least contrast of a text with its ground, as WCAG has it for large letters. */
const LEAST_CONTRAST = 3;

/** The relative luminance of `#rrggbb`: https://www.w3.org/TR/WCAG22/#dfn-relative-luminance */
function luminanceOf(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

export function contrastOf(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminanceOf(one), luminanceOf(other)].toSorted((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

/** A note of this color, with letters that are legible on it. */
export const noteColors = (color: string) => ({ background: color, color: contrastOf(INK, color) >= contrastOf(WHITE, color) ? INK : WHITE });

/** Letters of this color, on the ground of the theme if they are legible there, else on that of the other. */
export function textColors(color: string): { background: string; color: string } {
  const isLegibleOn = (ground: string) => contrastOf(color, ground) >= LEAST_CONTRAST;
  return { background: `light-dark(${isLegibleOn(WHITE) ? WHITE : NIGHT}, ${isLegibleOn(NIGHT) ? NIGHT : WHITE})`, color };
}
