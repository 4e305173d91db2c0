//! A model and the names of its parameters in the provider's protocol.

use std::collections::BTreeMap;

use domain::model::{Capability, ModelType, ProviderKind};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The kind of output of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryType {
    Image,
    Video,
    /// Text models are not listed to clients.
    Text,
}

/// The server that runs a managed model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// The embedded runtime of the service.
    Embedded,
    /// A server with OpenAI's routes. Entries of third parties also have this value, without
    /// meaning.
    #[default]
    OpenAi,
    /// A server with the Comfy API.
    Comfy,
}

/// How a model takes the mask of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MaskHandling {
    /// The mask is sent, in the form of the protocol.
    Native,
    /// The mask is not sent. The worker restores what it keeps.
    Composited,
}

impl MaskHandling {
    /// The name in the contract and in a catalog.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Composited => "composited",
        }
    }
}

/// A range with inclusive bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    #[serde(default)]
    pub min: usize,
    pub max: usize,
}

/// A model of the catalog. The fields are described in `docs/reference/models.md#catalog-entry`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// The provider's own id, 1 to 240 characters, unique per provider.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The provider that runs the model.
    pub provider: ProviderKind,
    /// The kind of output.
    #[serde(rename = "type")]
    pub kind: EntryType,
    /// The capabilities; empty for text models.
    #[serde(default)]
    pub capabilities: Vec<Capability>,
    /// The estimated duration in seconds, at least 1.
    pub estimated_seconds: u32,
    /// `true` if the provider calls it experimental.
    #[serde(default)]
    pub beta: bool,
    /// The credits per output: at least 1 for managed images and videos, 0 for everything else.
    #[serde(default)]
    pub credit_cost: i64,
    /// The server that runs it; only for managed models.
    #[serde(default)]
    pub runtime: Runtime,
    /// The maximum prompt length in UTF-16 code units, the unit of the vendors that limit prompts.
    pub prompt_max: usize,
    /// The permitted number of reference images; none if absent.
    #[serde(default)]
    pub references: Option<Range>,
    /// How an edit takes a mask; not at all if absent.
    #[serde(default)]
    pub mask: Option<MaskHandling>,
    /// `true` if every edit needs a mask.
    #[serde(default)]
    pub mask_required: bool,
    /// The values of `size`, the default first; empty if the model has no such parameter.
    #[serde(default)]
    pub sizes: Vec<String>,
    /// The values of `quality`; empty if the model has no such parameter.
    #[serde(default)]
    pub qualities: Vec<String>,
    /// The values of `durationSeconds` of a video, 1 to 120; empty if the model has no such
    /// parameter.
    #[serde(default)]
    pub durations: Vec<u32>,
    /// The values of `aspectRatio` of a video; empty if the model has no such parameter.
    #[serde(default)]
    pub aspect_ratios: Vec<String>,
    /// The values of `resolution` of a video; empty if the model has no such parameter.
    #[serde(default)]
    pub resolutions: Vec<String>,
    /// `true` if a request can enable or disable a video's sound (`generateAudio`).
    #[serde(default)]
    pub audio_optional: bool,
    /// The names in the provider's protocol.
    #[serde(default)]
    pub wire: Wire,
}

/// The provider's names of the endpoint and of prompt, references, size, quality and other parameters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Wire {
    /// The endpoint, or the provider's name of the model there, if it differs from the id.
    pub endpoint: Option<String>,
    /// The endpoint of requests with images.
    pub edit_endpoint: Option<String>,
    /// The endpoints of single capabilities, which take precedence over the others.
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
    /// The field that enables or disables sound.
    pub audio: Option<String>,
    /// The field of the prompt; `prompt` if absent.
    pub prompt: Option<String>,
    /// The field of a seed. If absent, no seed is sent.
    pub seed: Option<String>,
    /// The field of the images.
    pub references: Option<ReferenceField>,
    /// The field of the mask. Protocols with a field of their own for it need none.
    pub mask: Option<String>,
    /// The field of the size.
    pub size: Option<SizeField>,
    /// `true` if an order with images takes its size from them.
    pub size_from_reference: bool,
    /// The field of the quality.
    pub quality: Option<String>,
    /// Fields that are sent unchanged.
    pub fixed: Map<String, Value>,
    /// Fields that are sent unchanged with images; they override `fixed`.
    pub edit_fixed: Map<String, Value>,
    /// Comfy: the graph in API format. Texts that are exactly `{{prompt}}`, `{{width}}`, `{{height}}`, `{{seed}}`,
    /// `{{image:N}}` (N from 0) or `{{mask}}` are replaced by the value; for a video also `{{frames}}`, `{{first_frame}}` and
    /// `{{last_frame}}`.
    pub workflow: Option<Map<String, Value>>,
    /// Comfy: the width and height of a video, `WxH`, by aspect ratio and resolution as offered,
    /// separated by a space (`16:9 720p`), or by one of the two if the model does not support the
    /// other.
    pub boxes: BTreeMap<String, String>,
    /// Comfy: frames per second of video. One more frame is added to the total, as the models
    /// require.
    pub frames_per_second: Option<u32>,
}

/// The field for images.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceField {
    pub field: String,
    /// How several images are written into it.
    pub form: ReferenceForm,
}

/// How several images are written into fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReferenceForm {
    /// One image only.
    Single,
    /// As a list.
    List,
    /// As the fields `<field>`, `<field>_2`, `<field>_3` and so on.
    Numbered,
}

/// The field for the size.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeField {
    /// The name of the field; unused for `box`.
    #[serde(default)]
    pub field: String,
    /// How a size is written into it.
    pub form: SizeForm,
}

/// The field for the duration.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DurationField {
    pub field: String,
    /// How a duration is written into it.
    pub form: DurationForm,
}

/// How a duration is written. The examples show eight seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurationForm {
    /// As the number `8`.
    Integer,
    /// As the string `"8"`.
    Text,
    /// As the string `"8s"`.
    Seconds,
}

/// How a size is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SizeForm {
    /// As the catalog's text.
    Text,
    /// `WxH` as the fields `width` and `height`.
    Box,
}

/// Returns `true` if the aspect ratios of two sizes differ by at most one percent.
pub fn same_shape((width, height): (u32, u32), (other_width, other_height): (u32, u32)) -> bool {
    let (one, other) = (u64::from(width) * u64::from(other_height), u64::from(other_width) * u64::from(height));
    100 * one.abs_diff(other) <= other
}

impl Entry {
    /// The key of a video's width and height in [`Wire::boxes`].
    pub(crate) fn box_name(aspect_ratio: Option<&str>, resolution: Option<&str>) -> String {
        aspect_ratio.into_iter().chain(resolution).collect::<Vec<_>>().join(" ")
    }

    /// The first size on offer with the aspect ratio of an image of this size, within one percent; `None` if the model takes it
    /// from the image itself.
    pub fn size_like(&self, (width, height): (u32, u32)) -> Option<&str> {
        let fits = |size: &&String| {
            let sides = size.split_once(['x', ':']).map(|(width, height)| (width.parse(), height.parse()));
            matches!(sides, Some((Ok(w), Ok(h))) if same_shape((w, h), (width, height)))
        };
        self.sizes.iter().filter(|_| !self.wire.size_from_reference).find(fits).map(String::as_str)
    }

    /// The minimum number of references.
    pub fn references_min(&self) -> usize {
        self.references.map_or(0, |range| range.min)
    }

    /// The maximum number of references.
    pub fn references_max(&self) -> usize {
        self.references.map_or(0, |range| range.max)
    }

    /// The type in lists of models; `None` for text models, which are not listed.
    pub fn model_type(&self) -> Option<ModelType> {
        match self.kind {
            EntryType::Image => Some(ModelType::Image),
            EntryType::Video => Some(ModelType::Video),
            EntryType::Text => None,
        }
    }
}
