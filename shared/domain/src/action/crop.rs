//! `crop` (`docs/reference/actions.md#crop`).

use serde::Deserialize;
use serde_json::{Map, Value};

use super::cost::Cost;
use super::parts::{Definition, anchor, image, whole};
use super::{DefinedAction, Parameter};
use crate::Violation;

pub(super) fn action() -> DefinedAction {
    // The picture limits sides and positions. A rectangle outside of it is rejected with 422.
    let side =
        |id, title| Parameter { required: true, min: Some(1.0), description: "In pixels.".into(), ..whole(id, title) };
    Definition {
        slug: "crop",
        title: "Crop",
        summary: "Cut a rectangle out of a picture.",
        cost: Cost::COPY,
        inputs: image("The picture to cut from."),
        output: "The rectangle.",
        parameters: [
            side("width", "Width"),
            side("height", "Height"),
            Parameter {
                description: "Pixels to the left of the rectangle. Requires `y`.".into(),
                ..whole("x", "Left")
            },
            Parameter { description: "Pixels above the rectangle. Requires `x`.".into(), ..whole("y", "Top") },
            Parameter {
                description: "Position of the rectangle when `x` and `y` are omitted.".into(),
                ..anchor("center")
            },
        ],
        check: together,
    }
    .build()
}

fn together(params: &Map<String, Value>) -> Vec<Violation> {
    match (params.contains_key("x"), params.contains_key("y")) {
        (true, false) => vec![Violation::new("params.y", "is required together with x")],
        (false, true) => vec![Violation::new("params.x", "is required together with y")],
        _ => Vec::new(),
    }
}

/// Parameters of `crop`, normalized.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CropParams {
    /// Pixels, at least 1.
    pub width: i64,
    /// Pixels, at least 1.
    pub height: i64,
    /// Pixels; present if and only if `y` is.
    pub x: Option<i64>,
    /// Pixels; present if and only if `x` is.
    pub y: Option<i64>,
    /// One of the nine anchors.
    pub anchor: String,
    /// `auto`, `png`, `jpeg` or `webp`.
    pub format: String,
    /// The quality of a lossy encoding, from 1 to 100.
    pub quality: u8,
}
