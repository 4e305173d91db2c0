//! `resize`: scales an image to a width, a height or a box (`docs/reference/actions.md#resize`).

use domain::Violation;
use domain::action::{ActionSlug, Parameter};
use domain::limits::OUTPUT_SIDE_MAX;
use raster::header::Header;
use raster::{Anchor, Bounds, Change, Color, Finish, Fit, Input, Size};
use serde::Deserialize;

use crate::cost::Cost;
use crate::definition::{Definition, Effect, anchor, color, image, integer, select};
use crate::stored::{parsed, yes};
use crate::{DefinedAction, Refusal, Run, held_as_a_whole};

pub(crate) fn action() -> DefinedAction {
    let side = |id, title| Parameter {
        description: "In pixels. When omitted, it follows from the other side and the image's ratio.".into(),
        ..integer(id, title, 1, OUTPUT_SIDE_MAX)
    };
    Definition {
        slug: ActionSlug::Resize,
        title: "Resize",
        summary: "Scale an image to a width, a height, or a box.",
        cost: Cost::RESAMPLE,
        effect: Effect::Adjusts,
        inputs: image("The image to scale."),
        output: "The scaled image.",
        parameters: [
            side("width", "Width"),
            side("height", "Height"),
            Parameter {
                description: "How the image is fitted to the requested box.".into(),
                ..select(
                    "fit",
                    "Fit",
                    "inside",
                    &[
                        ("inside", "Inside the box"),
                        ("cover", "Cover the box, cut the rest"),
                        ("contain", "Contain in the box, pad the rest"),
                        ("fill", "Fill the box, ratio given up"),
                        ("outside", "Outside the box"),
                    ],
                )
            },
            anchor("center"),
            Parameter {
                description: "Color of the area that the image does not cover.".into(),
                ..color("background", "Background", "#00000000")
            },
            Parameter {
                description: "Whether pixels may be scaled up.".into(),
                ..select("enlarge", "Enlarge", "yes", &[("yes", "Yes"), ("no", "No")])
            },
        ],
        check: |params| match (params.get("width"), params.get("height")) {
            (None, None) => vec![Violation::new("params.width", "width, height or both are required")],
            _ => Vec::new(),
        },
    }
    .build::<Resize>()
}

/// The parameters, normalized.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Params")]
struct Resize {
    params: raster::Resize,
    /// `true` if the width is requested, which is named when the result is too large.
    has_width: bool,
}

#[derive(Deserialize)]
struct Params {
    width: Option<u32>,
    height: Option<u32>,
    #[serde(deserialize_with = "parsed")]
    fit: Fit,
    #[serde(deserialize_with = "parsed")]
    anchor: Anchor,
    #[serde(deserialize_with = "parsed")]
    background: Color,
    #[serde(deserialize_with = "yes")]
    enlarge: bool,
}

impl TryFrom<Params> for Resize {
    type Error = &'static str;

    fn try_from(params: Params) -> Result<Self, Self::Error> {
        let Params { width, height, fit, anchor, background, enlarge } = params;
        let bounds = Bounds::new(width, height).ok_or("a side is missing")?;
        let params = raster::Resize { bounds, fit, anchor, background, enlarge };
        Ok(Self { params, has_width: width.is_some() })
    }
}

impl Run for Resize {
    fn plan(&self, sources: &[Size]) -> Result<Size, Refusal> {
        let field = if self.has_width { "params.width" } else { "params.height" };
        let plan = raster::resize::plan(sources[0], &self.params).map_err(Refusal::for_field(field))?;
        Ok(plan.output())
    }

    fn memory_bytes(&self, sources: &[Header], output: Size, _: Option<Finish>) -> u64 {
        let plan = raster::resize::plan(sources[0].size(), &self.params);
        plan.map_or_else(|_| held_as_a_whole(sources, output), |plan| raster::resize::memory_bytes(&sources[0], &plan))
    }

    fn run(&self, image: Input, _: &[u8], _: Option<Finish>) -> Result<Change, raster::Error> {
        raster::resize::change(image, &self.params)
    }
}
