//! Recipes as they are served.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Category, Input, Output, RecipeRecord, Visibility};
use crate::graph::NodeType;
use crate::id::{RecipeHandle, RecipeId};
use crate::job::{ChosenModel, QuotedModel};
use crate::known::Name;
use crate::page::{CatalogEntry, Page};
use crate::recipe::InputKind;

/// A typed port of a Recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecipePort {
    /// Plain id that names the port in the inputs of a run, like the key.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,180}$")]
    pub node_id: String,
    /// Key of the port.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,80}$")]
    pub key: String,
    /// Label for people. Its normalized form also names the port in the inputs of a run.
    pub label: String,
    /// Description for people.
    pub description: String,
    /// `true` if the port has a saved default, so that a run may omit it.
    pub use_as_preset: bool,
    /// Type of the port: `image`, `text` or `sticky`.
    #[schema(value_type = InputKind)]
    pub node_type: NodeType,
    /// `true` if a text or sticky input also accepts an image.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub written_reference: bool,
}

impl From<&Input> for RecipePort {
    fn from(input: &Input) -> Self {
        Self {
            node_id: input.node_id.clone(),
            key: input.key.clone(),
            label: input.label.clone(),
            description: input.description.clone(),
            use_as_preset: input.default.is_some(),
            node_type: input.kind.node_type(),
            written_reference: input.written_reference,
        }
    }
}

impl From<&Output> for RecipePort {
    fn from(output: &Output) -> Self {
        Self {
            node_id: output.node_id.clone(),
            key: output.key.clone(),
            label: output.label.clone(),
            description: output.description.clone(),
            use_as_preset: false,
            node_type: output.kind.node_type(),
            written_reference: false,
        }
    }
}

/// An output of a Recipe, with what makes it for the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecipeOutput {
    /// The port.
    #[serde(flatten)]
    pub port: RecipePort,
    /// Model that makes the output in a run that names none. Absent if the caller has no model for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<QuotedModel>,
    /// `true` if the embedded runtime makes the output: it stands in for that of a model.
    pub stand_in: bool,
    /// Credits for the output.
    #[schema(minimum = 0)]
    pub credit_cost: i64,
}

impl RecipeOutput {
    fn new(output: &Output, model: Option<&ChosenModel>) -> Self {
        Self {
            port: output.into(),
            model: model.map(Into::into),
            stand_in: model.is_some_and(ChosenModel::is_stand_in),
            credit_cost: model.map_or(0, |model| model.credit_cost),
        }
    }
}

/// One version of a Recipe.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recipe {
    /// Plain id of the Recipe.
    pub id: RecipeId,
    /// Handle of the Recipe.
    #[schema(value_type = RecipeHandle)]
    pub handle: String,
    /// Version: `1.0.0`, `1.0.1`, …. A published version never changes.
    pub version: String,
    /// Name for people.
    pub name: String,
    /// Summary in one line.
    pub summary: Option<String>,
    /// Description for people.
    pub description: Option<String>,
    /// Tags for the search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub tags: Vec<String>,
    /// Category of the Recipe.
    #[schema(value_type = Category)]
    pub category: Name<Category>,
    /// Who can see the Recipe.
    pub visibility: Visibility,
    /// Inputs.
    pub inputs: Vec<RecipePort>,
    /// Outputs in the order of their steps.
    pub outputs: Vec<RecipeOutput>,
    /// Credits for all outputs, in a run that names no model.
    #[schema(minimum = 0)]
    pub credit_cost: i64,
}

/// One Recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecipeRead {
    /// The Recipe in the requested version.
    pub recipe: Recipe,
}

/// A page of Recipes, most recently changed first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecipeList {
    /// Recipes, each in its newest version.
    pub recipes: Vec<Recipe>,
    /// Position in the list.
    pub page: Page,
}

/// A page of Recipes in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecipeSummaries {
    /// Recipes in short.
    pub recipes: Vec<CatalogEntry>,
    /// Position in the list.
    pub page: Page,
}

/// A page of Recipes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum RecipePage {
    /// Recipes with their ports.
    Full(RecipeList),
    /// Recipes in short, with `view=summary`.
    Summary(RecipeSummaries),
}

impl RecipeRecord {
    /// The served form. `models` are the caller's models for the outputs, in order.
    pub fn document(&self, models: &[Option<ChosenModel>]) -> Recipe {
        let definition = &self.definition;
        Recipe {
            handle: self.id.handle(),
            id: self.id.clone(),
            version: self.version.to_string(),
            name: definition.name.clone(),
            summary: definition.summary.clone(),
            description: definition.description.clone(),
            tags: definition.tags.clone(),
            category: definition.category.into(),
            visibility: self.visibility(),
            inputs: definition.inputs.iter().map(Into::into).collect(),
            outputs: definition
                .outputs
                .iter()
                .zip(models)
                .map(|(output, model)| RecipeOutput::new(output, model.as_ref()))
                .collect(),
            credit_cost: models.iter().flatten().map(|model| model.credit_cost).sum(),
        }
    }

    /// Who can see the Recipe.
    pub fn visibility(&self) -> Visibility {
        if self.owner.is_some() { Visibility::Private } else { Visibility::Approved }
    }
}
