//! AVIF files (AV1 Image File Format 1.1; HEIF, ISO/IEC 23008-12), which are converted when they arrive
//! (`docs/reference/assets.md#converted-formats`), and what of files in other codecs is read here before a foreign program decodes
//! them.
//!
//! **Guarantee.** Whatever the bytes are, [`probe`] does not panic. [`convert`] may end the process: rav1d panics on some damaged
//! files, behind an interface through which a panic cannot pass. So only decoders call it, for which a file that ends them twice is
//! damaged (`docs/adr/0018-decoders.md`). The sizes that the file declares are checked before anything is allocated
//! for pixels, and a frame of the decoder that differs from them is refused. Items and properties are limited by
//! [`MAX_META_BYTES`], within which all of them must be declared.
//!
//! **Mechanism.** [`probe`] reads the box `meta` from the first bytes of a file: the primary item, its tiles if it is a grid, the item
//! with its alpha channel, their places in the file and their properties. [`convert`] decodes the items with rav1d.

mod frame;
mod meta;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::bitmap::Bitmap;
use crate::color::Color;
use crate::decode::{DecodeError, decode_stored};
use crate::encode::{Encoding, encode};
use crate::format::{Format, OutputFormat};
use crate::geometry::Size;
use crate::header::{self, HeaderError};
use crate::orientation::Orientation;
use crate::pipeline::{Error, Output};

/// Number of leading bytes that [`sniff`] reads at most.
pub const SNIFF_BYTES: usize = 128;

/// The box `meta` must end within this many bytes of the start of a file.
pub const MAX_META_BYTES: usize = 256 * 1024;

/// The JPEG quality of a converted image, which replaces the file that arrived.
const QUALITY: u8 = 92;

/// The kind of a file whose images are items (ISO/IEC 23008-12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// AV1 images.
    Avif,
    /// Images of another codec, usually HEVC.
    Heif,
}

impl Kind {
    /// The kind that a media type names; `None` for any other type.
    pub fn of_media_type(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        let names = [
            ("image/avif", Self::Avif),
            ("image/heic", Self::Heif),
            ("image/heif", Self::Heif),
            ("image/heic-sequence", Self::Heif),
            ("image/heif-sequence", Self::Heif),
        ];
        names.into_iter().find_map(|(name, kind)| essence.eq_ignore_ascii_case(name).then_some(kind))
    }
}

/// The kind by the brands in the first box. [`SNIFF_BYTES`] bytes suffice; later brands are ignored.
pub fn sniff(bytes: &[u8]) -> Option<Kind> {
    const AVIF: [&[u8]; 2] = [b"avif", b"avis"];
    const HEIF: [&[u8]; 12] =
        [b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"heif", b"mif1", b"mif2", b"msf1"];
    if bytes.get(4..8) != Some(b"ftyp") {
        return None;
    }
    let length = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
    let brands = bytes.get(8..length.min(bytes.len()).min(SNIFF_BYTES))?;
    // The second word is the version of the first brand.
    let brands = || brands.chunks_exact(4).enumerate().filter(|(index, _)| *index != 1).map(|(_, brand)| brand);
    if brands().any(|brand| AVIF.contains(&brand)) {
        Some(Kind::Avif)
    } else if brands().any(|brand| HEIF.contains(&brand)) {
        Some(Kind::Heif)
    } else {
        None
    }
}

/// The header of an AVIF file.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// Size as displayed.
    pub size: Size,
    orientation: Orientation,
    /// Size as stored.
    stored: Size,
    /// Tiles in rows; one for an image without a grid.
    color: meta::Tiles,
    alpha: Option<meta::Tiles>,
    is_premultiplied: bool,
    /// Bits of a sample, as declared.
    bits: u8,
    icc: Option<Vec<u8>>,
    code_points: Option<meta::Colors>,
    xmp: Option<meta::Place>,
}

impl Header {
    /// Upper bound in bytes of the memory for the conversion, without the file: planes of the decoder and its tables, pixels, the
    /// copy for the orientation, and the encoded file.
    pub fn memory_bytes(&self) -> u64 {
        const DECODER: u64 = 16 << 20;
        let sample = if self.bits > 8 { 2 } else { 1 };
        let planes = if self.alpha.is_some() { 5 } else { 3 };
        DECODER + self.stored.pixels() * (2 * planes * sample + 4 + 4 + 4)
    }
}

/// Reads the header from the beginning of a file.
///
/// # Errors
///
/// `Truncated` if the box `meta` does not end within `bytes`, otherwise any [`HeaderError`] that is certain.
pub fn probe(bytes: &[u8]) -> Result<Header, HeaderError> {
    meta::read(bytes)
}

/// The header of a file in another codec than AV1.
#[derive(Debug, Clone, PartialEq)]
pub struct HeifHeader {
    /// Size as stored, before it is turned or cropped.
    stored: Size,
    xmp: Option<meta::Place>,
}

impl HeifHeader {
    /// Number of pixels that the image has at most.
    pub fn pixels(&self) -> u64 {
        self.stored.pixels()
    }

    /// Estimate in bytes of the memory for the conversion, without the file: planes and pixels of the foreign program, or its result
    /// with the pixels and the encoded file.
    pub fn memory_bytes(&self) -> u64 {
        const PROGRAM: u64 = 32 << 20;
        PROGRAM + self.pixels() * 16
    }

    /// Upper bound in bytes of a PNG of the image: four samples of 16 bits without compression, and metadata.
    pub fn png_bytes(&self) -> u64 {
        const METADATA: u64 = 16 << 20;
        METADATA + self.pixels() * 8
    }
}

/// Reads the header of a file of any codec from its beginning.
///
/// # Errors
///
/// As [`probe`], but for the codec and its properties.
pub fn probe_heif(bytes: &[u8]) -> Result<HeifHeader, HeaderError> {
    meta::read_heif(bytes)
}

/// The XMP packet of a file, if it has one.
pub fn xmp<'a>(bytes: &'a [u8], header: &Header) -> Option<Cow<'a, [u8]>> {
    header.xmp.as_ref().and_then(|place| place.read(bytes))
}

/// The XMP packet of a file in another codec, if it has one.
pub fn xmp_of_heif<'a>(bytes: &'a [u8], header: &HeifHeader) -> Option<Cow<'a, [u8]>> {
    header.xmp.as_ref().and_then(|place| place.read(bytes))
}

/// Decodes the primary image of a file, as displayed and in sRGB, and encodes it: as JPEG, or as PNG if anything is transparent.
///
/// # Errors
///
/// [`Error::Decode`] if the file is damaged, exceeds the limits or needs what is not supported. Some damaged files abort the process.
pub fn convert(bytes: &[u8]) -> Result<Output, Error> {
    let header = probe(&bytes[..bytes.len().min(MAX_META_BYTES)]).map_err(DecodeError::from)?;
    encoded(&header.orientation.apply(frame::decode(bytes, &header)?))
}

/// Encodes a PNG that a foreign program made of a file in another codec, as [`convert`] does. The pixels are as displayed already:
/// an orientation in the PNG is a copy of the one that was applied.
///
/// # Errors
///
/// [`Error::Decode`] if the file is damaged, is no PNG, or has more than `pixels_max` pixels.
pub fn convert_decoded(png: &[u8], pixels_max: u64) -> Result<Output, Error> {
    let header = header::probe(png).map_err(DecodeError::from)?;
    if header.format != Format::Png {
        return Err(DecodeError::from(HeaderError::UnknownFormat).into());
    }
    if header.stored_size().pixels() > pixels_max {
        return Err(DecodeError::SizeMismatch.into());
    }
    encoded(&decode_stored(png, &header)?)
}

fn encoded(image: &Bitmap) -> Result<Output, Error> {
    let format = if image.is_opaque() { OutputFormat::Jpeg } else { OutputFormat::Png };
    let encoding = Encoding { format, quality: QUALITY, flatten: Color::WHITE };
    Ok(Output { bytes: encode(image, &encoding)?, format, width: image.width(), height: image.height() })
}
