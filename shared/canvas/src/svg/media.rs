//! Images and videos, and placeholders for missing ones.

use domain::graph::{Node, NodeType};

use super::Frame;
use super::advance::Face;
use super::card::{TEXT_SIDE_MIN, edge, radius, shade, sheet};
use super::icon::Icon;
use super::look::{Look, Palette, WHITE};
use super::text::{self, Align, Limits};
use super::xml::{Num, Rgb, put};
use crate::geometry::{Fit, has_caption, image_height};

const CAPTION_FACE: Face = Face::bold(12.5);
const LABEL_FACE: Face = Face::bold(13.0);
const HINT_FACE: Face = Face::regular(12.0);
const PILL_FACE: Face = Face::bold(11.0);

/// Line height of a hint.
const HINT_LINE: f64 = 17.0;

/// Most bytes of a hint.
const HINT_BYTES: usize = 900;

/// The area of a card for its image: the upper part, with round corners at the top, and at the bottom if there is no
/// caption.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    width: f64,
    height: f64,
    radius: f64,
    round_bottom: bool,
}

impl Area {
    /// Outline as path data.
    fn outline(self) -> String {
        let Self { width: w, height: h, radius: r, round_bottom } = self;
        let (w, h, r) = (Num(w), Num(h), Num(r));
        let foot = match round_bottom {
            true => format!(
                "V{}A{r} {r} 0 0 1 {} {h}H{r}A{r} {r} 0 0 1 0 {}",
                Num(h.0 - r.0),
                Num(w.0 - r.0),
                Num(h.0 - r.0)
            ),
            false => format!("V{h}H0"),
        };
        format!("M0 {r}A{r} {r} 0 0 1 {r} 0H{}A{r} {r} 0 0 1 {w} {r}{foot}Z", Num(w.0 - r.0))
    }
}

/// The markup before and after the data of a node's image in slot number `index`.
pub(super) fn framed(area: Area, node: &Node, palette: &Palette, index: usize, ratio: f64) -> (String, String) {
    let Area { width, height, .. } = area;
    let (fit, ground) = match Fit::new(&node.title, (node.width, node.height), ratio) {
        // As players do.
        _ if node.kind == NodeType::Video => ("xMidYMid meet", palette.night),
        Fit::Stretched => ("none", palette.mist),
        Fit::Cropped => ("xMidYMid slice", palette.mist),
        Fit::Contained => ("xMidYMid meet", palette.mist),
    };
    let (width, height) = (Num(width), Num(height));
    let mut before = String::new();
    put!(
        &mut before,
        "<clipPath id=\"clip-{index}\"><path d=\"{}\"/></clipPath><g clip-path=\"url(#clip-{index})\">\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\
         <image width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"{fit}\" xlink:href=\"",
        area.outline(),
        ground
    );
    (before, "\"/></g>".to_owned())
}

/// Returns `true` if the card of an image node cuts off a visible part of an image with this ratio.
pub(super) fn crops(look: &Look<'_>, frame: Frame, ratio: f64) -> bool {
    Fit::new(look.title, (frame.width, frame.height), ratio) == Fit::Cropped
}

/// Draws a placeholder where an image is missing.
pub(super) fn absent(out: &mut String, palette: &Palette, area: Area, label: &str) {
    put!(out, "<path d=\"{}\" fill=\"{}\"/>", area.outline(), palette.mist);
    stand_in(out, palette, area, Icon::Image, (label, palette.muted), "");
}

/// The part above the caption, and whether there is a caption.
fn split(look: &Look<'_>, frame: Frame) -> (Area, bool) {
    let size = (frame.width, frame.height);
    let (caption, height) = (has_caption(look.title, size), image_height(look.title, size));
    (Area { width: frame.width, height, radius: radius(frame), round_bottom: !caption }, caption)
}

pub(super) fn image(out: &mut String, look: &Look<'_>, frame: Frame) -> Option<(usize, Area)> {
    let (area, caption) = split(look, frame);
    if !look.shows_asset {
        empty(out, look, frame, area);
        caption_line(out, look, frame, caption, look.palette.ink);
        return None;
    }
    shade(out, look, frame);
    sheet(out, frame, Some(look.palette.paper), look.palette.line, false);
    let slot = out.len();
    sheet(out, frame, None, edge(look), false);
    pill(out, look, area);
    caption_line(out, look, frame, caption, look.palette.ink);
    Some((slot, area))
}

/// A slot that waits for its image, or whose image was not made.
fn empty(out: &mut String, look: &Look<'_>, frame: Frame, area: Area) {
    let palette = look.palette;
    let (icon, label, strong, soft) = match look.status {
        Some(status) => {
            let (strong, soft) = palette.stage(status.stage);
            (Icon::Stage(status.stage), status.label, strong, soft)
        }
        None => (
            Icon::Image,
            if look.is_placeholder { "Placeholder" } else { "Empty slot" },
            palette.muted,
            palette.ground.mix(palette.paper, 0.5),
        ),
    };
    let edge = look.color.unwrap_or(if look.status.is_some() { strong.mix(palette.paper, 0.45) } else { palette.grey });
    sheet(out, frame, Some(soft), edge, true);
    stand_in(out, palette, area, icon, (label, strong), look.prompt);
}

/// An icon with a label and a hint below, centered in an area; as much of it as fits.
fn stand_in(out: &mut String, palette: &Palette, area: Area, icon: Icon, (label, color): (&str, Rgb), hint: &str) {
    let Area { width, height, .. } = area;
    let pad = (width * 0.08).min(20.0);
    // In full or not at all: the icon alone is clearer than the beginning of a word.
    let label = text::single(label, LABEL_FACE, f64::INFINITY).filter(|line| line.width <= width - 2.0 * pad);
    let lines = ((height - 120.0) / HINT_LINE).clamp(0.0, 3.0) as usize;
    let limits = Limits { width: width - 2.0 * pad, lines, bytes: HINT_BYTES };
    let hint = text::wrap(hint, HINT_FACE, limits).lines;
    // The icon's 24 units, a gap, the label, the hint's lines.
    let signed = height >= 40.0 && width >= 40.0;
    let labelled = label.is_some() && height >= if signed { 64.0 } else { TEXT_SIDE_MIN };
    let tall = if signed { 24.0 } else { 0.0 } + if labelled { 24.0 } else { 0.0 } + HINT_LINE * hint.len() as f64;
    let mut y = (height - tall) / 2.0;
    if signed {
        icon.draw(out, width / 2.0, y + 12.0, color);
        y += 24.0;
    }
    let Some(label) = label.filter(|_| labelled) else { return };
    put!(out, "<g font-size=\"{}\" font-weight=\"bold\" fill=\"{color}\">", Num(LABEL_FACE.size));
    text::draw(out, &label, Align::Center, pad, width - pad, y + if signed { 21.0 } else { 16.0 });
    out.push_str("</g>");
    if !hint.is_empty() {
        put!(out, "<g font-size=\"{}\" fill=\"{}\">", Num(HINT_FACE.size), palette.muted);
        for (line, number) in hint.iter().zip(1_u8..) {
            text::draw(out, line, Align::Center, pad, width - pad, y + 24.0 + HINT_LINE * f64::from(number));
        }
        out.push_str("</g>");
    }
}

/// Status of the work on a node that already shows something.
fn pill(out: &mut String, look: &Look<'_>, area: Area) {
    let Some(status) = look.status.filter(|_| area.height >= 48.0) else { return };
    let Some(line) = text::single(status.label, PILL_FACE, area.width - 52.0).filter(|line| line.text == status.label)
    else {
        return;
    };
    let (strong, soft) = look.palette.stage(status.stage);
    put!(
        out,
        "<g transform=\"translate(10 10)\" font-size=\"{}\" font-weight=\"bold\" fill=\"{strong}\">\
         <rect width=\"{}\" height=\"22\" rx=\"11\" fill=\"{soft}\" stroke=\"{strong}\" stroke-opacity=\".35\"/>\
         <circle cx=\"12\" cy=\"11\" r=\"3.5\"/>",
        Num(PILL_FACE.size),
        Num(line.width + 32.0)
    );
    text::draw(out, &line, Align::Start, 21.0, 21.0, 15.0);
    out.push_str("</g>");
}

fn caption_line(out: &mut String, look: &Look<'_>, frame: Frame, caption: bool, color: Rgb) {
    if !caption {
        return;
    }
    let Some(line) = text::single(look.title, CAPTION_FACE, frame.width - 24.0) else { return };
    put!(
        out,
        "<svg width=\"{}\" height=\"{}\" font-size=\"{}\" font-weight=\"bold\" fill=\"{color}\">",
        Num(frame.width),
        Num(frame.height),
        Num(CAPTION_FACE.size)
    );
    text::draw(out, &line, Align::Start, 12.0, frame.width - 12.0, frame.height - 9.5);
    out.push_str("</svg>");
}

/// A dark card with a play mark and the duration. Under them is the poster of the video that the node shows, or, while it shows none,
/// the prompt. A placeholder is drawn as that of an image.
pub(super) fn video(out: &mut String, look: &Look<'_>, frame: Frame) -> Option<(usize, Area)> {
    if look.is_placeholder && look.status.is_none() {
        return image(out, look, frame);
    }
    let (area, caption) = split(look, frame);
    let Area { width, height, .. } = area;
    shade(out, look, frame);
    sheet(out, frame, Some(look.palette.night), edge(look), false);
    let slot = look.shows_asset.then_some((out.len(), area));
    let mark = (width.min(height) / 7.0).min(30.0);
    put!(
        out,
        "<g transform=\"translate({} {})\"><circle r=\"{}\" fill=\"#fff\" fill-opacity=\".94\"/>\
         <path d=\"M{} {}L{} 0L{} {}Z\" fill=\"{}\"/></g>",
        Num(width / 2.0),
        Num(height / 2.0),
        Num(mark),
        Num(-0.3 * mark),
        Num(-0.45 * mark),
        Num(0.5 * mark),
        Num(-0.3 * mark),
        Num(0.45 * mark),
        look.palette.night
    );
    let soft = look.palette.night.mix(WHITE, 0.62);
    let pad = (width * 0.08).min(24.0);
    // As many lines as fit between the mark and the corner with the duration.
    let lines = ((height / 2.0 - mark - 40.0) / HINT_LINE).clamp(0.0, 2.0) as usize;
    let limits = Limits { width: width - 2.0 * pad, lines, bytes: HINT_BYTES };
    let hint = text::wrap(if slot.is_some() { "" } else { look.prompt }, HINT_FACE, limits).lines;
    put!(out, "<g font-size=\"{}\" fill=\"{soft}\">", Num(HINT_FACE.size));
    for (line, number) in hint.iter().zip(1_u8..) {
        text::draw(
            out,
            line,
            Align::Center,
            pad,
            width - pad,
            height / 2.0 + mark + 6.0 + HINT_LINE * f64::from(number),
        );
    }
    let duration = look.duration.map(|seconds| format!("{} s", Num(seconds)));
    let duration = duration.and_then(|text| text::single(&text, HINT_FACE, width - 24.0));
    if let Some(line) = duration.filter(|_| width >= 3.0 * TEXT_SIDE_MIN && height >= 3.0 * TEXT_SIDE_MIN) {
        if slot.is_some() {
            // The poster may be as light as the text.
            let (left, top) = (Num(width - line.width - 18.0), Num(height - 26.0));
            let box_width = Num(line.width + 12.0);
            put!(
                out,
                "<rect x=\"{left}\" y=\"{top}\" width=\"{box_width}\" height=\"20\" rx=\"4\" fill=\"{}\" fill-opacity=\".8\"/>",
                look.palette.night
            );
        }
        text::draw(out, &line, Align::Right, 12.0, width - 12.0, height - 12.0);
    }
    out.push_str("</g>");
    pill(out, look, area);
    if caption {
        put!(out, "<path d=\"M0 {}H{}\" stroke=\"#fff\" stroke-opacity=\".12\"/>", Num(height), Num(width));
    }
    caption_line(out, look, frame, caption, WHITE);
    slot
}
