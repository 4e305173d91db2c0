//! A strip of text along the lower edge of a picture: the same typography for every frame of a moving sketch.

use super::block::{BODY, Block, CAPTION, LABEL};
use super::page::Scale;
use super::vector::{Area, paint, rounded};
use super::words::flowing;
use crate::color::Color;
use crate::geometry::Size;
use crate::picture::Picture;
use crate::text::fill_rect;

const GROUND: Color = Color { r: 16, g: 16, b: 18, a: 205 };
const INK: Color = Color { r: 250, g: 249, b: 246, a: 255 };
const MUTED: Color = Color { r: 186, g: 184, b: 180, a: 255 };
const TAG: Color = Color { r: 250, g: 249, b: 246, a: 255 };
const ON_TAG: Color = Color { r: 24, g: 24, b: 26, a: 255 };

/// The most that a plate covers of its picture.
const SHARE_MAX: f64 = 0.34;

/// What a plate says.
#[derive(Debug, Clone, Copy)]
pub struct Plate<'a> {
    /// What the picture is, such as `Animatic`; stands in a tag.
    pub label: &'a str,
    /// A prompt, in any script; its beginning is shown, in one or two lines.
    pub prompt: &'a str,
    /// What else there is to say, such as `1280 × 720 · animatic`; one line.
    pub facts: &'a str,
}

/// A plate set for pictures of a certain size.
pub struct PlacedPlate {
    top: f64,
    margin: f64,
    gap: f64,
    width: f64,
    tag: Option<Block>,
    facts: Option<Block>,
    text: Option<Block>,
}

impl Plate<'_> {
    /// Sets the text for pictures of `size`, once for all that it is drawn into.
    pub fn place(&self, size: Size) -> PlacedPlate {
        let scale = Scale::of(size);
        let (margin, gap) = (scale.margin, scale.caption * 0.75);
        let (width, height) = (f64::from(size.width), f64::from(size.height));
        let room = width - 2.0 * margin;
        let line =
            |text: &str, face, width: f64| Block::fitted(text, face, &[scale.caption], width, 2.0 * scale.caption);
        let tag = line(self.label, LABEL, room / 2.0);
        let tag_width = tag.as_ref().map_or(0.0, |tag| tag.text_width() + 2.5 * gap);
        let facts = line(self.facts, CAPTION, room - tag_width);
        let text = flowing(self.prompt);
        let captions = scale.caption * CAPTION.line_height;
        let size = scale.body * 1.3;
        let left = (height * SHARE_MAX - captions - 3.0 * gap).min(2.0 * size * BODY.line_height + 1e-6);
        let text = Some(text.as_str()).filter(|text| !text.is_empty());
        let text = text.and_then(|text| Block::fitted(text, BODY, &[size, scale.body], room, left));
        let used = text.as_ref().map_or(0.0, |text| text.height() + gap) + captions + 2.0 * gap;
        PlacedPlate { top: (height - used).max(0.0).round(), margin, gap, width, tag, facts, text }
    }
}

impl PlacedPlate {
    /// How many rows of the picture lie above it.
    pub fn top(&self) -> u32 {
        // A row of the picture.
        self.top as u32
    }

    /// Draws it into a picture of the size it was set for.
    pub fn draw(&self, picture: &mut Picture) {
        let rows = u64::from(picture.height().saturating_sub(self.top()));
        fill_rect(picture, 0, i64::from(self.top()), u64::from(picture.width()), rows, GROUND);
        let mut y = self.top + self.gap;
        if let Some(text) = &self.text {
            text.draw(picture, self.margin, y, INK);
            y += text.height() + self.gap;
        }
        let mut x = self.margin;
        if let Some(tag) = &self.tag {
            let width = tag.text_width() + self.gap * 1.5;
            paint(picture, rounded(Area::new(x, y, width, tag.height()), self.gap / 2.0), TAG);
            tag.draw(picture, x + self.gap * 0.75, y, ON_TAG);
            x += width + self.gap;
        }
        if let Some(facts) = &self.facts {
            facts.draw(picture, x, y, MUTED);
        }
        debug_assert!(x <= self.width);
    }
}
