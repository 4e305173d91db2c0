//! `side-by-side-composite`: combines two images in one (`docs/reference/actions.md#side-by-side-composite`).

use domain::action::{ActionInput, ActionSlug, Parameter};
use raster::side_by_side::{self, Align, Direction, SideBySideOptions};
use raster::{Change, Color, Finish, Input, Size};
use serde::{Deserialize, Deserializer};
use serde_json::json;

use crate::cost::Cost;
use crate::definition::{Definition, Effect, color, integer, no_check, select};
use crate::stored::{one_of, parsed};
use crate::{DefinedAction, Refusal, Run};

pub(crate) fn action() -> DefinedAction {
    Definition {
        slug: ActionSlug::SideBySideComposite,
        title: "Side by side",
        summary: "Put two images beside or above each other.",
        cost: Cost::COPY,
        effect: Effect::Composes,
        inputs: vec![
            ActionInput { id: "first".into(), title: "First".into(), description: "The image on the left, or on top.".into() },
            ActionInput { id: "second".into(), title: "Second".into(), description: "The image on the right, or below.".into() },
        ],
        output: "Both images in one.",
        parameters: [
            Parameter {
                description: "Whether the images stand side by side or one above the other.".into(),
                ..select(
                    "direction",
                    "Direction",
                    "horizontal",
                    &[("horizontal", "Horizontal"), ("vertical", "Vertical")],
                )
            },
            Parameter {
                description: "Pixels between the images.".into(),
                default: Some(json!(0)),
                ..integer("gap", "Gap", 0, 1024)
            },
            Parameter {
                description: "Whether the larger image is scaled down to the other's height (side by side) or width (one above the other).".into(),
                ..select("scale", "Scale", "match", &[("match", "Match"), ("none", "None")])
            },
            Parameter {
                description: "Position of the smaller image across the direction.".into(),
                ..select("align", "Align", "center", &[("start", "Start"), ("center", "Center"), ("end", "End")])
            },
            Parameter {
                description: "Color of the area that neither image covers.".into(),
                ..color("background", "Background", "#ffffff")
            },
        ],
        check: no_check,
    }
    .build::<SideBySide>()
}

/// The parameters, normalized.
#[derive(Debug, Deserialize)]
struct SideBySide {
    #[serde(deserialize_with = "parsed")]
    direction: Direction,
    gap: u32,
    #[serde(rename = "scale", deserialize_with = "is_match")]
    matches: bool,
    #[serde(deserialize_with = "parsed")]
    align: Align,
    #[serde(deserialize_with = "parsed")]
    background: Color,
}

fn is_match<'de, D: Deserializer<'de>>(text: D) -> Result<bool, D::Error> {
    one_of(text, "match", "none")
}

impl SideBySide {
    fn params(&self) -> SideBySideOptions {
        let Self { direction, gap, matches, align, background } = *self;
        SideBySideOptions { direction, gap, matches, align, background }
    }
}

impl Run for SideBySide {
    fn plan(&self, sources: &[Size]) -> Result<Size, Refusal> {
        let plan =
            side_by_side::plan([sources[0], sources[1]], &self.params()).map_err(Refusal::for_field("inputs"))?;
        Ok(plan.output)
    }

    fn run(&self, image: Input, second: &[u8], rows: Option<Finish>) -> Result<Change, raster::Error> {
        side_by_side::change(image, second, &self.params(), rows)
    }
}
