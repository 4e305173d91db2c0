//! Recipes: named typed inputs, and steps that make one text or picture each (specification, Recipe and RecipePort;
//! decisions 13).
//!
//! A Recipe of the catalogue and a private workflow have one form. Requests and files write it with [`NewInput`] and
//! [`NewOutput`], whose ranges are their schemas' and whose other rules are [`rules`]'; it is stored as a
//! [`Definition`], which is one immutable version.

mod document;
pub mod file;
pub mod matching;
pub mod rules;
pub mod run;
pub mod template;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Timestamp;
use crate::graph::{NodeType, named};
use crate::id::{AccountUid, AssetHandle, RecipeId};

pub use document::{Recipe, RecipePort};

named! {
    /// The shelf that a Recipe stands on.
    Category {
        /// Palettes, type, boards.
        Brand = "Brand & Visual Design",
        /// Pictures of a product.
        Product = "Product Visualization",
        /// What sells.
        Marketing = "Marketing & Ads",
        /// Several things that belong together.
        Content = "Content Package",
    }
}

named! {
    /// What an input takes.
    InputKind {
        /// A durable picture.
        Image = "image",
        /// A text.
        Text = "text",
        /// A note.
        Sticky = "sticky",
    }
}

impl InputKind {
    /// The type of its port's node.
    pub const fn node_type(self) -> NodeType {
        match self {
            InputKind::Image => NodeType::Image,
            InputKind::Text => NodeType::Text,
            InputKind::Sticky => NodeType::Sticky,
        }
    }
}

named! {
    /// What a step makes.
    OutputKind {
        /// A picture.
        Image = "image",
        /// A text.
        Text = "text",
    }
}

impl OutputKind {
    /// The type of its node.
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
        /// Everybody: it is in the catalogue.
        Approved = "approved",
        /// The account that made it.
        Private = "private",
    }
}

/// An input as a request or a file writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewInput {
    /// Names it in `inputKeys`, in `{{key}}` and in the inputs of a run; unique among inputs and outputs.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,80}$")]
    pub key: String,
    /// For people.
    #[schema(min_length = 1, max_length = 80)]
    pub label: String,
    /// For people.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub description: String,
    /// What it takes.
    #[serde(rename = "type")]
    pub kind: InputKind,
    /// The node of the canvas that it begins with: id or handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(node:)?[A-Za-z0-9_-]{1,180}$", nullable = false)]
    pub source_node_id: Option<String>,
    /// The text that it begins with; of an image input, a node or asset handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 8000, nullable = false)]
    pub value: Option<String>,
    /// Whether what it begins with is saved, to be used when a later run leaves the input out.
    pub use_as_default: bool,
    /// Whether a text or sticky input takes a picture, too, which its step gets as a reference (an extension).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub written_reference: bool,
}

/// An output, which is a step, as a request or a file writes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewOutput {
    /// Names it in the `inputKeys` and prompts of later outputs; unique among inputs and outputs.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,80}$")]
    pub key: String,
    /// For people.
    #[schema(min_length = 1, max_length = 80)]
    pub label: String,
    /// For people.
    #[serde(default)]
    #[schema(max_length = 200)]
    pub description: String,
    /// What it makes.
    #[serde(rename = "type")]
    pub kind: OutputKind,
    /// A template: `{{key}}` inserts an input or an earlier output of `inputKeys`.
    #[schema(min_length = 1, max_length = 8000)]
    pub prompt: String,
    /// The inputs and earlier outputs that it is made from.
    #[schema(min_items = 1, max_items = 16)]
    pub input_keys: Vec<String>,
    /// A model's id or `model:` handle; the first that can do it when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 650, nullable = false)]
    pub model: Option<String>,
    /// One of those that the model offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 80, nullable = false)]
    pub size: Option<String>,
    /// One of those that the model offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 80, nullable = false)]
    pub quality: Option<String>,
}

/// What a port holds: a text, or a picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Held {
    /// A text.
    Text(String),
    /// A picture.
    Asset(AssetHandle),
}

/// An input of a version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Unique among inputs and outputs.
    pub key: String,
    /// For people.
    pub label: String,
    /// For people; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What it takes.
    pub kind: InputKind,
    /// Names the port, like the key: a plain id.
    pub node_id: String,
    /// What is used when a run leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Held>,
    /// Whether it takes a picture as well as a text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub written_reference: bool,
}

/// An output of a version, which is one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Unique among inputs and outputs.
    pub key: String,
    /// For people.
    pub label: String,
    /// For people; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// What it makes.
    pub kind: OutputKind,
    /// Names the port: a plain id.
    pub node_id: String,
    /// The template.
    pub prompt: String,
    /// Inputs, and outputs declared earlier.
    pub input_keys: Vec<String>,
    /// A model's id or handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Of the picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Of the picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<String>,
}

impl Input {
    /// The input that a request or file writes, as the port `node_id` with what it begins with.
    pub fn of(new: NewInput, node_id: String, default: Option<Held>) -> Self {
        let NewInput { key, label, description, kind, written_reference, .. } = new;
        Self { key, label, description, kind, node_id, default, written_reference }
    }
}

impl Output {
    /// The output that a request or file writes, as the port `node_id`.
    pub fn of(new: NewOutput, node_id: String) -> Self {
        let NewOutput { key, label, description, kind, prompt, input_keys, model, size, quality } = new;
        Self { key, label, description, kind, node_id, prompt, input_keys, model, size, quality }
    }
}

/// What one version of a Recipe says. It follows [`rules`] and never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Definition {
    /// For people.
    pub name: String,
    /// In a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The shelf.
    pub category: Category,
    /// To be found by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// In the order declared.
    pub inputs: Vec<Input>,
    /// In the order of their steps.
    pub outputs: Vec<Output>,
}

impl Definition {
    /// Everything that a search looks into, in lower case, once for all.
    pub fn search_text(&self) -> String {
        let mut words = vec![self.name.as_str(), self.category.as_str()];
        words.extend(self.summary.as_deref());
        words.extend(self.description.as_deref());
        words.extend(self.tags.iter().map(String::as_str));
        words.extend(self.outputs.iter().map(|output| output.label.as_str()));
        words.join("\n").to_lowercase()
    }

    /// The input of this key.
    pub fn input(&self, key: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.key == key)
    }

    /// How many steps away from the inputs each output is: 0 for one that is made from inputs alone.
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

/// A version, written `1.0.0`, `1.0.1`, … (decisions 13.3): the number counts them from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub i32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.0.{}", self.0)
    }
}

/// A text that is no version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no version of a Recipe")]
pub struct UnknownVersion;

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let number = text.strip_prefix("1.0.").and_then(|digits| digits.parse().ok()).map(Self);
        // One version has one spelling: no sign, no leading zero.
        number.filter(|version| version.0 >= 0 && version.to_string() == text).ok_or(UnknownVersion)
    }
}

/// A Recipe in one of its versions.
#[derive(Clone, Debug, PartialEq)]
pub struct RecipeRecord {
    /// Plain id.
    pub id: RecipeId,
    /// Whose private workflow it is; nobody's when it is in the catalogue.
    pub owner: Option<AccountUid>,
    /// The version that this is.
    pub version: Version,
    /// What it says.
    pub definition: Definition,
    /// When the Recipe last got a version.
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
            inputs: vec![Input::of(input("x", "text"), "x".into(), None)],
            outputs: outputs.map(|(key, keys)| Output::of(output(key, "p", &keys), key.into())).into(),
        };
        assert_eq!(definition.depths(), [0, 1, 2, 0]);
    }
}
