//! `crop` (decisions 8.1, 18.8).

use serde::Deserialize;
use serde_json::{Map, Value};

use super::cost::Cost;
use super::parts::{Definition, anchor, image, whole};
use super::{Action, Parameter};
use crate::Violation;

pub(super) fn action() -> Action {
    // How far a side or a position may reach is the picture's to say: beyond it is 422.
    let side = |id, title| Parameter { required: true, min: Some(1.0), description: "In pixels.", ..whole(id, title) };
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
                description: "Pixels left of the rectangle; together with y, or not at all.",
                ..whole("x", "Left")
            },
            Parameter {
                description: "Pixels above the rectangle; together with x, or not at all.",
                ..whole("y", "Top")
            },
            Parameter { description: "Where the rectangle lies without x and y.", ..anchor("center") },
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

/// `crop`'s parameters, normalized.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CropParams {
    /// Pixels, at least 1.
    pub width: i64,
    /// Pixels, at least 1.
    pub height: i64,
    /// Pixels; there when `y` is.
    pub x: Option<i64>,
    /// Pixels; there when `x` is.
    pub y: Option<i64>,
    /// One of nine.
    pub anchor: String,
    /// `auto`, `png`, `jpeg` or `webp`.
    pub format: String,
    /// 1 to 100.
    pub quality: u8,
}
