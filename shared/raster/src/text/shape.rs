//! Shapes a line of text: converts it to glyphs with positions.

use std::cell::Cell;
use std::ops::Range;

use harfrust::{Direction, ShapeOptions, Tag, UnicodeBuffer};
use skrifa::GlyphId;
use unicode_bidi::{Level, ParagraphBidiInfo};
use unicode_script::{Script, UnicodeScript};
use unicode_segmentation::UnicodeSegmentation;

use super::fonts::{Cascade, Face};

/// A glyph with its position.
#[derive(Clone, Copy)]
pub(super) struct Glyph {
    pub(super) face: &'static Face,
    pub(super) id: GlyphId,
    /// The horizontal distance from the start of the line, in em.
    pub(super) x: f64,
    /// The height above the baseline, in em.
    pub(super) y: f64,
    /// The advance to the next glyph, in em.
    pub(super) advance: f64,
    /// The position in bytes of its cluster in the paragraph.
    pub(super) cluster: usize,
}

/// A line that is ready to be drawn.
#[derive(Clone, Default)]
pub(super) struct Line {
    pub(super) glyphs: Vec<Glyph>,
    /// The width in em.
    pub(super) width: f64,
}

/// A part of a text with one font and one script.
struct Item {
    range: Range<usize>,
    face: &'static Face,
    script: Script,
}

/// A paragraph, split by direction, font and script.
pub(super) struct Paragraph<'text> {
    text: &'text str,
    bidi: ParagraphBidiInfo<'text>,
    items: Vec<Item>,
}

impl<'text> Paragraph<'text> {
    /// Analyzes `text`, which must not contain line ends. Without a `level`, its first letter
    /// determines the direction.
    pub(super) fn new(text: &'text str, level: Option<Level>, cascade: &Cascade) -> Self {
        Self { text, bidi: ParagraphBidiInfo::new(text, level), items: itemize(text, cascade) }
    }

    /// The direction of the paragraph.
    pub(super) fn level(&self) -> Level {
        self.bidi.paragraph_level
    }

    /// Shapes the part `range`, which must begin and end at cluster boundaries, as a separate line.
    pub(super) fn line(&self, range: Range<usize>) -> Line {
        let mut line = Line::default();
        if range.is_empty() {
            return line;
        }
        let (levels, runs) = self.bidi.visual_runs(range);
        for run in runs {
            let direction = match levels[run.start].is_rtl() {
                true => Direction::RightToLeft,
                false => Direction::LeftToRight,
            };
            let first = self.items.partition_point(|item| item.range.end <= run.start);
            let overlapping = self.items[first..].iter().take_while(|item| item.range.start < run.end);
            let mut parts: Vec<(&Item, Range<usize>)> =
                overlapping.map(|item| (item, item.range.start.max(run.start)..item.range.end.min(run.end))).collect();
            if direction == Direction::RightToLeft {
                parts.reverse();
            }
            for (item, part) in parts {
                self.shape(item, part, direction, &mut line);
            }
        }
        line
    }

    /// Appends the glyphs of a part with one direction, font and script.
    fn shape(&self, item: &Item, part: Range<usize>, direction: Direction, line: &mut Line) {
        thread_local! {
            /// Kept to reuse its allocations.
            static BUFFER: Cell<UnicodeBuffer> = Cell::new(UnicodeBuffer::new());
        }
        let mut buffer = BUFFER.take();
        for (at, character) in self.text[part.clone()].char_indices() {
            // Texts are far shorter than 4 GiB.
            buffer.add(character, (part.start + at) as u32);
        }
        buffer.set_direction(direction);
        if let Some(script) = harfrust::Script::from_iso15924_tag(Tag::from_u32(item.script.as_iso15924_tag())) {
            buffer.set_script(script);
        }
        let shaper = item.face.shaping.shaper(&item.face.tables).build();
        let shaped = shaper.shape(buffer, ShapeOptions::new());
        let em = |units: i32| f64::from(units) / item.face.units_per_em;
        for (info, position) in shaped.glyph_infos().iter().zip(shaped.glyph_positions()) {
            let advance = em(position.x_advance);
            line.glyphs.push(Glyph {
                face: item.face,
                id: GlyphId::new(info.glyph_id),
                x: line.width + em(position.x_offset),
                y: em(position.y_offset),
                advance,
                cluster: info.cluster as usize,
            });
            line.width += advance;
        }
        BUFFER.set(shaped.clear());
    }
}

/// Splits a text by font and script. Characters without a script of their own (spaces, digits,
/// punctuation, marks) belong to the script of the preceding text.
fn itemize(text: &str, cascade: &Cascade) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for (start, cluster) in text.grapheme_indices(true) {
        let range = start..start + cluster.len();
        let face = cascade.choose(cluster);
        let own = cluster.chars().map(|character| character.script()).find(|script| !is_neutral(*script));
        match items.last_mut() {
            Some(last) if std::ptr::eq(last.face, face) => match own {
                Some(script) if script != last.script && !is_neutral(last.script) => {
                    items.push(Item { range, face, script });
                }
                _ => {
                    last.script = own.unwrap_or(last.script);
                    last.range.end = range.end;
                }
            },
            _ => items.push(Item { range, face, script: own.unwrap_or(Script::Common) }),
        }
    }
    items
}

fn is_neutral(script: Script) -> bool {
    matches!(script, Script::Common | Script::Inherited | Script::Unknown)
}
