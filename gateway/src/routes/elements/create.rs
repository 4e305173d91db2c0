//! `POST /elements` (decisions 7.1).

use axum::extract::State;
use domain::Violation;
use domain::element::{Content, ElementRecord, ElementType, Listed};
use domain::id::{AssetId, ElementCollectionId};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::body::{ElementRead, content_violations, repeated, require_known, unknown_collections, unknown_images};
use super::sources::Sources;
use crate::extract::caller::{Caller, WriteElements};
use crate::extract::json::{Input, Unread};
use crate::problem::{Problem, Result};
use crate::reply;
use crate::state::{App, retrying};

/// An Element to make: from guidelines, from one to eight pictures, or from both.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateElement {
    /// For people and prompts.
    #[schema(min_length = 1, max_length = 160)]
    name: String,
    /// What it is a reference of.
    #[serde(rename = "type")]
    kind: ElementType,
    /// Plain ids of image assets of the account.
    #[schema(max_items = 8)]
    source_asset_ids: Vec<AssetId>,
    /// Appended to prompts that use it.
    #[schema(max_length = 2000, nullable = false)]
    guidelines: Option<String>,
    /// Plain ids of collections of the account.
    #[serde(default)]
    #[schema(max_items = 24)]
    collection_ids: Vec<ElementCollectionId>,
}

impl Input for CreateElement {}

fn violations(body: &Value) -> Vec<Violation> {
    let collections = repeated::<ElementCollectionId>("collectionIds", &body["collectionIds"]);
    [content_violations("", body), collections].concat()
}

/// Create an Element
#[utoipa::path(
    post, path = "/elements", operation_id = "createElement", tag = "Elements", request_body = CreateElement,
    security(("bearer" = ["element:write"])),
    responses((status = 201, body = ElementRead))
)]
pub async fn create(State(app): State<App>, caller: Caller<WriteElements>, body: Unread) -> Result {
    let CreateElement { name, kind, source_asset_ids, guidelines, collection_ids } = body.json_by(violations).await?;
    let content = Content { name, kind, sources: source_asset_ids, guidelines };
    let record = retrying(|| attempt(&app, &caller, &content, &collection_ids)).await?;
    let health = Sources::of(&app, &caller.account, [&record.content].into_iter()).await?.health(&record.content);
    let location = format!("/elements/{}", record.id);
    Ok(reply::created(&location, &ElementRead { element: record.document(health, Listed::No) }))
}

async fn attempt(
    app: &App,
    caller: &Caller<WriteElements>,
    content: &Content,
    collections: &[ElementCollectionId],
) -> Result<ElementRecord> {
    let mut transaction = app.transaction().await?;
    let account = &caller.account;
    let made = || Problem::internal("an element that was just made is not there");
    let mut unknown = unknown_images(&mut transaction, account, "sourceAssetIds", &content.sources).await?;
    if !collections.is_empty() {
        unknown.extend(unknown_collections(&mut transaction, account, collections).await?);
    }
    require_known(unknown)?;
    let id = db::elements::create(&mut transaction, account, content).await?;
    if !collections.is_empty() {
        db::elements::organize(&mut transaction, account, &id, collections).await?;
    }
    let record = db::elements::find(&mut transaction, account, &id).await?.ok_or_else(made)?;
    db::pool::commit(transaction).await?;
    Ok(record)
}
