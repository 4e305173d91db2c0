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
use domain::job::{ActionRuns, ImageJob, JobDocument, RunList, StartQuote, VideoJob};
use domain::lineage::AssetLineage;
use domain::link::{DownloadLinks, UploadLinks};
use domain::model::{ConnectionList, ModelPage, ModelRead};
use domain::operation::{BatchSetAside, OperationsAnswer};
use domain::problem::ErrorEnvelope;
use domain::queue::ServiceStatus;
use domain::recipe::run::{RecipeRun, RunDocument};
use domain::recipe::workflow::WorkflowResult;
use domain::recipe::{RecipePage, RecipeRead};
use domain::review::CanvasReview;
use domain::webhook::{DeliveriesReplayed, DeliveryList, DeliveryReplayed};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;

use crate::contract::{self, Endpoint};

/// A type of an answer, and what it writes after it has read a text.
type Again = fn(&[u8]) -> serde_json::Result<Value>;

macro_rules! types {
    ($($type:ty),+ $(,)?) => {
        /// The types of the answers by the names of their schemas.
        fn types() -> Vec<(Cow<'static, str>, Again)> {
            vec![$((<$type as ToSchema>::name(), again::<$type>)),+]
        }
    };
}

types![
    ActionPage,
    ActionRead,
    ActionRuns,
    AssetLineage,
    AssetList,
    AssetRead,
    AuthStatus,
    BatchSetAside,
    CampaignList,
    CampaignPlanned,
    CampaignRead,
    CanvasChanges,
    CanvasList,
    CanvasRead,
    CanvasReview,
    CollectionDeleted,
    CollectionList,
    CollectionRead,
    ConnectionList,
    DeliveriesReplayed,
    DeliveryList,
    DeliveryReplayed,
    DownloadLinks,
    ElementList,
    ElementOrVersion,
    ElementRead,
    ErrorEnvelope,
    ImageImport,
    ImageJob,
    JobDocument,
    ModelPage,
    ModelRead,
    MutationResult,
    NodeRead,
    OperationsAnswer,
    ProductImport,
    RecipePage,
    RecipeRead,
    RecipeRun,
    RunDocument,
    RunList,
    ServiceStatus,
    StartQuote,
    UploadLinks,
    VersionList,
    VideoJob,
    WorkflowResult,
];

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
            let is_it = |it: &Endpoint| it.method == method && matches(it.path, path);
            let mut answers = contract::built().filter(is_it).flat_map(answers);
            let (_, content) = answers.find(|it| it.0 == status).ok_or("the contract has no such answer")?;
            let Some(schema) = schema(content) else { return Ok(()) };
            let (_, again) = types().into_iter().find(|it| it.0 == schema).ok_or("the answer has no type")?;
            again(body).map_err(|error| format!("is no {schema}: {error}"))?
        }
    };
    if again == serde_json::from_slice::<Value>(body)? {
        Ok(())
    } else {
        Err(format!("read and written again: {again}").into())
    }
}

/// The JSON answers of an operation: the status, and the media type's member with schema and examples.
fn answers(endpoint: Endpoint) -> impl Iterator<Item = (u16, &'static Value)> {
    let responses = endpoint.documented["responses"].as_object().expect("responses");
    responses.iter().filter_map(|(status, response)| {
        let content = contract::resolved(response)["content"].get("application/json")?;
        Some((status.parse().expect("a status"), content))
    })
}

/// The name of the schema of an answer. The contract document itself has none: it is any object.
fn schema(content: &'static Value) -> Option<&'static str> {
    content["schema"]["$ref"].as_str()?.rsplit('/').next()
}

/// Returns `true` if a path fits a template.
fn matches(template: &str, path: &str) -> bool {
    let (names, parts): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    names.len() == parts.len() && names.iter().zip(parts).all(|(name, part)| name.starts_with('{') || *name == part)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_answer_of_the_contract_has_its_type_and_every_type_an_answer() {
        let documented: BTreeSet<_> = contract::built().flat_map(answers).filter_map(|(_, it)| schema(it)).collect();
        let types = types();
        assert_eq!(types.iter().map(|(name, _)| &**name).collect::<BTreeSet<_>>(), documented);
    }

    #[test]
    fn the_examples_of_the_document_are_of_their_types() {
        let mut seen = 0;
        for endpoint in contract::built() {
            let (method, path) = (endpoint.method, endpoint.path);
            for (status, content) in answers(endpoint) {
                for example in content["examples"].as_object().into_iter().flat_map(|examples| examples.values()) {
                    let value = &contract::resolved(example)["value"];
                    check(method, path, status, value.to_string().as_bytes())
                        .unwrap_or_else(|error| panic!("{method} {path} {status}: {error}\n{value}"));
                    seen += 1;
                }
            }
        }
        assert!(seen > 100, "{seen} examples");
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
