//! Resampling along an affine map: rotation by any angle, with a scale where a picture is also enlarged.
//!
//! **Formulas.** The colour of a result pixel is that of the source at the point that its centre comes from, by Lanczos-3 over
//! 6 × 6 pixels, `sinc(x)·sinc(x/3)` a side (C. Duchon, "Lanczos Filtering in One and Two Dimensions", 1979; decisions 8.1),
//! weights made to add up, alpha premultiplied, the source's edge repeated. How much of it is seen is the coverage: each edge of the
//! source is a ramp as wide as a pixel of the result, at its middle on the edge itself; the rest is background.
//! Colour and coverage apart, the edge is smooth, and neither the background nor ringing gets into the picture.
//!
//! **Exactness.** All in whole numbers: positions in 2^-32 of a pixel, phases in 256ths, weights in 2048ths. The same
//! on every machine.

use std::sync::LazyLock;

use crate::color::Color;
use crate::geometry::{Rect, Size};
use crate::picture::{Channels, Picture};
/// One pixel in positions.
const ONE: i64 = 1 << 32;

/// Pixels that a point is computed from, across and down.
const TAPS: usize = 6;

/// Pixels that the source is extended by on each side, for the taps of the outermost points.
const PAD: usize = TAPS / 2;

/// Pixels that are read at once; behind the last tap they count for nothing.
const LOADED: usize = 8;

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
    let turning = Turning::new(Padded::of(source), turn, whole, part, background);
    let mut result = Picture::filled(part.size, turning.channels(), background);
    turning.fill(0, result.pixels_mut());
    result
}

/// A turned picture, of which any rows can be had.
pub(crate) struct Turning {
    source: Padded,
    map: Map,
    background: Color,
}

impl Turning {
    /// See [`turned`].
    pub(crate) fn new(source: Padded, turn: Turn, whole: (f64, f64), part: Rect, background: Color) -> Self {
        Self { map: Map::new(source.size, turn, whole, part), source, background }
    }

    /// What the result is made of.
    pub(crate) fn channels(&self) -> Channels {
        if self.source.is_opaque && self.background.is_opaque() { Channels::Rgb } else { Channels::Rgba }
    }

    /// Draws the rows from `first` on onto pixels of the background.
    pub(crate) fn fill(&self, first: usize, pixels: &mut [u8]) {
        let convolve = Convolve::get();
        match self.channels() {
            Channels::Rgb => convolve.fill_rgb(&self.source, &self.map, self.background, first, pixels),
            Channels::Rgba => convolve.fill_rgba(&self.source, &self.map, self.background, first, pixels),
        }
    }
}

/// The source with premultiplied alpha and repeated edges.
pub(crate) struct Padded {
    pixels: Vec<[u8; 4]>,
    stride: usize,
    size: Size,
    is_opaque: bool,
}

impl Padded {
    /// One that its rows are still to be put into, from top to bottom.
    pub(crate) fn new(size: Size) -> Self {
        let stride = size.width as usize + 2 * PAD;
        let capacity = stride * (size.height as usize + 2 * PAD) + LOADED;
        Self { pixels: Vec::with_capacity(capacity), stride, size, is_opaque: true }
    }

    fn of(source: &Picture) -> Self {
        let mut padded = Self::new(source.size());
        padded.push(source);
        padded
    }

    /// Takes the next rows, those of a picture as wide.
    pub(crate) fn push(&mut self, rows: &Picture) {
        self.is_opaque &= rows.is_opaque();
        for row in rows.pixels().chunks_exact(rows.stride()) {
            let start = self.pixels.len();
            self.pixels.resize(start + PAD, [0; 4]);
            match rows.channels() {
                Channels::Rgb => self.pixels.extend(row.as_chunks().0.iter().map(|[r, g, b]| [*r, *g, *b, 255])),
                Channels::Rgba => self.pixels.extend(row.as_chunks().0.iter().map(premultiplied)),
            }
            let (first, last) = (self.pixels[start + PAD], self.pixels[self.pixels.len() - 1]);
            self.pixels[start..start + PAD].fill(first);
            self.pixels.extend([last; PAD]);
            if start == 0 {
                (0..PAD).for_each(|_| self.pixels.extend_from_within(..self.stride));
            }
        }
        if self.pixels.len() == self.stride * (self.size.height as usize + PAD) {
            let last = self.pixels.len() - self.stride;
            (0..PAD).for_each(|_| self.pixels.extend_from_within(last..last + self.stride));
            self.pixels.extend([[0; 4]; LOADED]);
        }
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

/// Weights of the taps at -2 to 3 for each phase, in 2048ths; each row adds up to 2048.
static WEIGHTS: LazyLock<[[i16; TAPS]; 256]> = LazyLock::new(|| {
    let lobe = |x: f64| {
        let angle = std::f64::consts::PI * x;
        if x == 0.0 { 1.0 } else { 3.0 * libm::sin(angle) * libm::sin(angle / 3.0) / (angle * angle) }
    };
    std::array::from_fn(|phase| {
        let weights: [f64; TAPS] = std::array::from_fn(|tap| lobe(phase as f64 / 256.0 + 2.0 - tap as f64));
        let sum: f64 = weights.iter().sum();
        let mut rounded = weights.map(|weight| (weight / sum * 2048.0).round() as i16);
        // What rounding lost or gained goes to the nearest tap, where it is the smallest part.
        let nearest = if phase < 128 { 2 } else { 3 };
        rounded[nearest] += 2048 - rounded.iter().sum::<i16>();
        rounded
    })
});

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

/// How the taps of a point are weighed: where the processor has AVX2 by its instructions, else one by one.
#[derive(Clone, Copy)]
enum Convolve {
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Plain,
}

impl Convolve {
    fn get() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Plain
    }

    fn fill_rgb(self, source: &Padded, map: &Map, background: Color, first: usize, pixels: &mut [u8]) {
        match self {
            // SAFETY: the processor has the feature.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::fill_rgb(source, map, background, first, pixels) },
            Self::Plain => fill_rgb(source, map, background, first, pixels, plain(&WEIGHTS)),
        }
    }

    fn fill_rgba(self, source: &Padded, map: &Map, background: Color, first: usize, pixels: &mut [u8]) {
        match self {
            // SAFETY: the processor has the feature.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::fill_rgba(source, map, background, first, pixels) },
            Self::Plain => fill_rgba(source, map, background, first, pixels, plain(&WEIGHTS)),
        }
    }
}

/// The source at a point that it covers, premultiplied; a little below 0 or above 255 beside a sharp edge. `convolve` weighs
/// the taps, the first of which is the pixel at its second argument, by the phases across and down.
#[inline(always)]
fn sampled(source: &Padded, u: i64, v: i64, convolve: impl Fn(&Padded, usize, [usize; 2]) -> [i32; 4]) -> [i32; 4] {
    // To the nearest phase.
    let (u, v) = (u + (1 << 23), v + (1 << 23));
    let phase = |at: i64| (at >> 24 & 0xff) as usize;
    let tap = |at: i64| ((at >> 32) + (PAD - 2) as i64) as usize;
    convolve(source, tap(v) * source.stride + tap(u), [phase(u), phase(v)])
}

/// First across, kept in 64ths of a level, then down.
fn plain(weights: &[[i16; TAPS]; 256]) -> impl Fn(&Padded, usize, [usize; 2]) -> [i32; 4] {
    move |source, start, [across, down]| {
        let mut sums = [1 << 16; 4];
        for (row, weight) in weights[down].iter().enumerate() {
            let taps = &source.pixels[start + row * source.stride..][..TAPS];
            for (c, sum) in sums.iter_mut().enumerate() {
                let products =
                    taps.iter().zip(&weights[across]).map(|(tap, weight)| i32::from(tap[c]) * i32::from(*weight));
                *sum += ((products.sum::<i32>() + 16) >> 5) * i32::from(*weight);
            }
        }
        sums.map(|sum| sum >> 17)
    }
}

/// The same to the bit, with AVX2.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::*;

    /// The weights of a phase, side by side as the instructions take them.
    struct Wide {
        /// Across: the taps 0 and 1 for each channel, then 4 and 5.
        outer: [i16; 16],
        /// Across: the taps 2 and 3, then nothing.
        inner: [i16; 16],
        /// Down: of each two rows, the first one's for each channel, then the second one's.
        down: [[i32; 8]; TAPS / 2],
    }

    static WIDE: LazyLock<Vec<Wide>> = LazyLock::new(|| {
        let wide = |weights: &[i16; TAPS]| Wide {
            outer: std::array::from_fn(|at| weights[at / 8 * 4 + at % 2]),
            inner: std::array::from_fn(|at| if at < 8 { weights[2 + at % 2] } else { 0 }),
            down: std::array::from_fn(|pair| std::array::from_fn(|at| i32::from(weights[pair * 2 + at / 4]))),
        };
        WEIGHTS.iter().map(wide).collect()
    });

    #[target_feature(enable = "avx2")]
    pub(super) fn fill_rgb(source: &Padded, map: &Map, background: Color, first: usize, pixels: &mut [u8]) {
        let weights: &[Wide; 256] = WIDE.as_slice().try_into().expect("as many as there are phases");
        super::fill_rgb(source, map, background, first, pixels, |source, start, phases| {
            convolved(source, start, phases, weights)
        });
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn fill_rgba(source: &Padded, map: &Map, background: Color, first: usize, pixels: &mut [u8]) {
        let weights: &[Wide; 256] = WIDE.as_slice().try_into().expect("as many as there are phases");
        super::fill_rgba(source, map, background, first, pixels, |source, start, phases| {
            convolved(source, start, phases, weights)
        });
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn convolved(source: &Padded, start: usize, [across, down]: [usize; 2], weights: &[Wide; 256]) -> [i32; 4] {
        // SAFETY: thirty-two bytes are read where thirty-two are, here and below; the loads need no alignment.
        let load = |values: &[i16; 16]| unsafe { _mm256_loadu_si256(values.as_ptr().cast()) };
        let load_wide = |values: &[i32; 8]| unsafe { _mm256_loadu_si256(values.as_ptr().cast()) };
        let (outer, inner) = (load(&weights[across].outer), load(&weights[across].inner));
        let zero = _mm256_setzero_si256();
        // Of each two pixels, channel by channel beside each other.
        let paired = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
        let row = |number: usize| {
            let taps: &[[u8; 4]; LOADED] =
                source.pixels[start + number * source.stride..].first_chunk().expect("as many are behind every tap");
            // SAFETY: as above.
            let taps = unsafe { _mm256_loadu_si256(taps.as_ptr().cast()) };
            let taps = _mm256_shuffle_epi8(taps, paired);
            let near = _mm256_madd_epi16(_mm256_unpacklo_epi8(taps, zero), outer);
            _mm256_add_epi32(near, _mm256_madd_epi16(_mm256_unpackhi_epi8(taps, zero), inner))
        };
        let rows = |pair: usize| {
            let (one, two) = (row(2 * pair), row(2 * pair + 1));
            let sum = _mm256_add_epi32(
                _mm256_permute2x128_si256::<0x20>(one, two),
                _mm256_permute2x128_si256::<0x31>(one, two),
            );
            let sum = _mm256_srai_epi32::<5>(_mm256_add_epi32(sum, _mm256_set1_epi32(16)));
            _mm256_mullo_epi32(sum, load_wide(&weights[down].down[pair]))
        };
        let sum = _mm256_add_epi32(_mm256_add_epi32(rows(0), rows(1)), rows(2));
        let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        let sum = _mm_srai_epi32::<17>(_mm_add_epi32(sum, _mm_set1_epi32(1 << 16)));
        let mut samples = [0; 4];
        // SAFETY: sixteen bytes are written where sixteen are; the store needs no alignment.
        unsafe { _mm_storeu_si128(samples.as_mut_ptr().cast(), sum) };
        samples
    }
}

#[inline(always)]
fn fill_rgb(
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
            let covered = coverage(u, v, source.size, map.scale);
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
fn fill_rgba(
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
            let covered = coverage(u, v, source.size, map.scale);
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
        assert_eq!(WEIGHTS[0], [0, 0, 2048, 0, 0, 0]);
        assert!(WEIGHTS.iter().all(|row| row.iter().sum::<i16>() == 2048));
        // Half way, by the formula: sinc(1/2)·sinc(1/6) is 0.6079, sinc(3/2)·sinc(1/2) -0.1351, sinc(5/2)·sinc(5/6) 0.0243.
        assert_eq!(WEIGHTS[128], [50, -278, 1252, 1252, -278, 50]);
    }

    /// A picture of extremes, where the sums are largest.
    fn extremes(size: Size, channels: Channels) -> Picture {
        let mut state = 1u32;
        let count = size.pixels() as usize * channels.count();
        let pixels = (0..count).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match state >> 30 {
                0 => 0,
                1 => 255,
                _ => (state >> 16) as u8,
            }
        });
        Picture::made(size, channels, pixels.collect())
    }

    #[test]
    fn wide_and_plain_convolution_agree_to_the_bit() {
        for channels in [Channels::Rgb, Channels::Rgba] {
            let source = Padded::of(&extremes(Size::new(67, 45), channels));
            for (degrees, scale) in [(0.5, 1.0), (12.0, 1.0), (133.0, 1.0), (200.0, 3.7)] {
                let turn = Turn { scale: (scale, scale), ..Turn::clockwise(degrees) };
                let part = Rect { x: 0, y: 0, size: Size::new(80, 80) };
                let map = Map::new(source.size, turn, (80.0, 80.0), part);
                let filled = |convolve: Convolve| {
                    let (mut rgb, mut rgba) = (vec![7; 80 * 80 * 3], vec![7; 80 * 80 * 4]);
                    convolve.fill_rgb(&source, &map, Color::WHITE, 0, &mut rgb);
                    convolve.fill_rgba(&source, &map, Color::TRANSPARENT, 0, &mut rgba);
                    (rgb, rgba)
                };
                assert!(filled(Convolve::get()) == filled(Convolve::Plain), "{degrees} degrees");
            }
        }
    }

    #[test]
    fn a_turn_is_that_of_exact_lanczos() {
        let size = Size::new(60, 44);
        // Fine detail, where kernels differ most, but no finer than half the pixels.
        let level = |x: u32, y: u32| {
            let (x, y) = (f64::from(x), f64::from(y));
            128.0 + 50.0 * (x * 1.9).sin() + 40.0 * (y * 1.7 + x * 0.3).cos()
        };
        let source = crate::testing::drawn(size.width, size.height, Channels::Rgb, |x, y| [level(x, y) as u8; 4]);
        let lobe = |x: f64| match x.abs() {
            x if x < 1e-9 => 1.0,
            x if x >= 3.0 => 0.0,
            x => {
                (std::f64::consts::PI * x).sin() * (std::f64::consts::PI * x / 3.0).sin() * 3.0
                    / (std::f64::consts::PI * x).powi(2)
            }
        };
        for degrees in [7.0f64, 45.0, 161.0] {
            let result =
                turned(&source, Turn::clockwise(degrees), (60.0, 44.0), Rect { x: 0, y: 0, size }, Color::WHITE);
            let (sin, cos) = degrees.to_radians().sin_cos();
            let (mut squares, mut count) = (0.0, 0.0);
            for (x, y) in (0..44).flat_map(|y| (0..60).map(move |x| (x, y))) {
                let (dx, dy) = (f64::from(x) + 0.5 - 30.0, f64::from(y) + 0.5 - 22.0);
                let (u, v) = (cos * dx + sin * dy + 29.5, cos * dy - sin * dx + 21.5);
                if !(3.0..56.0).contains(&u) || !(3.0..40.0).contains(&v) {
                    continue;
                }
                let (mut sum, mut weights) = (0.0, 0.0);
                for (sx, sy) in (0..44).flat_map(|sy| (0..60).map(move |sx| (sx, sy))) {
                    let weight = lobe(u - f64::from(sx)) * lobe(v - f64::from(sy));
                    sum += weight * f64::from(source.pixel(sx, sy).unwrap()[0]);
                    weights += weight;
                }
                let exact = (sum / weights).clamp(0.0, 255.0);
                squares += (f64::from(result.pixel(x, y).unwrap()[0]) - exact).powi(2);
                count += 1.0;
            }
            let quality = 10.0 * (255.0f64.powi(2) * count / squares).log10();
            assert!(count > 900.0 && quality > 54.0, "{degrees}: {quality:.1} dB over {count} pixels");
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
