//! Vectors of eight numbers.
//!
//! On x86-64 they use SSE2 instructions, which every such processor has, because the compiler does
//! not vectorize loops over eight numbers. On other machines they are such loops. Both give
//! identical results, because they perform the same additions and multiplications in the same
//! order.

#[cfg(target_arch = "x86_64")]
pub(crate) use sse2::Lanes;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use plain::Lanes;

/// 1.5 · 2^23. Adding this constant rounds a number to the nearest integer, which is then in the
/// lowest bits.
const ROUNDING: f32 = 12_582_912.0;

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::*;
    use std::ops::{Add, Mul, Sub};

    use super::ROUNDING;

    /// Eight numbers.
    #[derive(Clone, Copy)]
    pub(crate) struct Lanes(__m128, __m128);

    impl Add for Lanes {
        type Output = Self;

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            // SAFETY: every x86-64 processor has SSE2, here and below.
            unsafe { Self(_mm_add_ps(self.0, other.0), _mm_add_ps(self.1, other.1)) }
        }
    }

    impl Sub for Lanes {
        type Output = Self;

        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            // SAFETY: as above.
            unsafe { Self(_mm_sub_ps(self.0, other.0), _mm_sub_ps(self.1, other.1)) }
        }
    }

    impl Mul<f32> for Lanes {
        type Output = Self;

        #[inline(always)]
        fn mul(self, factor: f32) -> Self {
            // SAFETY: as above.
            unsafe {
                let factor = _mm_set1_ps(factor);
                Self(_mm_mul_ps(self.0, factor), _mm_mul_ps(self.1, factor))
            }
        }
    }

    impl Lanes {
        #[inline(always)]
        pub(crate) fn new(numbers: &[f32; 8]) -> Self {
            // SAFETY: as above. Two unaligned loads of four numbers read a slice of eight.
            unsafe { Self(_mm_loadu_ps(numbers.as_ptr()), _mm_loadu_ps(numbers.as_ptr().add(4))) }
        }

        /// Converts samples to numbers and subtracts 128.
        #[inline(always)]
        pub(crate) fn centred(samples: &[u8; 8]) -> Self {
            // SAFETY: as above. One unaligned load of eight bytes reads a slice of eight bytes.
            unsafe {
                let zero = _mm_setzero_si128();
                let words = _mm_unpacklo_epi8(_mm_loadl_epi64(samples.as_ptr().cast()), zero);
                let half = |words| _mm_sub_ps(_mm_cvtepi32_ps(words), _mm_set1_ps(128.0));
                Self(half(_mm_unpacklo_epi16(words, zero)), half(_mm_unpackhi_epi16(words, zero)))
            }
        }

        /// The product, rounded to the nearest integer and half to even. Its magnitude must be less
        /// than 2^15.
        #[inline(always)]
        pub(crate) fn rounded_product(self, factors: Self) -> [i16; 8] {
            let mut numbers = [0; 8];
            // SAFETY: as above. One unaligned store of sixteen bytes writes to an array of sixteen
            // bytes.
            unsafe {
                let half = |own, factors| {
                    let bits = _mm_castps_si128(_mm_add_ps(_mm_mul_ps(own, factors), _mm_set1_ps(ROUNDING)));
                    _mm_sub_epi32(bits, _mm_set1_epi32(ROUNDING.to_bits() as i32))
                };
                let both = _mm_packs_epi32(half(self.0, factors.0), half(self.1, factors.1));
                _mm_storeu_si128(numbers.as_mut_ptr().cast(), both);
            }
            numbers
        }

        /// Transposes the matrix in blocks of four by four.
        #[inline(always)]
        pub(crate) fn transposed(rows: [Self; 8]) -> [Self; 8] {
            #[inline(always)]
            fn quarter(a: __m128, b: __m128, c: __m128, d: __m128) -> [__m128; 4] {
                // SAFETY: as above.
                unsafe {
                    let (low, high) = (_mm_unpacklo_ps(a, b), _mm_unpacklo_ps(c, d));
                    let (far_low, far_high) = (_mm_unpackhi_ps(a, b), _mm_unpackhi_ps(c, d));
                    [
                        _mm_movelh_ps(low, high),
                        _mm_movehl_ps(high, low),
                        _mm_movelh_ps(far_low, far_high),
                        _mm_movehl_ps(far_high, far_low),
                    ]
                }
            }
            let [a, b, c, d, e, f, g, h] = rows;
            let (top_left, top_right) = (quarter(a.0, b.0, c.0, d.0), quarter(a.1, b.1, c.1, d.1));
            let (low_left, low_right) = (quarter(e.0, f.0, g.0, h.0), quarter(e.1, f.1, g.1, h.1));
            [
                Self(top_left[0], low_left[0]),
                Self(top_left[1], low_left[1]),
                Self(top_left[2], low_left[2]),
                Self(top_left[3], low_left[3]),
                Self(top_right[0], low_right[0]),
                Self(top_right[1], low_right[1]),
                Self(top_right[2], low_right[2]),
                Self(top_right[3], low_right[3]),
            ]
        }
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain {
    use std::ops::{Add, Mul, Sub};

    use super::ROUNDING;

    /// Eight numbers.
    #[derive(Clone, Copy)]
    pub(crate) struct Lanes([f32; 8]);

    impl Add for Lanes {
        type Output = Self;

        fn add(self, other: Self) -> Self {
            Self(std::array::from_fn(|lane| self.0[lane] + other.0[lane]))
        }
    }

    impl Sub for Lanes {
        type Output = Self;

        fn sub(self, other: Self) -> Self {
            Self(std::array::from_fn(|lane| self.0[lane] - other.0[lane]))
        }
    }

    impl Mul<f32> for Lanes {
        type Output = Self;

        fn mul(self, factor: f32) -> Self {
            Self(self.0.map(|lane| lane * factor))
        }
    }

    impl Lanes {
        pub(crate) fn new(numbers: &[f32; 8]) -> Self {
            Self(*numbers)
        }

        /// Converts samples to numbers and subtracts 128.
        pub(crate) fn centred(samples: &[u8; 8]) -> Self {
            Self(samples.map(|sample| f32::from(sample) - 128.0))
        }

        /// The product, rounded to the nearest integer and half to even. Its magnitude must be less
        /// than 2^15.
        pub(crate) fn rounded_product(self, factors: Self) -> [i16; 8] {
            std::array::from_fn(|lane| {
                let bits = (self.0[lane] * factors.0[lane] + ROUNDING).to_bits() as i32;
                bits.wrapping_sub(ROUNDING.to_bits() as i32) as i16
            })
        }

        /// Transposes the matrix.
        pub(crate) fn transposed(rows: [Self; 8]) -> [Self; 8] {
            std::array::from_fn(|column| Self(std::array::from_fn(|row| rows[row].0[column])))
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::{plain, sse2};

    #[test]
    fn wide_and_plain_instructions_agree_to_the_bit() {
        let mut state = 1u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for _ in 0..500 {
            let samples: [[u8; 8]; 8] = std::array::from_fn(|_| std::array::from_fn(|_| next()));
            let factors: [f32; 8] = std::array::from_fn(|_| f32::from(next()) / 77.0);
            macro_rules! outcome {
                ($lanes:ty) => {{
                    let rows = samples.map(|row| <$lanes>::centred(&row));
                    let columns = <$lanes>::transposed(rows);
                    let mixed = (columns[0] + columns[1] * 0.707_106_77 - columns[7]) * 1.306_563;
                    [mixed, columns[6], rows[3]].map(|lanes| lanes.rounded_product(<$lanes>::new(&factors)))
                }};
            }
            assert_eq!(outcome!(sse2::Lanes), outcome!(plain::Lanes));
        }
    }
}
