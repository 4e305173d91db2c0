//! Resamples an image whose rows are read from top to bottom and never held all at once.
//!
//! **Mechanism.** The convolution changes the height first. The rows of the result are computed a few at a time from a window of
//! the source: the rows that they cover and those that the kernel reads around them. The width is changed at the end, because the
//! library computes the weights of all columns in each call. The result equals that of the image as a whole.

use fast_image_resize as fir;

use super::convolve;
use crate::bitmap::{Bitmap, Channels};
use crate::decode::{BAND, Bands, DecodeError};
use crate::geometry::Size;

/// The number of rows of the result that are computed together.
pub(super) const STEP: u32 = 16;

/// The radius of Lanczos-3 in pixels of the result.
const RADIUS: f64 = 3.0;

/// Upper bound of the rows of a source in the window, if `from` of its rows become `to`, which are not more.
pub(super) fn window_rows(from: u32, to: u32) -> u32 {
    let scale = from.div_ceil(to.max(1));
    from.min((STEP + 2 * RADIUS as u32) * scale + BAND + 2)
}

/// A part of the image, scaled to `size`, which is not taller.
///
/// # Errors
///
/// Any [`DecodeError`].
pub(super) fn resample(bands: &mut Bands, part: fir::CropBox, size: Size) -> Result<Bitmap, DecodeError> {
    let source = bands.size();
    let row = source.width as usize * Channels::Rgb.count();
    let scale = part.height / f64::from(size.height);
    // One more row on each side for what is rounded.
    let around = RADIUS * scale.max(1.0) + 1.0;
    let mut crossed = Vec::with_capacity(row * size.height as usize);
    // The rows of the source from `from` to `to`.
    let mut window = Vec::new();
    let (mut from, mut to) = (0, 0);
    let mut buffer = Vec::new();
    for first in (0..size.height).step_by(STEP as usize) {
        let last = size.height.min(first + STEP);
        let (top, bottom) = (part.top + scale * f64::from(first), part.top + scale * f64::from(last));
        // Casts of numbers below zero give zero.
        let (start, end) = ((top - around) as u32, ((bottom + around).ceil() as u32).min(source.height));
        loop {
            let passed = start.min(to) - from;
            window.drain(..passed as usize * row);
            from += passed;
            if to >= end {
                break;
            }
            if let Some(band) = bands.next(BAND, std::mem::take(&mut buffer))? {
                window.extend_from_slice(band.pixels());
                to += band.height();
                buffer = band.into_pixels();
            }
        }
        let rows = Bitmap::made(Size::new(source.width, to - from), Channels::Rgb, window);
        let covered = fir::CropBox {
            left: 0.0,
            top: top - f64::from(from),
            width: source.width.into(),
            height: (bottom - top).min(f64::from(to) - top),
        };
        crossed.extend_from_slice(convolve(&rows, covered, Size::new(source.width, last - first)).pixels());
        window = rows.into_pixels();
    }
    let crossed = Bitmap::made(Size::new(source.width, size.height), Channels::Rgb, crossed);
    let columns = fir::CropBox { top: 0.0, height: size.height.into(), ..part };
    Ok(convolve(&crossed, columns, size))
}
