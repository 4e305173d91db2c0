//! Models and saved provider connections. Rules: `docs/reference/models.md`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

use crate::graph::{named, part};
use crate::id::{ModelHandle, ModelKey};
use crate::known::{self, Name};
use crate::page::{CatalogEntry, Page};

named! {
    /// Kind of provider that runs a model.
    ProviderKind {
        /// Run by the operator: the embedded runtime, or a self-hosted server.
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

part! {
    /// A provider that an account can connect to.
    ConnectionProvider of ProviderKind: |kind| *kind != ProviderKind::Managed
}

/// Ids of the managed models that the embedded runtime runs. Their outputs stand in for those of a model.
pub const STAND_INS: [&str; 3] = ["sketch", "outline", "animatic"];

/// Returns `true` if the embedded runtime runs this model of this provider.
pub fn is_stand_in(provider: ProviderKind, id: &str) -> bool {
    provider == ProviderKind::Managed && STAND_INS.contains(&id)
}

impl ProviderKind {
    /// The kinds that an account can connect to.
    pub fn third_parties() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|kind| *kind != Self::Managed)
    }

    /// Name for people (`Model.providerLabel`).
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

/// Returns `true` if `text` has the form of a model's opaque key, `^[A-Za-z0-9_-]{8,600}$`.
pub fn is_model_key(text: &str) -> bool {
    (8..=600).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

named! {
    /// Capability of a model.
    Capability {
        /// Makes an image from a text.
        ImageGenerate = "image.generate",
        /// Makes an image from images and a text.
        ImageEdit = "image.edit",
        /// Makes variations of an image.
        ImageVariations = "image.variations",
        /// Makes a video from a text.
        VideoGenerate = "video.generate",
        /// Makes a video that begins with an image.
        VideoFromImage = "video.generate.fromImage",
        /// Makes a video between a first and a last image.
        VideoFromFrames = "video.generate.fromFrames",
        /// Makes a video of what reference images show.
        VideoFromReferences = "video.generate.fromReferences",
    }
}

impl Capability {
    /// Returns `true` if the output is a video; otherwise it is an image.
    pub const fn is_video(self) -> bool {
        !matches!(self, Capability::ImageGenerate | Capability::ImageEdit | Capability::ImageVariations)
    }
}

named! {
    /// Kind of output of a listed model. Text models are not listed.
    ModelType {
        /// Images.
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
        /// A list of texts.
        Strings = "string[]",
        /// A list of images, by handle.
        Images = "image[]",
    }
}

/// An option of a model's parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModelParameterOption {
    /// Label for people.
    pub label: String,
    /// Value to send.
    #[schema(schema_with = option_value)]
    pub value: Value,
    /// Description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

fn option_value() -> Object {
    let types = SchemaType::from_iter([Type::String, Type::Number, Type::Boolean]);
    ObjectBuilder::new().schema_type(types).description(Some("Value to send.")).build()
}

/// A parameter of a model.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelParameter {
    /// Field of the request, such as `prompt`, `references`, `size` or `quality`; for videos also `durationSeconds` or
    /// `aspectRatio`.
    pub name: String,
    /// Label for people.
    pub label: String,
    /// Description for people.
    pub description: String,
    /// Type of the value.
    #[serde(rename = "type")]
    pub kind: ModelParameterType,
    /// `true` if the request must contain it.
    pub required: bool,
    /// Least number, or fewest entries of a list.
    pub min: Option<f64>,
    /// Greatest number, most entries of a list, or most characters of a text.
    pub max: Option<f64>,
    /// The permitted values; empty when any value of the type is permitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<ModelParameterOption>,
    /// Capabilities that the parameter applies to.
    pub capabilities: Vec<Capability>,
}

impl ModelParameter {
    /// Returns `true` if `value` is among the options. Any value is when there are no options.
    pub fn offers(&self, value: &Value) -> bool {
        self.options.is_empty() || self.options.iter().any(|option| option.value == *value)
    }
}

/// A model that the caller can run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Opaque key of the model.
    #[schema(value_type = ModelKey)]
    pub id: String,
    /// Handle of the model.
    #[schema(value_type = ModelHandle)]
    pub handle: String,
    /// The provider's own id.
    #[schema(min_length = 1, max_length = 240)]
    pub model_id: String,
    /// Name for people.
    pub name: String,
    /// Kind of provider that runs it.
    #[schema(value_type = ProviderKind)]
    pub provider: Name<ProviderKind>,
    /// Name of the provider for people.
    pub provider_label: String,
    /// Id of the saved connection that runs it; `null` for managed models.
    #[schema(required)]
    pub connection_id: Option<String>,
    /// Name of that connection; the name of the provider for managed models.
    pub connection_name: String,
    /// Kind of output.
    #[serde(rename = "type")]
    #[schema(value_type = ModelType)]
    pub kind: Name<ModelType>,
    /// Capabilities of the model.
    #[schema(value_type = Vec<Capability>, min_items = 1)]
    pub capabilities: Vec<Name<Capability>>,
    /// Parameters of the model.
    #[serde(deserialize_with = "known::items")]
    pub parameters: Vec<ModelParameter>,
    /// Estimated duration in seconds. Guidance.
    #[schema(minimum = 1)]
    pub estimated_seconds: u32,
    /// `true` if the provider calls it experimental.
    pub beta: bool,
    /// Credits for each output; 0 with a saved connection.
    pub credit_cost: i64,
    /// `true` if the embedded runtime runs it: its outputs stand in for those of a model.
    pub stand_in: bool,
}

/// A saved connection to a third-party provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConnection {
    /// Plain id of the connection.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$")]
    pub id: String,
    /// Kind of provider; never `managed`.
    #[schema(value_type = ConnectionProvider)]
    pub provider: ProviderKind,
    /// Name for people.
    pub name: String,
    /// Masked key: its last four characters at most.
    pub masked_key: String,
    /// Ids of the models that the connection runs.
    pub models: Vec<String>,
}

/// One model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModelRead {
    /// The model; the caller can run it.
    pub model: Model,
}

/// A page of models: saved connections, oldest first, then the managed runtime, each in catalog order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModelList {
    /// Models that the caller's scopes allow; text models are not listed.
    pub models: Vec<Model>,
    /// Position in the list.
    pub page: Page,
}

/// A page of models in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ModelSummaries {
    /// Models in short: provider, capabilities, price and estimated duration of one output.
    pub models: Vec<CatalogEntry>,
    /// Position in the list.
    pub page: Page,
}

/// A page of models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ModelPage {
    /// Models with their parameters.
    Full(ModelList),
    /// Models in short, with `view=summary`.
    Summary(ModelSummaries),
}

/// A page of the account's connections, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ProviderConnectionList)]
pub struct ConnectionList {
    /// Connections, with masked API keys.
    pub connections: Vec<ProviderConnection>,
    /// Position in the list.
    pub page: Page,
}

/// A key as it may be shown: its last four characters if at least twelve stay hidden, otherwise none.
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
    fn a_stand_in_is_a_managed_model_of_the_embedded_runtime() {
        for id in STAND_INS {
            assert!(is_stand_in(ProviderKind::Managed, id) && !is_stand_in(ProviderKind::OpenAi, id), "{id}");
        }
        assert!(!is_stand_in(ProviderKind::Managed, "sdxl"));
    }

    #[test]
    fn three_capabilities_make_images() {
        let images: Vec<_> = Capability::ALL.iter().filter(|it| !it.is_video()).map(|it| it.as_str()).collect();
        assert_eq!(images, ["image.generate", "image.edit", "image.variations"]);
    }
}
