//! Format and size of a picture out of its first bytes, without decoding it.
//!
//! **Guarantee.** Reading takes bounded memory whatever the bytes say (at most [`MAX_KEPT_BYTES`]), never panics,
//! and answers the same whether the bytes come at once or one by one. A size within [`MAX_PIXELS`] and
//! [`MAX_SIDE`] is the precondition of every allocation of the decoder, which reads its sizes here, too.
//!
//! **Mechanism.** One small parser a format says after each look at the bytes in hand what it wants next: more of
//! them, to pass over some unseen, or nothing because it is done. [`HeaderReader`] feeds it from a stream.
//!
//! **Orientation.** Sizes are as displayed. The EXIF block is honoured where it can be met in one pass: in a JPEG
//! before the frame header, in a PNG before the image data, in a WebP anywhere (its header announces the block,
//! and only then the reader goes on to it, past the pixels). One that comes later is ignored, here and by the
//! decoder alike, so that stored sizes and pixels always agree.

mod gif;
mod jpeg;
mod png;
mod webp;

#[cfg(test)]
mod tests;

use crate::format::Format;
use crate::geometry::Size;
use crate::orientation::Orientation;

/// The most pixels a picture may have: 100 megapixels (decisions 6.1).
pub const MAX_PIXELS: u64 = 100_000_000;

/// The longest side a picture may have (decisions 6.1).
pub const MAX_SIDE: u32 = 30_000;

/// The most bytes a [`HeaderReader`] ever keeps: the largest JPEG segment, where an EXIF block must fit in.
pub const MAX_KEPT_BYTES: usize = 2 + u16::MAX as usize;

/// What the header of a picture says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The format, by the magic bytes.
    pub format: Format,
    /// Columns as displayed, EXIF orientation applied.
    pub width: u32,
    /// Rows as displayed, EXIF orientation applied.
    pub height: u32,
    /// How the stored picture is turned for display.
    pub orientation: Orientation,
    decode_bytes_per_pixel: u8,
}

impl Header {
    /// Checks a stored size against the limits and makes it a header.
    fn new(
        format: Format,
        stored: Size,
        orientation: Orientation,
        decode_bytes_per_pixel: u8,
    ) -> Result<Self, HeaderError> {
        check_limits(stored)?;
        let Size { width, height } = orientation.apply_to_size(stored);
        Ok(Self { format, width, height, orientation, decode_bytes_per_pixel })
    }

    /// Width and height as displayed.
    pub fn size(&self) -> Size {
        Size::new(self.width, self.height)
    }

    /// Width and height as stored in the file.
    pub fn stored_size(&self) -> Size {
        self.orientation.apply_to_size(self.size())
    }

    /// An upper estimate, in bytes, of the memory that decoding this picture at full size holds at its peak.
    ///
    /// It counts the pixels, what the codec keeps beside them (coefficients of a progressive JPEG, 16-bit rows)
    /// and the second copy that turning takes; it is meant for admission, not for accounting.
    pub fn decoded_bytes(&self) -> u64 {
        let turning = if self.orientation == Orientation::Normal { 0 } else { 4 };
        self.size().pixels() * (u64::from(self.decode_bytes_per_pixel) + turning)
    }
}

/// An upper estimate, in bytes, of [`Header::decoded_bytes`] of any picture of this format and size: for who knows no
/// more of it.
pub fn decoded_bytes_max(format: Format, size: Size) -> u64 {
    // Pixels, what the costliest kind keeps beside them, and turning: 16-bit interlaced PNG, progressive CMYK JPEG.
    let per_pixel = match format {
        Format::Png => 4 + 4 + 4,
        Format::Jpeg => 7 + 2 * 4 + 4,
        Format::Webp => 8 + 4,
        Format::Gif => 5,
    };
    size.pixels() * per_pixel
}

/// Why a header cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The magic bytes are of no accepted format.
    #[error("the file is not a PNG, JPEG, WebP or GIF picture")]
    UnknownFormat,
    /// The header contradicts its format.
    #[error("the header of the picture is broken")]
    Malformed,
    /// The bytes end before the size is known.
    #[error("the picture ends within its header")]
    Truncated,
    /// There are more than [`MAX_PIXELS`] pixels.
    #[error("the picture has more than 100 megapixels")]
    TooManyPixels,
    /// A side is longer than [`MAX_SIDE`].
    #[error("a side of the picture is longer than 30000 pixels")]
    SideTooLong,
}

/// What a [`HeaderReader`] knows after a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    NeedMore,
    /// The header is complete; further bytes are ignored.
    Done(Header),
}

/// What a format's parser wants after it looked at the bytes in hand.
enum Step {
    /// To look again when this many bytes from the current position on are in hand.
    Need(usize),
    /// To go on this many bytes further, be they in hand or still to come.
    Skip(u64),
    /// Nothing: the header is complete.
    Done(Header),
}

enum Parser {
    Sniff,
    Png(png::Parser),
    Jpeg(jpeg::Parser),
    Webp(webp::Parser),
    Gif(gif::Parser),
}

/// Reads a header out of a stream, chunk by chunk.
pub struct HeaderReader {
    parser: Parser,
    /// Bytes from the current position on; at most `need` of them.
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
    /// A reader at the start of a file.
    pub fn new() -> Self {
        Self { parser: Parser::Sniff, kept: Vec::new(), need: Format::SNIFF_BYTES, skip: 0, outcome: None }
    }

    /// The format, as soon as the magic bytes have been seen.
    pub fn format(&self) -> Option<Format> {
        match self.parser {
            Parser::Sniff => None,
            Parser::Png(_) => Some(Format::Png),
            Parser::Jpeg(_) => Some(Format::Jpeg),
            Parser::Webp(_) => Some(Format::Webp),
            Parser::Gif(_) => Some(Format::Gif),
        }
    }

    /// Takes the next bytes of the file.
    ///
    /// # Errors
    /// Any [`HeaderError`] but `Truncated`, as soon as it is certain; pushing on repeats it.
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
    /// A file that ends after its size was read, but before a later EXIF block, is answered as if it had none:
    /// what is broken further in is not the header's affair (decisions 6.1).
    ///
    /// # Errors
    /// `Truncated` when the size is not known yet, else what [`HeaderReader::push`] found.
    pub fn finish(self) -> Result<Header, HeaderError> {
        if let Some(outcome) = self.outcome {
            return outcome;
        }
        match self.parser {
            Parser::Sniff if Format::sniff(&self.kept).is_none() => Err(HeaderError::UnknownFormat),
            Parser::Sniff | Parser::Jpeg(_) | Parser::Gif(_) => Err(HeaderError::Truncated),
            Parser::Png(parser) => parser.known().ok_or(HeaderError::Truncated),
            Parser::Webp(parser) => parser.known().ok_or(HeaderError::Truncated),
        }
    }

    /// Lets the parser look at the bytes it asked for.
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
                let in_hand = count.min(self.kept.len() as u64);
                self.kept.drain(..in_hand as usize);
                self.skip = count - in_hand;
                self.need = self.kept.len();
            }
            Ok(Step::Done(header)) => self.outcome = Some(Ok(header)),
            Err(error) => self.outcome = Some(Err(error)),
        }
    }
}

/// The header of a file that is wholly in memory; the same answer as a [`HeaderReader`] gives.
///
/// # Errors
/// Any [`HeaderError`].
pub fn probe(bytes: &[u8]) -> Result<Header, HeaderError> {
    let mut reader = HeaderReader::new();
    reader.push(bytes)?;
    reader.finish()
}

/// Refuses a size that is empty or over the limits of an input.
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

/// The big-endian 16-bit number at `at` of bytes that are known to be in hand.
fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The little-endian 16-bit number at `at` of bytes that are known to be in hand.
fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The big-endian 32-bit number at `at` of bytes that are known to be in hand.
fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The little-endian 24-bit number at `at` of bytes that are known to be in hand.
fn le24(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], 0])
}

/// The little-endian 32-bit number at `at` of bytes that are known to be in hand.
fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
