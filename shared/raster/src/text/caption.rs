//! The Action `add-text-to-image` (`docs/reference/actions.md#add-text-to-image`).

use super::fonts::{Family, Weight};
use super::layout::{Align, Layout, Style, layout};
use super::paint::{Ink, Stroke, fill_rect};
use crate::bitmap::Bitmap;
use crate::color::Color;
use crate::geometry::{Anchor, Size};
use crate::input::Input;
use crate::pipeline::{Change, Error, Finish, Output};
use crate::resize::check_output;

/// Text and its placement in an image: the parameters of the Action.
#[derive(Debug, Clone, PartialEq)]
pub struct Caption {
    pub text: String,
    /// Position of the box in the image.
    pub anchor: Anchor,
    /// Offset of the box from there, to the right and down, in pixels.
    pub offset: (i64, i64),
    pub family: Family,
    pub weight: Weight,
    /// Font size in percent of the image's height, greater than 0.
    pub size: f64,
    pub color: Color,
    /// Alignment of the lines in the box.
    pub align: Align,
    /// The maximum width of the box in percent of the image's width. Text is wrapped to fit.
    pub max_width: f64,
    /// The distance between baselines in multiples of the font size.
    pub line_height: f64,
    /// Color of the stroke.
    pub stroke_color: Color,
    /// The width of the stroke in percent of the font size, one half of it inside the letters; 0
    /// disables it.
    pub stroke_width: f64,
    /// Background of the box.
    pub background: Color,
    /// Padding of the box, in percent of the font size.
    pub padding: f64,
}

/// A caption laid out for an image of a certain size.
pub struct PlacedCaption {
    layout: Layout,
    /// Left and top edge of the box in the image; negative where it extends beyond.
    x: i64,
    y: i64,
    /// Width and height of the box.
    width: u64,
    height: u64,
    /// Pixels between an edge of the box and the text.
    padding: f64,
    ink: Ink,
    background: Color,
}

impl Caption {
    /// Lays out the text for an image of `size`.
    ///
    /// The box is as wide as the widest line and as high as all lines, with the padding around them, rounded up to
    /// whole pixels. The padding counts whether or not the box is filled, so that text keeps a distance from the edge
    /// to which it is anchored. If padding leaves no room for text in the widest box, text is broken after every
    /// grapheme cluster.
    pub fn place(&self, size: Size) -> PlacedCaption {
        let em = self.size / 100.0 * f64::from(size.height);
        let padding = self.padding / 100.0 * em;
        let room = self.max_width / 100.0 * f64::from(size.width) - 2.0 * padding;
        let style = Style {
            family: self.family,
            weight: self.weight,
            size: em,
            line_height: self.line_height,
            align: self.align,
        };
        let layout = layout(&self.text, &style, Some(room.max(0.0)));
        // The casts saturate; 500 lines of the largest size are far from it.
        let whole = |length: f64| (length + 2.0 * padding - ROUNDING).ceil().max(1.0) as i64;
        let (width, height) = (whole(layout.width()), whole(layout.height()));
        let (x, y) = self.anchor.place_any((width, height), size);
        let stroke = Stroke { color: self.stroke_color, width: self.stroke_width / 100.0 * em };
        PlacedCaption {
            layout,
            x: x.saturating_add(self.offset.0),
            y: y.saturating_add(self.offset.1),
            width: width.unsigned_abs(),
            height: height.unsigned_abs(),
            padding,
            ink: Ink { color: self.color, stroke: (stroke.width > 0.0).then_some(stroke) },
            background: self.background,
        }
    }
}

/// Excess of a length over a whole number of pixels that is treated as rounding error.
const ROUNDING: f64 = 1e-6;

impl PlacedCaption {
    /// Left and top edge, width and height of the box, in pixels.
    pub fn frame(&self) -> (i64, i64, u64, u64) {
        (self.x, self.y, self.width, self.height)
    }

    pub fn line_count(&self) -> usize {
        self.layout.line_count()
    }

    /// Draws box and text into an image of the size for which it was laid out.
    pub fn draw(&self, image: &mut Bitmap) {
        fill_rect(image, self.x, self.y, self.width, self.height, self.background);
        let (x, y) = (self.x as f64 + self.padding, self.y as f64 + self.padding);
        self.layout.draw(image, x, y, &self.ink);
    }
}

/// The Action `add-text-to-image`: decodes, draws and encodes. A JPEG of a transparent result is flattened on white,
/// because the caption's background belongs to its box.
///
/// # Errors
/// Any [`Error`]; an image over the limits of results is refused before it is decoded.
pub fn add_text(bytes: &[u8], caption: &Caption, finish: Finish) -> Result<Output, Error> {
    finish.transform(bytes, |image, _| change(image, caption))
}

/// The Action on an image.
///
/// # Errors
/// As [`add_text`].
pub fn change(image: Input, caption: &Caption) -> Result<Change, Error> {
    check_output(image.size())?;
    let mut image = image.decode()?;
    caption.place(image.size()).draw(&mut image);
    Ok(Change::Pixels { image, background: Color::WHITE })
}
