//! Decoded pixels.

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

/// A picture with 8-bit sRGB samples, interleaved, in rows from top to bottom without padding.
///
/// Its sides are never zero, and the length of its buffer always matches them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    size: Size,
    channels: Channels,
    pixels: Vec<u8>,
}

impl Picture {
    /// Creates a picture from `pixels`. `None` if a side is zero or the length does not match the
    /// size.
    pub fn new(size: Size, channels: Channels, pixels: Vec<u8>) -> Option<Self> {
        let expected = size.pixels().checked_mul(channels.count() as u64)?;
        (size.pixels() > 0 && pixels.len() as u64 == expected).then_some(Self { size, channels, pixels })
    }

    /// Creates a picture from `pixels` that are known to match the size.
    pub(crate) fn made(size: Size, channels: Channels, pixels: Vec<u8>) -> Self {
        debug_assert_eq!(pixels.len() as u64, size.pixels() * channels.count() as u64);
        debug_assert!(size.pixels() > 0);
        Self { size, channels, pixels }
    }

    /// Creates a picture of one color. No side may be 0.
    pub fn filled(size: Size, channels: Channels, color: Color) -> Self {
        let count = size.pixels() as usize;
        let pixels = match channels {
            Channels::Rgb => color.rgb().repeat(count),
            Channels::Rgba => color.rgba().repeat(count),
        };
        Self::made(size, channels, pixels)
    }

    /// The width and height.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The number of columns.
    pub fn width(&self) -> u32 {
        self.size.width
    }

    /// The number of rows.
    pub fn height(&self) -> u32 {
        self.size.height
    }

    pub fn channels(&self) -> Channels {
        self.channels
    }

    /// The samples, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The number of bytes per row.
    pub fn stride(&self) -> usize {
        self.size.width as usize * self.channels.count()
    }

    /// Whether every pixel is completely opaque. This is also true for an alpha channel full of
    /// 255.
    pub fn is_opaque(&self) -> bool {
        match self.channels {
            Channels::Rgb => true,
            // Testing a whole block at once lets the compiler use vector instructions. The loop
            // then ends up to one block late.
            Channels::Rgba => self
                .pixels
                .chunks(4096)
                .all(|block| block.iter().skip(3).step_by(4).fold(255, |all, alpha| all & alpha) == 255),
        }
    }

    /// The pixel in column `x` of row `y` as red, green, blue, alpha; `None` outside.
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 4]> {
        if x >= self.size.width || y >= self.size.height {
            return None;
        }
        let start = y as usize * self.stride() + x as usize * self.channels.count();
        match *self.pixels.get(start..start + self.channels.count())? {
            [r, g, b] => Some([r, g, b, 255]),
            [r, g, b, a] => Some([r, g, b, a]),
            _ => None,
        }
    }

    /// The picture without its alpha channel: each pixel is blended over an opaque `background` in
    /// sRGB.
    ///
    /// Values are rounded to the nearest, so that an opaque pixel keeps its samples exactly.
    pub fn flattened(&self, background: Color) -> Self {
        let over = |sample: u8, below: u8, alpha: u8| {
            let (sample, below, alpha) = (u32::from(sample), u32::from(below), u32::from(alpha));
            ((sample * alpha + below * (255 - alpha) + 127) / 255) as u8
        };
        let pixels = match self.channels {
            Channels::Rgb => self.pixels.clone(),
            Channels::Rgba => {
                let mut flat = Vec::with_capacity(self.pixels.len() / 4 * 3);
                for pixel in self.pixels.chunks_exact(4) {
                    let alpha = pixel[3];
                    flat.extend([
                        over(pixel[0], background.r, alpha),
                        over(pixel[1], background.g, alpha),
                        over(pixel[2], background.b, alpha),
                    ]);
                }
                flat
            }
        };
        Self::made(self.size, Channels::Rgb, pixels)
    }

    /// The picture without its alpha channel, which must be opaque.
    pub(crate) fn into_rgb(self) -> Self {
        debug_assert!(self.is_opaque());
        match self.channels {
            Channels::Rgb => self,
            Channels::Rgba => {
                let pixels = self.pixels.as_chunks::<4>().0.iter().flat_map(|[r, g, b, _]| [*r, *g, *b]).collect();
                Self::made(self.size, Channels::Rgb, pixels)
            }
        }
    }

    /// The picture with an alpha channel.
    pub fn into_rgba(self) -> Self {
        match self.channels {
            Channels::Rgba => self,
            Channels::Rgb => {
                let mut pixels = Vec::with_capacity(self.pixels.len() / 3 * 4);
                for pixel in self.pixels.chunks_exact(3) {
                    pixels.extend([pixel[0], pixel[1], pixel[2], 255]);
                }
                Self::made(self.size, Channels::Rgba, pixels)
            }
        }
    }

    /// Returns the samples without copying them.
    pub(crate) fn into_pixels(self) -> Vec<u8> {
        self.pixels
    }

    /// The samples for changes in place.
    pub(crate) fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.pixels
    }

    /// A copy of the rectangle, which must lie within the picture.
    pub fn cropped(&self, rect: Rect) -> Self {
        let left = rect.x as usize * self.channels.count();
        let width = rect.size.width as usize * self.channels.count();
        let mut pixels = Vec::with_capacity(width * rect.size.height as usize);
        for row in self.pixels.chunks_exact(self.stride()).skip(rect.y as usize).take(rect.size.height as usize) {
            pixels.extend_from_slice(&row[left..left + width]);
        }
        Self::made(rect.size, self.channels, pixels)
    }

    /// Copies `inner`, which must have the same channels, to the picture with its top left pixel at
    /// column `x` of row `y`. The part below the picture is clipped.
    ///
    /// # Panics
    ///
    /// If `inner` extends beyond the right edge.
    pub fn paste(&mut self, inner: &Self, x: u32, y: u32) {
        debug_assert_eq!(self.channels, inner.channels);
        let (stride, inner_stride) = (self.stride(), inner.stride());
        let left = x as usize * self.channels.count();
        let rows = self.pixels.chunks_exact_mut(stride).skip(y as usize);
        for (row, source) in rows.zip(inner.pixels.chunks_exact(inner_stride)) {
            row[left..left + inner_stride].copy_from_slice(source);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_fits_its_buffer_or_is_none() {
        assert!(Picture::new(Size::new(2, 1), Channels::Rgb, vec![0; 6]).is_some());
        assert!(Picture::new(Size::new(2, 1), Channels::Rgb, vec![0; 5]).is_none());
        assert!(Picture::new(Size::new(2, 1), Channels::Rgba, vec![0; 6]).is_none());
        assert!(Picture::new(Size::new(0, 1), Channels::Rgb, vec![]).is_none());
        assert!(Picture::new(Size::new(u32::MAX, u32::MAX), Channels::Rgba, vec![]).is_none());
    }

    #[test]
    fn one_transparent_pixel_anywhere_makes_a_picture_transparent() {
        let size = Size::new(41, 53);
        let opaque = Picture::filled(size, Channels::Rgba, Color::WHITE);
        assert!(opaque.is_opaque());
        for index in [0, 1023, 1024, size.pixels() as usize - 1] {
            let mut pixels = opaque.pixels.clone();
            pixels[index * 4 + 3] = 254;
            assert!(!Picture::made(size, Channels::Rgba, pixels).is_opaque(), "pixel {index}");
        }
    }

    #[test]
    fn flattening_blends_over_the_background() {
        let pixels = vec![200, 100, 0, 255, 200, 100, 0, 0, 255, 255, 255, 128];
        let picture = Picture::new(Size::new(3, 1), Channels::Rgba, pixels).unwrap();
        let flat = picture.flattened(Color { r: 0, g: 0, b: 255, a: 255 });
        assert_eq!(flat.channels(), Channels::Rgb);
        assert_eq!(flat.pixels(), [200, 100, 0, 0, 0, 255, 128, 128, 255]);
    }
}
