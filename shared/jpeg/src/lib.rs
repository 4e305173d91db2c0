//! A baseline JPEG encoder (ITU-T T.81) with 4:2:0 subsampling and optimized Huffman tables that
//! takes the image row by row. `README.md` has its measurements and limits.
//!
//! **Guarantee.** The output corresponds to that of libjpeg-turbo with `optimize_coding` at the
//! same quality, within the rounding of its transform: the same quantization, the same method for
//! tables (T.81, K.2), and files of the same size. The bytes are the same on every processor,
//! because the encoder only uses IEEE 754 additions and multiplications in a fixed order.
//!
//! **Mechanism.** Sixteen rows at a time are converted to planes (`planes`), to blocks of quantized
//! coefficients (`blocks`) and immediately to the symbols of the entropy code, two bytes each
//! (`symbols`). After the last row, the symbols are counted, the tables are built (`huffman`), and
//! the symbols are written as bits.
//!
//! **Reason.** Optimized tables require the whole image before the first bit is written. For
//! that, libjpeg keeps all coefficients, three bytes per pixel, and reads them twice more. The
//! symbols take a few tenths of a byte per pixel, and the steps before them work within the cache
//! and never hold the image (`docs/adr/0009-own-jpeg-encoder.md`).

mod blocks;
mod huffman;
mod lanes;
mod planes;
mod symbols;

#[cfg(test)]
mod tests;

use blocks::Quantizer;
use huffman::Table;
use planes::{BAND, Band};
use symbols::Symbols;

/// The quantization of luma and chroma at quality 50, in row order (T.81, K.1 and K.2).
const QUANTIZATION: [[u8; 64]; 2] = [
    [
        16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29,
        51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87, 103, 121,
        120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
    ],
    [
        17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99,
    ],
];

/// For each position in zigzag order, the position in row order (T.81, figure 5).
const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// The samples of a pixel, one byte each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PixelFormat {
    /// Red, green and blue.
    Rgb,
    /// Red, green, blue and a fourth sample, which is ignored.
    Rgba,
}

/// A JPEG that is being written.
pub struct Encoder {
    width: u16,
    height: u16,
    format: PixelFormat,
    quantization: [[u8; 64]; 2],
    quantizers: [Quantizer; 2],
    /// Rows that do not yet fill a band.
    pending: Vec<u8>,
    band: Band,
    symbols: Symbols,
}

impl Encoder {
    /// Starts a file of this size, of which no side may be 0. `quality` is from 1 to 100; other values are clamped.
    pub fn new(width: u16, height: u16, format: PixelFormat, quality: u8) -> Self {
        let quantization = quantization(quality);
        Self {
            width,
            height,
            format,
            quantization,
            quantizers: quantization.map(|steps| Quantizer::new(&steps)),
            pending: Vec::new(),
            band: Band::new(usize::from(width)),
            symbols: Symbols::new(),
        }
    }

    /// Adds the next rows, any number of whole rows at a time. In total there must be as many as the height says.
    pub fn write(&mut self, mut rows: &[u8]) {
        let samples = match self.format {
            PixelFormat::Rgb => 3,
            PixelFormat::Rgba => 4,
        };
        let band = usize::from(self.width) * samples * BAND;
        if !self.pending.is_empty() {
            let (first, rest) = rows.split_at(rows.len().min(band - self.pending.len()));
            self.pending.extend_from_slice(first);
            rows = rest;
            if self.pending.len() < band {
                return;
            }
            let pending = std::mem::take(&mut self.pending);
            self.encode(&pending);
            self.pending = pending;
            self.pending.clear();
        }
        let mut bands = rows.chunks_exact(band);
        bands.by_ref().for_each(|band| self.encode(band));
        self.pending.extend_from_slice(bands.remainder());
    }

    /// Completes and returns the file.
    pub fn finish(mut self) -> Vec<u8> {
        if !self.pending.is_empty() {
            let pending = std::mem::take(&mut self.pending);
            self.encode(&pending);
        }
        let tables = self.symbols.tables();
        let mut file = self.header(&tables);
        self.symbols.write(&tables, &mut file);
        file.extend([0xff, 0xd9]);
        file
    }

    /// Encodes a band. The code is compiled twice on x86-64, for every processor and for those with AVX2, and selected at run
    /// time. Neither version uses instructions that round differently (such as a fused multiply-add), so both give the same
    /// results.
    fn encode(&mut self, rows: &[u8]) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature.
            return unsafe { self.encode_avx2(rows) };
        }
        self.encode_portable(rows);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn encode_avx2(&mut self, rows: &[u8]) {
        self.encode_portable(rows);
    }

    #[inline(always)]
    fn encode_portable(&mut self, rows: &[u8]) {
        match self.format {
            PixelFormat::Rgb => self.band.fill(rows.as_chunks::<3>().0),
            PixelFormat::Rgba => self.band.fill(rows.as_chunks::<4>().0),
        }
        blocks::encode(&self.band, &self.quantizers, &mut self.symbols);
    }

    /// Everything before the entropy-coded data (T.81, B.2; JFIF 1.02).
    fn header(&self, tables: &[Table; 4]) -> Vec<u8> {
        let mut file = vec![0xff, 0xd8];
        let mut segment = |marker: u8, parts: &[&[u8]]| {
            let length: usize = parts.iter().map(|part| part.len()).sum();
            file.extend([0xff, marker]);
            // Every segment here is shorter than four hundred bytes.
            file.extend((length as u16 + 2).to_be_bytes());
            parts.iter().for_each(|part| file.extend_from_slice(part));
        };
        segment(0xe0, &[b"JFIF\0", &[1, 1, 0, 0, 1, 0, 1, 0, 0]]);
        for (number, steps) in self.quantization.iter().enumerate() {
            segment(0xdb, &[&[number as u8], &ZIGZAG.map(|place| steps[usize::from(place)])]);
        }
        let (height, width) = (self.height.to_be_bytes(), self.width.to_be_bytes());
        segment(0xc0, &[&[8], &height, &width, &[3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]]);
        for (number, table) in [0x00, 0x10, 0x01, 0x11].into_iter().zip(tables) {
            segment(0xc4, &[&[number], &table.lengths, &table.symbols]);
        }
        segment(0xda, &[&[3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0]]);
        file
    }
}

/// The quantization steps of luma and chroma at a quality, in row order (libjpeg,
/// `jpeg_quality_scaling`), limited to the range of baseline JPEG.
fn quantization(quality: u8) -> [[u8; 64]; 2] {
    let quality = u32::from(quality.clamp(1, 100));
    let percent = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
    QUANTIZATION.map(|steps| steps.map(|step| ((u32::from(step) * percent + 50) / 100).clamp(1, 255) as u8))
}
