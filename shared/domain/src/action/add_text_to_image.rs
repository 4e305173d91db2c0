//! `add-text-to-image` (`docs/reference/actions.md#add-text-to-image`).

use serde::Deserialize;
use serde_json::json;

use super::cost::Cost;
use super::parts::{Definition, anchor, color, image, no_check, number, plain, select, whole};
use super::{DefinedAction, Parameter, ParameterType};

/// Longest text, in characters.
const TEXT_MAX: usize = 500;

pub(super) fn action() -> DefinedAction {
    let offset = |id, title| Parameter {
        description: "In pixels. Positive values move right and down, whatever the anchor.".into(),
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
                description: "The text to write. A line break begins a new line.".into(),
                required: true,
                max_length: Some(TEXT_MAX),
                ..plain("text", "Text", ParameterType::Text)
            },
            Parameter { description: "Position of the text box.".into(), ..anchor("bottom") },
            offset("offsetX", "Offset to the right"),
            offset("offsetY", "Offset down"),
            Parameter {
                description: "Typeface of Latin, Greek and Cyrillic letters; other scripts have one form.".into(),
                ..select("font", "Font", "sans", &[("sans", "Sans serif"), ("serif", "Serif"), ("mono", "Monospaced")])
            },
            Parameter {
                description: "Weight of the letters.".into(),
                ..select("weight", "Weight", "bold", &[("regular", "Regular"), ("bold", "Bold")])
            },
            Parameter {
                description: "Size of the letters, in percent of the picture's height.".into(),
                ..number("size", "Size", (0.5, 50.0), 6.0)
            },
            Parameter { description: "Color of the letters.".into(), ..color("color", "Color", "#ffffff") },
            Parameter {
                description: "Alignment of the lines in the box, whatever the direction of the text.".into(),
                ..select("align", "Align", "center", &[("left", "Left"), ("center", "Center"), ("right", "Right")])
            },
            Parameter {
                description: "Greatest width of the box with its padding, in percent of the picture's width.".into(),
                ..number("maxWidth", "Greatest width", (10.0, 100.0), 90.0)
            },
            Parameter {
                description: "Distance from line to line, as a multiple of the size.".into(),
                ..number("lineHeight", "Line height", (0.8, 3.0), 1.2)
            },
            Parameter {
                description: "Color of the outline of the letters.".into(),
                ..color("strokeColor", "Stroke color", "#000000")
            },
            Parameter {
                description: "Width of the outline, half of it inside the letters, in percent of the size.".into(),
                ..number("strokeWidth", "Stroke width", (0.0, 20.0), 0.0)
            },
            Parameter {
                description: "Background of the text box.".into(),
                ..color("background", "Background", "#00000000")
            },
            Parameter {
                description: "Distance from the text to the edges of its box, in percent of the size.".into(),
                ..number("padding", "Padding", (0.0, 100.0), 30.0)
            },
        ],
        check: no_check,
    }
    .build()
}

/// Parameters of `add-text-to-image`, normalized.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddTextToImageParams {
    /// At most 500 characters.
    pub text: String,
    /// One of the nine anchors.
    pub anchor: String,
    /// The x offset in pixels.
    pub offset_x: i64,
    /// The y offset in pixels.
    pub offset_y: i64,
    /// `sans`, `serif` or `mono`.
    pub font: String,
    /// `regular` or `bold`.
    pub weight: String,
    /// Percent of the picture's height, 0.5 to 50.
    pub size: f64,
    /// The color of the text, as the request gives it.
    pub color: String,
    /// `left`, `center` or `right`.
    pub align: String,
    /// Percent of the picture's width, 10 to 100.
    pub max_width: f64,
    /// Multiple of the size, 0.8 to 3.
    pub line_height: f64,
    /// The color of the stroke, as the request gives it.
    pub stroke_color: String,
    /// Percent of the size, 0 to 20.
    pub stroke_width: f64,
    /// The color of the background, as the request gives it.
    pub background: String,
    /// Percent of the size, 0 to 100.
    pub padding: f64,
    /// `auto`, `png`, `jpeg` or `webp`.
    pub format: String,
    /// The quality of a lossy encoding, from 1 to 100.
    pub quality: u8,
}
