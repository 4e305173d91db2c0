//! Text nodes, sticky notes and Sections: text set inside its frame.

use domain::graph::NodeType;

use super::Frame;
use super::advance::Face;
use super::card::{TEXT_SIDE_MIN, edge, fill, radius, shade, sheet, takes_text};
use super::icon::Icon;
use super::look::{Look, Palette, SECTION, ink_on, legible};
use super::text::{self, Limits, Wrapped};
use super::xml::{Num, Rgb, put};
use crate::geometry::SectionTitle;

const TITLE_FACE: Face = Face::bold(12.5);
/// Default font size of a text node.
const TEXT_SIZE: f64 = 15.0;
/// Default font sizes of a note: the largest at which all of its text fits.
const NOTE_SIZES: [f64; 5] = [26.0, 21.0, 17.0, 14.0, 12.0];
/// Font size of a note that is as high as its text needs.
const NOTE_SIZE: f64 = 14.0;
/// Most steps to a height at which the padding is that of the same height.
const PAGES_MAX: usize = 8;
/// Line height in multiples of the font size.
const LEADING: f64 = 1.42;
/// Bytes of everything except the text.
const CARD_BYTES: usize = 900;
/// Least contrast of the color of a text with paper (WCAG 2.2, large text). Below it, the card is dark in the light theme and white in the
/// dark one; above it, the color is made legible.
const CONTRAST_MIN: f64 = 3.0;

/// Background of a text node on which text of its color is legible.
pub(super) fn paper(look: &Look<'_>) -> Rgb {
    match look.color {
        Some(color) if color.contrast(look.palette.paper) < CONTRAST_MIN => look.palette.contrary,
        _ => look.palette.paper,
    }
}

/// Position of text within a frame.
#[derive(Clone, Copy)]
struct Block {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Block {
    fn limits(self, size: f64, bytes: usize) -> Limits {
        // Below the last line only its descenders need room.
        let lines = ((self.bottom - self.top + (LEADING - 1.25) * size) / (LEADING * size)).max(0.0);
        Limits { width: self.right - self.left, lines: lines as usize, bytes }
    }
}

/// A text node or sticky note.
pub(super) fn note(out: &mut String, look: &Look<'_>, frame: Frame, bytes: usize) {
    let ground = fill(look);
    shade(out, look, frame);
    sheet(out, frame, Some(ground), edge(look), false);
    if !takes_text(frame) {
        return;
    }
    let sticky = look.kind == NodeType::Sticky;
    let ink = match look.color.filter(|_| !sticky) {
        Some(color) => legible(color, ground),
        None => ink_on(ground),
    };
    let soft = legible(ink_on(ground).mix(ground, if sticky { 0.3 } else { 0.38 }), ground);
    let Page { pad, title, block } = Page::new(look, frame);
    put!(out, "<svg width=\"{}\" height=\"{}\">", Num(frame.width), Num(frame.height));
    if let Some(line) = title {
        put!(out, "<g font-size=\"{}\" font-weight=\"bold\" fill=\"{soft}\">", Num(TITLE_FACE.size));
        text::draw(out, &line, look.align, block.left, block.right, pad + 10.5);
        out.push_str("</g>");
    }
    if !look.collapsed {
        content(out, look, block, bytes.saturating_sub(CARD_BYTES), (ink, soft));
    }
    out.push_str("</svg>");
    if let Some(status) = look.status {
        let color = ink_on(ground).mix(Palette::on(ground).stage(status.stage).0, 0.8);
        Icon::Stage(status.stage).draw(out, frame.width - pad - 10.0, frame.height - pad - 10.0, color);
    }
}

/// Returns `true` if a part of the text of a text node or sticky note is missing where [`note`] draws it.
pub(super) fn cuts(look: &Look<'_>, frame: Frame) -> bool {
    if look.collapsed || look.content.trim().is_empty() {
        return false;
    }
    !takes_text(frame) || sized(look, Page::new(look, frame).block, usize::MAX).0.cut
}

/// The height at which [`note`] draws the whole text of a text node or sticky note of this width, in its own font size or this one;
/// `None` if it is more than `most`.
pub(super) fn height(look: &Look<'_>, width: f64, font_size: Option<f64>, most: f64) -> Option<f64> {
    let otherwise = if look.kind == NodeType::Sticky { NOTE_SIZE } else { TEXT_SIZE };
    let size = font_size.or(look.font_size).unwrap_or(otherwise);
    let frame = |height| Frame { x: 0.0, y: 0.0, width, height };
    let mut height = most;
    // The padding depends on the height, and what it leaves for the lines on the padding.
    for _ in 0..PAGES_MAX {
        let Page { pad, block, .. } = Page::new(look, frame(height));
        let limits = Limits {
            lines: Page::new(look, frame(most)).block.limits(size, 0).lines,
            ..block.limits(size, usize::MAX)
        };
        let Wrapped { lines, cut } = text::wrap(look.content, Face::regular(size), limits);
        if cut {
            return None;
        }
        let needed = block.top + lines.len() as f64 * LEADING * size - (LEADING - 1.25) * size + pad;
        let needed = needed.max(TEXT_SIDE_MIN).ceil();
        if needed == height {
            break;
        }
        height = needed;
    }
    (height <= most && takes_text(frame(height))).then_some(height)
}

/// The strip of a Section that its title covers; `None` if it shows none.
pub(super) fn title_strip(look: &Look<'_>, frame: Frame) -> Option<Frame> {
    if !takes_text(frame) {
        return None;
    }
    let SectionTitle { font_size: size, pad, baseline } = SectionTitle::new(look.font_size, frame.height);
    let (left, right) = (pad, frame.width - pad);
    let line = text::single(look.title, Face::bold(size), right - left)?;
    let x = match (look.align, line.rtl) {
        (text::Align::Center, _) => (left + right - line.width) / 2.0,
        (text::Align::Left, _) | (text::Align::Start, false) => left,
        (text::Align::Right, _) | (text::Align::Start, true) => right - line.width,
    };
    Some(Frame { x: frame.x + x, y: frame.y + baseline - size, width: line.width, height: 1.25 * size })
}

/// The width at which a Section of this height shows its whole title.
pub(super) fn title_width(look: &Look<'_>, height: f64) -> f64 {
    let SectionTitle { font_size: size, pad, .. } = SectionTitle::new(look.font_size, height);
    let line = text::single(look.title, Face::bold(size), f64::INFINITY);
    line.map_or(0.0, |line| (line.width + 2.0 * pad).ceil())
}

/// The places of title and text within a frame.
struct Page {
    pad: f64,
    title: Option<text::Line>,
    block: Block,
}

impl Page {
    fn new(look: &Look<'_>, frame: Frame) -> Self {
        let pad = (frame.width.min(frame.height) * 0.1).clamp(4.0, 18.0);
        let mut block = Block { left: pad, right: frame.width - pad, top: pad, bottom: frame.height - pad };
        let title = look.given_title().filter(|_| frame.height >= 2.0 * pad + 16.0);
        let title = title.and_then(|title| text::single(title, TITLE_FACE, block.right - block.left));
        if title.is_some() {
            block.top += 24.0;
        }
        Self { pad, title, block }
    }
}

/// The text, or what stands in its place.
fn content(out: &mut String, look: &Look<'_>, block: Block, bytes: usize, (ink, soft): (Rgb, Rgb)) {
    let (wrapped, size, ink) = if look.content.trim().is_empty() {
        // The prompt, or a note that there is no text.
        let text = match (look.prompt, look.kind, look.status) {
            ("", NodeType::Text, Some(status)) => status.label,
            ("", NodeType::Text, None) => "No text yet",
            (prompt, ..) => prompt,
        };
        let face = Face::regular(look.font_size.unwrap_or(13.0).min(18.0));
        (text::wrap(text, face, block.limits(face.size, bytes)), face.size, soft)
    } else {
        let (wrapped, size) = sized(look, block, bytes);
        (wrapped, size, ink)
    };
    if wrapped.lines.is_empty() {
        return;
    }
    put!(out, "<g font-size=\"{}\" fill=\"{ink}\">", Num(size));
    let mut y = block.top + size;
    for line in &wrapped.lines {
        if !line.text.is_empty() {
            text::draw(out, line, look.align, block.left, block.right, y);
        }
        y += LEADING * size;
    }
    out.push_str("</g>");
}

/// The text in its own font size, or in the default of its kind.
fn sized(look: &Look<'_>, block: Block, bytes: usize) -> (Wrapped, f64) {
    let wrap = |size| text::wrap(look.content, Face::regular(size), block.limits(size, bytes));
    match (look.font_size, look.kind) {
        (Some(size), _) => {
            // Even a font size that is too large for a single line shows the beginning of one.
            let fitting = size.min((block.bottom - block.top) / 1.25).max(1.0);
            (wrap(fitting), fitting)
        }
        (None, NodeType::Sticky) => {
            let [largest, smaller @ .., smallest] = NOTE_SIZES;
            let fits = std::iter::once(largest).chain(smaller).find_map(|size| {
                let wrapped = wrap(size);
                (!wrapped.cut && whole_words(look.content, size, block)).then_some((wrapped, size))
            });
            fits.unwrap_or_else(|| (wrap(smallest), smallest))
        }
        (None, _) => (wrap(TEXT_SIZE), TEXT_SIZE),
    }
}

/// Returns `true` if no word at the beginning is wider than a line, so that no word is broken.
fn whole_words(content: &str, size: f64, block: Block) -> bool {
    let face = Face::regular(size);
    let words = content.split_whitespace().take(200);
    words.filter(|word| word.is_ascii()).all(|word| text::fits(word, face, block.right - block.left))
}

/// A Section: a titled frame behind its members. Returns whether a part of its title or text is missing.
pub(super) fn section(out: &mut String, look: &Look<'_>, frame: Frame, bytes: usize) -> bool {
    put!(
        out,
        "<rect width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"1.5\"/>",
        Num(frame.width),
        Num(frame.height),
        Num(radius(frame) * 1.5),
        fill(look),
        edge(look)
    );
    if !takes_text(frame) {
        return !look.title.is_empty() || !look.content.trim().is_empty();
    }
    let SectionTitle { font_size: size, pad, baseline } = SectionTitle::new(look.font_size, frame.height);
    let (left, right) = (pad, frame.width - pad);
    let ink = legible(look.color.unwrap_or(SECTION).mix(look.palette.ink, 0.55), fill(look));
    put!(out, "<svg width=\"{}\" height=\"{}\" fill=\"{ink}\">", Num(frame.width), Num(frame.height));
    let mut y = baseline;
    if let Some(line) = text::single(look.title, Face::bold(size), right - left) {
        put!(out, "<g font-size=\"{}\" font-weight=\"bold\">", Num(size));
        text::draw(out, &line, look.align, left, right, y);
        out.push_str("</g>");
        y += size * 1.2;
    }
    // The title stays in the strip that members usually leave free.
    let small = (size * 0.72).max(11.0);
    let limits = Limits { width: right - left, lines: 2, bytes: bytes.saturating_sub(CARD_BYTES) };
    let Wrapped { lines, cut } = text::wrap(look.content, Face::regular(small), limits);
    let has_room = y + small * LEADING * 2.0 < frame.height;
    let is_cut = cut || !lines.is_empty() && !has_room || !text::fits(look.title, Face::bold(size), right - left);
    if !lines.is_empty() && has_room {
        let soft = legible(ink.mix(fill(look), 0.2), fill(look));
        put!(out, "<g font-size=\"{}\" fill=\"{soft}\">", Num(small));
        for line in &lines {
            text::draw(out, line, look.align, left, right, y);
            y += LEADING * small;
        }
        out.push_str("</g>");
    }
    out.push_str("</svg>");
    is_cut
}
