//! `color-grade`: changes the colors of an image (`docs/reference/actions.md#color-grade`).

use domain::action::{ActionSlug, Parameter};
use raster::grade::{self, Grade, Preset};
use raster::header::Header;
use raster::{Change, Finish, Input, Size};
use serde::Deserialize;

use crate::cost::Cost;
use crate::definition::{Definition, Effect, image, no_check, number, select};
use crate::stored::parsed;
use crate::{DefinedAction, Refusal, Run, held_as_a_whole, stream_bytes};

pub(crate) fn action() -> DefinedAction {
    let percent = |id, title, description: &'static str| Parameter {
        description: description.into(),
        ..number(id, title, (-100.0, 100.0), 0.0)
    };
    Definition {
        slug: ActionSlug::ColorGrade,
        title: "Color grade",
        summary: "Change exposure, contrast, saturation and other color properties of an image, or apply a preset look.",
        cost: Cost::MIX,
        effect: Effect::Adjusts,
        inputs: image("The image to grade."),
        output: "The graded image.",
        parameters: [
            Parameter {
                description: "In stops (EV); each stop doubles the light.".into(),
                ..number("exposure", "Exposure", (-5.0, 5.0), 0.0)
            },
            percent("brightness", "Brightness", "From black (-100) to twice as bright (100)."),
            percent("contrast", "Contrast", "From flat gray (-100) to twice the contrast (100)."),
            percent("saturation", "Saturation", "From gray (-100) to twice as colorful (100)."),
            percent("vibrance", "Vibrance", "Saturation with less effect on colors that are already strong."),
            percent("temperature", "Temperature", "From cool and blue (-100) to warm and amber (100)."),
            percent("tint", "Tint", "From green (-100) to magenta (100)."),
            percent("highlights", "Highlights", "Darkens or brightens the bright parts."),
            percent("shadows", "Shadows", "Darkens or brightens the dark parts."),
            Parameter {
                description: "Above 1 brightens the middle tones.".into(),
                ..number("gamma", "Gamma", (0.1, 5.0), 1.0)
            },
            Parameter {
                description: "A look, applied after everything else.".into(),
                ..select(
                    "preset",
                    "Preset",
                    "none",
                    &[
                        ("none", "None"),
                        ("noir", "Noir"),
                        ("sepia", "Sepia"),
                        ("warm", "Warm"),
                        ("cool", "Cool"),
                        ("vivid", "Vivid"),
                        ("faded", "Faded"),
                    ],
                )
            },
            Parameter {
                description: "Strength of the preset in percent.".into(),
                ..number("intensity", "Intensity", (0.0, 100.0), 100.0)
            },
        ],
        check: no_check,
    }
    .build::<ColorGrade>()
}

/// The parameters, normalized.
#[derive(Debug, Deserialize)]
struct ColorGrade(#[serde(with = "Params")] Grade);

#[derive(Deserialize)]
#[serde(remote = "Grade")]
struct Params {
    exposure: f64,
    brightness: f64,
    contrast: f64,
    saturation: f64,
    vibrance: f64,
    temperature: f64,
    tint: f64,
    highlights: f64,
    shadows: f64,
    gamma: f64,
    #[serde(deserialize_with = "parsed")]
    preset: Preset,
    intensity: f64,
}

impl Run for ColorGrade {
    fn plan(&self, sources: &[Size]) -> Result<Size, Refusal> {
        grade::plan(sources[0]).map_err(Refusal::for_field("inputs[0]"))
    }

    fn memory_bytes(&self, sources: &[Header], output: Size, rows: Option<Finish>) -> u64 {
        stream_bytes(rows, sources, output).unwrap_or_else(|| held_as_a_whole(sources, output))
    }

    fn run(&self, image: Input, _: &[u8], rows: Option<Finish>) -> Result<Change, raster::Error> {
        grade::change(image, &self.0, rows)
    }
}
