//! The body of the three image requests (docs/reference/images.md#request-fields).

use domain::graph::Role;
use domain::webhook::WebhookInput;
use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, Array, ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::extract::json::Input;
use crate::place::TargetPlace;
use crate::reference::ReferenceItem;
use crate::start::ignored;

/// Pattern of a node in a request.
const NODE: &str = "^(node:)?[A-Za-z0-9_-]{1,180}$";
/// Pattern of a picture in a request.
const PICTURE: &str = "^(node:|asset:([A-Za-z0-9_-]{1,180}:)?)[A-Za-z0-9_-]{1,180}$";
/// Pattern of an Element version in a request.
const ELEMENT_VERSION: &str = "^element:[A-Za-z0-9_-]{1,160}@v[1-9][0-9]*$";

/// Request to generate, edit or vary images. Edit and variations need pictures to start from; generate and edit need a prompt.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageStart {
    /// Plain id or handle of the canvas.
    #[schema(max_length = 560, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$")]
    pub canvas_id: String,
    /// The canvas revision that the request is based on.
    #[schema(min_length = 1, max_length = 200)]
    pub base_revision: String,
    /// Idempotency key: an equal request with the same key returns the same job. Ignored and not needed with
    /// `validateOnly`.
    #[schema(min_length = 8, max_length = 200, nullable = false)]
    pub idempotency_key: Option<String>,
    /// Maximum price in credits; a start that costs more is refused with 402.
    #[schema(minimum = 0, maximum = 9007199254740991i64, nullable = false)]
    pub max_credits: Option<i64>,
    /// `true` only checks the start and answers 200 with its quote; it needs no `idempotencyKey`.
    #[serde(default)]
    pub validate_only: bool,
    /// Image node that receives the only result; excludes `targetNodeIds` and `place`.
    #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$", nullable = false)]
    pub target_node_id: Option<String>,
    /// Image nodes that receive one result each, in this order.
    #[schema(schema_with = target_nodes, required = false)]
    pub target_node_ids: Option<Vec<String>>,
    /// Adds the targets in place of nodes that exist.
    #[schema(nullable = false)]
    pub place: Option<TargetPlace>,
    /// Whether the nodes among `references` and `source` are connected to each target: `reference` with its role, `flow`
    /// from the source. Default: `true` with `place`.
    #[schema(nullable = false)]
    pub connect: Option<bool>,
    /// Prompt; excludes `promptNodeId`.
    #[schema(min_length = 1, max_length = 8000, nullable = false)]
    pub prompt: Option<String>,
    /// Text or sticky node whose content is the prompt.
    #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$", nullable = false)]
    pub prompt_node_id: Option<String>,
    /// Pictures that guide the results. When omitted with one target: the pictures of its incoming `reference` connections.
    #[schema(schema_with = references, required = false)]
    pub references: Option<Vec<ReferenceItem>>,
    /// Versions of the caller's Elements, `element:<id>@v<n>`.
    #[serde(default)]
    #[schema(schema_with = element_versions)]
    pub elements: Vec<String>,
    /// Node or asset handle of a picture that is appended to the references.
    #[schema(pattern = "^(node:|asset:([A-Za-z0-9_-]{1,180}:)?)[A-Za-z0-9_-]{1,180}$", nullable = false)]
    pub source: Option<String>,
    /// Number of targets; must equal their actual number.
    #[schema(minimum = 1, maximum = 4, nullable = false)]
    pub count: Option<u32>,
    /// Plain id of the saved connection to run the model with.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$", nullable = false)]
    pub connection_id: Option<String>,
    /// Provider's model id or a `model:` handle; when omitted, the account's first model with the capability.
    #[schema(max_length = 650, nullable = false)]
    pub model: Option<String>,
    /// Size, one of those that the model offers.
    #[schema(max_length = 80, nullable = false)]
    pub size: Option<String>,
    /// Quality, one of those that the model offers.
    #[schema(max_length = 80, nullable = false)]
    pub quality: Option<String>,
    /// Webhook to notify when the job ends.
    #[schema(nullable = false)]
    pub webhook: Option<WebhookInput>,
}

impl Input for ImageStart {
    fn ignored(body: &Value) -> &'static [&'static str] {
        ignored(body)
    }
}

fn text(pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern))
}

fn target_nodes() -> Array {
    ArrayBuilder::new()
        .items(text(NODE))
        .min_items(Some(1))
        .max_items(Some(4))
        .description(Some("Image nodes that take one result each, in this order."))
        .build()
}

fn references() -> Array {
    let with_role = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("handle", text(PICTURE))
        .required("handle")
        .property("role", Role::schema())
        .additional_properties(Some(AdditionalProperties::FreeForm(false)));
    let description = "Pictures that guide the results: node or asset handles, each with what it is for or not. Left out for \
                       one target: those that `reference` connections bring to it.";
    ArrayBuilder::new()
        .items(OneOfBuilder::new().item(text(PICTURE)).item(with_role))
        .min_items(Some(1))
        .max_items(Some(16))
        .description(Some(description))
        .build()
}

fn element_versions() -> Array {
    ArrayBuilder::new()
        .items(text(ELEMENT_VERSION))
        .max_items(Some(8))
        .description(Some("Versions of the caller's Elements, `element:<id>@v<n>`."))
        .build()
}
