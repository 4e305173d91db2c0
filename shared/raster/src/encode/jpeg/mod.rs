//! Baseline JPEG (ITU-T T.81), 4:2:0, with Huffman tables made for the picture, written row by row.
//!
//! **Guarantee.** What libjpeg-turbo writes with `optimize_coding` at the same quality, within the rounding of its
//! transform: the same quantisation, the same tables (T.81, K.2), files of the same size. The same bytes on every
//! processor: nothing but additions and multiplications of IEEE 754 in one order.
//!
//! **Mechanism.** Sixteen rows at a time become planes (`planes`), blocks of quantised coefficients (`blocks`) and at once
//! the symbols of the entropy code, two bytes each (`symbols`). When the last row is in, the symbols are counted, the
//! tables are made (`huffman`) and the symbols become bits.
//!
//! **Reason.** Tables that fit need to see the whole picture before the first bit. libjpeg keeps all coefficients for
//! that, three bytes a pixel, and passes over them twice more; the symbols are a few tenths of a byte a pixel, and what
//! is upstream of them works in the cache and never holds the picture.

mod blocks;
mod huffman;
mod lanes;
mod planes;
mod symbols;

#[cfg(test)]
mod tests;

use crate::geometry::Size;
use crate::picture::Channels;

use blocks::Quantizer;
use huffman::Table;
use planes::{BAND, Band};
use symbols::Symbols;

/// Quantisation of luma and chroma at quality 50, row by row (T.81, K.1 and K.2).
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

/// Of each place in zigzag order, the place in rows (T.81, figure 5).
const ZIGZAG: [u8; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// A JPEG that is being written.
pub(crate) struct Writer {
    size: Size,
    channels: Channels,
    quantization: [[u8; 64]; 2],
    quantizers: [Quantizer; 2],
    /// Rows that do not fill a band yet.
    pending: Vec<u8>,
    band: Band,
    symbols: Symbols,
}

impl Writer {
    /// A file of so many rows of pixels; a fourth channel is ignored. `quality` is from 1 to 100.
    pub(crate) fn new(size: Size, channels: Channels, quality: u8) -> Self {
        let quantization = quantization(quality);
        let width = size.width as usize;
        Self {
            size,
            channels,
            quantization,
            quantizers: quantization.map(|steps| Quantizer::new(&steps)),
            pending: Vec::new(),
            band: Band::new(width),
            symbols: Symbols::new(),
        }
    }

    /// Takes the next rows, as many as there are; all in all as many as the size says.
    pub(crate) fn write(&mut self, mut rows: &[u8]) {
        let band = self.size.width as usize * self.channels.count() * BAND;
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

    /// The file.
    pub(crate) fn finish(mut self) -> Vec<u8> {
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

    fn encode(&mut self, rows: &[u8]) {
        self.band.fill(rows, self.channels);
        blocks::encode(&self.band, &self.quantizers, &mut self.symbols);
    }

    /// Everything up to the entropy-coded data (T.81, B.2; JFIF 1.02).
    fn header(&self, tables: &[Table; 4]) -> Vec<u8> {
        let mut file = vec![0xff, 0xd8];
        let mut segment = |marker: u8, parts: &[&[u8]]| {
            let length: usize = parts.iter().map(|part| part.len()).sum();
            file.extend([0xff, marker]);
            // No segment here is longer than four hundred bytes.
            file.extend((length as u16 + 2).to_be_bytes());
            parts.iter().for_each(|part| file.extend_from_slice(part));
        };
        segment(0xe0, &[b"JFIF\0", &[1, 1, 0, 0, 1, 0, 1, 0, 0]]);
        for (number, steps) in self.quantization.iter().enumerate() {
            segment(0xdb, &[&[number as u8], &ZIGZAG.map(|place| steps[usize::from(place)])]);
        }
        // Sides of results are at most 16384, of renditions 30000.
        let (height, width) = ((self.size.height as u16).to_be_bytes(), (self.size.width as u16).to_be_bytes());
        segment(0xc0, &[&[8], &height, &width, &[3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]]);
        for (number, table) in [0x00, 0x10, 0x01, 0x11].into_iter().zip(tables) {
            segment(0xc4, &[&[number], &table.lengths, &table.symbols]);
        }
        segment(0xda, &[&[3, 1, 0x00, 2, 0x11, 3, 0x11, 0, 63, 0]]);
        file
    }
}

/// The steps of luma and chroma, row by row, at a quality (libjpeg, `jpeg_quality_scaling`), as baseline has them.
fn quantization(quality: u8) -> [[u8; 64]; 2] {
    let quality = u32::from(quality.clamp(1, 100));
    let percent = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
    QUANTIZATION.map(|steps| steps.map(|step| ((u32::from(step) * percent + 50) / 100).clamp(1, 255) as u8))
}
