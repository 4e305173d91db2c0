//! `color-grade` (`docs/reference/actions.md#color-grade`).

use serde::Deserialize;

use super::cost::Cost;
use super::parts::{Definition, image, no_check, number, select};
use super::{DefinedAction, Parameter};

pub(super) fn action() -> DefinedAction {
    let percent = |id, title, description: &'static str| Parameter {
        description: description.into(),
        ..number(id, title, (-100.0, 100.0), 0.0)
    };
    Definition {
        slug: "color-grade",
        title: "Color grade",
        summary: "Change exposure, contrast, saturation and other color properties of a picture, or apply a preset look.",
        cost: Cost::MIX,
        inputs: image("The picture to grade."),
        output: "The graded picture.",
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
    .build()
}

/// Parameters of `color-grade`, normalized.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ColorGradeParams {
    /// Stops, -5 to 5.
    pub exposure: f64,
    /// Percent, -100 to 100.
    pub brightness: f64,
    /// Percent, -100 to 100.
    pub contrast: f64,
    /// Percent, -100 to 100.
    pub saturation: f64,
    /// Percent, -100 to 100.
    pub vibrance: f64,
    /// Percent, -100 to 100.
    pub temperature: f64,
    /// Percent, -100 to 100.
    pub tint: f64,
    /// Percent, -100 to 100.
    pub highlights: f64,
    /// Percent, -100 to 100.
    pub shadows: f64,
    /// 0.1 to 5.
    pub gamma: f64,
    /// `none`, `noir`, `sepia`, `warm`, `cool`, `vivid` or `faded`.
    pub preset: String,
    /// Percent, 0 to 100.
    pub intensity: f64,
    /// `auto`, `png`, `jpeg` or `webp`.
    pub format: String,
    /// The quality of a lossy encoding, from 1 to 100.
    pub quality: u8,
}
