//! `side-by-side-composite` (decisions 8.1).

use serde::Deserialize;
use serde_json::json;

use super::cost::Cost;
use super::parts::{Definition, color, integer, no_check, select};
use super::{Action, ActionInput, Parameter};

pub(super) fn action() -> Action {
    Definition {
        slug: "side-by-side-composite",
        title: "Side by side",
        summary: "Put two pictures beside or above each other.",
        cost: Cost::COPY,
        inputs: vec![
            ActionInput { id: "first", title: "First", description: "The picture on the left, or on top." },
            ActionInput { id: "second", title: "Second", description: "The picture on the right, or below." },
        ],
        output: "Both pictures in one.",
        parameters: [
            select("direction", "Direction", "horizontal", &[("horizontal", "Horizontal"), ("vertical", "Vertical")]),
            Parameter {
                description: "Pixels between the pictures.",
                default: Some(json!(0)),
                ..integer("gap", "Gap", 0, 1024)
            },
            Parameter {
                description: "Whether the picture that is larger across is scaled down to the other one.",
                ..select("scale", "Scale", "match", &[("match", "Match"), ("none", "None")])
            },
            Parameter {
                description: "Where the picture that is smaller across lies.",
                ..select("align", "Align", "center", &[("start", "Start"), ("center", "Center"), ("end", "End")])
            },
            Parameter {
                description: "Of what neither picture covers.",
                ..color("background", "Background", "#ffffff")
            },
        ],
        check: no_check,
    }
    .build()
}

/// `side-by-side-composite`'s parameters, normalized.
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
    /// A colour.
    pub background: String,
    /// `auto`, `png`, `jpeg` or `webp`.
    pub format: String,
    /// 1 to 100.
    pub quality: u8,
}
