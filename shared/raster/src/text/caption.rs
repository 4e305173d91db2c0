//! The Action `add-text-to-image` (decisions 8.1, 8.2).

use super::fonts::{Family, Weight};
use super::layout::{Align, Layout, Style, layout};
use super::paint::{Ink, Stroke, fill_rect};
use crate::color::Color;
use crate::decode::{DecodeError, decode_turned};
use crate::geometry::{Anchor, Size};
use crate::header::probe;
use crate::orientation::Orientation;
use crate::picture::Picture;
use crate::pipeline::{Error, Finish, Output};
use crate::resize::check_output;

/// Text and how it is to stand in a picture: the parameters of the Action.
#[derive(Debug, Clone, PartialEq)]
pub struct Caption {
    /// What is written.
    pub text: String,
    /// Where in the picture its box stands.
    pub anchor: Anchor,
    /// How far the box is moved from there, right and down, in pixels.
    pub offset: (i64, i64),
    /// The letters.
    pub family: Family,
    /// Their weight.
    pub weight: Weight,
    /// Their size in percent of the picture's height, greater than 0.
    pub size: f64,
    /// Their colour.
    pub color: Color,
    /// Where lines stand in the box.
    pub align: Align,
    /// The widest the box may be, in percent of the picture's width; text is broken so that it fits.
    pub max_width: f64,
    /// The distance of two baselines in sizes.
    pub line_height: f64,
    /// The colour of the line along the letters.
    pub stroke_color: Color,
    /// The width of that line in percent of the size, half of it within the letters; 0 is none.
    pub stroke_width: f64,
    /// What the box is filled with.
    pub background: Color,
    /// The room around the text in its box, in percent of the size.
    pub padding: f64,
}

/// A caption set for a picture of a certain size.
pub struct PlacedCaption {
    layout: Layout,
    /// The left and top edge of the box in the picture; negative where it sticks out.
    x: i64,
    y: i64,
    /// The sides of the box.
    width: u64,
    height: u64,
    /// Pixels between an edge of the box and the text.
    padding: f64,
    ink: Ink,
    background: Color,
}

impl Caption {
    /// Sets the text for a picture of `size`.
    ///
    /// The box is the text, as wide as its widest line and as high as its lines, with the padding around it, rounded up to whole
    /// pixels. The padding counts whether or not the box is filled, so that text keeps off the edge it is anchored to. Padding
    /// that leaves no room for text in the widest box breaks after every grapheme cluster.
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

/// What a length may be over a whole number of pixels and still be that number.
const ROUNDING: f64 = 1e-6;

impl PlacedCaption {
    /// The left and the top edge of the box and its width and height, in pixels.
    pub fn frame(&self) -> (i64, i64, u64, u64) {
        (self.x, self.y, self.width, self.height)
    }

    /// How many lines there are.
    pub fn line_count(&self) -> usize {
        self.layout.line_count()
    }

    /// Draws box and text into a picture of the size it was set for.
    pub fn draw(&self, picture: &mut Picture) {
        fill_rect(picture, self.x, self.y, self.width, self.height, self.background);
        let (x, y) = (self.x as f64 + self.padding, self.y as f64 + self.padding);
        self.layout.draw(picture, x, y, &self.ink);
    }
}

/// The Action `add-text-to-image`: decodes, draws and writes (decisions 8.1). A JPEG of a transparent result is flattened on
/// white: the caption's background belongs to its box (decisions 18.8).
///
/// # Errors
/// Any [`Error`]; a picture over the limits of results is refused before it is decoded.
pub fn add_text(bytes: &[u8], caption: &Caption, finish: Finish) -> Result<Output, Error> {
    let header = probe(bytes).map_err(DecodeError::from)?;
    check_output(header.size())?;
    let mut picture = decode_turned(bytes, Orientation::Normal)?;
    caption.place(picture.size()).draw(&mut picture);
    finish.write(&picture, header.format, Color::WHITE)
}
