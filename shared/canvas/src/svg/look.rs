//! The appearance that a node's fields determine. No other part of the renderer reads metadata.

use std::borrow::Cow;

use domain::graph::{Node, NodeType};
use domain::job::JobStatus;
use domain::metadata::TextAlign;
use serde_json::Number;

use super::text::Align;
use super::xml::Rgb;
use crate::geometry::font_size;

/// Paper, ink and the grays between.
pub(super) mod palette {
    use super::Rgb;

    pub(in crate::svg) const GROUND: Rgb = Rgb(0xf6, 0xf7, 0xf9);
    pub(in crate::svg) const PAPER: Rgb = Rgb(0xff, 0xff, 0xff);
    pub(in crate::svg) const MIST: Rgb = Rgb(0xf1, 0xf3, 0xf5);
    pub(in crate::svg) const LINE: Rgb = Rgb(0xd8, 0xdd, 0xe3);
    pub(in crate::svg) const GREY: Rgb = Rgb(0xad, 0xb5, 0xbd);
    pub(in crate::svg) const MUTED: Rgb = Rgb(0x6b, 0x74, 0x80);
    pub(in crate::svg) const INK: Rgb = Rgb(0x1f, 0x24, 0x2b);
    pub(in crate::svg) const NIGHT: Rgb = Rgb(0x22, 0x27, 0x31);
    pub(in crate::svg) const NOTE: Rgb = Rgb(0xff, 0xe4, 0x8a);
    pub(in crate::svg) const SECTION: Rgb = Rgb(0x5c, 0x7c, 0xfa);
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

    /// Strong and soft color.
    pub(super) fn colors(self) -> (Rgb, Rgb) {
        match self.stage {
            Stage::Waiting => (Rgb(0x9a, 0x6a, 0x00), Rgb(0xff, 0xf6, 0xdd)),
            Stage::Working => (Rgb(0x1a, 0x66, 0xc2), Rgb(0xe8, 0xf2, 0xff)),
            Stage::Failed => (Rgb(0xc4, 0x2b, 0x2b), Rgb(0xff, 0xee, 0xee)),
            Stage::Stopped => (palette::MUTED, palette::MIST),
        }
    }
}

/// Appearance of a node.
pub(super) struct Look<'a> {
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
    pub(super) fn from_node(node: &'a Node) -> Self {
        let metadata = &*node.metadata;
        Self {
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

/// Black or white, whichever has more contrast on `ground`.
pub(super) fn ink_on(ground: Rgb) -> Rgb {
    if palette::INK.contrast(ground) >= palette::PAPER.contrast(ground) { palette::INK } else { palette::PAPER }
}
