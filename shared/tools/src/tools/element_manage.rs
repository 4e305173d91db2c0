//! The order among Elements.

use client::answers::CollectionRead;
use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answer::Answer;
use crate::call::Call;
use crate::failure::Failure;
use crate::tool::{Hints, Result, Tool};
use crate::tools::element_save::without_version;

pub struct ElementManage;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arguments {
    r#do: Do,
    /// Its handle, or the name of a new collection
    target: String,
    /// The new name of a collection
    #[schemars(length(min = 1, max = 120))]
    name: Option<String>,
    confirm: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
enum Do {
    #[serde(rename = "archive")]
    Archive,
    #[serde(rename = "restore")]
    Restore,
    #[serde(rename = "collection.create")]
    Create,
    #[serde(rename = "collection.rename")]
    Rename,
    #[serde(rename = "collection.delete")]
    Delete,
}

#[derive(Serialize)]
pub struct Output {
    handle: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lifecycle: Option<String>,
    deleted: bool,
}

impl Tool for ElementManage {
    const NAME: &'static str = "element_manage";
    const TITLE: &'static str = "Manage Elements";
    const ABOUT: &'static str = "Archive or restore an Element; make, rename or delete a collection. Archive and delete only after a \
                                 person said so: confirm=true.";
    const HINTS: Hints = Hints { repeats: false, ..Hints::CHANGE };
    const SCOPES: &'static [Scope] = &[Scope::ElementWrite];
    type Arguments = Arguments;
    type Output = Output;

    async fn run(call: &Call, arguments: Arguments) -> Result<Answer<Output>> {
        let (client, target) = (&call.client, arguments.target.as_str());
        if matches!(arguments.r#do, Do::Archive | Do::Delete) && arguments.confirm != Some(true) {
            return Err(Failure::argument("confirm", "must be true: ask a person first"));
        }
        let collection = match arguments.r#do {
            Do::Archive | Do::Restore => {
                let body = match arguments.r#do {
                    Do::Archive => json!({"operation": "archive", "confirm": true}),
                    _ => json!({"operation": "restore"}),
                };
                let element = client.update_element(without_version(target)).json(&body).await?.value()?.element;
                let lifecycle = Some(element.lifecycle.to_string());
                let output = Output { handle: element.handle, name: element.name, lifecycle, deleted: false };
                return Ok(Answer::new(output));
            }
            Do::Create => client.create_element_collection().json(&json!({"name": target})).await?,
            Do::Rename => {
                let Some(name) = arguments.name else { return Err(Failure::argument("name", "is required to rename")) };
                client.rename_element_collection(target).json(&json!({"name": name})).await?
            }
            // Its answer has the collection, too.
            Do::Delete => client.delete_element_collection(target).json(&json!({"confirm": true})).await?.cast(),
        };
        let CollectionRead { collection } = collection.value()?;
        let deleted = matches!(arguments.r#do, Do::Delete);
        Ok(Answer::new(Output { handle: collection.handle, name: collection.name, lifecycle: None, deleted }))
    }
}
