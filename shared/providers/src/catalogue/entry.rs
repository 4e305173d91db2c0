//! One model, and how its parameters are called on the wire.

use std::collections::BTreeMap;

use domain::model::{Capability, ModelType, ProviderKind};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What an entry makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryType {
    /// Pictures.
    Image,
    /// Videos.
    Video,
    /// Texts; such models are not listed (decisions 12.3).
    Text,
}

/// What runs a managed model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// The service itself, out of the box (decisions 12.2).
    Embedded,
    /// A server with OpenAI's routes; also what the third parties' own entries carry, for whom it says nothing.
    #[default]
    OpenAi,
    /// A server with the Comfy API.
    Comfy,
}

/// From least to most, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Least.
    #[serde(default)]
    pub min: usize,
    /// Most.
    pub max: usize,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// The provider's own id; unique for the provider. 1 to 240 characters.
    pub id: String,
    /// For people.
    pub name: String,
    /// Who runs it.
    pub provider: ProviderKind,
    /// What it makes.
    #[serde(rename = "type")]
    pub kind: EntryType,
    /// What it can be asked for; empty for text alone.
    #[serde(default)]
    pub capabilities: Vec<Capability>,
    /// Guidance, at least 1.
    pub estimated_seconds: u32,
    /// Whether the provider calls it unfinished.
    #[serde(default)]
    pub beta: bool,
    /// Credits an output: at least 1 for managed pictures and videos, 0 for everything else (decisions 12.4).
    #[serde(default)]
    pub credit_cost: i64,
    /// What runs it, for managed models alone.
    #[serde(default)]
    pub runtime: Runtime,
    /// Longest prompt, in UTF-16 code units, which is what the vendors that have such a limit count.
    pub prompt_max: usize,
    /// Pictures that may go along; none when absent.
    #[serde(default)]
    pub references: Option<Range>,
    /// Values of `size`, the best default first; when empty the model takes none.
    #[serde(default)]
    pub sizes: Vec<String>,
    /// Values of `quality`; when empty the model takes none.
    #[serde(default)]
    pub qualities: Vec<String>,
    /// Values of `durationSeconds` of a video, 1 to 120; when empty the model takes none.
    #[serde(default)]
    pub durations: Vec<u32>,
    /// Values of `aspectRatio` of a video; when empty the model takes none.
    #[serde(default)]
    pub aspect_ratios: Vec<String>,
    /// Values of `resolution` of a video; when empty the model takes none.
    #[serde(default)]
    pub resolutions: Vec<String>,
    /// Whether a video's sound can be asked for or left out (`generateAudio`).
    #[serde(default)]
    pub audio_optional: bool,
    /// How it is asked.
    #[serde(default)]
    pub wire: Wire,
}

/// How a model is asked: the provider's names for what we call prompt, references, size and quality.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wire {
    /// Where it is asked, or the provider's name for it there, when that is not the id.
    pub endpoint: Option<String>,
    /// The same when pictures go along.
    pub edit_endpoint: Option<String>,
    /// Where it is asked for one capability, before all others.
    pub endpoints: BTreeMap<Capability, String>,
    /// The field of the first frame.
    pub first_frame: Option<String>,
    /// The field of the last frame.
    pub last_frame: Option<String>,
    /// The field of the duration.
    pub duration: Option<DurationField>,
    /// The field of a video's aspect ratio.
    pub aspect_ratio: Option<String>,
    /// The field of a video's resolution.
    pub resolution: Option<String>,
    /// The field that says whether there is sound.
    pub audio: Option<String>,
    /// The field of the prompt; `prompt` when absent.
    pub prompt: Option<String>,
    /// The field of a seed; none is sent when absent.
    pub seed: Option<String>,
    /// The field of the pictures.
    pub references: Option<ReferenceField>,
    /// The field of the size.
    pub size: Option<SizeField>,
    /// Whether an order with pictures has no size of its own: it gets theirs.
    pub size_from_reference: bool,
    /// The field of the quality.
    pub quality: Option<String>,
    /// Sent as it is.
    pub fixed: Map<String, Value>,
    /// Sent as it is when pictures go along, over `fixed`.
    pub edit_fixed: Map<String, Value>,
    /// Comfy: the graph in API format. Texts that are exactly `{{prompt}}`, `{{width}}`, `{{height}}`, `{{seed}}` or
    /// `{{image:N}}` (N from 0) are replaced by the value; in that of a video also `{{frames}}`, `{{first_frame}}` and
    /// `{{last_frame}}`.
    pub workflow: Option<Map<String, Value>>,
    /// Comfy: width and height of a video, `WxH`, by its aspect ratio and resolution as they are offered, a space in between
    /// (`16:9 720p`); by the one of them where the model takes no other.
    pub boxes: BTreeMap<String, String>,
    /// Comfy: frames that a video has a second, and one more altogether, as its models count.
    pub frames_per_second: Option<u32>,
}

/// The field that takes pictures.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceField {
    /// Its name.
    pub field: String,
    /// What it takes.
    pub form: ReferenceForm,
}

/// How several pictures go into fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReferenceForm {
    /// One picture.
    Single,
    /// A list.
    List,
    /// `<field>`, `<field>_2`, `<field>_3` and so on.
    Numbered,
}

/// The field that takes the size.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeField {
    /// Its name; unused for `box`.
    #[serde(default)]
    pub field: String,
    /// What it takes.
    pub form: SizeForm,
}

/// The field that takes the duration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DurationField {
    /// Its name.
    pub field: String,
    /// What it takes.
    pub form: DurationForm,
}

/// How a duration of eight seconds is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurationForm {
    /// `8`
    Integer,
    /// `"8"`
    Text,
    /// `"8s"`
    Seconds,
}

/// How a size is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SizeForm {
    /// As it is.
    Text,
    /// `WxH` as the fields `width` and `height`.
    Box,
}

impl Entry {
    /// The name of a video's width and height among [`Wire::boxes`].
    pub(crate) fn box_name(aspect_ratio: Option<&str>, resolution: Option<&str>) -> String {
        aspect_ratio.into_iter().chain(resolution).collect::<Vec<_>>().join(" ")
    }

    /// Fewest references.
    pub fn references_min(&self) -> usize {
        self.references.map_or(0, |range| range.min)
    }

    /// Most references.
    pub fn references_max(&self) -> usize {
        self.references.map_or(0, |range| range.max)
    }

    /// What lists call it; `None` for text models, which are not listed.
    pub fn model_type(&self) -> Option<ModelType> {
        match self.kind {
            EntryType::Image => Some(ModelType::Image),
            EntryType::Video => Some(ModelType::Video),
            EntryType::Text => None,
        }
    }
}
