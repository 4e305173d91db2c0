//! The backdrop of a video without input images: a landscape at dusk, derived from the prompt.

use raster::{Bitmap, Channels, Color, Size};

/// Each palette has the colors of the upper sky, the sky at the horizon, the sun, and the nearest
/// hills. They are chosen so that text is readable on each of them.
const PALETTES: [[Color; 4]; 6] = [
    [rgb(0x16, 0x20, 0x3a), rgb(0x8a, 0x5a, 0x5c), rgb(0xf0, 0xa8, 0x5e), rgb(0x0c, 0x12, 0x20)],
    [rgb(0x24, 0x1a, 0x3c), rgb(0x8f, 0x4c, 0x74), rgb(0xf2, 0x8f, 0x7a), rgb(0x12, 0x0c, 0x20)],
    [rgb(0x0e, 0x2a, 0x30), rgb(0x4c, 0x7a, 0x70), rgb(0xe6, 0xc4, 0x7a), rgb(0x06, 0x16, 0x1a)],
    [rgb(0x2c, 0x18, 0x1c), rgb(0x9a, 0x4a, 0x3a), rgb(0xf0, 0xb0, 0x60), rgb(0x18, 0x0a, 0x0e)],
    [rgb(0x18, 0x26, 0x22), rgb(0x5a, 0x74, 0x50), rgb(0xd8, 0xd0, 0x80), rgb(0x0a, 0x14, 0x10)],
    [rgb(0x1a, 0x1e, 0x2a), rgb(0x56, 0x66, 0x80), rgb(0xd8, 0xdc, 0xe4), rgb(0x0c, 0x10, 0x18)],
];

const fn rgb(r: u8, g: u8, b: u8) -> Color {
    Color { r, g, b, a: 255 }
}

/// The number of hill ranges, drawn from back to front.
const RANGES: usize = 4;

/// The baselines of the furthest and the nearest range and the height of their hills, as fractions
/// of the frame's height.
const FURTHEST: f64 = 0.60;
const NEAREST: f64 = 0.90;
const HILLS: f64 = 0.16;

/// Lengths as fractions of the shorter side.
const SUN: f64 = 0.085;
const GLOW: f64 = 0.75;

/// Paints a backdrop with four channels. Equal prompts give equal backdrops.
pub fn paint(prompt: &str, size: Size) -> Bitmap {
    let hash = fnv(prompt.trim().as_bytes());
    let [above, horizon, light, near] = PALETTES[(hash % PALETTES.len() as u64) as usize].map(Mixed::from_color);
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    let short = width.min(height);
    // The sun is off-center, so that it does not interfere with a title.
    let sun = (width * (0.16 + 0.68 * unit(hash, 1)), height * (FURTHEST - 0.10 - 0.08 * unit(hash, 2)));
    let ranges: [Vec<f64>; RANGES] = std::array::from_fn(|range| {
        let depth = range as f64 / (RANGES - 1) as f64;
        let base = FURTHEST + (NEAREST - FURTHEST) * depth;
        let scale = short * (0.9 - 0.35 * depth);
        let seed = hash ^ (range as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..size.width).map(|x| (base - HILLS * ridge(seed, f64::from(x) / scale)) * height).collect()
    });
    let mut pixels = Vec::with_capacity(size.pixels() as usize * 4);
    for y in 0..size.height {
        let down = f64::from(y);
        let sky = above.towards(horizon, eased(down / (height * NEAREST)));
        for x in 0..size.width {
            let (dx, dy) = (f64::from(x) - sun.0, down - sun.1);
            let from_sun = (dx * dx + dy * dy).sqrt() / short;
            let glow = (1.0 - from_sun / GLOW).max(0.0);
            let lit = sky.towards(light, 0.45 * glow * glow);
            let mut seen = lit.towards(light, 0.85 * edge((SUN - from_sun) * short));
            for (range, ridge) in ranges.iter().enumerate() {
                let depth = (range + 1) as f64 / RANGES as f64;
                let hill = lit.towards(near, 0.35 + 0.6 * depth);
                seen = seen.towards(hill, edge(down - ridge[x as usize]));
            }
            // Ordered dithering of less than one level avoids banding in these gradients.
            let grain = f64::from(GRAIN[(y % 4) as usize][(x % 4) as usize]) / 16.0;
            let [r, g, b] = seen.0.map(|sample| (sample + grain) as u8);
            pixels.extend([r, g, b, 255]);
        }
    }
    Bitmap::new(size, Channels::Rgba, pixels).expect("a pixel for each column of each row")
}

/// A color with fractional channels.
#[derive(Clone, Copy)]
struct Mixed([f64; 3]);

impl Mixed {
    fn from_color(color: Color) -> Self {
        Self(color.rgb().map(f64::from))
    }

    fn towards(self, other: Self, share: f64) -> Self {
        Self(std::array::from_fn(|c| self.0[c] + (other.0[c] - self.0[c]) * share))
    }
}

/// The coverage of a pixel that lies `within` pixels behind an edge.
fn edge(within: f64) -> f64 {
    (within + 0.5).clamp(0.0, 1.0)
}

fn eased(part: f64) -> f64 {
    let part = part.clamp(0.0, 1.0);
    part * part * (3.0 - 2.0 * part)
}

/// The height of a range at a position, 0 to 1: value noise in three octaves, each with half the
/// amplitude and twice the frequency of the previous one.
fn ridge(seed: u64, place: f64) -> f64 {
    let octave = |number: u64| {
        let at = place * (1 << number) as f64;
        let (left, part) = (at.floor(), at - at.floor());
        let height = |step: f64| unit(mixed(seed ^ (number << 40) ^ step as u64), 3);
        height(left) + (height(left + 1.0) - height(left)) * eased(part)
    };
    (4.0 * octave(1) + 2.0 * octave(2) + octave(3)) / 7.0
}

/// A byte of a hash as a number from 0 to 1.
fn unit(hash: u64, byte: u32) -> f64 {
    ((hash >> (8 * byte)) & 0xff) as f64 / 255.0
}

/// The Bayer matrix for ordered dithering, 0 to 15.
const GRAIN: [[u8; 4]; 4] = [[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]];

/// 64-bit FNV-1a with a finalizer, so that every output byte depends on all input bytes.
fn fnv(bytes: &[u8]) -> u64 {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    mixed(hash)
}

/// The finalizer of SplitMix64.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_has_its_own_backdrop_and_keeps_it() {
        let size = Size::new(64, 36);
        assert_eq!(paint("a", size), paint(" a ", size));
        assert_ne!(paint("a", size), paint("b", size));
        assert!(paint("a", size).is_opaque());
    }
}
