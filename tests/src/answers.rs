//! The type of each JSON answer of the contract, and the check that an answer is its type: the type reads it, and writes equal JSON.

use std::borrow::Cow;
use std::error::Error;

use domain::account::AuthStatus;
use domain::action::{ActionPage, ActionRead};
use domain::asset::{AssetList, AssetRead};
use domain::campaign::{CampaignList, CampaignPlanned, CampaignRead};
use domain::canvas::{CanvasChanges, CanvasList, CanvasRead, MutationResult, NodeRead};
use domain::element::{
    CollectionDeleted, CollectionList, CollectionRead, ElementList, ElementOrVersion, ElementRead, VersionList,
};
use domain::import::{ImageImport, ProductImport};
use domain::job::{ImageJob, JobDocument, RunList, StartQuote, VideoJob};
use domain::model::{ConnectionList, ModelPage, ModelRead};
use domain::operation::OperationsAnswer;
use domain::problem::ErrorEnvelope;
use domain::queue::ServiceStatus;
use domain::recipe::run::{RecipeRun, RunDocument};
use domain::recipe::workflow::WorkflowResult;
use domain::recipe::{RecipePage, RecipeRead};
use domain::review::CanvasReview;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;

/// An answer of the contract.
pub struct Answer {
    /// The method of its operation.
    pub method: &'static str,
    /// The path of its operation, relative to the API's root.
    pub path: &'static str,
    /// Its status.
    pub status: u16,
    /// The name of its schema.
    pub schema: fn() -> Cow<'static, str>,
    /// What its type writes after it has read a text.
    pub again: fn(&[u8]) -> serde_json::Result<Value>,
}

macro_rules! answers {
    ($($method:literal $path:literal { $($status:literal => $type:ty),+ })+) => {
        /// Every answer with a JSON body.
        pub const ANSWERS: &[Answer] = &[$($(Answer {
            method: $method,
            path: $path,
            status: $status,
            schema: <$type as ToSchema>::name,
            again: again::<$type>,
        },)+)+];
    };
}

answers! {
    "GET" "/actions" { 200 => ActionPage }
    "GET" "/actions/{actionKey}" { 200 => ActionRead }
    "POST" "/actions/{actionKey}/runs" { 200 => StartQuote, 202 => ImageJob }
    "GET" "/assets" { 200 => AssetList }
    "POST" "/assets" { 200 => AssetRead, 201 => AssetRead }
    "GET" "/assets/{assetId}" { 200 => AssetRead }
    "GET" "/auth/status" { 200 => AuthStatus }
    "GET" "/campaigns" { 200 => CampaignList }
    "POST" "/campaigns/plan" { 200 => CampaignPlanned }
    "POST" "/campaigns/start" { 200 => StartQuote, 202 => CampaignRead }
    "DELETE" "/campaigns/{runId}" { 200 => CampaignRead }
    "GET" "/campaigns/{runId}" { 200 => CampaignRead }
    "POST" "/campaigns/{runId}/review" { 200 => CampaignRead }
    "GET" "/canvases" { 200 => CanvasList }
    "POST" "/canvases" { 201 => CanvasRead }
    "GET" "/canvases/{canvasId}" { 200 => CanvasRead }
    "GET" "/canvases/{canvasId}/changes" { 200 => CanvasChanges }
    "GET" "/canvases/{canvasId}/nodes/{nodeId}" { 200 => NodeRead }
    "POST" "/canvases/{canvasId}/operations" { 200 => OperationsAnswer }
    "GET" "/canvases/{canvasId}/review" { 200 => CanvasReview }
    "POST" "/canvases/{canvasId}/workflows" { 200 => WorkflowResult, 201 => WorkflowResult }
    "GET" "/element-collections" { 200 => CollectionList }
    "POST" "/element-collections" { 201 => CollectionRead }
    "DELETE" "/element-collections/{collectionId}" { 200 => CollectionDeleted }
    "PATCH" "/element-collections/{collectionId}" { 200 => CollectionRead }
    "GET" "/elements" { 200 => ElementList }
    "POST" "/elements" { 201 => ElementRead }
    "GET" "/elements/{elementId}" { 200 => ElementOrVersion }
    "PATCH" "/elements/{elementId}" { 200 => ElementRead }
    "GET" "/elements/{elementId}/versions" { 200 => VersionList }
    "POST" "/images/edit" { 200 => StartQuote, 202 => ImageJob }
    "POST" "/images/generate" { 200 => StartQuote, 202 => ImageJob }
    "POST" "/images/import" { 200 => ImageImport }
    "POST" "/images/variations" { 200 => StartQuote, 202 => ImageJob }
    "DELETE" "/jobs/{jobId}" { 200 => JobDocument, 202 => JobDocument }
    "GET" "/jobs/{jobId}" { 200 => JobDocument, 202 => JobDocument }
    "GET" "/models" { 200 => ModelPage }
    "GET" "/models/{modelKey}" { 200 => ModelRead }
    "GET" "/openapi.json" { 200 => Value }
    "POST" "/product-references/import" { 200 => ProductImport }
    "GET" "/providers" { 200 => ConnectionList }
    "GET" "/recipes" { 200 => RecipePage }
    "GET" "/recipes/{recipeId}" { 200 => RecipeRead }
    "POST" "/recipes/{recipeId}/fork" { 200 => MutationResult, 201 => MutationResult }
    "POST" "/recipes/{recipeId}/runs" { 200 => StartQuote, 202 => RecipeRun }
    "GET" "/runs" { 200 => RunList }
    "DELETE" "/runs/{runId}" { 200 => RunDocument, 202 => RunDocument }
    "GET" "/runs/{runId}" { 200 => RunDocument, 202 => RunDocument }
    "GET" "/status" { 200 => ServiceStatus }
    "POST" "/videos/generate" { 200 => StartQuote, 202 => VideoJob }
}

fn again<T: Serialize + DeserializeOwned>(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_slice::<T>(text)?)
}

/// Checks a JSON body of the API. `path` is relative to the API's root, without a query.
///
/// # Errors
/// Returns why the body is not the answer that the contract has for it.
pub fn check(method: &str, path: &str, status: u16, body: &[u8]) -> Result<(), Box<dyn Error>> {
    let again = match status {
        400.. => again::<ErrorEnvelope>(body)?,
        _ => {
            let is_it = |it: &&Answer| it.status == status && it.method == method && matches(it.path, path);
            let answer = ANSWERS.iter().find(is_it).ok_or("the contract has no such answer")?;
            (answer.again)(body).map_err(|error| format!("is no {}: {error}", (answer.schema)()))?
        }
    };
    if again == serde_json::from_slice::<Value>(body)? {
        Ok(())
    } else {
        Err(format!("read and written again: {again}").into())
    }
}

/// Whether a path fits a template.
fn matches(template: &str, path: &str) -> bool {
    let (names, parts): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    names.len() == parts.len() && names.iter().zip(parts).all(|(name, part)| name.starts_with('{') || *name == part)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::contract::tests::{document, operations};

    /// The JSON answers of the document: method, path, status, and the media type's member with schema and examples.
    fn documented() -> Vec<(String, String, u16, Value)> {
        let mut found = Vec::new();
        for ((method, path), operation) in operations(&document()) {
            for (status, response) in operation["responses"].as_object().expect("responses") {
                let status: u16 = status.parse().expect("a status");
                let content = &response["content"]["application/json"];
                if (200..300).contains(&status) && content.is_object() {
                    found.push((method.clone(), path.clone(), status, content.clone()));
                }
            }
        }
        found
    }

    #[test]
    fn every_answer_of_the_contract_has_its_type() {
        let documented: BTreeSet<_> = documented()
            .into_iter()
            .map(|(method, path, status, content)| {
                let schema = content["schema"]["$ref"].as_str().and_then(|name| name.rsplit('/').next());
                // The document itself, which is any object.
                (method, path, status, schema.unwrap_or("Value").to_owned())
            })
            .collect();
        let typed: BTreeSet<_> = ANSWERS
            .iter()
            .map(|it| (it.method.to_owned(), it.path.to_owned(), it.status, (it.schema)().into_owned()))
            .collect();
        assert_eq!(typed, documented);
        assert_eq!(typed.len(), ANSWERS.len(), "an answer has two types");
    }

    #[test]
    fn the_examples_of_the_document_are_of_their_types() {
        let document = document();
        let mut seen = 0;
        for (method, path, status, content) in documented() {
            for example in content["examples"].as_object().into_iter().flat_map(|examples| examples.values()) {
                let shared = example["$ref"].as_str().and_then(|name| document.pointer(name.trim_start_matches('#')));
                let value = &shared.unwrap_or(example)["value"];
                check(&method, &path, status, value.to_string().as_bytes())
                    .unwrap_or_else(|error| panic!("{method} {path} {status}: {error}\n{value}"));
                seen += 1;
            }
        }
        assert!(seen >= ANSWERS.len() / 2, "{seen} examples");
    }

    #[test]
    fn an_answer_of_another_form_is_refused() {
        let refused =
            |status, body: &str| check("GET", "/providers", status, body.as_bytes()).expect_err("refused").to_string();
        assert!(refused(201, "{}").contains("no such answer"));
        assert!(refused(200, "{}").contains("is no ProviderConnectionList"));
        let more = r#"{"connections": [], "page": {"limit": 1, "hasMore": false, "nextCursor": null}, "more": 1}"#;
        assert!(refused(200, more).contains("written again"));
        assert!(refused(404, r#"{"error": {"code": "not_found"}}"#).contains("message"));
        assert!(check("GET", "/providers", 200, more.replace(r#", "more": 1"#, "").as_bytes()).is_ok());
    }

    #[test]
    fn a_path_fits_one_template_part_by_part() {
        assert!(matches("/canvases/{canvasId}/review", "/canvases/c1/review"));
        for other in ["/canvases/c1", "/canvases/c1/review/", "/canvases/c1/reviews", "/canvas/c1/review"] {
            assert!(!matches("/canvases/{canvasId}/review", other), "{other}");
        }
    }
}
