//! Frames of a video: a camera over a still, layers over a frame, and the planes for an encoder.
//! The crate `embedded` makes videos of them.
//!
//! **Guarantee.** Equal images and numbers give equal bytes on all machines of one architecture.
//! Between frames, nothing is allocated except [`Camera`]'s working rows and the caller's buffers.
//!
//! **Mechanism.** A frame is an opaque image with four channels that is drawn repeatedly. The
//! camera resamples any part of a still, with subpixel precision, directly into it. Layers are
//! blended in integer arithmetic.
//!
//! **Reason.** Everything that touches each pixel of each frame is in this module, where it is
//! compiled with optimizations and tested by formulas. The crate `embedded` decides what a video
//! shows and when.

mod planes;

use fast_image_resize as fir;
use fir::pixels::U8x4;

use crate::bitmap::{Bitmap, Channels};
use crate::color::Color;
use crate::geometry::Size;
use crate::resize::run_resizer;
use crate::wide::wide;

pub use planes::Planes;

/// The full share of an image for [`mix`].
pub const WHOLE: u16 = 256;

/// A part of a still in pixels, with subpixel precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// The left edge.
    pub left: f64,
    /// The top edge.
    pub top: f64,
    /// The width, greater than 0.
    pub width: f64,
    /// The height, greater than 0.
    pub height: f64,
}

impl View {
    /// The whole of a still with this size.
    pub fn whole(size: Size) -> Self {
        Self { left: 0.0, top: 0.0, width: f64::from(size.width), height: f64::from(size.height) }
    }

    /// Limits the view to an image of size `size`. The result is at least one pixel in each
    /// direction.
    fn within(self, size: Size) -> Self {
        let side = |start: f64, length: f64, available: u32| {
            let available = f64::from(available);
            let length = length.clamp(1.0, available);
            (start.clamp(0.0, available - length), length)
        };
        let (left, width) = side(self.left, self.width, size.width);
        let (top, height) = side(self.top, self.height, size.height);
        Self { left, top, width, height }
    }
}

/// Resamples views of stills. Keeps its working memory between frames.
#[derive(Debug, Default)]
pub struct Camera(fir::Resizer);

impl Camera {
    /// Fills `frame` with the part of `still` that `view` shows, limited to the still. Both are
    /// images with four channels, and the still is opaque.
    ///
    /// It uses bicubic convolution (Catmull-Rom), with area averaging where the view has more
    /// pixels than the frame. The result is sharp and free of the halos that a wider kernel
    /// produces around moving edges.
    ///
    /// # Panics
    ///
    /// If one of the two has no alpha channel.
    pub fn shoot(&mut self, still: &Bitmap, view: View, frame: &mut Bitmap) {
        assert!([still.channels(), frame.channels()] == [Channels::Rgba; 2], "frames and stills have four channels");
        let View { left, top, width, height } = view.within(still.size());
        let options = fir::ResizeOptions::new()
            .resize_alg(fir::ResizeAlg::Convolution(fir::FilterType::CatmullRom))
            .crop(left, top, width, height)
            .use_alpha(false);
        let size = frame.size();
        run_resizer::<U8x4>(&mut self.0, still, frame.pixels_mut(), size, &options);
    }
}

/// An opaque frame of one color.
///
/// # Panics
///
/// If `size` has no pixels.
pub fn frame(size: Size, color: Color) -> Bitmap {
    assert!(size.pixels() > 0, "a frame has pixels");
    Bitmap::filled(size, Channels::Rgba, Color { a: 255, ..color })
}

/// A transparent layer.
///
/// # Panics
///
/// If `size` has no pixels.
pub fn layer(size: Size) -> Bitmap {
    assert!(size.pixels() > 0, "a layer has pixels");
    Bitmap::filled(size, Channels::Rgba, Color::TRANSPARENT)
}

/// Blends `share` parts of [`WHOLE`] of `other` into `frame`, as in a dissolve. Both are opaque and
/// of the same size.
///
/// # Panics
///
/// If they differ in size or channels.
pub fn mix(frame: &mut Bitmap, other: &Bitmap, share: u16) {
    assert!(
        frame.size() == other.size() && frame.channels() == other.channels(),
        "both images must have the same size and channels"
    );
    match share.min(WHOLE) {
        0 => {}
        WHOLE => frame.pixels_mut().copy_from_slice(other.pixels()),
        share => blend(frame.pixels_mut(), other.pixels(), share),
    }
}

wide! {
    fn blend(below: &mut [u8], above: &[u8], share: u16) {
        for (below, above) in below.iter_mut().zip(above) {
            *below = ((u16::from(*below) * (WHOLE - share) + u16::from(*above) * share + WHOLE / 2) >> 8) as u8;
        }
    }
}

/// Draws `layer`, with four channels and straight alpha, over the opaque `frame` with its top left
/// corner at column `x` of row `y`. Its alpha is multiplied by `opacity`, 0 to 255. The part
/// outside of the frame is clipped.
///
/// # Panics
///
/// If one of the two has no alpha channel.
pub fn lay(frame: &mut Bitmap, layer: &Bitmap, x: i64, y: i64, opacity: u8) {
    assert!([layer.channels(), frame.channels()] == [Channels::Rgba; 2], "frames and layers have four channels");
    let span = |start: i64, inner: u32, outer: u32| {
        let (inner, outer) = (i64::from(inner), i64::from(outer));
        // The visible range of the layer, and its start in the frame. All values fit a `u32`.
        let from = start.saturating_neg().clamp(0, inner);
        let until = outer.saturating_sub(start).clamp(from, inner);
        (from as usize..until as usize, start.clamp(0, outer) as usize)
    };
    let (columns, left) = span(x, layer.width(), frame.width());
    let (rows, top) = span(y, layer.height(), frame.height());
    let (stride, layer_stride) = (frame.stride(), layer.stride());
    let lines = frame.pixels_mut().chunks_exact_mut(stride).skip(top);
    for (line, above) in lines.zip(layer.pixels().chunks_exact(layer_stride).take(rows.end).skip(rows.start)) {
        let above = &above[columns.start * 4..columns.end * 4];
        lay_over(&mut line[left * 4..left * 4 + above.len()], above, opacity);
    }
}

wide! {
    fn lay_over(below: &mut [u8], above: &[u8], opacity: u8) {
        for (below, above) in below.as_chunks_mut::<4>().0.iter_mut().zip(above.as_chunks::<4>().0) {
            let alpha = u32::from(above[3]) * u32::from(opacity);
            let rest = 255 * 255 - alpha;
            for (below, above) in below[..3].iter_mut().zip(&above[..3]) {
                *below = ((u32::from(*above) * alpha + u32::from(*below) * rest + 255 * 255 / 2) / (255 * 255)) as u8;
            }
        }
    }
}

#[cfg(test)]
mod tests;
