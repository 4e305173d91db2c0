//! What the three requests say.

use domain::graph::{Named, Role};
use domain::id::AccountUid;
use domain::webhook::WebhookInput;
use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, Array, ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::extract::json::Input;

/// A node as requests name it.
const NODE: &str = "^(node:)?[A-Za-z0-9_-]{1,180}$";
/// A picture as requests name it.
const PICTURE: &str = "^(node:|asset:([A-Za-z0-9_-]{1,180}:)?)[A-Za-z0-9_-]{1,180}$";
/// A version of an Element.
const ELEMENT_VERSION: &str = "^element:[A-Za-z0-9_-]{1,160}@v[1-9][0-9]{0,8}$";

/// Images to generate, to edit or to vary. Edit and variations need pictures to start from, generate and edit a prompt.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImageStart {
    /// Plain id or handle.
    #[schema(max_length = 560, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$")]
    pub canvas_id: String,
    /// The revision that the request was made for.
    #[schema(min_length = 1, max_length = 200)]
    pub base_revision: String,
    /// Names this request, so that sending it again starts nothing twice.
    #[schema(min_length = 8, max_length = 200)]
    pub idempotency_key: String,
    /// The image node that takes the one result; this or `targetNodeIds`.
    #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$", nullable = false)]
    pub target_node_id: Option<String>,
    /// Image nodes that take one result each, in this order.
    #[schema(schema_with = target_nodes)]
    pub target_node_ids: Option<Vec<String>>,
    /// What to make; this or `promptNodeId`.
    #[schema(min_length = 1, max_length = 8000, nullable = false)]
    pub prompt: Option<String>,
    /// A text or sticky node whose content says what to make.
    #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$", nullable = false)]
    pub prompt_node_id: Option<String>,
    /// Pictures that guide the results. Left out for one target: those that `reference` connections bring to it.
    #[schema(schema_with = references)]
    pub references: Option<Vec<ReferenceItem>>,
    /// Versions of the caller's Elements, `element:<id>@v<n>`.
    #[serde(default)]
    #[schema(schema_with = element_versions)]
    pub elements: Vec<String>,
    /// A node or asset handle that is appended to the references.
    #[schema(pattern = "^(node:|asset:([A-Za-z0-9_-]{1,180}:)?)[A-Za-z0-9_-]{1,180}$", nullable = false)]
    pub source: Option<String>,
    /// The number of targets, said once more.
    #[schema(minimum = 1, maximum = 4, nullable = false)]
    pub count: Option<u32>,
    /// Plain id of the saved connection to run the model with.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$", nullable = false)]
    pub connection_id: Option<String>,
    /// The provider's model id or a `model:` handle; left out, the account's first model that can do it.
    #[schema(max_length = 650, nullable = false)]
    pub model: Option<String>,
    /// One of those that the model offers.
    #[schema(max_length = 80, nullable = false)]
    pub size: Option<String>,
    /// One of those that the model offers.
    #[schema(max_length = 80, nullable = false)]
    pub quality: Option<String>,
    /// Where to announce the end.
    #[schema(nullable = false)]
    pub webhook: Option<WebhookInput>,
}

impl Input for ImageStart {}

/// A reference: a handle, or a handle and what it is for.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum ReferenceItem {
    /// A handle.
    Handle(String),
    /// A handle and what it is for.
    WithRole(ReferenceWithRole),
}

/// A handle and what it is for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceWithRole {
    handle: String,
    role: Option<Role>,
}

impl ReferenceItem {
    /// The picture, and what it is for.
    pub fn named(&self, account: &AccountUid) -> Option<(Named, Option<Role>)> {
        let (handle, role) = match self {
            Self::Handle(handle) => (handle, None),
            Self::WithRole(ReferenceWithRole { handle, role }) => (handle, *role),
        };
        Some((Named::parse(handle, account)?, role))
    }

    /// The handle in an item that need not be of this form.
    pub fn handle_in(item: &Value) -> Option<&str> {
        item.as_str().or_else(|| item.get("handle")?.as_str())
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
