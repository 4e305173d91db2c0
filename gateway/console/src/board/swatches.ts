/** The main colors of an image, which go with it. */

/** How far two colors are apart at least, by their red, green and blue. */
const APART = 72;

/** At most `most` colors of pixels of red, green, blue and alpha, as "#rrggbb", the most frequent first. None is like another. */
export function mainColors(pixels: Uint8ClampedArray, most: number): string[] {
  // By four bits of each channel: how many there are, and their sums.
  const buckets = new Map<number, [count: number, red: number, green: number, blue: number]>();
  for (let at = 0; at < pixels.length; at += 4) {
    const [r = 0, g = 0, b = 0, alpha = 0] = pixels.subarray(at, at + 4);
    if (alpha < 128) continue;
    const key = ((r >> 4) << 8) | ((g >> 4) << 4) | (b >> 4);
    const [count, red, green, blue] = buckets.get(key) ?? [0, 0, 0, 0];
    buckets.set(key, [count + 1, red + r, green + g, blue + b]);
  }
  const found: [number, number, number][] = [];
  for (const [count, ...sums] of [...buckets.values()].toSorted((a, b) => b[0] - a[0])) {
    const color = sums.map((sum) => Math.round(sum / count)) as [number, number, number];
    if (found.length < most && found.every((one) => Math.hypot(...one.map((value, at) => value - (color[at] ?? 0))) >= APART)) found.push(color);
  }
  return found.map((color) => `#${color.map((value) => value.toString(16).padStart(2, "0")).join("")}`);
}
