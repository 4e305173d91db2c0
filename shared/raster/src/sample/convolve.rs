//! Computes the weighted sum of the source pixels around a point.

use std::sync::LazyLock;

use super::draw;
use super::map::Map;
use super::padded::{Padded, TAPS};
use crate::color::Color;

/// The weights of the taps at -2 to 3 for each phase, in 2048ths. Each row adds up to 2048.
pub(super) static WEIGHTS: LazyLock<[[i16; TAPS]; 256]> = LazyLock::new(|| {
    let lobe = |x: f64| {
        let angle = std::f64::consts::PI * x;
        if x == 0.0 { 1.0 } else { 3.0 * libm::sin(angle) * libm::sin(angle / 3.0) / (angle * angle) }
    };
    std::array::from_fn(|phase| {
        let weights: [f64; TAPS] = std::array::from_fn(|tap| lobe(phase as f64 / 256.0 + 2.0 - tap as f64));
        let sum: f64 = weights.iter().sum();
        let mut rounded = weights.map(|weight| (weight / sum * 2048.0).round() as i16);
        // The rounding error is added to the nearest tap, where it is smallest in proportion.
        let nearest = if phase < 128 { 2 } else { 3 };
        rounded[nearest] += 2048 - rounded.iter().sum::<i16>();
        rounded
    })
});

/// The implementation: AVX2 if the processor has it, otherwise scalar.
#[derive(Clone, Copy)]
pub(super) enum Convolve {
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Plain,
}

impl Convolve {
    pub(super) fn get() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Plain
    }

    pub(super) fn fill_rgb(self, source: &Padded, map: &Map, background: Color, first: usize, pixels: &mut [u8]) {
        match self {
            // SAFETY: the processor has the feature.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::fill_rgb(source, map, background, first, pixels) },
            Self::Plain => draw::fill_rgb(source, map, background, first, pixels, plain(&WEIGHTS)),
        }
    }

    pub(super) fn fill_rgba(self, source: &Padded, map: &Map, background: Color, first: usize, pixels: &mut [u8]) {
        match self {
            // SAFETY: the processor has the feature.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { avx2::fill_rgba(source, map, background, first, pixels) },
            Self::Plain => draw::fill_rgba(source, map, background, first, pixels, plain(&WEIGHTS)),
        }
    }
}

/// Convolves horizontally, with results in 64ths of a level, then vertically.
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

/// The same computation with AVX2, with identical results.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::super::padded::LOADED;
    use super::*;

    /// The weights of a phase in the layout that the instructions need.
    struct Wide {
        /// Horizontal: taps 0 and 1 for each channel, then taps 4 and 5.
        outer: [i16; 16],
        /// Horizontal: taps 2 and 3, then zeros.
        inner: [i16; 16],
        /// Vertical: for each pair of rows, the weights of the first and the second row for each
        /// channel.
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
        draw::fill_rgb(source, map, background, first, pixels, |source, start, phases| {
            convolved(source, start, phases, weights)
        });
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn fill_rgba(source: &Padded, map: &Map, background: Color, first: usize, pixels: &mut [u8]) {
        let weights: &[Wide; 256] = WIDE.as_slice().try_into().expect("as many as there are phases");
        draw::fill_rgba(source, map, background, first, pixels, |source, start, phases| {
            convolved(source, start, phases, weights)
        });
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn convolved(source: &Padded, start: usize, [across, down]: [usize; 2], weights: &[Wide; 256]) -> [i32; 4] {
        // SAFETY: an unaligned load of thirty-two bytes reads an array of thirty-two bytes, here
        // and below.
        let load = |values: &[i16; 16]| unsafe { _mm256_loadu_si256(values.as_ptr().cast()) };
        let load_wide = |values: &[i32; 8]| unsafe { _mm256_loadu_si256(values.as_ptr().cast()) };
        let (outer, inner) = (load(&weights[across].outer), load(&weights[across].inner));
        let zero = _mm256_setzero_si256();
        // Interleaves the channels of each pair of pixels.
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
        // SAFETY: an unaligned store of sixteen bytes writes to an array of sixteen bytes.
        unsafe { _mm_storeu_si128(samples.as_mut_ptr().cast(), sum) };
        samples
    }
}
