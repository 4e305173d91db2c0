//! Computes rows of a result: the convolved color is blended over the background by coverage.

use super::map::{FULL, Map, coverage};
use super::padded::{PAD, Padded, premultiplied};
use crate::color::Color;

#[inline(always)]
pub(super) fn fill_rgb(
    source: &Padded,
    map: &Map,
    background: Color,
    first: usize,
    pixels: &mut [u8],
    convolve: impl Fn(&Padded, usize, [usize; 2]) -> [i32; 4],
) {
    let below = background.rgb().map(i64::from);
    for (y, row) in pixels.chunks_exact_mut(map.columns * 3).enumerate() {
        let ((u, v), columns) = map.row(first + y, source.size);
        let begin = columns.start as i64;
        let (mut u, mut v) = (u + map.across.0 * begin, v + map.across.1 * begin);
        for pixel in row[columns.start * 3..columns.end * 3].as_chunks_mut::<3>().0 {
            let covered = coverage(u, v, source.size, map);
            if covered > 0 {
                let [r, g, b, _] = sampled(source, u, v, &convolve).map(|sample| sample.clamp(0, 255));
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

#[inline(always)]
pub(super) fn fill_rgba(
    source: &Padded,
    map: &Map,
    background: Color,
    first: usize,
    pixels: &mut [u8],
    convolve: impl Fn(&Padded, usize, [usize; 2]) -> [i32; 4],
) {
    let below = premultiplied(&background.rgba()).map(i64::from);
    for (y, row) in pixels.chunks_exact_mut(map.columns * 4).enumerate() {
        let ((u, v), columns) = map.row(first + y, source.size);
        let begin = columns.start as i64;
        let (mut u, mut v) = (u + map.across.0 * begin, v + map.across.1 * begin);
        for pixel in row[columns.start * 4..columns.end * 4].as_chunks_mut::<4>().0 {
            let covered = coverage(u, v, source.size, map);
            if covered > 0 {
                let sample = sampled(source, u, v, &convolve);
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

/// The premultiplied source at a point that it covers. Values may be slightly below 0 or above 255
/// near a sharp edge. `convolve` computes the weighted sum from the position of the first tap and
/// the horizontal and vertical phases.
#[inline(always)]
fn sampled(source: &Padded, u: i64, v: i64, convolve: impl Fn(&Padded, usize, [usize; 2]) -> [i32; 4]) -> [i32; 4] {
    // Rounds to the nearest phase.
    let (u, v) = (u + (1 << 23), v + (1 << 23));
    let phase = |at: i64| (at >> 24 & 0xff) as usize;
    let tap = |at: i64| ((at >> 32) + (PAD - 2) as i64) as usize;
    convolve(source, tap(v) * source.stride + tap(u), [phase(u), phase(v)])
}

/// Blends a premultiplied sample over a premultiplied background by coverage, and converts the
/// result to straight alpha.
#[inline(always)]
fn mixed(sample: [i32; 4], below: [i64; 4], covered: i64) -> [u8; 4] {
    // In units of 2^-16 of a level. The color is divided by the alpha that results from the same
    // sums, even if both overshoot.
    let sums: [i64; 4] = std::array::from_fn(|c| i64::from(sample[c]) * covered + below[c] * (FULL - covered));
    let alpha = sums[3];
    if alpha < FULL / 2 {
        return [0; 4];
    }
    let straight = |sum: i64| ((sum * 255 + alpha / 2) / alpha).clamp(0, 255) as u8;
    [straight(sums[0]), straight(sums[1]), straight(sums[2]), ((alpha + FULL / 2) / FULL).min(255) as u8]
}
