//! How long an Action takes (specification, `estimatedSeconds`: guidance, at least 1).
//!
//! **Formula.** Milliseconds of one processor: [`READ_MS`] for each megapixel that is read, [`WRITE_MS`] for each that is
//! written, and what the Action itself takes for each that it makes; in seconds, rounded up.
//!
//! **Source.** `shared/raster/examples/measure.rs` and `tests/bench --only images`, of PNG, the costliest format (a JPEG takes
//! a fifth), rounded up: a processor in a data centre shares its memory with others. Waiting for a free worker is not in it.

/// Decoding a PNG.
const READ_MS: u64 = 12;

/// Encoding a PNG.
const WRITE_MS: u64 = 50;

/// The picture that the catalogue speaks of: twelve megapixels in and out, as a telephone takes it.
const TYPICAL_PIXELS: u64 = 12_000_000;

/// What an Action takes beside reading and writing, in milliseconds for each megapixel of its result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost(u64);

impl Cost {
    /// Rows are copied.
    pub(super) const COPY: Self = Self(1);
    /// Pixels are mixed, recoloured or drawn over.
    pub(super) const MIX: Self = Self(8);
    /// Pixels are resampled, each from 6 × 6 others.
    pub(super) const RESAMPLE: Self = Self(12);

    /// Seconds for so many pixels read, of all inputs, and written.
    pub(super) fn seconds(self, read: u64, written: u64) -> i32 {
        let per_million = read.saturating_mul(READ_MS).saturating_add(written.saturating_mul(WRITE_MS + self.0));
        i32::try_from(per_million.div_ceil(1_000_000_000)).unwrap_or(i32::MAX).max(1)
    }

    /// Seconds for a picture that the catalogue speaks of.
    pub(super) fn typical_seconds(self, inputs: usize) -> i32 {
        // One or two.
        let read = TYPICAL_PIXELS * inputs as u64;
        self.seconds(read, TYPICAL_PIXELS)
    }
}
