//! Elements and their versions.

use client::answers::ElementRead;
use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::call::Call;
use crate::tool::{Hints, Result, Tool};

pub struct ElementSave;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// To revise; else a new one is made
    element: Option<String>,
    #[schemars(length(min = 1, max = 160))]
    name: String,
    r#type: Type,
    #[schemars(length(max = 2000))]
    guidelines: Option<String>,
    /// Own image assets
    #[schemars(length(max = 8))]
    sources: Option<Vec<String>>,
    #[schemars(length(max = 24))]
    collections: Option<Vec<String>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
enum Type {
    #[serde(rename = "character")]
    Character,
    #[serde(rename = "product/object")]
    Product,
    #[serde(rename = "environment")]
    Environment,
    #[serde(rename = "style")]
    Style,
    #[serde(rename = "material/texture")]
    Material,
    #[serde(rename = "lighting")]
    Lighting,
}

/// An Element in short.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    element: String,
    version: String,
    name: String,
    lifecycle: String,
    collections: Vec<Value>,
}

impl Output {
    pub fn of(read: &client::Answer<ElementRead>) -> Self {
        let element = &read.json()["element"];
        let text = |name: &str| element[name].as_str().unwrap_or_default().to_owned();
        Self {
            element: text("handle"),
            version: text("versionHandle"),
            name: text("name"),
            lifecycle: text("lifecycle"),
            collections: element["collectionIds"].as_array().cloned().unwrap_or_default(),
        }
    }
}

impl Tool for ElementSave {
    const NAME: &'static str = "element_save";
    const TITLE: &'static str = "Save an Element";
    const ABOUT: &'static str = "Make a reusable Element, a new one with each call, or add a version to one.";
    const HINTS: Hints = Hints::ADD;
    const SCOPES: &'static [Scope] = &[Scope::ElementWrite];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let sources: Vec<&str> = arguments.sources.iter().flatten().map(|it| plain(it)).collect();
        let collections =
            arguments.collections.map(|all| all.iter().map(|it| plain(it).to_owned()).collect::<Vec<_>>());
        let mut element = json!({"name": arguments.name, "type": arguments.r#type, "sourceAssetIds": sources});
        if let Some(guidelines) = arguments.guidelines {
            element["guidelines"] = guidelines.into();
        }
        let read = match &arguments.element {
            None => {
                if let Some(collections) = collections {
                    element["collectionIds"] = collections.into();
                }
                call.client.create_element().json(&element).await?
            }
            Some(handle) => {
                let read = call
                    .client
                    .update_element(handle)
                    .json(&json!({"operation": "update", "element": element}))
                    .await?;
                match collections {
                    None => read,
                    Some(collections) => {
                        let body = json!({"operation": "collections", "collectionIds": collections});
                        call.client.update_element(handle).json(&body).await?
                    }
                }
            }
        };
        Ok(Answer::new(Output::of(&read)))
    }
}

/// The plain id of a handle.
fn plain(handle: &str) -> &str {
    handle.rsplit(':').next().unwrap_or(handle)
}
