//! Estimated duration of an Action (`estimatedSeconds`): guidance, at least 1 second.
//!
//! **Formula.** Milliseconds of one processor: [`READ_MS`] for each megapixel of the files read, [`WRITE_MS`] for each megapixel of
//! the file written, and the own cost of each Action for each megapixel of its result; in seconds, rounded up.
//!
//! **Source.** `shared/raster/examples/measure.rs` and `tests/bench --only images`, measured with PNG, the slowest
//! format (a JPEG takes a fifth), and rounded up because processors of a data center share memory bandwidth. The time
//! that a job waits for a worker is not included.

/// Decoding a PNG, in milliseconds for each megapixel.
const READ_MS: u64 = 12;

/// Encoding a PNG, in milliseconds for each megapixel.
const WRITE_MS: u64 = 50;

/// Image size of the estimates in the list of Actions: twelve megapixels, the size of a telephone camera's image.
const TYPICAL_PIXELS: u64 = 12_000_000;

/// Cost of an Action without decoding and encoding, in milliseconds for each megapixel of its result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost(u64);

impl Cost {
    /// Rows are copied.
    pub(super) const COPY: Self = Self(1);
    /// Pixels are blended, recolored or drawn over.
    pub(super) const MIX: Self = Self(8);
    /// Pixels are resampled, each from 6 × 6 source pixels.
    pub(super) const RESAMPLE: Self = Self(12);

    /// Seconds for the pixels read, of all inputs together, and the pixels written.
    pub(super) fn seconds(self, read: u64, written: u64) -> i32 {
        seconds(read, &[(self, written)])
    }

    /// Seconds for inputs and result of [`TYPICAL_PIXELS`].
    pub(super) fn typical_seconds(self, inputs: usize) -> i32 {
        // There are at most two inputs.
        let read = TYPICAL_PIXELS * inputs as u64;
        self.seconds(read, TYPICAL_PIXELS)
    }
}

/// Seconds of Actions one after the other, each with the pixels of its result, for the pixels read of all files together. The last
/// result is written.
pub(super) fn seconds(read: u64, steps: &[(Cost, u64)]) -> i32 {
    let written = steps.last().map_or(0, |(_, pixels)| *pixels);
    let files = read.saturating_mul(READ_MS).saturating_add(written.saturating_mul(WRITE_MS));
    let per_million = steps.iter().fold(files, |sum, (cost, pixels)| sum.saturating_add(pixels.saturating_mul(cost.0)));
    i32::try_from(per_million.div_ceil(1_000_000_000)).unwrap_or(i32::MAX).max(1)
}
