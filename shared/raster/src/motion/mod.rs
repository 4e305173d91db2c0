//! Frames of a moving picture: a camera over a still, layers over a frame, and the planes that an encoder takes
//! (decisions 12.2, `animatic`).
//!
//! **Guarantee.** The same pictures and numbers give the same bytes on every machine of one architecture. Nothing but
//! [`Camera`]'s working rows and what the caller holds is allocated from frame to frame.
//!
//! **Mechanism.** A frame is an opaque picture of four channels that is drawn over and over. The camera resamples any part
//! of a still, in fractions of a pixel, straight into it; layers are blended in whole numbers.
//!
//! **Reason.** Everything that touches each pixel of each frame is here, where it is compiled for speed and tested by
//! formula; what a video shows and when is the video-worker's.

mod planes;

use fast_image_resize as fir;

use crate::color::Color;
use crate::geometry::Size;
use crate::picture::{Channels, Picture};
use crate::wide::wide;

pub use planes::Planes;

/// All of one picture, in the shares that [`mix`] takes.
pub const WHOLE: u16 = 256;

/// A part of a still, in pixels of it and fractions of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// Its left edge.
    pub left: f64,
    /// Its top edge.
    pub top: f64,
    /// Its width, greater than 0.
    pub width: f64,
    /// Its height, greater than 0.
    pub height: f64,
}

impl View {
    /// All of a picture.
    pub fn of(size: Size) -> Self {
        Self { left: 0.0, top: 0.0, width: f64::from(size.width), height: f64::from(size.height) }
    }

    /// The same view, or what of it lies within a picture of `size`: at least a pixel a side.
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

/// Looks at stills. Keeps its working memory from frame to frame.
#[derive(Debug, Default)]
pub struct Camera(fir::Resizer);

impl Camera {
    /// Fills `frame` with the part of `still` that `view` shows, cut to the still where it lies outside of it. Both are
    /// pictures of four channels; the still is opaque.
    ///
    /// By bicubic convolution (Catmull-Rom), area-averaged where the view has more pixels than the frame: sharp, and free of
    /// the halos that a wider kernel draws around moving edges.
    ///
    /// # Panics
    /// When one of the two has no alpha channel.
    pub fn shoot(&mut self, still: &Picture, view: View, frame: &mut Picture) {
        assert!([still.channels(), frame.channels()] == [Channels::Rgba; 2], "frames and stills have four channels");
        let View { left, top, width, height } = view.within(still.size());
        let options = fir::ResizeOptions::new()
            .resize_alg(fir::ResizeAlg::Convolution(fir::FilterType::CatmullRom))
            .crop(left, top, width, height)
            .use_alpha(false);
        let Size { width, height } = frame.size();
        let source = fir::images::ImageRef::new(still.width(), still.height(), still.pixels(), fir::PixelType::U8x4)
            .expect("a picture's buffer fits its size");
        let mut target = fir::images::Image::from_slice_u8(width, height, frame.pixels_mut(), fir::PixelType::U8x4)
            .expect("a picture's buffer fits its size");
        self.0.resize(&source, &mut target, &options).expect("both are of one kind and the view lies within the still");
    }
}

/// An opaque frame of one colour.
///
/// # Panics
/// When `size` has no pixels.
pub fn frame(size: Size, color: Color) -> Picture {
    assert!(size.pixels() > 0, "a frame has pixels");
    Picture::filled(size, Channels::Rgba, Color { a: 255, ..color })
}

/// A layer on which nothing is drawn yet.
///
/// # Panics
/// When `size` has no pixels.
pub fn layer(size: Size) -> Picture {
    assert!(size.pixels() > 0, "a layer has pixels");
    Picture::filled(size, Channels::Rgba, Color::TRANSPARENT)
}

/// Blends `share` parts of [`WHOLE`] of `other` into `frame`, as in a dissolve. Both are opaque and of one size.
///
/// # Panics
/// When they are of two sizes or kinds.
pub fn mix(frame: &mut Picture, other: &Picture, share: u16) {
    assert!(frame.size() == other.size() && frame.channels() == other.channels(), "only alike pictures can be mixed");
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

/// Lays `layer`, of four channels with straight alpha, over the opaque `frame` with its top left corner at column `x` of row
/// `y`, as opaque as it is times `opacity`, 0 to 255. What lies outside is cut off.
///
/// # Panics
/// When one of the two has no alpha channel.
pub fn lay(frame: &mut Picture, layer: &Picture, x: i64, y: i64, opacity: u8) {
    assert!([layer.channels(), frame.channels()] == [Channels::Rgba; 2], "frames and layers have four channels");
    let span = |start: i64, inner: u32, outer: u32| {
        let (inner, outer) = (i64::from(inner), i64::from(outer));
        // From where in the layer to where, and where that begins in the frame: all within a `u32`.
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
