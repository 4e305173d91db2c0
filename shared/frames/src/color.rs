//! Converts a picture to red, green and blue.
//!
//! **Formulas.** ITU-T H.273, 8.3: `R = Y + 2 (1 - Kr) Cr`, `B = Y + 2 (1 - Kb) Cb`, `G = (Y - Kr R - Kb B) / Kg`, with the samples of
//! the limited range (16 to 235, 16 to 240) or of the full one. The result is taken as sRGB, as browsers do for BT.709. A chroma sample
//! is located at its left luma column and between its two rows (ITU-T H.264, figure 6-1): columns between two are their mean, rows are
//! weighted 3 : 1.
//!
//! **Exactness.** Weights are in units of 2^-16 and samples of chroma in units of an eighth, so that the result is the same on every machine.

use film::Color;
use raster::{Bitmap, Channels, Size};

use crate::Frame;

/// `Kr` and `Kb` of a matrix (H.273, table 4).
fn luma_weights(matrix: u16, height: usize) -> (f64, f64) {
    match matrix {
        1 => (0.2126, 0.0722),
        4 => (0.30, 0.11),
        5 | 6 => (0.299, 0.114),
        7 => (0.212, 0.087),
        9 | 10 => (0.2627, 0.0593),
        // Unknown: players take the matrix of the usual size.
        _ if height < 720 => (0.299, 0.114),
        _ => (0.2126, 0.0722),
    }
}

/// Weights in units of 2^-16: of luma, of red difference in red and green, of blue difference in green and blue.
struct Weights {
    luma: i32,
    zero: i32,
    red: i32,
    green_of_red: i32,
    green_of_blue: i32,
    blue: i32,
}

impl Weights {
    fn new(color: Option<Color>, height: usize) -> Self {
        let (kr, kb) = luma_weights(color.map_or(2, |color| color.matrix), height);
        let kg = 1.0 - kr - kb;
        let is_full = color.is_some_and(|color| color.is_full_range);
        let (luma, chroma, zero) = if is_full { (1.0, 1.0, 0) } else { (255.0 / 219.0, 255.0 / 224.0, 16) };
        let fixed = |weight: f64| (weight * 65536.0).round() as i32;
        Self {
            luma: fixed(luma),
            zero,
            red: fixed(2.0 * (1.0 - kr) * chroma),
            green_of_red: fixed(-2.0 * kr * (1.0 - kr) / kg * chroma),
            green_of_blue: fixed(-2.0 * kb * (1.0 - kb) / kg * chroma),
            blue: fixed(2.0 * (1.0 - kb) * chroma),
        }
    }

    /// A pixel from luma and eightfold chroma around zero.
    fn pixel(&self, luma: u8, blue: i32, red: i32) -> [u8; 3] {
        let luma = (i32::from(luma) - self.zero) * self.luma * 8;
        let sample = |sum: i32| ((luma + sum + (1 << 18)) >> 19).clamp(0, 255) as u8;
        [sample(self.red * red), sample(self.green_of_red * red + self.green_of_blue * blue), sample(self.blue * blue)]
    }
}

pub(crate) fn to_rgb(frame: &Frame, color: Option<Color>) -> Bitmap {
    let Frame { width, height, planes: [luma, blue, red] } = frame;
    let (columns, rows) = (width.div_ceil(2), height.div_ceil(2));
    let weights = Weights::new(color, *height);
    let mut pixels = Vec::with_capacity(width * height * 3);
    // Four times the chroma of a row, around zero.
    let mut chroma = [vec![0; columns], vec![0; columns]];
    for (y, luma) in luma.chunks_exact(*width).enumerate() {
        let near = y / 2;
        let far = if y % 2 == 0 { near.saturating_sub(1) } else { (near + 1).min(rows - 1) };
        for (plane, row) in [blue, red].into_iter().zip(&mut chroma) {
            let (near, far) = (&plane[near * columns..][..columns], &plane[far * columns..][..columns]);
            for (value, (near, far)) in row.iter_mut().zip(near.iter().zip(far)) {
                *value = 3 * i32::from(*near) + i32::from(*far) - 4 * 128;
            }
        }
        let between = |row: &[i32], x: usize| {
            let (left, right) = (row[x / 2], row[(x / 2 + x % 2).min(columns - 1)]);
            left + right
        };
        for (x, luma) in luma.iter().enumerate() {
            pixels.extend(weights.pixel(*luma, between(&chroma[0], x), between(&chroma[1], x)));
        }
    }
    let size = Size::new(*width as u32, *height as u32);
    Bitmap::new(size, Channels::Rgb, pixels).expect("as many pixels as the picture has")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The color of a picture of one color.
    fn shown(samples: [u8; 3], matrix: u16, is_full_range: bool) -> [u8; 3] {
        let planes = [vec![samples[0]; 15], vec![samples[1]; 6], vec![samples[2]; 6]];
        let image = to_rgb(&Frame { width: 5, height: 3, planes }, Some(Color { matrix, is_full_range }));
        let first = [image.pixels()[0], image.pixels()[1], image.pixels()[2]];
        assert!(image.pixels().as_chunks::<3>().0.iter().all(|pixel| *pixel == first));
        first
    }

    #[test]
    fn black_white_and_gray_are_exact_in_both_ranges() {
        for matrix in [1, 2, 6, 9] {
            assert_eq!(shown([16, 128, 128], matrix, false), [0; 3]);
            assert_eq!(shown([235, 128, 128], matrix, false), [255; 3]);
            assert_eq!(shown([0, 128, 128], matrix, true), [0; 3]);
            assert_eq!(shown([255, 128, 128], matrix, true), [255; 3]);
            assert_eq!(shown([77, 128, 128], matrix, true), [77; 3]);
        }
    }

    #[test]
    fn primaries_are_those_of_their_matrix() {
        // H.273, 8.3, by hand: full red in BT.709 and BT.601.
        for (samples, matrix, expected) in
            [([63, 102, 240], 1, [255, 0, 0]), ([81, 90, 240], 6, [255, 0, 0]), ([32, 240, 118], 1, [0, 0, 255])]
        {
            let read = shown(samples, matrix, false);
            assert!(read.iter().zip(expected).all(|(read, expected)| read.abs_diff(expected) <= 2), "{read:?}");
        }
    }

    #[test]
    fn chroma_is_at_its_left_column_and_between_its_rows() {
        let planes = [vec![128; 16], vec![128; 4], vec![128, 168, 128, 168]];
        let image = to_rgb(&Frame { width: 4, height: 4, planes }, Some(Color { matrix: 6, is_full_range: true }));
        let red = |x: u32| image.pixel(x, 0).expect("is inside")[0];
        assert_eq!((red(0), red(1), red(2), red(3)), (128, 156, 184, 184));
    }
}
