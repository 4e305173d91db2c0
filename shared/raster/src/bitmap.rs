//! Decoded pixels.

use image::buffer::ConvertBuffer;
use image::{Pixel, Rgb, RgbImage, Rgba, RgbaImage};

use crate::color::Color;
use crate::geometry::{Rect, Size};

/// The channels of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channels {
    /// Red, green and blue, without alpha.
    Rgb,
    /// Red, green, blue and straight alpha.
    Rgba,
}

impl Channels {
    /// The number of bytes per pixel.
    pub const fn count(self) -> usize {
        match self {
            Self::Rgb => 3,
            Self::Rgba => 4,
        }
    }
}

/// A bitmap with 8-bit sRGB samples, interleaved, in rows from top to bottom without padding.
///
/// Its sides are never zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bitmap {
    /// Without alpha.
    Rgb(RgbImage),
    /// With straight alpha.
    Rgba(RgbaImage),
}

/// Evaluates an expression that is the same for both kinds of bitmaps.
macro_rules! of_either {
    ($bitmap:expr, $image:ident => $value:expr) => {
        match $bitmap {
            Bitmap::Rgb($image) => $value,
            Bitmap::Rgba($image) => $value,
        }
    };
}

impl Bitmap {
    /// Creates a bitmap from `pixels`. `None` if a side is zero or the length does not match the
    /// size.
    pub fn new(size: Size, channels: Channels, pixels: Vec<u8>) -> Option<Self> {
        let expected = size.pixels().checked_mul(channels.count() as u64)?;
        (size.pixels() > 0 && pixels.len() as u64 == expected).then(|| Self::made(size, channels, pixels))
    }

    /// Creates a bitmap from `pixels` that are known to match the size.
    pub(crate) fn made(size: Size, channels: Channels, pixels: Vec<u8>) -> Self {
        debug_assert_eq!(pixels.len() as u64, size.pixels() * channels.count() as u64);
        debug_assert!(size.pixels() > 0);
        let Size { width, height } = size;
        match channels {
            Channels::Rgb => RgbImage::from_raw(width, height, pixels).map(Self::Rgb),
            Channels::Rgba => RgbaImage::from_raw(width, height, pixels).map(Self::Rgba),
        }
        .expect("the samples match the size")
    }

    /// Creates a bitmap of one color. No side may be 0.
    pub fn filled(size: Size, channels: Channels, color: Color) -> Self {
        debug_assert!(size.pixels() > 0);
        match channels {
            Channels::Rgb => Self::Rgb(RgbImage::from_pixel(size.width, size.height, Rgb(color.rgb()))),
            Channels::Rgba => Self::Rgba(RgbaImage::from_pixel(size.width, size.height, Rgba(color.rgba()))),
        }
    }

    /// The width and height.
    pub fn size(&self) -> Size {
        Size::new(self.width(), self.height())
    }

    /// The number of columns.
    pub fn width(&self) -> u32 {
        of_either!(self, image => image.width())
    }

    /// The number of rows.
    pub fn height(&self) -> u32 {
        of_either!(self, image => image.height())
    }

    /// The channels of its pixels.
    pub fn channels(&self) -> Channels {
        match self {
            Self::Rgb(_) => Channels::Rgb,
            Self::Rgba(_) => Channels::Rgba,
        }
    }

    /// The samples, row by row.
    pub fn pixels(&self) -> &[u8] {
        of_either!(self, image => image.as_raw())
    }

    /// The number of bytes per row.
    pub fn stride(&self) -> usize {
        self.width() as usize * self.channels().count()
    }

    /// Returns `true` if every pixel is completely opaque, even if there is an alpha channel.
    pub fn is_opaque(&self) -> bool {
        match self {
            Self::Rgb(_) => true,
            // Testing a whole block at once lets the compiler use vector instructions. The loop
            // then ends up to one block late.
            Self::Rgba(image) => image
                .as_raw()
                .chunks(4096)
                .all(|block| block.iter().skip(3).step_by(4).fold(255, |all, alpha| all & alpha) == 255),
        }
    }

    /// The pixel in column `x` of row `y` as red, green, blue, alpha; `None` outside.
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 4]> {
        of_either!(self, image => image.get_pixel_checked(x, y).map(|pixel| pixel.to_rgba().0))
    }

    /// The bitmap without its alpha channel: each pixel is blended over an opaque `background` in
    /// sRGB.
    ///
    /// Values are rounded to the nearest, so that an opaque pixel keeps its samples exactly.
    pub fn flattened(&self, background: Color) -> Self {
        let over = |sample: u8, below: u8, alpha: u8| {
            let (sample, below, alpha) = (u32::from(sample), u32::from(below), u32::from(alpha));
            ((sample * alpha + below * (255 - alpha) + 127) / 255) as u8
        };
        let Self::Rgba(image) = self else { return self.clone() };
        let mut flat = Vec::with_capacity(image.as_raw().len() / 4 * 3);
        for [r, g, b, alpha] in image.as_raw().as_chunks().0 {
            flat.extend([
                over(*r, background.r, *alpha),
                over(*g, background.g, *alpha),
                over(*b, background.b, *alpha),
            ]);
        }
        Self::made(self.size(), Channels::Rgb, flat)
    }

    /// The bitmap without its alpha channel, which must be opaque.
    pub(crate) fn into_rgb(self) -> Self {
        debug_assert!(self.is_opaque());
        match self {
            Self::Rgb(_) => self,
            Self::Rgba(image) => Self::Rgb(image.convert()),
        }
    }

    /// The bitmap with an alpha channel.
    pub fn into_rgba(self) -> Self {
        match self {
            Self::Rgba(_) => self,
            Self::Rgb(image) => Self::Rgba(image.convert()),
        }
    }

    /// Returns the samples without copying them.
    pub(crate) fn into_pixels(self) -> Vec<u8> {
        of_either!(self, image => image.into_raw())
    }

    /// The samples for changes in place.
    pub(crate) fn pixels_mut(&mut self) -> &mut [u8] {
        of_either!(self, image => image.as_mut())
    }

    /// A copy of the rectangle, which must lie within the bitmap.
    pub fn cropped(&self, rect: Rect) -> Self {
        let count = self.channels().count();
        let left = rect.x as usize * count;
        let width = rect.size.width as usize * count;
        let mut pixels = Vec::with_capacity(width * rect.size.height as usize);
        for row in self.pixels().chunks_exact(self.stride()).skip(rect.y as usize).take(rect.size.height as usize) {
            pixels.extend_from_slice(&row[left..left + width]);
        }
        Self::made(rect.size, self.channels(), pixels)
    }

    /// Copies `inner`, which must have the same channels, to the bitmap with its top left pixel at
    /// column `x` of row `y`. The part below the bitmap is clipped.
    ///
    /// # Panics
    ///
    /// If `inner` extends beyond the right edge.
    pub fn paste(&mut self, inner: &Self, x: u32, y: u32) {
        debug_assert_eq!(self.channels(), inner.channels());
        let (stride, inner_stride) = (self.stride(), inner.stride());
        let left = x as usize * self.channels().count();
        let rows = self.pixels_mut().chunks_exact_mut(stride).skip(y as usize);
        for (row, source) in rows.zip(inner.pixels().chunks_exact(inner_stride)) {
            row[left..left + inner_stride].copy_from_slice(source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_fits_its_buffer_or_is_none() {
        assert!(Bitmap::new(Size::new(2, 1), Channels::Rgb, vec![0; 6]).is_some());
        assert!(Bitmap::new(Size::new(2, 1), Channels::Rgb, vec![0; 5]).is_none());
        assert!(Bitmap::new(Size::new(2, 1), Channels::Rgba, vec![0; 6]).is_none());
        assert!(Bitmap::new(Size::new(0, 1), Channels::Rgb, vec![]).is_none());
        assert!(Bitmap::new(Size::new(u32::MAX, u32::MAX), Channels::Rgba, vec![]).is_none());
    }

    #[test]
    fn one_transparent_pixel_anywhere_makes_an_image_transparent() {
        let size = Size::new(41, 53);
        let opaque = Bitmap::filled(size, Channels::Rgba, Color::WHITE);
        assert!(opaque.is_opaque());
        for index in [0, 1023, 1024, size.pixels() as usize - 1] {
            let mut pixels = opaque.pixels().to_vec();
            pixels[index * 4 + 3] = 254;
            assert!(!Bitmap::made(size, Channels::Rgba, pixels).is_opaque(), "pixel {index}");
        }
    }

    #[test]
    fn flattening_blends_over_the_background() {
        let pixels = vec![200, 100, 0, 255, 200, 100, 0, 0, 255, 255, 255, 128];
        let image = Bitmap::new(Size::new(3, 1), Channels::Rgba, pixels).unwrap();
        let flat = image.flattened(Color { r: 0, g: 0, b: 255, a: 255 });
        assert_eq!(flat.channels(), Channels::Rgb);
        assert_eq!(flat.pixels(), [200, 100, 0, 0, 0, 255, 128, 128, 255]);
    }
}
