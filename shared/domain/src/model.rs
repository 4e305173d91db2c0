//! Models and saved provider connections (specification, Model and ProviderConnection; decisions 12).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use crate::graph::named;

named! {
    /// Who runs a model (decisions 12.1).
    ProviderKind {
        /// What the operator runs: the embedded runtime, or a server of the operator's own.
        Managed = "managed",
        /// OpenAI.
        OpenAi = "openai",
        /// Google's Gemini API.
        Google = "google",
        /// Replicate.
        Replicate = "replicate",
        /// fal.ai.
        Fal = "fal",
        /// Stability AI.
        Stability = "stability",
        /// Black Forest Labs.
        BlackForestLabs = "black-forest-labs",
        /// Runway.
        Runway = "runway",
    }
}

impl ProviderKind {
    /// The name for people (`Model.providerLabel`).
    pub const fn label(self) -> &'static str {
        match self {
            ProviderKind::Managed => "Managed",
            ProviderKind::OpenAi => "OpenAI",
            ProviderKind::Google => "Google",
            ProviderKind::Replicate => "Replicate",
            ProviderKind::Fal => "fal",
            ProviderKind::Stability => "Stability AI",
            ProviderKind::BlackForestLabs => "Black Forest Labs",
            ProviderKind::Runway => "Runway",
        }
    }
}

/// Whether `text` has the form of a model's opaque key, `^[A-Za-z0-9_-]{8,600}$` (specification, Identifiers and handles).
pub fn is_model_key(text: &str) -> bool {
    (8..=600).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

named! {
    /// What a model can be asked for (specification, Model).
    Capability {
        /// A picture from a text.
        ImageGenerate = "image.generate",
        /// A picture from pictures and a text.
        ImageEdit = "image.edit",
        /// A picture like a picture.
        ImageVariations = "image.variations",
        /// A video from a text.
        VideoGenerate = "video.generate",
        /// A video that begins with a picture.
        VideoFromImage = "video.generate.fromImage",
        /// A video from a first picture to a last.
        VideoFromFrames = "video.generate.fromFrames",
        /// A video of what pictures show.
        VideoFromReferences = "video.generate.fromReferences",
    }
}

impl Capability {
    /// Whether a video comes of it; else a picture.
    pub const fn is_video(self) -> bool {
        !matches!(self, Capability::ImageGenerate | Capability::ImageEdit | Capability::ImageVariations)
    }
}

named! {
    /// What a model makes, as far as models are listed (decisions 12.3).
    ModelType {
        /// Pictures.
        Image = "image",
        /// Videos.
        Video = "video",
    }
}

named! {
    /// The type of a model's parameter.
    ModelParameterType {
        /// A text.
        String = "string",
        /// A whole number.
        Integer = "integer",
        /// A number.
        Number = "number",
        /// True or false.
        Boolean = "boolean",
        /// Texts.
        Strings = "string[]",
        /// Pictures, by handle.
        Images = "image[]",
    }
}

/// One choice of a model's parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelParameterOption {
    /// For people.
    pub label: String,
    /// What is sent.
    pub value: Value,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<String>,
}

/// A parameter that a model takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelParameter {
    /// The request's field: `prompt`, `references`, `size`, `quality`; `durationSeconds`, `aspectRatio` and so on for
    /// video.
    pub name: String,
    /// For people.
    pub label: String,
    /// For people.
    pub description: String,
    /// What values it takes.
    #[serde(rename = "type")]
    pub kind: ModelParameterType,
    /// Whether it must be sent.
    pub required: bool,
    /// Least number, or fewest entries of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub min: Option<f64>,
    /// Greatest number, most entries of a list, or most characters of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max: Option<f64>,
    /// The only values it takes; none means any of its type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<ModelParameterOption>,
    /// The capabilities that it belongs to.
    pub capabilities: Vec<Capability>,
}

impl ModelParameter {
    /// Whether `value` is among the options; anything is where there are none.
    pub fn offers(&self, value: &Value) -> bool {
        self.options.is_empty() || self.options.iter().any(|option| option.value == *value)
    }
}

/// A model that the caller can run.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The opaque key (decisions 12.3).
    #[schema(pattern = "^[A-Za-z0-9_-]{8,600}$")]
    pub id: String,
    /// `model:<key>`.
    #[schema(pattern = "^model:[A-Za-z0-9_-]{8,600}$")]
    pub handle: String,
    /// The provider's own id.
    #[schema(min_length = 1, max_length = 240)]
    pub model_id: String,
    /// For people.
    pub name: String,
    /// Who runs it.
    pub provider: ProviderKind,
    /// Who runs it, for people.
    pub provider_label: String,
    /// The saved connection that it is run with; absent for managed models.
    #[schema(required)]
    pub connection_id: Option<String>,
    /// That connection's name; the provider's label of managed models, which no connection is needed for.
    pub connection_name: String,
    /// What it makes.
    #[serde(rename = "type")]
    pub kind: ModelType,
    /// What it can be asked for.
    #[schema(min_items = 1)]
    pub capabilities: Vec<Capability>,
    /// What it takes.
    pub parameters: Vec<ModelParameter>,
    /// Guidance.
    #[schema(minimum = 1)]
    pub estimated_seconds: u32,
    /// Whether the provider calls it unfinished.
    pub beta: bool,
    /// Credits an output; 0 with a saved connection (decisions 12.4; an extension).
    pub credit_cost: i64,
}

/// A saved connection to a third-party provider.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConnection {
    /// Its plain id.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$")]
    pub id: String,
    /// Whose API it is; never `managed`.
    #[schema(schema_with = third_parties)]
    pub provider: ProviderKind,
    /// For people.
    pub name: String,
    /// Enough of the key to tell it from another, and no more.
    pub masked_key: String,
    /// The ids of the models that it runs.
    pub models: Vec<String>,
}

/// The kinds that a connection can be saved for.
fn third_parties() -> RefOr<Schema> {
    let kinds = ProviderKind::ALL.iter().filter(|kind| **kind != ProviderKind::Managed).map(|kind| kind.as_str());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(kinds)).into()
}

/// A key as it may be shown: its last four characters where at least twelve stay hidden, else none.
pub fn masked(key: &str) -> String {
    let hidden = key.chars().count().saturating_sub(4);
    let shown: String = if hidden >= 12 { key.chars().skip(hidden).collect() } else { String::new() };
    format!("••••{shown}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_shows_four_characters_of_a_long_key_and_none_of_a_short_one() {
        assert_eq!(masked("sk-0123456789abcdef"), "••••cdef");
        assert_eq!(masked("0123456789abcdef"), "••••cdef");
        assert_eq!(masked("0123456789abcde"), "••••");
        assert_eq!(masked("ééééééééééééabcd"), "••••abcd");
        assert_eq!(masked(""), "••••");
    }

    #[test]
    fn three_capabilities_make_pictures() {
        let pictures: Vec<_> = Capability::ALL.iter().filter(|it| !it.is_video()).map(|it| it.as_str()).collect();
        assert_eq!(pictures, ["image.generate", "image.edit", "image.variations"]);
    }
}
