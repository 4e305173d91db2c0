/** The formulas of the Action color-grade, as `shared/raster/src/grade` has them: a preview is within a level of the result. */
type Params = Record<string, string | number>;
type Matrix = readonly (readonly number[])[];

/** Luma weights of red, green and blue. */
const LUMA = [54 / 256, 183 / 256, 19 / 256];

const clamp = (value: number) => Math.min(Math.max(value, 0), 1);
const light = (v: number) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const encoded = (v: number) => (v <= 0.0031308 ? v * 12.92 : 1.055 * v ** (1 / 2.4) - 0.055);

const diagonal = (gains: number[]): Matrix => gains.map((gain, row) => gains.map((_, at) => (at === row ? gain : 0)));
const saturate = (amount: number): Matrix => LUMA.map((_, row) => LUMA.map((weight, at) => weight * (1 - amount) + (at === row ? amount : 0)));

/** Colors, and the slope and offset that are applied after them. */
const PRESETS: Record<string, [colors: Matrix, slope: number, offset: number]> = {
  noir: [saturate(0), 1.3, -0.15],
  sepia: [[[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]], 1, 0],
  warm: [diagonal([1.08, 1.02, 0.88]), 1, 0],
  cool: [diagonal([0.9, 1, 1.1]), 1, 0],
  vivid: [saturate(1.35), 1.1, -0.05],
  faded: [saturate(0.75), 0.84, 0.1],
}; // prettier-ignore

/** What a sample of red, green or blue becomes by light, brightness, contrast, tones and gamma. */
function tableOf(params: Params, stops: number): Float64Array {
  const part = (name: string) => Number(params[name] ?? 0) / 100;
  const gamma = Number(params["gamma"] ?? 1);
  return Float64Array.from({ length: 256 }, (_, sample) => {
    const lit = encoded(Math.min(light(sample / 255) * 2 ** (stops + Number(params["exposure"] ?? 0)), 1));
    const v = clamp((lit * (1 + part("brightness")) - 0.5) * (1 + part("contrast")) + 0.5);
    return clamp(v + part("highlights") * v * v * (1 - v) + part("shadows") * v * (1 - v) ** 2) ** (1 / gamma);
  });
}

/** The rows of a preset at its intensity, with what is added last. */
function matrixOf({ preset, intensity = 100 }: Params): number[][] | undefined {
  const found = PRESETS[String(preset)];
  const share = Number(intensity) / 100;
  if (!found || share === 0) return undefined;
  const [colors, slope, offset] = found;
  return colors.map((row, at) => row.map((factor, column) => (column === at ? 1 : 0) + (factor * slope - (column === at ? 1 : 0)) * share).concat(offset * share));
}

/** Changes the colors of pixels of red, green, blue and alpha, in place. */
export function grade(pixels: Uint8ClampedArray, params: Params): void {
  const part = (name: string) => Number(params[name] ?? 0) / 100;
  const [warm, tint] = [part("temperature") / 2, part("tint") / 2];
  const [reds, greens, blues] = [tableOf(params, warm), tableOf(params, -tint), tableOf(params, -warm)] as const;
  const [saturation, vibrance] = [1 + part("saturation"), part("vibrance")];
  const matrix = matrixOf(params);
  const rows = matrix?.flat() ?? [];
  const isSaturated = saturation !== 1 || vibrance !== 0;
  for (let at = 0; at < pixels.length; at += 4) {
    let r = reds[pixels[at] as number] as number;
    let g = greens[pixels[at + 1] as number] as number;
    let b = blues[pixels[at + 2] as number] as number;
    if (isSaturated) {
      const luma = r * (LUMA[0] as number) + g * (LUMA[1] as number) + b * (LUMA[2] as number);
      const spread = Math.max(r, g, b) - Math.min(r, g, b);
      const factor = saturation * (1 + vibrance * (1 - spread));
      r = clamp(luma + (r - luma) * factor);
      g = clamp(luma + (g - luma) * factor);
      b = clamp(luma + (b - luma) * factor);
    }
    if (matrix) {
      const row = (start: number) => clamp(r * (rows[start] as number) + g * (rows[start + 1] as number) + b * (rows[start + 2] as number) + (rows[start + 3] as number));
      [r, g, b] = [row(0), row(4), row(8)];
    }
    pixels[at] = r * 255;
    pixels[at + 1] = g * 255;
    pixels[at + 2] = b * 255;
  }
}
