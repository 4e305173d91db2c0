//! Views of canvases and assets.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::account::Scope;
use http::header::ACCEPT;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, AnswerImage};
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::Failure;
use crate::names::{NamedCanvas, Names};
use crate::tool::{Hints, Result, Tool};
use crate::work;

const WIDTH: u32 = 1024;
/// Widths in which images are served, from the widest that is shown.
const RENDITIONS: [u32; 3] = [1024, 512, 256];

pub struct CanvasView;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// Draw this canvas
    canvas: Option<CanvasName>,
    /// Or show this image
    asset: Option<String>,
    /// Only this Section of the canvas
    section: Option<String>,
    /// Only these nodes of the canvas
    #[schemars(length(min = 1, max = 200))]
    nodes: Option<Vec<String>>,
    #[schemars(range(min = 256, max = 1568))]
    width: Option<u32>,
    /// Number the nodes
    labels: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    #[serde(flatten)]
    shows: Shows,
    media_type: String,
    bytes: usize,
    /// Refs of the nodes with a number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Shows {
    Canvas(NamedCanvas),
    Asset { asset: String },
}

impl Tool for CanvasView {
    const NAME: &'static str = "canvas_view";
    const TITLE: &'static str = "See a canvas or image";
    const ABOUT: &'static str =
        "See a canvas, a part of it, or an asset as an image. labels=true numbers the nodes: 12 is n12.";
    const HINTS: Hints = Hints::READ;
    const SCOPES: &'static [Scope] = &[Scope::CanvasRead];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let width = arguments.width.unwrap_or(WIDTH);
        let (canvas, asset) = (arguments.canvas.as_ref().map(CanvasName::handle), arguments.asset);
        match (canvas, asset) {
            (Some(canvas), None) => {
                let nodes = arguments.nodes.map(|nodes| nodes.join(","));
                let request = call.client.render_canvas(&canvas).header(ACCEPT, "image/png").query("width", width);
                let request = request.query_if("section", arguments.section).query_if("nodes", nodes);
                let read = request.query_if("labels", arguments.labels).await?;
                let labels = read.header("x-canvas-labels").and_then(|labels| serde_json::from_str(labels).ok());
                let labels: BTreeMap<u32, IgnoredAny> = labels.unwrap_or_default();
                let on = Names::read(call, vec![(canvas.clone(), None)]).await.canvas(call, &canvas);
                let output = Output {
                    shows: Shows::Canvas(on.clone()),
                    media_type: "image/png".to_owned(),
                    bytes: read.body.len(),
                    labels: labels.into_keys().map(|number| format!("n{number}")).collect(),
                };
                let image = AnswerImage { data: STANDARD.encode(&read.body), media_type: output.media_type.clone() };
                Ok(Answer::new(output).with_image(image).with_link(&on.canvas))
            }
            (None, Some(asset)) => {
                let width = RENDITIONS.into_iter().find(|known| *known <= width).unwrap_or(256);
                let image = work::image(&call.client, &asset, width).await?;
                let output = Output {
                    media_type: image.media_type.clone(),
                    bytes: image.data.len() / 4 * 3,
                    labels: Vec::new(),
                    shows: Shows::Asset { asset: asset.clone() },
                };
                Ok(Answer::new(output).with_image(image).with_link(&asset))
            }
            _ => Err(Failure::argument("canvas", "give either canvas or asset")),
        }
    }
}
