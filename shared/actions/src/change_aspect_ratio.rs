//! `change-aspect-ratio`: crops or pads an image to a ratio (`docs/reference/actions.md#change-aspect-ratio`).

use std::str::FromStr;

use domain::Violation;
use domain::action::{ActionSlug, Parameter, ParameterOption, ParameterType};
use raster::header::Header;
use raster::ratio::{self, ChangeRatio, Mode};
use raster::{Anchor, Change, Color, Finish, Input, Size};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cost::Cost;
use crate::definition::{Definition, Effect, anchor, color, image, plain, select};
use crate::stored::parsed;
use crate::{DefinedAction, Refusal, Run, held_as_a_whole, stream_bytes};

/// Length of the longest ratio, `100.00:100.00`.
const RATIO_LENGTH_MAX: usize = 13;

/// Ratios that a control suggests. Any other ratio is accepted as well.
const SUGGESTED: [&str; 10] = ["1:1", "4:5", "5:4", "3:4", "4:3", "2:3", "3:2", "9:16", "16:9", "21:9"];

pub(crate) fn action() -> DefinedAction {
    Definition {
        slug: ActionSlug::ChangeAspectRatio,
        title: "Change aspect ratio",
        summary: "Bring an image into a ratio of width to height by cropping or padding it.",
        cost: Cost::COPY,
        effect: Effect::Adjusts,
        inputs: image("The image to bring into the ratio."),
        output: "The image in the requested ratio.",
        parameters: [
            Parameter {
                description:
                    "Width to height, such as 16:9 or 1.91:1; each a number from 1 to 100 with at most two decimals."
                        .into(),
                required: true,
                max_length: Some(RATIO_LENGTH_MAX),
                options: SUGGESTED
                    .iter()
                    .map(|ratio| ParameterOption { value: json!(ratio), label: (*ratio).into() })
                    .collect(),
                ..plain("ratio", "Ratio", ParameterType::Text)
            },
            Parameter {
                description: "Whether the image is cropped to the ratio or padded to it.".into(),
                ..select(
                    "mode",
                    "Mode",
                    "crop",
                    &[("crop", "Crop"), ("pad", "Pad with the background"), ("blur", "Pad with the image, blurred")],
                )
            },
            anchor("center"),
            Parameter { description: "Color of the padding.".into(), ..color("background", "Background", "#ffffff") },
        ],
        check: well_formed,
    }
    .build::<ChangeAspectRatio>()
}

fn well_formed(params: &Map<String, Value>) -> Vec<Violation> {
    match params.get("ratio").and_then(Value::as_str) {
        Some(ratio) if ratio.parse::<Ratio>().is_err() && ratio.chars().count() <= RATIO_LENGTH_MAX => {
            let message = "must be W:H, each a number from 1 to 100 with at most two decimals";
            vec![Violation::new("params.ratio", message)]
        }
        _ => Vec::new(),
    }
}

/// Ratio of width to height, each in hundredths, 100 to 10000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ratio {
    /// The width of the ratio in hundredths.
    width: u32,
    /// The height of the ratio in hundredths.
    height: u32,
}

impl FromStr for Ratio {
    type Err = ();

    /// Parses `W:H`: digits with at most two decimals, no sign, no exponent.
    fn from_str(text: &str) -> Result<Self, ()> {
        let ratio = || {
            let (width, height) = text.split_once(':')?;
            Some(Self { width: hundredths(width)?, height: hundredths(height)? })
        };
        ratio().ok_or(())
    }
}

fn hundredths(text: &str) -> Option<u32> {
    let (whole, decimals) = match text.split_once('.') {
        Some((whole, decimals)) if (1..=2).contains(&decimals.len()) => (whole, decimals),
        Some(_) => return None,
        None => (text, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !(1..=3).contains(&whole.len()) || !digits(whole) || !digits(decimals) {
        return None;
    }
    let value: u32 = format!("{whole}{decimals:0<2}").parse().ok()?;
    (100..=10_000).contains(&value).then_some(value)
}

/// The parameters, normalized.
#[derive(Debug, Deserialize)]
struct ChangeAspectRatio {
    #[serde(deserialize_with = "parsed")]
    ratio: Ratio,
    #[serde(deserialize_with = "parsed")]
    mode: Mode,
    #[serde(deserialize_with = "parsed")]
    anchor: Anchor,
    #[serde(deserialize_with = "parsed")]
    background: Color,
}

impl ChangeAspectRatio {
    fn params(&self) -> ChangeRatio {
        let Self { ratio, mode, anchor, background } = *self;
        ChangeRatio { ratio: (ratio.width, ratio.height), mode, anchor, background }
    }
}

impl Run for ChangeAspectRatio {
    fn plan(&self, sources: &[Size]) -> Result<Size, Refusal> {
        let plan = ratio::plan(sources[0], &self.params()).map_err(Refusal::for_field("params.ratio"))?;
        Ok(plan.output)
    }

    fn memory_bytes(&self, sources: &[Header], output: Size, rows: Option<Finish>) -> u64 {
        let rows = rows.filter(|_| self.mode == Mode::Crop);
        stream_bytes(rows, sources, output).unwrap_or_else(|| held_as_a_whole(sources, output))
    }

    fn run(&self, image: Input, _: &[u8], rows: Option<Finish>) -> Result<Change, raster::Error> {
        ratio::change(image, &self.params(), rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_read_exactly() {
        for (text, width, height) in [
            ("1:1", 100, 100),
            ("16:9", 1600, 900),
            ("1.91:1", 191, 100),
            ("2.5:100", 250, 10_000),
            ("100.00:1.00", 10_000, 100),
            ("007:1", 700, 100),
        ] {
            assert_eq!(text.parse(), Ok(Ratio { width, height }), "{text}");
        }
        for text in [
            "", ":", "1", "1:", ":1", "0:1", "0.99:1", "100.01:1", "101:1", "1.234:1", "1.:1", ".5:1", "-1:1", "+1:1",
            "1e1:1", "1:1:1", " 1:1", "1 :1", "1/1", "a:b", "1,5:1", "٣:1",
        ] {
            assert_eq!(text.parse::<Ratio>(), Err(()), "{text}");
        }
        assert!(SUGGESTED.iter().all(|ratio| ratio.parse::<Ratio>().is_ok()));
    }
}
