//! Complete jobs in one call.

use crate::bitmap::{Bitmap, Channels};
use crate::color::Color;
use crate::decode::{BAND, Bands, DecodeError};
use crate::encode::{EncodeError, Encoding, encode, jpeg_encoder};
use crate::format::{Format, FormatChoice, OutputFormat};
use crate::geometry::Size;
use crate::header::{Header, probe};
use crate::input::Input;
use crate::resize::{self, Plan, PlanError, Resize};

/// The JPEG quality of renditions, which are for viewing, not for editing.
const RENDITION_QUALITY: u8 = 82;

/// Upper bound of the bytes per pixel of an encoded JPEG, the unused capacity of its buffer included.
const ENCODED_BYTES: u64 = 4;

/// An encoded image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Content of the file.
    pub bytes: Vec<u8>,
    /// Format of the file.
    pub format: OutputFormat,
    /// The number of columns.
    pub width: u32,
    /// The number of rows.
    pub height: u32,
}

impl Output {
    /// The output for an image that was written row by row.
    pub(crate) fn jpeg(encoder: jpeg::Encoder, size: Size) -> Self {
        Self { bytes: encoder.finish(), format: OutputFormat::Jpeg, width: size.width, height: size.height }
    }
}

/// The reason why a job has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The source cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The result would exceed the limits.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The result cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// The cause of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The image is damaged or exceeds the limits of an input. The message may be shown to its
    /// owner.
    Image,
    /// The requested result would exceed the limits of an output. The message may be shown to the
    /// requester.
    Limit,
    /// The service: an encoder failed.
    Internal,
}

impl Error {
    /// The cause of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Decode(_) | Self::Plan(PlanError::EmptySource) => ErrorKind::Image,
            Self::Plan(PlanError::TooManyPixels | PlanError::SideTooLong | PlanError::OutOfBounds)
            | Self::Encode(EncodeError::WebpSideTooLong) => ErrorKind::Limit,
            Self::Encode(EncodeError::Webp { .. } | EncodeError::Png(_)) => ErrorKind::Internal,
        }
    }
}

/// The Action `resize`: decodes, resizes and encodes in the format of `choice`.
///
/// `quality`, 1 to 100, applies to JPEG and WebP.
///
/// # Errors
///
/// Any [`Error`]. A result above the limits is rejected before the source is decoded.
pub fn transform_resize(bytes: &[u8], resize: &Resize, choice: FormatChoice, quality: u8) -> Result<Output, Error> {
    Finish { choice, quality }.transform(bytes, |image, _| resize::change(image, resize))
}

/// The result of an Action.
#[derive(Debug)]
pub enum Change {
    /// Its pixels.
    Pixels {
        image: Bitmap,
        /// The background of the Action, on which a JPEG of a transparent result is flattened.
        background: Color,
    },
    /// Its file, which was written row by row.
    Written(Output),
}

/// The parameters of the output file, which all Actions have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finish {
    /// The parameter `format`.
    pub choice: FormatChoice,
    /// The parameter `quality` of JPEG and WebP, 1 to 100.
    pub quality: u8,
}

impl Finish {
    /// Changes a file and encodes the result. `change` may write the result row by row if it is given how.
    pub(crate) fn transform<'a>(
        self,
        bytes: &'a [u8],
        change: impl FnOnce(Input<'a>, Option<Self>) -> Result<Change, Error>,
    ) -> Result<Output, Error> {
        let image = Input::file(bytes)?;
        let source = image.format();
        self.encode(change(image, Some(self))?, source)
    }

    /// The file of a result of an Action that read an image of the format `source`.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`].
    pub fn encode(self, change: Change, source: Format) -> Result<Output, Error> {
        match change {
            Change::Pixels { image, background } => self.write(&image, source, background),
            Change::Written(output) => Ok(output),
        }
    }

    /// Upper bound in bytes of the memory for a result of size `output` that is written row by row; `None` if it is not. Counts what
    /// the decoder keeps, some rows, and the encoded file.
    pub fn stream_bytes(self, source: &Header, output: Size) -> Option<u64> {
        /// Samples as decoded, converted and cropped, and those that decoder and encoder hold.
        const ROW_BYTES: u64 = 16;
        let rows = u64::from(BAND) * u64::from(source.size().width) * ROW_BYTES;
        (self.is_jpeg(source.format) && Bands::can_open(source))
            .then(|| source.codec_bytes() + rows + ENCODED_BYTES * output.pixels())
    }

    /// Returns `true` if a result without alpha is written as a JPEG when the first input has the format `source`.
    pub(crate) fn is_jpeg(self, source: Format) -> bool {
        OutputFormat::resolve(self.choice, source, false) == OutputFormat::Jpeg
    }

    /// Writes rows while they are decoded. `change` is called for each band with the number of its
    /// first row. The whole image is never in memory.
    pub(crate) fn stream(self, mut bands: Bands, mut change: impl FnMut(&mut Bitmap, u32)) -> Result<Change, Error> {
        let size = bands.size();
        let mut encoder = jpeg_encoder(size, Channels::Rgb, self.quality);
        let (mut first, mut buffer) = (0, Vec::new());
        while let Some(mut band) = bands.next(BAND, buffer)? {
            change(&mut band, first);
            encoder.write(band.pixels());
            first += band.height();
            buffer = band.into_pixels();
        }
        bands.finish()?;
        Ok(Change::Written(Output::jpeg(encoder, size)))
    }

    /// Encodes the result of an Action whose first input has the format `source`. For a JPEG, it is
    /// flattened on `background` if that is opaque, otherwise on white.
    fn write(self, image: &Bitmap, source: Format, background: Color) -> Result<Output, Error> {
        let format = OutputFormat::resolve(self.choice, source, !image.is_opaque());
        let encoding = Encoding { format, quality: self.quality, flatten: background };
        Ok(Output { bytes: encode(image, &encoding)?, format, width: image.width(), height: image.height() })
    }
}

/// A rendition no wider than `width`: JPEG, or PNG if anything is transparent; never enlarged
/// (`docs/reference/assets.md#renditions`).
///
/// The limits of results do not apply: every image that can be uploaded has renditions.
///
/// # Errors
///
/// Any [`Error`] except `Plan`.
pub fn rendition(bytes: &[u8], width: u32) -> Result<Output, Error> {
    let header = probe(bytes).map_err(DecodeError::from)?;
    let plan = Plan::whole(rendition_size(header.size(), width));
    let image = resize::decode_resized(bytes, &plan, Color::TRANSPARENT)?;
    let format = if image.is_opaque() { OutputFormat::Jpeg } else { OutputFormat::Png };
    let encoding = Encoding { format, quality: RENDITION_QUALITY, flatten: Color::WHITE };
    Ok(Output { bytes: encode(&image, &encoding)?, format, width: image.width(), height: image.height() })
}

/// Upper bound in bytes of the memory for a [`rendition`] of an image with this header, without the file.
pub fn rendition_bytes(header: &Header, width: u32) -> u64 {
    resize::memory_bytes(header, &Plan::whole(rendition_size(header.size(), width)))
}

/// The size of a rendition. The width is at most `width`; the height follows the aspect ratio,
/// rounded half up and at least 1.
fn rendition_size(source: Size, width: u32) -> Size {
    let width = width.max(1);
    if source.width <= width {
        return source;
    }
    let (height, of) = (u64::from(source.height) * u64::from(width), u64::from(source.width));
    // Less than the source's own height, so it fits a `u32`.
    Size::new(width, ((2 * height + of) / (2 * of)).max(1) as u32)
}

#[cfg(test)]
mod tests;
