//! The loop over the pixels: it applies the tables, then saturation and the preset in integer
//! arithmetic.

use super::tone::{WHITE, tables};
use super::{Grade, Preset};
use crate::bitmap::{Bitmap, Channels};
use crate::wide::wide;

/// The fixed-point unit of factors: 4096 stands for 1.
const UNIT: i32 = 1 << 12;

/// The number of pixels that are processed together, separated by channel: enough to fill vector
/// registers, few enough for the first-level cache.
const BLOCK: usize = 64;

/// Luma weights of red, green and blue in 256ths (Rec. 709, as in W3C Filter Effects).
const LUMA: [i32; 3] = [54, 183, 19];

/// A grade prepared for application.
pub(super) struct Kernel {
    tables: [[u16; 256]; 3],
    /// `true` if the tables are the identity.
    is_neutral: bool,
    colors: Option<Colors>,
}

/// Steps 6 and 7 of the grade.
#[derive(Clone, Copy)]
struct Colors {
    saturation: i32,
    vibrance: i32,
    /// Rows of factors. The last column is added, in sixteenths of a level.
    matrix: Option<[[i32; 4]; 3]>,
}

impl Kernel {
    pub(super) fn new(grade: &Grade) -> Self {
        let tables = tables(grade);
        let unit = |value: f64| (value * f64::from(UNIT)).round() as i32;
        let colors = Colors {
            saturation: unit(1.0 + grade.saturation / 100.0),
            vibrance: unit(grade.vibrance / 100.0),
            matrix: matrix(grade.preset, grade.intensity / 100.0),
        };
        let is_idle = colors.saturation == UNIT && colors.vibrance == 0 && colors.matrix.is_none();
        let identity = |table: &[u16; 256]| table.iter().enumerate().all(|(at, value)| usize::from(*value) == at * 16);
        Self { is_neutral: tables.iter().all(identity), tables, colors: (!is_idle).then_some(colors) }
    }

    pub(super) fn apply(&self, image: &mut Bitmap) {
        let channels = image.channels();
        match (self.colors, channels) {
            (None, _) if self.is_neutral => {}
            (None, Channels::Rgb) => look_up::<3>(&self.tables, image.pixels_mut()),
            (None, Channels::Rgba) => look_up::<4>(&self.tables, image.pixels_mut()),
            (Some(colors), Channels::Rgb) => recolor_rgb(&self.tables, &colors, image.pixels_mut()),
            (Some(colors), Channels::Rgba) => recolor_rgba(&self.tables, &colors, image.pixels_mut()),
        }
    }
}

/// The matrix of a preset at its intensity; `None` if it changes nothing.
fn matrix(preset: Preset, intensity: f64) -> Option<[[i32; 4]; 3]> {
    let luma = LUMA.map(|weight| f64::from(weight) / 256.0);
    let saturate = |amount: f64| -> [[f64; 3]; 3] {
        std::array::from_fn(|row| {
            std::array::from_fn(|c| luma[c] * (1.0 - amount) + if c == row { amount } else { 0.0 })
        })
    };
    let diagonal =
        |gains: [f64; 3]| std::array::from_fn(|row| std::array::from_fn(|c| if c == row { gains[c] } else { 0.0 }));
    // The color matrix, and the slope and offset that are applied after it.
    let (colors, slope, offset): ([[f64; 3]; 3], f64, f64) = match preset {
        Preset::None => return None,
        Preset::Noir => (saturate(0.0), 1.3, -0.15),
        Preset::Sepia => ([[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]], 1.0, 0.0),
        Preset::Warm => (diagonal([1.08, 1.02, 0.88]), 1.0, 0.0),
        Preset::Cool => (diagonal([0.90, 1.0, 1.10]), 1.0, 0.0),
        Preset::Vivid => (saturate(1.35), 1.1, -0.05),
        Preset::Faded => (saturate(0.75), 0.84, 0.10),
    };
    if intensity == 0.0 {
        return None;
    }
    let unit = |value: f64| (value * f64::from(UNIT)).round() as i32;
    Some(std::array::from_fn(|row| {
        let own = |c: usize| if c == row { 1.0 } else { 0.0 };
        let factor = |c: usize| unit(own(c) + (colors[row][c] * slope - own(c)) * intensity);
        [factor(0), factor(1), factor(2), (offset * intensity * f64::from(WHITE)).round() as i32]
    }))
}

fn look_up<const N: usize>(tables: &[[u16; 256]; 3], pixels: &mut [u8]) {
    let tables = tables.map(|table| table.map(|value| ((value + 8) >> 4) as u8));
    for pixel in pixels.as_chunks_mut::<N>().0 {
        for c in 0..3 {
            pixel[c] = tables[c][usize::from(pixel[c])];
        }
    }
}

wide! {
    fn recolor_rgb(tables: &[[u16; 256]; 3], colors: &Colors, pixels: &mut [u8]) {
        recolor::<3>(tables, colors, pixels);
    }
}

wide! {
    fn recolor_rgba(tables: &[[u16; 256]; 3], colors: &Colors, pixels: &mut [u8]) {
        recolor::<4>(tables, colors, pixels);
    }
}

#[inline(always)]
fn recolor<const N: usize>(tables: &[[u16; 256]; 3], colors: &Colors, pixels: &mut [u8]) {
    let mut block = [[0i32; BLOCK]; 3];
    for chunk in pixels.as_chunks_mut::<N>().0.chunks_mut(BLOCK) {
        for (at, pixel) in chunk.iter().enumerate() {
            for c in 0..3 {
                block[c][at] = i32::from(tables[c][usize::from(pixel[c])]);
            }
        }
        saturate(&mut block, colors.saturation, colors.vibrance);
        if let Some(matrix) = &colors.matrix {
            transform(&mut block, matrix);
        }
        for (at, pixel) in chunk.iter_mut().enumerate() {
            for c in 0..3 {
                pixel[c] = ((block[c][at] + 8) >> 4) as u8;
            }
        }
    }
}

#[inline(always)]
fn saturate(block: &mut [[i32; BLOCK]; 3], saturation: i32, vibrance: i32) {
    if saturation == UNIT && vibrance == 0 {
        return;
    }
    let [red, green, blue] = block;
    for ((r, g), b) in red.iter_mut().zip(green).zip(blue) {
        let luma = (*r * LUMA[0] + *g * LUMA[1] + *b * LUMA[2] + 128) >> 8;
        let spread = *r.max(g).max(b) - *r.min(g).min(b);
        // Converts 4080ths to fixed-point units by multiplying by 257 / 256.
        let grey = ((WHITE - spread) * 257 + 128) >> 8;
        let factor = saturation + ((saturation * ((vibrance * grey) >> 12)) >> 12);
        for sample in [r, g, b] {
            *sample = (luma + (((*sample - luma) * factor + UNIT / 2) >> 12)).clamp(0, WHITE);
        }
    }
}

#[inline(always)]
fn transform(block: &mut [[i32; BLOCK]; 3], matrix: &[[i32; 4]; 3]) {
    let [red, green, blue] = block;
    for ((r, g), b) in red.iter_mut().zip(green).zip(blue) {
        let row = |[x, y, z, plus]: [i32; 4]| (((*r * x + *g * y + *b * z + UNIT / 2) >> 12) + plus).clamp(0, WHITE);
        (*r, *g, *b) = (row(matrix[0]), row(matrix[1]), row(matrix[2]));
    }
}
