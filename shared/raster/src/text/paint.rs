//! Shapes to pixels: source-over in sRGB, straight alpha (W3C Compositing and Blending 1, 9.1.4).

use super::coverage::Shape;
use super::layout::Layout;
use super::outline::{Placed, REACH_EM};
use crate::color::Color;
use crate::picture::{Channels, Picture};

/// What text is drawn with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ink {
    /// Of the letters. Emoji keep their own colours and take its alpha.
    pub color: Color,
    /// A line along the outlines, under the letters.
    pub stroke: Option<Stroke>,
}

/// A line along the outlines of letters, half within them, with round corners.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    /// Its colour.
    pub color: Color,
    /// Its width in pixels, greater than 0.
    pub width: f64,
}

impl Layout {
    /// Draws the text with the top left corner of its block `x` pixels right of the left and `y` below the top edge of
    /// `picture`. What lies outside is cut off.
    ///
    /// First every stroke, as one shape, then every letter, as one shape, then emoji.
    pub fn draw(&self, picture: &mut Picture, x: f64, y: f64, ink: &Ink) {
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
            placed.extend(glyphs.filter(|glyph| near(glyph.x, picture.width()) && near(glyph.y, picture.height())));
        }
        if let Some(stroke) = ink.stroke {
            let mut outlines = Shape::default();
            placed.iter().for_each(|glyph| glyph.stroke(stroke.width, &mut outlines));
            fill(picture, &outlines, stroke.color);
        }
        let mut letters = Shape::default();
        let mut in_color = Vec::new();
        for glyph in &placed {
            match glyph.layers() {
                layers if layers.is_empty() => glyph.fill(&mut letters),
                layers => in_color.push((glyph, layers)),
            }
        }
        fill(picture, &letters, ink.color);
        for (glyph, layers) in in_color {
            for layer in layers {
                let mut shape = Shape::default();
                glyph.fill_layer(&layer, &mut shape);
                let color = layer.color.map_or(ink.color, |own| Color { a: scaled(own.a, ink.color.a), ..own });
                fill(picture, &shape, color);
            }
        }
    }
}

/// Lays a rectangle of one colour over `picture`; what lies outside is cut off.
///
/// `x` and `y` are where its left and its top edge are, in pixels.
pub fn fill_rect(picture: &mut Picture, x: i64, y: i64, width: u64, height: u64, color: Color) {
    let part = |start: i64, length: u64, available: u32| {
        let end = start.saturating_add_unsigned(length).clamp(0, i64::from(available));
        // Both are within a `u32` by now.
        start.clamp(0, end) as usize..end as usize
    };
    let (columns, rows) = (part(x, width, picture.width()), part(y, height, picture.height()));
    let (count, stride) = (picture.channels().count(), picture.stride());
    let channels = picture.channels();
    for row in picture.pixels_mut().chunks_exact_mut(stride).take(rows.end).skip(rows.start) {
        for pixel in row[columns.start * count..columns.end * count].chunks_exact_mut(count) {
            lay_over(pixel, channels, color, u32::from(color.a) * 255);
        }
    }
}

/// Fills a shape.
pub(crate) fn fill(picture: &mut Picture, shape: &Shape, color: Color) {
    let (channels, stride) = (picture.channels(), picture.stride());
    let (size, count) = (picture.size(), channels.count());
    let alpha = u32::from(color.a);
    shape.cover(size, |x, y, coverages| {
        let start = y as usize * stride + x as usize * count;
        let row = &mut picture.pixels_mut()[start..start + coverages.len() * count];
        for (pixel, coverage) in row.chunks_exact_mut(count).zip(coverages) {
            let coverage = (coverage * 255.0 + 0.5) as u32;
            if coverage > 0 {
                lay_over(pixel, channels, color, alpha * coverage);
            }
        }
    });
}

/// A product of two values of 0 to 255 that stand for 0 to 1.
fn scaled(a: u8, b: u8) -> u8 {
    ((u32::from(a) * u32::from(b) + 127) / 255) as u8
}

/// The alpha that is opaque for [`lay_over`]: a product of two bytes.
const OPAQUE: u32 = 255 * 255;

/// Lays a colour with `alpha`, 0 to [`OPAQUE`], over a pixel. Rounds to nearest; an opaque colour is exact, a transparent one
/// changes nothing.
pub(crate) fn lay_over(pixel: &mut [u8], channels: Channels, color: Color, alpha: u32) {
    let rest = OPAQUE - alpha;
    match channels {
        Channels::Rgb => {
            for (sample, above) in pixel.iter_mut().zip(color.rgb()) {
                *sample = ((u32::from(above) * alpha + u32::from(*sample) * rest + OPAQUE / 2) / OPAQUE) as u8;
            }
        }
        Channels::Rgba => {
            // Weights of the two colours; together at most 255 * OPAQUE, which times a sample is below 2^32.
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
        let mut picture = Picture::filled(crate::geometry::Size::new(4, 3), Channels::Rgb, Color::WHITE);
        let black = Color { r: 0, g: 0, b: 0, a: 255 };
        fill_rect(&mut picture, -2, 1, 4, u64::MAX, black);
        fill_rect(&mut picture, i64::MAX, i64::MIN, u64::MAX, u64::MAX, black);
        fill_rect(&mut picture, i64::MIN, 0, 3, 3, black);
        let dark: Vec<bool> = picture.pixels().chunks_exact(3).map(|pixel| pixel[0] == 0).collect();
        let (x, o) = (true, false);
        assert_eq!(dark, [o, o, o, o, x, x, o, o, x, x, o, o]);
    }
}
