//! Converts planes to quantized coefficients with the forward transform of 8 × 8 samples.
//!
//! The algorithm is that of Y. Arai, T. Agui and M. Nakajima, "A Fast DCT-SQ Scheme for Images"
//! (1988), in floating point. It needs five multiplications per row or column; the remaining scale
//! factors are part of the quantization.

use crate::lanes::Lanes;
use crate::planes::{BAND, Band};
use crate::symbols::{Class, Symbols};

/// The factors for the coefficients of a component, in column order.
pub(crate) struct Quantizer([Lanes; 8]);

impl Quantizer {
    /// Creates a quantizer from quantization steps in row order.
    pub(crate) fn new(steps: &[u8; 64]) -> Self {
        /// The factors by which the transform's results must be divided, per frequency:
        /// cos(kπ/16)·√2, and 1 for the first.
        const SCALE: [f64; 8] =
            [1.0, 1.387_039_845, 1.306_562_965, 1.175_875_602, 1.0, 0.785_694_958, 0.541_196_100, 0.275_899_379];
        let factor = |column: usize, row: usize| {
            (1.0 / (f64::from(steps[row * 8 + column]) * SCALE[row] * SCALE[column] * 8.0)) as f32
        };
        Self(std::array::from_fn(|column| Lanes::new(&std::array::from_fn(|row| factor(column, row)))))
    }
}

/// Encodes a band, one minimum coded unit after the other (T.81, A.2.3).
#[inline(always)]
pub(crate) fn encode(band: &Band, quantizers: &[Quantizer; 2], symbols: &mut Symbols) {
    let [luma, chroma] = quantizers;
    let (wide, narrow) = (band.stride, band.stride / 2);
    for unit in 0..band.units() {
        for (x, y) in [(0, 0), (8, 0), (0, BAND / 2), (8, BAND / 2)] {
            if band.has_block(unit * 16 + x, y) {
                symbols.push(Class::Luma, 0, &quantized(&band.luma[y * wide + unit * 16 + x..], wide, luma));
            } else {
                symbols.repeat(Class::Luma, 0);
            }
        }
        for (component, plane) in band.chroma.iter().enumerate() {
            symbols.push(Class::Chroma, component + 1, &quantized(&plane[unit * 8..], narrow, chroma));
        }
    }
}

/// The quantized coefficients, in column order, of the block that begins at the first sample.
#[inline(always)]
fn quantized(samples: &[u8], stride: usize, quantizer: &Quantizer) -> [[i16; 8]; 8] {
    let row = |y: usize| Lanes::centred(samples[y * stride..][..8].try_into().expect("eight samples"));
    let rows = transformed([row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)]);
    let columns = transformed(Lanes::transposed(rows));
    let mut block = [[0; 8]; 8];
    for ((out, column), factors) in block.iter_mut().zip(columns).zip(quantizer.0) {
        *out = column.rounded_product(factors);
    }
    block
}

/// Eight transforms of eight values, one per lane.
#[inline(always)]
fn transformed([v0, v1, v2, v3, v4, v5, v6, v7]: [Lanes; 8]) -> [Lanes; 8] {
    const COS_4: f32 = 0.707_106_77;
    let (sum0, sum1, sum2, sum3) = (v0 + v7, v1 + v6, v2 + v5, v3 + v4);
    let (less0, less1, less2, less3) = (v0 - v7, v1 - v6, v2 - v5, v3 - v4);

    let (outer, inner) = (sum0 + sum3, sum1 + sum2);
    let (outer_less, inner_less) = (sum0 - sum3, sum1 - sum2);
    let turned = (inner_less + outer_less) * COS_4;

    let (a, b, c) = (less3 + less2, less2 + less1, less1 + less0);
    let shared = (a - c) * 0.382_683_43;
    let (low, high) = (a * 0.541_196_1 + shared, c * 1.306_563 + shared);
    let middle = b * COS_4;
    let (near, far) = (less0 + middle, less0 - middle);
    [
        outer + inner,
        near + high,
        outer_less + turned,
        far - low,
        outer - inner,
        far + low,
        outer_less - turned,
        near - high,
    ]
}
