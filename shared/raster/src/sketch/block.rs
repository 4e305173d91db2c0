//! Text in a box that it never leaves.

use super::vector::Area;
use crate::color::Color;
use crate::picture::Picture;
use crate::text::{Align, Family, Ink, Layout, Style, Weight, is_right_to_left, layout_lines};

/// How far over its box text is drawn at most, in sizes: marks above and below the letters of a tight line.
const OVERHANG: f64 = 0.25;

/// How text is set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Face {
    pub(super) family: Family,
    pub(super) weight: Weight,
    /// The distance of two baselines in sizes.
    pub(super) line_height: f64,
}

/// Letters of headlines.
pub(super) const HEADLINE: Face = Face { family: Family::Serif, weight: Weight::Bold, line_height: 1.16 };

/// Letters to read.
pub(super) const BODY: Face = Face { family: Family::Sans, weight: Weight::Regular, line_height: 1.45 };

/// Letters of what is said about the frame.
pub(super) const CAPTION: Face = Face { family: Family::Sans, weight: Weight::Regular, line_height: 1.4 };

/// The same, to be seen first.
pub(super) const LABEL: Face = Face { family: Family::Sans, weight: Weight::Bold, line_height: 1.4 };

/// Letters of values.
pub(super) const VALUE: Face = Face { family: Family::Mono, weight: Weight::Regular, line_height: 1.4 };

/// Text that was set for a width.
pub(super) struct Block {
    layout: Layout,
    size: f64,
    width: f64,
    is_right_to_left: bool,
}

impl Block {
    /// Sets `text` in letters of `size` pixels, in at most `max_lines` lines no wider than `width`; a single letter that is
    /// wider makes all of them smaller.
    pub(super) fn new(text: &str, face: Face, size: f64, width: f64, max_lines: usize) -> Self {
        let is_right_to_left = is_right_to_left(text);
        let align = if is_right_to_left { Align::Right } else { Align::Left };
        let set = |size: f64| {
            let style = Style { family: face.family, weight: face.weight, size, line_height: face.line_height, align };
            layout_lines(text, &style, Some(width), max_lines.max(1))
        };
        let mut layout = set(size);
        let mut size = size;
        // A line that was broken anew can hold another letter that is too wide, which is smaller by then.
        while layout.width() > width + 0.5 && size > 1.0 {
            size = (size * width / layout.width()).max(1.0);
            layout = set(size);
        }
        Self { layout, size, width, is_right_to_left }
    }

    /// Sets `text` in the first of `sizes`, in pixels, that lets all of it stand within `width` and `height`; in the last one
    /// what does not fit is left out. Nothing when not even a line fits.
    pub(super) fn fitted(text: &str, face: Face, sizes: &[f64], width: f64, height: f64) -> Option<Self> {
        let (last, others) = sizes.split_last()?;
        let whole = others.iter().map(|size| Self::new(text, face, *size, width, usize::MAX));
        let fitting = whole.into_iter().find(|block| block.height() <= height);
        let lines = (height / (last * face.line_height) + 1e-6) as usize;
        fitting.or_else(|| (lines > 0 && width >= *last).then(|| Self::new(text, face, *last, width, lines)))
    }

    /// In pixels.
    pub(super) fn height(&self) -> f64 {
        self.layout.height()
    }

    /// Of the widest line, in pixels.
    pub(super) fn text_width(&self) -> f64 {
        self.layout.width()
    }

    /// The height of its letters, in pixels.
    pub(super) fn size(&self) -> f64 {
        self.size
    }

    /// Draws it with its box's top left corner at `x`, `y`; text that begins at the right stands at the right.
    pub(super) fn draw(&self, picture: &mut Picture, x: f64, y: f64, color: Color) {
        let slack = OVERHANG * self.size;
        let area = Area::new(x - slack, y - slack, self.width + 2.0 * slack, self.height() + 2.0 * slack);
        let clip = area.pixels(picture.width(), picture.height());
        let mut part = picture.cropped(clip);
        let indent = if self.is_right_to_left { self.width - self.layout.width() } else { 0.0 };
        let (left, top) = (x + indent - f64::from(clip.x), y - f64::from(clip.y));
        self.layout.draw(&mut part, left, top, &Ink { color, stroke: None });
        picture.paste(&part, clip.x, clip.y);
    }
}
