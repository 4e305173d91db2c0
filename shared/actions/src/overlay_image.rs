//! `overlay-image`: places an image on another one (`docs/reference/actions.md#overlay-image`).

use domain::action::{ActionInput, ActionSlug, Parameter};
use raster::header::Header;
use raster::overlay::{self, Blend, Overlay};
use raster::{Anchor, Change, Finish, Input, Size};
use serde::Deserialize;

use crate::cost::Cost;
use crate::definition::{Definition, Effect, anchor, no_check, number, offset, select};
use crate::stored::parsed;
use crate::{DefinedAction, PIXEL_BYTES, Refusal, Run, held_as_a_whole, stream_bytes};

pub(crate) fn action() -> DefinedAction {
    Definition {
        slug: ActionSlug::OverlayImage,
        title: "Overlay image",
        summary: "Lay one image over another one, such as a logo or a watermark.",
        cost: Cost::MIX,
        effect: Effect::Composes,
        inputs: vec![
            ActionInput {
                id: "image".into(),
                title: "Image".into(),
                description: "The image below, whose size the result has.".into(),
            },
            ActionInput { id: "overlay".into(), title: "Overlay".into(), description: "The image on top.".into() },
        ],
        output: "The image with the overlay on it.",
        parameters: [
            Parameter { description: "Position of the overlay.".into(), ..anchor("bottom-right") },
            offset("offsetX", "Offset to the right"),
            offset("offsetY", "Offset down"),
            Parameter {
                description: "Width of the overlay, in percent of the image's width.".into(),
                ..number("scale", "Scale", (0.1, 400.0), 25.0)
            },
            Parameter {
                description: "Opacity of the overlay in percent, multiplied with its own alpha.".into(),
                ..number("opacity", "Opacity", (0.0, 100.0), 100.0)
            },
            Parameter {
                description: "Rotation of the overlay about its center, in degrees clockwise.".into(),
                ..number("rotate", "Rotate", (-360.0, 360.0), 0.0)
            },
            Parameter {
                description: "How colors mix (W3C Compositing and Blending).".into(),
                ..select(
                    "blend",
                    "Blend",
                    "normal",
                    &[
                        ("normal", "Normal"),
                        ("multiply", "Multiply"),
                        ("screen", "Screen"),
                        ("overlay", "Overlay"),
                        ("darken", "Darken"),
                        ("lighten", "Lighten"),
                    ],
                )
            },
        ],
        check: no_check,
    }
    .build::<OverlayImage>()
}

/// The parameters, normalized.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OverlayImage {
    #[serde(deserialize_with = "parsed")]
    anchor: Anchor,
    offset_x: i64,
    offset_y: i64,
    scale: f64,
    opacity: f64,
    rotate: f64,
    #[serde(deserialize_with = "parsed")]
    blend: Blend,
}

impl OverlayImage {
    fn params(&self) -> Overlay {
        let Self { anchor, offset_x, offset_y, scale, opacity, rotate, blend } = *self;
        Overlay { anchor, offset: (offset_x, offset_y), scale, opacity, rotate, blend }
    }
}

impl Run for OverlayImage {
    fn plan(&self, sources: &[Size]) -> Result<Size, Refusal> {
        overlay::plan(sources[0]).map_err(Refusal::for_field("inputs[0]"))
    }

    fn memory_bytes(&self, sources: &[Header], output: Size, rows: Option<Finish>) -> u64 {
        // The layer is at most as large as the image below it. One that is turned by other than right angles is scaled as
        // a whole before it is clipped: the result and the image between the passes of the convolution.
        let turned = if self.rotate % 90.0 == 0.0 { 0 } else { 2 * PIXEL_BYTES * sources[1].size().pixels() };
        let layer = || held_as_a_whole(&sources[1..], output);
        let streamed = stream_bytes(rows, sources, output).map(|bytes| bytes + layer());
        turned + streamed.unwrap_or_else(|| held_as_a_whole(sources, output))
    }

    fn run(&self, image: Input, second: &[u8], rows: Option<Finish>) -> Result<Change, raster::Error> {
        overlay::change(image, second, &self.params(), rows)
    }
}
