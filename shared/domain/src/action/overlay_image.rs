//! `overlay-image` (`docs/reference/actions.md#overlay-image`).

use serde::Deserialize;
use serde_json::json;

use super::cost::Cost;
use super::parts::{Definition, anchor, no_check, number, select, whole};
use super::{ActionInput, DefinedAction, Parameter};

pub(super) fn action() -> DefinedAction {
    let offset = |id, title| Parameter {
        description: "In pixels. Positive values move right and down, whatever the anchor.".into(),
        default: Some(json!(0)),
        ..whole(id, title)
    };
    Definition {
        slug: "overlay-image",
        title: "Overlay image",
        summary: "Lay one picture over another one, such as a logo or a watermark.",
        cost: Cost::MIX,
        inputs: vec![
            ActionInput {
                id: "image".into(),
                title: "Image".into(),
                description: "The picture below, whose size the result has.".into(),
            },
            ActionInput { id: "overlay".into(), title: "Overlay".into(), description: "The picture on top.".into() },
        ],
        output: "The picture with the overlay on it.",
        parameters: [
            Parameter { description: "Position of the overlay.".into(), ..anchor("bottom-right") },
            offset("offsetX", "Offset to the right"),
            offset("offsetY", "Offset down"),
            Parameter {
                description: "Width of the overlay, in percent of the picture's width.".into(),
                ..number("scale", "Scale", (0.1, 400.0), 25.0)
            },
            Parameter {
                description: "Opacity of the overlay in percent, multiplied with its own alpha.".into(),
                ..number("opacity", "Opacity", (0.0, 100.0), 100.0)
            },
            Parameter {
                description: "Rotation of the overlay about its center, in degrees clockwise.".into(),
                ..number("rotate", "Rotate", (-360.0, 360.0), 0.0)
            },
            Parameter {
                description: "How colors mix (W3C Compositing and Blending).".into(),
                ..select(
                    "blend",
                    "Blend",
                    "normal",
                    &[
                        ("normal", "Normal"),
                        ("multiply", "Multiply"),
                        ("screen", "Screen"),
                        ("overlay", "Overlay"),
                        ("darken", "Darken"),
                        ("lighten", "Lighten"),
                    ],
                )
            },
        ],
        check: no_check,
    }
    .build()
}

/// Parameters of `overlay-image`, normalized.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OverlayImageParams {
    /// One of the nine anchors.
    pub anchor: String,
    /// The x offset in pixels.
    pub offset_x: i64,
    /// The y offset in pixels.
    pub offset_y: i64,
    /// Percent, 0.1 to 400.
    pub scale: f64,
    /// Percent, 0 to 100.
    pub opacity: f64,
    /// Degrees clockwise, -360 to 360.
    pub rotate: f64,
    /// `normal`, `multiply`, `screen`, `overlay`, `darken` or `lighten`.
    pub blend: String,
    /// `auto`, `png`, `jpeg` or `webp`.
    pub format: String,
    /// The quality of a lossy encoding, from 1 to 100.
    pub quality: u8,
}
