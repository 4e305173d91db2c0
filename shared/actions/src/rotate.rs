//! `rotate`: mirrors and rotates an image (`docs/reference/actions.md#rotate`).

use domain::action::{ActionSlug, Parameter, ParameterType};
use raster::rotate::{self, Flip};
use raster::{Change, Color, Finish, Input, Size};
use serde::Deserialize;

use crate::cost::Cost;
use crate::definition::{Definition, Effect, color, image, no_check, plain, select};
use crate::stored::{parsed, yes};
use crate::{DefinedAction, Refusal, Run};

pub(crate) fn action() -> DefinedAction {
    Definition {
        slug: ActionSlug::Rotate,
        title: "Rotate",
        summary: "Turn an image by any angle, or mirror it.",
        cost: Cost::RESAMPLE,
        effect: Effect::Adjusts,
        inputs: image("The image to turn."),
        output: "The turned image.",
        parameters: [
            Parameter {
                description: "Angle in degrees clockwise. Multiples of 90 are lossless.".into(),
                required: true,
                min: Some(-360.0),
                max: Some(360.0),
                ..plain("degrees", "Degrees", ParameterType::Number)
            },
            Parameter {
                description: "Whether the result grows to hold the whole turned image or keeps the image's size."
                    .into(),
                ..select("expand", "Expand", "yes", &[("yes", "Yes"), ("no", "No")])
            },
            Parameter {
                description: "Mirrors the image before it is turned.".into(),
                ..select(
                    "flip",
                    "Flip",
                    "none",
                    &[("none", "None"), ("horizontal", "Horizontal"), ("vertical", "Vertical"), ("both", "Both")],
                )
            },
            Parameter {
                description: "Color of the area that the turned image does not cover.".into(),
                ..color("background", "Background", "#00000000")
            },
        ],
        check: no_check,
    }
    .build::<Rotate>()
}

/// The parameters, normalized.
#[derive(Debug, Deserialize)]
struct Rotate(#[serde(with = "Params")] rotate::Rotate);

#[derive(Deserialize)]
#[serde(remote = "rotate::Rotate")]
struct Params {
    degrees: f64,
    #[serde(deserialize_with = "yes")]
    expand: bool,
    #[serde(deserialize_with = "parsed")]
    flip: Flip,
    #[serde(deserialize_with = "parsed")]
    background: Color,
}

impl Run for Rotate {
    fn plan(&self, sources: &[Size]) -> Result<Size, Refusal> {
        let field = if self.0.expand { "params.degrees" } else { "inputs[0]" };
        rotate::plan(sources[0], &self.0).map_err(Refusal::for_field(field))
    }

    fn run(&self, image: Input, _: &[u8], rows: Option<Finish>) -> Result<Change, raster::Error> {
        rotate::change(image, &self.0, rows)
    }
}
