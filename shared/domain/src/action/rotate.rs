//! `rotate` (`docs/reference/actions.md#rotate`).

use serde::Deserialize;

use super::cost::Cost;
use super::parts::{Definition, color, image, no_check, plain, select};
use super::{DefinedAction, Parameter, ParameterType};

pub(super) fn action() -> DefinedAction {
    Definition {
        slug: "rotate",
        title: "Rotate",
        summary: "Turn a picture by any angle, or mirror it.",
        cost: Cost::RESAMPLE,
        inputs: image("The picture to turn."),
        output: "The turned picture.",
        parameters: [
            Parameter {
                description: "Angle in degrees clockwise. Multiples of 90 are lossless.".into(),
                required: true,
                min: Some(-360.0),
                max: Some(360.0),
                ..plain("degrees", "Degrees", ParameterType::Number)
            },
            Parameter {
                description: "Whether the result grows to hold the whole turned picture or keeps the picture's size."
                    .into(),
                ..select("expand", "Expand", "yes", &[("yes", "Yes"), ("no", "No")])
            },
            Parameter {
                description: "Mirrors the picture before it is turned.".into(),
                ..select(
                    "flip",
                    "Flip",
                    "none",
                    &[("none", "None"), ("horizontal", "Horizontal"), ("vertical", "Vertical"), ("both", "Both")],
                )
            },
            Parameter {
                description: "Color of the area that the turned picture does not cover.".into(),
                ..color("background", "Background", "#00000000")
            },
        ],
        check: no_check,
    }
    .build()
}

/// Parameters of `rotate`, normalized.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RotateParams {
    /// Clockwise, -360 to 360.
    pub degrees: f64,
    /// `yes` or `no`.
    pub expand: String,
    /// `none`, `horizontal`, `vertical` or `both`.
    pub flip: String,
    /// The color of the background, as the request gives it.
    pub background: String,
    /// `auto`, `png`, `jpeg` or `webp`.
    pub format: String,
    /// The quality of a lossy encoding, from 1 to 100.
    pub quality: u8,
}
