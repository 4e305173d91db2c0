//! `add-text-to-image`: writes text onto an image (`docs/reference/actions.md#add-text-to-image`).

use domain::action::{ActionSlug, Parameter, ParameterType};
use raster::header::Header;
use raster::text::{self, Align, Caption, Family, Weight};
use raster::{Anchor, Change, Color, Finish, Input, Size};
use serde::Deserialize;

use crate::cost::Cost;
use crate::definition::{Definition, Effect, anchor, color, image, no_check, number, offset, plain, select};
use crate::stored::parsed;
use crate::{DefinedAction, Refusal, Run, held_as_a_whole};

/// Longest text, in characters.
const TEXT_MAX: usize = 500;

pub(crate) fn action() -> DefinedAction {
    Definition {
        slug: ActionSlug::AddTextToImage,
        title: "Add text to image",
        summary: "Write text onto an image, in any script, with an outline and a background if wanted.",
        cost: Cost::MIX,
        effect: Effect::Annotates,
        inputs: image("The image to write on, whose size the result has."),
        output: "The image with the text on it.",
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
                description: "Size of the letters, in percent of the image's height.".into(),
                ..number("size", "Size", (0.5, 50.0), 6.0)
            },
            Parameter { description: "Color of the letters.".into(), ..color("color", "Color", "#ffffff") },
            Parameter {
                description: "Alignment of the lines in the box, whatever the direction of the text.".into(),
                ..select("align", "Align", "center", &[("left", "Left"), ("center", "Center"), ("right", "Right")])
            },
            Parameter {
                description: "Greatest width of the box with its padding, in percent of the image's width.".into(),
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
    .build::<AddTextToImage>()
}

/// Upper bound of the memory for drawing a text: the stroked outlines of 500 characters, and a band of pixels.
const DRAWING_BYTES: u64 = 16 << 20;

/// The parameters, normalized.
#[derive(Debug, Deserialize)]
#[serde(from = "Params")]
struct AddTextToImage(Caption);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    text: String,
    #[serde(deserialize_with = "parsed")]
    anchor: Anchor,
    offset_x: i64,
    offset_y: i64,
    #[serde(deserialize_with = "parsed")]
    font: Family,
    #[serde(deserialize_with = "parsed")]
    weight: Weight,
    size: f64,
    #[serde(deserialize_with = "parsed")]
    color: Color,
    #[serde(deserialize_with = "parsed")]
    align: Align,
    max_width: f64,
    line_height: f64,
    #[serde(deserialize_with = "parsed")]
    stroke_color: Color,
    stroke_width: f64,
    #[serde(deserialize_with = "parsed")]
    background: Color,
    padding: f64,
}

impl From<Params> for AddTextToImage {
    fn from(params: Params) -> Self {
        Self(Caption {
            text: params.text,
            anchor: params.anchor,
            offset: (params.offset_x, params.offset_y),
            family: params.font,
            weight: params.weight,
            size: params.size,
            color: params.color,
            align: params.align,
            max_width: params.max_width,
            line_height: params.line_height,
            stroke_color: params.stroke_color,
            stroke_width: params.stroke_width,
            background: params.background,
            padding: params.padding,
        })
    }
}

impl Run for AddTextToImage {
    fn plan(&self, sources: &[Size]) -> Result<Size, Refusal> {
        // The result has the size of the image.
        raster::resize::check_output(sources[0]).map_err(Refusal::for_field("inputs[0]"))?;
        Ok(sources[0])
    }

    fn memory_bytes(&self, sources: &[Header], output: Size, _: Option<Finish>) -> u64 {
        held_as_a_whole(sources, output) + DRAWING_BYTES
    }

    fn run(&self, image: Input, _: &[u8], _: Option<Finish>) -> Result<Change, raster::Error> {
        text::change(image, &self.0)
    }
}
