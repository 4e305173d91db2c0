//! The appearance that a node's fields determine. No other part of the renderer reads metadata.

use std::borrow::Cow;

use domain::canvas::Theme;
use domain::graph::{Node, NodeType, Purpose};
use domain::job::JobStatus;
use domain::metadata::TextAlign;
use serde_json::Number;

use super::text::Align;
use super::xml::Rgb;
use crate::geometry::font_size;

/// Ground of a sticky note without a color, in both themes.
pub(super) const NOTE: Rgb = Rgb(0xff, 0xe4, 0x8a);
/// Color of a Section without one.
pub(super) const SECTION: Rgb = Rgb(0x5c, 0x7c, 0xfa);

/// Dark and light letters and marks on grounds that are the same in both themes.
pub(super) const INK: Rgb = Rgb(0x1f, 0x24, 0x2b);
pub(super) const WHITE: Rgb = Rgb(0xff, 0xff, 0xff);
const BLACK: Rgb = Rgb(0, 0, 0);

/// Least contrast of text (WCAG 2.2, level AA). On every ground, black or white has it.
const CONTRAST_MIN: f64 = 4.5;
/// Part of the strongest color that is added at a time to a color that is not legible.
const STEP: f64 = 0.05;

/// The colors of a theme. Text and dark grounds are those of the console (`ui/base.css` and `board/nodes.module.css` in
/// `gateway/console/src`).
pub(super) struct Palette {
    /// Behind all nodes.
    pub ground: Rgb,
    /// Cards.
    pub paper: Rgb,
    /// Cards of text that is not legible on paper.
    pub contrary: Rgb,
    /// Behind images.
    pub mist: Rgb,
    /// Edges of cards.
    pub line: Rgb,
    /// Edges of empty slots.
    pub grey: Rgb,
    /// Hints.
    pub muted: Rgb,
    /// Text.
    pub ink: Rgb,
    /// Cards of videos.
    pub night: Rgb,
    /// Their edges.
    pub night_edge: Rgb,
    pub shadow: Rgb,
    pub shadow_opacity: f64,
    /// Strong and soft color of work that waits, runs and has failed.
    waiting: (Rgb, Rgb),
    working: (Rgb, Rgb),
    failed: (Rgb, Rgb),
    /// Connections, by purpose.
    flow: Rgb,
    reference: Rgb,
    list: Rgb,
    first_frame: Rgb,
    last_frame: Rgb,
}

static LIGHT: Palette = Palette {
    ground: Rgb(0xf6, 0xf7, 0xf9),
    paper: WHITE,
    contrary: Rgb(0x22, 0x27, 0x31),
    mist: Rgb(0xf1, 0xf3, 0xf5),
    line: Rgb(0xd8, 0xdd, 0xe3),
    grey: Rgb(0xad, 0xb5, 0xbd),
    muted: Rgb(0x56, 0x60, 0x6c),
    ink: INK,
    night: Rgb(0x22, 0x27, 0x31),
    night_edge: Rgb(0x22, 0x27, 0x31),
    shadow: INK,
    shadow_opacity: 0.06,
    waiting: (Rgb(0x8a, 0x5a, 0x00), Rgb(0xff, 0xf6, 0xdd)),
    working: (Rgb(0x1a, 0x66, 0xc2), Rgb(0xe8, 0xf2, 0xff)),
    failed: (Rgb(0xc4, 0x2b, 0x2b), Rgb(0xff, 0xee, 0xee)),
    flow: Rgb(0x8a, 0x94, 0xa1),
    reference: Rgb(0x7a, 0x4f, 0xe0),
    list: Rgb(0x0b, 0x96, 0x6b),
    first_frame: Rgb(0x1f, 0x7a, 0xe0),
    last_frame: Rgb(0xe0, 0x66, 0x1a),
};

static DARK: Palette = Palette {
    ground: Rgb(0x0f, 0x12, 0x16),
    paper: Rgb(0x1d, 0x22, 0x2a),
    contrary: WHITE,
    mist: Rgb(0x12, 0x16, 0x1b),
    line: Rgb(0x2a, 0x31, 0x3b),
    grey: Rgb(0x66, 0x71, 0x7f),
    muted: Rgb(0x9b, 0xa6, 0xb4),
    ink: Rgb(0xee, 0xf1, 0xf5),
    night: Rgb(0x14, 0x18, 0x1f),
    night_edge: Rgb(0x2a, 0x31, 0x3b),
    shadow: BLACK,
    shadow_opacity: 0.4,
    waiting: (Rgb(0xf2, 0xc3, 0x5c), Rgb(0x33, 0x29, 0x0f)),
    working: (Rgb(0x8f, 0xc0, 0xff), Rgb(0x14, 0x24, 0x3a)),
    failed: (Rgb(0xff, 0x96, 0x96), Rgb(0x39, 0x1a, 0x1c)),
    flow: Rgb(0x67, 0x72, 0x7f),
    reference: Rgb(0xa7, 0x95, 0xff),
    list: Rgb(0x4c, 0xc4, 0xb3),
    first_frame: Rgb(0x8f, 0xc0, 0xff),
    last_frame: Rgb(0xf0, 0xa0, 0x70),
};

impl Palette {
    pub(super) fn new(theme: Theme) -> &'static Self {
        match theme {
            Theme::Light => &LIGHT,
            Theme::Dark => &DARK,
        }
    }

    /// The colors of the theme that has grounds like this one.
    pub(super) fn on(ground: Rgb) -> &'static Self {
        if ink_on(ground) == WHITE { &DARK } else { &LIGHT }
    }

    /// Strong and soft color of a stage.
    pub(super) fn stage(&self, stage: Stage) -> (Rgb, Rgb) {
        match stage {
            Stage::Waiting => self.waiting,
            Stage::Working => self.working,
            Stage::Failed => self.failed,
            Stage::Stopped => (self.muted, self.mist),
        }
    }

    /// Color of the connections of a purpose.
    pub(super) fn purpose(&self, purpose: Purpose) -> Rgb {
        match purpose {
            Purpose::Flow => self.flow,
            Purpose::Reference => self.reference,
            Purpose::List => self.list,
            Purpose::FirstFrame => self.first_frame,
            Purpose::LastFrame => self.last_frame,
        }
    }
}

/// Stage of the work on a node's output, as far as a render distinguishes stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not started.
    Waiting,
    /// Running.
    Working,
    /// Ended without an output.
    Failed,
    /// Canceled or expired.
    Stopped,
}

/// Work on a node's output, unless it succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status {
    /// Determines colors and icon.
    pub stage: Stage,
    /// Name of the status.
    pub label: &'static str,
}

impl Status {
    fn from_job(status: JobStatus) -> Option<Self> {
        let (stage, label) = match status {
            JobStatus::Preparing => (Stage::Waiting, "Preparing"),
            JobStatus::Queued => (Stage::Waiting, "Queued"),
            JobStatus::Running => (Stage::Working, "Running"),
            JobStatus::Finalizing => (Stage::Working, "Finalizing"),
            JobStatus::Canceling => (Stage::Working, "Canceling"),
            JobStatus::Failed => (Stage::Failed, "Failed"),
            JobStatus::Canceled => (Stage::Stopped, "Canceled"),
            JobStatus::Expired => (Stage::Stopped, "Expired"),
            JobStatus::Succeeded => return None,
        };
        Some(Self { stage, label })
    }
}

/// Appearance of a node.
pub(super) struct Look<'a> {
    pub palette: &'static Palette,
    pub kind: NodeType,
    pub section: bool,
    pub title: &'a str,
    /// Alternative text of the picture that it shows.
    pub alt: Option<Cow<'a, str>>,
    pub content: &'a str,
    pub prompt: &'a str,
    pub color: Option<Rgb>,
    pub font_size: Option<f64>,
    pub align: Align,
    pub collapsed: bool,
    pub status: Option<Status>,
    /// Duration of a video, in seconds.
    pub duration: Option<f64>,
    pub shows_asset: bool,
    /// It is to stay empty for now.
    pub is_placeholder: bool,
}

impl<'a> Look<'a> {
    pub(super) fn from_node(node: &'a Node, palette: &'static Palette) -> Self {
        let metadata = &*node.metadata;
        Self {
            palette,
            kind: node.kind,
            section: node.is_section(),
            title: node.title.trim(),
            alt: node.shows_picture().then(|| node.alt()),
            content: node.content().unwrap_or_default(),
            prompt: metadata.prompt.as_deref().unwrap_or_default(),
            color: metadata.color.as_deref().and_then(Rgb::parse),
            font_size: font_size(node),
            align: match metadata.text_align {
                Some(TextAlign::Left) => Align::Left,
                Some(TextAlign::Center) => Align::Center,
                Some(TextAlign::Right) => Align::Right,
                None => Align::Start,
            },
            collapsed: metadata.collapsed == Some(true),
            status: node.job().and_then(|job| Status::from_job(job.status)),
            duration: node.duration_seconds(),
            shows_asset: node.asset.is_some(),
            is_placeholder: node.asset.is_none() && metadata.placeholder == Some(true),
        }
    }

    /// The same where colors do not matter: sizes are equal in all themes.
    pub(super) fn unpainted(node: &'a Node) -> Self {
        Self::from_node(node, &LIGHT)
    }

    /// The title, unless it is the default of the node's type and there is other content to show.
    pub(super) fn given_title(&self) -> Option<&'a str> {
        let default = self.title.eq_ignore_ascii_case(self.kind.as_str()) && !self.content.is_empty();
        (!self.title.is_empty() && !default).then_some(self.title)
    }
}

/// Drawing order of a node: a higher value is painted later. Finite for any stored value.
pub(super) fn depth(node: &Node) -> f64 {
    node.metadata.z_index.as_ref().and_then(Number::as_f64).unwrap_or(0.0)
}

/// Dark or light ink, whichever is legible on `ground`.
pub(super) fn ink_on(ground: Rgb) -> Rgb {
    [INK, WHITE].into_iter().find(|ink| ink.contrast(ground) >= CONTRAST_MIN).unwrap_or(BLACK)
}

/// `color` with as much ink as it needs to be legible on `ground`.
pub(super) fn legible(color: Rgb, ground: Rgb) -> Rgb {
    let (ink, mut share) = (ink_on(ground), 0.0);
    while share < 1.0 && color.mix(ink, share).contrast(ground) < CONTRAST_MIN {
        share += STEP;
    }
    color.mix(ink, share.min(1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hints_and_states_are_legible_in_both_themes() {
        for palette in [&LIGHT, &DARK] {
            for text in [palette.ink, palette.muted] {
                for ground in [palette.ground, palette.paper, palette.mist] {
                    assert!(text.contrast(ground) >= CONTRAST_MIN, "{text} on {ground}");
                }
            }
            for stage in [Stage::Waiting, Stage::Working, Stage::Failed, Stage::Stopped] {
                let (strong, soft) = palette.stage(stage);
                for text in [strong, palette.muted] {
                    assert!(text.contrast(soft) >= CONTRAST_MIN, "{stage:?}: {text} on {soft}");
                }
            }
            // Graphics need less.
            for purpose in Purpose::ALL {
                assert!(palette.purpose(*purpose).contrast(palette.ground) >= 2.8, "{purpose}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_color_becomes_legible_on_every_ground(color: [u8; 3], ground: [u8; 3]) {
            let ([r, g, b], ground) = (color, Rgb(ground[0], ground[1], ground[2]));
            let color = Rgb(r, g, b);
            prop_assert!(ink_on(ground).contrast(ground) >= CONTRAST_MIN);
            prop_assert!(legible(color, ground).contrast(ground) >= CONTRAST_MIN);
            prop_assert!(color.contrast(ground) < CONTRAST_MIN || legible(color, ground) == color);
        }
    }
}
