//! The frame of a node, in one of three levels of detail.

use domain::graph::{Node, NodeType, Position};
use domain::id::NodeId;

use super::Frame;
use super::advance::Face;
use super::look::{INK, Look, NOTE, Palette, SECTION, ink_on};
use super::media::{self, Area};
use super::note;
use super::text::{self, Align};
use super::xml::{self, Num, Rgb, put};
use crate::placement;

const TITLE_FACE: Face = Face::bold(12.5);
const EMPTY_FACE: Face = Face::regular(16.0);

/// No text is drawn below this width or height: only two letters and an ellipsis would fit.
pub(super) const TEXT_SIDE_MIN: f64 = 28.0;

/// Radius of a frame's corners.
pub(super) fn radius(frame: Frame) -> f64 {
    (frame.width.min(frame.height) / 8.0).min(12.0)
}

/// Returns `true` if there is room for text.
pub(super) fn takes_text(frame: Frame) -> bool {
    frame.width >= TEXT_SIDE_MIN && frame.height >= TEXT_SIDE_MIN
}

/// Fill of a frame.
pub(super) fn fill(look: &Look<'_>) -> Rgb {
    match (look.kind, look.section) {
        (_, true) => look.palette.ground.mix(look.color.unwrap_or(SECTION), 0.07),
        (NodeType::Image, _) => look.palette.mist,
        (NodeType::Video, _) => look.palette.night,
        (NodeType::Sticky, _) => look.color.unwrap_or(NOTE),
        (NodeType::Text, _) => note::paper(look),
    }
}

/// Stroke of a frame.
pub(super) fn edge(look: &Look<'_>) -> Rgb {
    match (look.kind, look.section) {
        (_, true) => look.palette.ground.mix(look.color.unwrap_or(SECTION), 0.4),
        (NodeType::Sticky, _) => fill(look).mix(INK, 0.12),
        (NodeType::Image, _) => look.color.unwrap_or(look.palette.line),
        (NodeType::Video, _) => look.color.unwrap_or(look.palette.night_edge),
        (NodeType::Text, _) => look.palette.line,
    }
}

/// A frame without content.
pub(super) fn plain(out: &mut String, look: &Look<'_>, frame: Frame) {
    let Frame { x, y, width, height } = frame;
    put!(
        out,
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"{}\"/>",
        Num(x),
        Num(y),
        Num(width),
        Num(height),
        Num(radius(frame)),
        fill(look)
    );
}

/// A frame with its title.
pub(super) fn titled(out: &mut String, look: &Look<'_>, frame: Frame) {
    plain(out, look, frame);
    let Some(line) = text::single(look.title, TITLE_FACE, frame.width - 16.0).filter(|_| takes_text(frame)) else {
        return;
    };
    put!(out, "<g font-size=\"{}\" font-weight=\"bold\" fill=\"{}\">", Num(TITLE_FACE.size), ink_on(fill(look)));
    text::draw(out, &line, Align::Start, frame.x + 8.0, frame.x + frame.width - 8.0, frame.y + 18.0);
    out.push_str("</g>");
}

/// The attributes by which a node can be found in the document.
pub(super) fn id(node: &NodeId, label: Option<i32>) -> String {
    match label {
        Some(label) => format!("id=\"node-{node}\" data-label=\"{label}\""),
        None => format!("id=\"node-{node}\""),
    }
}

/// A node in full detail with the attributes `id`, its text within `bytes`, and the position in the document at which its image is
/// inserted, if it shows one.
pub(super) fn full(out: &mut String, id: &str, look: &Look<'_>, frame: Frame, bytes: usize) -> Option<(usize, Area)> {
    let role = match look.alt.as_deref() {
        None => "",
        Some("") => " aria-hidden=\"true\"",
        Some(_) => " role=\"img\"",
    };
    put!(out, "<g {id}{role} transform=\"translate({} {})\">", Num(frame.x), Num(frame.y));
    let title = look.alt.as_deref().unwrap_or(look.title);
    // A long one leaves room for the picture.
    let title = &title[..title.floor_char_boundary(bytes / 4)];
    if !title.is_empty() {
        out.push_str("<title>");
        xml::escape(out, title);
        out.push_str("</title>");
    }
    let at = Frame { x: 0.0, y: 0.0, ..frame };
    let slot = match (look.kind, look.section) {
        (_, true) => {
            note::section(out, look, at, bytes);
            None
        }
        (NodeType::Image, _) => media::image(out, look, at),
        (NodeType::Video, _) => media::video(out, look, at),
        (NodeType::Text | NodeType::Sticky, _) => {
            note::note(out, look, at, bytes);
            None
        }
    };
    out.push_str("</g>");
    slot
}

/// Returns `true` if a part of the text of a node is missing on its card, or of a Section its title or text.
pub(crate) fn cuts_text(node: &Node) -> bool {
    let (look, frame) = (Look::unpainted(node), Frame::from_node(node));
    match (look.kind, look.section) {
        (_, true) => note::section(&mut String::new(), &look, frame, usize::MAX),
        (NodeType::Text | NodeType::Sticky, _) => note::cuts(&look, frame),
        (NodeType::Image | NodeType::Video, _) => false,
    }
}

/// The height at which a text node or sticky note shows all its text, in its own font size or this one; `None` if it is more than
/// `most`.
pub(crate) fn text_height(node: &Node, font_size: Option<f64>, most: f64) -> Option<f64> {
    note::height(&Look::unpainted(node), node.width, font_size, most)
}

/// The least and the greatest font size, in whole units, to which the font of a text is made smaller.
pub(crate) const FONT_MIN: u32 = 8;
const FONT_MAX: u32 = 1000;

/// The largest of the smaller fonts at which a text is at most so high, and its height then.
pub(crate) fn smaller_font(node: &Node, most: f64) -> Option<(u32, f64)> {
    let (mut fits, mut is_too_large) = (FONT_MIN, FONT_MAX);
    let mut height = text_height(node, Some(fits.into()), most)?;
    while is_too_large - fits > 1 {
        let middle = fits.midpoint(is_too_large);
        match text_height(node, Some(middle.into()), most) {
            Some(found) => (fits, height) = (middle, found),
            None => is_too_large = middle,
        }
    }
    Some((fits, height))
}

/// The font size at which a text that is cut is shown whole in its present frame; `None` if it is shown whole, or cannot be.
pub fn whole_font(node: &Node) -> Option<u32> {
    if !cuts_text(node) {
        return None;
    }
    smaller_font(node, node.height).map(|(font, _)| font)
}

/// The width at which a Section shows its whole title.
pub(crate) fn title_width(section: &Node) -> f64 {
    note::title_width(&Look::unpainted(section), section.height)
}

/// The strip of a Section that its title covers; `None` if it shows none.
pub(crate) fn title_strip(section: &Node) -> Option<placement::Frame> {
    let Frame { x, y, width, height } = note::title_strip(&Look::unpainted(section), Frame::from_node(section))?;
    Some(placement::Frame::new(Position { x, y }, width, height))
}

/// Returns `true` if the card of a node that shows an image of this ratio, width over height, cuts off a visible part of it.
pub(crate) fn crops_image(node: &Node, ratio: f64) -> bool {
    node.kind == NodeType::Image && media::crops(&Look::unpainted(node), Frame::from_node(node), ratio)
}

/// Shadow under a card.
pub(super) fn shade(out: &mut String, look: &Look<'_>, frame: Frame) {
    put!(
        out,
        "<rect y=\"3\" width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"{}\" fill-opacity=\"{}\"/>",
        Num(frame.width),
        Num(frame.height),
        Num(radius(frame)),
        look.palette.shadow,
        Num(look.palette.shadow_opacity)
    );
}

/// A frame with fill and stroke.
pub(super) fn sheet(out: &mut String, frame: Frame, fill: Option<Rgb>, edge: Rgb, dashed: bool) {
    put!(
        out,
        "<rect width=\"{}\" height=\"{}\" rx=\"{}\" stroke=\"{edge}\"",
        Num(frame.width),
        Num(frame.height),
        Num(radius(frame))
    );
    match fill {
        Some(fill) => put!(out, " fill=\"{fill}\""),
        None => out.push_str(" fill=\"none\""),
    }
    if dashed {
        out.push_str(" stroke-width=\"1.5\" stroke-dasharray=\"6 5\"");
    }
    out.push_str("/>");
}

/// The drawing of an empty canvas.
pub(super) fn nothing(out: &mut String, palette: &Palette, width: f64, height: f64) {
    let frame = Frame { x: 0.0, y: 0.0, width, height };
    sheet(out, frame, None, palette.line, true);
    put!(out, "<g font-size=\"{}\" fill=\"{}\">", Num(EMPTY_FACE.size), palette.muted);
    if let Some(line) = text::single("This canvas is empty", EMPTY_FACE, width) {
        text::draw(out, &line, Align::Center, 0.0, width, height / 2.0 + 5.0);
    }
    out.push_str("</g>");
}
