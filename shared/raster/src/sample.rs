//! Resampling along an affine map: rotation by any angle, with a scale where a picture is also enlarged.
//!
//! **Formulas.** The colour of a result pixel is that of the source at the point that its centre comes from, by bicubic
//! convolution with a = -1/2 over 4 × 4 pixels (R. Keys, "Cubic Convolution Interpolation for Digital Image Processing",
//! 1981), alpha premultiplied, the source's edge repeated. How much of it is seen is the coverage: each edge of the
//! source is a ramp as wide as a pixel of the result, at its middle on the edge itself; the rest is background.
//! Colour and coverage apart, the edge is smooth, and neither the background nor ringing gets into the picture.
//!
//! **Exactness.** All in whole numbers: positions in 2^-32 of a pixel, phases in 256ths, weights in 2048ths. The same
//! on every machine.

use crate::color::Color;
use crate::geometry::{Rect, Size};
use crate::picture::{Channels, Picture};
use crate::wide::wide;

/// One pixel in positions.
const ONE: i64 = 1 << 32;

/// Pixels that the source is extended by on each side, for the taps of the outermost points.
const PAD: usize = 2;

/// Full coverage.
const FULL: i64 = 1 << 16;

/// A similarity from the pixels of the result to those of the source: a turn about both centres, and a scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Turn {
    /// Cosine and sine of the clockwise angle.
    pub cos: f64,
    /// See `cos`.
    pub sin: f64,
    /// Result pixels per source pixel, across and down.
    pub scale: (f64, f64),
}

impl Turn {
    /// A turn by `degrees` clockwise, not scaled. Cosine and sine are rounded, so that it does not matter to the last
    /// bit whose mathematics library computed them.
    pub(crate) fn clockwise(degrees: f64) -> Self {
        let rounded = |value: f64| (value * ONE as f64).round() / ONE as f64;
        let radians = degrees.to_radians();
        Self { cos: rounded(radians.cos()), sin: rounded(radians.sin()), scale: (1.0, 1.0) }
    }

    /// The smallest box of whole pixels that holds a turned `size`; a ten-thousandth of a pixel may stick out.
    pub(crate) fn bounding(self, (width, height): (f64, f64)) -> (f64, f64) {
        const SLACK: f64 = 1e-4;
        let (cos, sin) = (self.cos.abs(), self.sin.abs());
        let side = |length: f64| (length - SLACK).ceil().max(1.0);
        (side(width * cos + height * sin), side(width * sin + height * cos))
    }
}

/// The `part` of a turned picture that lies centred on a canvas of the size `whole`.
///
/// The result has an alpha channel when the source is not opaque or the background is not.
pub(crate) fn turned(source: &Picture, turn: Turn, whole: (f64, f64), part: Rect, background: Color) -> Picture {
    let is_opaque = source.is_opaque();
    let channels = if is_opaque && background.is_opaque() { Channels::Rgb } else { Channels::Rgba };
    let mut result = Picture::filled(part.size, channels, background);
    let padded = Padded::new(source);
    let map = Map::new(source.size(), turn, whole, part);
    match channels {
        Channels::Rgb => fill_rgb(&padded, &map, background, result.pixels_mut()),
        Channels::Rgba => fill_rgba(&padded, &map, background, result.pixels_mut()),
    }
    result
}

/// The source with premultiplied alpha and repeated edges.
struct Padded {
    pixels: Vec<[u8; 4]>,
    stride: usize,
    size: Size,
}

impl Padded {
    fn new(source: &Picture) -> Self {
        let (width, height) = (source.width() as usize, source.height() as usize);
        let stride = width + 2 * PAD;
        let mut pixels = Vec::with_capacity(stride * (height + 2 * PAD));
        for y in 0..height + 2 * PAD {
            let row = y.clamp(PAD, height + PAD - 1) - PAD;
            let row = &source.pixels()[row * source.stride()..][..source.stride()];
            let start = pixels.len();
            pixels.resize(start + PAD, [0; 4]);
            match source.channels() {
                Channels::Rgb => pixels.extend(row.as_chunks().0.iter().map(|[r, g, b]| [*r, *g, *b, 255])),
                Channels::Rgba => pixels.extend(row.as_chunks().0.iter().map(premultiplied)),
            }
            let (first, last) = (pixels[start + PAD], pixels[start + PAD + width - 1]);
            pixels[start..start + PAD].fill(first);
            pixels.extend([last; PAD]);
        }
        Self { pixels, stride, size: source.size() }
    }
}

fn premultiplied(&[r, g, b, a]: &[u8; 4]) -> [u8; 4] {
    let times = |sample: u8| ((u32::from(sample) * u32::from(a) + 127) / 255) as u8;
    [times(r), times(g), times(b), a]
}

/// Where in the source the pixels of the result come from, in [`ONE`]s.
struct Map {
    /// Of the first pixel.
    origin: (i64, i64),
    /// From one column to the next.
    across: (i64, i64),
    /// From one row to the next.
    down: (i64, i64),
    /// Pixels of the result per pixel of the source, in 2^-16.
    scale: (i64, i64),
    columns: usize,
}

impl Map {
    fn new(source: Size, turn: Turn, whole: (f64, f64), part: Rect) -> Self {
        let Turn { cos, sin, scale } = turn;
        let fixed = |value: f64| (value * ONE as f64).round() as i64;
        // The first pixel's centre, from the centre of the canvas.
        let (x, y) = (f64::from(part.x) + 0.5 - whole.0 / 2.0, f64::from(part.y) + 0.5 - whole.1 / 2.0);
        let u = (cos * x + sin * y) / scale.0 + f64::from(source.width) / 2.0 - 0.5;
        let v = (cos * y - sin * x) / scale.1 + f64::from(source.height) / 2.0 - 0.5;
        Self {
            origin: (fixed(u), fixed(v)),
            across: (fixed(cos / scale.0), fixed(-sin / scale.1)),
            down: (fixed(sin / scale.0), fixed(cos / scale.1)),
            scale: ((scale.0 * 65_536.0) as i64, (scale.1 * 65_536.0) as i64),
            columns: part.size.width as usize,
        }
    }

    /// Where row `y` begins, and which of its columns come from within a pixel of the source.
    fn row(&self, y: usize, size: Size) -> ((i64, i64), std::ops::Range<usize>) {
        let y = y as i64;
        let start = (self.origin.0 + self.down.0 * y, self.origin.1 + self.down.1 * y);
        let (mut first, mut last) = (0.0, self.columns as f64);
        for (start, step, length) in [(start.0, self.across.0, size.width), (start.1, self.across.1, size.height)] {
            let (start, end) = (start as f64 + ONE as f64, f64::from(length) * ONE as f64 - start as f64);
            // Within: -start < step × x < end.
            let step = step as f64;
            let (low, high) = if step > 0.0 {
                (-start / step, end / step)
            } else if step < 0.0 {
                (end / step, -start / step)
            } else if start > 0.0 && end > 0.0 {
                continue;
            } else {
                return ((0, 0), 0..0);
            };
            first = low.max(first);
            last = high.min(last);
        }
        // Two more on both sides, for rounding; what is outside has no coverage.
        let first = ((first - 2.0).max(0.0) as usize).min(self.columns);
        let last = ((last + 2.0).max(0.0) as usize).min(self.columns);
        (start, first..last.max(first))
    }
}

/// Keys' weights of the taps at -1, 0, 1 and 2 for each phase, in 2048ths; each row adds up to 2048.
fn weights() -> [[i16; 4]; 256] {
    std::array::from_fn(|phase| {
        let t = phase as f64 / 256.0;
        let rounded = |weight: f64| (weight * 2048.0).round() as i16;
        let before = rounded(-0.5 * t.powi(3) + t.powi(2) - 0.5 * t);
        let after = rounded(-1.5 * t.powi(3) + 2.0 * t.powi(2) + 0.5 * t);
        let beyond = rounded(0.5 * t.powi(3) - 0.5 * t.powi(2));
        [before, 2048 - before - after - beyond, after, beyond]
    })
}

/// How much of a point the source covers: of [`FULL`]; nothing further than a pixel outside.
#[inline(always)]
fn coverage(u: i64, v: i64, size: Size, scale: (i64, i64)) -> i64 {
    let ramp = |at: i64, length: u32, scale: i64| {
        // From the nearer edge inwards, in 2^-24 pixels of the source; whoever is a pixel away is all in, or all out.
        let inwards = (at + ONE / 2).min(i64::from(length) * ONE - ONE / 2 - at).clamp(-ONE, ONE) >> 8;
        // In pixels of the result, 2^-16; half of the ramp lies outside.
        (((inwards * scale) >> 24) + FULL / 2).clamp(0, FULL) >> 8
    };
    ramp(u, size.width, scale.0) * ramp(v, size.height, scale.1)
}

/// The source at a point that it covers, premultiplied; a little below 0 or above 255 beside a sharp edge.
#[inline(always)]
fn sampled(source: &Padded, weights: &[[i16; 4]; 256], u: i64, v: i64) -> [i32; 4] {
    // To the nearest phase.
    let (u, v) = (u + (1 << 23), v + (1 << 23));
    let across = &weights[(u >> 24 & 0xff) as usize];
    let down = &weights[(v >> 24 & 0xff) as usize];
    let left = ((u >> 32) + PAD as i64 - 1) as usize;
    let top = ((v >> 32) + PAD as i64 - 1) as usize;
    let taps = |k: usize| -> &[[u8; 4]; 4] {
        let at = (top + k) * source.stride + left;
        source.pixels[at..at + 4].try_into().expect("four taps")
    };
    convolved([taps(0), taps(1), taps(2), taps(3)], across, down)
}

/// Four rows of four taps, first across, kept in 64ths of a level, then down.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn convolved(rows: [&[[u8; 4]; 4]; 4], across: &[i16; 4], down: &[i16; 4]) -> [i32; 4] {
    // SAFETY: every x86-64 has SSE2.
    unsafe { convolved_sse2(rows, across, down) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn convolved_sse2(rows: [&[[u8; 4]; 4]; 4], across: &[i16; 4], down: &[i16; 4]) -> [i32; 4] {
    use std::arch::x86_64::*;
    let pair = |first: i16, second: i16| _mm_set1_epi32(i32::from(first as u16) | i32::from(second) << 16);
    let (near, far) = (pair(across[0], across[1]), pair(across[2], across[3]));
    let zero = _mm_setzero_si128();
    // Two neighbours, channel by channel beside each other.
    let paired = |two: __m128i| _mm_unpacklo_epi16(two, _mm_srli_si128::<8>(two));
    let row = |taps: &[[u8; 4]; 4]| {
        // SAFETY: sixteen bytes are read where sixteen bytes are; the load needs no alignment.
        let taps = unsafe { _mm_loadu_si128(taps.as_ptr().cast()) };
        let first = _mm_madd_epi16(paired(_mm_unpacklo_epi8(taps, zero)), near);
        let second = _mm_madd_epi16(paired(_mm_unpackhi_epi8(taps, zero)), far);
        _mm_srai_epi32::<5>(_mm_add_epi32(_mm_add_epi32(first, second), _mm_set1_epi32(16)))
    };
    let upper = _mm_packs_epi32(row(rows[0]), row(rows[1]));
    let lower = _mm_packs_epi32(row(rows[2]), row(rows[3]));
    let upper = _mm_madd_epi16(paired(upper), pair(down[0], down[1]));
    let lower = _mm_madd_epi16(paired(lower), pair(down[2], down[3]));
    let sum = _mm_srai_epi32::<17>(_mm_add_epi32(_mm_add_epi32(upper, lower), _mm_set1_epi32(1 << 16)));
    let mut samples = [0; 4];
    // SAFETY: sixteen bytes are written where sixteen bytes are; the store needs no alignment.
    unsafe { _mm_storeu_si128(samples.as_mut_ptr().cast(), sum) };
    samples
}

/// The same without wide instructions.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn convolved(rows: [&[[u8; 4]; 4]; 4], across: &[i16; 4], down: &[i16; 4]) -> [i32; 4] {
    plain(rows, across, down)
}

/// What [`convolved`] computes, to the bit.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn plain(rows: [&[[u8; 4]; 4]; 4], across: &[i16; 4], down: &[i16; 4]) -> [i32; 4] {
    std::array::from_fn(|c| {
        let row = |taps: &[[u8; 4]; 4]| {
            let sum: i32 = taps.iter().zip(across).map(|(tap, weight)| i32::from(tap[c]) * i32::from(*weight)).sum();
            (sum + 16) >> 5
        };
        let sum: i32 = rows.iter().zip(down).map(|(taps, weight)| row(taps) * i32::from(*weight)).sum();
        (sum + (1 << 16)) >> 17
    })
}

wide! {
    fn fill_rgb(source: &Padded, map: &Map, background: Color, pixels: &mut [u8]) {
        let weights = weights();
        let below = background.rgb().map(i64::from);
        for (y, row) in pixels.chunks_exact_mut(map.columns * 3).enumerate() {
            let ((u, v), columns) = map.row(y, source.size);
            let first = columns.start as i64;
            let (mut u, mut v) = (u + map.across.0 * first, v + map.across.1 * first);
            for pixel in row[columns.start * 3..columns.end * 3].as_chunks_mut::<3>().0 {
                let covered = coverage(u, v, source.size, map.scale);
                if covered > 0 {
                    let [r, g, b, _] = sampled(source, &weights, u, v).map(|sample| sample.clamp(0, 255));
                    if covered == FULL {
                        *pixel = [r as u8, g as u8, b as u8];
                    } else {
                        for ((sample, above), below) in pixel.iter_mut().zip([r, g, b]).zip(below) {
                            *sample = ((i64::from(above) * covered + below * (FULL - covered) + FULL / 2) / FULL) as u8;
                        }
                    }
                }
                u += map.across.0;
                v += map.across.1;
            }
        }
    }
}

wide! {
    fn fill_rgba(source: &Padded, map: &Map, background: Color, pixels: &mut [u8]) {
        let weights = weights();
        let below = premultiplied(&background.rgba()).map(i64::from);
        for (y, row) in pixels.chunks_exact_mut(map.columns * 4).enumerate() {
            let ((u, v), columns) = map.row(y, source.size);
            let first = columns.start as i64;
            let (mut u, mut v) = (u + map.across.0 * first, v + map.across.1 * first);
            for pixel in row[columns.start * 4..columns.end * 4].as_chunks_mut::<4>().0 {
                let covered = coverage(u, v, source.size, map.scale);
                if covered > 0 {
                    let sample = sampled(source, &weights, u, v);
                    if covered == FULL && sample[3] == 255 {
                        *pixel = sample.map(|sample| sample.clamp(0, 255) as u8);
                    } else {
                        *pixel = mixed(sample, below, covered);
                    }
                }
                u += map.across.0;
                v += map.across.1;
            }
        }
    }
}

/// A premultiplied sample over so much of a premultiplied background, straightened again.
#[inline(always)]
fn mixed(sample: [i32; 4], below: [i64; 4], covered: i64) -> [u8; 4] {
    // In 2^16ths of a level. Colour is divided by the very alpha that it came with, also where both overshoot.
    let sums: [i64; 4] = std::array::from_fn(|c| i64::from(sample[c]) * covered + below[c] * (FULL - covered));
    let alpha = sums[3];
    if alpha < FULL / 2 {
        return [0; 4];
    }
    let straight = |sum: i64| ((sum * 255 + alpha / 2) / alpha).clamp(0, 255) as u8;
    [straight(sums[0]), straight(sums[1]), straight(sums[2]), ((alpha + FULL / 2) / FULL).min(255) as u8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_add_up_and_a_whole_position_copies() {
        let weights = weights();
        assert_eq!(weights[0], [0, 2048, 0, 0]);
        assert!(weights.iter().all(|row| row.iter().sum::<i16>() == 2048));
        // Half way: -1/16, 9/16, 9/16, -1/16.
        assert_eq!(weights[128], [-128, 1152, 1152, -128]);
    }

    #[test]
    fn wide_and_plain_convolution_agree_to_the_bit() {
        let weights = weights();
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Extremes often: there the sums are largest.
            match state >> 30 {
                0 => 0,
                1 => 255,
                _ => (state >> 16) as u8,
            }
        };
        for round in 0..4096 {
            let rows: [[[u8; 4]; 4]; 4] =
                std::array::from_fn(|_| std::array::from_fn(|_| std::array::from_fn(|_| next())));
            let (across, down) = (&weights[round % 256], &weights[round / 16]);
            let rows = rows.each_ref();
            assert_eq!(convolved(rows, across, down), plain(rows, across, down), "{rows:?}");
        }
    }

    #[test]
    fn a_box_holds_what_is_turned_and_no_more() {
        let bounding = |degrees: f64, size: (f64, f64)| Turn::clockwise(degrees).bounding(size);
        assert_eq!(bounding(45.0, (100.0, 100.0)), (142.0, 142.0));
        assert_eq!(bounding(30.0, (100.0, 50.0)), (112.0, 94.0));
        assert_eq!(bounding(0.000_01, (100.0, 50.0)), (100.0, 50.0));
        assert_eq!(bounding(180.0, (100.0, 50.0)), (100.0, 50.0));
        assert_eq!(bounding(45.0, (1.0, 1.0)), (2.0, 2.0));
    }
}
