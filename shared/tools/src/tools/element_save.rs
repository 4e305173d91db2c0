//! Elements and their versions.

use client::answers::{ElementOrVersion, ElementRead};
use domain::account::Scope;
use domain::element::{Element, ElementType, VersionRead};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answer::{Answer, texts};
use crate::call::Call;
use crate::schema::one_of;
use crate::tool::{Hints, Result, Tool};

pub struct ElementSave;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    /// To revise, keeping what is left out; else a new one is made
    element: Option<String>,
    #[schemars(length(min = 1, max = 160))]
    name: String,
    #[schemars(schema_with = "types")]
    r#type: ElementType,
    #[schemars(length(max = 2000))]
    guidelines: Option<String>,
    /// Own image assets
    #[schemars(length(max = 8))]
    sources: Option<Vec<String>>,
    #[schemars(length(max = 24))]
    collections: Option<Vec<String>>,
}

fn types(_: &mut SchemaGenerator) -> Schema {
    one_of(ElementType::ALL.iter().map(|kind| kind.as_str()))
}

/// An Element in short.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    element: String,
    version: String,
    name: String,
    lifecycle: String,
    collections: Vec<String>,
}

impl From<Element> for Output {
    fn from(element: Element) -> Self {
        Self {
            element: element.handle,
            version: element.version_handle,
            name: element.name,
            lifecycle: element.lifecycle.to_string(),
            collections: element.collection_ids.into_iter().map(String::from).collect(),
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
        let ids = |handles: Vec<String>| handles.iter().map(|it| plain(it).to_owned()).collect::<Vec<String>>();
        let collections = arguments.collections.map(ids);
        let revised = arguments.element.as_deref().map(without_version);
        // A version replaces the one before as a whole.
        let (sources, guidelines) = match revised {
            Some(handle) => match call.client.get_element(handle).await?.value()? {
                ElementOrVersion::Element(ElementRead { element: it }) => (texts(it.source_asset_ids), it.guidelines),
                ElementOrVersion::Version(VersionRead { version: it }) => (texts(it.source_asset_ids), it.guidelines),
            },
            None => (Vec::new(), None),
        };
        let sources = arguments.sources.map_or(sources, ids);
        let mut element = json!({"name": arguments.name, "type": arguments.r#type, "sourceAssetIds": sources});
        if let Some(guidelines) = arguments.guidelines.or(guidelines) {
            element["guidelines"] = guidelines.into();
        }
        let read = match revised {
            None => {
                if let Some(collections) = collections {
                    element["collectionIds"] = collections.into();
                }
                call.client.create_element().json(&element).await?
            }
            Some(handle) => {
                // First: it can be repeated, and a version cannot be taken back.
                if let Some(collections) = collections {
                    let body = json!({"operation": "collections", "collectionIds": collections});
                    call.client.update_element(handle).json(&body).await?;
                }
                let body = json!({"operation": "update", "element": element});
                call.client.update_element(handle).json(&body).await?
            }
        };
        Ok(Answer::new(read.value()?.element.into()))
    }
}

/// The handle of an Element without the version that it may name: what changes an Element takes none.
pub fn without_version(element: &str) -> &str {
    element.split('@').next().unwrap_or(element)
}

/// The plain id of a handle.
fn plain(handle: &str) -> &str {
    handle.rsplit(':').next().unwrap_or(handle)
}
