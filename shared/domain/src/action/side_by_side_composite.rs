//! `side-by-side-composite` (`docs/reference/actions.md#side-by-side-composite`).

use serde::Deserialize;
use serde_json::json;

use super::cost::Cost;
use super::parts::{Definition, color, integer, no_check, select};
use super::{ActionInput, DefinedAction, Parameter};

pub(super) fn action() -> DefinedAction {
    Definition {
        slug: "side-by-side-composite",
        title: "Side by side",
        summary: "Put two pictures beside or above each other.",
        cost: Cost::COPY,
        inputs: vec![
            ActionInput { id: "first".into(), title: "First".into(), description: "The picture on the left, or on top.".into() },
            ActionInput { id: "second".into(), title: "Second".into(), description: "The picture on the right, or below.".into() },
        ],
        output: "Both pictures in one.",
        parameters: [
            Parameter {
                description: "Whether the pictures stand side by side or one above the other.".into(),
                ..select(
                    "direction",
                    "Direction",
                    "horizontal",
                    &[("horizontal", "Horizontal"), ("vertical", "Vertical")],
                )
            },
            Parameter {
                description: "Pixels between the pictures.".into(),
                default: Some(json!(0)),
                ..integer("gap", "Gap", 0, 1024)
            },
            Parameter {
                description: "Whether the larger picture is scaled down to the other's height (side by side) or width (one above the other).".into(),
                ..select("scale", "Scale", "match", &[("match", "Match"), ("none", "None")])
            },
            Parameter {
                description: "Position of the smaller picture across the direction.".into(),
                ..select("align", "Align", "center", &[("start", "Start"), ("center", "Center"), ("end", "End")])
            },
            Parameter {
                description: "Color of the area that neither picture covers.".into(),
                ..color("background", "Background", "#ffffff")
            },
        ],
        check: no_check,
    }
    .build()
}

/// Parameters of `side-by-side-composite`, normalized.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct SideBySideCompositeParams {
    /// `horizontal` or `vertical`.
    pub direction: String,
    /// Pixels, 0 to 1024.
    pub gap: u32,
    /// `match` or `none`.
    pub scale: String,
    /// `start`, `center` or `end`.
    pub align: String,
    /// The color of the background, as the request gives it.
    pub background: String,
    /// `auto`, `png`, `jpeg` or `webp`.
    pub format: String,
    /// The quality of a lossy encoding, from 1 to 100.
    pub quality: u8,
}
