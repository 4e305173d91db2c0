//! Converts rows of pixels to planes of luma and chroma (JFIF 1.02: BT.601, full range). A chroma
//! sample is the mean of 2 × 2 pixels.

/// The number of rows that are encoded together: the height of a minimum coded unit.
pub(crate) const BAND: usize = 16;

/// The number of pixels of a row that are converted together.
const BLOCK: usize = 64;

/// The planes of [`BAND`] rows. Their width is a whole number of units: the last column and row are
/// repeated.
pub(crate) struct Band {
    width: usize,
    /// The number of rows that belong to the image.
    rows: usize,
    /// The number of luma columns, a multiple of [`BLOCK`].
    pub(crate) stride: usize,
    pub(crate) luma: Vec<u8>,
    /// The blue and the red difference, with half the width and height.
    pub(crate) chroma: [Vec<u8>; 2],
}

impl Band {
    pub(crate) fn new(width: usize) -> Self {
        let stride = width.next_multiple_of(BLOCK);
        let plane = || vec![0; stride / 2 * BAND / 2];
        Self { width, rows: 0, stride, luma: vec![0; stride * BAND], chroma: [plane(), plane()] }
    }

    /// The number of units side by side.
    pub(crate) fn units(&self) -> usize {
        self.width.div_ceil(16)
    }

    /// Returns `true` if the luma block at this column and row contains any part of the image.
    pub(crate) fn has_block(&self, column: usize, row: usize) -> bool {
        column < self.width && row < self.rows
    }

    /// Fills the planes with the pixels of up to [`BAND`] rows, at least one.
    #[inline(always)]
    pub(crate) fn fill<const N: usize>(&mut self, pixels: &[[u8; N]]) {
        let last = pixels.len() / self.width - 1;
        self.rows = last + 1;
        let row = |y: usize| &pixels[y.min(last) * self.width..][..self.width];
        let [blue, red] = &mut self.chroma;
        let (luma, _) = self.luma.as_chunks_mut::<BLOCK>();
        let (blue, _) = blue.as_chunks_mut::<{ BLOCK / 2 }>();
        let (red, _) = red.as_chunks_mut::<{ BLOCK / 2 }>();
        let blocks = self.stride / BLOCK;
        for y in (0..BAND).step_by(2) {
            let (upper, lower) = (row(y), row(y + 1));
            for block in 0..blocks {
                let (upper, lower) = (planar(upper, block * BLOCK), planar(lower, block * BLOCK));
                luma_of(&upper, &mut luma[y * blocks + block]);
                luma_of(&lower, &mut luma[(y + 1) * blocks + block]);
                let mut sums = [[0; BLOCK / 2]; 3];
                for ((sums, upper), lower) in sums.iter_mut().zip(&upper).zip(&lower) {
                    let pairs = upper.as_chunks::<2>().0.iter().zip(lower.as_chunks::<2>().0);
                    for (sum, ([a, b], [c, d])) in sums.iter_mut().zip(pairs) {
                        *sum = i32::from(*a) + i32::from(*b) + i32::from(*c) + i32::from(*d);
                    }
                }
                // The rounding term is one less than a half, as in libjpeg, so that the largest value
                // does not round to 256.
                chroma_of(&sums, [-11_059, -21_709, 32_768], &mut blue[y / 2 * blocks + block]);
                chroma_of(&sums, [32_768, -27_439, -5_329], &mut red[y / 2 * blocks + block]);
            }
        }
    }
}

/// Deinterleaves [`BLOCK`] pixels from column `start` onwards. The last pixel of the row is
/// repeated.
#[inline(always)]
fn planar<const N: usize>(row: &[[u8; N]], start: usize) -> [[u8; BLOCK]; 3] {
    // These are loops because the compiler does not inline and vectorize `map` and `from_fn` here.
    let whole = |pixels: &[[u8; N]; BLOCK]| {
        let mut planes = [[0; BLOCK]; 3];
        let [red, green, blue] = &mut planes;
        for (((red, green), blue), pixel) in red.iter_mut().zip(green).zip(blue).zip(pixels) {
            (*red, *green, *blue) = (pixel[0], pixel[1], pixel[2]);
        }
        planes
    };
    let rest = &row[start.min(row.len() - 1)..];
    match rest.first_chunk() {
        Some(pixels) => whole(pixels),
        None => {
            let mut pixels = [rest[rest.len() - 1]; BLOCK];
            pixels[..rest.len()].copy_from_slice(rest);
            whole(&pixels)
        }
    }
}

/// 0.299 R + 0.587 G + 0.114 B.
#[inline(always)]
fn luma_of([red, green, blue]: &[[u8; BLOCK]; 3], luma: &mut [u8; BLOCK]) {
    for (((luma, red), green), blue) in luma.iter_mut().zip(red).zip(green).zip(blue) {
        let sum = i32::from(*red) * 19_595 + i32::from(*green) * 38_470 + i32::from(*blue) * 7_471;
        *luma = ((sum + (1 << 15)) >> 16) as u8;
    }
}

/// The weighted sum of four pixels, with weights in units of 2^-16.
#[inline(always)]
fn chroma_of([red, green, blue]: &[[i32; BLOCK / 2]; 3], weights: [i32; 3], chroma: &mut [u8; BLOCK / 2]) {
    for (((chroma, red), green), blue) in chroma.iter_mut().zip(red).zip(green).zip(blue) {
        let sum = red * weights[0] + green * weights[1] + blue * weights[2];
        *chroma = ((sum + (128 << 18) + (1 << 17) - 1) >> 18) as u8;
    }
}
