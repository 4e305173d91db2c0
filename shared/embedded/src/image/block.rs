//! Text that stays within a box.

use super::vector::Area;
use raster::text::{Align, Family, Ink, Layout, Style, Weight, is_right_to_left, layout_lines};
use raster::{Bitmap, Color};

/// How far the drawn text may extend beyond its box, in units of the font size: marks above and
/// below letters with a small line height.
const OVERHANG: f64 = 0.25;

/// The font of a text and its line height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Face {
    pub(super) family: Family,
    pub(super) weight: Weight,
    /// The distance between baselines in units of the font size.
    pub(super) line_height: f64,
}

/// The font of headlines.
pub(super) const HEADLINE: Face = Face { family: Family::Serif, weight: Weight::Bold, line_height: 1.16 };

/// The font of body text.
pub(super) const BODY: Face = Face { family: Family::Sans, weight: Weight::Regular, line_height: 1.45 };

/// The font of captions, which describe the frame.
pub(super) const CAPTION: Face = Face { family: Family::Sans, weight: Weight::Regular, line_height: 1.4 };

/// The font of labels, which are emphasized captions.
pub(super) const LABEL: Face = Face { family: Family::Sans, weight: Weight::Bold, line_height: 1.4 };

/// The font of values.
pub(super) const VALUE: Face = Face { family: Family::Mono, weight: Weight::Regular, line_height: 1.4 };

/// A text laid out for a width.
pub(super) struct Block {
    layout: Layout,
    size: f64,
    width: f64,
    is_right_to_left: bool,
}

impl Block {
    /// Lays out `text` at `size` pixels, in at most `max_lines` lines no wider than `width`. If a
    /// single letter is wider, the font size is reduced.
    pub(super) fn new(text: &str, face: Face, size: f64, width: f64, max_lines: usize) -> Self {
        let is_right_to_left = is_right_to_left(text);
        let align = if is_right_to_left { Align::Right } else { Align::Left };
        let set = |size: f64| {
            let style = Style { family: face.family, weight: face.weight, size, line_height: face.line_height, align };
            layout_lines(text, &style, Some(width), max_lines.max(1))
        };
        let mut layout = set(size);
        let mut size = size;
        // After a line was broken again, it may contain another letter that is too wide, so the
        // reduction is repeated.
        while layout.width() > width + 0.5 && size > 1.0 {
            size = (size * width / layout.width()).max(1.0);
            layout = set(size);
        }
        Self { layout, size, width, is_right_to_left }
    }

    /// Lays out `text` at the first of `sizes`, in pixels, at which all of it fits `width` and
    /// `height`. At the last size, text that does not fit is omitted. `None` if not even one line
    /// fits.
    pub(super) fn fitted(text: &str, face: Face, sizes: &[f64], width: f64, height: f64) -> Option<Self> {
        let (last, others) = sizes.split_last()?;
        let whole = others.iter().map(|size| Self::new(text, face, *size, width, usize::MAX));
        let fitting = whole.into_iter().find(|block| block.height() <= height);
        let lines = (height / (last * face.line_height) + 1e-6) as usize;
        fitting.or_else(|| (lines > 0 && width >= *last).then(|| Self::new(text, face, *last, width, lines)))
    }

    /// The height of the text in pixels.
    pub(super) fn height(&self) -> f64 {
        self.layout.height()
    }

    /// The width of the widest line in pixels.
    pub(super) fn text_width(&self) -> f64 {
        self.layout.width()
    }

    /// The font size in pixels.
    pub(super) fn size(&self) -> f64 {
        self.size
    }

    /// Draws the text with the top left corner of its box at `x`, `y`. Right-to-left text is
    /// aligned to the right.
    pub(super) fn draw(&self, image: &mut Bitmap, x: f64, y: f64, color: Color) {
        let slack = OVERHANG * self.size;
        let area = Area::new(x - slack, y - slack, self.width + 2.0 * slack, self.height() + 2.0 * slack);
        let clip = area.pixels(image.width(), image.height());
        let mut part = image.cropped(clip);
        let indent = if self.is_right_to_left { self.width - self.layout.width() } else { 0.0 };
        let (left, top) = (x + indent - f64::from(clip.x), y - f64::from(clip.y));
        self.layout.draw(&mut part, left, top, &Ink { color, stroke: None });
        image.paste(&part, clip.x, clip.y);
    }
}
