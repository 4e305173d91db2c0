//! `crop`: cuts a rectangle out of an image (`docs/reference/actions.md#crop`).

use domain::Violation;
use domain::action::{ActionSlug, ActionVersion, Parameter};
use raster::crop::{self, CropPosition};
use raster::header::Header;
use raster::resize::PlanError;
use raster::{Anchor, Change, Finish, Input, Size};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cost::Cost;
use crate::definition::{Definition, Effect, anchor, image, number, whole};
use crate::stored::parsed;
use crate::{DefinedAction, Refusal, Run, held_as_a_whole, stream_bytes};

pub(crate) fn action() -> DefinedAction {
    // The image limits sides and positions. A rectangle outside of it is rejected with 422.
    let side =
        |id, title| Parameter { required: true, min: Some(1.0), description: "In pixels.".into(), ..whole(id, title) };
    Definition {
        slug: ActionSlug::Crop,
        title: "Crop",
        summary: "Cut a rectangle out of an image, also a turned one.",
        cost: Cost::COPY,
        effect: Effect::Adjusts,
        inputs: image("The image to cut from."),
        output: "The rectangle.",
        parameters: [
            side("width", "Width"),
            side("height", "Height"),
            Parameter {
                description: "Pixels to the left of the rectangle. Requires `y`.".into(),
                ..whole("x", "Left")
            },
            Parameter { description: "Pixels above the rectangle. Requires `x`.".into(), ..whole("y", "Top") },
            Parameter {
                description: "Position of the rectangle when `x` and `y` are omitted.".into(),
                ..anchor("center")
            },
            Parameter {
                description:
                    "Angle in degrees clockwise by which the image is turned about the middle of the rectangle.".into(),
                ..number("degrees", "Degrees", (-45.0, 45.0), 0.0)
            },
        ],
        check: check_position,
    }
    .build::<Crop>()
    .in_version(ActionVersion::Second)
}

fn check_position(params: &Map<String, Value>) -> Vec<Violation> {
    match (params.contains_key("x"), params.contains_key("y")) {
        (true, false) => vec![Violation::new("params.y", "is required together with x")],
        (false, true) => vec![Violation::new("params.x", "is required together with y")],
        _ => Vec::new(),
    }
}

/// The parameters, normalized. `x` is present if and only if `y` is.
#[derive(Debug, Deserialize)]
struct Crop {
    width: i64,
    height: i64,
    x: Option<i64>,
    y: Option<i64>,
    #[serde(deserialize_with = "parsed")]
    anchor: Anchor,
    /// Version 1.0.0 had none.
    #[serde(default)]
    degrees: f64,
}

impl Crop {
    fn params(&self) -> crop::Crop {
        let place = match (self.x, self.y) {
            (Some(x), Some(y)) => CropPosition::At { x, y },
            _ => CropPosition::Anchored(self.anchor),
        };
        crop::Crop { width: self.width, height: self.height, place, degrees: self.degrees }
    }

    /// The parameter that does not fit the image. A rectangle that fits before it is turned is turned too far.
    fn fault(&self, image: Size, error: PlanError) -> &'static str {
        let (width, height) = (i64::from(image.width), i64::from(image.height));
        let beyond =
            |at: Option<i64>, length: i64, of: i64| at.is_some_and(|at| at < 0 || at > of.saturating_sub(length));
        match () {
            () if self.width > width => "params.width",
            () if self.height > height => "params.height",
            () if beyond(self.x, self.width, width) => "params.x",
            () if beyond(self.y, self.height, height) => "params.y",
            () if error == PlanError::OutOfBounds => "params.degrees",
            () => "params.width",
        }
    }
}

impl Run for Crop {
    fn plan(&self, sources: &[Size]) -> Result<Size, Refusal> {
        crop::plan(sources[0], &self.params()).map_err(|error| Refusal { field: self.fault(sources[0], error), error })
    }

    fn memory_bytes(&self, sources: &[Header], output: Size, rows: Option<Finish>) -> u64 {
        // What is turned is read as a whole.
        let rows = rows.filter(|_| self.degrees == 0.0);
        stream_bytes(rows, sources, output).unwrap_or_else(|| held_as_a_whole(sources, output))
    }

    fn run(&self, image: Input, _: &[u8], rows: Option<Finish>) -> Result<Change, raster::Error> {
        crop::change(image, &self.params(), rows)
    }
}
