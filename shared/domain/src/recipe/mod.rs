//! Recipes: named typed inputs, and steps that make one text or image each. Rules: `docs/reference/recipes.md`.
//!
//! Recipes of the catalog and private workflows have the same form. Requests and files write it as [`NewInput`] and
//! [`NewOutput`]: their schemas state the ranges, [`rules`] has all other rules. The stored form is a [`Definition`],
//! which is one immutable version.

mod document;
pub mod file;
pub mod matching;
pub mod rules;
pub mod run;
pub mod template;
pub mod workflow;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Timestamp;
use crate::graph::{NodeType, named};
use crate::id::{AccountUid, AssetHandle, ModelReference, NodeReference, RecipeId};

pub use document::{Recipe, RecipeList, RecipeOutput, RecipePage, RecipePort, RecipeRead, RecipeSummaries};

named! {
    /// Category of a Recipe.
    Category {
        /// Palettes, type, boards.
        Brand = "Brand & Visual Design",
        /// Images of a product.
        Product = "Product Visualization",
        /// Advertising.
        Marketing = "Marketing & Ads",
        /// Several outputs that belong together.
        Content = "Content Package",
    }
}

named! {
    /// Type of an input.
    InputKind {
        /// A stored image.
        Image = "image",
        /// A text.
        Text = "text",
        /// A note.
        Sticky = "sticky",
    }
}

impl InputKind {
    /// The type of the port's node.
    pub const fn node_type(self) -> NodeType {
        match self {
            InputKind::Image => NodeType::Image,
            InputKind::Text => NodeType::Text,
            InputKind::Sticky => NodeType::Sticky,
        }
    }
}

named! {
    /// Type of an output.
    OutputKind {
        /// An image.
        Image = "image",
        /// A text.
        Text = "text",
    }
}

impl OutputKind {
    /// The type of the output's node.
    pub const fn node_type(self) -> NodeType {
        match self {
            OutputKind::Image => NodeType::Image,
            OutputKind::Text => NodeType::Text,
        }
    }
}

named! {
    /// Who can see a Recipe.
    Visibility {
        /// Every account: the Recipe is in the catalog.
        Approved = "approved",
        /// The account that created it.
        Private = "private",
    }
}

named! {
    /// Which Recipes are listed.
    VisibilityFilter {
        /// Recipes of the catalog.
        Approved = "approved",
        /// The account's own workflows.
        Private = "private",
        /// Both.
        All = "all",
    }
}

/// An input of a Recipe.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewInput {
    /// Key of the input in `inputKeys`, in `{{key}}` and in the inputs of a run; unique among inputs and outputs.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,80}$")]
    pub key: String,
    /// Label for people.
    #[schema(min_length = 1, max_length = 80)]
    pub label: String,
    /// Description for people.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub description: String,
    /// Type of the input.
    #[serde(rename = "type")]
    pub kind: InputKind,
    /// Node of the canvas that supplies the initial value: id or handle.
    #[schema(value_type = Option<NodeReference>)]
    pub source_node_id: Option<String>,
    /// Initial text; for an image input, a node or asset handle.
    #[schema(max_length = 8000)]
    pub value: Option<String>,
    /// `true` if the initial value, which is then required, is saved as the default of runs that omit the input.
    pub use_as_default: bool,
    /// `true` if a text or sticky input also accepts an image, which its steps receive as a reference.
    /// Default: `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub written_reference: bool,
}

/// An output of a Recipe, which is one step.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewOutput {
    /// Key of the output in `inputKeys` and prompts of later outputs; unique among inputs and outputs.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,80}$")]
    pub key: String,
    /// Label for people.
    #[schema(min_length = 1, max_length = 80)]
    pub label: String,
    /// Description for people.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub description: String,
    /// Type of the output.
    #[serde(rename = "type")]
    pub kind: OutputKind,
    /// Template of the prompt: `{{key}}` inserts an input or an earlier output that `inputKeys` names.
    #[schema(min_length = 1, max_length = 8000)]
    pub prompt: String,
    /// Keys of the inputs and earlier outputs that the step uses. None is named twice.
    #[schema(min_items = 1, max_items = 16)]
    pub input_keys: Vec<String>,
    /// Id or `model:` handle of a model; defaults to the first model that can run the step.
    #[schema(value_type = Option<ModelReference>)]
    pub model: Option<String>,
    /// A size that the model offers.
    #[schema(max_length = 80)]
    pub size: Option<String>,
    /// A quality that the model offers.
    #[schema(max_length = 80)]
    pub quality: Option<String>,
}

/// Value of a port: a text or an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PortValue {
    Text(String),
    /// An image.
    Asset(AssetHandle),
}

/// An input of a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Key, unique among inputs and outputs.
    pub key: String,
    /// Label for people.
    pub label: String,
    /// Description for people; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Type of the input.
    pub kind: InputKind,
    /// Plain id that names the port, like the key.
    pub node_id: String,
    /// Value that is used when a run omits the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<PortValue>,
    /// `true` if it accepts an image in addition to a text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub written_reference: bool,
}

/// An output of a version, which is one step.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Key, unique among inputs and outputs.
    pub key: String,
    /// Label for people.
    pub label: String,
    /// Description for people; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Type of the output.
    pub kind: OutputKind,
    /// Plain id that names the port.
    pub node_id: String,
    /// Template of the prompt.
    pub prompt: String,
    /// Keys of inputs and of outputs declared earlier.
    pub input_keys: Vec<String>,
    /// Id or handle of a model.
    pub model: Option<String>,
    /// Size of the image.
    pub size: Option<String>,
    /// Quality of the image.
    pub quality: Option<String>,
}

impl Input {
    /// The stored form of an input, with `node_id` as its port and `default` as its default.
    pub fn from_new(new: NewInput, node_id: String, default: Option<PortValue>) -> Self {
        let NewInput { key, label, description, kind, written_reference, .. } = new;
        Self { key, label, description, kind, node_id, default, written_reference }
    }
}

impl Output {
    /// The stored form of an output, with `node_id` as its port.
    pub fn from_new(new: NewOutput, node_id: String) -> Self {
        let NewOutput { key, label, description, kind, prompt, input_keys, model, size, quality } = new;
        Self { key, label, description, kind, node_id, prompt, input_keys, model, size, quality }
    }
}

/// Content of one version of a Recipe. It obeys [`rules`] and never changes.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// Name for people.
    pub name: String,
    /// Summary in one line.
    pub summary: Option<String>,
    /// Description for people.
    pub description: Option<String>,
    /// Category of the Recipe.
    pub category: Category,
    /// Tags for the search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Inputs in the order declared.
    pub inputs: Vec<Input>,
    /// Outputs in the order of their steps.
    pub outputs: Vec<Output>,
}

impl Definition {
    /// The text that a search matches, in lower case.
    pub fn search_text(&self) -> String {
        let mut words = vec![self.name.as_str(), self.category.as_str()];
        words.extend(self.summary.as_deref());
        words.extend(self.description.as_deref());
        words.extend(self.tags.iter().map(String::as_str));
        words.extend(self.outputs.iter().map(|output| output.label.as_str()));
        words.join("\n").to_lowercase()
    }

    /// The input with this key.
    pub fn input(&self, key: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.key == key)
    }

    /// Number of steps between the inputs and each output: 0 for an output that uses inputs alone.
    pub fn depths(&self) -> Vec<usize> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            let earlier =
                self.outputs.iter().zip(&depths).filter(|(earlier, _)| output.input_keys.contains(&earlier.key));
            let depth = earlier.map(|(_, depth)| depth + 1).max().unwrap_or(0);
            depths.push(depth);
        }
        depths
    }
}

/// A version, written `1.0.0`, `1.0.1`, …: the number counts versions from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub i32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.0.{}", self.0)
    }
}

/// A text that is not a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a version of a Recipe")]
pub struct UnknownVersion;

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let number = text.strip_prefix("1.0.").and_then(|digits| digits.parse().ok()).map(Self);
        // A version has one spelling: no sign, no leading zero.
        number.filter(|version| version.0 >= 0 && version.to_string() == text).ok_or(UnknownVersion)
    }
}

/// A version of a Recipe.
#[derive(Clone, Debug, PartialEq)]
pub struct RecipeRecord {
    /// Plain id.
    pub id: RecipeId,
    /// The account of a private workflow; `None` for a Recipe of the catalog.
    pub owner: Option<AccountUid>,
    pub version: Version,
    /// Content of the version.
    pub definition: Definition,
    /// When the newest version of the Recipe was published.
    pub updated_at: Timestamp,
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// An input as a request writes it.
    pub(crate) fn input(key: &str, kind: &str) -> NewInput {
        serde_json::from_value(json!({"key": key, "label": key, "type": kind, "useAsDefault": false}))
            .expect("an input")
    }

    /// An output as a request writes it.
    pub(crate) fn output(key: &str, prompt: &str, keys: &[&str]) -> NewOutput {
        let output = json!({"key": key, "label": key, "type": "text", "prompt": prompt, "inputKeys": keys});
        serde_json::from_value(output).expect("an output")
    }

    #[test]
    fn a_version_has_one_spelling() {
        for number in [0, 1, 10, i32::MAX] {
            let version = Version(number);
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        for wrong in
            ["", "1", "1.0", "1.0.", "1.0.01", "1.0.+1", "1.0.-1", "v1.0.0", "1.0.0 ", "2.0.0", "1.0.2147483648"]
        {
            assert_eq!(wrong.parse::<Version>(), Err(UnknownVersion), "{wrong:?}");
        }
    }

    #[test]
    fn depths_count_the_steps_from_the_inputs() {
        let outputs = [("a", vec!["x"]), ("b", vec!["x", "a"]), ("c", vec!["b"]), ("d", vec!["x"])];
        let definition = Definition {
            name: "n".into(),
            summary: None,
            description: None,
            category: Category::Product,
            tags: vec![],
            inputs: vec![Input::from_new(input("x", "text"), "x".into(), None)],
            outputs: outputs.map(|(key, keys)| Output::from_new(output(key, "p", &keys), key.into())).into(),
        };
        assert_eq!(definition.depths(), [0, 1, 2, 0]);
    }
}
