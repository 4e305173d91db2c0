//! The order among Elements.

use domain::account::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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

#[derive(Serialize, JsonSchema)]
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
        let read = match arguments.r#do {
            Do::Archive => {
                let body = json!({"operation": "archive", "confirm": true});
                client.update_element(without_version(target)).json(&body).await?.json()
            }
            Do::Restore => {
                client.update_element(without_version(target)).json(&json!({"operation": "restore"})).await?.json()
            }
            Do::Create => client.create_element_collection().json(&json!({"name": target})).await?.json(),
            Do::Rename => {
                let Some(name) = arguments.name else { return Err(Failure::argument("name", "is required to rename")) };
                client.rename_element_collection(target).json(&json!({"name": name})).await?.json()
            }
            Do::Delete => client.delete_element_collection(target).json(&json!({"confirm": true})).await?.json(),
        };
        let record = if read["element"].is_object() { &read["element"] } else { &read["collection"] };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let output = Output {
            handle: text(&record["handle"]),
            name: text(&record["name"]),
            lifecycle: record["lifecycle"].as_str().map(str::to_owned),
            deleted: read["deleted"] == true,
        };
        Ok(Answer::new(output))
    }
}
