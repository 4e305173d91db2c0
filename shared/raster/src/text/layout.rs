//! Breaks text into lines and computes its size.

use std::ops::Range;
use std::str::FromStr;

use icu_segmenter::LineSegmenter;
use unicode_bidi::{Direction, Level, get_base_direction_full};
use unicode_segmentation::UnicodeSegmentation;

use super::fonts::{Cascade, Family, Weight};
use super::shape::{Line, Paragraph};
use crate::geometry::ParseError;

/// The excess of a sum of advances over the width that counts as a rounding error.
const TOLERANCE_EM: f64 = 1e-6;

/// The alignment of lines within the width of the widest. Left is left, whatever the direction of
/// the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Align {
    /// `left`.
    Left,
    /// `center`.
    #[default]
    Center,
    /// `right`.
    Right,
}

impl FromStr for Align {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "left" => Ok(Self::Left),
            "center" => Ok(Self::Center),
            "right" => Ok(Self::Right),
            _ => Err(ParseError),
        }
    }
}

/// The style of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Style {
    pub family: Family,
    pub weight: Weight,
    /// Font size: the height of the em square in pixels, greater than 0.
    pub size: f64,
    /// The distance between baselines in multiples of the font size.
    pub line_height: f64,
    /// The alignment of lines.
    pub align: Align,
}

/// Laid out text: lines of glyphs.
#[derive(Clone)]
pub struct Layout {
    pub(super) lines: Vec<Line>,
    pub(super) style: Style,
    /// Distance from the top of a line to its baseline, in em.
    pub(super) baseline: f64,
    /// Width of the widest line, in em.
    pub(super) width: f64,
}

/// Lays out `text` in lines no wider than `max_width` pixels. Without it, only line ends break
/// lines.
///
/// LF, CR, CR LF, VT, FF, NEL and the two Unicode separators end lines, and a tab is four spaces.
/// White space at a line break has no width. A soft hyphen is visible only where a line is broken at it. Only a line with
/// a single grapheme cluster may be wider than `max_width`.
pub fn layout(text: &str, style: &Style, max_width: Option<f64>) -> Layout {
    layout_lines(text, style, max_width, usize::MAX)
}

/// Like [`layout()`], in at most `max_lines` lines, at least 1. The last line ends with an ellipsis if text is omitted.
pub fn layout_lines(text: &str, style: &Style, max_width: Option<f64>, max_lines: usize) -> Layout {
    let cascade = Cascade::new(style.family, style.weight);
    let width = max_width.map_or(f64::INFINITY, |width| width / style.size) + TOLERANCE_EM;
    let text = text.replace("\r\n", "\n").replace('\t', "    ");
    let mut lines = Vec::new();
    let mut paragraphs = text.split(is_line_end).peekable();
    while let Some(paragraph) = paragraphs.next()
        && lines.len() < max_lines
    {
        let limits = Limits { width, lines: max_lines, is_last: paragraphs.peek().is_none() };
        set(paragraph, &cascade, limits, &mut lines);
    }
    let primary = cascade.primary();
    Layout {
        width: lines.iter().fold(0.0, |widest, line: &Line| widest.max(line.width)),
        baseline: (style.line_height - primary.ascent - primary.descent) / 2.0 + primary.ascent,
        style: *style,
        lines,
    }
}

/// Returns `true` if a text is right-to-left according to its first character with a strong direction (UAX 9,
/// P2 and P3).
pub fn is_right_to_left(text: &str) -> bool {
    get_base_direction_full(text) == Direction::Rtl
}

/// Returns `true` if a character ends a line: those with a mandatory break (UAX 14 BK, CR, LF and NL) and paragraph separators
/// (UAX 9 B).
fn is_line_end(character: char) -> bool {
    matches!(character, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns `true` if a character is white space that is ignored at the end of a line. Fixed spaces are kept.
fn hangs(character: char) -> bool {
    character.is_whitespace() && !matches!(character, '\u{a0}' | '\u{2007}' | '\u{202f}')
}

/// Invisible, unless a line is broken after it (U+00AD).
const SOFT_HYPHEN: char = '\u{ad}';

/// Limits of a paragraph.
#[derive(Clone, Copy)]
struct Limits {
    /// Width of a line, in em.
    width: f64,
    /// Lines of the whole text.
    lines: usize,
    /// `true` if no other paragraph follows.
    is_last: bool,
}

/// Breaks a paragraph into lines, within the remaining number.
fn set(text: &str, cascade: &Cascade, limits: Limits, lines: &mut Vec<Line>) {
    let limit = limits.width;
    let paragraph = Paragraph::new(text, None, cascade);
    let breaks = Breaks::new(text);
    let seen = |range: Range<usize>| range.start..range.start + text[range].trim_end_matches(hangs).len();
    let is_cut = |end: usize, lines: &[Line]| lines.len() + 1 == limits.lines && !(limits.is_last && end == text.len());
    let whole = paragraph.line(seen(0..text.len()));
    if whole.width <= limit && !is_cut(text.len(), lines) {
        lines.push(whole);
        return;
    }
    let widths = Widths::new(text.len(), &whole);
    let hyphen = if text.contains(SOFT_HYPHEN) { hyphenated("", paragraph.level(), cascade).width } else { 0.0 };
    // Nothing is broken at a soft hyphen that begins a line.
    let is_broken = |range: Range<usize>| {
        let before = text[range.clone()].trim_end_matches(SOFT_HYPHEN).len();
        range.end < text.len() && before > 0 && before < range.len()
    };
    let shape = |range: Range<usize>| match is_broken(range.clone()) {
        true => hyphenated(&text[range], paragraph.level(), cascade),
        false => paragraph.line(seen(range)),
    };
    let mut start = 0;
    while start < text.len() {
        let reaches = |end| widths.total(seen(start..end)) <= limit;
        let fits = |end| !is_broken(start..end) || widths.total(start..end) + hyphen <= limit;
        let mut end = breaks.longest(start, reaches, fits);
        let mut line = shape(start..end);
        // Shaped separately, a line can be wider than as a part of the paragraph, because of a
        // final form or kerning.
        while line.width > limit {
            let Some(shorter) = breaks.shorter(start, end) else { break };
            end = shorter;
            line = shape(start..end);
        }
        if is_cut(end, lines) {
            lines.push(cut_short(text, start..end, &breaks, paragraph.level(), cascade, limit));
            return;
        }
        lines.push(line);
        start = end;
    }
    if text.is_empty() {
        // A line without text that represents the omitted text.
        lines.push(Paragraph::new(ELLIPSIS, None, cascade).line(0..ELLIPSIS.len()));
    }
}

/// A line of a paragraph of this direction that is broken at a soft hyphen.
fn hyphenated(text: &str, level: Level, cascade: &Cascade) -> Line {
    let shown = format!("{}-", text.trim_end_matches(SOFT_HYPHEN));
    Paragraph::new(&shown, Some(level), cascade).line(0..shown.len())
}

/// The text that replaces omitted text.
const ELLIPSIS: &str = "…";

/// The longest prefix of `text[range]` that fits a line with an ellipsis after it, in the direction of its paragraph.
fn cut_short(text: &str, range: Range<usize>, breaks: &Breaks, level: Level, cascade: &Cascade, limit: f64) -> Line {
    let Range { start, mut end } = range;
    loop {
        let kept =
            text[start..end].trim_end_matches(|character| hangs(character) || ".,;:…،؛、。，".contains(character));
        let shown = format!("{kept}{ELLIPSIS}");
        let line = Paragraph::new(&shown, Some(level), cascade).line(0..shown.len());
        match breaks.shorter(start, end) {
            Some(shorter) if line.width > limit => end = shorter,
            _ => return line,
        }
    }
}

/// Prefix sums of the advances of the whole paragraph, by byte.
struct Widths(Vec<f64>);

impl Widths {
    fn new(length: usize, line: &Line) -> Self {
        let mut sums = vec![0.0; length + 1];
        for glyph in &line.glyphs {
            sums[glyph.cluster + 1] += glyph.advance;
        }
        for at in 1..sums.len() {
            sums[at] += sums[at - 1];
        }
        Self(sums)
    }

    /// The width of a range. A ligature is counted at its start.
    fn total(&self, range: Range<usize>) -> f64 {
        self.0[range.end] - self.0[range.start]
    }
}

/// The positions after which a line of `text` may end, in bytes, ascending; the end of a text that is not empty is the
/// last (UAX 14). Thai, Lao, Khmer and Burmese are broken between words by dictionaries.
pub fn line_breaks(text: &str) -> impl Iterator<Item = usize> {
    // The first one is the start.
    LineSegmenter::new_dictionary(Default::default()).segment_str(text).skip(1)
}

/// Break opportunities of a paragraph.
struct Breaks {
    /// Between words ([`line_breaks`]), in bytes, ascending; the end is the last.
    words: Vec<usize>,
    /// Between grapheme clusters (UAX 29), in bytes, ascending; the end is the last.
    clusters: Vec<usize>,
}

impl Breaks {
    fn new(text: &str) -> Self {
        // A soft hyphen stays with what is before it.
        let clusters: Vec<usize> = text
            .grapheme_indices(true)
            .map(|(at, cluster)| at + cluster.len())
            .filter(|at| !text[*at..].starts_with(SOFT_HYPHEN))
            .collect();
        // UAX 14 handles emoji sequences less well than UAX 29, so breaks within a grapheme cluster
        // are removed.
        let words = line_breaks(text).filter(|at| clusters.binary_search(at).is_ok()).collect();
        Self { words, clusters }
    }

    /// The last break after `start` that fits: after a word, otherwise after a cluster, otherwise after one cluster that
    /// does not fit. The line `reaches` no break after the first that it does not reach; of those that it reaches, a
    /// break `fits` together with its hyphen.
    fn longest(&self, start: usize, reaches: impl Fn(usize) -> bool, fits: impl Fn(usize) -> bool) -> usize {
        let furthest = |breaks: &[usize]| {
            let behind = &breaks[breaks.partition_point(|at| *at <= start)..];
            behind.iter().copied().take_while(|at| reaches(*at)).filter(|at| fits(*at)).last()
        };
        let next_cluster = || self.clusters[self.clusters.partition_point(|at| *at <= start)];
        furthest(&self.words).or_else(|| furthest(&self.clusters)).unwrap_or_else(next_cluster)
    }

    /// The previous break before `end` that leaves a part of the line from `start`.
    fn shorter(&self, start: usize, end: usize) -> Option<usize> {
        let before = |breaks: &[usize]| {
            breaks[..breaks.partition_point(|at| *at < end)].last().copied().filter(|at| *at > start)
        };
        before(&self.words).or_else(|| before(&self.clusters))
    }
}

impl Layout {
    /// The width of the widest line in pixels.
    pub fn width(&self) -> f64 {
        self.width * self.style.size
    }

    /// The height of all lines in pixels: line height times lines.
    pub fn height(&self) -> f64 {
        self.line_count() as f64 * self.style.line_height * self.style.size
    }

    /// Number of lines, at least 1.
    pub fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// Distance of a line's start from the block's left edge, in em.
    pub(super) fn indent(&self, line: &Line) -> f64 {
        let slack = self.width - line.width;
        match self.style.align {
            Align::Left => 0.0,
            Align::Center => slack / 2.0,
            Align::Right => slack,
        }
    }
}
