//! Images of the web.

use client::answers::ProductImport;
use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::Failure;
use crate::names::{NamedCanvas, Names};
use crate::tool::{Hints, Result, Tool};
use crate::work::{self, IMAGES_MAX};

pub struct ImportUrl;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    canvas: CanvasName,
    /// https
    url: String,
    r#as: Form,
    /// Of a product: exact key=value, never guessed
    variant: Option<String>,
    #[schemars(length(min = 1, max = 160))]
    title: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Form {
    Image,
    Product,
}

#[serde_with::skip_serializing_none]
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    status: &'static str,
    #[serde(flatten)]
    on: NamedCanvas,
    revision: Option<String>,
    replayed: bool,
    section: Option<String>,
    images: Vec<Value>,
    /// Why a person has to decide.
    reason: Option<String>,
    variant: Option<Value>,
}

impl Tool for ImportUrl {
    const NAME: &'static str = "import_url";
    const TITLE: &'static str = "Import from the web";
    const ABOUT: &'static str = "Bring in a public image, or the gallery of a product page as one Section. With review_required ask a \
                                 person for the variant.";
    const HINTS: Hints = Hints::REACH_OUT;
    const SCOPES: &'static [Scope] = &[Scope::CanvasRead, Scope::CanvasWrite, Scope::AssetRead];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let mut body = json!({"canvasId": arguments.canvas.handle(), "idempotencyKey": call.key()});
        if let Some(title) = arguments.title {
            body["title"] = title.into();
        }
        let mut output = Output { status: "succeeded", ..Output::default() };
        let (canvas, images) = match (arguments.r#as, arguments.variant) {
            (Form::Image, Some(_)) => return Err(Failure::argument("variant", "belongs to as=product")),
            (Form::Image, None) => {
                body["imageUrl"] = arguments.url.into();
                let read = call.client.import_image().json(&body).await?.value()?;
                (output.replayed, output.revision) = (read.replayed, Some(read.canvas_revision));
                (read.canvas_id, vec![read.image])
            }
            (Form::Product, variant) => {
                body["productPageUrl"] = arguments.url.into();
                if let Some(variant) = variant {
                    body["variantSelector"] = variant.into();
                }
                match call.client.import_product_references().json(&body).await?.value()? {
                    ProductImport::Succeeded(read) => {
                        (output.replayed, output.revision) = (read.replayed, Some(read.canvas_revision));
                        output.section = Some(read.pack.section_id.into());
                        output.variant = Some(json!(read.variant));
                        (read.canvas_id, read.images)
                    }
                    ProductImport::ReviewRequired(read) => {
                        output.status = "review_required";
                        output.reason = Some(read.reason.to_string());
                        output.variant = Some(json!(read.variant));
                        (read.canvas_id, Vec::new())
                    }
                }
            }
        };
        let assets: Vec<String> = images.iter().map(|it| it.asset_id.to_string()).take(IMAGES_MAX).collect();
        let canvas = canvas.to_string();
        let nodes = images.iter().map(|it| it.node_id.to_string()).chain(output.section.clone()).map(Some);
        // A page that a person has to look at has made no node.
        let named = nodes.chain([None]).map(|node| (canvas.clone(), node)).collect();
        let names = Names::read(call, named).await;
        output.on = names.canvas(call, &canvas);
        output.section = output.section.map(|section| names.node(&canvas, &section));
        output.images = images
            .iter()
            .map(|it| {
                let node = names.node(&canvas, &it.node_id.to_string());
                json!({"node": node, "asset": it.asset_id, "width": it.width, "height": it.height})
            })
            .collect();
        Ok(work::show(&call.client, Answer::new(output), &assets).await)
    }
}
