//! One model, and how its parameters are called on the wire.

use domain::model::{Capability, ModelParameter, ModelParameterOption, ModelParameterType, ModelType, ProviderKind};
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
    /// `{{image:N}}` (N from 0) are replaced by the value.
    pub workflow: Option<Map<String, Value>>,
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

    /// What it takes, in the contract's form.
    pub fn parameters(&self) -> Vec<ModelParameter> {
        let all = &self.capabilities;
        let with_pictures: Vec<Capability> = match self.references_min() {
            0 => all.clone(),
            _ => all.iter().copied().filter(|it| *it != Capability::ImageGenerate).collect(),
        };
        let mut parameters = vec![ModelParameter {
            name: "prompt".into(),
            label: "Prompt".into(),
            description: "What to make; a variation needs none.".into(),
            kind: ModelParameterType::String,
            required: !all.contains(&Capability::ImageVariations),
            min: Some(1.0),
            max: Some(self.prompt_max.min(PROMPT_MAX) as f64),
            options: Vec::new(),
            capabilities: all.clone(),
        }];
        if let Some(range) = self.references {
            parameters.push(ModelParameter {
                name: "references".into(),
                label: "References".into(),
                description: "Pictures that guide the result.".into(),
                kind: ModelParameterType::Images,
                required: range.min > 0,
                min: Some(range.min as f64),
                max: Some(range.max as f64),
                options: Vec::new(),
                capabilities: with_pictures,
            });
        }
        let choices = [
            ("size", "Size", "Size or shape of the result.", &self.sizes),
            ("quality", "Quality", "Effort or resolution of the result.", &self.qualities),
        ];
        for (name, label, description, values) in choices.into_iter().filter(|(.., values)| !values.is_empty()) {
            let option = |value: &String| ModelParameterOption {
                label: value.clone(),
                value: value.clone().into(),
                description: None,
            };
            parameters.push(ModelParameter {
                name: name.into(),
                label: label.into(),
                description: description.into(),
                kind: ModelParameterType::String,
                required: false,
                min: None,
                max: None,
                options: values.iter().map(option).collect(),
                capabilities: all.clone(),
            });
        }
        parameters
    }
}

/// The contract's own limit of a prompt.
const PROMPT_MAX: usize = 8000;
