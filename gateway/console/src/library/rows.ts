/** Rows of images, each in its own ratio and all of a row equally high, and the way from one to another by keys. */
export interface Row {
  from: number;
  to: number;
  /** The height of its images. */
  height: number;
  /** Whether its images reach from side to side, but for parts of pixels. */
  isFull: boolean;
}

/** Ratios that are shown as they are. What is narrower or wider has a margin. */
const LEAST_RATIO = 0.7;
const MOST_RATIO = 2.6;

export const shownRatio = (width: number, height: number): number => (width > 0 && height > 0 ? Math.min(Math.max(width / height, LEAST_RATIO), MOST_RATIO) : 4 / 3);

/** Fills rows of `width` with images that are about as high as `height`. The last row may be shorter. */
export function rowsOf(ratios: readonly number[], width: number, height: number, gap: number): Row[] {
  const rows: Row[] = [];
  for (let from = 0; from < ratios.length; ) {
    let [to, sum] = [from, 0];
    const fitting = (sum: number, count: number) => (width - (count - 1) * gap) / sum;
    while (to < ratios.length) {
      const more = sum + (ratios[to] ?? 1);
      const [without, within] = [fitting(sum, to - from), fitting(more, to - from + 1)];
      // Whichever is nearer to the height that is wanted.
      if (to > from && within < height && height / Math.max(within, 1) > without / height) break;
      [sum, to] = [more, to + 1];
      if (within <= height) break;
    }
    const filling = fitting(sum, to - from);
    const isShort = to === ratios.length && filling > height;
    const isFull = !isShort && filling <= 1.6 * height;
    rows.push({ from, to, height: Math.max(Math.floor(isShort ? height : Math.min(filling, 1.6 * height)), 1), isFull });
    from = to;
  }
  return rows;
}

/** Where a key leads from an image, if it leads anywhere. Up and down go to the nearest of the next row. */
export function stepOf(rows: readonly Row[], ratios: readonly number[], at: number, key: string): number | undefined {
  const row = rows.findIndex(({ from, to }) => at >= from && at < to);
  const steps: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: ratios.length - 1 };
  const next = steps[key];
  if (next !== undefined) return next >= 0 && next < ratios.length ? next : undefined;
  const beside = rows[row + (key === "ArrowDown" ? 1 : key === "ArrowUp" ? -1 : Number.NaN)];
  if (!beside) return undefined;
  const middles = (row: Row | undefined): [number, number][] => {
    let left = 0;
    return ratios.slice(row?.from, row?.to).map((ratio, index) => {
      const middle = left + (ratio * (row?.height ?? 0)) / 2;
      left += ratio * (row?.height ?? 0);
      return [(row?.from ?? 0) + index, middle];
    });
  };
  const here = middles(rows[row]).find(([index]) => index === at)?.[1] ?? 0;
  return middles(beside).reduce((best, one) => (Math.abs(one[1] - here) < Math.abs(best[1] - here) ? one : best))[0];
}
