//! Text in a frame: cleaned, broken into lines, and cut with an ellipsis where the frame ends.
//!
//! **Guarantee.** Whatever the text, the lines fit the width as estimated ([`Face`]), are no more than requested, and
//! take no more bytes than allowed. The cost is linear in the examined text, at most [`CHARACTERS_MAX`] characters.
//!
//! **Direction.** Each line is drawn as a separate text, enclosed in the controls of its paragraph's direction (the
//! first letter decides, UAX 9 rule P2) and anchored by side. The image is thus the same whether or not a renderer
//! supports SVG's `direction`. Bidirectional controls of the author are dropped, so that text cannot reorder its
//! surroundings.

use std::sync::LazyLock;

use icu_segmenter::{LineSegmenter, LineSegmenterBorrowed};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

use super::advance::Face;
use super::xml::{self, Num, put};

/// Length of the longest text of a node. A frame that shows more text at a legible size is larger than any screen.
const CHARACTERS_MAX: usize = 24_000;

/// Marks on one letter that are kept: enough for any language, too few to paint over adjacent lines.
const MARKS_MAX: usize = 4;

/// Bytes of a line in addition to its characters: element, position, direction.
const LINE_BYTES: usize = 64;

/// One line of text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub text: String,
    /// Its estimated width, in canvas units.
    pub width: f64,
    /// `true` if its paragraph runs from right to left.
    pub rtl: bool,
}

/// Limits of a wrapped text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Width of each line, in canvas units.
    pub width: f64,
    /// Number of lines.
    pub lines: usize,
    /// Bytes of all lines, escaped.
    pub bytes: usize,
}

/// Lines, and whether they are the whole text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wrapped {
    /// The lines, in order.
    pub lines: Vec<Line>,
    /// `true` if the last line ends in an ellipsis that is not part of the text.
    pub cut: bool,
}

/// Edge at which lines are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// The edge at which the paragraph's script starts.
    Start,
    /// The left edge.
    Left,
    /// The middle.
    Center,
    /// The right edge.
    Right,
}

/// The text without characters that have no glyph or could affect other text.
fn clean(text: &str) -> String {
    let mut marks = 0;
    text.chars()
        .map(xml::legal)
        .map(|c| if c == '\t' { ' ' } else { c })
        .filter(|c| !is_direction_control(*c))
        .filter(|c| {
            if !joins_emoji(*c) {
                // A control character is not a mark, although a line feed has no width either.
                marks = if c.width() == Some(0) { marks + 1 } else { 0 };
            }
            marks <= MARKS_MAX
        })
        .take(CHARACTERS_MAX)
        .collect()
}

/// Returns `true` if the character joins characters into one emoji without being a mark: joiner, variation selectors, tags.
fn joins_emoji(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' | '\u{e0020}'..='\u{e007f}')
}

fn is_direction_control(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns `true` if a text runs from right to left: its first letter decides.
fn is_rtl(paragraph: &str) -> bool {
    let first = paragraph.chars().take_while(|c| !is_break(*c)).find(|c| c.is_alphabetic());
    first.is_some_and(|c| {
        matches!(c, '\u{0590}'..='\u{08ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
            | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
    })
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A place where a word may be broken, which then shows a hyphen (U+00AD).
const SOFT_HYPHEN: char = '\u{ad}';

/// Made once, because its dictionaries are looked up by locale. A short text is broken in less time than that takes.
static SEGMENTER: LazyLock<LineSegmenterBorrowed<'static>> =
    LazyLock::new(|| LineSegmenter::new_dictionary(Default::default()));

/// Breaks `text` into lines (UAX 14, with dictionaries for Thai, Lao, Khmer and Burmese); breaks a word wider than a line
/// between clusters (UAX 29).
pub(super) fn wrap(text: &str, face: Face, limits: Limits) -> Wrapped {
    let text = clean(text);
    let mut page = Page { face, limits, lines: Vec::new(), bytes: 0, open: Open::default(), full: false };
    let mut from = 0;
    let mut begins = true;
    let mut parts = Vec::new();
    // The first break is the start.
    for to in SEGMENTER.segment_str(&text).skip(1) {
        if begins {
            page.open.rtl = is_rtl(&text[from..]);
        }
        let part = &text[from..to];
        parts.push(part);
        from = to;
        begins = part.ends_with(is_break);
        if part.ends_with(SOFT_HYPHEN) && to < text.len() {
            continue;
        }
        page.word(&parts);
        parts.clear();
        if begins {
            page.end_line();
        }
        if page.full {
            break;
        }
    }
    page.finish()
}

/// Returns `true` if one line holds all of `text`.
pub(super) fn fits(text: &str, face: Face, width: f64) -> bool {
    single(text, face, f64::INFINITY).is_none_or(|line| line.width <= width)
}

/// One line of `text`, with line breaks replaced by spaces.
pub(super) fn single(text: &str, face: Face, width: f64) -> Option<Line> {
    let flat: String = text.chars().take(CHARACTERS_MAX).map(|c| if is_break(c) { ' ' } else { c }).collect();
    let mut wrapped = wrap(flat.trim(), face, Limits { width: f64::INFINITY, lines: 1, bytes: usize::MAX });
    let mut line = wrapped.lines.pop()?;
    if line.width > width {
        line = shortened(line, face, width)?;
    }
    Some(line)
}

/// A part of a word without the spaces and the line break after it.
fn bare(part: &str) -> &str {
    part.trim_end_matches(|c| c == ' ' || is_break(c))
}

/// The visible rest of a part of a word.
fn shown(part: &str) -> String {
    bare(part).replace(SOFT_HYPHEN, "")
}

/// Lines under construction.
struct Page {
    face: Face,
    limits: Limits,
    lines: Vec<Line>,
    bytes: usize,
    open: Open,
    /// `true` if there is more text than fits.
    full: bool,
}

/// The line under construction.
#[derive(Default)]
struct Open {
    text: String,
    width: f64,
    /// Width without the spaces at its end.
    inked: f64,
    rtl: bool,
}

impl Page {
    /// Adds a word and the spaces after it. Between its parts, it may be broken with a hyphen; a part that is wider than a
    /// line is broken anywhere.
    fn word(&mut self, parts: &[&str]) {
        let hyphen = self.face.cluster("-");
        let mut rest = parts;
        while let Some(first) = rest.first()
            && !self.full
        {
            let room = self.limits.width - self.open.width;
            let mut width = 0.0;
            let mut fitting = 0;
            for (index, part) in rest.iter().enumerate() {
                width += self.face.text(&shown(part));
                let is_last = index + 1 == rest.len();
                if width + if is_last { 0.0 } else { hyphen } <= room {
                    fitting = index + 1;
                } else if width > room {
                    break;
                }
            }
            if fitting > 0 {
                let (fitting, after) = rest.split_at(fitting);
                for part in fitting {
                    let part = shown(part);
                    self.add(&part, self.face.text(&part));
                }
                rest = after;
                if !rest.is_empty() {
                    self.add("-", hyphen);
                    self.end_line();
                }
            } else if !self.open.text.is_empty() {
                self.end_line();
            } else {
                self.clusters(&shown(first));
                rest = &rest[1..];
            }
        }
        let spaces = parts.last().map_or(0, |last| last[bare(last).len()..].chars().filter(|c| *c == ' ').count());
        self.open.text.extend(std::iter::repeat_n(' ', spaces));
        // At most 24000 of them.
        self.open.width += self.face.cluster(" ") * spaces as f64;
    }

    /// Adds a part of a word, broken between clusters.
    fn clusters(&mut self, part: &str) {
        for cluster in part.graphemes(true) {
            let width = self.face.cluster(cluster);
            if self.open.width + width > self.limits.width && !self.open.text.is_empty() {
                self.end_line();
            }
            if self.full {
                return;
            }
            self.add(cluster, width);
        }
    }

    fn add(&mut self, text: &str, width: f64) {
        self.open.text.push_str(text);
        self.open.width += width;
        if !text.is_empty() {
            self.open.inked = self.open.width;
        }
    }

    fn end_line(&mut self) {
        if self.full {
            return;
        }
        let Open { mut text, inked, rtl, .. } = std::mem::take(&mut self.open);
        self.open.rtl = rtl;
        text.truncate(text.trim_end_matches(' ').len());
        let bytes = LINE_BYTES + escaped_len(&text);
        if self.lines.len() == self.limits.lines || self.bytes.saturating_add(bytes) > self.limits.bytes {
            self.full = true;
            return;
        }
        self.bytes += bytes;
        self.lines.push(Line { text, width: inked, rtl });
    }

    fn finish(mut self) -> Wrapped {
        if !self.open.text.is_empty() {
            self.end_line();
        }
        while self.lines.last().is_some_and(|line| line.text.is_empty()) {
            self.lines.pop();
        }
        if self.full
            && let Some(last) = self.lines.pop()
        {
            self.lines.extend(shortened(last, self.face, self.limits.width));
        }
        Wrapped { lines: self.lines, cut: self.full }
    }
}

/// Length of `text` in the document, in bytes.
fn escaped_len(text: &str) -> usize {
    text.len() + text.bytes().filter(|byte| b"&<>\"'".contains(byte)).count() * (xml::ESCAPED_MAX - 1)
}

/// The longest prefix of a line that leaves room for an ellipsis; empty when not even the ellipsis fits.
fn shortened(line: Line, face: Face, width: f64) -> Option<Line> {
    let ellipsis = face.cluster("…");
    let mut kept = 0;
    let mut used = 0.0;
    for (at, cluster) in line.text.grapheme_indices(true) {
        let next = used + face.cluster(cluster);
        if next + ellipsis > width {
            break;
        }
        used = next;
        kept = at + cluster.len();
    }
    (ellipsis <= width).then(|| {
        let text = format!("{}…", line.text[..kept].trim_end());
        Line { text, width: used + ellipsis, rtl: line.rtl }
    })
}

/// Appends a line at baseline `y` between `left` and `right`.
pub(super) fn draw(out: &mut String, line: &Line, align: Align, left: f64, right: f64, y: f64) {
    let (x, anchor) = match (align, line.rtl) {
        (Align::Center, _) => ((left + right) / 2.0, " text-anchor=\"middle\""),
        (Align::Left, _) | (Align::Start, false) => (left, ""),
        (Align::Right, _) | (Align::Start, true) => (right, " text-anchor=\"end\""),
    };
    put!(out, "<text x=\"{}\" y=\"{}\"{anchor}>", Num(x), Num(y));
    // Right-to-left embedding and its end.
    let (open, close) = if line.rtl { ("\u{202b}", "\u{202c}") } else { ("", "") };
    out.push_str(open);
    xml::escape(out, &line.text);
    out.push_str(close);
    out.push_str("</text>");
}

#[cfg(test)]
mod tests;
