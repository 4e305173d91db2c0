//! Masks of edits, checked as the vendors document them.

use bytes::Bytes;

use super::image::sides;

/// Bytes of a PNG up to its color type.
const HEADER: usize = 26;

/// The form of a mask.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A picture in black and white: white changes.
    White,
    /// A PNG with alpha of less than 4 MB, beside an image that is a PNG as well: what is transparent changes.
    Transparent,
}

/// The width and height of an image and its mask, or what a vendor says of a mask that it refuses.
pub(super) fn judge(image: &[u8], mask: &Bytes, form: Form) -> Result<(u32, u32), &'static str> {
    let is_png = |bytes: &[u8]| bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.len() > HEADER;
    if !is_png(mask) {
        return Err("mask: must be a PNG");
    }
    let has_alpha = matches!(mask[HEADER - 1], 4 | 6);
    match form {
        Form::Transparent if !has_alpha => return Err("mask: must have an alpha channel"),
        Form::Transparent if mask.len() >= 4_000_000 => return Err("mask: must have less than 4 MB"),
        Form::Transparent if !is_png(image) => return Err("mask: must have the format of the image"),
        Form::White if has_alpha => return Err("mask: must be in black and white"),
        _ => {}
    }
    let size = sides(image).ok_or("image: cannot be read")?;
    if sides(mask) == Some(size) { Ok(size) } else { Err("mask: must have the size of the image") }
}
