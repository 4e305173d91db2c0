//! Reads the format and the size of an image from its first bytes, without decoding it.
//!
//! **Guarantee.** Reading needs a bounded amount of memory whatever the bytes are (at most
//! [`MAX_KEPT_BYTES`]), never panics, and gives the same result whether the bytes arrive at once or
//! one by one. A size within [`MAX_PIXELS`] and [`MAX_SIDE`] is the precondition for every
//! allocation of the decoder, which also reads its sizes here.
//!
//! **Mechanism.** The small parser of each format examines the available bytes, and then either
//! requests more bytes, skips some, or is done. [`HeaderReader`] feeds it from a stream.
//!
//! **Orientation.** Sizes are as displayed. The EXIF block is honored where one pass can reach it:
//! in a JPEG before the frame header, in a PNG before the image data, in a WebP anywhere (its
//! header declares the block, and only then the reader skips the pixels to reach it). A later block
//! is ignored here and by the decoder, so that stored sizes and pixels always agree.

mod gif;
mod jpeg;
mod png;
mod webp;

#[cfg(test)]
mod tests;

use crate::format::Format;
use crate::geometry::Size;
use crate::orientation::Orientation;

pub(crate) use png::CodePoints;

/// The maximum number of pixels of an image: 100 megapixels.
pub const MAX_PIXELS: u64 = 100_000_000;

/// The maximum length of a side of an image in pixels.
pub const MAX_SIDE: u32 = 30_000;

/// The maximum number of bytes that a [`HeaderReader`] keeps: the largest JPEG segment, because an
/// EXIF block must fit.
pub const MAX_KEPT_BYTES: usize = 2 + u16::MAX as usize;

/// The content of an image's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The format according to the magic bytes.
    pub format: Format,
    /// The number of columns as displayed, with the EXIF orientation applied.
    pub width: u32,
    /// The number of rows as displayed, with the EXIF orientation applied.
    pub height: u32,
    /// How the stored image must be transformed for display.
    pub orientation: Orientation,
    /// The color space of a PNG, if it states it by numbers.
    pub(crate) code_points: Option<CodePoints>,
    decoding: Decoding,
}

impl Header {
    /// Checks a stored size against the limits.
    fn new(format: Format, stored: Size, orientation: Orientation, decoding: Decoding) -> Result<Self, HeaderError> {
        check_limits(stored)?;
        let Size { width, height } = orientation.apply_to_size(stored);
        Ok(Self { format, width, height, orientation, code_points: None, decoding })
    }

    /// The width and height as displayed.
    pub fn size(&self) -> Size {
        Size::new(self.width, self.height)
    }

    /// The width and height as stored in the file.
    pub fn stored_size(&self) -> Size {
        self.orientation.apply_to_size(self.size())
    }

    /// An upper estimate of the peak memory for decoding this image at full size, in bytes.
    ///
    /// It counts the pixels, the additional buffers of the codec (coefficients of a progressive
    /// JPEG, 16-bit rows) and the second copy for the transformation to the displayed orientation.
    /// It is meant for admission, not for accounting.
    pub fn decoded_bytes(&self) -> u64 {
        let turning = if self.orientation == Orientation::Normal { 0 } else { 4 };
        self.size().pixels() * (u64::from(self.decoding.pixel_bytes) + u64::from(self.decoding.codec_bytes) + turning)
    }

    /// The part of [`decoded_bytes`](Self::decoded_bytes) that the codec needs however few rows are decoded at once.
    pub fn codec_bytes(&self) -> u64 {
        self.size().pixels() * u64::from(self.decoding.codec_bytes)
    }

    /// The header of an upright image in the usual coding of its format, for estimates before the file is read.
    pub fn assumed(format: Format, size: Size) -> Self {
        let Size { width, height } = size;
        let (orientation, decoding) = (Orientation::Normal, Decoding::usual(format));
        Self { format, width, height, orientation, code_points: None, decoding }
    }
}

/// The memory of a decoder for each pixel of the full size, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decoding {
    /// The pixel, and the copy for its conversion. A JPEG that is decoded at a reduced scale has fewer of them.
    pixel_bytes: u8,
    /// Memory of the codec for the whole image.
    codec_bytes: u8,
}

impl Decoding {
    /// Memory that most files of a format take.
    fn usual(format: Format) -> Self {
        let (pixel_bytes, codec_bytes) = match format {
            Format::Png => (4, 0),
            Format::Jpeg => (3, 0),
            Format::Webp => (4, 4),
            // The palette indices of the frame.
            Format::Gif => (4, 1),
        };
        Self { pixel_bytes, codec_bytes }
    }
}

/// The factor of a reduction that is left at least to resampling. The transform of a JPEG reduces each block by itself, so that
/// fine patterns alias, and the filter of the resampling must remove what did. With a factor of 2, rings that must come out
/// flat spread up to 2.3 times as much as after a decode at full size; with 4, up to 1.3 times.
const REMAINING: u64 = 4;

/// The largest reduction of a JPEG with which both sides are at least [`REMAINING`] times as long as requested: 1, 2, 4 or
/// 8; 1 if there is none.
///
/// Only powers of two are used: libjpeg-turbo has SIMD transforms for these, and the others are
/// slower than full size.
pub(crate) fn reduction(stored: Size, at_least: Size) -> u8 {
    let fits = |side: u32, by: u32, at_least: u32| u64::from(side / by) >= REMAINING * u64::from(at_least);
    let fits = |by: u32| fits(stored.width, by, at_least.width) && fits(stored.height, by, at_least.height);
    [8, 4, 2].into_iter().find(|by| fits(u32::from(*by))).unwrap_or(1)
}

/// An upper estimate of [`Header::decoded_bytes`] for any image with this format and size, in
/// bytes.
pub fn decoded_bytes_max(format: Format, size: Size) -> u64 {
    // The pixels, additional buffers of the most expensive kind, and the transformation: 16-bit
    // interlaced PNG, progressive CMYK JPEG.
    let per_pixel = match format {
        Format::Png => 4 + 4 + 4,
        Format::Jpeg => 7 + 2 * 4 + 4,
        Format::Webp => 8 + 4,
        Format::Gif => 5,
    };
    size.pixels() * per_pixel
}

/// The reason why a header is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The magic bytes are not those of an accepted format.
    #[error("the file is not a PNG, JPEG, WebP or GIF image")]
    UnknownFormat,
    /// The header violates its format.
    #[error("the header of the image is broken")]
    Malformed,
    /// The bytes end before the size is known.
    #[error("the image ends within its header")]
    Truncated,
    /// It has more than [`MAX_PIXELS`] pixels.
    #[error("the image has more than 100 megapixels")]
    TooManyPixels,
    /// A side is longer than [`MAX_SIDE`].
    #[error("a side of the image is longer than 30000 pixels")]
    SideTooLong,
    /// An AVIF or a HEIF needs what is not supported.
    #[error("the image has {0}, which is not supported")]
    UnsupportedAvif(&'static str),
    /// The chunk `cICP` of a PNG states colors that are not converted.
    #[error("the colors of the PNG (cICP) are not supported: {part} {value}")]
    UnsupportedColors {
        /// The part of the chunk: color primaries, transfer function, matrix coefficients, or full range flag.
        part: &'static str,
        /// Its value.
        value: u8,
    },
}

/// The state of a [`HeaderReader`] after a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    NeedMore,
    /// The header is complete; further bytes are ignored.
    Done(Header),
}

/// The next step of a format's parser after it has read the available bytes.
enum Step {
    /// Call again when this many bytes from the current position are available.
    Need(usize),
    /// Advance by this many bytes, available or still to come.
    Skip(u64),
    /// The header is complete.
    Done(Header),
}

enum Parser {
    Sniff,
    Png(png::Parser),
    Jpeg(jpeg::Parser),
    Webp(webp::Parser),
    Gif(gif::Parser),
}

/// Reads a header from a stream, chunk by chunk.
pub struct HeaderReader {
    parser: Parser,
    /// The bytes from the current position onwards, at most `need` of them.
    kept: Vec<u8>,
    need: usize,
    skip: u64,
    outcome: Option<Result<Header, HeaderError>>,
}

impl Default for HeaderReader {
    fn default() -> Self {
        Self::new()
    }
}

impl HeaderReader {
    /// Creates a reader at the start of a file.
    pub fn new() -> Self {
        Self { parser: Parser::Sniff, kept: Vec::new(), need: Format::SNIFF_BYTES, skip: 0, outcome: None }
    }

    /// The format, once the magic bytes have been read.
    pub fn format(&self) -> Option<Format> {
        match self.parser {
            Parser::Sniff => None,
            Parser::Png(_) => Some(Format::Png),
            Parser::Jpeg(_) => Some(Format::Jpeg),
            Parser::Webp(_) => Some(Format::Webp),
            Parser::Gif(_) => Some(Format::Gif),
        }
    }

    /// Adds the next bytes of the file.
    ///
    /// # Errors
    ///
    /// Any [`HeaderError`] except `Truncated`, as soon as it is certain. Further calls return it
    /// again.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Progress, HeaderError> {
        let mut rest = bytes;
        while self.outcome.is_none() {
            let skipped = self.skip.min(rest.len() as u64);
            self.skip -= skipped;
            rest = &rest[skipped as usize..];
            let wanted = if self.skip > 0 { 1 } else { self.need - self.kept.len() };
            if self.skip > 0 || wanted > rest.len() {
                self.kept.extend_from_slice(rest);
                return Ok(Progress::NeedMore);
            }
            let (taken, after) = rest.split_at(wanted);
            self.kept.extend_from_slice(taken);
            rest = after;
            self.step();
        }
        match self.outcome {
            Some(Ok(header)) => Ok(Progress::Done(header)),
            Some(Err(error)) => Err(error),
            None => Ok(Progress::NeedMore),
        }
    }

    /// Ends the file.
    ///
    /// A file that ends after its size but before a later EXIF block or scan is treated as having no
    /// such block: damage after the header is not detected here.
    ///
    /// # Errors
    ///
    /// `Truncated` if the size is not yet known, otherwise the error of [`HeaderReader::push`].
    pub fn finish(self) -> Result<Header, HeaderError> {
        if let Some(outcome) = self.outcome {
            return outcome;
        }
        match self.parser {
            Parser::Sniff if Format::sniff(&self.kept).is_none() => Err(HeaderError::UnknownFormat),
            Parser::Sniff | Parser::Gif(_) => Err(HeaderError::Truncated),
            Parser::Jpeg(parser) => parser.known().ok_or(HeaderError::Truncated),
            Parser::Png(parser) => parser.known().ok_or(HeaderError::Truncated),
            Parser::Webp(parser) => parser.known().ok_or(HeaderError::Truncated),
        }
    }

    /// Passes the requested bytes to the parser.
    fn step(&mut self) {
        let step = match &mut self.parser {
            Parser::Sniff => match Format::sniff(&self.kept) {
                None => Err(HeaderError::UnknownFormat),
                Some(format) => {
                    self.parser = match format {
                        Format::Png => Parser::Png(png::Parser::default()),
                        Format::Jpeg => Parser::Jpeg(jpeg::Parser::default()),
                        Format::Webp => Parser::Webp(webp::Parser::default()),
                        Format::Gif => Parser::Gif(gif::Parser),
                    };
                    return self.step();
                }
            },
            Parser::Png(parser) => parser.step(&self.kept),
            Parser::Jpeg(parser) => parser.step(&self.kept),
            Parser::Webp(parser) => parser.step(&self.kept),
            Parser::Gif(parser) => parser.step(&self.kept),
        };
        match step {
            Ok(Step::Need(count)) => {
                debug_assert!(self.kept.len() < count && count <= MAX_KEPT_BYTES);
                self.need = count;
            }
            Ok(Step::Skip(count)) => {
                let dropped = count.min(self.kept.len() as u64);
                self.kept.drain(..dropped as usize);
                self.skip = count - dropped;
                self.need = self.kept.len();
            }
            Ok(Step::Done(header)) => self.outcome = Some(Ok(header)),
            Err(error) => self.outcome = Some(Err(error)),
        }
    }
}

/// Reads the header of a file in memory, with the same result as a [`HeaderReader`].
///
/// # Errors
///
/// Any [`HeaderError`].
pub fn probe(bytes: &[u8]) -> Result<Header, HeaderError> {
    let mut reader = HeaderReader::new();
    reader.push(bytes)?;
    reader.finish()
}

/// Rejects a size that is empty or above the limits of an input.
pub(crate) fn check_limits(size: Size) -> Result<(), HeaderError> {
    if size.pixels() == 0 {
        Err(HeaderError::Malformed)
    } else if size.width.max(size.height) > MAX_SIDE {
        Err(HeaderError::SideTooLong)
    } else if size.pixels() > MAX_PIXELS {
        Err(HeaderError::TooManyPixels)
    } else {
        Ok(())
    }
}

/// The big-endian 16-bit number at `at`, which must be available.
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The little-endian 16-bit number at `at`, which must be available.
fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The big-endian 32-bit number at `at`, which must be available.
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The little-endian 24-bit number at `at`, which must be available.
fn le24(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], 0])
}

/// The little-endian 32-bit number at `at`, which must be available.
fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
