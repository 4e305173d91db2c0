//! Converts a frame to luma and chroma planes for video.
//!
//! **Formulas.** ITU-R BT.709-6, items 3.2 to 3.4, applied to the 8-bit sRGB samples without
//! conversion: `Y' = 0.2126 R + 0.7152 G + 0.0722 B`, `Cb = (B - Y') / 1.8556`, `Cr = (R - Y') /
//! 1.5748`, quantized to the limited range, 16 to 235 and 16 to 240. Chroma has half the columns
//! and rows (4:2:0). A chroma sample is located at its left luma column and between its two rows
//! (ITU-T H.264, figure 6-1, the default of Annex E, `chroma_sample_loc_type` 0), so it is the mean
//! of the surrounding samples, with horizontal weights 1 : 2 : 1.
//!
//! **Exactness.** Weights are in units of 2^-16 and rounded such that white is exactly 235 and gray
//! has no chroma.

use crate::bitmap::{Bitmap, Channels};
use crate::geometry::Size;
use crate::wide::wide;

/// The weights of red, green and blue in luma, in units of 2^-16. Their sum is 219 / 255.
const LUMA: [i32; 3] = [11_966, 40_254, 4_064];

/// The weights of red, green and blue in the two chroma samples, in units of 2^-16. The sum of each
/// is zero.
const BLUE_DIFFERENCE: [i32; 3] = [-6_596, -22_189, 28_785];
const RED_DIFFERENCE: [i32; 3] = [28_784, -26_145, -2_639];

/// The three planes of a frame (I420): luma at full size, and chroma with half the columns and
/// rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planes {
    size: Size,
    luma: Vec<u8>,
    blue: Vec<u8>,
    red: Vec<u8>,
    /// The sums of red, green and blue over two rows, from which one row of chroma is computed.
    sums: Vec<[i32; 3]>,
}

impl Planes {
    /// Creates planes for black frames of `size`. `None` if a side is zero or odd, because chroma
    /// has half of each.
    pub fn new(size: Size) -> Option<Self> {
        if size.pixels() == 0 || !size.width.is_multiple_of(2) || !size.height.is_multiple_of(2) {
            return None;
        }
        let count = size.pixels() as usize;
        let (luma, chroma) = (vec![16; count], vec![128; count / 4]);
        let sums = vec![[0; 3]; size.width as usize];
        Some(Self { size, luma, blue: chroma.clone(), red: chroma, sums })
    }

    /// Fills the planes from an opaque image with four channels and this size.
    ///
    /// # Panics
    ///
    /// If the image has another size or no alpha channel.
    pub fn fill(&mut self, frame: &Bitmap) {
        assert!(frame.size() == self.size && frame.channels() == Channels::Rgba, "the frame does not match the planes");
        let width = self.size.width as usize;
        let pairs = frame.pixels().as_chunks::<4>().0.chunks_exact(2 * width);
        let chroma = self.blue.chunks_exact_mut(width / 2).zip(self.red.chunks_exact_mut(width / 2));
        for ((rows, luma), (blue, red)) in pairs.zip(self.luma.chunks_exact_mut(2 * width)).zip(chroma) {
            fill_luma(rows, luma);
            let (upper, lower) = rows.split_at(width);
            add(upper, lower, &mut self.sums);
            fill_chroma(&self.sums, blue, red);
        }
    }

    /// The number of luma columns and rows.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Luma, Cb and Cr, row by row without padding.
    pub fn planes(&self) -> [&[u8]; 3] {
        [&self.luma, &self.blue, &self.red]
    }
}

/// A sample computed from red, green and blue, which are sums of 2^`shift` pixels, with offset
/// `zero`.
#[inline(always)]
fn weighted([r, g, b]: [i32; 3], weights: [i32; 3], shift: u32, zero: i32) -> u8 {
    let sum = r * weights[0] + g * weights[1] + b * weights[2];
    let shift = 16 + shift;
    // The weights keep the result between 16 and 240.
    (zero + ((sum + (1 << (shift - 1))) >> shift)) as u8
}

wide! {
    fn fill_luma(pixels: &[[u8; 4]], luma: &mut [u8]) {
        for (luma, [r, g, b, _]) in luma.iter_mut().zip(pixels) {
            *luma = weighted([*r, *g, *b].map(i32::from), LUMA, 0, 16);
        }
    }
}

wide! {
    fn add(upper: &[[u8; 4]], lower: &[[u8; 4]], sums: &mut [[i32; 3]]) {
        for ((sum, a), b) in sums.iter_mut().zip(upper).zip(lower) {
            *sum = [0, 1, 2].map(|c: usize| i32::from(a[c]) + i32::from(b[c]));
        }
    }
}

wide! {
    fn fill_chroma(sums: &[[i32; 3]], blue: &mut [u8], red: &mut [u8]) {
        // The first column is its own left neighbor.
        let mut before = sums[0];
        for ((pair, blue), red) in sums.as_chunks::<2>().0.iter().zip(blue).zip(red) {
            let [own, after] = pair;
            let sum = [0, 1, 2].map(|c: usize| before[c] + 2 * own[c] + after[c]);
            *blue = weighted(sum, BLUE_DIFFERENCE, 3, 128);
            *red = weighted(sum, RED_DIFFERENCE, 3, 128);
            before = *after;
        }
    }
}
