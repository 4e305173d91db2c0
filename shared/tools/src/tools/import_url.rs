//! Pictures of the web.

use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::canvas_name::CanvasName;
use crate::failure::Failure;
use crate::tool::{Hints, Result, Tool};
use crate::work::{self, PICTURES_MAX};

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

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    status: String,
    canvas: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    replayed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    section: Option<String>,
    images: Vec<Value>,
    /// Why a person has to decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<Value>,
}

impl Tool for ImportUrl {
    const NAME: &'static str = "import_url";
    const TITLE: &'static str = "Import from the web";
    const ABOUT: &'static str = "Bring in a public picture, or the gallery of a product page as one Section. With review_required ask a \
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
        let read = match (arguments.r#as, arguments.variant) {
            (Form::Image, Some(_)) => return Err(Failure::argument("variant", "belongs to as=product")),
            (Form::Image, None) => {
                body["imageUrl"] = arguments.url.into();
                call.client.import_image().json(&body).await?.json()
            }
            (Form::Product, variant) => {
                body["productPageUrl"] = arguments.url.into();
                if let Some(variant) = variant {
                    body["variantSelector"] = variant.into();
                }
                call.client.import_product_references().json(&body).await?.json()
            }
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let images = read["images"].as_array().cloned().unwrap_or_else(|| vec![read["image"].clone()]);
        let images = images.iter().filter(|image| image.is_object());
        let images: Vec<Value> = images
            .map(|it| json!({"node": it["nodeId"], "asset": it["assetId"], "width": it["width"], "height": it["height"]}))
            .collect();
        let assets: Vec<String> = images.iter().filter_map(|it| text(&it["asset"])).take(PICTURES_MAX).collect();
        let output = Output {
            status: text(&read["status"]).unwrap_or_else(|| "succeeded".to_owned()),
            canvas: text(&read["canvasId"]).unwrap_or_default(),
            revision: text(&read["canvasRevision"]),
            replayed: read["replayed"] == true,
            section: text(&read["pack"]["sectionId"]),
            images,
            reason: text(&read["reason"]),
            variant: read.get("variant").cloned(),
        };
        Ok(work::show(&call.client, Answer::new(output), &assets).await)
    }
}
