//! The image that an Action reads.

use crate::bitmap::Bitmap;
use crate::color::Color;
use crate::decode::{self, BAND, Bands, DecodeError};
use crate::format::Format;
use crate::geometry::{Rect, Size};
use crate::header::{Header, probe};
use crate::orientation::Orientation;
use crate::pipeline::{Change, Error, Finish};
use crate::resize::{self, Plan};
use crate::sample::Padded;

/// The image that an Action reads. Pixels give the same result as a PNG of them.
#[derive(Debug)]
pub enum Input<'a> {
    /// A file, with its header.
    File(&'a [u8], Header),
    /// The pixels that another Action made.
    Pixels(Bitmap),
}

impl<'a> Input<'a> {
    /// Reads the header of a file.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Header`].
    pub fn file(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(Self::File(bytes, probe(bytes)?))
    }

    /// The displayed size.
    pub fn size(&self) -> Size {
        match self {
            Self::File(_, header) => header.size(),
            Self::Pixels(image) => image.size(),
        }
    }

    /// The format that the output format `auto` follows.
    pub fn format(&self) -> Format {
        match self {
            Self::File(_, header) => header.format,
            Self::Pixels(_) => Format::Png,
        }
    }

    /// The rows of a part of an image, and how to write them, if the result can be written row by row: from an upright JPEG to a
    /// JPEG, with the same number of rows and without alpha.
    pub(crate) fn bands(&self, rows: Option<Finish>, part: Rect) -> Result<Option<(Bands<'a>, Finish)>, Error> {
        match (self, rows) {
            (Self::File(bytes, header), Some(finish)) if finish.is_jpeg(header.format) => {
                Ok(Bands::open(bytes, header, part)?.map(|bands| (bands, finish)))
            }
            _ => Ok(None),
        }
    }

    /// [`decode`](decode::decode()).
    pub(crate) fn decode(self) -> Result<Bitmap, DecodeError> {
        match self {
            Self::File(bytes, _) => decode::decode(bytes),
            Self::Pixels(image) => Ok(image),
        }
    }

    /// [`decode_part`](decode::decode_part).
    pub(crate) fn decode_part(self, part: Rect) -> Result<Bitmap, DecodeError> {
        match self {
            Self::File(bytes, _) => decode::decode_part(bytes, part),
            Self::Pixels(image) if part.size == image.size() => Ok(image),
            Self::Pixels(image) => Ok(image.cropped(part)),
        }
    }

    /// A part of the image in the form from which it is resampled. An upright JPEG is never held in another form.
    pub(crate) fn padded(self, part: Rect) -> Result<Padded, DecodeError> {
        let bands = match &self {
            Self::File(bytes, header) => Bands::open(bytes, header, part)?,
            Self::Pixels(_) => None,
        };
        let Some(mut bands) = bands else { return Ok(Padded::from_bitmap(&self.decode_part(part)?)) };
        let (mut source, mut buffer) = (Padded::new(part.size), Vec::new());
        while let Some(band) = bands.next(BAND, buffer)? {
            source.push(&band);
            buffer = band.into_pixels();
        }
        bands.finish()?;
        Ok(source)
    }

    /// [`decode_turned`](decode::decode_turned).
    pub(crate) fn decode_turned(self, turn: Orientation) -> Result<Bitmap, DecodeError> {
        match self {
            Self::File(bytes, _) => decode::decode_turned(bytes, turn),
            Self::Pixels(image) => Ok(turn.apply(image)),
        }
    }

    /// [`decode_resized`](resize::decode_resized).
    pub(crate) fn decode_resized(self, plan: &Plan, background: Color) -> Result<Bitmap, DecodeError> {
        match self {
            Self::File(bytes, _) => resize::decode_resized(bytes, plan, background),
            Self::Pixels(image) => Ok(resize::planned(&image, plan, background)),
        }
    }
}

impl Change {
    /// The result as the input of the next Action.
    ///
    /// # Errors
    ///
    /// If the result was written row by row, and its file has no header.
    pub fn into_input(self) -> Result<Input<'static>, DecodeError> {
        match self {
            // As in a PNG, an alpha channel that is opaque everywhere is dropped.
            Self::Pixels { image, .. } if image.is_opaque() => Ok(Input::Pixels(image.into_rgb())),
            Self::Pixels { image, .. } => Ok(Input::Pixels(image)),
            Self::Written(output) => Ok(Input::Pixels(decode::decode(&output.bytes)?)),
        }
    }
}
