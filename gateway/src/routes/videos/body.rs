//! What a request for a video says.

use domain::graph::Role;
use domain::limits::VIDEO_PICTURE_MAX;
use serde::Deserialize;
use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, Array, ArrayBuilder, ObjectBuilder, OneOfBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::extract::json::Input;

/// A video to generate.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VideoStart {
    /// The provider's model id or a `model:` handle.
    #[schema(min_length = 1, max_length = 650)]
    pub model: String,
    /// Plain id of the saved connection to run the model with.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$", nullable = false)]
    pub connection_id: Option<String>,
    /// What to make.
    #[schema(min_length = 1, max_length = 8000)]
    pub prompt: String,
    /// Names this request, so that sending it again starts nothing twice.
    #[schema(min_length = 8, max_length = 200)]
    pub idempotency_key: String,
    /// The canvas that node handles belong to: plain id or handle. Nothing is written to it.
    #[schema(max_length = 560, pattern = "^(canvas:([A-Za-z0-9_-]{1,180}:)?)?[A-Za-z0-9_-]{1,180}$", nullable = false)]
    pub canvas_id: Option<String>,
    /// The owner of the canvas, when its id does not say so.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$", nullable = false)]
    pub owner_uid: Option<String>,
    /// One of those that the model offers.
    #[schema(max_length = 80, nullable = false)]
    pub aspect_ratio: Option<String>,
    /// One of those that the model offers.
    #[schema(minimum = 1, maximum = 120, nullable = false)]
    pub duration_seconds: Option<u32>,
    /// One of those that the model offers.
    #[schema(max_length = 80, nullable = false)]
    pub resolution: Option<String>,
    /// Whether it has sound, for models that can leave it out.
    #[schema(nullable = false)]
    pub generate_audio: Option<bool>,
    /// What it begins with: a node handle, an asset handle or a public https URL of a picture.
    #[schema(max_length = 2048, nullable = false)]
    pub first_frame: Option<String>,
    /// What it ends with; only together with a first frame.
    #[schema(max_length = 2048, nullable = false)]
    pub last_frame: Option<String>,
    /// Pictures that guide it.
    #[serde(default)]
    #[schema(schema_with = references)]
    pub references: Vec<ReferenceItem>,
}

impl Input for VideoStart {}

/// A reference: a picture, or a picture and what it is for.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum ReferenceItem {
    /// A picture.
    Handle(String),
    /// A picture and what it is for.
    WithRole(ReferenceWithRole),
}

/// A picture and what it is for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceWithRole {
    handle: String,
    role: Option<Role>,
}

impl ReferenceItem {
    /// The picture as the request names it, and what it is for.
    pub fn parts(&self) -> (&str, Option<Role>) {
        match self {
            ReferenceItem::Handle(handle) => (handle, None),
            ReferenceItem::WithRole(ReferenceWithRole { handle, role }) => (handle, *role),
        }
    }

    /// The picture in an item that need not be of this form.
    pub fn handle_in(item: &Value) -> Option<&str> {
        item.as_str().or_else(|| item.get("handle")?.as_str())
    }
}

fn references() -> Array {
    let picture = || ObjectBuilder::new().schema_type(Type::String).max_length(Some(VIDEO_PICTURE_MAX));
    let with_role = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("handle", picture())
        .required("handle")
        .property("role", Role::schema())
        .additional_properties(Some(AdditionalProperties::FreeForm(false)));
    let description = "Pictures that guide the video: node handles, asset handles or public https URLs, each with what it is \
                       for or not.";
    ArrayBuilder::new()
        .items(OneOfBuilder::new().item(picture()).item(with_role))
        .max_items(Some(domain::limits::VIDEO_REFERENCES_MAX))
        .description(Some(description))
        .build()
}
