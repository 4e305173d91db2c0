//! Collects the symbols of the entropy code (T.81, F.1.2) until their Huffman tables are known.

use crate::ZIGZAG;
use crate::huffman::{Code, Table};

/// The kind of a block, which selects the tables it is coded with.
#[derive(Clone, Copy)]
pub(crate) enum Class {
    Luma = 0,
    Chroma = 1,
}

/// The number of entries allocated together: small enough that the last, partly used chunk wastes
/// little memory.
const CHUNK: usize = 1 << 18;

/// The maximum number of entries per block: two per coefficient, and a few for long runs of zeros
/// and the end of the block.
const BLOCK_MAX: usize = 256;

/// Values of up to this many bits are stored in the entry of their symbol.
const SHORT: u32 = 6;

/// The symbol for a run of sixteen zeros.
const ZEROS: u16 = 0xf0;

/// The symbols to write, with one entry per symbol: the symbol in the lowest eight bits, its table
/// in the next two, and its value in the upper six. A longer value is stored in a separate entry
/// after it.
pub(crate) struct Symbols {
    chunks: Vec<Vec<u16>>,
    /// The frequencies of the symbols of the four tables.
    counts: [u32; 4 * 256],
    /// The previous DC coefficient of each component.
    constants: [i16; 3],
    block: [u16; BLOCK_MAX],
}

impl Symbols {
    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new(), counts: [0; 4 * 256], constants: [0; 3], block: [0; BLOCK_MAX] }
    }

    /// Adds the next block of a component, stored column by column.
    #[inline(always)]
    pub(crate) fn push(&mut self, class: Class, component: usize, block: &[[i16; 8]; 8]) {
        let block = block.as_flattened();
        let constant = i32::from(block[0]) - i32::from(std::mem::replace(&mut self.constants[component], block[0]));
        let mut length = 0;
        let mut entry = |symbol: u16, bits: u32, value: u16| {
            self.counts[usize::from(symbol)] += 1;
            self.block[length % BLOCK_MAX] = symbol | value.wrapping_shl(10);
            length += 1;
            if bits > SHORT {
                self.block[(length - 1) % BLOCK_MAX] = symbol;
                self.block[length % BLOCK_MAX] = value;
                length += 1;
            }
        };
        let (bits, value) = magnitude(constant);
        let table = (class as u16) << 9;
        entry(table | bits as u16, bits, value);
        let table = table | 1 << 8;
        let mut rest = in_zigzag(nonzero(block)) & !1;
        let mut next = 1;
        while rest != 0 {
            let place = rest.trailing_zeros();
            rest &= rest - 1;
            let mut zeros = place - next;
            next = place + 1;
            while zeros > 15 {
                entry(table | ZEROS, 0, 0);
                zeros -= 16;
            }
            let (bits, value) = magnitude(i32::from(block[usize::from(PLACES[place as usize])]));
            entry(table | (zeros << 4 | bits) as u16, bits, value);
        }
        if next < 64 {
            entry(table, 0, 0);
        }
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() + BLOCK_MAX <= CHUNK => chunk.extend_from_slice(&self.block[..length]),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.extend_from_slice(&self.block[..length]);
                self.chunks.push(chunk);
            }
        }
    }

    /// Adds the block with the shortest code, for a block outside of the image.
    pub(crate) fn repeat(&mut self, class: Class, component: usize) {
        let mut block = [[0; 8]; 8];
        block[0][0] = self.constants[component];
        self.push(class, component, &block);
    }

    /// The tables for the symbols that were added: DC and AC of luma, then DC and AC of chroma.
    pub(crate) fn tables(&self) -> [Table; 4] {
        let (counts, _) = self.counts.as_chunks::<256>();
        [0, 1, 2, 3].map(|table| {
            let mut counts = counts[table];
            // Ensures that no table is empty.
            counts[0] = counts[0].max(1);
            Table::from_counts(&counts)
        })
    }

    /// Writes all symbols and releases their memory progressively.
    pub(crate) fn write(self, tables: &[Table; 4], file: &mut Vec<u8>) {
        let codes: Vec<Code> = tables.iter().flat_map(Table::codes).collect();
        let codes: &[Code; 4 * 256] = codes.as_slice().try_into().expect("four tables");
        let mut bits = Bits { file, pending: 0, length: 0 };
        for chunk in self.chunks {
            let mut entries = chunk.iter();
            while let Some(&entry) = entries.next() {
                let code = codes[usize::from(entry % (4 * 256))];
                let length = u32::from(entry % 16);
                let value = match length {
                    0..=SHORT => entry >> 10,
                    // `push` stores the value right after its symbol.
                    _ => *entries.next().unwrap_or(&0),
                };
                bits.write(u32::from(code.bits) << length | u32::from(value), u32::from(code.length) + length);
            }
        }
        bits.finish();
    }
}

/// The number of bits of a value, and the bits (T.81, F.1.2.1.1). For a negative value these are
/// the bits of the value minus one.
#[inline(always)]
fn magnitude(value: i32) -> (u32, u16) {
    let bits = 32 - value.unsigned_abs().leading_zeros();
    let below = value + (value >> 31);
    // At most eleven bits are set.
    (bits, (below & ((1 << bits) - 1)) as u16)
}

/// Writes bits to a file (T.81, F.1.2.3).
struct Bits<'a> {
    file: &'a mut Vec<u8>,
    pending: u64,
    length: u32,
}

impl Bits<'_> {
    /// Writes up to 27 bits.
    #[inline(always)]
    fn write(&mut self, bits: u32, length: u32) {
        self.pending = self.pending << length | u64::from(bits);
        self.length += length;
        if self.length >= 32 {
            self.length -= 32;
            self.bytes((self.pending >> self.length) as u32);
        }
    }

    #[inline(always)]
    fn bytes(&mut self, word: u32) {
        // Tests whether any byte is 255, in which case the inverse contains a zero byte.
        let inverse = !word;
        if inverse.wrapping_sub(0x0101_0101) & word & 0x8080_8080 == 0 {
            self.file.extend_from_slice(&word.to_be_bytes());
        } else {
            word.to_be_bytes().into_iter().for_each(|byte| self.byte(byte));
        }
    }

    /// Writes a byte. A byte of 255 is followed by a stuffed zero.
    fn byte(&mut self, byte: u8) {
        self.file.push(byte);
        if byte == 0xff {
            self.file.push(0);
        }
    }

    /// Fills the last byte with ones.
    fn finish(mut self) {
        let fill = (8 - self.length % 8) % 8;
        self.pending = self.pending << fill | ((1 << fill) - 1);
        self.length += fill;
        while self.length > 0 {
            self.length -= 8;
            self.byte((self.pending >> self.length) as u8);
        }
    }
}

/// For each position in zigzag order, the position in column order.
const PLACES: [u8; 64] = {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        places[at] = ZIGZAG[at] % 8 * 8 + ZIGZAG[at] / 8;
        at += 1;
    }
    places
};

/// For each column and each set of positions in it, the same set as a bit mask in zigzag order.
static SETS: [[u64; 256]; 8] = {
    let mut sets = [[0; 256]; 8];
    let mut at = 0;
    while at < 64 {
        let (column, row) = (PLACES[at] as usize / 8, PLACES[at] as usize % 8);
        let mut set = 0;
        while set < 256 {
            if set >> row & 1 == 1 {
                sets[column][set] |= 1 << at;
            }
            set += 1;
        }
        at += 1;
    }
    sets
};

/// Converts a bit mask from column order to zigzag order.
#[inline(always)]
fn in_zigzag(set: u64) -> u64 {
    let columns = set.to_le_bytes();
    SETS.iter().zip(columns).fold(0, |all, (sets, column)| all | sets[usize::from(column)])
}

/// The bit mask of the nonzero coefficients.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn nonzero(block: &[i16]) -> u64 {
    // SAFETY: every x86-64 processor has SSE2.
    unsafe { nonzero_sse2(block) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn nonzero_sse2(block: &[i16]) -> u64 {
    use std::arch::x86_64::*;
    let (halves, _) = block.as_chunks::<16>();
    halves.iter().take(4).enumerate().fold(0, |set, (at, half)| {
        // SAFETY: two unaligned loads of sixteen bytes read a block of thirty-two bytes.
        let (low, high) =
            unsafe { (_mm_loadu_si128(half.as_ptr().cast()), _mm_loadu_si128(half.as_ptr().add(8).cast())) };
        let zero = _mm_cmpeq_epi8(_mm_packs_epi16(low, high), _mm_setzero_si128());
        set | u64::from(!_mm_movemask_epi8(zero) as u16) << (16 * at)
    })
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn nonzero(block: &[i16]) -> u64 {
    block.iter().enumerate().fold(0, |set, (at, value)| set | u64::from(*value != 0) << at)
}
