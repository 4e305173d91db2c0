//! `resize` (`docs/reference/actions.md#resize`).

use serde::Deserialize;

use super::cost::Cost;
use super::parts::{Definition, anchor, color, image, integer, select};
use super::{DefinedAction, Parameter};
use crate::Violation;
use crate::limits::OUTPUT_SIDE_MAX;

pub(super) fn action() -> DefinedAction {
    let side = |id, title| Parameter {
        description: "In pixels. When omitted, it follows from the other side and the picture's ratio.".into(),
        ..integer(id, title, 1, OUTPUT_SIDE_MAX)
    };
    Definition {
        slug: "resize",
        title: "Resize",
        summary: "Scale a picture to a width, a height, or a box.",
        cost: Cost::RESAMPLE,
        inputs: image("The picture to scale."),
        output: "The scaled picture.",
        parameters: [
            side("width", "Width"),
            side("height", "Height"),
            Parameter {
                description: "How the picture is fitted to the requested box.".into(),
                ..select(
                    "fit",
                    "Fit",
                    "inside",
                    &[
                        ("inside", "Inside the box"),
                        ("cover", "Cover the box, cut the rest"),
                        ("contain", "Contain in the box, pad the rest"),
                        ("fill", "Fill the box, ratio given up"),
                        ("outside", "Outside the box"),
                    ],
                )
            },
            anchor("center"),
            Parameter {
                description: "Color of the area that the picture does not cover.".into(),
                ..color("background", "Background", "#00000000")
            },
            Parameter {
                description: "Whether pixels may be scaled up.".into(),
                ..select("enlarge", "Enlarge", "yes", &[("yes", "Yes"), ("no", "No")])
            },
        ],
        check: |params| match (params.get("width"), params.get("height")) {
            (None, None) => vec![Violation::new("params.width", "width, height or both are required")],
            _ => Vec::new(),
        },
    }
    .build()
}

/// Parameters of `resize`, normalized.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ResizeParams {
    /// The width in pixels.
    pub width: Option<u32>,
    /// The height in pixels.
    pub height: Option<u32>,
    /// `inside`, `cover`, `contain`, `fill` or `outside`.
    pub fit: String,
    /// One of the nine anchors.
    pub anchor: String,
    /// The color of the background, as the request gives it.
    pub background: String,
    /// `yes` or `no`.
    pub enlarge: String,
    /// `auto`, `png`, `jpeg` or `webp`.
    pub format: String,
    /// The quality of a lossy encoding, from 1 to 100.
    pub quality: u8,
}
