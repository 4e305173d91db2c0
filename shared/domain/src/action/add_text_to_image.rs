//! `add-text-to-image` (decisions 8.1, 8.2, 18.8).

use serde::Deserialize;
use serde_json::json;

use super::cost::Cost;
use super::parts::{Definition, anchor, color, image, no_check, number, plain, select, whole};
use super::{Action, Parameter, ParameterType};

/// The longest text, in characters.
const TEXT_MAX: usize = 500;

pub(super) fn action() -> Action {
    let offset = |id, title| Parameter {
        description: "Pixels; right and down when positive, whatever the anchor.",
        default: Some(json!(0)),
        ..whole(id, title)
    };
    Definition {
        slug: "add-text-to-image",
        title: "Add text to image",
        summary: "Write text onto a picture, in any script, with an outline and a background if wanted.",
        cost: Cost::MIX,
        inputs: image("The picture to write on, whose size the result has."),
        output: "The picture with the text on it.",
        parameters: [
            Parameter {
                description: "What is written; line ends break lines.",
                required: true,
                max_length: Some(TEXT_MAX),
                ..plain("text", "Text", ParameterType::Text)
            },
            Parameter { description: "Where the box of the text stands.", ..anchor("bottom") },
            offset("offsetX", "Offset to the right"),
            offset("offsetY", "Offset down"),
            Parameter {
                description: "Of Latin, Greek and Cyrillic letters; other scripts have one form.",
                ..select("font", "Font", "sans", &[("sans", "Sans serif"), ("serif", "Serif"), ("mono", "Monospaced")])
            },
            select("weight", "Weight", "bold", &[("regular", "Regular"), ("bold", "Bold")]),
            Parameter {
                description: "Of the letters, in percent of the picture's height.",
                ..number("size", "Size", (0.5, 50.0), 6.0)
            },
            Parameter { description: "Of the letters.", ..color("color", "Color", "#ffffff") },
            Parameter {
                description: "Where lines stand in the box, whatever the direction of the text.",
                ..select("align", "Align", "center", &[("left", "Left"), ("center", "Center"), ("right", "Right")])
            },
            Parameter {
                description: "The widest the box may be, padding included, in percent of the picture's width.",
                ..number("maxWidth", "Greatest width", (10.0, 100.0), 90.0)
            },
            Parameter {
                description: "The distance of two lines, in sizes.",
                ..number("lineHeight", "Line height", (0.8, 3.0), 1.2)
            },
            Parameter {
                description: "Of the line along the letters.",
                ..color("strokeColor", "Stroke color", "#000000")
            },
            Parameter {
                description: "Of the line along the letters, half of it within them, in percent of the size.",
                ..number("strokeWidth", "Stroke width", (0.0, 20.0), 0.0)
            },
            Parameter { description: "Of the box of the text.", ..color("background", "Background", "#00000000") },
            Parameter {
                description: "Between the text and the edges of its box, in percent of the size.",
                ..number("padding", "Padding", (0.0, 100.0), 30.0)
            },
        ],
        check: no_check,
    }
    .build()
}

/// `add-text-to-image`'s parameters, normalized.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddTextToImageParams {
    /// At most 500 characters.
    pub text: String,
    /// One of nine.
    pub anchor: String,
    /// Pixels.
    pub offset_x: i64,
    /// Pixels.
    pub offset_y: i64,
    /// `sans`, `serif` or `mono`.
    pub font: String,
    /// `regular` or `bold`.
    pub weight: String,
    /// Percent of the picture's height, 0.5 to 50.
    pub size: f64,
    /// A colour.
    pub color: String,
    /// `left`, `center` or `right`.
    pub align: String,
    /// Percent of the picture's width, 10 to 100.
    pub max_width: f64,
    /// Sizes, 0.8 to 3.
    pub line_height: f64,
    /// A colour.
    pub stroke_color: String,
    /// Percent of the size, 0 to 20.
    pub stroke_width: f64,
    /// A colour.
    pub background: String,
    /// Percent of the size, 0 to 100.
    pub padding: f64,
    /// `auto`, `png`, `jpeg` or `webp`.
    pub format: String,
    /// 1 to 100.
    pub quality: u8,
}
