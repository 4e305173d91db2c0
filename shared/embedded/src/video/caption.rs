//! Draws the prompt: as a caption near the bottom of the frame, or as a title if there is no
//! image.

use raster::motion::{lay, layer};
use raster::text::{Align, Family, Ink, Layout, Stroke, Style, Weight, fill_rect, layout};
use raster::{Bitmap, Color, Size};

/// The color of the text.
const INK: Color = Color { r: 246, g: 244, b: 238, a: 255 };
/// The color of the box behind a caption, which keeps it readable on any image.
const PLATE: Color = Color { r: 14, g: 16, b: 20, a: 178 };
/// The color of the outline of a title.
const OUTLINE: Color = Color { r: 10, g: 12, b: 16, a: 150 };
/// The color of the bar beside a caption.
const MARK: Color = Color { r: 232, g: 163, b: 61, a: 255 };

/// Lengths as fractions of the frame's shorter side.
const MARGIN: f64 = 0.055;
const PADDING: f64 = 0.022;
const MARK_WIDTH: f64 = 0.008;
const OUTLINE_WIDTH: f64 = 0.009;

/// The maximum number of characters to lay out. More never fit, and laying them out takes time.
const CHARACTERS_MAX: usize = 1200;

/// The ellipsis after truncated text.
const CUT: &str = "…";

/// The number of bisection steps that balance the line lengths, to about 1 % of the width.
const BALANCE_STEPS: usize = 7;

/// The line height in units of the font size.
const LINE: f64 = 1.28;

/// How the prompt is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Near the bottom of the frame, in a box.
    Caption,
    /// Large, in the center of the frame.
    Title,
}

impl Kind {
    /// The font sizes to try, largest first, as fractions of the shorter side.
    fn sizes(self) -> &'static [f64] {
        match self {
            Self::Caption => &[0.056, 0.050, 0.044, 0.038],
            Self::Title => &[0.11, 0.098, 0.086, 0.074, 0.062, 0.052, 0.044],
        }
    }

    fn lines_max(self) -> usize {
        match self {
            Self::Caption => 3,
            Self::Title => 7,
        }
    }

    /// The maximum line width as a fraction of the frame's width.
    fn width_max(self) -> f64 {
        match self {
            Self::Caption => 0.84,
            Self::Title => 0.80,
        }
    }

    fn weight(self) -> Weight {
        match self {
            Self::Caption => Weight::Regular,
            Self::Title => Weight::Bold,
        }
    }
}

/// A rendered text and its position in the frame.
pub struct Caption {
    image: Bitmap,
    x: i64,
    y: i64,
}

impl Caption {
    /// Lays out a prompt for frames of `size`. `None` if the prompt is blank.
    pub fn new(prompt: &str, kind: Kind, size: Size) -> Option<Self> {
        let text = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
        if text.is_empty() {
            return None;
        }
        let short = f64::from(size.width.min(size.height));
        let set = fitted(&text, kind, size, short);
        let whole = |length: f64| length.ceil().max(1.0) as u32;
        let padding = f64::from(whole(PADDING * short));
        let mark = u64::from(whole(MARK_WIDTH * short));
        let (left, plate) = match kind {
            Kind::Caption => (mark as f64 + padding, PLATE),
            Kind::Title => (padding, Color::TRANSPARENT),
        };
        let inner = Size::new(whole(set.width() + left + padding), whole(set.height() + 2.0 * padding));
        let mut image = layer(inner);
        let (width, height) = (u64::from(inner.width), u64::from(inner.height));
        fill_rect(&mut image, 0, 0, width, height, plate);
        if kind == Kind::Caption {
            fill_rect(&mut image, 0, 0, mark, height, MARK);
        }
        // A title has no box. A dark outline keeps it readable on bright backgrounds.
        let stroke = (kind == Kind::Title).then_some(Stroke { color: OUTLINE, width: OUTLINE_WIDTH * short });
        set.draw(&mut image, left, padding, &Ink { color: INK, stroke });
        let (frame_width, frame_height) = (i64::from(size.width), i64::from(size.height));
        let (width, height) = (i64::from(inner.width), i64::from(inner.height));
        let margin = i64::from(whole(MARGIN * short));
        let (x, y) = match kind {
            Kind::Caption => (margin, frame_height - margin - height),
            Kind::Title => ((frame_width - width) / 2, (frame_height - height) / 2),
        };
        Some(Self { image, x, y })
    }

    /// The number of rows from the top edge of the caption to the bottom of the frame.
    pub fn room_below(&self, frame_height: u32) -> u32 {
        u32::try_from(i64::from(frame_height) - self.y).unwrap_or(0)
    }

    /// Draws the caption with an opacity of 0 to 255.
    pub fn draw(&self, frame: &mut Bitmap, opacity: u8) {
        lay(frame, &self.image, self.x, self.y, opacity);
    }
}

/// Lays out the text at the largest size at which it fits. If it fits at none, it is truncated at
/// the smallest size.
fn fitted(text: &str, kind: Kind, size: Size, short: f64) -> Layout {
    let room = kind.width_max() * f64::from(size.width);
    let style = |share: f64| Style {
        family: Family::Sans,
        weight: kind.weight(),
        size: share * short,
        line_height: LINE,
        align: if kind == Kind::Title { Align::Center } else { Align::Left },
    };
    let fits = |layout: &Layout| layout.line_count() <= kind.lines_max();
    let ends: Vec<usize> = text.char_indices().map(|(at, c)| at + c.len_utf8()).take(CHARACTERS_MAX).collect();
    if ends.last() == Some(&text.len()) {
        let found = kind.sizes().iter().find(|share| fits(&layout(text, &style(**share), Some(room))));
        if let Some(share) = found {
            return balanced(text, &style(*share), room);
        }
    }
    let smallest = style(kind.sizes().last().copied().unwrap_or(MARGIN));
    let cut = |count: usize| {
        let end = ends[..count].last().copied().unwrap_or(0);
        let kept = &text[..end];
        // Truncate after a word if one ends nearby.
        let kept = match kept.rfind(' ') {
            Some(space) if space * 3 > end * 2 => &kept[..space],
            _ => kept,
        };
        layout(&format!("{}{CUT}", kept.trim_end_matches([' ', ',', ';', ':', '.'])), &smallest, Some(room))
    };
    // More characters rarely take fewer lines, so a bisection finds the limit.
    let (mut least, mut most) = (0, ends.len());
    while least < most {
        let middle = (least + most).div_ceil(2);
        if fits(&cut(middle)) {
            least = middle;
        } else {
            most = middle - 1;
        }
    }
    cut(least)
}

/// Lays out the text in the minimum number of lines, and makes these as even as possible, so that
/// no word stands alone on the last line.
fn balanced(text: &str, style: &Style, room: f64) -> Layout {
    let widest = layout(text, style, Some(room));
    let lines = widest.line_count();
    let (mut least, mut most) = (room / 3.0, room);
    for _ in 0..BALANCE_STEPS {
        let middle = (least + most) / 2.0;
        if layout(text, style, Some(middle)).line_count() > lines {
            least = middle;
        } else {
            most = middle;
        }
    }
    if lines == 1 { widest } else { layout(text, style, Some(most)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Size = Size::new(1280, 720);

    #[test]
    fn a_blank_prompt_has_no_caption() {
        assert!(Caption::new(" \n\t", Kind::Caption, FRAME).is_none());
    }

    #[test]
    fn any_text_stands_within_the_frame() {
        let words = "a lighthouse keeper walks up the spiral stairs ".repeat(170);
        let solid = "x".repeat(8000);
        let wide = "灯台守は螺旋階段を上る。".repeat(600);
        for text in ["one", "灯台", words.as_str(), solid.as_str(), wide.as_str()] {
            for kind in [Kind::Caption, Kind::Title] {
                for size in [FRAME, Size::new(480, 854), Size::new(480, 480)] {
                    let caption = Caption::new(text, kind, size).expect("is no blank");
                    let (width, height) = (i64::from(caption.image.width()), i64::from(caption.image.height()));
                    assert!(caption.x >= 0 && caption.y >= 0, "{kind:?} {size:?}");
                    assert!(caption.x + width <= i64::from(size.width), "{kind:?} {size:?}");
                    assert!(caption.y + height <= i64::from(size.height), "{kind:?} {size:?}");
                }
            }
        }
    }

    #[test]
    fn a_short_text_is_set_larger_than_a_long_one() {
        let height = |text: &str| fitted(text, Kind::Title, FRAME, 720.0).height();
        let line = |text: &str| {
            let set = fitted(text, Kind::Title, FRAME, 720.0);
            set.height() / set.line_count() as f64
        };
        assert!(line("Dawn") > line(&"a long prompt of many words ".repeat(8)));
        assert!(height("Dawn") < 720.0);
    }
}
