//! Whole jobs in one call, from bytes to bytes.

use crate::color::Color;
use crate::decode::{BAND, Bands, DecodeError, DecodeOptions, decode};
use crate::encode::{EncodeError, Encoding, JpegWriter, encode};
use crate::format::{Format, FormatChoice, OutputFormat};
use crate::geometry::{Rect, Size};
use crate::header::{Header, probe};
use crate::picture::{Channels, Picture};
use crate::resize::{self, Plan, PlanError, Resize};

/// The JPEG quality of renditions: for looking at, not for working on.
const RENDITION_QUALITY: u8 = 82;

/// A written picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The file.
    pub bytes: Vec<u8>,
    /// Its format.
    pub format: OutputFormat,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Output {
    /// What was written row by row.
    pub(crate) fn jpeg(writer: JpegWriter, size: Size) -> Self {
        Self { bytes: writer.finish(), format: OutputFormat::Jpeg, width: size.width, height: size.height }
    }
}

/// Why a job gave no picture.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The source cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// One of several references cannot be decoded.
    #[error("reference {number} cannot be read")]
    Reference {
        /// Which one, counted from 1.
        number: usize,
        /// Why.
        source: DecodeError,
    },
    /// The result would be over the limits.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The result cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// Whose fault an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The picture's: it is broken, or over the limits of an input. The message is fit for its owner.
    Picture,
    /// The request's: the result would be over the limits of an output. The message is fit for its owner.
    Limit,
    /// Ours: an encoder failed.
    Internal,
}

impl Error {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Decode(_) | Self::Reference { .. } | Self::Plan(PlanError::EmptySource) => Fault::Picture,
            Self::Plan(PlanError::TooManyPixels | PlanError::SideTooLong | PlanError::OutOfPicture)
            | Self::Encode(EncodeError::WebpSideTooLong) => Fault::Limit,
            Self::Encode(EncodeError::Webp { .. } | EncodeError::Png(_)) => Fault::Internal,
        }
    }
}

/// The Action `resize`: decodes, resizes and writes in the format that `choice` comes to (decisions 8.1).
///
/// `quality`, 1 to 100, is of JPEG and WebP.
///
/// # Errors
/// Any [`Error`]; a result over the limits is refused before the source is decoded.
pub fn transform_resize(bytes: &[u8], resize: &Resize, choice: FormatChoice, quality: u8) -> Result<Output, Error> {
    let header = probe(bytes).map_err(DecodeError::from)?;
    let plan = resize::plan(header.size(), resize)?;
    let decoded = decode(bytes, DecodeOptions { at_least: Some(plan.scaled()) })?;
    let picture = resize::apply(&decoded, &plan, resize.background);
    drop(decoded);
    Finish { choice, quality }.write(&picture, header.format, resize.background)
}

/// What every Action is asked about its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finish {
    /// `format`.
    pub choice: FormatChoice,
    /// `quality`, 1 to 100, of JPEG and WebP.
    pub quality: u8,
}

impl Finish {
    /// The rows of a part of a picture, where the result, of as many rows without alpha, can be written as they come: from
    /// an upright JPEG to a JPEG.
    pub(crate) fn bands<'a>(self, bytes: &'a [u8], header: &Header, part: Rect) -> Result<Option<Bands<'a>>, Error> {
        if self.is_jpeg(header.format) { Ok(Bands::open(bytes, header, part)?) } else { Ok(None) }
    }

    /// Whether a result without alpha becomes a JPEG, when the first input came as `source`.
    pub(crate) fn is_jpeg(self, source: Format) -> bool {
        OutputFormat::resolve(self.choice, source, false) == OutputFormat::Jpeg
    }

    /// Writes rows as they come, each band after `change`, which is told the first row's number. The picture is never held
    /// whole.
    pub(crate) fn stream(self, mut bands: Bands, mut change: impl FnMut(&mut Picture, u32)) -> Result<Output, Error> {
        let size = bands.size();
        let mut writer = JpegWriter::new(size, Channels::Rgb, self.quality);
        let (mut first, mut buffer) = (0, Vec::new());
        while let Some(mut band) = bands.next(BAND, buffer)? {
            change(&mut band, first);
            writer.write(band.pixels());
            first += band.height();
            buffer = band.into_pixels();
        }
        bands.finish()?;
        Ok(Output::jpeg(writer, size))
    }

    /// Writes the result of an Action whose first input came as `source`; a JPEG is flattened on `background` when that
    /// is opaque, else on white (decisions 8.1).
    pub(crate) fn write(self, picture: &Picture, source: Format, background: Color) -> Result<Output, Error> {
        let format = OutputFormat::resolve(self.choice, source, !picture.is_opaque());
        let encoding = Encoding { format, quality: self.quality, flatten: background };
        Ok(Output { bytes: encode(picture, &encoding)?, format, width: picture.width(), height: picture.height() })
    }
}

/// A rendition no wider than `width`: JPEG, or PNG where something is transparent; never enlarged (decisions 6.4).
///
/// The limits of results do not apply: whatever may be uploaded can be looked at.
///
/// # Errors
/// Any [`Error`] but a `Plan`.
pub fn rendition(bytes: &[u8], width: u32) -> Result<Output, Error> {
    let header = probe(bytes).map_err(DecodeError::from)?;
    let plan = Plan::whole(rendition_size(header.size(), width));
    let decoded = decode(bytes, DecodeOptions { at_least: Some(plan.scaled()) })?;
    let picture = resize::apply(&decoded, &plan, Color::TRANSPARENT);
    drop(decoded);
    let format = if picture.is_opaque() { OutputFormat::Jpeg } else { OutputFormat::Png };
    let encoding = Encoding { format, quality: RENDITION_QUALITY, flatten: Color::WHITE };
    Ok(Output { bytes: encode(&picture, &encoding)?, format, width: picture.width(), height: picture.height() })
}

/// The size of a rendition: the width at most `width`, the height in ratio, rounded half up, at least 1.
fn rendition_size(source: Size, width: u32) -> Size {
    let width = width.max(1);
    if source.width <= width {
        return source;
    }
    let (height, of) = (u64::from(source.height) * u64::from(width), u64::from(source.width));
    // Less than the source's own height, which is a `u32`.
    Size::new(width, ((2 * height + of) / (2 * of)).max(1) as u32)
}

#[cfg(test)]
mod tests;
