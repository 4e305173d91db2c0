//! Decodes an image a few rows at a time, so that a caller who needs each row only once does not
//! have to hold the whole image.

use super::jpeg::Rows;
use super::srgb::Conversion;
use super::{DecodeError, decode, decode_stored};
use crate::bitmap::{Bitmap, Channels};
use crate::format::Format;
use crate::geometry::{Rect, Size};
use crate::header::{Header, probe};
use crate::orientation::Orientation;

/// The number of rows that are processed together: as many as the JPEG encoder takes at once. The
/// rows of a typical photo fit the second-level cache.
pub(crate) const BAND: u32 = 16;

/// The number of rows that are transposed together. Each of them touches every page of the result,
/// so smaller bands would repeat most address translations.
const TURNED_BAND: u32 = 128;

/// A rectangle of an upright JPEG, read from top to bottom as sRGB without alpha.
pub(crate) struct Bands<'a> {
    rows: Rows<'a>,
    conversion: Conversion,
    wanted: Size,
    /// The number of decoded columns to the left of the rectangle.
    left: u32,
    /// The number of rows of the rectangle that were read.
    read: u32,
}

impl<'a> Bands<'a> {
    /// Opens a rectangle, which must lie within the image. `None` if the image must be decoded
    /// as a whole, because it has another format or must be transformed for display.
    ///
    /// # Errors
    ///
    /// Any [`DecodeError`].
    pub(crate) fn open(bytes: &'a [u8], header: &Header, wanted: Rect) -> Result<Option<Self>, DecodeError> {
        if Self::can_open(header) { Self::stored(bytes, header.size(), wanted).map(Some) } else { Ok(None) }
    }

    /// Returns `true` if [`open`](Self::open) opens such an image.
    pub(crate) fn can_open(header: &Header) -> bool {
        header.format == Format::Jpeg && header.orientation == Orientation::Normal
    }

    /// A rectangle of a JPEG of size `size` as it is stored.
    pub(super) fn stored(bytes: &'a [u8], size: Size, wanted: Rect) -> Result<Self, DecodeError> {
        if wanted.size == size {
            return Self::reduced(bytes, size, 1);
        }
        let (rows, left) = Rows::part(bytes, size, wanted)?;
        Ok(Self::new(rows, wanted.size, left))
    }

    /// A JPEG of size `size` as it is stored, with each side divided by `reduction`: 1, 2, 4 or 8. A lossless JPEG is not
    /// reduced.
    ///
    /// # Errors
    ///
    /// Any [`DecodeError`].
    pub(crate) fn reduced(bytes: &'a [u8], size: Size, reduction: u8) -> Result<Self, DecodeError> {
        let rows = Rows::whole(bytes, size, reduction)?;
        let wanted = rows.size();
        Ok(Self::new(rows, wanted, 0))
    }

    fn new(rows: Rows<'a>, wanted: Size, left: u32) -> Self {
        let conversion = Conversion::new(rows.icc(), rows.samples());
        Self { rows, conversion, wanted, left, read: 0 }
    }

    /// By how much each side was reduced.
    pub(crate) fn reduction(&self) -> u8 {
        self.rows.reduction()
    }

    /// The size of the rectangle.
    pub(crate) fn size(&self) -> Size {
        self.wanted
    }

    /// The next `count` rows, fewer at the end, and `None` after it. `buffer` is reused, whatever
    /// it contains.
    ///
    /// # Errors
    ///
    /// Any [`DecodeError`].
    pub(crate) fn next(&mut self, count: u32, mut buffer: Vec<u8>) -> Result<Option<Bitmap>, DecodeError> {
        let count = count.min(self.wanted.height - self.read);
        if count == 0 {
            return Ok(None);
        }
        buffer.resize(self.rows.row_bytes() * count as usize, 0);
        self.rows.read(&mut buffer)?;
        self.read += count;
        let band = self.conversion.apply(Size::new(self.rows.size().width, count), buffer);
        if band.width() == self.wanted.width {
            return Ok(Some(band));
        }
        Ok(Some(band.cropped(Rect { x: self.left, y: 0, size: Size::new(self.wanted.width, count) })))
    }

    /// Reads to the end of the file, so that an image that is damaged anywhere is rejected.
    ///
    /// # Errors
    ///
    /// Any [`DecodeError`].
    pub(crate) fn finish(self) -> Result<(), DecodeError> {
        self.rows.finish()
    }

    /// Reads the whole rectangle.
    ///
    /// # Errors
    ///
    /// Any [`DecodeError`].
    pub(super) fn into_image(mut self) -> Result<Bitmap, DecodeError> {
        let mut whole: Vec<u8> = Vec::with_capacity(self.wanted.pixels() as usize * 3);
        let mut buffer = Vec::new();
        while let Some(band) = self.next(BAND, buffer)? {
            whole.extend_from_slice(band.pixels());
            buffer = band.into_pixels();
        }
        let wanted = self.wanted;
        self.finish()?;
        Ok(Bitmap::made(wanted, Channels::Rgb, whole))
    }

    /// Reads the whole rectangle and transforms each band separately, so that only one copy of the
    /// image is in memory.
    fn into_turned(mut self, turn: Orientation) -> Result<Bitmap, DecodeError> {
        let stored = self.wanted;
        let mut turned = vec![0; stored.pixels() as usize * Channels::Rgb.count()];
        let mut buffer = Vec::new();
        let mut first = 0;
        while let Some(band) = self.next(TURNED_BAND, buffer)? {
            turn.place_rows(band.pixels(), first, stored, &mut turned);
            first += band.height();
            buffer = band.into_pixels();
        }
        self.finish()?;
        Ok(Bitmap::made(turn.apply_to_size(stored), Channels::Rgb, turned))
    }
}

/// Decodes a rectangle of an image, in displayed coordinates, which must lie within it. The result
/// is upright and equal to the corresponding part of the completely decoded image.
///
/// For a JPEG, only the rectangle and its surroundings are transformed and held in memory; entropy
/// decoding has no shortcut. Other formats are decoded completely.
///
/// # Errors
///
/// Any [`DecodeError`], also for damage outside of the rectangle.
pub(crate) fn decode_part(bytes: &[u8], rect: Rect) -> Result<Bitmap, DecodeError> {
    let header = probe(bytes)?;
    if rect.size == header.size() {
        return decode(bytes);
    }
    let (size, orientation) = (header.stored_size(), header.orientation);
    let stored = orientation.rect_in_stored(rect, size);
    if header.format == Format::Jpeg {
        return Ok(orientation.apply(Bands::stored(bytes, size, stored)?.into_image()?));
    }
    Ok(orientation.apply(decode_stored(bytes, &header)?.cropped(stored)))
}

/// Decodes an image as displayed and then applies `turn`. A JPEG is transformed while it is
/// decoded.
///
/// # Errors
///
/// Any [`DecodeError`].
pub(crate) fn decode_turned(bytes: &[u8], turn: Orientation) -> Result<Bitmap, DecodeError> {
    let header = probe(bytes)?;
    let turn = header.orientation.then(turn);
    if header.format == Format::Jpeg && turn != Orientation::Normal {
        let size = header.stored_size();
        return Bands::stored(bytes, size, Rect { x: 0, y: 0, size })?.into_turned(turn);
    }
    Ok(turn.apply(decode_stored(bytes, &header)?))
}
