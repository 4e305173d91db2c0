//! `PATCH /elements/{elementId}`: revise, organize, archive, restore (decisions 7.2).

use axum::extract::State;
use domain::Violation;
use domain::element::{ElementRecord, Lifecycle, Listed};
use domain::id::{ElementCollectionId, ElementId};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::body::{
    ElementContent, ElementRead, content_violations, repeated, require_known, unknown_collections, unknown_images,
};
use super::sources::Sources;
use crate::extract::caller::{Caller, WriteElements};
use crate::extract::json::{Input, Unread, only};
use crate::extract::path::PathText;
use crate::problem::{Problem, Result, both};
use crate::reply;
use crate::state::{App, retrying};

/// What is to become of an Element.
#[derive(Clone, Deserialize, ToSchema)]
#[serde(tag = "operation", deny_unknown_fields)]
pub enum ElementPatch {
    /// Appends a version that says this and nothing else.
    #[serde(rename = "update")]
    Update {
        /// The whole content of the new version.
        element: ElementContent,
    },
    /// Puts it into exactly these collections; no new version.
    #[serde(rename = "collections")]
    Collections {
        /// Plain ids of collections of the account.
        #[serde(rename = "collectionIds")]
        #[schema(max_items = 24)]
        collection_ids: Vec<ElementCollectionId>,
    },
    /// Puts it away; nothing is deleted.
    #[serde(rename = "archive")]
    Archive {
        /// Sent only after a person confirmed it.
        #[schema(schema_with = only::<true>)]
        #[expect(dead_code, reason = "the schema admits `true` alone")]
        confirm: bool,
    },
    /// Takes it back into use by appending a version that says what the last one said.
    #[serde(rename = "restore")]
    Restore {},
}

impl Input for ElementPatch {}

fn violations(body: &Value) -> Vec<Violation> {
    match body["operation"].as_str() {
        Some("update") => content_violations("element.", &body["element"]),
        Some("collections") => repeated::<ElementCollectionId>("collectionIds", &body["collectionIds"]),
        _ => Vec::new(),
    }
}

/// Revise, organize, archive or restore an Element
#[utoipa::path(
    patch, path = "/elements/{elementId}", operation_id = "updateElement", tag = "Elements", request_body = ElementPatch,
    security(("bearer" = ["element:write"])),
    params(("elementId" = String, Path, pattern = "^(element:)?[A-Za-z0-9_-]{1,180}$", description = "Plain id or handle.")),
    responses((status = 200, body = ElementRead))
)]
pub async fn update(State(app): State<App>, caller: Caller<WriteElements>, params: PathText, body: Unread) -> Result {
    let (patch, id) =
        both(body.json_by::<ElementPatch, _>(violations).await, params.parameter::<ElementId>("elementId"))?;
    let record = retrying(|| attempt(&app, &caller, &id, patch.clone())).await?;
    let health = Sources::of(&app, &caller.account, [&record.content].into_iter()).await?.health(&record.content);
    Ok(reply::ok(&ElementRead { element: record.document(health, Listed::No) }))
}

async fn attempt(
    app: &App,
    caller: &Caller<WriteElements>,
    id: &ElementId,
    patch: ElementPatch,
) -> Result<ElementRecord> {
    let mut transaction = app.transaction().await?;
    let (conn, account) = (&mut *transaction, &caller.account);
    let element = db::elements::lock(conn, account, id).await?.ok_or(Problem::NotFound("element"))?;
    let conflict = |message: &str| Problem::Conflict(message.into(), None);
    match (patch, element.lifecycle) {
        (ElementPatch::Update { .. }, Lifecycle::Archived) => {
            return Err(conflict("the element is archived; restore it first"));
        }
        (ElementPatch::Archive { .. }, Lifecycle::Archived) => return Err(conflict("the element is archived already")),
        (ElementPatch::Restore {}, Lifecycle::Active) => return Err(conflict("the element is not archived")),
        (ElementPatch::Update { element }, Lifecycle::Active) => {
            let content = element.content();
            require_known(unknown_images(conn, account, "element.sourceAssetIds", &content.sources).await?)?;
            db::elements::append(conn, account, id, &content).await?;
        }
        (ElementPatch::Collections { collection_ids }, _) => {
            require_known(unknown_collections(conn, account, &collection_ids).await?)?;
            db::elements::organize(conn, account, id, &collection_ids).await?;
        }
        (ElementPatch::Archive { .. }, Lifecycle::Active) => db::elements::archive(conn, account, id).await?,
        (ElementPatch::Restore {}, Lifecycle::Archived) => {
            db::elements::append(conn, account, id, &element.content).await?;
        }
    }
    let gone = || Problem::internal("an element whose row is held is not there");
    let record = db::elements::find(conn, account, id).await?.ok_or_else(gone)?;
    db::pool::commit(transaction).await?;
    Ok(record)
}
