//! Draws shapes: source-over in sRGB with straight alpha (W3C Compositing and Blending 1, 9.1.4).

use kurbo::PathEl;

use super::coverage::Shape;
use super::layout::Layout;
use super::outline::{Placed, REACH_EM};
use crate::bitmap::{Bitmap, Channels};
use crate::color::Color;

/// The colors with which text is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ink {
    /// The color of the letters. Emoji keep their own colors and use its alpha.
    pub color: Color,
    /// A line along the outlines, drawn below the letters.
    pub stroke: Option<Stroke>,
}

/// A line along the outlines of letters, one half of it inside, with round corners.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    /// The color of the line.
    pub color: Color,
    /// The width in pixels, greater than 0.
    pub width: f64,
}

impl Layout {
    /// Draws the text with the top left corner of its block at `x`, `y` pixels from the top left
    /// corner of `image`. The part outside of the image is clipped.
    ///
    /// Strokes are drawn first, as one shape, then letters, as one shape, then emoji.
    pub fn draw(&self, image: &mut Bitmap, x: f64, y: f64, ink: &Ink) {
        let size = self.style.size;
        let reach = REACH_EM * size + ink.stroke.map_or(0.0, |stroke| stroke.width);
        let near = |at: f64, length: u32| (-reach..f64::from(length) + reach).contains(&at);
        let mut placed = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let left = x + self.indent(line) * size;
            let baseline = y + (index as f64 * self.style.line_height + self.baseline) * size;
            let glyphs = line.glyphs.iter().map(|glyph| Placed {
                glyph,
                x: left + glyph.x * size,
                y: baseline - glyph.y * size,
                size,
            });
            placed.extend(glyphs.filter(|glyph| near(glyph.x, image.width()) && near(glyph.y, image.height())));
        }
        if let Some(stroke) = ink.stroke {
            let mut outlines = Shape::default();
            placed.iter().for_each(|glyph| glyph.stroke(stroke.width, &mut outlines));
            fill(image, &outlines, stroke.color);
        }
        let mut letters = Shape::default();
        let mut in_color = Vec::new();
        for glyph in &placed {
            match glyph.layers() {
                layers if layers.is_empty() => glyph.fill(&mut letters),
                layers => in_color.push((glyph, layers)),
            }
        }
        fill(image, &letters, ink.color);
        for (glyph, layers) in in_color {
            for layer in layers {
                let mut shape = Shape::default();
                glyph.fill_layer(&layer, &mut shape);
                let color = layer.color.map_or(ink.color, |own| Color { a: scaled(own.a, ink.color.a), ..own });
                fill(image, &shape, color);
            }
        }
    }
}

/// Draws a rectangle of one color over `image`. The part outside of the image is clipped.
///
/// `x` and `y` are the left and the top edge in pixels.
pub fn fill_rect(image: &mut Bitmap, x: i64, y: i64, width: u64, height: u64, color: Color) {
    let part = |start: i64, length: u64, available: u32| {
        let end = start.saturating_add_unsigned(length).clamp(0, i64::from(available));
        // Both values fit a `u32` here.
        start.clamp(0, end) as usize..end as usize
    };
    let (columns, rows) = (part(x, width, image.width()), part(y, height, image.height()));
    let (count, stride) = (image.channels().count(), image.stride());
    let channels = image.channels();
    for row in image.pixels_mut().chunks_exact_mut(stride).take(rows.end).skip(rows.start) {
        for pixel in row[columns.start * count..columns.end * count].chunks_exact_mut(count) {
            lay_over(pixel, channels, color, u32::from(color.a) * 255);
        }
    }
}

/// Fills the inside of closed curves with a color, by the nonzero rule. The part outside of the image is clipped.
pub fn fill_path(image: &mut Bitmap, path: impl IntoIterator<Item = PathEl>, color: Color) {
    let mut shape = Shape::default();
    shape.add(path);
    fill(image, &shape, color);
}

/// Draws the part of `inner` that is inside of the closed curves `clip` over `image`, with the top left pixel of `inner`
/// at column and row `place`. Transparency of `inner` is ignored.
///
/// # Panics
///
/// If `clip` extends beyond `inner`, within the image.
pub fn lay_clipped(image: &mut Bitmap, inner: &Bitmap, place: (u32, u32), clip: impl IntoIterator<Item = PathEl>) {
    let mut shape = Shape::default();
    shape.add(clip);
    let (size, channels, stride) = (image.size(), image.channels(), image.stride());
    let (count, inner_count) = (channels.count(), inner.channels().count());
    shape.cover(size, |x, y, coverages| {
        let source = (y - place.1) as usize * inner.stride() + (x - place.0) as usize * inner_count;
        let sources = inner.pixels()[source..].chunks_exact(inner_count);
        let start = y as usize * stride + x as usize * count;
        let row = &mut image.pixels_mut()[start..start + coverages.len() * count];
        for ((pixel, coverage), source) in row.chunks_exact_mut(count).zip(coverages).zip(sources) {
            let color = Color { r: source[0], g: source[1], b: source[2], a: 255 };
            lay_over(pixel, channels, color, 255 * (coverage * 255.0 + 0.5) as u32);
        }
    });
}

/// Fills a shape.
fn fill(image: &mut Bitmap, shape: &Shape, color: Color) {
    let (channels, stride) = (image.channels(), image.stride());
    let (size, count) = (image.size(), channels.count());
    let alpha = u32::from(color.a);
    shape.cover(size, |x, y, coverages| {
        let start = y as usize * stride + x as usize * count;
        let row = &mut image.pixels_mut()[start..start + coverages.len() * count];
        for (pixel, coverage) in row.chunks_exact_mut(count).zip(coverages) {
            let coverage = (coverage * 255.0 + 0.5) as u32;
            if coverage > 0 {
                lay_over(pixel, channels, color, alpha * coverage);
            }
        }
    });
}

/// The product of two values of 0 to 255 that represent 0 to 1.
fn scaled(a: u8, b: u8) -> u8 {
    ((u32::from(a) * u32::from(b) + 127) / 255) as u8
}

/// The alpha value that [`lay_over`] treats as opaque: a product of two bytes.
const OPAQUE: u32 = 255 * 255;

/// Blends a color with `alpha`, 0 to [`OPAQUE`], over a pixel. Results are rounded to the nearest.
/// An opaque color is exact, and a transparent one changes nothing.
fn lay_over(pixel: &mut [u8], channels: Channels, color: Color, alpha: u32) {
    let rest = OPAQUE - alpha;
    match channels {
        Channels::Rgb => {
            for (sample, above) in pixel.iter_mut().zip(color.rgb()) {
                *sample = ((u32::from(above) * alpha + u32::from(*sample) * rest + OPAQUE / 2) / OPAQUE) as u8;
            }
        }
        Channels::Rgba => {
            // The weights of the two colors. Their sum is at most 255 * OPAQUE, which multiplied by
            // a sample is below 2^32.
            let (above, below) = (255 * alpha, u32::from(pixel[3]) * rest);
            let sum = above + below;
            if sum == 0 || alpha == 0 {
                return;
            }
            for (sample, own) in pixel.iter_mut().zip(color.rgb()) {
                *sample = ((u32::from(own) * above + u32::from(*sample) * below + sum / 2) / sum) as u8;
            }
            pixel[3] = ((sum + OPAQUE / 2) / OPAQUE) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laying_over_follows_the_formula() {
        for alpha in [0u32, 1, 127, 128, 254, 255] {
            for (below, below_alpha) in [(0u8, 0u8), (0, 255), (200, 255), (200, 128), (10, 1)] {
                for own in [0u8, 90, 255] {
                    let color = Color { r: own, g: own, b: own, a: 255 };
                    let mut pixel = [below, below, below, below_alpha];
                    lay_over(&mut pixel, Channels::Rgba, color, alpha * 255);
                    let (a, b) = (f64::from(alpha) / 255.0, f64::from(below_alpha) / 255.0);
                    let out = a + b * (1.0 - a);
                    let sample = (f64::from(own) * a + f64::from(below) * b * (1.0 - a)) / out;
                    assert!((f64::from(pixel[3]) - out * 255.0).abs() <= 0.51, "{pixel:?}");
                    assert!(alpha == 0 || (f64::from(pixel[0]) - sample).abs() <= 0.51, "{pixel:?}, not {sample}");
                    if below_alpha == 255 {
                        let mut opaque = [below; 3];
                        lay_over(&mut opaque, Channels::Rgb, color, alpha * 255);
                        assert_eq!(opaque, pixel[..3]);
                    }
                    if alpha == 0 {
                        assert_eq!(pixel, [below, below, below, below_alpha]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_rectangle_is_cut_off_at_the_edges() {
        let mut image = Bitmap::filled(crate::geometry::Size::new(4, 3), Channels::Rgb, Color::WHITE);
        let black = Color { r: 0, g: 0, b: 0, a: 255 };
        fill_rect(&mut image, -2, 1, 4, u64::MAX, black);
        fill_rect(&mut image, i64::MAX, i64::MIN, u64::MAX, u64::MAX, black);
        fill_rect(&mut image, i64::MIN, 0, 3, 3, black);
        let dark: Vec<bool> = image.pixels().chunks_exact(3).map(|pixel| pixel[0] == 0).collect();
        let (x, o) = (true, false);
        assert_eq!(dark, [o, o, o, o, x, x, o, o, x, x, o, o]);
    }
}
